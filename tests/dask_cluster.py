"""A real Dask cluster on this machine: a scheduler and workers, each a process of its own, which speak TLS."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path

import dask

from autograder.cluster.cluster_run import Address
from autograder.sandbox.client import threads
from tests import REPOSITORY

_PROGRAM = str(Path(sys.executable).with_name("dask"))
_WAIT_SECONDS = 60


class DaskCluster:
    """Ends with `close`."""

    def __init__(self, folder: Path) -> None:
        """folder: for its keys, logs and files."""
        self.folder = folder
        files = {"cert": str(folder / "cert.pem"), "key": str(folder / "key.pem")}
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-days", "2", "-subj", "/CN=autograder", "-keyout", files["key"], "-out", files["cert"]],
            check=True, capture_output=True,
        )  # fmt: skip
        self.tls = {"ca-file": files["cert"], **dict.fromkeys(("client", "scheduler", "worker"), files)}
        self.environment = {
            f"DASK_DISTRIBUTED__COMM__TLS__{role}__{kind}".upper(): file
            for role in ("client", "scheduler", "worker")
            for kind, file in files.items()
        } | {"DASK_DISTRIBUTED__COMM__TLS__CA_FILE": files["cert"]}
        self._processes: list[subprocess.Popen[bytes]] = []
        self._scheduler_file = folder / "scheduler.json"
        self.scheduler = self._started(
            "scheduler", "--host", "tls://127.0.0.1", "--port", "0", "--scheduler-file", str(self._scheduler_file)
        )
        _wait_for(self._is_written)
        self.address = str(json.loads(self._scheduler_file.read_text())["address"])

    def workers(self, count: int, *options: str, course: Path = REPOSITORY, path: str = "") -> subprocess.Popen[bytes]:
        """Start a number of workers, below one process that replaces each that dies."""
        return self._started(
            "worker", "--scheduler-file", str(self._scheduler_file), "--nworkers", str(count), "--nthreads", "1",
            "--host", "127.0.0.1", "--local-directory", str(self.folder / "scratch"), *options,
            AUTOGRADER_COURSE=str(course), PYTHONPATH=f"{REPOSITORY}:{path}".rstrip(":"),
        )  # fmt: skip

    @cached_property
    def two(self) -> subprocess.Popen[bytes]:
        """Process that starts two workers, and replaces those that die; started at first use."""
        return self.workers(2)

    @contextlib.contextmanager
    def spoken_to(self) -> Iterator[Address]:
        """The address, for a run in this process."""
        with dask.config.set({"distributed.comm.tls": {**dask.config.get("distributed.comm.tls"), **self.tls}}):
            yield Address(self.address)

    def _is_written(self) -> bool:
        """Return whether the scheduler has written its whole address."""
        return self._scheduler_file.exists() and self._scheduler_file.read_text().rstrip().endswith("}")

    def close(self) -> None:
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _started(self, what: str, *options: str, **environment: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{what}.log").open("ab") as log:
            self._processes.append(
                subprocess.Popen(
                    [_PROGRAM, what, *options, "--no-dashboard"],
                    env={**os.environ, **self.environment, **environment},
                    cwd=self.folder,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )
        return self._processes[-1]


def worker_that_runs_threads(workers: subprocess.Popen[bytes], least: int) -> int | None:
    """The process id of the Dask worker below which a student's code has started this number of threads."""
    for worker in _children(workers.pid):
        for process in _below(worker):
            if threads(process) >= least:
                return worker
    return None


def _below(pid: int) -> Iterator[int]:
    for child in _children(pid):
        yield child
        yield from _below(child)


def _children(pid: int) -> list[int]:
    """Return the children of all threads: a Dask worker starts its grading process in one."""
    with contextlib.suppress(OSError):
        found = Path(f"/proc/{pid}/task").glob("*/children")
        return [int(child) for file in found for child in file.read_text().split()]
    return []


def _wait_for(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + _WAIT_SECONDS
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.02)
