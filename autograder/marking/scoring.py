"""From what the graders found to an exercise's mark. Pure arithmetic on verdicts."""

import dataclasses
from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from .. import course
from ..compare import complaints
from ..core.faults import Missing
from ..core.lost_aspects import OF_COUNTING, OF_FORM
from ..core.points import TestShare, distribute
from ..graders.collected import Verdict
from ..report import (
    NOT_WRITTEN,
    USES_WRONG,
    CellReport,
    Diagnosis,
    ExerciseReport,
    ExerciseStatus,
    SubmissionStatus,
    TestReport,
)
from ..sandbox.failures import Crashed, TimedOut

_COUNTS_ONCE = "Counts once a result is right that is not one of the examples in the notebook."


def mark(
    exercise: course.Exercise,
    verdicts: Sequence[Verdict],
    *,
    library_calls: set[str],
    diagnosis: Diagnosis | None = None,
    cell: CellReport | None = None,
    uses_wrong: Sequence[str] = (),
    why_missing: str = "",
) -> ExerciseReport:
    """The mark of one exercise.

    library_calls: the libraries that ran in it. cell: what its solution cell did, where it did not simply run.
    uses_wrong: other exercises that it calls and that are not right: which mistake is its own cannot be told then.
    why_missing: the message if it is not defined.
    """
    verdicts = _proven(verdicts)
    forbidden = sorted({name for verdict in verdicts for name in verdict.grader.forbids} & library_calls)
    status = "forbidden" if forbidden else _status(exercise.name, verdicts, cell)
    everywhere, loss = _seen_everywhere(verdicts), _said_of_loss(verdicts)
    points = distribute([_test_share(verdict) for verdict in verdicts], exercise.points)
    worth = exercise.points / sum(verdict.grader.points for verdict in verdicts)
    tests = [
        _test(verdict, worth, earned, withheld=withheld, forbidden=bool(forbidden), general=everywhere)
        for verdict, earned, withheld in zip(verdicts, points.each, points.withheld, strict=True)
    ]
    if points.is_halved and not forbidden:
        tests = [_explained(test, verdict) for test, verdict in zip(tests, verdicts, strict=True)]
    return ExerciseReport(
        exercise.name,
        status,
        round(sum(test.points for test in tests), 2),
        exercise.points,
        None if forbidden or uses_wrong else diagnosis,
        _message(status, forbidden, cell, loss, why_missing) or everywhere or _after(uses_wrong, status),
        tests,
    )


def without_mark(exercise: course.Exercise) -> ExerciseReport:
    """The report where a fault of ours left no mark; the other exercises keep theirs."""
    said = _message("grader_error", (), None, "")
    return ExerciseReport(exercise.name, "grader_error", 0.0, exercise.points, None, said, [])


def submission_status(exercises: Sequence[ExerciseReport], cells: Sequence[CellReport]) -> SubmissionStatus:
    """The submission's status: the gravest thing that happened in it."""
    happened = {exercise.status for exercise in exercises} | {cell.status for cell in cells}
    if "grader_error" in happened:
        return "grader_error"
    if "crashed" in happened:
        return "crashed"
    if "timeout" in happened or "skipped" in happened:
        return "timed_out"
    return "cells_failed" if "failed" in {cell.status for cell in cells} else "graded"


def _proven(verdicts: Sequence[Verdict]) -> Sequence[Verdict]:
    """Fail what is unproven if all results are right elsewhere: the code does something else where it is measured.

    Otherwise the property counts, for the wrong results cost their own points.
    """
    if any(verdict.outcome != "passed" for verdict in verdicts if not verdict.grader.is_property):
        return verdicts
    return [dataclasses.replace(one, outcome="failed") if one.unproven else one for one in verdicts]


def _test_share(verdict: Verdict) -> TestShare:
    grader = verdict.grader
    share = 1.0 if verdict.outcome == "passed" else 0.5 if verdict.aspect == OF_FORM else 0.0
    # An uncountable call earns nothing for this test and leaves the points of the others.
    is_essential = grader.is_essential and verdict.aspect != OF_COUNTING
    return TestShare(grader.points, share, grader.is_property, grader.is_public, is_essential)


