"""A unit as one class submitted it: the students, the file that counts for each, and grading these files.

A file is the student's own or a group's. Files are graded in several processes, a little ahead of the one writer that
records the reports.
"""

import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, as_completed, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from .. import UserError, course
from ..course import notebook
from ..course.notebook import UnreadableNotebook, printable
from ..course.settings import Settings, folder
from ..course.submitted_files import RULE, can_be_id, is_one_name
from ..gradebook import nbgrader_course, reweights
from ..gradebook.lateness import due_dates
from ..gradebook.nbgrader_course import course_directory
from ..gradebook.roster import ROSTER, Enrolled, Roster, class_list
from ..gradebook.time_stamp import StampFormat
from ..pool.grading_pool import GradingPool, pool_for_class
from ..pool.requests import Device, GradeNotebook, Ready
from ..report import Report, joined
from .student_folders import UNREAD, Submission, SubmissionFiles

_TOO_LONG = (
    f"the id is too long: the gradebook's database allows at most {nbgrader_course.LONGEST_ID} characters. Give the "
    "student another id."
)
_NO_FOLDER = "this id in the gradebook cannot be a folder's name. Give the student another id."
_AHEAD = 4
"""Maximum number of reports per process that wait for the writer, so that no class takes more memory than others."""
EACH = 4
"""Least number of submissions for each process: starting one takes as long as grading this number."""


class NothingToGrade(UserError):
    """There is no class to grade; `str()` says what is missing, and where."""


@dataclass(frozen=True)
class NotGraded:
    """A folder of submissions, or a student in the gradebook, that cannot be graded."""

    name: str
    """Name of the folder or id of the student, in printable form."""
    reason: str


@dataclass(frozen=True)
class Assignment:
    """A unit as one class submitted it."""

    unit: course.Unit
    """The unit, with each exercise's points as the instructor's rules change them."""
    root: Path
    directory: Any
    """nbgrader's CourseDirectory for the course, with its settings."""
    submitted: Path
    files: SubmissionFiles
    students: list[Enrolled]
    submissions: list[Submission]
    refused: list[NotGraded]
    passed_over: list[str]
    """Paths among the submissions that were not inspected, because they are not STUDENT/UNIT/."""
    not_on_roster: list[str]
    """Students with a folder for the unit who are not on the roster; empty if there is no roster."""
    listed: Roster
    """The roster, with remarks on how it was read; if a section was chosen, only with its students."""
    section: str | None = None
    """The chosen section of the roster; None for the whole class."""


def assignment(
    unit_name: str,
    root: Path,
    submitted: Path | None,
    roster_file: Path | None,
    id_column: str | None = None,
    section: str | None = None,
) -> Assignment:
    """Return the class and its submissions: everyone in the class list, and everyone who submitted.

    section: leave out all students who are not in this section of the roster.

    Raises UnknownUnit, UnusableUnit, NothingToGrade, BadRoster and CourseProblem.
    """
    root = root.resolve()
    if not root.is_dir():
        raise NothingToGrade(f"The course folder {root} is not there.")
    unit = course.unit(unit_name, root)
    course.refuse_removed_exercises(unit)
    if not course.released(unit_name, root).is_file():
        command = (
            "autograder build" if course.units_root(root) == folder() else f"nbgrader generate_assignment {unit_name}"
        )
        raise NothingToGrade(f"`{unit_name}` has no release/{unit_name}/{unit_name}.ipynb: run `{command}`.")
    if submitted and not submitted.is_dir():
        raise NothingToGrade(f"The folder of submissions {submitted} is not there.")
    directory = course_directory(root)
    submitted = (submitted or root / directory.submitted_directory).resolve()
    try:
        files = SubmissionFiles(submitted, unit_name, root)
        folders = files.students()
    except OSError as error:
        raise NothingToGrade(f"The folder of submissions {submitted} cannot be read: {error.strerror}.") from None
    listed = class_list(root, roster_file, id_column)
    listed.refuse_strangers(folders, unit_name)
    roster = listed.roster.in_section(section)
    ids = {student.id for student in roster.students}
    known = ids | listed.enrolled
    new = [Enrolled(name) for name in folders if name not in ids and section is None]
    everyone = [*roster.students, *new]
    gradebook = nbgrader_course.database_of_directory(directory)
    reasons = {student.id: _why_not(student.id, known, folders, gradebook) for student in everyone}
    refused = [NotGraded(notebook.printable(name), reason) for name, reason in reasons.items() if reason]
    students = [student for student in everyone if not reasons[student.id]]
    if not everyone:
        raise NothingToGrade(
            f"Nobody has submitted `{unit_name}`: there is no {submitted}/<student>/{unit_name}/{unit_name}.ipynb, "
            f"and nobody is on a roster in {root / ROSTER}."
        )
    return Assignment(
        reweights.reweighted_unit(unit, reweights.of_class(directory, unit_name)),
        root,
        directory,
        submitted,
        files,
        students,
        _submissions_of(students, roster, files, directory, unit_name),
        refused,
        files.passed_over({*course.unit_names(), *listed.assignments}),
        [student.id for student in new if listed.file and not reasons[student.id]],
        roster,
        section,
    )


