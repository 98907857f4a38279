"""The other end of a worker's connection, as a hostile worker would hold it."""

import contextlib
import queue
import socket
import threading
from collections.abc import Callable
from typing import Any

from autograder.core.packing import ProtocolError, Tensors
from autograder.course.settings import load
from autograder.sandbox.client import Crashed, TimedOut, Worker
from autograder.sandbox.limits import Limits
from autograder.sandbox.worker import protocol
from autograder.sandbox.worker.protocol import Ending

Answer = Callable[[dict[str, Any], Tensors], bytes]
_BUFFER = 64 << 10  # what a socket takes without anybody reading


class HostileParent:
    """Stands in for the fork server, and forks nothing: each worker is one end of a real connection.

    answer: the bytes to send for each request. last: nothing comes after the first answer.
    """

    isolation = "none"

    def __init__(self, answer: Answer, *, last: bool = False) -> None:
        self.limits: Limits = load().limits
        self._terms = answer, last
        self._open: dict[int, _HostileWorker] = {}

    def fork(self, device: str, wrong: Any = None, *, spare_memory: int = 0, imports: Any = ()) -> Worker:
        worker = _HostileWorker(self, len(self._open), *self._terms)
        self._open[len(self._open)] = worker
        return worker

    def processes(self) -> list[int]:
        return []

    def end(self, pid: int, *, hung_up: bool) -> Ending:
        self._open[pid].close()
        return Ending()

    def blames(self, outcome: TimedOut | Crashed) -> TimedOut | Crashed:
        return outcome


class _HostileWorker(Worker):
    def __init__(self, parent: Any, pid: int, answer: Answer, last: bool) -> None:
        near, self._far = socket.socketpair()
        super().__init__(parent, pid, near, parent.limits)
        self._answer, self._last = answer, last
        self._sender: threading.Thread | None = None
        self._requests: queue.Queue[tuple[dict[str, Any], Tensors]] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        """At once: a request that is larger than what a socket takes would wait for its reader."""
        with contextlib.suppress(OSError, ProtocolError):  # the trusted side has hung up
            while True:
                self._requests.put(protocol.receive(self._far))

    def _wait(self, deadline: float, cpu_seconds: float, idle_seconds: float) -> None:
        """Here the request is answered, just before the trusted side would wait for it."""
        request, tensors = self._requests.get()
        answer = self._answer(request, tensors)
        self._join()
        if len(answer) <= _BUFFER:
            self._send(answer)
        else:
            self._sender = threading.Thread(target=self._send, args=(answer,))
            self._sender.start()
        super()._wait(deadline, cpu_seconds, idle_seconds)

    def _send(self, answer: bytes) -> None:
        with contextlib.suppress(OSError):  # the trusted side may have seen enough
            self._far.sendall(answer)
            if self._last:
                self._far.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._join()
        with contextlib.suppress(OSError):
            self._far.shutdown(socket.SHUT_RDWR)
        self._far.close()

    def _join(self) -> None:
        if self._sender is not None:
            self._sender.join()
            self._sender = None


class NoNotebook:
    """In the place of a notebook: where no cell ran there is nothing to put back."""

    def begin_exercise(self, as_checked: str | None) -> None:
        """Begin an exercise."""
