"""The units of a course or class: their notebooks, exercises and points.

All of them are read from the notebooks in `source/`, which the build makes and the gradebook uses. If a class's folder
has its own `source/`, the class keeps the units as they were when it got them, regardless of later changes in the
course.
"""

import re
import shlex
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import msgspec

from .. import UserError
from .notebook import NbgraderMetadata, RawCell, RawNotebook, parse
from .settings import folder

CHECK_PREFIX = "test_"
SOURCE, RELEASE = "source", "release"
"""The folders, in a course or class, that contain the instructor's and the students' notebooks."""
BEGIN = "### BEGIN SOLUTION"
END = "### END SOLUTION"
NOT_IMPLEMENTED = "raise NotImplementedError()"
"""The line that replaces the solution in a stub."""
_HEADING = re.compile(r"^(#{1,2})[ \t]+(.+?)[ \t#]*$", re.M)


class UnknownUnit(UserError):
    """Raised if no unit has the requested name; `str()` lists the existing units."""

    def __init__(self, name: str, class_folder: Path | None = None) -> None:
        root = units_root(class_folder)
        where = "" if root == folder() else f" in {root}"
        known = ", ".join(unit_names(class_folder)) or "none is built yet"
        upgrade = shlex.join(["autograder", "upgrade-course", str(root), name])
        brings = f" `{upgrade}` brings it." if where and name in unit_names() else ""
        super().__init__(f"There is no unit `{name}`{where}. The units are: {known}.{brings}")


class UnusableUnit(UserError):
    """Raised if a class's copy of a unit cannot be graded; `str()` says why and what to do."""


@dataclass(frozen=True)
class Exercise:
    """One function or class that students write."""

    name: str
    points: float

    @property
    def check(self) -> str:
        """The grade_id of the exercise's grade cell."""
        return CHECK_PREFIX + self.name


@dataclass(frozen=True)
class Unit:
    """One assignment with one notebook.

    Dicts are keyed by a cell's name, which is its grade_id, unless another key is stated.
    """

    name: str
    title: str
    """The first heading of the text; the unit's name if there is none."""
    exercises: tuple[Exercise, ...]
    points: dict[str, float]
    """The points of each grade cell, written questions included."""
    model_answers: dict[str, str]
    """The instructor's answers to the written questions."""
    sections: dict[str, str]
    """For each named cell, the heading of its section; empty if no heading is above it."""
    cell_types: dict[str, str]
    instructor_cells: dict[str, str]
    """The text of each locked code cell without points, which only the instructor writes."""
    check_cells: dict[str, str]
    """The text of each exercise's check cell."""
    stub_lines: dict[str, tuple[str, ...]]
    """The lines of code in each exercise's stub, by the exercise's name."""
    showing_cells: frozenset[str]
    """The texts of code cells that only display results of the exercises."""
    training_cells: dict[str, str]
    """The text of each cell that trains a model, which grading leaves out, by the cell's id in nbformat."""

    @property
    def max_score(self) -> float:
        """The most points that the hidden tests can give; written questions are not included."""
        return sum(exercise.points for exercise in self.exercises)

    def exercise(self, name: str) -> Exercise:
        """Return the exercise of this name; raises KeyError."""
        return {exercise.name: exercise for exercise in self.exercises}[name]


def units_root(class_folder: Path | None = None) -> Path:
    """Return the folder that defines the units: the class's if it has its own `source/`, else the course's."""
    return class_folder if class_folder and (class_folder / SOURCE).is_dir() else folder()


def source(unit_name: str, class_folder: Path | None = None) -> Path:
    """Return the path of the unit's source notebook, which contains the solutions."""
    return units_root(class_folder) / SOURCE / unit_name / f"{unit_name}.ipynb"


def released(unit_name: str, class_folder: Path | None = None) -> Path:
    """Return the path of the unit's released notebook, which is for students."""
    return units_root(class_folder) / RELEASE / unit_name / f"{unit_name}.ipynb"


def unit_files(kind: str, unit_name: str) -> list[Path]:
    """Return the paths of the course's notebook of a unit, and of the files that students get with it.

    kind: SOURCE or RELEASE, for the notebook. The other files' paths are always those in release/, because git tracks
    no copies in source/.
    """
    return [folder() / kind / unit_name / f"{unit_name}.ipynb", *accompanying_files(unit_name)]


def accompanying_files(unit_name: str, class_folder: Path | None = None) -> list[Path]:
    """Return the paths of the files that students get with the unit's notebook; empty if it is not released.

    Folders next to the notebook are left out, because only programs create them.
    """
    files = released(unit_name, class_folder).parent.glob("*")
    return sorted(path for path in files if path.is_file() and path.suffix != ".ipynb")


def unit_names(class_folder: Path | None = None) -> list[str]:
    """Return the names of all built units of the class or course, in alphabetical order."""
    notebooks = (units_root(class_folder) / SOURCE).glob("*/*.ipynb")
    return sorted(path.stem for path in notebooks if path.stem == path.parent.name)


