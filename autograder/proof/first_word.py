"""The released check on every known answer: which mistakes it lets pass without a word, and which right answers not."""

import contextlib
import importlib.util
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import torch

from .. import catalogue, course
from ..course import content
from ..course.settings import load
from ..handout.names import EXAMPLES, WRITTEN, data_file
from ..handout.unit_data import read_unit
from .matrix import entries

_LETTERS = {"passed": ".", "FAILED": "F", "not tried": "-"}


@dataclass(frozen=True)
class Word:
    """What the check said of one entry of the catalogue."""

    unit: str
    entry: catalogue.Candidate
    printed: str
    score: float
    points: float

    def outcome(self, statement: str) -> str:
        """Return the outcome of the example of a hidden test: `.` passed, `F` failed, `-` cut short, `?` not tried."""
        lines = self.printed.splitlines()
        return next((letter for mark, letter in _LETTERS.items() if f"{mark}  {statement}" in lines), "?")

    @property
    def full(self) -> bool:
        """Whether the student reads that all points are there."""
        return self.score == self.points

    @property
    def named(self) -> bool:
        """Whether the entry's own sentence is read."""
        return self.entry.sentence in self.printed

    @property
    def silent(self) -> bool:
        """A mistake that gets all points, and of which nothing is said: no name, and no example fails."""
        return self.entry.caught_by is not None and self.full and not self.named and "FAILED" not in self.printed


@cache
def released_check(unit: str) -> ModuleType:
    """The module that students of the unit get."""
    name = load().check
    spec = importlib.util.spec_from_file_location(name, course.released(unit).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def word(unit: str, entry: catalogue.Candidate) -> Word:
    """What the check says where this entry stands in a notebook that is solved but for it."""
    names: dict[str, Any] = dict(content.solutions(unit))
    names[entry.exercise] = entry.answer
    names["check"] = released_check(unit).check
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        score = float(eval(f"check({entry.exercise!r}, more=True)", names))
    return Word(unit, entry, printed.getvalue(), score, course.unit(unit).exercise(entry.exercise).points)


def words() -> Iterator[Word]:
    """What it says of every entry, in the order of the exercises."""
    torch.set_num_threads(1)  # of tensors as small as these several threads only wait for one another
    for unit, entry in entries():
        yield word(unit, entry)


@dataclass(frozen=True)
class WordFigures:
    """How many of some entries are what, in the check."""

    misconceptions: int
    named: int
    silent: int
    right_answers: int
    refused: int


WORD_COLUMNS = ("mistakes", "named", "silent", "right", "refused")


def words_by(found: Iterable[Word], key: Callable[[Word], str]) -> list[tuple[str, WordFigures]]:
    """The figures of those that have a key in common, in the order in which keys come."""
    groups: dict[str, list[Word]] = {}
    for one in found:
        groups.setdefault(key(one), []).append(one)
    return [(name, _figures(group)) for name, group in groups.items()]


def _figures(group: list[Word]) -> WordFigures:
    wrong = [one for one in group if one.entry.caught_by is not None]
    return WordFigures(
        misconceptions=len(wrong),
        named=sum(one.named for one in wrong),
        silent=sum(one.silent for one in wrong),
        right_answers=len(group) - len(wrong),
        refused=sum(one.entry.caught_by is None and not one.full for one in group),
    )


def not_tried() -> list[tuple[str, str]]:
    """The exercises with what the check says that it does not try of them."""
    found = []
    for unit in course.unit_names():
        exercises = read_unit(course.released(unit).with_name(data_file(unit)))[EXAMPLES]
        found += [
            (name, one["statement"]) for name, of in exercises.items() if name != WRITTEN for one in of["not_tried"]
        ]
    return found
