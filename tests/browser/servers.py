"""JupyterLab as people start it: a course by `make lab`, and a student's own."""

import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from tests import REPOSITORY

from .student_account import StudentAccount

BIN = Path(sys.executable).parent
MINUTES = 6 * 60_000  # until something is given up that takes seconds: the machine may be busy


@dataclass(frozen=True)
class Lab:
    """JupyterLab as it runs."""

    folder: Path
    address: str
    token: str
    server: psutil.Process


@contextmanager
def opened(course: Path, home: Path) -> Iterator[Lab]:
    """`make lab` on a course, in a home with nothing in it."""
    home.mkdir()
    theirs = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "MAKE", "MFLAGS"))}
    environment = {**theirs, "HOME": str(home), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    # This environment is the one that make would set up.
    make = ["make", f"--directory={REPOSITORY}", "--old-file=.venv/ready-cpu", "TORCH=cpu", f"BIN={BIN}"]
    with _started([*make, "lab", f"COURSE={course}", "LAB=--no-browser --port=0"], environment, course) as lab:
        yield lab


@contextmanager
def opened_by(student: StudentAccount) -> Iterator[Lab]:
    """`jupyter lab`, as the student's page says, in the student's home."""
    with _started(student.command("jupyter", "lab", "--no-browser", "--port=0"), {}, student.home) as lab:
        yield lab


@contextmanager
def _started(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> Iterator[Lab]:
    """A command that ends up as JupyterLab, until it listens; afterwards nothing of it is left."""
    with subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        said = []
        for line in process.stdout or ():
            said.append(line)
            if found := re.search(r"(http://\S+/)lab\?token=(\w+)", line):
                break
        else:
            pytest.fail("JupyterLab ended: " + "".join(said))
        rest = threading.Thread(target=process.stdout.read)  # or the pipe would fill
        rest.start()
        below = psutil.Process(process.pid).children(recursive=True)
        server = next(one for one in below if any(part.endswith("jupyter-lab") for part in one.cmdline()))
        try:
            _wait_until_it_listens(found[1])
            yield Lab(folder, *found.groups(), server)
        finally:
            family = [*below, *server.children(recursive=True)]
            server.terminate()
            _, left = psutil.wait_procs(family, timeout=60)
            for one in left:
                one.kill()
            rest.join()
    assert not left, "processes outlived JupyterLab"


def _wait_until_it_listens(address: str) -> None:
    """It prints its address a moment before."""
    at = urlsplit(address)
    for _ in range(MINUTES // 100):
        with suppress(ConnectionRefusedError), socket.create_connection((at.hostname, at.port)):
            return
        time.sleep(0.1)
    pytest.fail(f"Nothing listens at {address}.")
