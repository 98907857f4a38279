"""Lateness of a submission and its penalty in points, for grading, the dry run and all pages.

Time stamps that determine no time are kept in a table of the autograder's own, which nbgrader ignores.
"""

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from nbgrader.preprocessors import AssignLatePenalties
from sqlalchemy import Column, MetaData, String, Table, Text, inspect, select
from sqlalchemy.engine import Engine
from sqlalchemy.orm import Session

from ..course.notebook import printable
from .course_directory import CourseProblem
from .time_stamp import SubmissionTime

_METADATA = MetaData()
UNRESOLVED = Table(
    "autograder_unresolved_stamp",
    _METADATA,
    Column("submitted_notebook_id", String(32), primary_key=True),
    Column("stamp", Text, nullable=False),
)


class LatePenalties:
    """The late submission plugin that the course's nbgrader_config.py names, or nbgrader's own."""

    def __init__(self, directory: Any) -> None:
        """directory: the course, as nbgrader has it. Raises CourseProblem if there is no such plugin."""
        try:
            preprocessor = AssignLatePenalties(config=directory.config)
            self._plugin = preprocessor.plugin_class(parent=preprocessor)
        except Exception as error:  # the instructor's code, and its settings
            raise CourseProblem(f"The course's late submission plugin cannot be used: {_named(error)}.") from error

    def penalty(self, student: str, score: float, late: timedelta) -> float | None:
        """The points that a submission with this score loses, at most all of them; None for no penalty.

        Raises CourseProblem if the plugin fails.
        """
        if late <= timedelta():
            return None
        try:
            penalty = self._plugin.late_submission_penalty(student, score, late.total_seconds())
            if penalty is not None and not math.isfinite(penalty):
                raise ValueError(f"{penalty} is no penalty")
        except Exception as error:  # the instructor's code
            raise CourseProblem(
                f"The late submission plugin {type(self._plugin).__name__} failed for {printable(student)}: "
                f"{_named(error)}. Correct it, and run this again."
            ) from error
        return None if penalty is None else min(max(float(penalty), 0.0), score)


def due(submission: Any) -> datetime | None:
    """Return the due date with the submission's extension; None without a due date (nbgrader raises TypeError then)."""
    found: datetime | None = submission.duedate if submission.assignment.duedate else None
    return found


def lateness(submission: Any) -> timedelta:
    """Return the time between the due date and the submission; zero if in time, or if either time is unknown."""
    its_due = due(submission)
    if its_due is None or submission.timestamp is None:
        return timedelta()
    late: timedelta = submission.timestamp - its_due
    return max(late, timedelta())


def in_words(late: timedelta) -> str:
    """A delay, rounded up to whole minutes, from two hours on to hours, from two days on to days."""
    for unit, seconds in (("days", 86_400), ("hours", 3_600)):
        if late.total_seconds() >= 2 * seconds:
            return f"{math.ceil(late.total_seconds() / seconds)} {unit}"
    minutes = math.ceil(late.total_seconds() / 60)
    return f"{minutes} minute{'' if minutes == 1 else 's'}"


def make_table(engine: Engine) -> None:
    """Makes the table of unresolved time stamps if it is not there."""
    _METADATA.create_all(engine)


def unresolved_stamps(session: Session) -> Mapping[str, str]:
    """The texts of time stamps that determine no time, by the gradebook's id of the submitted notebook."""
    if not inspect(session.connection()).has_table(UNRESOLVED.name):  # `nbgrader` alone makes none
        return {}
    return {row.submitted_notebook_id: row.stamp for row in session.execute(UNRESOLVED.select())}


def unresolved_stamp(session: Session, notebook: str) -> str | None:
    """The text of the submitted notebook's time stamp if it determines no time."""
    return session.scalar(select(UNRESOLVED.c.stamp).where(UNRESOLVED.c.submitted_notebook_id == notebook))


def record_time(session: Session, notebook: Any, time: SubmissionTime, *, is_same_file: bool) -> None:
    """Records when a submitted notebook came, or that its time stamp does not determine it.

    Without a stamp the time stays that of before if the file is the same: instructors may set it themselves.
    """
    if time != SubmissionTime() or not is_same_file:
        notebook.assignment.timestamp = time.utc
    session.execute(UNRESOLVED.delete().where(UNRESOLVED.c.submitted_notebook_id == notebook.id))
    if time.unresolved is not None:
        session.execute(UNRESOLVED.insert().values(submitted_notebook_id=notebook.id, stamp=time.unresolved))


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {printable(' '.join(str(error).split())).removesuffix('.')}"
