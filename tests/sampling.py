"""The part of the catalogue that every run of the tests tries; `pytest --every` tries all of it.

It has a mistake of each exercise, of each unit one of each kind, and one for each grader that one must fail: graders of
one name ask the same of several exercises, and are tried in one of them. And it has right answers. What `make search`
found with all of them is in docs/matrix.md, which a test holds against what is there now.
"""

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import pytest

from autograder.catalogue import Candidate

every = False
"""True if everything is tried; `conftest` sets it before a test is collected."""
RIGHT_ANSWERS = 1
"""Number of alternative solutions of each exercise that are tried, if it has as many."""

One = TypeVar("One")
Entry = tuple[str, Candidate]
"""A unit, and an answer that is known to one of its exercises."""


def thinned(
    alike: Iterable[One], one_in: int, least: int = 1, by: Callable[[One], object] = lambda one: one
) -> list[One]:
    """Return one of every `one_in` items, at least `least` if there are as many; always the same, in their order.

    by: what tells one from another, and is written the same in each run.
    """
    known = list(alike)
    if every:
        return known
    order = sorted(range(len(known)), key=lambda place: zlib.crc32(repr(by(known[place])).encode()))
    return [known[place] for place in sorted(order[: max(least, len(known) // one_in)])]


def in_turn(exercises: Sequence[tuple[str, str]], changes: Mapping[str, object]) -> list[Any]:
    """Unit, exercise and change for a test: of each exercise another change in turn, or all where all are wanted."""
    return [
        pytest.param(unit, exercise, change, id=f"{unit}-{exercise}-{name}")
        for place, (unit, exercise) in enumerate(exercises)
        for number, (name, change) in enumerate(changes.items())
        if every or number == place % len(changes)
    ]


def at_a_level(names: Iterable[str]) -> list[Any]:
    """Name and level of isolation for a test: of each name one in turn, or both where all are wanted."""
    return [
        pytest.param(name, level, id=f"{name}-{level}")
        for place, name in enumerate(names)
        for number, level in enumerate("AB")
        if every or number == place % 2
    ]


def exercises_and_kinds(unit: str, one: Candidate) -> set[tuple[str, str | None]]:
    """Return the way in which the released check finds a misconception."""
    return {(unit, one.exercise), (f"kinds of {unit}", one.kind)}


def graders_and_kinds(unit: str, one: Candidate) -> set[tuple[str, str | None]]:
    """Return the hidden tests that a misconception fails."""
    return exercises_and_kinds(unit, one) | {("graders", one.caught_by)}


def part(
    entries: Iterable[Entry], shown: Callable[[str, Candidate], set[tuple[str, str | None]]] = graders_and_kinds
) -> list[Entry]:
    """Return a part of the entries in their order: a few misconceptions that cover `shown`, and some right answers."""
    known = list(entries)
    if every:
        return known
    shuffled = sorted(known, key=lambda entry: zlib.crc32(entry[1].name.encode()))
    wrong = [entry for entry in shuffled if entry[1].caught_by is not None]
    missing = set[tuple[str, str | None]]().union(*(shown(*entry) for entry in wrong))
    chosen: list[Entry] = []
    for at_least in (3, 2, 1):
        for entry in wrong:
            if len(shown(*entry) & missing) >= at_least:
                missing -= shown(*entry)
                chosen.append(entry)
    right: dict[tuple[str, str], list[Entry]] = {}
    for entry in shuffled:
        if entry[1].caught_by is None:
            right.setdefault((entry[0], entry[1].exercise), []).append(entry)
    chosen += [entry for of_exercise in right.values() for entry in of_exercise[:RIGHT_ANSWERS]]
    places = {id(one) for one in chosen}
    return [one for one in known if id(one) in places]
