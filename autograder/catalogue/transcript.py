"""Transcripts of answers, compared whole or reduced to signatures.

A transcript contains everything that the hidden tests observe of an answer: outputs, dtypes, gradients, changed
arguments, errors, parameters and device verdicts. Output values alone would not suffice, because 27% of plausible
mistakes change none. Two answers with equal transcripts cannot be distinguished.

A signature is a transcript reduced to a few numbers, so that thousands of answers can be stored and compared. Answers
with different signatures behave differently. If the signatures are equal, the transcripts may still differ.
"""

import hashlib
from collections.abc import Callable, Collection, Hashable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import zip_longest
from typing import Any

import torch

from .. import report
from ..core.judgement import Signature as MistakeSignature
from ..core.judgement import tensor_sums
from ..core.observation import Observation
from ..core.packing import Opaque
from ..graders.backend import Event
from .candidate import Candidate

_TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}
COMPARED = ("changed", "devices", "value", "gradients", "parameter_gradients", "cost")
"""The fields of an observation that are compared. Library calls are left out: no misconception is defined by them."""
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


class Behaviour:
    """The behaviour of one known answer: its transcript, and its traces of single hidden tests, which are cached."""

    def __init__(self, traces: Iterator[Trace], trace_of: Callable[[str], Trace]) -> None:
        """traces: runs one more hidden test for each trace it yields. trace_of: runs the hidden test of a name."""
        self.transcript = LazyTranscript(traces)
        self.trace = cache(trace_of)
        """Returns the trace of one hidden test, without running the others."""


@dataclass(frozen=True)
class Misconception:
    """A known misconception, and its behaviour in the hidden tests."""

    entry: Candidate
    behaviour: Behaviour
