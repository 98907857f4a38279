"""The part of the catalogue that every run of the tests tries; `pytest --every` tries all of it.

Of each exercise it has a mistake for each grader that one must fail, and one of each kind; and some right answers. The
released check, which has one way for all of a kind, is tried with one of each kind.
"""

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import pytest

from autograder.catalogue import Candidate

every = False
"""Whether all of it is wanted; `conftest` sets it before a test is collected."""
RIGHT_ANSWERS = 3
"""Of each exercise, where it has as many."""


One = TypeVar("One")


def thinned(
    alike: Iterable[One], one_in: int, least: int = 1, by: Callable[[One], object] = lambda one: one
) -> list[One]:
    """One in so many of these, and never fewer than `least` where there are as many; always the same, in their order.

    by: what tells one from another, and is written the same in each run.
    """
    known = list(alike)
    if every:
        return known
    order = sorted(range(len(known)), key=lambda place: zlib.crc32(repr(by(known[place])).encode()))
    return [known[place] for place in sorted(order[: max(least, len(known) // one_in)])]


def in_turn(exercises: Sequence[tuple[str, str]], changes: Mapping[str, str]) -> list[Any]:
    """Unit, exercise and change for a test: of each exercise another change in turn, or all where all are wanted."""
    return [
        pytest.param(unit, exercise, change, id=f"{unit}-{exercise}-{name}")
        for place, (unit, exercise) in enumerate(exercises)
        for number, (name, change) in enumerate(changes.items())
        if every or number == place % len(changes)
    ]


def part(
    entries: Iterable[Candidate], aspects: Sequence[str] = ("caught_by", "kind"), right_answers: int = RIGHT_ANSWERS
) -> list[Candidate]:
    """What is tried of these, which are one unit's, in their order: few mistakes that show all there is to show."""
    known = list(entries)
    if every:
        return known
    shuffled = sorted(known, key=lambda one: zlib.crc32(one.name.encode()))
    shown = {id(one): _shown(one, aspects) for one in known}
    missing = set[tuple[str, str, str | None]]().union(*shown.values())
    chosen: list[Candidate] = []
    for at_least in range(len(aspects), 0, -1):
        for one in shuffled:
            if len(shown[id(one)] & missing) >= at_least:
                missing -= shown[id(one)]
                chosen.append(one)
    for exercise in {one.exercise for one in known}:
        right = [one for one in shuffled if one.exercise == exercise and one.caught_by is None]
        chosen += right[:right_answers]
    places = {id(one) for one in chosen}
    return [one for one in known if id(one) in places]


def _shown(one: Candidate, aspects: Sequence[str]) -> set[tuple[str, str, str | None]]:
    """What a mistake shows of its exercise: a grader that it fails, and a kind."""
    if one.caught_by is None:
        return set()
    return {(one.exercise, aspect, getattr(one, aspect)) for aspect in aspects}
