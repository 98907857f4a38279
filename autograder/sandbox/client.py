"""One forked worker, as the trusted side has it: asks it one thing at a time, watches what it uses, ends it."""

import os
import select
import signal
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, Protocol

from ..core.packing import ProtocolError, Tensors
from .cpu_watch import Pace
from .failures import Crashed, Ending, SandboxLost, TimedOut, loss
from .limits import Limits
from .processes import cpu_clock, memory
from .worker import protocol

_WATCH_SECONDS = 0.5
_LIMITED_WATCH_SECONDS = 0.1
_MEMORY_SECONDS = 0.01
_MEMORY_LEEWAY_BYTES = 6 << 20
"""For memory that was mapped before and is touched later. Right answers were seen to need less than 1 MB of it."""
TOO_MUCH_MEMORY = "It held more memory than this worker may have."
_SENDING_SECONDS = 10  # for an answer that has begun
_IDLE_SECONDS = 10
_CPU_LEEWAY_SECONDS = 1.0  # the worker's own limit comes first, and counts whole ones


@dataclass(frozen=True)
class Answered:
    """What a worker sent, not yet read."""

    number: int
    """That of the request."""
    frame: protocol.Frame
    cpu_seconds: float = 0.0
    """The CPU time that the answer took; 0 if it was not measured."""

    @cached_property
    def digest(self) -> bytes | None:
        """The same of answers that say the same, whichever request they are to; None where its form is another."""
        if self.cpu_seconds:
            return None
        number = b'{"number":%d,' % self.number
        if not self.frame.head.startswith(number):
            return None
        said = self.frame.head[len(number) :]
        return sha256(len(said).to_bytes(4) + said + self.frame.payload).digest()

    def read(self, form: type[Any]) -> tuple[Any, Tensors]:
        """What it says, and its tensors; raises ProtocolError.

        form: what it is read as; a Struct with a `number` where a student's code may have written it.
        """
        answer, payload = protocol.read_frame(self.frame, form)
        if (answer.pop("number", None) if form is dict else answer.number) != self.number:
            raise ProtocolError("an answer to something that was not asked")
        return answer, payload


class Parent(Protocol):
    """The fork server, as far as a worker needs it."""

    def processes(self) -> Sequence[int]:
        """Return the ids of the processes in the sandbox."""

    def blames(self, outcome: TimedOut | Crashed) -> TimedOut | Crashed | SandboxLost:
        """Return the error to raise: SandboxLost if the fork server itself was lost."""

    def has_too_many_threads(self) -> bool:
        """Return whether more threads run in the sandbox than a submission may have."""

    def make_way(self) -> None:
        """Give other processes priority over the workers."""

    def end(self, pid: int, *, hung_up: bool) -> Ending:
        """End a worker and return how it ended."""


