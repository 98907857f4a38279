"""Backends execute the operations of proxies: a worker, a bench in this process, or a recording or caching wrapper."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

from ..core.bench import Operation
from ..core.cost import exceeded_limits
from ..core.observation import Missing, Observation, Raised, StudentFault, without_style
from ..core.operations import Assemble, Build, Call, KindOf, LoadParameters, MeasureCost, NamedParameters, ProbeDevice
from ..core.packing import Tensors
from ..sandbox.client import Response
from ..sandbox.worker import protocol
from .decoding import decode_cost

R = TypeVar("R")
T = TypeVar("T")


class Backend(Protocol):
    """Executes operations on a student's code, the solutions, or a misconception."""

    def ask(self, operation: Operation[T]) -> T:
        """Execute an operation and return its result. What it does and raises is described in its class."""


@runtime_checkable
class Separable(Protocol):
    """A backend that can run the same code in another worker."""

    def apart(self, spare_memory: int, cpu_seconds: int) -> Self | None:
        """Return a backend with the same code in another worker, on the CPU; None if there is no sandbox.

        It is for the exercise that is tested now. spare_memory: bytes that the code may use in addition to its imports;
        0 for the usual limit. cpu_seconds: limit for the CPU time of a call.
        """


def separate(backend: Backend, spare_memory: int, cpu_seconds: int) -> Backend | None:
    """Return a backend with the same code in another worker (see `Separable`); None if the backend has no workers."""
    return backend.apart(spare_memory, cpu_seconds) if isinstance(backend, Separable) else None


_REFUSALS = frozenset({"ValueError", "AssertionError"})
"""Names of the exceptions with which a class rejects arguments; each author words the message."""


@dataclass(frozen=True)
class Event:
    """One operation of a hidden test, and its result: a value, or a description of the error."""

    operation: Operation[Any] | None
    """The operation; None if the event is a hidden test's note on calls with random results."""
    shown: Any
    of_first_weights: bool = False
    """True if the result depends on an instance's initial parameters, and so on the order in which layers are built."""


@dataclass
class Recording:
    """A wrapper of a backend that records operations and their results as events."""

    backend: Backend
    called: str = ""
    """Name of a known answer's code, which is replaced by the exercise's name in recorded error messages."""
    exercise: str = ""
    events: list[Event] = field(default_factory=list)
    library_calls: set[str] = field(default_factory=set)
    _with_first_weights: set[int] = field(default_factory=set)
    """Numbers of the instances that still have their initial parameters."""

    def ask(self, operation: Operation[T]) -> T:
        """Execute an operation on the backend, record it (unless it is KindOf), and return the result."""
        is_recorded = not isinstance(operation, KindOf)
        try:
            result = self.backend.ask(operation)
        except StudentFault as fault:
            if is_recorded:
                self.events.append(Event(operation, self._describe(fault, operation)))
            raise
        if is_recorded:
            of_first_weights = getattr(operation, "target", None) in self._with_first_weights
            self.events.append(Event(operation, _behaviour(operation, result), of_first_weights))
        match operation:
            case Build():
                self._with_first_weights.add(result)  # type: ignore[arg-type]
            case LoadParameters(instance=instance):
                self._with_first_weights.discard(instance)
        if isinstance(result, Observation):
            self.library_calls.update(result.library_calls)
        return result

    def apart(self, spare_memory: int, cpu_seconds: int) -> Backend | None:
        """Return the same code in another worker (see `Separable`); operations there are not recorded."""
        return separate(self.backend, spare_memory, cpu_seconds)

    def _describe(self, fault: StudentFault, operation: Operation[Any]) -> str:
        """Return a description of an error without its line, but with the message if a library wrote it."""
        match fault:
            case Raised(kinds=kinds) if isinstance(operation, Build) and not _REFUSALS.isdisjoint(kinds):
                return "refused"
            case Missing(name=name):
                return f"missing {name}"
            case Raised(type_name=type_name, has_own_words=True):
                return f"raised {type_name}"
            case Raised(type_name=type_name, message=message):
                words = without_style(message)
                return f"raised {type_name}: {words.replace(self.called, self.exercise) if self.called else words}"
        return str(fault)


def _behaviour(operation: Operation[Any], result: Any) -> Any:
    """Return the part of a result that is recorded: that which is equal for answers that behave alike."""
    match operation:
        case Build() | Assemble():
            return None  # the instance's number depends on those built before
        case NamedParameters():
            return {name: tuple(parameter.shape) for name, parameter in result.items()}
        case ProbeDevice():
            return result[0]
        case MeasureCost(limits=limits):
            # Costs of right answers differ.
            return replace(result, cost=exceeded_limits(decode_cost(result.cost), limits))
        case Call(part=part) if part and type(operation) is Call:
            return replace(result, value=None, devices=[])  # a method is called for its effect on the instance
    return result


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

    A hidden test's next request and its verdict depend only on the answers so far. In a class, most students' code is
    right, and the answers of much right and wrong code are equal to the last bit.

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
