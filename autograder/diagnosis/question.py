"""A single question of a grader's, which can be asked of an answer without all that comes before it.

Of thousands of pairs of mistakes each is asked one question. So it is asked what is asked there and nothing else: no
grader draws its cases for it, and no solution is called beside.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from ..core.bench import Operation
from ..core.operations import Assemble, Build, Call, ManualSeed, NamedParameters, ProbeDevice
from ..student.recording import Event
from .fingerprint import Fingerprint, Trace


@dataclass(frozen=True)
class Question:
    """An event of a grader, counted from 0, or all that it sees; two are the same if they ask at the same place."""

    grader: str
    event: int | None
    operations: tuple[Operation[Any], ...] = field(default=(), compare=False)
    """What is to be asked for an event: if it is an instance that is called, first what makes it, as number 0."""

    def answered(self, fingerprint: Fingerprint) -> Any:
        """What an answer with this fingerprint showed there: of an event its `shown`, else the trace."""
        trace = next(trace for trace in fingerprint if trace.grader == self.grader)
        if self.event is None:
            return trace
        return trace.events[self.event].shown if self.event < len(trace.events) else "nothing any more"


def question(fingerprint: Fingerprint, grader: int, event: int | None) -> Question:
    """What was asked at a place of a fingerprint."""
    trace = fingerprint[grader]
    asked = [one.operation for one in trace.events[: (event or 0) + 1] if one.operation is not None]
    if event is None or event >= len(asked):
        return Question(trace.grader, None)  # of calls whose results are chance only notes are kept
    if any(isinstance(one, Call) and (one.held or one.part) for one in asked):
        return Question(trace.grader, None)  # what was done to an instance decides what it shows
    instance = _instance(asked[event])
    number = sum(_is_built(one) for before in fingerprint[:grader] for one in before.events)
    operations: list[Operation[Any]] = []
    for operation, one in zip(asked[:event], trace.events, strict=False):
        made = number if _is_built(one) else None
        number += made is not None
        if isinstance(operation, ManualSeed) or (instance is not None and _makes(operation, made) == instance):
            operations.append(operation)
    if instance is not None and not any(isinstance(one, Build | Assemble) for one in operations):
        return Question(trace.grader, None)  # made where only notes are kept, or by an earlier grader
    return Question(trace.grader, event, tuple(map(_of_the_first, [*operations, asked[event]])))


def telling(trace: Trace) -> int | None:
    """The last event of a grader's that can be asked for by itself and tells something; None where there is none."""
    if any(one.operation is None for one in trace.events):
        return None
    # What is shown of an error is what the grader makes of it.
    told = [isinstance(one.operation, _TELLING) and not isinstance(one.shown, str) for one in trace.events]
    return max((number for number, tells in enumerate(told) if tells), default=None)


_TELLING = (Call, ProbeDevice, NamedParameters)


def _of_the_first(operation: Operation[Any]) -> Operation[Any]:
    """The same, asked of the only instance that is there."""
    if _instance(operation) is None:
        return operation
    return replace(operation, **{"target" if hasattr(operation, "target") else "instance": 0})


def _is_built(event: Event) -> bool:
    return isinstance(event.operation, Build | Assemble) and event.shown is None


def _instance(operation: Operation[Any] | None) -> int | None:
    """The number of the instance that is asked."""
    place = getattr(operation, "target", getattr(operation, "instance", None))
    return place if isinstance(place, int) else None


def _makes(operation: Operation[Any], built: int | None) -> int | None:
    """The number of the instance that an operation builds, or makes ready to be called."""
    return built if built is not None else None if isinstance(operation, _TELLING) else _instance(operation)
