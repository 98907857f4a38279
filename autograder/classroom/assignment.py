"""A unit as one class handed it in: who is in the class, and each student's file."""

from dataclasses import dataclass
from pathlib import Path

from .. import course
from ..nbgrader_plugin.course_directory import course_directory
from . import gradebook, roster
from .hand_in import HandIn, hand_ins, passed_over, who_handed_in

ROSTER = "roster.csv"


class NothingToGrade(Exception):
    """There is no class to grade; `str()` says what was looked for and where."""


@dataclass(frozen=True)
class Assignment:
    """A unit as one class handed it in."""

    unit: course.Unit
    root: Path
    submitted: Path
    students: list[roster.Student]
    hand_ins: list[HandIn]
    nameless: list[str]
    """Folders of submissions whose names are no text that a gradebook could hold; nobody is graded for them."""
    passed_over: list[str]
    """What lies among the submissions and was not looked at: it is no STUDENT/UNIT/."""
    not_on_roster: list[str]
    """Who handed in and is in the class for that alone, though there is a roster."""


def assignment(unit_name: str, root: Path, submitted: Path | None, roster_file: Path | None) -> Assignment:
    """Who is in the class and what they handed in.

    The roster is a file, else ROOT/roster.csv, else the gradebook's students; who handed in belongs to the class too.
    Raises UnknownUnit, NothingToGrade, BadRoster and CourseProblem.
    """
    unit = course.unit(unit_name)
    if not (course.RELEASE / unit_name / f"{unit_name}.ipynb").is_file():
        raise NothingToGrade(f"`{unit_name}` has no release/{unit_name}/{unit_name}.ipynb: run `autograder build`.")
    root = root.resolve()
    if not root.is_dir():
        raise NothingToGrade(f"The course folder {root} is not there.")
    if submitted and not submitted.is_dir():
        raise NothingToGrade(f"The folder of submissions {submitted} is not there.")
    submitted = (submitted or root / course_directory(root).submitted_directory).resolve()
    roster_file = roster_file or (root / ROSTER if (root / ROSTER).exists() else None)
    students = roster.read(roster_file) if roster_file else gradebook.students(root)
    known = {student.id for student in students}
    new = [name for name in who_handed_in(submitted, unit_name) if name not in known]
    students += [roster.Student(name) for name in new if roster.names_a_folder(name)]
    nameless = [ascii(name)[1:-1] for name in new if not roster.names_a_folder(name)]
    if not students:
        raise NothingToGrade(
            f"Nobody has handed in `{unit_name}`: there is no {submitted}/<student>/{unit_name}/{unit_name}.ipynb, "
            f"and no roster in {root / ROSTER}."
        )
    handed_in = hand_ins(submitted, unit_name, [student.id for student in students])
    return Assignment(
        unit,
        root,
        submitted,
        students,
        handed_in,
        nameless,
        passed_over(submitted, {*course.unit_names(), *gradebook.assignments(root)}),
        [name for name in new if roster_file and roster.names_a_folder(name)],
    )
