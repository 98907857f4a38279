"""The part of the catalogue that every run of the tests tries; `pytest --every` tries all of it.

Of each exercise it has a mistake for each grader that one must fail, and one of each kind; and every right answer.
"""

import zlib
from collections.abc import Iterable

from autograder.catalogue import Candidate

every = False
"""Whether all of it is wanted; `conftest` sets it before a test is collected."""


def part(entries: Iterable[Candidate]) -> list[Candidate]:
    """What is tried of these, which are one unit's, in their order."""
    known = list(entries)
    if every:
        return known
    chosen: set[str] = set()
    for aspect in ("caught_by", "kind"):
        seen = {(one.exercise, getattr(one, aspect)) for one in known if one.name in chosen}
        for one in sorted(known, key=lambda one: zlib.crc32(one.name.encode())):
            if one.caught_by is None or (one.exercise, getattr(one, aspect)) not in seen:
                seen.add((one.exercise, getattr(one, aspect)))
                chosen.add(one.name)
    return [one for one in known if one.name in chosen]
