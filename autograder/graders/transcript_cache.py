"""Caches a hidden test's verdict by the transcript of the student's answers.

A hidden test chooses its next request by the answers so far, and its verdict follows from the answers only. In a class,
most answers to an exercise are right, and many right and wrong answers are equal to the last bit.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ..core.bench import Operation
from ..core.packing import Tensors
from ..sandbox.client import Response
from ..sandbox.worker import protocol
from .backend import Backend, separate

R = TypeVar("R")
T = TypeVar("T")

MAX_RESULTS = 16
"""Cached results of one hidden test; more would cost memory with the size of a class."""
MAX_BYTES, MAX_BYTES_OF_ALL = 2 << 20, 128 << 20
"""Limits for the answers behind cached results, which results may hold: of one result, and of all in a process."""


class Request(NamedTuple):
    """An operation as it is sent, without the number of the request."""

    header: dict[str, object]
    payload: bytes

    @classmethod
    def of(cls, operation: Operation[Any]) -> "Request":
        """Encode an operation."""
        tensors: Tensors = {}
        header = operation.packed(tensors)
        return cls(header, protocol.encode_tensors(tensors))


class RemoteBackend(Backend, Protocol):
    """A backend in another process."""

    def exchange(self, request: Request) -> Response:
        """Send a request and return the answer."""

    def read(self, operation: Operation[T], response: Response) -> T:
        """Return the operation's result by an answer."""


@dataclass(frozen=True)
class _Result(Generic[R]):
    value: R


class TranscriptCache(Generic[R]):
    """Results of hidden tests, by the test and by all answers that it received.

    Example, for a test that sends one request: the first student's answer is sent to the test, and its verdict is
    cached. If the next student's code gives the same answer to that request, the test does not run again.
    """

    def __init__(self) -> None:
        self._steps: dict[tuple[Hashable, bytes], Request | _Result[R]] = {}
        """The next request or the result, by the key of the test and a digest of the answers so far."""
        self._counts: dict[Hashable, int] = {}
        self._bytes = 0

    def find(
        self, key: Hashable, code: RemoteBackend, run: Callable[[Backend], R], *, is_cacheable: Callable[[R], bool]
    ) -> R:
        """Return the result of `run` with the code, or the cached result if the answers are the same.

        key: identifies the hidden test and all else that `run` depends on. is_cacheable: whether a result follows from
        the answers only.
        """
        replay, answers = _Replay(code), b""
        step = self._steps.get((key, answers))
        while isinstance(step, Request) and replay.send(step) and (digest := replay.responses[-1].digest):
            answers = _extend(answers, digest)
            step = self._steps.get((key, answers))
        if isinstance(step, _Result):
            return step.value
        result = run(replay)
        is_small = replay.size <= min(MAX_BYTES, MAX_BYTES_OF_ALL - self._bytes)
        has_room = is_small and self._counts.get(key, 0) < MAX_RESULTS
        if replay.transcript is not None and has_room and is_cacheable(result):
            self._bytes += replay.size
            self._store(key, replay.transcript, result)
        return result

    def _store(self, key: Hashable, transcript: "list[tuple[Request, bytes]]", result: R) -> None:
        self._counts[key] = self._counts.get(key, 0) + 1
        answers = b""
        for request, digest in transcript:
            if self._steps.setdefault((key, answers), request) != request:
                # The test chooses requests at random, so that nothing follows from the answers.
                self._steps = {place: step for place, step in self._steps.items() if place[0] != key}
                self._counts[key] = MAX_RESULTS
                return
            answers = _extend(answers, digest)
        self._steps.setdefault((key, answers), _Result(result))


def _extend(answers: bytes, digest: bytes) -> bytes:
    return sha256(answers + digest).digest()


class _Replay:
    """The code, asked again from the first request on. Requests that are answered already are not sent twice."""

    def __init__(self, code: RemoteBackend) -> None:
        self._code = code
        self._requests: list[Request] = []
        self._read = 0
        self._error: Exception | None = None
        self.size = 0
        """Bytes of the answers that were read."""
        self.responses: list[Response] = []
        self.transcript: list[tuple[Request, bytes]] | None = []
        """All requests with the digests of their answers; None once a request had no usual answer."""

    def send(self, request: Request) -> bool:
        """Send a request ahead of `ask`, and return whether an answer came."""
        try:
            self.responses.append(self._code.exchange(request))
        except Exception as error:  # raised by the `ask` that needs the answer
            self._error = error
            return False
        self._requests.append(request)
        return True

    def apart(self, spare_memory: int, cpu_seconds: int) -> Backend | None:
        """Return the code's separate backend. The verdict then depends on more than the answers and is not cached."""
        self.transcript = None
        return separate(self._code, spare_memory, cpu_seconds)

    def ask(self, operation: Operation[T]) -> T:
        """Return the operation's result."""
        request = Request.of(operation)
        if self._read < len(self._requests) and self._requests[self._read] != request:
            del self._requests[self._read :], self.responses[self._read :]  # a different request than the last time
        if self._read == len(self.responses) and (self._error or not self.send(request)):
            assert self._error is not None
            error, self._error, self.transcript = self._error, None, None
            raise error
        response = self.responses[self._read]
        self._read += 1
        self.size += sum(map(len, response.frame))
        if self.transcript is not None and response.digest is not None:
            self.transcript.append((request, response.digest))
        else:
            self.transcript = None
        return self._code.read(operation, response)
