"""Which units and exercises the course has, with their points.

Points are set on the exercises' lines in `exercises/`; `build` carries them into `source/`. They are read from there,
because that is what the gradebook holds. A class's folder that has a `source/` of its own keeps the units in it: there
they are as they were released, whatever the course has by now.
"""

import shlex
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from ..notebook import joined
from .folder import folder
from .stubs import frame

CHECK_PREFIX = "test_"
SOURCE, RELEASE = "source", "release"
"""The folders of a course, or of a class, with the notebooks for instructors and for students."""


class UnknownUnit(Exception):
    """No unit has this name; `str()` says which there are."""

    def __init__(self, name: str, class_folder: Path | None = None) -> None:
        kept = holder(class_folder)
        where = "" if kept == folder() else f" in {kept}"
        known = ", ".join(unit_names(class_folder)) or "none is built yet"
        upgrade = shlex.join(["autograder", "upgrade-course", str(kept), name])
        brings = f" `{upgrade}` brings it." if where and name in unit_names() else ""
        super().__init__(f"There is no unit `{name}`{where}. The units are: {known}.{brings}")


class UnusableUnit(Exception):
    """What a class keeps of a unit cannot be marked; `str()` says why and what to do."""


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
    training_cells: dict[str, str] = field(default_factory=dict)
    """The source of the cells that marking leaves out, by their id in the notebook."""
    check_cells: dict[str, str] = field(default_factory=dict)
    """The source of the cells with the exercises' checks, by grade_id."""
    frames: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The lines of code that each exercise's stub has, by grade_id."""

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


def holder(class_folder: Path | None = None) -> Path:
    """The folder whose units count: the class's, where it keeps units, else the course's."""
    return class_folder if class_folder and (class_folder / SOURCE).is_dir() else folder()


def source(unit_name: str, class_folder: Path | None = None) -> Path:
    """The unit's notebook with its solutions, as the instructor has it."""
    return holder(class_folder) / SOURCE / unit_name / f"{unit_name}.ipynb"


def released(unit_name: str, class_folder: Path | None = None) -> Path:
    """The unit's notebook as students get it."""
    return holder(class_folder) / RELEASE / unit_name / f"{unit_name}.ipynb"


def unit_files(kind: str, unit_name: str) -> list[Path]:
    """Return the unit's notebook in `source` or `release` of the course, and the files that students get beside it.

    The build writes these files into both folders. They are taken from release/, because git has no copy in source/.
    """
    notebook = folder() / kind / unit_name / f"{unit_name}.ipynb"
    return [notebook, *beside(unit_name)]


def beside(unit_name: str, class_folder: Path | None = None) -> list[Path]:
    """Return the files that students get beside the unit's notebook, if it is released.

    What programs leave there are folders.
    """
    files = released(unit_name, class_folder).parent.glob("*")
    return sorted(path for path in files if path.is_file() and path.suffix != ".ipynb")


def unit_names(class_folder: Path | None = None) -> list[str]:
    """The names of the units that are built, in alphabetical order."""
    notebooks = (holder(class_folder) / SOURCE).glob("*/*.ipynb")
    return sorted(path.stem for path in notebooks if path.stem == path.parent.name)


def unit(name: str, class_folder: Path | None = None) -> Unit:
    """The unit of this name; raises UnknownUnit and UnusableUnit."""
    if name not in unit_names(class_folder):
        raise UnknownUnit(name, class_folder)
    path = source(name, class_folder)
    return _unit(path, path.stat().st_mtime_ns)


def refuse_outgrown(kept: Unit) -> None:
    """Raises UnusableUnit where a class keeps exercises of the unit that the course no longer has; or UnknownUnit."""
    marked = {exercise.name for exercise in unit(kept.name).exercises}
    gone = [exercise.name for exercise in kept.exercises if exercise.name not in marked]
    if gone:
        raise UnusableUnit(
            f"This class was given {', '.join(gone)} in {kept.name}, which this version of the kit no longer marks. "
            "Mark it with the version that it was released with."
        )


@lru_cache(maxsize=64)
def _unit(path: Path, changed: int) -> Unit:
    """The unit in a notebook that was last changed at this time."""
    name, cells = path.stem, _cells(path)
    marked = _of_nbgrader(cells)
    plain = [cell for cell in cells if cell["cell_type"] == "code" and "nbgrader" not in cell["metadata"]]
    training = {str(cell.get("id")): joined(cell["source"]) for cell in plain if _trains(cell)}
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
        frozenset(joined(cell["source"]) for cell in plain if not _trains(cell)),
        training,
        {
            meta["grade_id"]: joined(cell["source"])
            for cell, meta in marked
            if meta["grade"] and not meta["solution"] and cell["cell_type"] == "code"
        },
        {
            meta["grade_id"]: frame(joined(cell["source"]))
            for cell, meta in marked
            if meta["solution"] and cell["cell_type"] == "code"
        },
    )


def points(unit_name: str, class_folder: Path | None = None) -> dict[str, float]:
    """The points of each of the unit's grade cells, written questions included, by grade_id."""
    marked = _of_nbgrader(_cells(source(unit_name, class_folder)))
    return {meta["grade_id"]: float(meta["points"]) for _, meta in marked if meta["grade"]}


def written(unit_name: str) -> dict[str, str]:
    """The model answers to the unit's written questions, by grade_id."""
    cells = (
        (cell, meta) for cell, meta in _of_nbgrader(_cells(source(unit_name))) if meta["grade"] and meta["solution"]
    )
    return {meta["grade_id"]: joined(cell["source"]) for cell, meta in cells}


def _trains(cell: dict[str, Any]) -> bool:
    of_the_kit = cell["metadata"].get("autograder")
    return isinstance(of_the_kit, dict) and of_the_kit.get("training") is True


def _of_nbgrader(cells: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The cells that nbgrader knows, each with its nbgrader metadata."""
    return [(cell, cell["metadata"]["nbgrader"]) for cell in cells if "nbgrader" in cell["metadata"]]


def _cells(notebook: Path) -> list[dict[str, Any]]:
    """The cells of a source notebook, of which a class's may be damaged: raises UnusableUnit."""
    try:
        return msgspec.json.decode(notebook.read_bytes(), type=_Notebook).cells
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnusableUnit(f"{notebook} cannot be read: {error}. Put back what was there.") from None


class _Notebook(msgspec.Struct):
    cells: list[dict[str, Any]]
