"""Transcripts of answers, compared whole, reduced to signatures, or event by event.

A transcript contains everything that the hidden tests observe of an answer: outputs, dtypes, gradients, changed
arguments, errors, parameters and device verdicts. Output values alone would not suffice, because 27% of plausible
mistakes change none. Two answers with equal transcripts cannot be distinguished.

A signature is a transcript reduced to a few numbers, so that thousands of answers can be stored and compared. Answers
with different signatures behave differently. If the signatures are alike, the transcripts may still differ.

The response to a single event of a hidden test is asked by a question. The search for two misconceptions at once asks
one question of each of thousands of pairs. So a question runs only the operations it needs, not the whole hidden test.
"""

import hashlib
from collections.abc import Callable, Collection, Hashable, Iterator
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

import torch

from .. import report
from ..core.bench import Operation
from ..core.judgement import Signature as MistakeSignature
from ..core.judgement import tensor_sums
from ..core.observation import Observation
from ..core.operations import Assemble, Build, Call, ManualSeed, NamedParameters, ProbeDevice
from ..core.packing import Opaque
from ..graders.backend import Event
from .candidate import Candidate

_TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}
COMPARED = ("changed", "devices", "value", "gradients", "parameter_gradients", "cost")
"""The fields of an observation that are compared. Library calls are left out: no misconception is defined by them."""
_NEAR = 1e-3
"""Tolerance, relative and absolute, for the sums in two signatures of equal transcripts."""
_SUMMED = (torch.float32, torch.float64)
_MOST_SUMMED = 10_000
"""Most elements of a tensor that is summed; tensors of right answers have less than a tenth of that."""
_MOST_SUMS = 64
_DIGITS = 6
Signature = tuple[Hashable, tuple[float, ...]]
"""The parts of a value that are compared exactly (dtypes, shapes, texts), and two sums over each tensor's elements."""


@dataclass(frozen=True)
class Trace:
    """The events of one hidden test, which are the operations and their results, and its outcome."""

    test: str
    outcome: str
    """`passed`, `failed` and so on. Not compared, because it may depend on a call that only the sandbox makes."""
    events: tuple[Event, ...]
    mistake: MistakeSignature = field(default_factory=list, compare=False)
    """The signature of what the test found wrong, see `core.judgement`; empty if it passed."""


Transcript = tuple[Trace, ...]
Place = tuple[int, int | None]
"""A position in a transcript: the number of a hidden test, and that of an event in it or None for the whole trace."""


def whole(trace: Trace) -> Trace:
    """Return the trace unchanged, to compare all of it."""
    return trace


def without_gradients(trace: Trace) -> Trace:
    """Return a copy of the trace that leaves out every call for which gradients are computed."""
    rest = (event for event in trace.events if getattr(event.operation, "cotangents", None) is None)
    return replace(trace, events=tuple(rest))


def without_initial_weights(trace: Trace) -> Trace:
    """Return the trace with only dtype and shape of each tensor that depends on an instance's initial weights.

    These weights depend on the order in which the layers are created, which may differ between right answers.
    """
    events = (
        replace(event, shown=_without_elements(event.shown)) if event.of_first_weights else event
        for event in trace.events
    )
    return replace(trace, events=tuple(events))


class LazyTranscript:
    """The transcript of a known answer, whose tests run only when needed: a comparison often ends at the first one."""

    def __init__(self, traces: Iterator[Trace]) -> None:
        """traces: runs one more hidden test for each trace it yields."""
        self._made: list[Trace] = []
        self._rest = traces

    def equals(
        self, other: Transcript, *, without: Collection[str] = (), compared: Callable[[Trace], Trace] = whole
    ) -> bool:
        """Return whether this transcript equals another: the two answers behave alike in all hidden tests.

        without: names of tests that are left out. compared: returns the part of a trace that is compared.
        """
        pairs = zip_longest(map(compared, self), map(compared, other))
        return all(are_equal_traces(one, two) for one, two in pairs if one is None or one.test not in without)

    def first_difference(self, other: Transcript) -> Place | None:
        """Return the first place at which two transcripts differ; None if they are equal."""
        return next(self.differences(other), None)

    def differences(self, other: Transcript) -> Iterator[Place]:
        """Yield, for each hidden test, the first place at which two transcripts differ."""
        for number, (one, two) in enumerate(zip(self, other, strict=False)):
            if not are_equal_traces(one, two):
                yield number, _first_other_event(one, two)

    def __iter__(self) -> Iterator[Trace]:
        yield from self._made
        for trace in self._rest:
            self._made.append(trace)
            yield trace


