"""Whose turn it is: of what waits, first what is of the student for whom least time was spent lately."""

import time
from typing import Generic, TypeVar

T = TypeVar("T")
_HALF_SECONDS = 600.0
"""After so long half of what was spent is forgotten."""


class Turns(Generic[T]):
    """What waits. Not for several threads: whoever has it sees to that."""

    def __init__(self) -> None:
        self._waiting: list[tuple[str, T]] = []
        self._spent: dict[str, tuple[float, float]] = {}
        """Seconds, as they were at a moment."""
        self._begun: dict[str, list[float]] = {}
        """What is being done for a student counts while it is done."""

    def put(self, student: str, what: T) -> None:
        """Puts it at the end of what waits."""
        self._waiting.append((student, what))

    def take(self) -> tuple[str, T]:
        """Whose turn it is, and what; of equals the first one. `done` has to be called after it."""
        best, least, now = 0, float("inf"), time.monotonic()
        for place, (student, _) in enumerate(self._waiting):
            if (spent := self._spent_for(student, now)) < least:
                best, least = place, spent
            if not least:
                break
        student, what = self._waiting.pop(best)
        self._begun.setdefault(student, []).append(now)
        return student, what

    def done(self, student: str) -> None:
        """What was taken for the student is done: the time that it took is counted."""
        begun = self._begun[student]
        now = time.monotonic()
        before = self._spent_for(student, now)
        del begun[0]
        if not begun:
            del self._begun[student]
        self._spent[student] = before - sum(now - moment for moment in begun), now

    def _spent_for(self, student: str, now: float) -> float:
        seconds, moment = self._spent.get(student, (0.0, now))
        running = sum(now - begun for begun in self._begun.get(student, ()))
        return seconds * float(0.5 ** ((now - moment) / _HALF_SECONDS)) + running

    def __len__(self) -> int:
        return len(self._waiting)
