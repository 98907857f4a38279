"""Cache a hidden test's verdict by a worker's answers to the test's requests.

A hidden test's next request and its verdict depend only on the answers so far. In a class, most students' code is
right, and the answers of much right and wrong code are equal to the last bit.
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
"""Most cached results of one hidden test, so that memory does not grow with the size of a class."""
MAX_BYTES, MAX_BYTES_OF_ALL = 2 << 20, 128 << 20
"""Most bytes of the answers on which a cached result depends: for one result, and for all in a process."""


class Request(NamedTuple):
    """An operation as it is sent to a worker, without the number of the request."""

    header: dict[str, object]
    payload: bytes

    @classmethod
    def of(cls, operation: Operation[Any]) -> "Request":
        """Encode an operation."""
        tensors: Tensors = {}
        header = operation.packed(tensors)
        return cls(header, protocol.encode_tensors(tensors))


class RemoteBackend(Backend, Protocol):
    """A backend that executes operations in another process."""

    def exchange(self, request: Request) -> Response:
        """Send a request and return the undecoded answer."""

    def read(self, operation: Operation[T], response: Response) -> T:
        """Decode the answer to an operation and return the operation's result."""


@dataclass(frozen=True)
class _Result(Generic[R]):
    value: R


class TranscriptCache(Generic[R]):
    """Cache of hidden tests' results, by the test and by all answers that it received.

    Example, for a test with one request: the test runs on the first student's code, and its verdict is cached. The same
    request is sent to the next student's code. If the answer is the same, the test does not run again.
    """

    def __init__(self) -> None:
        self._steps: dict[tuple[Hashable, bytes], Request | _Result[R]] = {}
        """The test's next request, or its result, by the test's key and a digest of the answers so far."""
        self._counts: dict[Hashable, int] = {}
        self._bytes = 0

    def find(
        self, key: Hashable, code: RemoteBackend, run: Callable[[Backend], R], *, is_cacheable: Callable[[R], bool]
    ) -> R:
        """Run a hidden test on a student's code and return the result, or the cached one if all answers are the same.

        key: identifies the test and everything else that its result depends on. run: runs the test on a backend.
        is_cacheable: returns whether a result depends only on the answers.
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
    """A wrapper of a student's code that sends requests before the test runs, and then returns these answers to it."""

    def __init__(self, code: RemoteBackend) -> None:
        self._code = code
        self._requests: list[Request] = []
        self._read = 0
        self._error: Exception | None = None
        self.size = 0
        """Bytes of the answers that were read."""
        self.responses: list[Response] = []
        self.transcript: list[tuple[Request, bytes]] | None = []
        """All requests with the digests of their answers; None if the result must not be cached."""

    def send(self, request: Request) -> bool:
        """Send a request before the test makes it; return False if this raised an exception."""
        try:
            self.responses.append(self._code.exchange(request))
        except Exception as error:  # raised by the `ask` that needs the answer
            self._error = error
            return False
        self._requests.append(request)
        return True

    def apart(self, spare_memory: int, cpu_seconds: int) -> Backend | None:
        """Return the same code in another worker. The verdict then depends on more answers, and is not cached."""
        self.transcript = None
        return separate(self._code, spare_memory, cpu_seconds)

    def ask(self, operation: Operation[T]) -> T:
        """Execute an operation, or use the answer if it was sent before; return the result."""
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
