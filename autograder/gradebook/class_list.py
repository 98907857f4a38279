"""Who is in the class of a course folder: its roster, or else the students in its gradebook."""

from dataclasses import dataclass
from pathlib import Path

from . import class_gradebook, roster

ROSTER = "roster.csv"


@dataclass(frozen=True)
class ClassList:
    """Who is in the class, and who was."""

    roster: roster.Roster
    has_file: bool
    """Whether there is a roster, and not the gradebook's students alone."""
    enrolled: frozenset[str]
    """The ids in the gradebook."""
    assignments: tuple[str, ...]
    """The names of the gradebook's assignments, whether this kit's or not."""


def class_list(root: Path, file: Path | None = None, id_column: str | None = None) -> ClassList:
    """The roster is the given file, else ROOT/roster.csv if somebody is on it, else the gradebook's students.

    Raises BadRoster and CourseProblem.
    """
    students, assignments = class_gradebook.students_and_assignments(root)
    enrolled = frozenset(student.id for student in students)
    file = file or (root / ROSTER if roster.is_filled_in(root / ROSTER) else None)
    found = roster.read(file, enrolled, id_column) if file else roster.own(students)
    return ClassList(found, file is not None, enrolled, tuple(assignments))
