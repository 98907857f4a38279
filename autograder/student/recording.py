"""A backend that remembers everything that the code behind it showed."""

import re
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from ..compare.costs import exceeded
from ..core.bench import Operation
from ..core.faults import Missing, Raised, StudentFault
from ..core.observation import Observation
from ..core.operations import Assemble, Build, Call, KindOf, LoadParameters, MeasureCost, NamedParameters, ProbeDevice
from . import counted
from .backend import Backend, Separable

T = TypeVar("T")

_WITHOUT_SIZES = re.compile(r"\s*Target sizes: |(?<=modified by an inplace operation): ")
"""What follows in PyTorch's words tells of all sizes of a tensor, which are one answer's own."""


_SIZES_THAT_MEET = re.compile(r"(size of tensor a \()(\d+)(\) must match the size of tensor b \()(\d+)")
"""Which of them comes first is style: a + b or b + a, in place or not."""


_REFUSALS = frozenset({"ValueError", "AssertionError"})
"""What a class does not want to be built with, it says by one of these, in words that are its author's own."""


@dataclass(frozen=True)
class Event:
    """What was asked, and what came of it: a value, or the kind of fault."""

    operation: Operation[Any] | None
    """None for what a grader noted of calls whose results are chance."""
    shown: Any
    of_first_weights: bool = False
    """It was asked of an instance with the parameters that it was built with, which the order of its layers decides."""


@dataclass
class Recording:
    """Stands before another backend and keeps the events."""

    backend: Backend
    called: str = ""
    """What an entry of the catalogue is called; in the words of its errors its exercise stands for it."""
    exercise: str = ""
    events: list[Event] = field(default_factory=list)
    library_calls: set[str] = field(default_factory=set)
    _with_first_weights: set[int] = field(default_factory=set)
    """The instances, by number."""

    def ask(self, operation: Operation[T]) -> T:
        """What the backend gives; a question what kind a name is of is no event."""
        try:
            given = self.backend.ask(operation)
        except StudentFault as fault:
            if not isinstance(operation, KindOf):
                self.events.append(Event(operation, self._in_words(fault, operation)))
            raise
        if not isinstance(operation, KindOf):
            self.events.append(Event(operation, _shown(operation, given), self._is_of_first_weights(operation)))
        match operation:
            case Build():
                self._with_first_weights.add(given)  # type: ignore[arg-type]
            case LoadParameters(instance=instance):
                self._with_first_weights.discard(instance)
        if isinstance(given, Observation):
            self.library_calls.update(given.library_calls)
        return given

    def apart(self, spare_memory: int, cpu_seconds: int) -> Backend | None:
        """Return the backend's separate backend, whose requests are not recorded as events."""
        return self.backend.apart(spare_memory, cpu_seconds) if isinstance(self.backend, Separable) else None

    def _is_of_first_weights(self, operation: Operation[Any]) -> bool:
        return getattr(operation, "target", None) in self._with_first_weights

    def _in_words(self, fault: StudentFault, operation: Operation[Any]) -> str:
        """A fault without its place; with its words, for one kind of error comes of many mistakes."""
        match fault:
            case Raised(kinds=kinds) if isinstance(operation, Build) and not _REFUSALS.isdisjoint(kinds):
                return "refused"
            case Missing(name=name):
                return f"missing {name}"
            case Raised(type_name=type_name, message=message):
                words = _WITHOUT_SIZES.split(message.strip().partition("\n")[0])[0]
                words = _SIZES_THAT_MEET.sub(_the_smaller_first, words)
                return f"raised {type_name}: {words.replace(self.called, self.exercise) if self.called else words}"
        return str(fault)


def _the_smaller_first(sizes: re.Match[str]) -> str:
    smaller, larger = sorted([sizes[2], sizes[4]], key=int)
    return sizes[1] + smaller + sizes[3] + larger


def _shown(operation: Operation[Any], given: Any) -> Any:
    """What an answer shows of the code, and nothing that is chance."""
    match operation:
        case Build() | Assemble():
            return None  # its number depends on what was built before; that it could be built is what shows
        case NamedParameters():
            return {name: tuple(parameter.shape) for name, parameter in given.items()}
        case ProbeDevice():
            return given[0]
        case MeasureCost(limits=limits):
            # Two right answers cost not the same.
            return replace(given, cost=exceeded(counted.read(given.cost), limits))
        case Call(part=part) if part and type(operation) is Call:
            return replace(given, value=None, devices=[])  # a method is called for what it does to the instance
    return given
