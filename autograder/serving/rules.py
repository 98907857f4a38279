"""What an instructor sets for a course that is served, and what is said of each submission."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

import msgspec

from ..client.requests import Device
from ..course.settings import Settings
from ..gradebook.attempts import Attempt
from ..report import SubmissionStatus

Show = Literal["check", "names", "all"]
HOUR = 3600.0


@dataclass(frozen=True)
class Rules:
    """How often a student's files are marked, and what the student sees before the due date."""

    attempts: int | None = None
    """In any hour; None for no limit."""
    show: Show = "all"
    """check: what the public examples say. names: the mistakes by name. all: the usual page."""

    def waits_until(self, attempts: list[Attempt]) -> float | None:
        """When a further file of a student's may be marked, in seconds since 1970; None if there is no limit.

        attempts: those of the last hour, the first one first.
        """
        if self.attempts is None or len(attempts) < self.attempts:
            return None
        return attempts[-self.attempts].marked_at + HOUR


@dataclass(frozen=True)
class Terms:
    """On what a course is served."""

    root: Path
    device: Device
    settings: Settings
    rules: Rules
    roster: Path | None
    id_column: str | None


class Served(msgspec.Struct, frozen=True):
    """What became of one submission."""

    time: datetime
    unit: str
    student: str
    status: SubmissionStatus | Literal["waits"]
    """waits: too many of this student's were marked in the last hour."""
    score: float = 0.0
    """Given by the graders."""
    max_score: float = 0.0
    seconds: float = 0.0
    """From when it was noticed until its page was there."""
    waits_until: datetime | None = None
    problem: str = ""
    """Why the mark could not be recorded; empty if it was."""