def _submissions_of(
    students: list[Enrolled], roster: Roster, files: SubmissionFiles, directory: Any, unit: str
) -> list[Submission]:
    """Return the submission that counts for each student: the student's own, or one of the student's group."""
    own = cache(files.submission)
    members = {student.id: roster.group_of(student.id) for student in students}
    if all(group == [student] for student, group in members.items()):
        return [own(student) for student in members]  # without opening the gradebook: `serve` polls a class this way
    due, stamps = due_dates(directory, unit), StampFormat.of_course(directory)

    @cache
    def time(submission: Submission) -> datetime | None:
        return stamps.read(files.stamp(submission)).utc

    @cache
    def is_readable(submission: Submission) -> bool:
        return isinstance(notebook.parse(files.read(submission).file.content), notebook.RawNotebook)

    return [of_member(student, group, own, time, is_readable, due(student)) for student, group in members.items()]


def of_member(
    student: str,
    members: Sequence[str],
    submission: Callable[[str], Submission],
    time: Callable[[Submission], datetime | None],
    is_readable: Callable[[Submission], bool],
    due: datetime | None,
) -> Submission:
    """Return the submission that counts for a student: the group's latest by the student's due date, else the latest.

    Unreadable files count only if the group has no other; the note names those that would have counted.

    members: everyone in the group, the student included. submission: returns a member's own. time: returns the time of
    one in UTC; None if it is unknown. A submission of unknown time is in time, and earlier than all others.
    Of submissions at the same time, the one of the first student by id counts.
    """
    submissions = [own for member in sorted(members) if (own := submission(member)).notebook is not None]
    if not submissions or list(members) == [student]:
        return submission(student)

    def order(own: Submission) -> tuple[bool, datetime]:
        moment = time(own)
        return due is None or moment is None or moment <= due, moment or datetime.min

    ranked, best = submissions, submissions[0]
    if len(submissions) > 1:  # otherwise no file is read: `serve` polls a class this way
        ranked = sorted(submissions, key=order, reverse=True)
        best = next(filter(is_readable, ranked), ranked[0])
    unread = [printable(own.student) for own in ranked[: ranked.index(best)]]
    warning = f"{UNREAD}{', '.join(unread)}." if unread else ""
    if best.student == student:
        return replace(best, note=joined(warning, best.note), warning=warning)
    note = f"This is your group's submission, submitted by {printable(best.student)}."
    return replace(best, student=student, author=best.student, note=joined(warning, note, best.note), warning=warning)


def _why_not(name: str, known: Collection[str], folders: list[str], gradebook: nbgrader_course.Database) -> str:
    """Return why a name cannot be a student of this class; empty if it can. known: ids of the roster and gradebook."""
    if not gradebook.holds_id(name):
        return _TOO_LONG
    if name in known:
        return "" if is_one_name(name) else _NO_FOLDER
    if not can_be_id(name):
        return f"a new student's id has {RULE}. Rename this folder."
    composed = unicodedata.normalize("NFC", name)
    if name != composed and (composed in known or composed in folders):
        return "another student's id has the same letters in another Unicode form. Merge the two folders."
    return ""


