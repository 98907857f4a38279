"""Backends carry out the operations of proxies: a worker, a bench in this process, or a recording in front of one."""

import re
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

from ..core.bench import Operation
from ..core.cost import exceeded_limits
from ..core.faults import Missing, Raised, StudentFault
from ..core.observation import Observation
from ..core.operations import Assemble, Build, Call, KindOf, LoadParameters, MeasureCost, NamedParameters, ProbeDevice
from .decoding import decode_cost

T = TypeVar("T")


class Backend(Protocol):
    """Carries out operations on a student's code, the solutions, or a misconception."""

    def ask(self, operation: Operation[T]) -> T:
        """Return the operation's result. Each operation's docstring says what it does and raises."""


@runtime_checkable
class Separable(Protocol):
    """A backend that can run the same code in another worker."""

    def apart(self, spare_memory: int, cpu_seconds: int) -> Self | None:
        """Return the same code in a worker of its own on the CPU, for the exercise that is tested now.

        spare_memory: the bytes that it may use beyond what its imports take; 0 for the usual limit.
        cpu_seconds: CPU time of a call with this spare memory. None if there is no sandbox.
        """


def separate(backend: Backend, spare_memory: int, cpu_seconds: int) -> Backend | None:
    """Return the backend's code in a worker of its own: see `Separable`; None if the backend has no workers."""
    return backend.apart(spare_memory, cpu_seconds) if isinstance(backend, Separable) else None


_SIZES = re.compile(r"\s*Target sizes: |(?<=modified by an inplace operation): ")
"""The beginning of the part of PyTorch's messages that lists all sizes of a tensor, which differ between answers."""
_TWO_SIZES = re.compile(r"(size of tensor a \()(\d+)(\) must match the size of tensor b \()(\d+)")
"""Two sizes, whose order depends on style: a + b or b + a, in place or not."""
_REFUSALS = frozenset({"ValueError", "AssertionError"})
"""Errors by which a class refuses arguments, with a message in its author's own words."""


@dataclass(frozen=True)
class Event:
    """An operation and its result: a value, or the kind of fault."""

    operation: Operation[Any] | None
    """None for a note of a hidden test about calls with random results."""
    shown: Any
    of_first_weights: bool = False
    """True for an instance with its initial parameters, which depend on the order in which its layers are built."""


@dataclass
class Recording:
    """Records the operations on another backend, and their results, as events."""

    backend: Backend
    called: str = ""
    """The name of a catalogue entry; its error messages are recorded with the exercise's name instead."""
    exercise: str = ""
    events: list[Event] = field(default_factory=list)
    library_calls: set[str] = field(default_factory=set)
    _with_first_weights: set[int] = field(default_factory=set)
    """The numbers of the instances."""

    def ask(self, operation: Operation[T]) -> T:
        """Return the backend's result. A query of a name's kind is not recorded."""
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
        """Return the backend's separate backend, whose operations are not recorded."""
        return separate(self.backend, spare_memory, cpu_seconds)

    def _describe(self, fault: StudentFault, operation: Operation[Any]) -> str:
        """Return a fault without its line, but with a library's message: many mistakes raise the same kind of error."""
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
    """Return the part of a result that shows the code's behaviour, and nothing random."""
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
