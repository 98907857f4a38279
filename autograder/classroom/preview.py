"""`autograder grade --dry-run`: the changes that a run would make now, and why, say after a hidden test was fixed.

The steps are those of the run itself, taken with a copy of the gradebook. So one place decides marks, penalties, and
whether a submission is graded again. Nothing is written into the course's folder.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .. import course
from ..client.requests import Device
from ..course.settings import Settings
from ..gradebook import database
from ..gradebook.class_gradebook import ClassGradebook
from ..gradebook.database import said_in_a_sentence
from ..gradebook.gradebook_copy import gradebook_copy
from ..gradebook.lateness import in_words
from ..gradebook.marks import Mark, UnitMarks
from ..gradebook.roster import Enrolled
from ..report import Report
from .assignment import Assignment, NothingToGrade
from .autograded import Autograded
from .grade import Grading, Row
from .marking_ahead import Marking, MarkingAhead

PENALTY = "late_penalty"
_OF_PERSON = ("first_name", "last_name", "email")


@dataclass(frozen=True)
class Change:
    """A value in the gradebook that would be another if the class were graded now."""

    student: str
    exercise: str
    """The exercise or written question whose points change; or `late_penalty`, the points taken off; or, of the roster
    entry, `first_name`, `last_name` or `email`.
    """
    before: float | str
    after: float | str
    why: str


@dataclass(frozen=True)
class Preview:
    """Predicted changes of a grading run."""

    changes: list[Change]
    rows: list[Row]
    """Rows of the predicted run: submissions to grade, leave alone or update, and results that it cannot record."""
    after: UnitMarks
    """Everyone's marks as they would be."""


def preview(
    work: Assignment,
    *,
    device: Device,
    settings: Settings,
    markers: int,
    regrade: bool = False,
    marking: Callable[..., Marking] = MarkingAhead,
) -> Preview:
    """Predict the changes of a grading run and their reasons, without writing. Takes the arguments of `grade`.

    Raises NothingToGrade, MarkerRefused and CourseProblem.
    """
    unit = work.unit.name
    source = database.of_directory(work.directory)
    with gradebook_copy(source, unit, work.directory.course_id) as copy:
        if copy is None:
            raise NothingToGrade(f"There are no marks to compare with yet: {source} is not there.")
        with said_in_a_sentence(work.root), ClassGradebook(work.directory, unit, copy) as gradebook:
            before = gradebook.marks()
            grading = Grading(work, gradebook, None, device=device, settings=settings, regrade=regrade)
            todo = grading.leave_alone()
            autograded = Autograded(work.directory, unit)
            reasons: dict[str, dict[str, str]] = {}
            if todo:
                with marking(work, todo, device=device, settings=settings, markers=markers) as desks:
                    desks.start()
                    for marked in desks.marked():
                        student = marked.hand_in.student
                        reasons[student] = _reasons(work, autograded.report(student), marked.report)
                        grading.record(marked)
            after = gradebook.marks()
    enrolled = [{one.id: one for one in marks.students} for marks in (before, after)]
    changes: list[Change] = []
    for student in (hand_in.student for hand_in in work.hand_ins):
        was, becomes = before.marks.get(student), after.marks.get(student)
        changes += _of_scores(student, was, becomes, reasons.get(student, {}))
        changes += _of_penalty(student, was, becomes)
        changes += _of_person(student, *(people.get(student) for people in enrolled))
    return Preview(changes, grading.rows, after)


def _of_scores(student: str, was: Mark | None, becomes: Mark | None, reasons: dict[str, str]) -> Iterator[Change]:
    scores = [mark.shown.scores if mark else {} for mark in (was, becomes)]
    for cell in [*scores[1], *(cell for cell in scores[0] if cell not in scores[1])]:
        exercise = cell.removeprefix(course.CHECK_PREFIX)
        points = [of_mark.get(cell, 0.0) for of_mark in scores]
        if points[0] != points[1]:
            yield Change(student, exercise, points[0], points[1], reasons.get(exercise, "the answer is another one"))


def _of_penalty(student: str, was: Mark | None, becomes: Mark | None) -> Iterator[Change]:
    before, after = (mark.shown.late_penalty if mark else 0.0 for mark in (was, becomes))
    if before != after:
        yield Change(student, PENALTY, before, after, _lateness(becomes))


def _of_person(student: str, was: Enrolled | None, becomes: Enrolled | None) -> Iterator[Change]:
    for field in _OF_PERSON:
        before, after = (getattr(person, field, "") or "" for person in (was, becomes))
        if before != after:
            yield Change(student, field, before, after, "changed on the roster" if was else "new in the gradebook")


def _lateness(mark: Mark | None) -> str:
    if mark is None:
        return "not graded"
    if mark.shown.is_time_unresolved:
        return "lateness is unknown"
    return f"late by {in_words(mark.late)}" if mark.late else "not late"


def _reasons(work: Assignment, before: Report | None, now: Report) -> dict[str, str]:
    """Why an exercise's points change, by exercise, by the outcomes of the tests in the last report and in this one."""
    earlier, outcomes = _outcomes(before), _outcomes(now)
    return {
        exercise.name: _why(earlier.get(exercise.name), outcomes.get(exercise.name, {}), now)
        for exercise in work.unit.exercises
    }


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
