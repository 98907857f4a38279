"""Who is in the class of a course folder: its roster, or else the students in its gradebook."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..course import settings
from ..course.notebook import printable
from . import class_gradebook, roster

ROSTER = "roster.csv"
_MOST_NAMED = 5


class Strangers(roster.BadRoster):
    """Nobody who handed in a unit is on the roster; other units may have nothing of the kind."""


@dataclass(frozen=True)
class ClassList:
    """Who is in the class, and who was."""

    roster: roster.Roster
    file: Path | None
    """The roster; None where there are the gradebook's students alone."""
    enrolled: frozenset[str]
    """The ids in the gradebook."""
    assignments: tuple[str, ...]
    """The names of the gradebook's assignments, whether this kit's or not."""

    def refuse_strangers(self, handed_in: Sequence[str], unit: str) -> None:
        """Raises Strangers where nobody who handed in is on the roster: its ids are not what folders are called by.

        One alone may be a newcomer.
        """
        ids = [student.id for student in self.roster.students]
        if self.file and len(handed_in) > 1 and set(ids).isdisjoint(handed_in):
            raise Strangers(
                f"Nobody who handed in {unit} is on the roster {self.file}: there are submissions of "
                f"{_some(handed_in)}, and its ids are {_some(ids)}. Nothing in this unit is graded. If another column "
                "has the ids, `--id-column` names it; else put these students on the roster."
            )


def class_list(root: Path, file: Path | None = None, id_column: str | None = None) -> ClassList:
    """The roster is the given file, else ROOT/roster.csv if somebody is on it, else the gradebook's students.

    id_column, and what else is to know about the roster, are as the class's settings have them if not given.
    Raises BadRoster, NoCourse and CourseProblem.
    """
    students, assignments = class_gradebook.students_and_assignments(root)
    enrolled = frozenset(student.id for student in students)
    file = file or (root / ROSTER if roster.is_filled_in(root / ROSTER) else None)
    if file:
        try:
            its = settings.of_roster(root)
        except settings.BadSettings as reason:
            raise roster.BadRoster(str(reason)) from None
        found = roster.read(file, enrolled, id_column or its.id_column, its.header)
    else:
        found = roster.own(students)
    return ClassList(found, file, enrolled, tuple(assignments))


def _some(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _MOST_NAMED} more" if len(ids) > _MOST_NAMED else ""
    return ", ".join(printable(one[:100]) for one in ids[:_MOST_NAMED]) + more
