"""The trusted side of the sandbox: starts the warm parent, and has workers forked and ended."""

import contextlib
import os
import shutil
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from types import TracebackType
from typing import Any

import msgspec

from ..core.packing import ProtocolError
from ..core.wrong_function import PackedFunction
from . import processes, self_test
from .client import Worker
from .confine.confinement import Level
from .failures import Crashed, Ending, SandboxLost, TimedOut
from .isolation import NotIsolated
from .launch import Launched
from .limits import Limits
from .worker import protocol

_START_SECONDS = 120
_CONTROL_SECONDS = 10
_ENDING_SECONDS = 60  # many files may have to be deleted
_SELF_TEST_SECONDS = 5
_LEAVING_SECONDS = 10
_DEVICE_SECONDS = 30
_SLOW_NICENESS = 10
_IMPORT_SECONDS = 10


class _Lost(Exception):
    """The warm parent no longer answers."""


class WarmParent:
    """The process that workers are forked from. Holds no test, no answer and no path to this repository.

    If it is lost (the system may be out of memory; without isolation a student's code may kill what its user may
    kill), the next fork starts another.
    """

    def __init__(self, launched: Launched) -> None:
        self.losses = 0
        """How often it was lost where no submission can have done it."""
        self._asked_for = 0
        self._adopt(launched)

    @property
    def isolation(self) -> Level:
        """What the operating system keeps workers from doing: a level as docs/security.md describes them."""
        return self._launched.level

    @property
    def limits(self) -> Limits:
        """What one submission may use."""
        return self._launched.limits

    @property
    def enforced(self) -> list[str]:
        """What is enforced at this level, in words. Waits for the start; raises NotIsolated and NotDenied."""
        return self._ensure_started()

    @property
    def pid(self) -> int:
        """The process's id."""
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

        wrong: the functions that the unit's hunts are for, by name.
        spare_memory: bytes of address space that the notebook may map beyond what `imports` (names of modules) take;
        0 for the submission's usual limit alone.

        Raises NotIsolated and NotDenied if the fork server was lost and another one does not start.
        """
        self._asked_for += 1
        if self._is_lost:  # perhaps in starting: that costs the submission before this one, and no later one
            self._start_again()
        try:
            self._ensure_started()
            return self._fork(device, wrong, spare_memory, imports)
        except _Lost:
            self._start_again()
            self._ensure_started()
            return self._fork(device, wrong, spare_memory, imports)

    def computes_on(self, device: str) -> bool:
        """Return whether confined workers can compute on the device.

        Two are tried: the second is forked, as all later ones are, from a parent that has done all of its warm-up.
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

    def has_too_many_threads(self) -> bool:
        """Whether more threads run in the sandbox than a submission may have. Where /proc is not to be read: False."""
        return sum(map(processes.threads, self.processes())) > self.limits.threads

    def make_way(self) -> None:
        """Lets what is quick go first from here on: this worker takes long, and may never come back.

        That costs it no mark, because time in the queue for a processor is not counted.
        """
        for pid in self.processes():
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, pid, _SLOW_NICENESS)

    def processes(self) -> list[int]:
        """The workers' ids, as this process sees them; none where /proc is not to be read."""
        below = processes.children(self._process.pid)
        return [pid for child in below for pid in processes.children(child)] if self.isolation == "A" else below

    def end(self, pid: int, *, hung_up: bool) -> Ending:
        """Ends one worker; returns what had ended it already."""
        if pid not in self._workers:
            return Ending()  # of a parent that was lost, and ended with it
        self._workers.discard(pid)
        if self._is_lost:
            return Ending()
        try:
            self._say({"end": pid, "hung_up": hung_up})
            return msgspec.convert(self._hear(_ENDING_SECONDS), Ending)
        except _Lost:
            return Ending()

    def blames(self, outcome: TimedOut | Crashed) -> TimedOut | Crashed | SandboxLost:
        """What happened to a worker: this, unless the warm parent was lost and no submission can have done it."""
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
        self._adopt(self._launched.again())

    def _ensure_started(self) -> list[str]:
        if self._enforced is None:
            try:
                self._enforced = self._start()
            except (NotIsolated, self_test.NotDenied):
                self._is_lost = True
                raise
        return self._enforced

    def _start(self) -> list[str]:
        try:
            ready = self._hear(_START_SECONDS)
        except _Lost:
            raise NotIsolated(
                f"The sandbox did not start at isolation level {self.isolation}; what it printed says why."
            ) from None
        if "cannot" in ready:
            raise NotIsolated(f"{ready['cannot']} docs/security.md says what each level needs.")
        shutil.rmtree(self._launched.confined.room / "inside")  # imported by now, and nobody's business
        enforced = [str(layer) for layer in ready["enforced"]]
        if self.isolation != "none":
            worker = self._fork("cpu")
            try:
                tried = self_test.run(lambda header: worker.request(header, cpu_seconds=_SELF_TEST_SECONDS)[0])
            except (TimedOut, Crashed, SandboxLost):
                raise NotIsolated("The sandbox's self-test did not come to its end, so nothing is marked.") from None
            finally:
                worker.end()
            enforced.append(f"self-test of {tried} denials")
        return enforced

    def _fork(
        self,
        device: str,
        wrong: Mapping[str, PackedFunction] | None = None,
        spare_memory: int = 0,
        imports: Sequence[str] = (),
    ) -> Worker:
        near_end, far_end = socket.socketpair()
        job = {
            "device": device,
            "limits": asdict(self.limits.of_worker()),
            "scratch_bytes": self.limits.scratch_bytes,
            "core": self._launched.core,
            "wrong": wrong or {},
            "spare_memory": spare_memory,
            "imports": list(imports),
            "is_one_of_many": self._asked_for > 1,
        }
        before = set(self.processes()) if spare_memory else set()
        with far_end:
            try:
                self._say({"fork": job}, far_end)
                pid = int(self._hear(_CONTROL_SECONDS)["pid"])
            except _Lost:
                near_end.close()
                raise
            self._workers.add(pid)
            worker = Worker(self, pid, near_end, self.limits)
            if spare_memory:
                worker.request({"operation": "ready"}, cpu_seconds=_IMPORT_SECONDS)
                for process in set(self.processes()) - before:
                    worker.limit_memory(process, spare_memory)
            return worker

    def _say(self, message: dict[str, Any], connection: socket.socket | None = None) -> None:
        try:
            protocol.send(self._control, message)
            if connection is not None:
                socket.send_fds(self._control, [b"+"], [connection.fileno()])
        except OSError:
            raise self._lose() from None

    def _hear(self, seconds: float) -> dict[str, Any]:
        try:
            heard: dict[str, Any] = protocol.receive(self._control, time.monotonic() + seconds)[0]
            return heard
        except (ProtocolError, OSError):
            self._process.kill()  # it may only have been stopped
            raise self._lose() from None

    def _lose(self) -> _Lost:
        self._is_lost = True
        self.losses += self.isolation != "none"
        return _Lost()

    def close(self) -> None:
        """Ends the warm parent and every worker."""
        self._launched.confined.end(_LEAVING_SECONDS)

    def __enter__(self) -> "WarmParent":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()
