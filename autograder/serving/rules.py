"""What an instructor sets for a course that is served."""

from dataclasses import dataclass
from typing import Literal

from ..gradebook.attempts import Attempt

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
