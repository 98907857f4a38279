"""`autograder grade`: grade a class's submissions into the gradebook, or predict what that would change (`--dry-run`).

A dry run takes the steps of the run itself, with a copy of the gradebook. So one place decides grades, penalties, and
whether a submission is graded again. It writes nothing into the course's folder.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import msgspec

from .. import course
from ..course.settings import Settings
from ..gradebook import nbgrader_course
from ..gradebook.class_gradebook import ClassGradebook, Grade, UnitGrades, gradebook_copy
from ..gradebook.entry import Entry
from ..gradebook.lateness import exactly, in_words
from ..gradebook.nbgrader_course import Database, course_lock, explained_errors
from ..gradebook.reweights import Rules, reweighted
from ..gradebook.roster import Enrolled
from ..pool.requests import Device, Ready
from ..report import Report
from ..reports import pages
from .assignment import Assignment, BatchGrading, GradedSubmission, LocalGrading, NotGraded, NothingToGrade
from .student_folders import Autograded, FeedbackPages, Submission, page_path
from .writer import OTHER_WEIGHTS, Writer, change_reasons

_LONGEST_BEGINNING = 100
"""Maximum number of characters of a message in a row: enough to see whether an exercise was written."""


@dataclass(frozen=True)
class Row:
    """One student's row in the table that `autograder grade` prints."""

    student: str
    report: Report
    """The report without passed exercises and without tests, because the rows of a whole class are in memory; messages
    are cut.
    """
    problem: str = ""
    """Reason why the grade could not be recorded; empty if it was."""
    is_new: bool = True
    """True if this run graded the submission."""
    note: str = ""
    """A remark on the student's files as they are now."""
    updates: tuple[str, ...] = ()
    """Changes to the student's record without grading the submission again: roster entry, points, late penalty."""


@dataclass(frozen=True)
class ClassResult:
    """The state of a class once it is graded."""

    rows: list[Row]
    conditions: Ready | None
    """Device and isolation of the grading processes; None if nothing had to be graded."""
    pages: Path
    """The path of the feedback pages, with `<student>` for the student."""
    gradebook: Database
    grades: UnitGrades
    refused: list[NotGraded]
    """Folders and students that could not be graded."""
    outdated: dict[str, list[str]]
    """Students, by unit, whose recorded late penalty there is outdated, because late days were spent or given back."""
    section: str | None
    """The section of the roster that was graded; None for the whole class."""


def grade(
    work: Assignment,
    *,
    device: Device,
    settings: Settings,
    process_count: int,
    regrade: bool = False,
    repair: bool = True,
    new_batch: Callable[..., BatchGrading] = LocalGrading,
    on_start: Callable[[int, str], None] = lambda total, what: None,
    on_step: Callable[[], None] = lambda: None,
) -> ClassResult:
    """Grade everyone into the gradebook; leave submissions alone that are already graded, unless `regrade`.

    May be interrupted at any moment and run again. repair: once all are graded, search for the changes that repair
    unexplained answers. new_batch: constructor of the batch that grades the submissions. on_start: called with the
    number of steps and a name when grading, and later the search for repairs, begins. on_step: called after each step.
    Raises GradingRefused and CourseProblem.
    """
    unit = work.unit.name
    with course_lock(work.root), explained_errors(work.root), ExitStack() as stack:
        gradebook = stack.enter_context(ClassGradebook(work.directory, unit))
        formatter = stack.enter_context(pages.formatter(settings))
        feedback_pages = FeedbackPages(work.directory, unit, formatter)
        writer = Writer(work, gradebook, feedback_pages, device, settings, needs_repairs=repair)
        on_start(len(work.submissions), unit)
        grading = Grading(work, gradebook, writer, regrade=regrade, on_step=on_step)
        conditions = None
        if grading.to_grade:
            formatter.start()  # while the grading processes start, which takes longer
            processes = new_batch(work, grading.to_grade, device=device, settings=settings, process_count=process_count)
            stack.enter_context(processes)
            conditions = processes.start()
            unexplained: dict[str, Report] = {}
            for graded in processes.graded():
                grading.record(graded)
                if repair and graded.report.has_unexplained:
                    unexplained[graded.submission.student] = graded.report
            if unexplained:
                on_start(len(unexplained), f"{unit}: search for repairs")
            for repaired in processes.repaired(unexplained) if unexplained else ():
                on_step()
                if repaired:
                    grading.record_findings(repaired)
        grades, outdated = gradebook.grades(), gradebook.outdated_penalties()
    if work.section is not None:
        grades = grades.of_students({student.id for student in work.students})
    page = page_path(work.directory, unit, "<student>")
    database = nbgrader_course.database_of_directory(work.directory)
    return ClassResult(grading.rows, conditions, page, database, grades, work.refused, outdated, work.section)


