"""Who is in the class: a CSV file, or the students in the gradebook."""

import csv
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..handed_in.student_id import RULE, can_be_id
from ..notebook import printable

TEMPLATE = "id,first_name,last_name,email\n"
"""A roster that nobody is on yet."""


class BadRoster(Exception):
    """The roster cannot be used; `str()` says why and what to do."""


@dataclass(frozen=True)
class Enrolled:
    """A student as nbgrader knows one."""

    id: str
    first_name: str | None = None
    last_name: str | None = None
    email: str | None = None


def is_filled_in(path: Path) -> bool:
    """Whether there is a roster with more in it than the template."""
    try:
        return path.read_text(encoding="utf-8-sig").strip() != TEMPLATE.strip()
    except FileNotFoundError:
        return False
    except (OSError, UnicodeDecodeError):
        return True  # `read` says what is wrong


def read(path: Path, enrolled: Collection[str] = ()) -> list[Enrolled]:
    """The students of a CSV file with a column `id`, in its order; raises BadRoster.

    enrolled: the ids that are already in the gradebook, to which the rule for new ids does not apply. The columns
    first_name, last_name and email are read too, as in the format of `nbgrader db student import`.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            rows = [(reader.line_num, _student(row), any(map(row.get, reader.fieldnames or []))) for row in reader]
    except OSError as error:
        raise BadRoster(f"The roster {path} cannot be read: {error.strerror}.") from None
    except (UnicodeDecodeError, csv.Error):
        raise BadRoster(f"The roster {path} is not a CSV file in UTF-8.") from None
    students = [student for _, student, is_filled in rows if is_filled]
    if not any(student.id for student in students):
        raise BadRoster(f"The roster {path} names nobody: it needs a header with a column `id`, and a line a student.")
    without = [str(line) for line, student, is_filled in rows if is_filled and not student.id]
    if without:
        raise BadRoster(f"The roster {path} has no id in line {', '.join(without)}: give one, or take the line out.")
    repeated = [name for name, count in Counter(student.id for student in students).items() if count > 1]
    if repeated:
        raise BadRoster(f"The roster {path} has {', '.join(map(printable, sorted(repeated)))} more than once.")
    unsafe = [ascii(one.id)[1:-1] for one in students if one.id not in enrolled and not can_be_id(one.id)]
    if unsafe:
        raise BadRoster(
            f"The roster {path} has ids that no new student can have: {', '.join(unsafe)}. An id has {RULE}."
        )
    return students


def _student(row: Mapping[str, str | None]) -> Enrolled:
    def column(name: str) -> str | None:
        return (row.get(name) or "").strip() or None

    return Enrolled(column("id") or "", column("first_name"), column("last_name"), column("email"))
