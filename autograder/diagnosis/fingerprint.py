"""The fingerprint of an answer: everything it showed on the graders' inputs.

27% of plausible mistakes show in no output value, so outputs, dtypes, gradients, changed arguments, faults,
parameters and device verdicts all belong to it. Two answers with equal fingerprints cannot be told apart.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import torch

from ..compare.values import close
from ..core.observation import Observation
from ..student.recording import Event

TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}


@dataclass(frozen=True)
class Trace:
    """What one grader saw: whether it was satisfied, and each event on the way."""

    grader: str
    outcome: str
    events: tuple[Event, ...]


Fingerprint = tuple[Trace, ...]


class Known:
    """A known misconception's fingerprint, taken no further than it is looked at: mostly the first grader tells."""

    def __init__(self, traces: Iterator[Trace]) -> None:
        """traces: what the graders see in it, each run when its trace is asked for."""
        self._taken: list[Trace] = []
        self._rest = traces

    def is_that_of(self, other: Fingerprint, *, but_for: Collection[str] = ()) -> bool:
        """Whether the two answers behave alike wherever the graders looked, but for the graders of these names."""
        pairs = zip_longest(self, other)
        return all(_same_trace(one, two) for one, two in pairs if one is None or one.grader not in but_for)

    def is_nearly_that_of(self, other: Fingerprint, *, but_for: Collection[str] = ()) -> bool:
        """Whether they behave alike but for what an instance computes with the weights that it was built with.

        What these are follows from the order in which its layers are made, and of orders there are many.
        """
        pairs = zip_longest(map(_without_first_results, self), map(_without_first_results, other))
        return all(_same_trace(one, two) for one, two in pairs if one is None or one.grader not in but_for)

    def is_that_of_but_for_gradients(self, other: Fingerprint, *, but_for: Collection[str] = ()) -> bool:
        """Whether they behave alike but for gradients, those of wrong numbers too: two ways to them differ there."""
        pairs = zip_longest(map(_without_gradients, self), map(_without_gradients, other))
        return all(_same_trace(one, two) for one, two in pairs if one is None or one.grader not in but_for)

    def first_difference(self, other: Fingerprint) -> tuple[int, int | None] | None:
        """Where the two differ before all else: a grader's number, and an event's, None for all that it sees."""
        return next(self.differences(other), None)

    def differences(self, other: Fingerprint) -> Iterator[tuple[int, int | None]]:
        """Where the two differ first in each grader."""
        for number, (one, two) in enumerate(zip(self, other, strict=False)):
            if not _same_trace(one, two):
                yield number, _first_other_event(one, two)

    def __iter__(self) -> Iterator[Trace]:
        yield from self._taken
        for trace in self._rest:
            self._taken.append(trace)
            yield trace


def _without_gradients(trace: Trace) -> Trace:
    rest = tuple(event for event in trace.events if getattr(event.operation, "cotangents", None) is None)
    return trace if len(rest) == len(trace.events) else Trace(trace.grader, "", rest)


def _without_first_results(trace: Trace) -> Trace:
    events = (
        replace(event, shown=_without_numbers(event.shown)) if event.of_first_weights else event
        for event in trace.events
    )
    return replace(trace, events=tuple(events))


def _without_numbers(shown: Any) -> Any:
    """What is shown with each tensor's dtype and shape in its place."""
    if isinstance(shown, torch.Tensor):
        return str(shown.dtype), tuple(shown.shape)
    if isinstance(shown, Observation):
        return [_without_numbers(getattr(shown, name)) for name in SHOWN]
    if isinstance(shown, list | tuple):
        return [_without_numbers(one) for one in shown]
    if isinstance(shown, dict):
        return {key: _without_numbers(one) for key, one in shown.items()}
    return shown


def _first_other_event(one: Trace, two: Trace) -> int | None:
    for number, (a, b) in enumerate(zip(one.events, two.events, strict=False)):
        if not _same_events((a,), (b,)):
            return number
    return None


def _same_trace(one: Trace | None, other: Trace | None) -> bool:
    if one is None or other is None or one.grader != other.grader:
        return False
    return one.outcome == other.outcome and _same_events(one.events, other.events)


def _same_events(one: tuple[Event, ...], other: tuple[Event, ...]) -> bool:
    pairs = zip(one, other, strict=False)
    return len(one) == len(other) and all(
        type(a.operation) is type(b.operation) and _same_value(a.shown, b.shown) for a, b in pairs
    )


def _same_value(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return _same_tensor(one, other)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):  # two right answers differ in which it is
        return len(one) == len(other) and all(map(_same_value, one, other))
    if type(one) is not type(other):
        return False
    if isinstance(one, Observation):
        return all(_same_value(getattr(one, name), getattr(other, name)) for name in SHOWN)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same_value(one[key], other[key]) for key in one)
    return bool(one == other)


SHOWN = ("changed", "devices", "value", "gradients", "parameter_gradients", "cost")
"""Of an observation; what libraries ran decides whether it may, not which mistake it is."""


def _same_tensor(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return bool(close(one.detach(), other.detach(), TOLERANCE.get(one.dtype, 0.0)).all())
