"""Run the released student check on every known answer."""

import contextlib
import importlib.util
import io
from collections.abc import Iterator
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
from .mutation_report import Columns, entries

_LETTERS = {"passed": ".", "FAILED": "F", "not tried": "-"}


@dataclass(frozen=True)
class CheckVerdict:
    """The output of the student check for one entry of the catalogue."""

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
    def wrong(self) -> bool:
        """True if the entry is a misconception."""
        return self.entry.caught_by is not None

    @property
    def full(self) -> bool:
        """True if the check reports all points."""
        return self.score == self.points

    @property
    def named(self) -> bool:
        """True if the entry's own sentence is reported."""
        return self.entry.sentence in self.printed

    @property
    def silent(self) -> bool:
        """True for an unreported misconception: it gets all points, without a diagnosis or a failed example."""
        return self.wrong and self.full and not self.named and "FAILED" not in self.printed


COLUMNS: Columns[CheckVerdict] = {
    "mistakes": lambda one: one.wrong,
    "named": lambda one: one.wrong and one.named,
    "silent": lambda one: one.silent,
    "right": lambda one: not one.wrong,
    "refused": lambda one: not one.wrong and not one.full,
}


@cache
def released_check(unit: str) -> ModuleType:
    """Return the student check of a unit, imported from its release."""
    name = load().check
    spec = importlib.util.spec_from_file_location(name, course.released(unit).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_verdict(unit: str, entry: catalogue.Candidate) -> CheckVerdict:
    """Run the check in a notebook with this entry, and the solutions of all other exercises."""
    names: dict[str, Any] = dict(content.solutions(unit))
    names[entry.exercise] = entry.answer
    names["check"] = released_check(unit).check
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        score = float(eval(f"check({entry.exercise!r}, more=True)", names))
    return CheckVerdict(unit, entry, printed.getvalue(), score, course.unit(unit).exercise(entry.exercise).points)


def check_verdicts() -> Iterator[CheckVerdict]:
    """Run the check on every entry, in the order of the exercises."""
    torch.set_num_threads(1)  # for tensors as small as these, several threads only wait for each other
    for unit, entry in entries():
        yield check_verdict(unit, entry)


def not_tried() -> list[tuple[str, str]]:
    """Return the exercises with the statements of hidden tests that the check does not try."""
    found = []
    for unit in course.unit_names():
        exercises = read_unit(course.released(unit).with_name(data_file(unit)))[EXAMPLES]
        found += [
            (name, one["statement"]) for name, of in exercises.items() if name != WRITTEN for one in of["not_tried"]
        ]
    return found
