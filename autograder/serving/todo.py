"""What waits for a marker: files that were handed in go first, and what is only asked for never takes all markers.

Students take turns, and of each one file at a time is graded: see `round_robin`.
"""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from ..classroom.assignment import Assignment
from ..classroom.submissions import HandIn
from ..report import Report
from ..submitted.notebook_file import NotebookFile
from .round_robin import RoundRobin

HandedIn = tuple[Assignment, HandIn]
_ENDING = "This `autograder serve` is ending."


@dataclass(frozen=True)
class Asked:
    """A notebook that somebody wants marked and not recorded."""

    name: str
    """As it stands in the report."""
    file: NotebookFile
    answer: Callable[[Report | str], None]
    """Is told the report, or why there is none."""
    is_wanted: Callable[[], bool]
    """Whether anybody still waits for it."""


class Todo:
    """For threads: each takes what it does next."""

    def __init__(self, markers: int) -> None:
        self._changed = threading.Condition()
        self._handed_in: RoundRobin[HandedIn] = RoundRobin()
        self._asked: deque[Asked] = deque()
        self._most_asked = max(1, markers // 2)
        """So many markers at the most are busy with what is only asked for."""
        self._being_asked = 0
        self._is_closed = False

    def put(self, todo: HandedIn | Asked) -> None:
        """Puts it at the end of what is of its kind; once it is closed, what is only asked for is refused."""
        with self._changed:
            if isinstance(todo, Asked) and self._is_closed:
                todo.answer(_ENDING)
            elif isinstance(todo, Asked):
                self._asked.append(todo)
            else:
                self._handed_in.put(todo[1].student, todo)
            self._changed.notify_all()

    def take(self) -> HandedIn | Asked | None:
        """Waits for the next; None once it is closed. `is_done` has to be called after it."""
        with self._changed:
            while not self._is_closed:
                if (handed_in := self._handed_in.take()) is not None:
                    return handed_in
                if self._asked and self._being_asked < self._most_asked:
                    self._being_asked += 1
                    return self._asked.popleft()
                self._changed.wait()
            return None

    def is_done(self, todo: HandedIn | Asked) -> None:
        """What was taken is done with."""
        with self._changed:
            if isinstance(todo, Asked):
                self._being_asked -= 1
            else:
                self._handed_in.done(todo[1].student)
            self._changed.notify_all()

    def close(self) -> None:
        """Ends all waiting; what is only asked for gets no report."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            while self._asked:
                self._asked.popleft().answer(_ENDING)
