"""Cache the repairs of an answer within one grading process, by its text and the text of all that it reaches.

Example: twenty students submit the same wrong code. The first submission is searched; for the others, the cached
repairs are made in their own notebook, which is graded. Constants and other cells may differ there, so a repair after
which other tests fail there is dropped. If nothing was found for the first, nothing is searched for the others.

A process collects the hidden tests once, when it starts. So they are no part of the key, and nothing is stored on disk.
"""

from collections.abc import Sequence, Set
from dataclasses import replace

from .. import course
from ..tracing.definitions import Definition
from .repair_search import find_repairs
from .repair_time import RepairTime
from .unexplained_answer import Repaired, UnexplainedAnswer

_Key = tuple[str, course.Exercise, tuple[tuple[str, str], ...]]


class RepairCache:
    """The repairs that one grading process found."""

    def __init__(self) -> None:
        self._repairs: dict[_Key, list[Repaired]] = {}

    def find_repairs(self, answer: UnexplainedAnswer, suspected: Set[int], time: RepairTime) -> list[Repaired]:
        """Return the repairs of an answer, as `repair_search.find_repairs` does. Raises SandboxLost."""
        reached = answer.definitions()
        key = answer.unit.name, answer.exercise, tuple((one.name, one.text) for one in reached)
        if (known := self._repairs.get(key)) is not None:
            moved = [_moved(one, reached) for one in known]
            verified = [one for one in moved if answer.graded(one) == one]
            if verified or not known:
                return verified
        found = find_repairs(answer, suspected, time)
        if found or not time.is_short:
            self._repairs.setdefault(key, found)
        return found


def _moved(repair: Repaired, reached: Sequence[Definition]) -> Repaired:
    """Return a repair of the same definitions in another notebook, where they may be in other cells and lines."""
    places = {one.name: one for one in reached}

    def moved(definition: Definition) -> Definition:
        place = places[definition.name]
        return replace(definition, cell=place.cell, first_line=place.first_line)

    steps = tuple(replace(step, definition=moved(step.definition)) for step in repair.steps)
    return replace(repair, steps=steps)
