"""Who may be a student in the gradebook: those who are already, and the names that `handed_in.student_id` allows."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy.engine import make_url

from ..gradebook import database, entry
from ..submitted.folder import is_one_name
from ..submitted.student_id import can_be_id

_SQLITE = "sqlite:///"


def may_be_graded(course_directory: Any) -> Callable[[str], bool]:
    """Tells whether a folder name in the course is a student's, enrolled or new. Raises CourseProblem."""
    url = str(course_directory.db_url)
    is_file = url.startswith(_SQLITE)
    enrolled = _in_file(Path(make_url(url).database or "")) if is_file else _on_server(course_directory)
    longest = float("inf") if is_file else database.LONGEST_ID
    return lambda name: is_one_name(name) and (name in enrolled or (can_be_id(name) and len(name) <= longest))


def _in_file(file: Path) -> set[str]:
    """The ids in the gradebook, wherever nbgrader's settings put it; none if there is no gradebook yet."""
    if not file.is_file():
        return set()
    with closing(sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True)) as opened:
        return {name for (name,) in opened.execute("select id from student")}


def _on_server(course_directory: Any) -> set[str]:
    with database.reading_from(database.of_directory(course_directory)) as session:
        return {one.id for one in entry.students(session)} if session else set()
