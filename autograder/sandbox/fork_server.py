"""The trusted side of the fork server: starts it, makes it fork and end workers, and replaces it if it is lost."""

import shutil
import socket
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, cast

from ..core.constructed_answers import PackedFunction
from ..core.packing import ProtocolError
from . import isolation
from .client import Crashed, SandboxLost, TimedOut, Worker, children, cpu_clock, ended_seconds
from .confine.confinement import Level
from .isolation import Launched, NotDenied, NotIsolated
from .limits import Limits
from .worker import protocol
from .worker.protocol import End, Ending, Job

_START_SECONDS = 120
_CONTROL_SECONDS = 10
_ENDING_SECONDS = 60  # many files may have to be deleted
_SELF_TEST_SECONDS = 5
_LEAVING_SECONDS = 10
_DEVICE_SECONDS = 30
_IMPORT_SECONDS = 10


class _Lost(Exception):
    """The fork server no longer answers."""


class ForkServer:
    """The process that forks the workers. It contains no test, no solution and no path to this repository.

    If it is lost, the next `fork` starts another one. It can be lost because the system runs out of memory, or, at
    level `none`, because a student's code kills it.
    """

    def __init__(self, launched: Launched) -> None:
        self.losses = 0
        """Number of times that the fork server was lost without a submission as possible cause."""
        self._forks = 0
        self._adopt(launched)

    @property
    def isolation(self) -> Level:
        """The isolation level of workers: see docs/security.md."""
        return self._launched.level

    @property
    def limits(self) -> Limits:
        """The limits of one submission."""
        return self._launched.limits

    @property
    def enforced(self) -> list[str]:
        """Names of the confinement mechanisms that workers run under, such as `seccomp`.

        Waits until the fork server has started; raises NotIsolated and NotDenied.
        """
        return self._ensure_started()

    @property
    def pid(self) -> int:
        """The id of the process that was started: at level A, of bubblewrap."""
        return self._process.pid

    def fork(
        self,
        device: str,
        wrong: Mapping[str, PackedFunction] | None = None,
        *,
        spare_memory: int = 0,
        imports: Sequence[str] = (),
    ) -> Worker:
        """Fork a new worker for one submission.

        device: for the exercises' tensors. wrong: the wrong functions of the unit's counterexample exercises, by name.
        spare_memory: bytes of address space that the notebook may map in addition to what the modules named in
        `imports` take; 0 for the submission's usual limit only.

        Raises NotIsolated and NotDenied if the fork server was lost and another one does not start.
        """
        self._forks += 1
        is_first = self._forks <= 1
        job = self._job(device, wrong=dict(wrong or {}), spare_memory=spare_memory, imports=imports, is_first=is_first)
        try:
            return self._fork_when_started(job)
        except _Lost:
            return self._fork_when_started(job)

    def _fork_when_started(self, job: Job) -> Worker:
        if self._is_lost:  # if it was lost while starting, only the submission before this one is affected
            self._start_again()
        self._ensure_started()
        return self._fork(job)

    def _job(self, device: str, **options: Any) -> Job:
        return Job(device, self.limits.worker, self.limits.scratch_bytes, self._launched.core, **options)

    def computes_on(self, device: str) -> bool:
        """Return whether confined workers can compute gradients on the device.

        Two workers try it, one after the other: only the second is forked as all later ones are, after the fork server
        has prepared itself.
        """
        return all(self._computes_on(device) for _ in range(2))

    def _computes_on(self, device: str) -> bool:
        worker = self.fork(device)
        try:
            source = f"import torch; torch.ones(1, device={device!r}, requires_grad=True).sum().backward()"
            answer, _ = worker.request({"operation": "cell", "cell": "", "source": source}, cpu_seconds=_DEVICE_SECONDS)
            return answer["fault"] is None
        except (TimedOut, Crashed, SandboxLost):
            return False
        finally:
            worker.end()

    def processes(self) -> list[int]:
        """Return the workers' process ids outside the sandbox; empty if there is no /proc."""
        return [pid for parent in self._parents() for pid in children(parent)]

    def cpu_seconds(self) -> float:
        """Return the CPU seconds of all workers so far, also of ended ones; 0 if there is no /proc."""
        return sum(map(ended_seconds, self._parents())) + sum(map(cpu_clock, self.processes()))

    def _parents(self) -> list[int]:
        """Return the id outside the sandbox of the process that forks workers: at level A, a child of bubblewrap."""
        return children(self._process.pid) if self.isolation == "A" else [self._process.pid]

    def end(self, pid: int, *, hung_up: bool) -> Ending:
        """End a worker, if it still runs, and return what had ended it before.

        hung_up: True if the worker has closed its connection.
        """
        if pid not in self._workers:
            return Ending()  # a worker of a lost fork server, which ended with it
        self._workers.discard(pid)
        if self._is_lost:
            return Ending()
        try:
            self._send(End(pid, hung_up))
            return cast(Ending, self._receive(_ENDING_SECONDS, Ending))
        except _Lost:
            return Ending()

    def blames(self, outcome: TimedOut | Crashed) -> TimedOut | Crashed | SandboxLost:
        """Return the error for a failed request: `outcome`, or SandboxLost if no submission can be the cause."""
        return SandboxLost() if self._is_lost and self.isolation != "none" else outcome

    def _adopt(self, launched: Launched) -> None:
        self._is_lost = False
        self._launched = launched
        self._control = launched.confined.control
        self._process = launched.confined.process
        self._enforced: list[str] | None = None
        self._workers: set[int] = set()

    def _start_again(self) -> None:
        self.close()
        self._adopt(self._launched.launch_again())

    def _ensure_started(self) -> list[str]:
        if self._enforced is None:
            try:
                self._enforced = self._start()
            except (NotIsolated, NotDenied):
                self._is_lost = True
                raise
        return self._enforced

    def _start(self) -> list[str]:
        try:
            ready = self._receive(_START_SECONDS)
        except _Lost:
            raise NotIsolated(
                f"The sandbox did not start at isolation level {self.isolation}; its output above says why."
            ) from None
        if "cannot" in ready:
            raise NotIsolated(f"{ready['cannot']} docs/security.md says what each level needs.")
        shutil.rmtree(self._launched.confined.folder / "inside")  # it is imported, and no worker needs to read it
        enforced = [str(layer) for layer in ready["enforced"]]
        if self.isolation != "none":
            worker = self._fork(self._job("cpu"))
            try:
                attempts = isolation.verify_denials(
                    lambda header: worker.request(header, cpu_seconds=_SELF_TEST_SECONDS)[0]
                )
            except (TimedOut, Crashed, SandboxLost):
                raise NotIsolated("The sandbox's self-test did not come to its end, so nothing is graded.") from None
            finally:
                worker.end()
            enforced.append(f"self-test of {attempts} denials")
        return enforced

    def _fork(self, job: Job) -> Worker:
        near_end, far_end = socket.socketpair()
        before = set(self.processes()) if job.spare_memory else set()
        with far_end:
            try:
                self._send(job, far_end)
                pid = int(self._receive(_CONTROL_SECONDS)["pid"])
            except _Lost:
                near_end.close()
                raise
        self._workers.add(pid)
        worker = Worker(self, pid, near_end, self.limits)
        if job.spare_memory:
            worker.request({"operation": "ready"}, cpu_seconds=_IMPORT_SECONDS)
            for process in set(self.processes()) - before:
                worker.limit_memory(process, job.spare_memory)
        return worker

    def _send(self, message: Job | End, connection: socket.socket | None = None) -> None:
        try:
            protocol.send(self._control, message)
            if connection is not None:
                socket.send_fds(self._control, [b"+"], [connection.fileno()])
        except OSError:
            raise self._lose() from None

    def _receive(self, seconds: float, form: type[Any] = dict) -> Any:
        try:
            return protocol.receive(self._control, time.monotonic() + seconds, form)[0]
        except (ProtocolError, OSError):
            self._process.kill()  # it may only have been stopped
            raise self._lose() from None

    def _lose(self) -> _Lost:
        self._is_lost = True
        self.losses += self.isolation != "none"
        return _Lost()

    def close(self) -> None:
        """End the fork server and every worker."""
        self._launched.confined.end(_LEAVING_SECONDS)

    def __enter__(self) -> "ForkServer":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()
