"""Reasons for other points if a submission is graded again, by another version of the hidden tests or of the rules."""

from collections.abc import Mapping

import msgspec

from ..report import ExerciseReport, Report


def reasons(before: Report | None, now: Report) -> dict[str, str]:
    """Return why an exercise's points can differ, by exercise. before: the last report on the student's work."""
    earlier = {exercise.name: exercise for exercise in before.exercises} if before else {}
    return {exercise.name: _reason(earlier.get(exercise.name), exercise) for exercise in now.exercises}


def with_reasons(before: Report | None, now: Report) -> Report:
    """Return a report that says why points differ from those of the last report on the same file."""
    if before is None or not now.submission or before.submission != now.submission:
        return now
    earlier = {exercise.name: exercise for exercise in before.exercises}
    why = reasons(before, now)
    return msgspec.structs.replace(now, exercises=[_with_reason(earlier, one, why[one.name]) for one in now.exercises])


def _with_reason(earlier: Mapping[str, ExerciseReport], now: ExerciseReport, why: str) -> ExerciseReport:
    before = earlier.get(now.name)
    if before is None or (before.score, before.max_score) == (now.score, now.max_score):
        return now
    note = (
        f"This file was graded again: {now.score:g} of {now.max_score:g} points, before that {before.score:g} of "
        f"{before.max_score:g}. The reason: {why}."
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
    earned = {test.name: test.points for test in before.tests}
    halved = [test.name for test in now.tests if test.halves]
    if halved:
        changed.append(f"{' and '.join(halved)} failed, so that the exercise gives at most half of its points")
    changed += [
        f"{test.name}: a form that can be converted earns half"
        for test in now.tests
        if test.outcome == "failed" and test.points > earned.get(test.name, 0.0)
    ]
    return "; ".join(changed) or "the weights of its tests are others"
