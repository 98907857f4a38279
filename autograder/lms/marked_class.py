"""A class's marks, with the roster and with who has handed in: what tables are made of."""

from pathlib import Path

from ..gradebook import marks
from ..gradebook.class_list import class_list
from ..gradebook.course_directory import CourseProblem, course_directory
from ..handed_in.opened_folder import OpenedFolder
from .tables import MarkedClass


def marked_class(root: Path, units: list[str], roster: Path | None, id_column: str | None) -> MarkedClass:
    """The marks of a course folder's class. Raises UnknownUnit, NoMarks, BadRoster and CourseProblem."""
    if not root.is_dir():
        raise CourseProblem(f"The course folder {root} is not there.")
    of_units = marks.of_units(root, units)
    people = class_list(root, roster, id_column).roster
    submitted = root / course_directory(root).submitted_directory
    everyone = {student.id for student in people.students}
    handed_in = {
        unit.unit: frozenset(s for s in everyone - set(unit.marks) if _has_handed_in(submitted / s / unit.unit))
        for unit in of_units
    }
    return MarkedClass(people, of_units, handed_in)


def _has_handed_in(folder: Path) -> bool:
    try:
        with OpenedFolder.of_student(folder) as opened:
            return bool(opened.names())
    except (OSError, ValueError):
        return False
