"""Which units and exercises the course has, with their points.

Points are set on the exercises' lines in `exercises/`; `build` carries them into `source/`. They are read from there,
because that is what the gradebook holds.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from ..notebook import joined
from .folder import folder

CHECK_PREFIX = "test_"


class UnknownUnit(Exception):
    """No unit has this name; `str()` says which there are."""

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no unit `{name}`. The units are: {', '.join(unit_names()) or 'none is built yet'}.")


@dataclass(frozen=True)
class Exercise:
    """One function or class to write."""

    name: str
    points: float

    @property
    def check(self) -> str:
        """The grade_id of its grade cell."""
        return CHECK_PREFIX + self.name


@dataclass(frozen=True)
class Unit:
    """One assignment with one notebook."""

    name: str
    exercises: tuple[Exercise, ...]
    instructor_cells: dict[str, str]
    """The source of the instructor's code cells, by grade_id."""
    cell_types: dict[str, str]
    """The cell type of every named cell, by grade_id."""
    showing_cells: frozenset[str]
    """The source of the other code cells, which are not exercises but show what the exercises make."""

    @property
    def max_score(self) -> float:
        """The points that the hidden graders can give."""
        return sum(exercise.points for exercise in self.exercises)

    def exercise(self, name: str) -> Exercise:
        """The exercise of this name; raises KeyError."""
        for exercise in self.exercises:
            if exercise.name == name:
                return exercise
        raise KeyError(name)


def source(unit_name: str) -> Path:
    """The unit's notebook with its solutions, as the instructor has it."""
    return folder() / "source" / unit_name / f"{unit_name}.ipynb"


def released(unit_name: str) -> Path:
    """The unit's notebook as students get it."""
    return folder() / "release" / unit_name / f"{unit_name}.ipynb"


def unit_names() -> list[str]:
    """The names of the units that are built, in alphabetical order."""
    return sorted(path.stem for path in (folder() / "source").glob("*/*.ipynb") if path.stem == path.parent.name)


@cache
def unit(name: str) -> Unit:
    """The unit of this name; raises UnknownUnit."""
    if name not in unit_names():
        raise UnknownUnit(name)
    marked = _nbgrader_cells(name)
    code = (cell for cell in _cells(name) if cell["cell_type"] == "code")
    return Unit(
        name,
        tuple(
            Exercise(meta["grade_id"].removeprefix(CHECK_PREFIX), meta["points"])
            for _, meta in marked
            if meta["grade_id"].startswith(CHECK_PREFIX)
        ),
        {
            meta["grade_id"]: joined(cell["source"])
            for cell, meta in marked
            if meta["locked"] and not meta["grade"] and cell["cell_type"] == "code"
        },
        {meta["grade_id"]: cell["cell_type"] for cell, meta in marked},
        frozenset(joined(cell["source"]) for cell in code if "nbgrader" not in cell["metadata"]),
    )


def points(unit_name: str) -> dict[str, float]:
    """The points of each of the unit's grade cells, written questions included, by grade_id."""
    return {meta["grade_id"]: float(meta["points"]) for _, meta in _nbgrader_cells(unit_name) if meta["grade"]}


def written(unit_name: str) -> dict[str, str]:
    """The model answers to the unit's written questions, by grade_id."""
    cells = ((cell, meta) for cell, meta in _nbgrader_cells(unit_name) if meta["grade"] and meta["solution"])
    return {meta["grade_id"]: joined(cell["source"]) for cell, meta in cells}


def _nbgrader_cells(unit_name: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The cells that nbgrader knows, each with its nbgrader metadata."""
    return [(cell, cell["metadata"]["nbgrader"]) for cell in _cells(unit_name) if "nbgrader" in cell["metadata"]]


def _cells(unit_name: str) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = msgspec.json.decode(source(unit_name).read_bytes())["cells"]
    return cells
