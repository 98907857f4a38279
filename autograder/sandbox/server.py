"""The trusted side of the sandbox: starts the warm parent, has workers forked, talks to them, ends them."""

import shutil
import signal
import socket
import subprocess
from dataclasses import asdict
from types import TracebackType
from typing import Any

from .inside import protocol
from .launch import Launched, launch
from .limits import Limits

_START_SECONDS = 120


class TimedOut(Exception):
    """The student's code used up its CPU or wall time; the worker has been ended."""


class Crashed(Exception):
    """The worker is gone, or said what the protocol does not allow; it has been ended."""


class WarmParent:
    """The process that workers are forked from. Holds no test, no answer and no path to this repository."""

    def __init__(self, launched: Launched | None = None) -> None:
        launched = launched or launch()
        self._room = launched.room
        self._control = launched.control
        self._process = launched.process
        self._isolation: str | None = None

    @property
    def isolation(self) -> str:
        """What the operating system keeps workers from doing: a level as docs/design.md enumerates them."""
        if self._isolation is None:
            self._control.settimeout(_START_SECONDS)
            try:
                ready, _ = protocol.receive(self._control)
            except (protocol.ProtocolError, TimeoutError) as error:
                raise RuntimeError("The sandbox did not start; see the error above.") from error
            self._isolation = str(ready["isolation"])
        return self._isolation

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def fork(self, device: str, limits: Limits) -> "Worker":
        """A new worker for one submission."""
        assert self.isolation
        near_end, far_end = socket.socketpair()
        with far_end:
            protocol.send(self._control, {"fork": {"device": device, "limits": asdict(limits.of_worker())}})
            socket.send_fds(self._control, [b"+"], [far_end.fileno()])
            answer, _ = protocol.receive(self._control)
        return Worker(self, int(answer["pid"]), near_end, limits)

    def end(self, pid: int, *, hung_up: bool) -> int:
        """Ends one worker; returns the signal that had ended it already, or 0."""
        protocol.send(self._control, {"end": pid, "hung_up": hung_up})
        answer, _ = protocol.receive(self._control)
        return int(answer["ended_by"])

    def close(self) -> None:
        """Ends the warm parent and every worker."""
        self._control.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._room, ignore_errors=True)

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
        self._ended = False

    def request(
        self, header: dict[str, Any], tensors: protocol.Tensors | None = None, *, cpu_seconds: int
    ) -> tuple[dict[str, Any], protocol.Tensors]:
        """Asks one thing of the student's code.

        Raises TimedOut or Crashed; after either the worker is gone.
        """
        # One deadline for the whole answer: a byte now and then is no sign of life.
        self._connection.settimeout(cpu_seconds * self._limits.wall_factor)
        try:
            protocol.send(self._connection, {**header, "cpu_seconds": cpu_seconds}, tensors)
            return protocol.receive(self._connection)
        except TimeoutError:
            self.end()
            raise TimedOut from None
        except (protocol.ProtocolError, OSError):
            if self._end(hung_up=True) == signal.SIGXCPU:
                raise TimedOut from None
            raise Crashed from None

    def end(self) -> None:
        """Ends the worker; once, however often it is called."""
        self._end(hung_up=False)

    def _end(self, *, hung_up: bool) -> int:
        if self._ended:
            return 0
        self._ended = True
        self._connection.close()
        return self._parent.end(self._pid, hung_up=hung_up)
