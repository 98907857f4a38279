"""The trusted side of the sandbox: starts the warm parent, has workers forked, talks to them, ends them."""

import select
import shutil
import socket
import time
from dataclasses import asdict
from types import TracebackType
from typing import Any

import msgspec

from . import processes, self_test
from .inside import protocol
from .inside.confinement import Level
from .isolation import NotIsolated
from .launch import Launched
from .limits import Limits, Passed
from .losses import Crashed, Ending, SandboxLost, TimedOut, loss
from .pace import Pace

_START_SECONDS = 120
_CONTROL_SECONDS = 10
_ENDING_SECONDS = 60  # many files may have to be deleted
_SELF_TEST_SECONDS = 5
_LEAVING_SECONDS = 10
_WATCH_SECONDS = 0.5
_DEVICE_SECONDS = 30
_SENDING_SECONDS = 10  # for an answer that has begun
_IDLE_SECONDS = 10
_CPU_LEEWAY_SECONDS = 1.0  # the worker's own limit comes first, and counts whole ones


class _Lost(Exception):
    """The warm parent no longer answers."""


class _LimitPassed(Exception):
    """A limit of the submission's was passed, and the worker is to be ended."""

    def __init__(self, limit: Passed) -> None:
        super().__init__(limit)
        self.limit = limit


class _Idle(Exception):
    """The worker waits for something that does not come."""


class WarmParent:
    """The process that workers are forked from. Holds no test, no answer and no path to this repository.

    If it is lost (the system may be out of memory; without isolation a student's code may kill what its user may
    kill), the next fork starts another.
    """

    def __init__(self, launched: Launched) -> None:
        self.losses = 0
        """How often it was lost where no submission can have done it."""
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

    def fork(self, device: str) -> "Worker":
        """A new worker for one submission."""
        try:
            self._ensure_started()
            return self._fork(device)
        except _Lost:
            self.close()
            self._adopt(self._launched.again())
            self._ensure_started()
            return self._fork(device)

    def computes_on(self, device: str) -> bool:
        """Whether a worker can compute on the device, confined as it is."""
        worker = self.fork(device)
        try:
            source = f"import torch; torch.ones(1, device={device!r}).sum().item()"
            answer, _ = worker.request({"operation": "cell", "cell": "", "source": source}, cpu_seconds=_DEVICE_SECONDS)
            return answer["fault"] is None
        except (TimedOut, Crashed, SandboxLost):
            return False
        finally:
            worker.end()

    def has_too_many_threads(self) -> bool:
        """Whether more threads run in the sandbox than a submission may have. Where /proc is not to be read: False."""
        return sum(map(processes.threads, self.processes())) > self.limits.threads

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

    def _ensure_started(self) -> list[str]:
        if self._enforced is None:
            self._enforced = self._start()
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

    def _fork(self, device: str) -> "Worker":
        near_end, far_end = socket.socketpair()
        job = {
            "device": device,
            "limits": asdict(self.limits.of_worker()),
            "scratch_bytes": self.limits.scratch_bytes,
            "core": self._launched.core,
        }
        with far_end:
            try:
                self._say({"fork": job}, far_end)
                pid = int(self._hear(_CONTROL_SECONDS)["pid"])
            except _Lost:
                near_end.close()
                raise
            self._workers.add(pid)
            return Worker(self, pid, near_end, self.limits)

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
        except (protocol.ProtocolError, OSError):
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


class Worker:
    """One forked worker and the connection to it."""

    def __init__(self, parent: WarmParent, pid: int, connection: socket.socket, limits: Limits) -> None:
        self._parent = parent
        self._pid = pid
        self._connection = connection
        self._limits = limits
        self._number = 0
        self._looked = time.monotonic()
        self._pace = Pace(parent.processes)
        self._ended = False

    def request(
        self,
        header: dict[str, Any],
        tensors: protocol.Tensors | None = None,
        *,
        cpu_seconds: int,
        form: type[Any] = dict,
        wall_seconds: float | None = None,
        idle_seconds: float = _IDLE_SECONDS,
    ) -> tuple[Any, protocol.Tensors]:
        """Asks one thing of the student's code.

        form: what the answer is read as; a Struct with a `number` where a student's code may have written it.
        wall_seconds: for this request, if that is less than `wall_factor` says. idle_seconds: in which it may wait for
        something else than a processor. Time in the queue for a processor counts for neither.
        Raises TimedOut, Crashed or SandboxLost; after any of them the worker is gone.
        """
        self._number += 1
        self._pace = Pace(self._parent.processes)
        seconds = float(cpu_seconds * self._limits.wall_factor)
        deadline = time.monotonic() + (seconds if wall_seconds is None else min(seconds, wall_seconds))
        self._connection.settimeout(_SENDING_SECONDS)
        try:
            protocol.send(self._connection, {**header, "number": self._number, "cpu_seconds": cpu_seconds}, tensors)
            self._wait(deadline, cpu_seconds + _CPU_LEEWAY_SECONDS, idle_seconds)
            answer, payload = protocol.receive(self._connection, time.monotonic() + _SENDING_SECONDS, form)
            self._look_at_threads(at_once=header["operation"] == "cell")
            if (answer.pop("number", None) if form is dict else answer.number) != self._number:
                raise protocol.ProtocolError("an answer to something that was not asked")
            return answer, payload
        except _LimitPassed as passed:
            self.end()
            raise self._parent.blames(Crashed(self._limits.said(passed.limit))) from None
        except _Idle:
            self.end()
            sentence = f"It waited {idle_seconds:g} seconds for something that did not come."
            raise self._parent.blames(TimedOut(sentence)) from None
        except TimeoutError:
            self.end()
            raise self._parent.blames(TimedOut()) from None
        except (protocol.ProtocolError, OSError):
            raise self._parent.blames(loss(self._end(hung_up=True), self._limits)) from None

    @property
    def queued(self) -> float:
        """Seconds that the last request waited for a processor."""
        return self._pace.queued

    def _wait(self, deadline: float, cpu_seconds: float, idle_seconds: float) -> None:
        """Until an answer begins to come."""
        while not select.select([self._connection], [], [], _WATCH_SECONDS)[0]:
            self._look_at_threads(at_once=True)
            deadline += self._pace.look()
            if self._pace.idle > idle_seconds:
                raise _Idle
            if time.monotonic() > deadline or self._pace.computed > cpu_seconds:
                raise TimeoutError

    def _look_at_threads(self, *, at_once: bool) -> None:
        now = time.monotonic()
        if at_once or now - self._looked > _WATCH_SECONDS:
            self._looked = now
            if self._parent.has_too_many_threads():
                raise _LimitPassed("threads")

    def end(self) -> None:
        """Ends the worker; once, however often it is called."""
        self._end(hung_up=False)

    def _end(self, *, hung_up: bool) -> Ending:
        if self._ended:
            return Ending()
        self._ended = True
        self._connection.close()
        return self._parent.end(self._pid, hung_up=hung_up)
