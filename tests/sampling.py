"""The part of the catalogue that every run of the tests tries; `pytest --every` tries all of it.

Of each exercise it has a mistake for each grader that one must fail, of each unit one of each kind; and some right
answers. What `make search` found with all of them is in docs/matrix.md, which a test holds against what is there now.
"""

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import pytest

from autograder.catalogue import Candidate

every = False
"""Whether all of it is wanted; `conftest` sets it before a test is collected."""
RIGHT_ANSWERS = 2
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


def graders_and_kinds(one: Candidate) -> set[tuple[str, str | None]]:
    """What a mistake shows: a grader that it fails, and a kind."""
    return {(one.exercise, one.caught_by), ("any", one.kind)}


def exercises_and_kinds(one: Candidate) -> set[tuple[str, str | None]]:
    """Of mistakes in the released check, which has one way for all that fail alike."""
    return {(one.exercise, None), ("any", one.kind)}


def part(
    entries: Iterable[Candidate], shown: Callable[[Candidate], set[tuple[str, str | None]]] = graders_and_kinds
) -> list[Candidate]:
    """What is tried of these, which are one unit's, in their order: few mistakes that show all there is to show."""
    known = list(entries)
    if every:
        return known
    shuffled = sorted(known, key=lambda one: zlib.crc32(one.name.encode()))
    wrong = [one for one in shuffled if one.caught_by is not None]
    missing = set[tuple[str, str | None]]().union(*map(shown, wrong))
    chosen: list[Candidate] = []
    for at_least in (2, 1):
        for one in wrong:
            if len(shown(one) & missing) >= at_least:
                missing -= shown(one)
                chosen.append(one)
    for exercise in {one.exercise for one in known}:
        right = [one for one in shuffled if one.exercise == exercise and one.caught_by is None]
        chosen += right[:RIGHT_ANSWERS]
    places = {id(one) for one in chosen}
    return [one for one in known if id(one) in places]
