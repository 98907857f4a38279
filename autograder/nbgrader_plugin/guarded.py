"""Replaces those steps of nbgrader that believe what is there and have no setting to replace them.

nbgrader opens files by their paths, follows links, waits for pipes, and lets one strange time or name end the work for
the whole class. And it takes a unit for generated that is in `release/`, where a course has it from the start, even if
the gradebook has never heard of it. `guard` replaces its functions by those of this module, for as long as the process
lives.
"""

import glob
import logging
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from dateutil.tz import gettz
from nbgrader import utils
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.apps.api import NbGraderAPI
from nbgrader.converters import Autograde, GenerateAssignment
from nbgrader.converters.base import BaseConverter, NbGraderException
from nbgrader.coursedir import CourseDirectory
from tornado.log import LogFormatter

from ..course.notebook import printable
from ..gradebook.time_stamp import TIMESTAMP, StampFormat, stamp_at, time_in
from ..submitted.folder import NotAFile, OpenedFolder, read_up_to
from ..submitted.student_id import RULE
from . import literal_paths
from .enrolment import may_be_graded

_BESIDE = {TIMESTAMP: 100, "submission_secret.txt": 1000}
"""The files next to a notebook that nbgrader's later steps need, and how many bytes they may have."""

_any_converters_assignment = BaseConverter.init_assignment
_formatted = LogFormatter.format
_nbgraders_parse_utc = utils.parse_utc
_any_destination = BaseConverter.init_destination
_everyone_who_submitted = NbGraderAPI.get_submitted_students


def guard() -> None:
    """Guards this process; called from the course's settings, which all of nbgrader's programs read."""
    utils.parse_utc = _parse_utc
    literal_paths.take_literally()
    CourseDirectory.get_existing_timestamp = _existing_timestamp
    NbGraderAPI.get_submitted_timestamp = _submitted_timestamp
    NbGraderAPI.get_submitted_students = _submitted_students
    LogFormatter.format = _format  # type: ignore[method-assign]
    for name in _ABOUT_ONE_STUDENT:
        setattr(NbGraderAPI, name, _about_one_student(_ABOUT_ONE_STUDENT[name]))
    BaseConverter.init_assignment = _init_assignment
    GenerateAssignment.init_destination = _init_destination
    Autograde.init_notebooks = _init_notebooks
    Autograde.convert_notebooks = _convert_notebooks


def _format(self: Any, record: logging.LogRecord) -> str:
    """A line of nbgrader's log, in which no name that a stranger chose is a command to the terminal."""
    record.msg, record.args = "\n".join(map(printable, record.getMessage().split("\n"))), ()
    line: str = _formatted(self, record)
    return line


def _parse_utc(text: Any) -> Any:
    """A due date in UTC. nbgrader reads `+0200` as 200 seconds, and a zone that it does not know as UTC.

    Raises ValueError for an unknown zone.
    """
    if not isinstance(text, str):
        return _nbgraders_parse_utc(text)
    words = text.split(" ")
    if (moment := time_in(text.encode(), StampFormat(None))) is not None:
        return moment
    if len(words) == 3 and words[2].isalpha() and gettz(words[2]) is None:
        raise ValueError(f"{text!r} has an unknown time zone. Write an offset, such as +0200, or UTC.")
    return _nbgraders_parse_utc(text)


def _existing_timestamp(self: Any, dest_path: str) -> datetime | None:
    """Return the submission time; None without a time stamp, or if the stamp does not determine a time."""
    return time_in(stamp_at(Path(dest_path)), StampFormat.of_course(self))


def _submitted_timestamp(self: Any, assignment_id: str, student_id: str) -> datetime | None:
    directory = self.coursedir
    return _existing_timestamp(
        directory, directory.format_path(directory.submitted_directory, student_id, assignment_id)
    )


def _submitted_students(self: Any, assignment_id: str) -> set[str]:
    """The students with a folder; formgrader would list any folder, and a click on one called `*` would act on all."""
    return set(filter(may_be_graded(self.coursedir), _everyone_who_submitted(self, assignment_id)))


