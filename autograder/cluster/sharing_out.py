"""Distribute submissions to tasks. Report a lost worker only for a submission that was alone with two lost workers."""

from collections import Counter, deque
from collections.abc import Sequence

from ..classroom.hand_in import HandIn

MOST_OF_A_TASK = 24
_DEATHS = 2
"""Number of lost workers after which a submission is blamed. One worker may be lost for another reason."""


class Todo:
    """The submissions that are not marked, nor at a worker."""

    def __init__(self, hand_ins: Sequence[HandIn]) -> None:
        self._new = deque(hand_ins)
        self._suspects: deque[HandIn] = deque()
        self._suspected: set[str] = set()
        self._deaths: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._new) + len(self._suspects)

    def take(self, workers: int) -> list[HandIn]:
        """The next task, fewer the less there is for so many workers; none where nothing is left.

        Those whose worker was lost come last, each alone.
        """
        if self._new:
            size = max(1, min(MOST_OF_A_TASK, len(self._new) // (2 * workers)))
            return [self._new.popleft() for _ in range(size)]
        return [self._suspects.popleft()] if self._suspects else []

    def put_back(self, hand_ins: Sequence[HandIn]) -> None:
        """What a worker did not mark, through no fault of these."""
        for hand_in in reversed(hand_ins):
            (self._suspects if hand_in.student in self._suspected else self._new).appendleft(hand_in)

    def worker_lost(self, hand_ins: Sequence[HandIn]) -> HandIn | None:
        """Puts back what was at a worker that died, or that gets no more because of its answer.

        Returns the one that has now been alone with too many.
        """
        if len(hand_ins) == 1:
            (alone,) = hand_ins
            self._deaths[alone.student] += 1
            if self._deaths[alone.student] >= _DEATHS:
                return alone
        self._suspected.update(hand_in.student for hand_in in hand_ins)
        self._suspects.extend(hand_ins)
        return None
