"""What an answer that the kit knows shows: all of it, taken as far as it is looked at, or at one question alone."""

from collections.abc import Callable, Iterator
from typing import Any

from .fingerprint import Known, Trace
from .question import Question
from .shown import Shown, shown


class Behaviour:
    """What one answer shows; each thing is asked of it once."""

    def __init__(self, traces: Callable[[], Iterator[Trace]], answered: Callable[[Question], Any]) -> None:
        """traces: what the graders see in it. answered: what it shows at a question."""
        self.known = Known(traces())
        self.asked: dict[Question, Shown] = {}
        self._answered = answered

    def at(self, question: Question) -> Shown:
        """What it shows at a question."""
        if question not in self.asked:
            self.asked[question] = shown(self._answered(question))
        return self.asked[question]