def _about_one_student(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method taking the student's id literally, where nbgrader takes it for a pattern of ids."""

    def about_one(self: Any, assignment_id: str, student_id: str | None = None, **options: Any) -> Any:
        return method(self, assignment_id, student_id and glob.escape(student_id), **options)

    return about_one


_ABOUT_ONE_STUDENT: dict[str, Callable[..., Any]] = {
    name: getattr(NbGraderAPI, name) for name in ("autograde", "generate_feedback", "release_feedback")
}


def _init_assignment(self: Any, assignment_id: str, student_id: str) -> None:
    """Copies the files next to the notebooks; from a submission no more than nbgrader needs."""
    if not isinstance(self, Autograde):
        _any_converters_assignment(self, assignment_id, student_id)
        return
    source = Path(self._format_source(assignment_id, student_id))
    destination = Path(self._format_dest(assignment_id, student_id))
    for name, limit in _BESIDE.items():
        content = _read(source, name, limit)
        if content is not None:
            destination.mkdir(parents=True, exist_ok=True)
            (destination / name).unlink(missing_ok=True)
            (destination / name).write_bytes(content)


def _init_destination(self: Any, assignment_id: str, student_id: str) -> bool:
    """Whether to generate a unit: also one that is in release/ already, if the gradebook has yet to learn of it."""
    if not self.no_database and not self.force:
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            try:
                gradebook.find_assignment(assignment_id)
            except MissingEntry:
                self.force = True
    is_to_do: bool = _any_destination(self, assignment_id, student_id)
    return is_to_do


def _init_notebooks(self: Any) -> None:
    """Finds the notebooks to mark: those of students, and of names that may become students.

    A folder in which no notebook has its name is left alone, with the mark that it has: nbgrader would take it apart.
    """
    BaseConverter.init_notebooks(self)
    is_student = may_be_graded(self.coursedir)
    named = _notebook_names(self.coursedir)
    self._not_named = []
    pattern = self._format_source("(?P<assignment_id>.*)", "(?P<student_id>.*)", escape=True)
    for path in list(self.assignments):
        found = re.match(pattern, path, re.DOTALL)
        student = found["student_id"] if found else Path(path).parent.name
        if not is_student(student):
            del self.assignments[path]
            self.log.error("Not graded: %s. A new student's id has %s. Rename the folder.", printable(student), RULE)
        elif not named & (names := {Path(notebook).name for notebook in self.assignments[path]}):
            del self.assignments[path]
            self._not_named.append(student)
            self.log.error(
                "Not graded: %s. There is no %s, only %s. Rename it, or use `autograder grade`, which takes any name.",
                *map(printable, (student, " or ".join(sorted(named)), ", ".join(sorted(names)))),
            )
    if not self.assignments:
        raise NbGraderException("Nobody to grade: the lines above say why.")


def _convert_notebooks(self: Any) -> None:
    """Marks them, and ends as nbgrader does where somebody was not graded."""
    BaseConverter.convert_notebooks(self)
    if self._not_named:
        raise NbGraderException(f"{len(self._not_named)} not graded: the lines above say why.")


def _notebook_names(directory: CourseDirectory) -> set[str]:
    """The files that the gradebook knows for the assignment."""
    unit = directory.assignment_id
    with Gradebook(directory.db_url, directory.course_id) as gradebook:
        try:
            return {f"{notebook.name}.ipynb" for notebook in gradebook.find_assignment(unit).notebooks}
        except MissingEntry:
            sentence = f"The gradebook has no `{unit}`: run `nbgrader generate_assignment {unit}` first."
    directory.log.error(sentence)
    raise NbGraderException(sentence)


def _read(folder: Path, name: str, limit: int) -> bytes | None:
    """The content of a file in STUDENT/UNIT, neither of which may be a link; None if there is none, or more."""
    try:
        with OpenedFolder.of_student(folder) as opened, opened.file(name) as file:
            return read_up_to(file, limit)
    except (NotAFile, OSError, ValueError):
        return None
