"""`autograder grade --dry-run`: whose marks would change, and why, say after a grader was fixed. Writes nothing."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..client.requests import Device
from ..course.settings import Settings
from ..gradebook import database
from ..gradebook.database import reading
from ..gradebook.entry import automatic_scores
from ..report import Report
from .assignment import Assignment, NothingToGrade
from .autograded import Autograded
from .marking_ahead import Marking, MarkingAhead


@dataclass(frozen=True)
class Change:
    """An exercise whose mark would change if the class were graded now."""

    student: str
    exercise: str
    before: float
    after: float
    why: str


def preview(
    work: Assignment,
    *,
    device: Device,
    settings: Settings,
    markers: int,
    marking: Callable[..., Marking] = MarkingAhead,
) -> list[Change]:
    """What grading now would change in the gradebook, and why; nothing is written. marking: makes the reports.

    Raises NothingToGrade, MarkerRefused and CourseProblem.
    """
    with reading(work.root) as session:
        if session is None:
            raise NothingToGrade(f"There are no marks to compare with yet: {database.of(work.root)} is not there.")
        before = automatic_scores(session, work.unit.name)
    autograded = Autograded(work.directory, work.unit.name)
    changes: dict[str, list[Change]] = {}
    with marking(work, work.hand_ins, device=device, settings=settings, markers=markers) as desks:
        desks.start()
        for marked in desks.marked():
            student = marked.hand_in.student
            earlier = _outcomes(autograded.report(student))
            changes[student] = list(_changes(work, student, before.get(student, {}), earlier, marked.report))
    return [change for hand_in in work.hand_ins for change in changes.get(hand_in.student, [])]


def _changes(
    work: Assignment, student: str, before: dict[str, float], earlier: dict[str, dict[str, str]], report: Report
) -> Iterator[Change]:
    now = {exercise.name: exercise for exercise in report.exercises}
    for exercise in work.unit.exercises:
        was, becomes = before.get(exercise.name, 0.0), now[exercise.name].score if exercise.name in now else 0.0
        if abs(was - becomes) > 0.001:
            tests = now[exercise.name].tests if exercise.name in now else []
            outcomes = {test.name: str(test.outcome) for test in tests}
            yield Change(student, exercise.name, was, becomes, _why(earlier.get(exercise.name), outcomes, report))


def _why(before: dict[str, str] | None, now: dict[str, str], report: Report) -> str:
    if not now:
        return report.message
    if before is None:
        return "not graded before"
    moved = [
        f"{test}: {before.get(test, 'new')} -> {now.get(test, 'gone')}"
        for test in [*now, *(test for test in before if test not in now)]
        if before.get(test) != now.get(test)
    ]
    return ", ".join(moved) or "points or weights changed"


def _outcomes(report: Report | None) -> dict[str, dict[str, str]]:
    """The tests' outcomes by exercise; none if there is no report."""
    exercises = report.exercises if report else []
    return {exercise.name: {test.name: test.outcome for test in exercise.tests} for exercise in exercises}
