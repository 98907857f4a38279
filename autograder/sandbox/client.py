"""The trusted side of one worker: sends it one request at a time, watches its time, memory and threads, and ends it.

/proc shows the children, threads and memory of the workers' processes, and how long they waited for a processor. If
/proc cannot be read, all of these count as 0. The errors say why a worker ended during a request.
"""

import contextlib
import os
import re
import select
import signal
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from ..core.packing import ProtocolError, Tensors
from .limits import Limits
from .worker import protocol
from .worker.protocol import Ending

_NEARLY = 0.9
"""A worker that ends by a signal, and has used more than this share of its memory limit, is taken to be out of memory.

It may have used less than the limit, because the last block of memory that it requested may have been large.
"""
_NANOSECOND = 1e-9
_MEMORY = re.compile(r"^Rss(?:Anon|Shmem):\s+(\d+) kB", re.MULTILINE)
_THREADS = re.compile(r"^Threads:\s(\d+)", re.MULTILINE)
_POLL_SECONDS = 0.5
_LIMITED_POLL_SECONDS = 0.1
_MEMORY_POLL_SECONDS = 0.01
_MEMORY_LEEWAY_BYTES = 6 << 20
"""For memory that was mapped before the limit was set, but is used later. Right answers used less than 1 MB of it."""
TOO_MUCH_MEMORY = "The code used more memory than it may use."
_SENDING_SECONDS = 10  # for an answer that has begun
_IDLE_SECONDS = 10
_LOW_PRIORITY = 10
_CPU_LEEWAY_SECONDS = 1.0  # the worker's own limit takes effect first, and counts whole seconds


class TimedOut(Exception):
    """The student's code used up its CPU or wall time, so the worker was ended.

    `str()` is a sentence for the student with more detail, or empty.
    """


class Crashed(Exception):
    """The worker ended by itself, or was ended because it exceeded a limit or broke the protocol.

    `str()` is a sentence for the student that gives the reason; empty if the worker ended by itself.
    """


class SandboxLost(Exception):
    """The fork server ended, and its workers with it. A confined submission cannot cause that."""


def failure(ending: Ending, limits: Limits) -> TimedOut | Crashed:
    """Return the error for a worker that closed its connection, or whose answer could not be read."""
    if ending.ended_by == signal.SIGXCPU:
        return TimedOut()
    if ending.excess:
        return Crashed(limits.explain(ending.excess))
    if ending.ended_by == signal.SIGXFSZ:
        return Crashed(limits.explain("file"))
    if ending.ended_by and ending.most_memory > _NEARLY * limits.worker.memory_bytes:
        return Crashed(limits.explain("memory"))
    return Crashed("The answer of the student's process could not be read." if ending.was_running else "")


def children(pid: int) -> list[int]:
    """Return the ids of the processes that a process has started."""
    return [int(child) for child in _read(Path(f"/proc/{pid}/task/{pid}/children")).split()]


def threads(pid: int) -> int:
    """Return the number of a process's threads."""
    return sum(map(int, _THREADS.findall(_read(Path(f"/proc/{pid}/status")))))


def memory(pid: int) -> int:
    """Return the bytes of memory that a process holds and that belong to no file: private and shared memory.

    A process whose first thread has ended shows its memory only in the status of its other threads.
    """
    process = Path(f"/proc/{pid}")
    return _memory_in(process) or max(map(_memory_in, (process / "task").glob("*")), default=0)


def _memory_in(folder: Path) -> int:
    return sum(map(int, _MEMORY.findall(_read(folder / "status")))) * 1024


def cpu_clock(pid: int) -> float:
    """Return the CPU seconds of a process and all its threads, also ended ones: see clock_getcpuclockid(3)."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def ended_seconds(pid: int) -> float:
    """Return the CPU seconds that the ended children of a process used."""
    fields = _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return sum(map(int, fields[13:15])) / os.sysconf("SC_CLK_TCK")


def _read(file: Path) -> str:
    try:
        return file.read_text(errors="replace")  # the name of a process may be any bytes
    except OSError:
        return ""


def _thread_seconds(pid: int) -> dict[int, tuple[float, float]]:
    """Return, by thread id, the seconds that a thread ran and the seconds that it waited for a processor."""
    seconds = {}
    for file in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError, ValueError):
            ran, waited, _ = map(int, file.read_text().split())
            seconds[int(file.parent.name)] = (ran * _NANOSECOND, waited * _NANOSECOND)
    return seconds


class CpuWatch:
    """Measures for how long processes compute, wait for a processor, or wait for something else.

    A busy machine is not the student's fault, so time in the queue for a processor does not count. A worker that
    neither computes nor waits in that queue waits for something that may never come.
    """

    def __init__(self, processes: Callable[[], Iterable[int]]) -> None:
        """processes: returns the ids of the watched processes, as this process sees them."""
        self._processes = processes
        self._last: tuple[float, float, dict[int, tuple[float, float]]] | None = None
        """At the last poll: the time, the processes' CPU seconds, and the result of `_thread_seconds`."""
        self.computed = 0.0
        """CPU seconds of all threads since the first poll. A worker cannot change this, unlike its own limit."""
        self.idle = 0.0
        """Seconds in which the processes waited for something other than a processor."""
        self.queued = 0.0
        """Seconds in which the processes waited for a processor that other processes used."""

    def poll(self) -> float:
        """Add the time since the last poll to the three sums, and return its seconds in the queue for a processor."""
        pids = list(self._processes())
        threads = {thread: seconds for pid in pids for thread, seconds in _thread_seconds(pid).items()}
        now, cpu, last = time.monotonic(), sum(map(cpu_clock, pids)), self._last
        self._last = now, cpu, threads
        if last is None or not pids:
            return 0.0
        passed, computed = now - last[0], cpu - last[1]
        queued = min(_longest_wait(last[2], threads, computed), max(passed - computed, 0.0))
        self.computed += computed
        self.idle += max(passed - computed - queued, 0.0)
        self.queued += queued
        return queued


