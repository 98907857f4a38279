"""A queue that takes students in turns, and of each student one item at a time."""

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class RoundRobin(Generic[T]):
    """Queue of items that takes students in turns. It is not thread-safe: the owner of the queue holds a lock."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[T]] = {}
        """By student, in the order of their turns."""
        self._busy: set[str] = set()

    def put(self, student: str, item: T) -> None:
        """Append an item to those of its student, who gets a turn after everyone who waits already."""
        self._waiting.setdefault(student, deque()).append(item)

    def take(self) -> T | None:
        """Return the next item of a student without another item in progress, or None. Call `done` after it."""
        student = next((student for student in self._waiting if student not in self._busy), None)
        if student is None:
            return None
        items = self._waiting.pop(student)
        item = items.popleft()
        if items:
            self._waiting[student] = items  # behind the others
        self._busy.add(student)
        return item

    def done(self, student: str) -> None:
        """The student's item that was taken is done."""
        self._busy.discard(student)
