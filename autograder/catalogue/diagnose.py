"""Diagnose an answer: name the misconception that behaves exactly like it. A wrong name is worse than none."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from ..report import Diagnosis, Mistake
from .behaviour import Misconception
from .explained_tests import diagnose_by_tests
from .pairs import Pairs
from .transcript import Transcript, without_gradients, without_initial_weights


def diagnose(
    transcript: Transcript,
    misconceptions: Sequence[Misconception],
    pairs: Pairs,
    device_tests: Collection[str],
    advisory_tests: Collection[str] = (),
    *,
    is_exact: bool = False,
) -> Diagnosis | None:
    """Return the misconception with this transcript, or the one or two that explain the failed tests.

    pairs: searches for pairs, which can take seconds. is_exact: only a misconception with the whole transcript will do.
    device_tests: the hidden tests about devices. advisory_tests: those of weight 0.
    """
    failed = {trace.test for trace in transcript if trace.outcome == "failed"}
    # An answer that passes the test that detects a misconception has another one. So most need not run.
    possible = [one for one in misconceptions if one.entry.caught_by in failed]

    def alike(some: Iterable[Misconception], **how: Any) -> Iterator[Misconception]:
        return (one for one in some if one.behaviour.transcript.equals(transcript, **how))

    def first(some: Iterable[Misconception], **how: Any) -> Diagnosis | None:
        return next(map(_named, alike(some, **how)), None)

    if diagnosis := first(possible):
        return diagnosis
    if not is_exact and (pair := pairs.explaining(transcript)) is not None:
        one, other = pair
        return Diagnosis(one.entry.name, one.entry.sentence, Mistake(other.entry.name, other.entry.sentence))
    # A tensor left on the CPU often accompanies another misconception, and should not hide its name.
    elsewhere = [one for one in possible if one.entry.kind != "device" and one.entry.caught_by not in device_tests]
    if diagnosis := first(elsewhere, without=device_tests):
        return diagnosis
    # Rounding in half precision differs between answers with one misconception.
    weighted = [one for one in possible if one.entry.caught_by not in advisory_tests]
    if diagnosis := first(weighted, without=advisory_tests):
        return diagnosis
    # Gradients of wrong values depend on how these are computed: detaching a maximum changes only the gradients.
    of_values = [one for one in weighted if one.entry.kind != "gradient"]
    same = list(alike(of_values, without=advisory_tests, compared=without_gradients))
    if len({one.entry.sentence for one in same}) == 1:
        return _named(same[0])
    of_any_weights = [one for one in possible if one.entry.whatever_weights]
    if diagnosis := first(of_any_weights, without=advisory_tests, compared=without_initial_weights):
        return diagnosis
    return None if is_exact else diagnose_by_tests(transcript, possible, advisory_tests)


def _named(one: Misconception) -> Diagnosis:
    return Diagnosis(one.entry.name, one.entry.sentence)
