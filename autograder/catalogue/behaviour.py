"""The behaviour of a known answer: its whole transcript, or its response to a single question.

Thousands of pairs of misconceptions are each asked one question. So a question runs neither the hidden test, which
would draw its cases, nor the solution.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ..core.bench import Operation
from ..core.operations import Assemble, Build, Call, ManualSeed, NamedParameters, ProbeDevice
from ..graders.backend import Event
from .candidate import Candidate
from .transcript import LazyTranscript, Signature, Trace, Transcript, signature

_TELLING = (Call, ProbeDevice, NamedParameters)


@dataclass(frozen=True)
class Question:
    """An event of a hidden test, counted from 0, or its whole trace. Questions about the same event are equal."""

    test: str
    event: int | None
    operations: tuple[Operation[Any], ...] = field(default=(), compare=False)
    """The operations that lead to the event. If it concerns an instance, they first make it, as number 0."""

    def answered(self, transcript: Transcript) -> Any:
        """Return the response of an answer with this transcript: the result of the event, or the trace."""
        trace = next(trace for trace in transcript if trace.test == self.test)
        if self.event is None:
            return trace
        return trace.events[self.event].shown if self.event < len(trace.events) else "nothing any more"


class Behaviour:
    """The behaviour of one known answer. Each question is asked once."""

    def __init__(self, traces: Callable[[], Iterator[Trace]], answered: Callable[[Question], Any]) -> None:
        """traces: runs the hidden tests on the answer. answered: gives its response to a question."""
        self.transcript = LazyTranscript(traces())
        self.asked: dict[Question, Signature] = {}
        self._answered = answered
        self._traces: dict[str, Trace] = {}

    def trace(self, test: str) -> Trace:
        """Return the trace of one hidden test, which is run by itself."""
        if test not in self._traces:
            self._traces[test] = self._answered(Question(test, None))
        return self._traces[test]

    def at(self, question: Question) -> Signature:
        """Return the signature of the response to a question."""
        if question not in self.asked:
            self.asked[question] = signature(self._answered(question))
        return self.asked[question]


@dataclass(frozen=True)
class Misconception:
    """An entry of the catalogue, and its behaviour."""

    entry: Candidate
    behaviour: Behaviour


def question_at(transcript: Transcript, number: int, event: int | None) -> Question:
    """Return the question that an event of a hidden test asks; about its whole trace if the event depends on others."""
    trace = transcript[number]
    operations = [one.operation for one in trace.events[: (event or 0) + 1] if one.operation is not None]
    if event is None or event >= len(operations):
        return Question(trace.test, None)  # of calls whose results are chance only notes are kept
    if any(isinstance(one, Call) and (one.held or one.part) for one in operations):
        return Question(trace.test, None)  # the response depends on earlier calls of the instance
    instance = _instance(operations[event])
    built = sum(_is_built(one) for before in transcript[:number] for one in before.events)
    needed: list[Operation[Any]] = []
    for operation, one in zip(operations[:event], trace.events, strict=False):
        made = built if _is_built(one) else None
        built += made is not None
        if isinstance(operation, ManualSeed) or (instance is not None and _makes(operation, made) == instance):
            needed.append(operation)
    if instance is not None and not any(isinstance(one, Build | Assemble) for one in needed):
        return Question(trace.test, None)  # made where only notes are kept, or by an earlier hidden test
    return Question(trace.test, event, tuple(map(_on_instance_0, [*needed, operations[event]])))


def last_telling_event(trace: Trace) -> int | None:
    """Return the number of the last event that can be asked by itself and has a telling result, if there is one."""
    if any(one.operation is None for one in trace.events):
        return None
    # The result of an error depends on what the hidden test makes of it.
    telling = [isinstance(one.operation, _TELLING) and not isinstance(one.shown, str) for one in trace.events]
    return max((number for number, tells in enumerate(telling) if tells), default=None)


def _on_instance_0(operation: Operation[Any]) -> Operation[Any]:
    if _instance(operation) is None:
        return operation
    return replace(operation, **{"target" if hasattr(operation, "target") else "instance": 0})


def _is_built(event: Event) -> bool:
    return isinstance(event.operation, Build | Assemble) and event.shown is None


def _instance(operation: Operation[Any] | None) -> int | None:
    """Return the number of the instance that an operation concerns."""
    place = getattr(operation, "target", getattr(operation, "instance", None))
    return place if isinstance(place, int) else None


def _makes(operation: Operation[Any], built: int | None) -> int | None:
    """Return the number of the instance that an operation builds, or prepares for calls."""
    return built if built is not None else None if isinstance(operation, _TELLING) else _instance(operation)
