"""Who may be a student in the gradebook: those who are already, and the names that `handed_in.student_id` allows."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..handed_in.opened_folder import is_one_name
from ..handed_in.student_id import can_be_id

_SQLITE = "sqlite:///"


def may_be_graded(course_directory: Any) -> Callable[[str], bool]:
    """Tells whether a folder name in the course is a student's, enrolled or new."""
    enrolled = _enrolled(course_directory.db_url)
    return lambda name: is_one_name(name) and (name in enrolled or can_be_id(name))


def _enrolled(url: str) -> set[str]:
    """The ids in the gradebook; none if there is no gradebook yet."""
    file = Path(url.removeprefix(_SQLITE))
    if not url.startswith(_SQLITE) or not file.is_file():
        return set()
    with closing(sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True)) as database:
        return {name for (name,) in database.execute("select id from student")}
