"""Turn the verdicts of the hidden tests into the report on an exercise."""

import dataclasses
from collections.abc import Sequence

from .. import course
from ..core import complaints
from ..core.judgement import TestShare, distribute
from ..core.lost_aspects import OF_COUNTING, OF_FORM
from ..core.observation import Missing
from ..graders.collection import Verdict
from ..report import (
    NOT_WRITTEN,
    CellReport,
    Diagnosis,
    ExerciseReport,
    ExerciseStatus,
    SubmissionStatus,
    TestReport,
    joined,
)
from ..sandbox.client import Crashed, TimedOut

_COUNTS_ONCE = "Counts only if another result is right than those of the examples in the notebook."


def score(
    exercise: course.Exercise,
    verdicts: Sequence[Verdict],
    *,
    library_calls: set[str],
    diagnosis: Diagnosis | None = None,
    cell: CellReport | None = None,
    uses_wrong: Sequence[str] = (),
    why_missing: str = "",
) -> ExerciseReport:
    """Return the report on one exercise.

    verdicts: those of all its hidden tests. library_calls: the libraries that the answer called. cell: the report on
    its solution cell, if that did not run to its end. uses_wrong: names of other exercises that the answer calls and
    that are wrong; then no diagnosis is reported. why_missing: the message if the answer is not defined.
    """
    verdicts = _without_unproven(verdicts)
    forbidden = sorted({name for verdict in verdicts for name in verdict.test.forbids} & library_calls)
    status = "forbidden" if forbidden else _status(exercise.name, verdicts, cell)
    shared = _shared_message(verdicts)
    is_due_to_others = bool(uses_wrong) and status != "passed" and not shared.startswith(NOT_WRITTEN)
    on_others = complaints.uses_wrong(uses_wrong) if is_due_to_others else ""
    points = distribute([_test_share(verdict) for verdict in verdicts], exercise.points)
    points_per_weight = exercise.points / sum(verdict.test.points for verdict in verdicts)
    tests: list[TestReport] = []
    for verdict, earned, withheld in zip(verdicts, points.each, points.withheld, strict=True):
        test = verdict.test
        halves = points.is_halved and not forbidden and test.is_essential and verdict.outcome != "passed"
        outcome, message = verdict.outcome, _test_message(verdict, shared, halves=halves)
        if outcome == "passed" and (forbidden or withheld):
            outcome = "withheld"
            message += "" if forbidden else f" {_COUNTS_ONCE}"
        max_points = round(test.points * points_per_weight, 4)
        earned = 0.0 if forbidden or withheld else earned
        tests.append(TestReport(test.name, outcome, earned, message, max_points, test.is_public, halves))
    loss = next((str(verdict.lost) for verdict in verdicts if verdict.lost is not None), "")
    return ExerciseReport(
        exercise.name,
        status,
        round(sum(test.points for test in tests), 2),
        exercise.points,
        None if forbidden or uses_wrong else diagnosis,
        _message(status, forbidden, cell, loss, why_missing) or joined(on_others, shared),
        tests,
    )


def without_score(exercise: course.Exercise) -> ExerciseReport:
    """Return the report on an exercise that could not be scored because of an error in the autograder."""
    message = _message("grader_error", (), None, "")
    return ExerciseReport(exercise.name, "grader_error", 0.0, exercise.points, None, message, [])


def submission_status(exercises: Sequence[ExerciseReport], cells: Sequence[CellReport]) -> SubmissionStatus:
    """Return the status of a submission: the most serious one of its exercises and cells."""
    statuses = {exercise.status for exercise in exercises} | {cell.status for cell in cells}
    if "grader_error" in statuses:
        return "grader_error"
    if "crashed" in statuses:
        return "crashed"
    if "timeout" in statuses or "skipped" in statuses:
        return "timed_out"
    return "cells_failed" if "failed" in {cell.status for cell in cells} else "graded"


def _without_unproven(verdicts: Sequence[Verdict]) -> Sequence[Verdict]:
    """Return the verdicts, in which unproven conditional tests fail if all tests of values pass.

    In that case, the code returns a wrong value only where the property is tested. Otherwise an unproven test passes,
    because the tests of values already cost points.
    """
    if any(verdict.outcome != "passed" for verdict in verdicts if not verdict.test.is_property):
        return verdicts
    return [dataclasses.replace(one, outcome="failed") if one.unproven else one for one in verdicts]


def _test_share(verdict: Verdict) -> TestShare:
    test = verdict.test
    share = 1.0 if verdict.outcome == "passed" else 0.5 if verdict.aspect == OF_FORM else 0.0
    # An uncountable call loses the points of this test, but none of the others.
    is_essential = test.is_essential and verdict.aspect != OF_COUNTING
    return TestShare(test.points, share, test.is_property, test.is_public, is_essential)


def _test_message(verdict: Verdict, shared: str, *, halves: bool) -> str:
    """Return a test's statement with its message, without the part in `shared`. halves: the test halves the points."""
    test = verdict.test
    if verdict.outcome == "passed":
        return test.statement
    message = f"{test.statement} {verdict.seen.removeprefix(shared)}".strip()
    return complaints.halves_the_points(message) if halves else message


def _status(name: str, verdicts: Sequence[Verdict], cell: CellReport | None) -> ExerciseStatus:
    if any(verdict.outcome == "grader_error" for verdict in verdicts):
        return "grader_error"
    loss = next((verdict.lost for verdict in verdicts if verdict.lost is not None), None)
    if loss is not None:
        return "timeout" if isinstance(loss, TimedOut) else "crashed" if isinstance(loss, Crashed) else "skipped"
    if all(verdict.outcome == "passed" or not verdict.test.points for verdict in verdicts):
        return "passed"
    if cell is not None and cell.status in ("timeout", "crashed"):
        return "timeout" if cell.status == "timeout" else "crashed"
    if all(verdict.missing and verdict.seen == str(Missing(name)) for verdict in verdicts):
        return "error" if cell is not None and cell.status == "failed" else "missing"
    return "failed"


def _shared_message(verdicts: Sequence[Verdict]) -> str:
    """Return the message that all tests have in common, which the report shows only once; empty if they differ."""
    messages = {verdict.seen for verdict in verdicts}
    message = messages.pop() if len(messages) == 1 else ""
    return message if len(verdicts) > 1 or message.startswith(NOT_WRITTEN) else ""


def _message(
    status: ExerciseStatus, forbidden: Sequence[str], cell: CellReport | None, loss: str, why_missing: str = ""
) -> str:
    """Return the message on an exercise with this status. loss: the reason why the worker was lost; may be empty."""
    match status:
        case "forbidden":
            return complaints.calls_forbidden(forbidden)
        case "missing":
            return why_missing
        case "error" | "timeout" | "crashed" if cell is not None and cell.troubled:
            return f"Its cell could not be run. {cell.message}"
        case "timeout" | "crashed" if loss:
            return f"{loss} The rest of the tests was not run."
        case "timeout":
            return "A call did not return in time; the rest of the tests was not run."
        case "crashed":
            return "Python ended during a call; the rest of the tests was not run."
        case "skipped":
            return "Not run to its end: this notebook had used up its time, or had hung or crashed too often."
        case "grader_error":
            return "Our grader failed here, which is our fault and not yours. Please tell your instructor."
    return ""