@dataclass(frozen=True)
class GradedSubmission:
    """A submission and the report on it."""

    submission: Submission
    content: bytes | UnreadableNotebook
    """The part of the file that was graded, or the reason why the file cannot be read."""
    report: Report
    stamp: bytes | None = None
    """Content of the time stamp next to the notebook."""


class BatchGrading(AbstractContextManager[Any], Protocol):
    """Source of the reports on a class's submissions, for the one writer of a batch."""

    def start(self) -> Ready:
        """Begin the batch, and return the conditions under which submissions are graded. Raises GradingRefused."""
        ...

    def graded(self) -> Iterator[GradedSubmission]:
        """Yield every submission once, as soon as it is graded. Raises GradingRefused and GradingStopped."""
        ...

    def repaired(self, reports: Mapping[str, Report]) -> Iterator[GradedSubmission | None]:
        """Yield graded submissions again once their unexplained answers were searched for repairs.

        reports: by student. None stands for a submission whose report stays as it is, for example because its file was
        replaced.
        """
        ...


def grade_submission(
    pool: GradingPool, number: int, files: SubmissionFiles, unit: str, submission: Submission, tries: int = 1
) -> GradedSubmission:
    """Grade a submission in the pool's process with this number. Raises GradingRefused and GradingStopped.

    tries: see `GradingPool.grade`.
    """
    read = files.read(submission)
    name = f"{submission.folder}/{unit}/{submission.notebook}"
    request = GradeNotebook(name, read.file.content, unit, read.file.digest, submission.note)
    return GradedSubmission(submission, read.file.content, pool.grade(request, number, tries=tries), read.stamp)


class LocalGrading(AbstractContextManager["LocalGrading"]):
    """Batch that is graded by processes on this machine."""

    def __init__(
        self,
        work: Assignment,
        submissions: Sequence[Submission],
        *,
        device: Device,
        settings: Settings,
        process_count: int,
    ) -> None:
        """submissions: those without a notebook get no report. process_count: limit of processes."""
        self._to_grade = [submission for submission in submissions if submission.notebook is not None]
        self._unit = work.unit.name
        self._files = work.files
        self._size = max(1, min(process_count, len(self._to_grade) // EACH))
        self._pool = pool_for_class(work.root, work.submitted, device, settings, self._size, self._unit)
        self._pool.start()

    def start(self) -> Ready:
        """Wait for the processes. Raises GradingRefused and GradingStopped."""
        return self._pool.ready()

    def graded(self) -> Iterator[GradedSubmission]:
        """Yield every submission once, as soon as it is graded. Raises GradingRefused and GradingStopped."""
        waiting = iter(self._to_grade)
        first = islice(waiting, (1 + _AHEAD) * self._size)
        pending = {self._pool.submit(self._grade, submission) for submission in first}
        while pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=lambda one: one.exception() is not None):  # an exception ends the batch
                yield future.result()
                pending |= {self._pool.submit(self._grade, submission) for submission in islice(waiting, 1)}

    def repaired(self, reports: Mapping[str, Report]) -> Iterator[GradedSubmission | None]:
        """Yield graded submissions again once their unexplained answers were searched for repairs.

        reports: by student. None stands for a submission whose report stays as it is, for example because its file was
        replaced.
        """
        submissions = [submission for submission in self._to_grade if submission.student in reports]
        futures = [self._pool.submit(self._repair, one, reports[one.student]) for one in submissions]
        for future in as_completed(futures):
            yield future.result()

    def _repair(self, number: int, submission: Submission, report: Report) -> GradedSubmission | None:
        read = self._files.read(submission)
        if read.file.digest != report.submission:
            return None  # it was replaced since it was graded
        request = GradeNotebook(report.notebook, read.file.content, self._unit, read.file.digest, submission.note)
        new = self._pool.repair(request, report, number)
        return None if new == report else GradedSubmission(submission, read.file.content, new, read.stamp)

    def _grade(self, number: int, submission: Submission) -> GradedSubmission:
        return grade_submission(self._pool, number, self._files, self._unit, submission)

    def __exit__(self, *error: object) -> None:
        self._pool.close()