def _explained(test: TestReport, verdict: Verdict) -> TestReport:
    """Say in the report of a failed essential test that the exercise gives at most half of its points."""
    if verdict.grader.is_essential and verdict.outcome != "passed":
        return replace(test, message=complaints.halves_the_points(test.message))
    return test


def _status(name: str, verdicts: Sequence[Verdict], cell: CellReport | None) -> ExerciseStatus:
    if any(verdict.outcome == "grader_error" for verdict in verdicts):
        return "grader_error"
    for verdict in verdicts:
        if verdict.lost is not None:
            match verdict.lost:
                case TimedOut():
                    return "timeout"
                case Crashed():
                    return "crashed"
            return "skipped"
    if all(verdict.outcome == "passed" or not verdict.grader.points for verdict in verdicts):
        return "passed"
    if cell is not None and cell.status in ("timeout", "crashed"):
        return "timeout" if cell.status == "timeout" else "crashed"
    if all(verdict.missing and verdict.seen == str(Missing(name)) for verdict in verdicts):
        return "error" if cell is not None and cell.status == "failed" else "missing"
    return "failed"


def _seen_everywhere(verdicts: Sequence[Verdict]) -> str:
    """What every grader saw, if it was the same each time: said once, then, and not below each statement."""
    seen = {verdict.seen for verdict in verdicts}
    said = seen.pop() if len(seen) == 1 else ""
    return said if len(verdicts) > 1 or said.startswith(NOT_WRITTEN) else ""


def _test(
    verdict: Verdict, worth: float, earned: float, *, withheld: bool, forbidden: bool, general: str
) -> TestReport:
    """Return a test's report.

    worth: the points of a weight of 1. earned: the test's points. general: the message that all tests of the exercise
    share, which the exercise's report has.
    """
    grader = verdict.grader
    report = partial(TestReport, grader.name, max_points=round(grader.points * worth, 4), public=grader.is_public)
    if verdict.outcome != "passed":
        seen = verdict.seen.removeprefix(general)
        return report(verdict.outcome, 0.0 if forbidden else earned, f"{grader.statement} {seen}".strip())
    if forbidden:
        return report("withheld", 0.0, grader.statement)
    if withheld:
        return report("withheld", 0.0, f"{grader.statement} {_COUNTS_ONCE}")
    return report("passed", earned, grader.statement)


def _after(uses_wrong: Sequence[str], status: ExerciseStatus) -> str:
    if not uses_wrong or status == "passed":
        return ""
    names = " and ".join(f"`{name}`" for name in uses_wrong)
    return f"{USES_WRONG} {names}, which is not right yet: fix that first, for what is wrong here may come from there."


def _said_of_loss(verdicts: Sequence[Verdict]) -> str:
    """What is known of why the worker was lost."""
    return next((str(verdict.lost) for verdict in verdicts if verdict.lost is not None), "")


def _message(
    status: ExerciseStatus, forbidden: Sequence[str], cell: CellReport | None, loss: str, why_missing: str = ""
) -> str:
    """loss: why the worker was lost, where that is known."""
    match status:
        case "forbidden":
            return complaints.calls_forbidden(forbidden)
        case "missing":
            return why_missing
        case "error" | "timeout" | "crashed" if cell is not None and cell.troubled:
            return f"Its cell could not be run. {cell.message}"
        case "timeout" | "crashed" if loss:
            return f"{loss} The rest of its tests was not run."
        case "timeout":
            return "It did not come back in time; the rest of its tests was not run."
        case "crashed":
            return "Python ended while it ran; the rest of its tests was not run."
        case "skipped":
            return "Not run to its end: this notebook had used up its time, or had hung or crashed too often."
        case "grader_error":
            return "Our grader failed here, which is our fault and not yours. Please tell your instructor."
    return ""
