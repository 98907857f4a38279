"""`autograder grade --dry-run`: the changes that a grading run would make now, and the reason for each.

The steps are those of the run itself, taken with a copy of the gradebook. So one place decides grades, penalties, and
whether a submission is graded again. Nothing is written into the course's folder.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from .. import course
from ..course.settings import Settings
from ..gradebook import database
from ..gradebook.class_gradebook import ClassGradebook, gradebook_copy
from ..gradebook.grades import Grade, UnitGrades
from ..gradebook.lateness import exactly, in_words
from ..gradebook.reweights import Rules
from ..gradebook.roster import Enrolled
from ..pool.requests import Device
from . import score_changes
from .assignment import Assignment, NothingToGrade
from .batch import BatchGrading, LocalGrading
from .grade import Grading, Row
from .student_folders import Autograded
from .writer import Writer

PENALTY = "late_penalty"
_OF_PERSON = ("first_name", "last_name", "email")


@dataclass(frozen=True)
class Change:
    """A value in the gradebook that a grading run would change now."""

    student: str
    exercise: str
    """The exercise or written question whose points change; or `late_penalty`, the points taken off; or, for a changed
    roster entry, `first_name`, `last_name` or `email`."""
    before: float | str
    after: float | str
    why: str


@dataclass(frozen=True)
class Preview:
    """Predicted changes of a grading run."""

    changes: list[Change]
    rows: list[Row]
    """Rows of the predicted run: submissions to grade, leave alone or update, and results that it cannot record."""
    after: UnitGrades
    """Everyone's predicted grades."""


def preview(
    work: Assignment,
    *,
    device: Device,
    settings: Settings,
    process_count: int,
    regrade: bool = False,
    repair: bool = True,
    new_batch: Callable[..., BatchGrading] = LocalGrading,
) -> Preview:
    """Predict the changes of a grading run and their reasons, without writing. Takes the arguments of `grade`.

    Raises NothingToGrade, GradingRefused and CourseProblem.
    """
    unit = work.unit.name
    source = database.of_directory(work.directory)
    reasons: dict[str, dict[str, str]] = {}
    with gradebook_copy(source, work.directory.course_id) as copy:
        if copy is None:
            raise NothingToGrade(f"There are no grades to compare with yet: there is no {source}.")
        with source.explained_errors(), ClassGradebook(work.directory, unit, copy) as gradebook:
            autograded = Autograded(work.directory, unit)
            before = gradebook.grades()
            writer = Writer(work, gradebook, None, device, settings, needs_repairs=repair)
            grading = Grading(work, gradebook, writer, regrade=regrade)
            if grading.to_grade:
                with new_batch(
                    work, grading.to_grade, device=device, settings=settings, process_count=process_count
                ) as processes:
                    processes.start()
                    for graded in processes.graded():
                        student = graded.submission.student
                        reasons[student] = score_changes.reasons(work.unit, autograded.report(student), graded.report)
                        grading.record(graded)
            after, rules = gradebook.grades(), gradebook.rules
    people = [{person.id: person for person in grades.students} for grades in (before, after)]
    changes: list[Change] = []
    for student in (submission.student for submission in work.submissions):
        old, new = before.grades.get(student), after.grades.get(student)
        why = _with_rules(reasons.get(student), rules)
        changes += _of_mark(student, old, new, why, after.extensions.get(student))
        changes += _of_person(student, *(of_run.get(student) for of_run in people))
    return Preview(changes, grading.rows, after)


def _with_rules(reasons: Mapping[str, str] | None, rules: Rules) -> Callable[[str], str]:
    """Return a function from an exercise to why its points change. reasons: those of the hidden tests, if they ran."""

    def why(exercise: str) -> str:
        rule = rules[exercise].sentence(exercise) if exercise in rules else ""
        if reasons is None:
            return rule or "it counts its released points"
        reason = reasons.get(exercise, "the answer has changed")
        return rule if rule and reason == score_changes.OTHER_WEIGHTS else f"{reason}. {rule}" if rule else reason

    return why


def _of_mark(
    student: str, old: Grade | None, new: Grade | None, why: Callable[[str], str], extension: timedelta | None
) -> Iterator[Change]:
    scores, new_scores = (grade.shown.scores if grade else {} for grade in (old, new))
    for cell in new_scores | scores:
        exercise = cell.removeprefix(course.CHECK_PREFIX)
        before, after = scores.get(cell, 0.0), new_scores.get(cell, 0.0)
        if before != after:
            yield Change(student, exercise, before, after, why(exercise))
    before, after = (grade.shown.late_penalty if grade else 0.0 for grade in (old, new))
    if before != after:
        yield Change(student, PENALTY, before, after, _lateness(new, extension))


def _of_person(student: str, old: Enrolled | None, new: Enrolled | None) -> Iterator[Change]:
    for field in _OF_PERSON:
        before, after = (getattr(person, field, "") or "" for person in (old, new))
        if before != after:
            yield Change(student, field, before, after, "changed on the roster" if old else "new in the gradebook")


def _lateness(grade: Grade | None, extension: timedelta | None) -> str:
    extended = f", extended by {exactly(extension)}" if extension else ""
    if grade is None:
        return "not graded"
    if grade.unresolved is not None:
        return "lateness is unknown"
    return (f"late by {in_words(grade.late)}" if grade.late else "not late") + extended
