"""A unit as one class handed it in: who is in the class, and each student's file."""

import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import course
from ..course import notebook
from ..course.folder import folder
from ..errors import UserError
from ..gradebook import database, roster
from ..gradebook.class_list import ROSTER, class_list
from ..gradebook.course_directory import course_directory
from ..submitted.folder import is_one_name
from ..submitted.student_id import RULE, can_be_id
from .hand_in import HandIn, Newest, Submissions

_TOO_LONG = (
    f"the gradebook is on a server, where an id has {database.LONGEST_ID} characters at most. Give the student another "
    "one."
)
_NO_FOLDER = "the gradebook has this id, which cannot be a folder's name. Give the student another one."


class NothingToGrade(UserError):
    """There is no class to grade; `str()` says what was looked for and where."""


@dataclass(frozen=True)
class NotGraded:
    """A folder of submissions, or a student in the gradebook, that cannot be graded."""

    name: str
    """In printable form."""
    reason: str


@dataclass(frozen=True)
class Assignment:
    """A unit as one class handed it in."""

    unit: course.Unit
    root: Path
    directory: Any
    """The course as nbgrader has it, with its settings."""
    submitted: Path
    submissions: Submissions
    students: list[roster.Enrolled]
    hand_ins: list[HandIn]
    refused: list[NotGraded]
    passed_over: list[str]
    """What is among the submissions and was not looked at, because it is not STUDENT/UNIT/."""
    not_on_roster: list[str]
    """Students who are in the class only because they handed in, although there is a roster."""
    listed: roster.Roster
    """Who is on the roster, and what to say about how it was read."""


def assignment(
    unit_name: str,
    root: Path,
    submitted: Path | None,
    roster_file: Path | None,
    id_column: str | None = None,
    newest: Newest | None = None,
) -> Assignment:
    """Who is in the class and what they handed in: everyone in the class list, and everyone who handed in.

    newest: see `Submissions`.

    Raises UnknownUnit, UnusableUnit, NothingToGrade, BadRoster and CourseProblem.
    """
    root = root.resolve()
    if not root.is_dir():
        raise NothingToGrade(f"The course folder {root} is not there.")
    unit = course.unit(unit_name, root)
    course.refuse_removed_exercises(unit)
    if not course.released(unit_name, root).is_file():
        makes = (
            "autograder build" if course.units_root(root) == folder() else f"nbgrader generate_assignment {unit_name}"
        )
        raise NothingToGrade(f"`{unit_name}` has no release/{unit_name}/{unit_name}.ipynb: run `{makes}`.")
    if submitted and not submitted.is_dir():
        raise NothingToGrade(f"The folder of submissions {submitted} is not there.")
    directory = course_directory(root)
    submitted = (submitted or root / directory.submitted_directory).resolve()
    try:
        submissions = Submissions(submitted, unit_name, root, newest)
        handed_in = submissions.students()
    except OSError as error:
        raise NothingToGrade(f"The folder of submissions {submitted} cannot be read: {error.strerror}.") from None
    listed = class_list(root, roster_file, id_column)
    listed.refuse_strangers(handed_in, unit_name)
    students = listed.roster.students
    known = {student.id for student in students}
    of_old = known | listed.enrolled
    new = [name for name in handed_in if name not in known]
    gradebook = database.of_directory(directory)
    too_long = [name for name in (*(student.id for student in students), *new) if not gradebook.holds_id(name)]
    refused = [
        *(NotGraded(student.id, _NO_FOLDER) for student in students if not is_one_name(student.id)),
        *(NotGraded(name, _TOO_LONG) for name in too_long),
        *(NotGraded(n, reason) for n in new if n not in too_long and (reason := _why_not(n, of_old, handed_in))),
    ]
    without = {one.name for one in refused}
    new = [name for name in new if name not in without]
    students = [student for student in students if student.id not in without] + [roster.Enrolled(name) for name in new]
    if not students and not refused:
        raise NothingToGrade(
            f"Nobody has handed in `{unit_name}`: there is no {submitted}/<student>/{unit_name}/{unit_name}.ipynb, "
            f"and nobody is on a roster in {root / ROSTER}."
        )
    return Assignment(
        unit,
        root,
        directory,
        submitted,
        submissions,
        students,
        [submissions.hand_in(student.id) for student in students],
        [NotGraded(notebook.printable(one.name), one.reason) for one in refused],
        submissions.passed_over({*course.unit_names(), *listed.assignments}),
        new if listed.file else [],
        listed.roster,
    )


def _why_not(name: str, known: set[str], handed_in: list[str]) -> str:
    """Why a folder's name cannot become a new student; empty if it can."""
    if name in known:
        return ""
    if not can_be_id(name):
        return f"a new student's id has {RULE}. Rename this folder."
    composed = unicodedata.normalize("NFC", name)
    if name != composed and (composed in known or composed in handed_in):
        return "there is a student whose id has the same letters, composed otherwise. Put these two together."
    return ""
