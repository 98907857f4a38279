"""Lateness of a submission and its penalty in points, for grading, the dry run and all pages."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any

from nbgrader.preprocessors import AssignLatePenalties
from sqlalchemy.orm import Session

from ..course.notebook import printable
from . import records
from .course_directory import CourseProblem
from .time_stamp import SubmissionTime


class LatePenalties:
    """The late submission plugin that the course's nbgrader_config.py names, or nbgrader's own."""

    def __init__(self, directory: Any) -> None:
        """directory: the course, as nbgrader has it. Raises CourseProblem if the plugin cannot be created."""
        try:
            preprocessor = AssignLatePenalties(config=directory.config)
            self._plugin = preprocessor.plugin_class(parent=preprocessor)
        except Exception as error:  # the instructor's code, and its settings
            raise CourseProblem(f"The course's late submission plugin cannot be used: {_named(error)}.") from error

    def penalty(self, student: str, score: float, late: timedelta) -> float | None:
        """Return the points that a submission with this score loses, at most all of them; None for no penalty.

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
    return submission.duedate if submission.assignment.duedate else None


def is_past_due(submission: Any) -> bool:
    """Return whether the due date with the submission's extension has passed; False without a due date."""
    date = due(submission)
    return date is not None and datetime.now(UTC).replace(tzinfo=None) > date


def lateness(submission: Any) -> timedelta:
    """Return the time between the due date and the submission; zero if in time, or if either time is unknown."""
    return timedelta(seconds=submission.total_seconds_late if due(submission) else 0)


def in_words(late: timedelta) -> str:
    """Return a delay as text, rounded up to minutes, from two hours on to hours, from two days on to days."""
    for unit, seconds in (("days", 86_400), ("hours", 3_600)):
        if late.total_seconds() >= 2 * seconds:
            return f"{math.ceil(late.total_seconds() / seconds)} {unit}"
    minutes = math.ceil(late.total_seconds() / 60)
    return f"{minutes} minute{'' if minutes == 1 else 's'}"


def record_time(session: Session, notebook: Any, time: SubmissionTime, submission: str) -> None:
    """Record the time of a submitted notebook, or that its time stamp does not determine it.

    A file without a stamp keeps its earlier time if it has not changed: instructors may set that time themselves.
    submission: SHA-256 of the file, whose provenance is recorded later.
    """
    before = records.provenance(session, notebook.id)
    if time != SubmissionTime() or (before and before.submission != submission):
        notebook.assignment.timestamp = time.utc
    records.put_unresolved_stamp(session, notebook.id, time.unresolved)


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {printable(' '.join(str(error).split())).removesuffix('.')}"