class Grading:
    """The steps of a grading run. A dry run takes the same steps with a copy of the gradebook."""

    def __init__(
        self,
        work: Assignment,
        gradebook: ClassGradebook,
        writer: Writer,
        *,
        regrade: bool,
        on_step: Callable[[], None] = lambda: None,
    ) -> None:
        """Enrol the class, and make the rows of everyone who is not graded in this run."""
        self._work = work
        self._writer = writer
        self._rules = gradebook.rules
        self._on_step = on_step
        self._rows: dict[str, Row] = {}
        self.to_grade: list[Submission] = []
        """The submissions to grade in this run."""
        self._new_on_roster = set(gradebook.enrol(work.students))
        for submission in work.submissions:
            student = submission.student
            if submission.notebook is None:
                updates, problem = writer.update(student)
                report = _not_submitted(work, submission, gradebook.entry(student))
                self._finish(Row(student, report, problem, updates=self._updates(student, updates)))
            elif regrade or (kept := writer.leave_alone(submission)) is None:
                self.to_grade.append(submission)
            else:
                report, updates = kept
                self._finish(Row(student, _brief(report), "", False, submission.note, self._updates(student, updates)))
        gradebook.commit()  # ends the transaction that reading began

    @property
    def rows(self) -> list[Row]:
        """Everyone's rows, in the order of the class."""
        return [self._rows[submission.student] for submission in self._work.submissions]

    def record(self, graded: GradedSubmission) -> None:
        """Record the grade of a submission."""
        problem = self._writer.record(graded)
        self._finish(Row(graded.submission.student, self._counted(graded.report), problem))

    def record_findings(self, graded: GradedSubmission) -> None:
        """Record a report again after the search for repairs, whose findings change no points."""
        problem = self._writer.record(graded)
        student = graded.submission.student
        self._rows[student] = replace(self._rows[student], report=self._counted(graded.report), problem=problem)

    def _counted(self, report: Report) -> Report:
        """Return the parts of a new report that the table shows, with the points that count."""
        return _brief(reweighted(report, self._rules))

    def _updates(self, student: str, of_mark: tuple[str, ...]) -> tuple[str, ...]:
        return (*(("roster entry",) if student in self._new_on_roster else ()), *of_mark)

    def _finish(self, row: Row) -> None:
        self._rows[row.student] = row
        self._on_step()


def _not_submitted(work: Assignment, submission: Submission, earlier: Entry | None) -> Report:
    """Return the report on a student without a submission. earlier: the gradebook's entry, if there was one before."""
    stands = " The gradebook keeps the grade of the earlier submission." if earlier else ""
    score = sum(given or 0.0 for given in earlier.automatic_scores().values()) if earlier else 0.0
    note = submission.note + stands
    return Report("", work.unit.name, "not_submitted", "", "", score, work.unit.max_score, [], note)


def _brief(report: Report) -> Report:
    """Return the parts of a report that the table shows."""
    wrong = [
        msgspec.structs.replace(
            e, tests=[], message=e.message[:_LONGEST_BEGINNING], whereabouts=None, behaviour=None, repairs=[]
        )
        for e in report.exercises
        if e.status != "passed"
    ]
    unused = dict.fromkeys(("version", "kit", "torch", "cases", "submission"), "")
    return msgspec.structs.replace(report, exercises=wrong, cells=[], enforced=[], written=[], **unused)


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
    source = nbgrader_course.database_of_directory(work.directory)
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
                        reasons[student] = change_reasons(work.unit, autograded.report(student), graded.report)
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
        return rule if rule and reason == OTHER_WEIGHTS else f"{reason}. {rule}" if rule else reason

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
