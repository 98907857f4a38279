"""Bounds on the points of known mistakes, by what kind of mistake each is.

`kinds/UNIT.tsv` has a line for each misconception: exercise, name, kind, reason. Two readers who saw no points chose
the kind, and a third one where they differed:

- lesson: the answer lacks what the exercise is for, and earns at most half of its points;
- slip: the work is right but for its form or a detail, and the answer keeps at least 30%;
- other: the line has a reason why it is neither.

A line outside of these bounds has a reason, too.
"""

from typing import NamedTuple

import pytest

from autograder import catalogue, course
from tests import TESTS

FOLDER = TESTS
MOST_OF_LESSON, LEAST_OF_SLIP, MOST_OTHERS = 0.5, 0.3, 0.15
ROUNDING = 0.005
UNITS = course.unit_names()


class Kind(NamedTuple):
    exercise: str
    name: str
    kind: str
    reason: str = ""


def kinds(unit):
    """Return the kinds by exercise and name."""
    lines = (FOLDER / "kinds" / f"{unit}.tsv").read_text().splitlines()
    return {(kind.exercise, kind.name): kind for kind in (Kind(*line.split("\t")) for line in lines)}


def shares(unit):
    """Return each known mistake's share of its exercise's points, by the golden record."""
    for line in (FOLDER / "golden" / f"{unit}.txt").read_text().splitlines():
        exercise, name, points, *_ = line.split(" ")
        earned, total = map(float, points.split("/"))
        if not name.startswith("right:"):
            yield exercise, name, earned / total


@pytest.mark.parametrize("unit", UNITS)
def test_every_misconception_has_a_kind(unit):
    known = {(one.exercise, one.mistake) for one in catalogue.misconceptions(unit).values()}
    assert kinds(unit).keys() == known
    assert {kind.kind for kind in kinds(unit).values()} <= {"lesson", "slip", "other"}
    assert not [kind.name for kind in kinds(unit).values() if kind.kind == "other" and not kind.reason]


def test_few_misconceptions_are_neither_lesson_nor_slip():
    every = [kind.kind for unit in UNITS for kind in kinds(unit).values()]
    assert every.count("other") <= MOST_OTHERS * len(every)


def is_outside(kind, share):
    if kind == "lesson":
        return share > MOST_OF_LESSON + ROUNDING
    return kind == "slip" and share < LEAST_OF_SLIP - ROUNDING


@pytest.mark.parametrize("unit", UNITS)
def test_points_stay_within_the_bounds_of_the_kind(unit):
    mistakes, of_unit = catalogue.misconceptions(unit), kinds(unit)
    outside = set()
    for exercise, name, share in shares(unit):
        kind = of_unit[exercise, mistakes[name].mistake]
        if is_outside(kind.kind, share):
            outside.add(kind)
    assert outside == {kind for kind in of_unit.values() if kind.reason and kind.kind != "other"}