class Worker:
    """One forked worker and the connection to it."""

    def __init__(self, parent: Parent, pid: int, connection: socket.socket, limits: Limits) -> None:
        self._parent = parent
        self._pid = pid
        self._connection = connection
        self._limits = limits
        self._number = 0
        self._looked = time.monotonic()
        self._pace = Pace(parent.processes)
        self._makes_way = False
        self._ended = False
        self._limited: tuple[int, int] | None = None
        """The process whose memory is watched, and the most bytes that it may hold."""

    def limit_memory(self, pid: int, spare_bytes: int) -> None:
        """Watch the memory that a process holds from now on.

        Its limit on address space does not show memory that replaces a mapping. pid: its id, as this process sees it.
        """
        self._limited = pid, memory(pid) + spare_bytes + _MEMORY_LEEWAY_BYTES

    def request(
        self,
        header: Mapping[str, Any],
        tensors: Tensors | None = None,
        *,
        cpu_seconds: int,
        form: type[Any] = dict,
        wall_seconds: float | None = None,
        idle_seconds: float = _IDLE_SECONDS,
    ) -> tuple[Any, Tensors]:
        """Asks one thing of the student's code, and reads what comes: see `exchange`, and `Answered.read`."""
        answered = self.exchange(
            header,
            protocol.as_payload(tensors) if tensors else b"",
            cpu_seconds=cpu_seconds,
            wall_seconds=wall_seconds,
            idle_seconds=idle_seconds,
        )
        with self._lost_if_it_fails():
            return answered.read(form)

    def exchange(
        self,
        header: Mapping[str, Any],
        payload: bytes = b"",
        *,
        cpu_seconds: int,
        wall_seconds: float | None = None,
        idle_seconds: float = _IDLE_SECONDS,
        is_timed: bool = False,
    ) -> Answered:
        """Asks one thing of the student's code.

        is_timed: measure the CPU time that the answer takes.
        wall_seconds: for this request, if that is less than `wall_factor` says. idle_seconds: in which it may wait for
        something else than a processor. Time in the queue for a processor counts for neither.
        Raises TimedOut, Crashed or SandboxLost; after any of them the worker is gone.
        """
        self._number += 1
        self._pace = Pace(self._parent.processes)
        seconds = float(cpu_seconds * self._limits.wall_factor)
        deadline = time.monotonic() + (seconds if wall_seconds is None else min(seconds, wall_seconds))
        self._connection.settimeout(_SENDING_SECONDS)
        with self._lost_if_it_fails(), self._others_stopped():
            began = self._cpu_seconds() if is_timed else 0.0
            head = protocol.as_head({**header, "number": self._number, "cpu_seconds": cpu_seconds})
            protocol.send_frame(self._connection, protocol.Frame(head, payload))
            leeway = 0.0 if self._limited else _CPU_LEEWAY_SECONDS
            self._wait(deadline, cpu_seconds + leeway, idle_seconds)
            frame = protocol.receive_frame(self._connection, time.monotonic() + _SENDING_SECONDS)
            computed = self._cpu_seconds() - began if is_timed else 0.0
            self._look_at_memory()
            self._look_at_threads(at_once=header["operation"] == "cell" and not header.get("only_shows"))
        return Answered(self._number, frame, computed)

    @contextmanager
    def _others_stopped(self) -> Iterator[None]:
        """Stop the notebook's other workers if this one's memory is limited, so that none computes for it."""
        others = set(self._parent.processes()) - {self._limited[0]} if self._limited else set()
        _send(others, signal.SIGSTOP)
        try:
            yield
        finally:
            _send(others, signal.SIGCONT)

    def _cpu_seconds(self) -> float:
        """Return the CPU time of all workers. Workers without a request use none."""
        return sum(map(cpu_clock, self._parent.processes()))

    @contextmanager
    def _lost_if_it_fails(self) -> Iterator[None]:
        try:
            yield
        except (TimedOut, Crashed, TimeoutError) as outcome:
            self.end()
            raise self._parent.blames(TimedOut() if isinstance(outcome, TimeoutError) else outcome) from None
        except (ProtocolError, OSError):
            raise self._parent.blames(loss(self._end(hung_up=True), self._limits)) from None

    @property
    def queued(self) -> float:
        """Seconds that the last request waited for a processor."""
        return self._pace.queued

    def _wait(self, deadline: float, cpu_seconds: float, idle_seconds: float) -> None:
        """Until an answer begins to come."""
        began = looked = time.monotonic()
        while not select.select([self._connection], [], [], _MEMORY_SECONDS if self._limited else _WATCH_SECONDS)[0]:
            self._look_at_memory()
            now = time.monotonic()
            if self._limited and now - looked < _LIMITED_WATCH_SECONDS:
                continue
            looked = now
            self._look_at_threads(at_once=True)
            if not self._makes_way and now - began >= _WATCH_SECONDS:
                self._makes_way = True
                self._parent.make_way()
            deadline += self._pace.look()
            if self._pace.idle > idle_seconds:
                raise TimedOut(f"It waited {idle_seconds:g} seconds for something that did not come.")
            if time.monotonic() > deadline or self._pace.computed > cpu_seconds:
                raise TimedOut

    def _look_at_threads(self, *, at_once: bool) -> None:
        now = time.monotonic()
        if at_once or now - self._looked > _WATCH_SECONDS:
            self._looked = now
            if self._parent.has_too_many_threads():
                raise Crashed(self._limits.said("threads"))

    def _look_at_memory(self) -> None:
        if self._limited and memory(self._limited[0]) > self._limited[1]:
            raise Crashed(TOO_MUCH_MEMORY)

    def end(self) -> None:
        """Ends the worker; once, however often it is called."""
        self._end(hung_up=False)

    def _end(self, *, hung_up: bool) -> Ending:
        if self._ended:
            return Ending()
        self._ended = True
        self._connection.close()
        return self._parent.end(self._pid, hung_up=hung_up)


def _send(processes: Iterable[int], number: int) -> None:
    for pid in processes:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
