"""Diagnose an answer by the tests that it fails: a misconception explains those in which the answer shows the same."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from ..core.explanations import Explanation, explain, explained_by
from ..report import Diagnosis, Mistake
from .behaviour import Misconception
from .transcript import Trace, Transcript, are_equal_traces, whole, without_gradients


def diagnose_by_tests(
    transcript: Transcript, misconceptions: Sequence[Misconception], advisory_tests: Collection[str]
) -> Diagnosis | None:
    """Return the one misconception, or the two, that explain the tests that an answer fails.

    The diagnosis is partial if other tests fail, too. None if `core.explanations` finds none certain enough.
    advisory_tests: those of weight 0.
    """
    shown = {trace.test: trace for trace in transcript if trace.test not in advisory_tests}
    failed = {trace.test for trace in shown.values() if trace.outcome == "failed"}
    found = explain(list(_explanations(shown, misconceptions)), failed)
    if not found:
        return None
    first, *second = (one.misconception.entry for one in found)
    beside = Mistake(second[0].name, second[0].sentence) if second else None
    return Diagnosis(first.name, first.sentence, beside, explained_by(found) != failed)


def _explanations(
    shown: Mapping[str, Trace], misconceptions: Sequence[Misconception]
) -> Iterator[Explanation[Misconception]]:
    for one in misconceptions:
        first = next(iter(one.behaviour.transcript))  # it has run already, and leaves most out
        if first.outcome == "failed" and first.test in shown and not _shows_the_same(one, shown[first.test], first):
            continue
        test = one.entry.caught_by or ""
        if test not in shown or not _shows_the_same(one, shown[test], one.behaviour.trace(test)):
            continue  # to run one test for each misconception is quick
        wrong = [trace for trace in one.behaviour.transcript if trace.outcome == "failed" and trace.test in shown]
        alike = {trace.test for trace in wrong if _shows_the_same(one, shown[trace.test], trace)}
        others = frozenset(trace.test for trace in wrong) - alike
        yield Explanation(one, one.entry.sentence, frozenset(alike), others)


def _shows_the_same(one: Misconception, answer: Trace, misconception: Trace) -> bool:
    """Return whether both fail a test alike; gradients of wrong values follow the way to them."""
    if answer.outcome != misconception.outcome:
        return False
    compared = whole if one.entry.kind == "gradient" else without_gradients
    return are_equal_traces(compared(answer), compared(misconception))