def _longest_wait(
    before: dict[int, tuple[float, float]], now: dict[int, tuple[float, float]], computed: float
) -> float:
    """Return the longest time, in seconds, that one thread waited for a processor used by other processes.

    before, now: results of `_thread_seconds`. computed: CPU seconds of all threads between the two.
    """
    waits = [0.0]
    for thread, (ran, waited) in now.items():
        ran_before, waited_before = before.get(thread, (0.0, 0.0))
        siblings = max(computed - (ran - ran_before), 0.0)
        waits.append(waited - waited_before - siblings)
    return max(waits)


@dataclass(frozen=True)
class Response:
    """A worker's answer, received but not yet decoded."""

    number: int
    """The number of the request."""
    frame: protocol.Frame
    cpu_seconds: float = 0.0
    """The CPU time of the answer; 0 if it was not measured."""

    @cached_property
    def digest(self) -> bytes | None:
        """A digest of the answer without the request's number; None if the answer is timed or its form is not usual."""
        number = b'{"number":%d,' % self.number
        if self.cpu_seconds or not self.frame.head.startswith(number):
            return None
        content = self.frame.head[len(number) :]
        return sha256(len(content).to_bytes(4) + content + self.frame.payload).digest()

    def read(self, form: type[Any]) -> tuple[Any, Tensors]:
        """Decode the answer and return its header and its tensors; raises ProtocolError.

        form: the type of the header. If a student's code may have written it, a Struct with a field `number`.
        """
        answer, payload = protocol.read_frame(self.frame, form)
        if (answer.pop("number", None) if form is dict else answer.number) != self.number:
            raise ProtocolError("an answer to another request")
        return answer, payload


class Parent(Protocol):
    """The part of the fork server that `Worker` uses."""

    def processes(self) -> Sequence[int]:
        """Return the ids of the processes in the sandbox."""

    def blames(self, outcome: TimedOut | Crashed) -> TimedOut | Crashed | SandboxLost:
        """Return the error to raise for a failed request: `outcome`, or SandboxLost if the fork server was lost."""

    def end(self, pid: int, *, hung_up: bool) -> Ending:
        """End a worker, if it still runs, and return what had ended it before."""