def _without_elements(shown: Any) -> Any:
    """Return a value in which each tensor is replaced by its dtype and shape."""
    if isinstance(shown, torch.Tensor):
        return str(shown.dtype), tuple(shown.shape)
    if isinstance(shown, Observation):
        return [_without_elements(getattr(shown, name)) for name in COMPARED]
    if isinstance(shown, list | tuple):
        return [_without_elements(one) for one in shown]
    if isinstance(shown, dict):
        return {key: _without_elements(one) for key, one in shown.items()}
    return shown


def _first_other_event(one: Trace, other: Trace) -> int | None:
    pairs = enumerate(zip(one.events, other.events, strict=False))
    return next((number for number, (a, b) in pairs if not _are_equal_events(a, b)), None)


def are_equal_traces(one: Trace | None, other: Trace | None) -> bool:
    """Return whether two traces of the same hidden test have equal events."""
    if one is None or other is None or one.test != other.test:
        return False
    return len(one.events) == len(other.events) and all(map(_are_equal_events, one.events, other.events))


def _are_equal_events(one: Event, other: Event) -> bool:
    return type(one.operation) is type(other.operation) and _are_equal(one.shown, other.shown)


def _are_equal(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        if one.dtype != other.dtype or one.shape != other.shape:
            return False
        tolerance = _TOLERANCE.get(one.dtype, 0.0)
        return torch.allclose(one.detach(), other.detach(), rtol=tolerance, atol=tolerance, equal_nan=True)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):  # list or tuple is a matter of style
        return len(one) == len(other) and all(map(_are_equal, one, other))
    if type(one) is not type(other):
        return False
    if isinstance(one, Observation):
        return all(_are_equal(getattr(one, name), getattr(other, name)) for name in COMPARED)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_are_equal(one[key], other[key]) for key in one)
    return bool(one == other)


def signature(value: Any) -> Signature:
    """Reduce a value, a trace or a transcript to the parts that are compared exactly and two sums for each tensor."""
    sums: list[float] = []
    return _exact(value, sums), tuple(sums)


def are_alike(one: Signature, other: Signature) -> bool:
    """Return whether two signatures are equal up to rounding, so that the answers may behave alike."""
    return one[0] == other[0] and all(abs(a - b) <= _NEAR * (1 + abs(a)) for a, b in zip(one[1], other[1], strict=True))


def short_signature(transcript: Transcript) -> report.Behaviour:
    """Return the signature of a transcript in the short form that a report contains.

    Equal transcripts have short signatures that are alike; nearly all different ones have not.
    """
    exact, sums = signature(list(transcript))
    digest = hashlib.sha256(_in_order(exact).encode(errors="surrogatepass")).hexdigest()
    return report.Behaviour(digest[:32], [round(number, _DIGITS) for number in sums[:_MOST_SUMS]])


def _exact(value: Any, sums: list[float]) -> Hashable:
    """Return the parts of a value that are compared exactly, and append two sums for each of its tensors to `sums`."""
    if isinstance(value, torch.Tensor):
        return _exact_in_tensor(value, sums)
    if isinstance(value, Observation):
        return tuple(_exact(getattr(value, name), sums) for name in COMPARED)
    if isinstance(value, Trace):
        return value.outcome, *(_exact(event.shown, sums) for event in value.events)
    if isinstance(value, list | tuple):
        return ("several", *(_exact(one, sums) for one in value))
    if isinstance(value, dict):
        return frozenset((repr(key), _exact(value[key], sums)) for key in sorted(value, key=repr))
    return type(value).__name__, value.name if isinstance(value, Opaque) else repr(value)


def _exact_in_tensor(tensor: torch.Tensor, sums: list[float]) -> Hashable:
    exact = (tensor.dtype, tuple(tensor.shape))
    if tensor.dtype not in _SUMMED or not 0 < tensor.numel() <= _MOST_SUMMED:
        return exact
    broken, its_sums = tensor_sums(tensor)
    sums += its_sums
    return (*exact, tuple(broken))


def _in_order(value: Hashable) -> str:
    """Return a value as text that is the same in every process, with the elements of sets sorted."""
    if isinstance(value, tuple):
        return f"({','.join(map(_in_order, value))})"
    if isinstance(value, frozenset):
        return f"{{{','.join(sorted(map(_in_order, value)))}}}"
    return repr(value)


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
