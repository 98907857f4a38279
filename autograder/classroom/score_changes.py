"""Reasons why points change if a submission is graded again, by other hidden tests or other rules."""

import msgspec

from .. import course
from ..report import ExerciseReport, Report

OTHER_WEIGHTS = "the weights of its tests have changed"
"""The reason if no other is found."""


def reasons(unit: course.Unit, before: Report | None, now: Report) -> dict[str, str]:
    """Return, by exercise, why its points can differ. before: the last report on the student's work.

    If no test of an exercise was run, as in a damaged file, the reason is the report's message.
    """
    earlier, graded = _by_name(before), {one.name: one for one in now.exercises if one.tests}
    return {
        one.name: _reason(earlier.get(one.name), graded[one.name]) if one.name in graded else now.message
        for one in unit.exercises
    }


def with_reasons(before: Report | None, now: Report) -> Report:
    """Return a report that says why points differ from those of the last report on the same file."""
    if before is None or not now.submission or before.submission != now.submission:
        return now
    earlier = _by_name(before)
    return msgspec.structs.replace(now, exercises=[_with_reason(earlier.get(one.name), one) for one in now.exercises])


def _by_name(report: Report | None) -> dict[str, ExerciseReport]:
    return {exercise.name: exercise for exercise in report.exercises} if report else {}


def _with_reason(before: ExerciseReport | None, now: ExerciseReport) -> ExerciseReport:
    if before is None or (before.score, before.max_score) == (now.score, now.max_score):
        return now
    note = (
        f"This file was graded again: {now.score:g} of {now.max_score:g} points, before that {before.score:g} of "
        f"{before.max_score:g}. The reason: {_reason(before, now)}."
    )
    return msgspec.structs.replace(now, note=f"{now.note} {note}".strip())


def _reason(before: ExerciseReport | None, now: ExerciseReport) -> str:
    if before is None:
        return "not graded before"
    earlier, outcomes = ({test.name: test.outcome for test in report.tests} for report in (before, now))
    changed = [
        f"{test}: {earlier.get(test, 'new')} -> {outcomes.get(test, 'gone')}"
        for test in outcomes | earlier
        if earlier.get(test) != outcomes.get(test)
    ]
    if halving := [test.name for test in now.tests if test.halves]:
        changed.append(f"{' and '.join(halving)} failed, so that the exercise gives at most half of its points")
    earned = {test.name: test.points for test in before.tests}
    changed += [
        f"{test.name}: a form that can be converted earns half"
        for test in now.tests
        if test.outcome == "failed" and test.points > earned.get(test.name, 0.0)
    ]
    return "; ".join(changed) or OTHER_WEIGHTS