def unit(name: str, class_folder: Path | None = None) -> Unit:
    """Read a unit from its source notebook; raises UnknownUnit and UnusableUnit."""
    if name not in unit_names(class_folder):
        raise UnknownUnit(name, class_folder)
    path = source(name, class_folder)
    return _unit(path, path.stat().st_mtime_ns)


def refuse_removed_exercises(of_class: Unit) -> None:
    """Raise UnusableUnit if a class's unit has exercises that the course no longer has.

    Raises UnknownUnit if the course no longer has the unit.
    """
    graded = {exercise.name for exercise in unit(of_class.name).exercises}
    removed = [exercise.name for exercise in of_class.exercises if exercise.name not in graded]
    if removed:
        raise UnusableUnit(
            f"This class was given exercises of {of_class.name} that are no longer in the autograder: "
            f"{', '.join(removed)}. Grade the unit with the version that released it."
        )


def released_cells(unit_name: str, class_folder: Path | None = None) -> tuple[RawCell, ...]:
    """Return the cells of the unit's released notebook; empty if it does not exist or cannot be read."""
    path = released(unit_name, class_folder)
    return _released_cells(path, path.stat().st_mtime_ns) if path.is_file() else ()


@lru_cache(maxsize=64)
def _released_cells(path: Path, changed: int) -> tuple[RawCell, ...]:
    notebook = parse(path.read_bytes())
    return tuple(notebook.cells) if isinstance(notebook, RawNotebook) else ()


def stub_lines(solution: str) -> tuple[str, ...]:
    """Return the lines of code in a solution cell that stay in its stub: those outside BEGIN and END."""
    lines, is_outside = list[str](), True
    for line in map(str.strip, solution.split("\n")):
        if line in (BEGIN, END):
            is_outside = line == END
        elif is_outside and _is_code(line):
            lines.append(line)
    return tuple(lines)


def is_stub(text: str, lines: tuple[str, ...]) -> bool:
    """Return whether a cell is an unchanged stub: it has NOT_IMPLEMENTED, and otherwise only the stub's lines of code.

    lines: the result of `stub_lines`.
    """
    return NOT_IMPLEMENTED in text and all(line in lines for line in map(str.strip, text.split("\n")) if _is_code(line))


def _is_code(line: str) -> bool:
    return bool(line) and not line.startswith("#") and line != NOT_IMPLEMENTED


@lru_cache(maxsize=64)
def _unit(path: Path, changed: int) -> Unit:
    """Read a unit from its source notebook; raises UnusableUnit. changed: the file's time stamp, a key of the cache."""
    try:
        cells = msgspec.json.decode(path.read_bytes(), type=RawNotebook).cells
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnusableUnit(f"{path} cannot be read: {error}. Restore the file.") from None
    for number, cell in enumerate(cells, start=1):
        if cell.metadata and (fault := _metadata_fault(cell.metadata.nbgrader)):
            raise UnusableUnit(
                f"{path}: nbgrader's metadata of cell {number} cannot be used: {fault}. Correct the metadata."
            )
    named = [(meta.grade_id, meta, cell) for cell in cells if (meta := cell.nbgrader).grade_id]
    code = [(name, meta, cell.text) for name, meta, cell in named if cell.cell_type == "code"]
    plain = [cell for cell in cells if cell.cell_type == "code" and not cell.grade_id]
    titles = [title for cell in cells for title in _headings(cell, level=1)]
    return Unit(
        path.stem,
        title=next(iter(titles), path.stem),
        exercises=tuple(
            Exercise(name.removeprefix(CHECK_PREFIX), meta.points)
            for name, meta, _ in named
            if name.startswith(CHECK_PREFIX)
        ),
        points={name: float(meta.points) for name, meta, _ in named if meta.grade},
        model_answers={name: cell.text for name, meta, cell in named if meta.grade and meta.solution},
        sections=_sections(cells),
        cell_types={name: cell.cell_type for name, _, cell in named},
        instructor_cells={name: text for name, meta, text in code if meta.locked and not meta.grade},
        check_cells={name: text for name, meta, text in code if meta.grade and not meta.solution},
        stub_lines={name: stub_lines(text) for name, meta, text in code if meta.solution},
        showing_cells=frozenset(cell.text for cell in plain if not cell.autograder.training),
        training_cells={cell.cell_id: cell.text for cell in plain if cell.autograder.training},
    )


def _metadata_fault(metadata: msgspec.Raw) -> str:
    """Return why nbgrader's metadata of a cell cannot be decoded; empty if they can, or if the cell has none."""
    try:
        msgspec.json.decode(metadata, type=NbgraderMetadata | None)
    except msgspec.DecodeError as error:
        return str(error)
    return ""


def _sections(cells: list[RawCell]) -> dict[str, str]:
    """Return, by the name of each named cell, the heading of its section."""
    sections: dict[str, str] = {}
    section = ""
    for cell in cells:
        if cell.grade_id:
            sections[cell.grade_id] = section
        else:
            section = [section, *_headings(cell, level=2)][-1]
    return sections


def _headings(cell: RawCell, level: int) -> list[str]:
    """Return the headings of one level in a cell; empty unless it is a text cell."""
    found = _HEADING.findall(cell.text) if cell.cell_type == "markdown" else []
    return [heading for marks, heading in found if len(marks) == level]
