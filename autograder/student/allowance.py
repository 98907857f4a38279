"""What the answers to one exercise may cost the trusted side, whatever they are.

A single answer is bounded by `core.packing`; here is what all of them together come to. What one submission
costs is bounded by the number of its exercises.
"""

import time

from ..core.faults import Unusable

MOST_BYTES = 32 << 20
"""Of tensors: sixty times what the largest right answers to an exercise send."""
MOST_CPU_SECONDS = 10.0
"""Of the grader's own: a hundred times what it takes with right answers."""


class Allowance:
    """What is left for one exercise."""

    def __init__(self, most_bytes: int = MOST_BYTES, most_cpu_seconds: float = MOST_CPU_SECONDS) -> None:
        self._most_bytes = most_bytes
        self._most_cpu_seconds = most_cpu_seconds
        self.renew()

    def renew(self) -> None:
        """Begins with the next exercise: one costs another nothing."""
        self._bytes = 0
        self._began = time.thread_time()

    def take(self, received: int) -> None:
        """Notes the bytes of tensors that have come."""
        self._bytes += received

    def check(self) -> None:
        """Raises Unusable where there is nothing left, so that no more is asked in this exercise."""
        if self._bytes > self._most_bytes:
            raise Unusable("Not run: what it gave back before is together far larger than what this exercise asks for.")
        if time.thread_time() - self._began > self._most_cpu_seconds:
            raise Unusable("Not run: what it gave back before took far longer to look at than right results take.")
