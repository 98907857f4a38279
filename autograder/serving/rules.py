"""What an instructor sets for a course that is served, and what is said of each submission."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

import msgspec

from ..client.requests import Device
from ..course.settings import Settings
from ..gradebook.records import Attempt, Try
from ..report import SubmissionStatus

Show = Literal["check", "names", "all"]
HOUR = 3600.0
MOST_TRIES = 2
"""Number of tries by one version of the autograder to grade a file that gets no grade."""
MOST_FAILED = 4
"""After this number of tries within an hour without a grade, the student's next file waits."""


@dataclass(frozen=True)
class Rules:
    """How often a student's files are marked, and what the student sees before the due date."""

    attempts: int | None = None
    """In any hour; None for no limit."""
    show: Show = "all"
    """check: what the public examples say. names: the mistakes by name. all: the usual page."""

    def waits_until(self, attempts: list[Attempt], now: float) -> float | None:
        """When a further file of a student's may be marked, in seconds since 1970; None if it may be at once.

        attempts: the student's. One that is more than an hour ahead was dated by a clock that was wrong.
        """
        return None if self.attempts is None else _until([its.marked_at for its in attempts], self.attempts, now)


def failures_wait_until(tries: list[Try], now: float) -> float | None:
    """Return the time from which a student's next file may be graded after failed tries; None if at once."""
    return _until([its.begun_at for its in tries], MOST_FAILED, now)


def _until(moments: list[float], most: int, now: float) -> float | None:
    last = sorted(moment for moment in moments if now - HOUR < moment <= now + HOUR)
    return last[-most] + HOUR if len(last) >= most else None


@dataclass(frozen=True)
class Terms:
    """On what a course is served."""

    root: Path
    device: Device
    settings: Settings
    rules: Rules
    roster: Path | None
    id_column: str | None
    unlisted: bool = False
    """True if requests may submit for ids that are not on the roster."""


class Served(msgspec.Struct, frozen=True):
    """What became of one submission."""

    time: datetime
    unit: str
    student: str
    status: SubmissionStatus | Literal["waits"]
    """waits: too many of this student's were marked in the last hour, or could not be graded."""
    score: float = 0.0
    """Given by the graders."""
    max_score: float = 0.0
    seconds: float = 0.0
    """From when it was noticed until its page was there."""
    waits_until: datetime | None = None
    not_written: list[str] = []
    """The exercises in whose cells nothing is written."""
    problem: str = ""
    """Why the mark could not be recorded; empty if it was."""
    time_stamp: str = ""
    """Text of the time stamp if it does not determine a time, so that lateness is unknown; else empty."""


class HandedIn(msgspec.Struct, frozen=True):
    """What is answered to who hands in for a student by a request: no more than the student may see."""

    unit: str
    student: str
    submission: str
    """SHA-256 of the file."""
    handed_in: datetime
    status: Literal["received", "marked", "waits", "replaced", "not_recorded"] = "received"
    """received: it is in the course's folder, and is marked as soon as may be. waits: too many of this student's were
    marked in the last hour, or could not be graded. replaced: the student has handed in another file since, which
    counts in its place. not_recorded: the mark could not be recorded; the instructor is told why."""
    waits_until: datetime | None = None
    score: float | None = None
    """Given by the graders; null where the student may not see it yet."""
    max_score: float | None = None
    page: str = ""
    """The page that the student sees, as HTML, once it is marked."""
