"""Who is in the class: a CSV file, or the students in the gradebook."""

import csv
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_LONGEST_NAME = 255  # bytes, on Linux and macOS


class BadRoster(Exception):
    """The roster cannot be read; `str()` says why and what to do."""


@dataclass(frozen=True)
class Student:
    """A student as nbgrader knows one."""

    id: str
    first_name: str | None = None
    last_name: str | None = None
    email: str | None = None


def read(path: Path) -> list[Student]:
    """The students of a CSV file with a column `id`, in its order; raises BadRoster.

    Columns first_name, last_name and email are taken too: it is the format of `nbgrader db student import`.
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
        raise BadRoster(f"The roster {path} has {', '.join(sorted(repeated))} more than once.")
    unsafe = [ascii(student.id)[1:-1] for student in students if not names_a_folder(student.id)]
    if unsafe:
        raise BadRoster(f"The roster {path} has ids that cannot name a folder: {', '.join(unsafe)}.")
    return students


def names_a_folder(name: str) -> bool:
    """Whether a student's id can be a folder's name, and be written down."""
    return (
        "/" not in name and not name.startswith(".") and name.isprintable() and len(os.fsencode(name)) <= _LONGEST_NAME
    )


def _student(row: Mapping[str, str | None]) -> Student:
    def column(name: str) -> str | None:
        return (row.get(name) or "").strip() or None

    return Student(column("id") or "", column("first_name"), column("last_name"), column("email"))