class Worker:
    """One forked worker and the connection to it."""

    def __init__(self, parent: Parent, pid: int, connection: socket.socket, limits: Limits) -> None:
        self._parent = parent
        self._pid = pid
        self._connection = connection
        self._limits = limits
        self._number = 0
        self._last_count = time.monotonic()
        self._watch = CpuWatch(parent.processes)
        self._has_low_priority = False
        self._has_ended = False
        self._limited: tuple[int, int] | None = None
        """The id of the process whose memory is watched, and its limit in bytes."""

    def limit_memory(self, pid: int, spare_bytes: int) -> None:
        """From now on, end the worker if a process holds more than `spare_bytes` in addition to its present memory.

        The kernel's limit on address space does not count memory that replaces a mapping. pid: the process's id outside
        the sandbox.
        """
        self._limited = pid, memory(pid) + spare_bytes + _MEMORY_LEEWAY_BYTES

    def request(self, header: Mapping[str, Any], *, cpu_seconds: int, **limits: Any) -> tuple[dict[str, Any], Tensors]:
        """Send one request without tensors, and return the answer's header and tensors: see `exchange`."""
        response = self.exchange(header, cpu_seconds=cpu_seconds, **limits)
        with self._ended_on_failure():
            return response.read(dict)

    def exchange(
        self,
        header: Mapping[str, Any],
        payload: bytes = b"",
        *,
        cpu_seconds: int,
        wall_seconds: float | None = None,
        idle_seconds: float = _IDLE_SECONDS,
        is_timed: bool = False,
    ) -> Response:
        """Send one request to the worker, and return the answer.

        cpu_seconds: limit for the request's CPU time. wall_seconds: limit for its wall time, if that is less than
        `wall_factor` allows. idle_seconds: limit for waiting for something other than a processor. Time in the queue
        for a processor counts for neither of the last two. is_timed: measure the CPU time of the answer.

        Raises TimedOut, Crashed or SandboxLost; after any of them the worker is gone.
        """
        self._number += 1
        self._watch = CpuWatch(self._parent.processes)
        seconds = float(cpu_seconds * self._limits.wall_factor)
        deadline = time.monotonic() + (seconds if wall_seconds is None else min(seconds, wall_seconds))
        self._connection.settimeout(_SENDING_SECONDS)
        with self._ended_on_failure(), self._others_stopped():
            before = self._cpu_seconds() if is_timed else 0.0
            head = protocol.encode_header({**header, "number": self._number, "cpu_seconds": cpu_seconds})
            protocol.send_frame(self._connection, protocol.Frame(head, payload))
            leeway = 0.0 if self._limited else _CPU_LEEWAY_SECONDS
            self._wait(deadline, cpu_seconds + leeway, idle_seconds)
            frame = protocol.receive_frame(self._connection, time.monotonic() + _SENDING_SECONDS)
            computed = self._cpu_seconds() - before if is_timed else 0.0
            self._check_memory()
            is_cell = header["operation"] == "cell" and not header.get("only_shows")
            if is_cell or time.monotonic() - self._last_count > _POLL_SECONDS:
                self._check_threads()
        return Response(self._number, frame, computed)

    @contextmanager
    def _others_stopped(self) -> Iterator[None]:
        """Stop the notebook's other processes if this one's memory is limited, so that none computes for it."""
        others = set(self._parent.processes()) - {self._limited[0]} if self._limited else set()
        _send_signal(others, signal.SIGSTOP)
        try:
            yield
        finally:
            _send_signal(others, signal.SIGCONT)

    def _cpu_seconds(self) -> float:
        """Return the CPU seconds of all workers so far. Workers without a request use none."""
        return sum(map(cpu_clock, self._parent.processes()))

    @contextmanager
    def _ended_on_failure(self) -> Iterator[None]:
        """End the worker if a request fails, and raise the error that says why."""
        try:
            yield
        except TimeoutError:
            self.end()
            raise self._parent.blames(TimedOut()) from None
        except (TimedOut, Crashed) as outcome:
            self.end()
            raise self._parent.blames(outcome) from None
        except (ProtocolError, OSError):
            raise self._parent.blames(failure(self._end(hung_up=True), self._limits)) from None

    @property
    def queued(self) -> float:
        """Seconds that the last request waited for a processor."""
        return self._watch.queued

    def _wait(self, deadline: float, cpu_seconds: float, idle_seconds: float) -> None:
        """Wait until an answer begins to arrive; raises TimedOut or Crashed if a limit is exceeded before.

        deadline: by `time.monotonic()`. cpu_seconds, idle_seconds: limits.
        """
        began = last_poll = time.monotonic()
        interval = _MEMORY_POLL_SECONDS if self._limited else _POLL_SECONDS
        while not select.select([self._connection], [], [], interval)[0]:
            self._check_memory()
            now = time.monotonic()
            if self._limited and now - last_poll < _LIMITED_POLL_SECONDS:
                continue
            last_poll = now
            self._check_threads()
            if not self._has_low_priority and now - began >= _POLL_SECONDS:
                self._has_low_priority = True
                self._lower_priority()
            deadline += self._watch.poll()
            if self._watch.idle > idle_seconds:
                raise TimedOut(f"The code waited {idle_seconds:g} seconds without computing anything.")
            if time.monotonic() > deadline or self._watch.computed > cpu_seconds:
                raise TimedOut

    def _lower_priority(self) -> None:
        """Let quick submissions go first from now on: this one takes long, and may never finish.

        It loses no points by that, because time in the queue for a processor does not count.
        """
        for pid in self._parent.processes():
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, pid, _LOW_PRIORITY)

    def _check_threads(self) -> None:
        self._last_count = time.monotonic()
        if sum(map(threads, self._parent.processes())) > self._limits.threads:
            raise Crashed(self._limits.explain("threads"))

    def _check_memory(self) -> None:
        if self._limited and memory(self._limited[0]) > self._limited[1]:
            raise Crashed(TOO_MUCH_MEMORY)

    def end(self) -> None:
        """End the worker, unless it has ended already."""
        self._end(hung_up=False)

    def _end(self, *, hung_up: bool) -> Ending:
        if self._has_ended:
            return Ending()
        self._has_ended = True
        self._connection.close()
        return self._parent.end(self._pid, hung_up=hung_up)


def _send_signal(processes: Iterable[int], number: int) -> None:
    for pid in processes:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
