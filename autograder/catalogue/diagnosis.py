"""Diagnose a wrong answer: name the misconception that behaves exactly like it. A wrong name is worse than none.

If no misconception has the answer's transcript, a misconception may still explain a part of the failed tests: those
that it fails, too, and in which the answer behaves exactly like it. The answer may have another mistake, which changes
the other tests. Example: an answer divides by d_k and has a mistake in dropout. Of the eight tests that
`divided_by_d_k` fails, seven have the same numbers for this answer; the eighth is about dropout.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..core.judgement import Explanation, explain, explained_by, has_numbers, is_telling, match
from ..report import Diagnosis, Mistake
from .transcript import (
    Misconception,
    Trace,
    Transcript,
    are_equal_traces,
    whole,
    without_gradients,
    without_initial_weights,
)


def diagnose_by_tests(
    transcript: Transcript, misconceptions: Sequence[Misconception], advisory_tests: Collection[str]
) -> Diagnosis | None:
    """Return one or two misconceptions that each explain a part of the tests that an answer fails.

    The diagnosis is partial if other tests fail, too. None if `core.judgement` finds none certain enough.
    advisory_tests: those of weight 0.
    """
    shown = {trace.test: trace for trace in transcript if trace.test not in advisory_tests}
    failed = {trace.test for trace in shown.values() if trace.outcome == "failed"}
    found = explain(list(_explanations(shown, misconceptions, _behave_alike)), failed)
    found = found or explain(list(_explanations(shown, misconceptions, _fail_alike)), failed)
    if not found:
        return None
    first, *second = (one.misconception.entry for one in found)
    beside = Mistake(second[0].name, second[0].sentence) if second else None
    return Diagnosis(first.name, first.sentence, beside, explained_by(found) != failed)


def _explanations(
    shown: Mapping[str, Trace],
    misconceptions: Sequence[Misconception],
    are_the_same: Callable[[Misconception, Trace, Trace], bool],
) -> Iterator[Explanation[Misconception]]:
    """Yield the misconceptions that explain failed tests.

    are_the_same: returns whether the traces of an answer and of a misconception count as the same.
    """
    for one in misconceptions:
        first = next(iter(one.behaviour.transcript))  # it has run already, and rules out most misconceptions
        if first.outcome == "failed" and first.test in shown and not are_the_same(one, shown[first.test], first):
            continue
        test = one.entry.caught_by or ""
        if test not in shown or not are_the_same(one, shown[test], one.behaviour.trace(test)):
            continue  # to run one test for each misconception is quick
        wrong = [trace for trace in one.behaviour.transcript if trace.outcome == "failed" and trace.test in shown]
        alike = {trace.test for trace in wrong if are_the_same(one, shown[trace.test], trace)}
        others = frozenset(trace.test for trace in wrong) - alike
        numbers = any(has_numbers(shown[test].mistake) for test in alike)
        yield Explanation(one, one.entry.sentence, frozenset(alike), others, numbers)


def _fail_alike(one: Misconception, answer: Trace, misconception: Trace) -> bool:
    """Return whether a test found the same wrong in both: the rule of the student check."""
    return match(answer.mistake, misconception.mistake) and is_telling(answer.mistake)


def _behave_alike(one: Misconception, answer: Trace, misconception: Trace) -> bool:
    """Return whether an answer has the same trace of a test as a misconception.

    Gradients are compared only for misconceptions about gradients: they depend on how a wrong value is computed.
    """
    if answer.outcome != misconception.outcome:
        return False
    compared = whole if one.entry.kind == "gradient" else without_gradients
    return are_equal_traces(compared(answer), compared(misconception))


def diagnose(
    transcript: Transcript,
    misconceptions: Sequence[Misconception],
    device_tests: Collection[str],
    advisory_tests: Collection[str] = (),
    *,
    is_exact: bool = False,
) -> Diagnosis | None:
    """Return the misconception that behaves like a wrong answer; else one or two that explain a part of its failures.

    transcript: the answer's. misconceptions: those of its exercise. device_tests: names of the hidden tests about
    devices. advisory_tests: names of those of weight 0. is_exact: search only for a misconception that behaves like the
    answer. Return None if nothing fits.
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
