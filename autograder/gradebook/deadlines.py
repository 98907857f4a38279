"""Deadlines as text for students and instructors: due date, extension, delay, and the late days spent and left."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta, tzinfo
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy.orm import Session

from ..course import settings
from ..course.late_penalty import LatePenalty
from .lateness import LateDays, due, exactly, in_words, late_days, lateness
from .time_stamp import StampFormat, in_zone


class Deadline(msgspec.Struct, frozen=True):
    """A student's due date in a unit, and the delay of the submission. Texts are empty if there is no due date."""

    due: str = ""
    """The due date with the extension, in the class's time zone, such as `2026-12-03 18:00 CET`."""
    extension: str = ""
    """The extension, such as `2 days`; empty without one."""
    late: str = ""
    """The delay, such as `15 minutes`; empty if the submission was in time, or if its time is unknown."""
    days_spent: int = 0
    """The late days that the submission takes."""
    days_left: int | None = None
    """The late days that are left after it; None if the class has none, or the unit has no due date."""
    days_of_class: int = 0
    """The late days that each student of the class has in all units together."""


@dataclass(frozen=True)
class Deadlines:
    """A class's time zone, and its rule for late submissions."""

    zone: tzinfo | None
    rule: LatePenalty | None

    @classmethod
    def of_course(cls, directory: Any) -> "Deadlines":
        """Read both from a course's settings. directory: nbgrader's CourseDirectory. Raises BadSettings."""
        return cls(StampFormat.of_course(directory).zone, settings.of_late_penalty(Path(directory.root)))

    @property
    def late_days(self) -> int:
        """The late days that each student has in all units together."""
        return self.rule.late_days if self.rule else 0

    def days_of(self, session: Session, unit: str, student: str | None = None) -> Mapping[str, LateDays]:
        """Return the late days of everyone, or of one student, in a unit; empty if the class has no late days."""
        return late_days(session, self.rule, unit, student) if self.rule and self.late_days else {}

    def of(self, submission: Any, days: LateDays | None) -> Deadline:
        """Return the deadline of one of nbgrader's submissions. days: the student's late days in the unit."""
        date = due(submission)
        if date is None:
            return Deadline()
        extension, late = exactly(submission.extension or timedelta()), lateness(submission)
        deadline = Deadline(in_zone(date, self.zone), extension, in_words(late) if late else "")
        if days is None:
            return deadline
        return msgspec.structs.replace(
            deadline, days_spent=days.spent, days_left=days.left, days_of_class=self.late_days
        )
