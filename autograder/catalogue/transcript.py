"""Compare transcripts, whole or reduced to signatures: everything that an answer showed to the hidden tests.

A transcript has outputs, dtypes, gradients, changed arguments, errors, parameters and device verdicts, because 27% of
plausible mistakes change no output value. Two answers with equal transcripts cannot be distinguished.

A signature reduces a transcript to a few numbers, so that thousands of answers can be stored and compared. Answers with
different signatures behave differently. If the signatures are alike, the transcripts may still differ.
"""

import hashlib
from collections.abc import Callable, Collection, Hashable, Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import torch

from ..core.comparison import close_elements
from ..core.observation import Observation
from ..core.packing import Opaque
from ..graders.backend import Event
from ..report import Behaviour

_TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}
COMPARED = ("changed", "devices", "value", "gradients", "parameter_gradients", "cost")
"""The fields of an observation that are compared. Library calls decide on points, and not on the misconception."""
_NEAR = 1e-3
"""Relative difference of two sums over elements that a transcript takes for equal, in float32 and float64."""
_SUMMED = (torch.float32, torch.float64)
_MOST_SUMMED = 10_000
"""Elements of the largest tensor that is summed: no right answer's has a tenth of them."""
_GOLDEN_ANGLE = 2.399963
"""The cosines of its multiples never repeat."""
_MOST_SUMS = 64
_DIGITS = 6
Signature = tuple[Hashable, tuple[float, ...]]
"""Everything exact, and two sums for each tensor."""


@dataclass(frozen=True)
class Trace:
    """The outcome of one hidden test, and the events on the way to it."""

    test: str
    outcome: str
    """Not compared: a call in little memory, which only a sandbox makes, decides on it and is no event."""
    events: tuple[Event, ...]


Transcript = tuple[Trace, ...]
Place = tuple[int, int | None]
"""The number of a hidden test, and that of an event; None for the whole trace."""


def whole(trace: Trace) -> Trace:
    """Return the trace as it is."""
    return trace


def without_gradients(trace: Trace) -> Trace:
    """Return the trace without calls that ask for gradients."""
    rest = (event for event in trace.events if getattr(event.operation, "cotangents", None) is None)
    return replace(trace, events=tuple(rest))


def without_initial_weights(trace: Trace) -> Trace:
    """Return the trace without the elements that instances compute with their initial weights.

    These weights depend on the order in which the layers are made, and there are many orders.
    """
    events = (
        replace(event, shown=_without_elements(event.shown)) if event.of_first_weights else event
        for event in trace.events
    )
    return replace(trace, events=tuple(events))


class LazyTranscript:
    """The transcript of a known answer, made as far as it is compared: the first hidden test mostly suffices."""

    def __init__(self, traces: Iterator[Trace]) -> None:
        """traces: runs a hidden test for each trace."""
        self._made: list[Trace] = []
        self._rest = traces

    def equals(
        self, other: Transcript, *, without: Collection[str] = (), compared: Callable[[Trace], Trace] = whole
    ) -> bool:
        """Return whether two answers behave alike in all hidden tests.

        without: the names of tests that are left out. compared: the part of each trace that is compared.
        """
        pairs = zip_longest(map(compared, self), map(compared, other))
        return all(are_equal_traces(one, two) for one, two in pairs if one is None or one.test not in without)

    def first_difference(self, other: Transcript) -> Place | None:
        """Return the first place at which two transcripts differ; None if they are equal."""
        return next(self.differences(other), None)

    def differences(self, other: Transcript) -> Iterator[Place]:
        """Yield the first place of each hidden test at which two transcripts differ."""
        for number, (one, two) in enumerate(zip(self, other, strict=False)):
            if not are_equal_traces(one, two):
                yield number, _first_other_event(one, two)

    def __iter__(self) -> Iterator[Trace]:
        yield from self._made
        for trace in self._rest:
            self._made.append(trace)
            yield trace


def _without_elements(shown: Any) -> Any:
    """Return a value with the dtype and shape of each tensor instead of the tensor."""
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
    """Return whether two answers behave alike in a hidden test."""
    if one is None or other is None or one.test != other.test:
        return False
    return len(one.events) == len(other.events) and all(map(_are_equal_events, one.events, other.events))


def _are_equal_events(one: Event, other: Event) -> bool:
    return type(one.operation) is type(other.operation) and _are_equal(one.shown, other.shown)


def _are_equal(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        if one.dtype != other.dtype or one.shape != other.shape:
            return False
        return bool(close_elements(one.detach(), other.detach(), _TOLERANCE.get(one.dtype, 0.0)).all())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):  # which of the two it is, is style
        return len(one) == len(other) and all(map(_are_equal, one, other))
    if type(one) is not type(other):
        return False
    if isinstance(one, Observation):
        return all(_are_equal(getattr(one, name), getattr(other, name)) for name in COMPARED)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_are_equal(one[key], other[key]) for key in one)
    return bool(one == other)


def signature(value: Any) -> Signature:
    """Return the signature of a value, a trace or a transcript."""
    sums: list[float] = []
    return _exact(value, sums), tuple(sums)


def are_alike(one: Signature, other: Signature) -> bool:
    """Return whether the answers with these signatures may behave alike."""
    return one[0] == other[0] and all(abs(a - b) <= _NEAR * (1 + abs(a)) for a, b in zip(one[1], other[1], strict=True))


def short_signature(transcript: Transcript) -> Behaviour:
    """Return the signature of a transcript as it is stored in a report, for other processes.

    Equal transcripts have short signatures that are alike; nearly all others have not.
    """
    exact, sums = signature(list(transcript))
    digest = hashlib.sha256(_in_order(exact).encode(errors="surrogatepass")).hexdigest()
    return Behaviour(digest[:32], [round(number, _DIGITS) for number in sums[:_MOST_SUMS]])


def _exact(value: Any, sums: list[float]) -> Hashable:
    """Return what is exact in a value, and append the sums over its tensors to `sums`."""
    if isinstance(value, torch.Tensor):
        return _exact_in_tensor(value.detach(), sums)
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
    flat = tensor.flatten().double()
    odd = (int(flat.isnan().sum()), int(flat.isposinf().sum()), int(flat.isneginf().sum()))
    flat = flat.nan_to_num(0.0, 0.0, 0.0)
    flat = flat.sign() * flat.abs().log1p()  # next to one huge element the others still count
    positions = torch.arange(1, flat.numel() + 1, dtype=torch.float64)
    sums += (float(flat.abs().sum()), float(flat @ torch.cos(positions * _GOLDEN_ANGLE)))
    return (*exact, odd)


def _in_order(value: Hashable) -> str:
    """Return the value as text that is the same in every process, which the order of a set is not."""
    if isinstance(value, tuple):
        return f"({','.join(map(_in_order, value))})"
    if isinstance(value, frozenset):
        return f"{{{','.join(sorted(map(_in_order, value)))}}}"
    return repr(value)
