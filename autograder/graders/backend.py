"""Backends execute the operations of proxies: a worker, a bench in this process, or a recording wrapper of one."""

import re
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

from ..core.bench import Operation
from ..core.cost import exceeded_limits
from ..core.observation import Missing, Observation, Raised, StudentFault
from ..core.operations import Assemble, Build, Call, KindOf, LoadParameters, MeasureCost, NamedParameters, ProbeDevice
from .decoding import decode_cost

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


_SIZES = re.compile(r"\s*Target sizes: |(?<=modified by an inplace operation): ")
"""Matches the start of a tensor's sizes in PyTorch's messages; the rest is dropped, because it differs by style."""
_TWO_SIZES = re.compile(r"(size of tensor a \()(\d+)(\) must match the size of tensor b \()(\d+)")
"""Matches two sizes in a message of PyTorch, whose order depends on style: `a + b` or `b + a`."""
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
                words = _SIZES.split(message.strip().partition("\n")[0])[0]
                words = _TWO_SIZES.sub(_smaller_first, words)
                return f"raised {type_name}: {words.replace(self.called, self.exercise) if self.called else words}"
        return str(fault)


def _smaller_first(sizes: re.Match[str]) -> str:
    smaller, larger = sorted([sizes[2], sizes[4]], key=int)
    return sizes[1] + smaller + sizes[3] + larger


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
