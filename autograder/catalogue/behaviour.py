"""The behaviour of a known answer: its whole transcript, or its response to a single event of a hidden test.

Such an event is called a question here. The search for two misconceptions at once asks one question of each of
thousands of pairs. So a question runs only the operations it needs, not the whole hidden test.
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
    """A query for an answer's response to one event of a hidden test, or for its trace of the whole test.

    event: the event's number, from 0; None for the whole test. Questions about the same event are equal.
    """

    test: str
    event: int | None
    operations: tuple[Operation[Any], ...] = field(default=(), compare=False)
    """The operations up to the event, and that of the event. If they use an instance, they build it as number 0."""

    def answered(self, transcript: Transcript) -> Any:
        """Return the response that an answer's transcript contains: the event's result, or the test's trace."""
        trace = next(trace for trace in transcript if trace.test == self.test)
        if self.event is None:
            return trace
        return trace.events[self.event].shown if self.event < len(trace.events) else "nothing any more"


class Behaviour:
    """The behaviour of one known answer: its transcript, and its responses to questions, which are cached."""

    def __init__(self, traces: Callable[[], Iterator[Trace]], answered: Callable[[Question], Any]) -> None:
        """traces: runs the hidden tests on the answer. answered: returns the answer's response to a question."""
        self.transcript = LazyTranscript(traces())
        self.asked: dict[Question, Signature] = {}
        self._answered = answered
        self._traces: dict[str, Trace] = {}

    def trace(self, test: str) -> Trace:
        """Return the trace of one hidden test, without running the others."""
        if test not in self._traces:
            self._traces[test] = self._answered(Question(test, None))
        return self._traces[test]

    def at(self, question: Question) -> Signature:
        """Return the signature of the answer's response to a question."""
        if question not in self.asked:
            self.asked[question] = signature(self._answered(question))
        return self.asked[question]


@dataclass(frozen=True)
class Misconception:
    """A known misconception, and its behaviour in the hidden tests."""

    entry: Candidate
    behaviour: Behaviour


def question_at(transcript: Transcript, number: int, event: int | None) -> Question:
    """Return the question about an event; if the event cannot be repeated by itself, that about its whole trace.

    number: the trace's number in the transcript. event: the event's number in the trace; None for the whole trace.
    """
    trace = transcript[number]
    operations = [one.operation for one in trace.events[: (event or 0) + 1] if one.operation is not None]
    if event is None or event >= len(operations):
        return Question(trace.test, None)  # calls with random results are no events, only notes on them
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
        return Question(trace.test, None)  # built where events are only notes, or by an earlier hidden test
    return Question(trace.test, event, tuple(map(_on_instance_0, [*needed, operations[event]])))


def last_telling_event(trace: Trace) -> int | None:
    """Return the number of the last event that shows values and can be repeated by itself, or None."""
    if any(one.operation is None for one in trace.events):
        return None
    # After an error, the event's result depends on how the hidden test handles the error.
    telling = [isinstance(one.operation, _TELLING) and not isinstance(one.shown, str) for one in trace.events]
    return max((number for number, tells in enumerate(telling) if tells), default=None)


def _on_instance_0(operation: Operation[Any]) -> Operation[Any]:
    if _instance(operation) is None:
        return operation
    return replace(operation, **{"target" if hasattr(operation, "target") else "instance": 0})


def _is_built(event: Event) -> bool:
    return isinstance(event.operation, Build | Assemble) and event.shown is None


def _instance(operation: Operation[Any] | None) -> int | None:
    """Return the number of the instance that an operation uses; None if it uses none."""
    place = getattr(operation, "target", getattr(operation, "instance", None))
    return place if isinstance(place, int) else None


def _makes(operation: Operation[Any], built: int | None) -> int | None:
    """Return the number of the instance that an operation builds or prepares for calls; None if it does neither.

    built: the number, if the operation builds an instance.
    """
    return built if built is not None else None if isinstance(operation, _TELLING) else _instance(operation)
