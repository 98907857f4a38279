"""Digests of the code and notebooks that a grade depends on, and of a unit's source notebook.

A grade's `kit` is the digest of everything here that can change the grade. A source notebook contains the digest that
it had when it was built, so that edits by hand are recognised.
"""

import hashlib
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from . import content
from .folder import FILE, folder
from .notebook import joined
from .units import released, source, unit_names

_ENGINE = Path(__file__).resolve().parents[1]


def unit_digest(unit: str, class_folder: Path | None = None) -> str:
    """Return the SHA-256 of the autograder, the unit's hidden tests, misconceptions, solutions and both notebooks.

    Other units' folders are left out, so that changing a hidden test of one unit does not require grading the others
    again. The code is read once a process.
    """
    digest = hashlib.sha256(_code_digest(unit).encode())
    for notebook in (source(unit, class_folder), released(unit, class_folder)):
        digest.update(notebook.read_bytes())
    return digest.hexdigest()


def current_unit_digest(unit: str, class_folder: Path | None = None) -> str:
    """Return the same after reading the code again, so that a long-lived process recognises changes."""
    _code_digest.cache_clear()
    return unit_digest(unit, class_folder)


def inputs_digest(unit: str) -> str:
    """Return the SHA-256 of the course's files that a unit's notebooks and release are built from.

    The autograder is left out: a change in it that changes what is built is found by `autograder build --check`.
    """
    return _digest([*_course_files(unit), *(folder() / "exercises").glob(f"{unit}.*")])


def engine_digest() -> str:
    """Return the SHA-256 of the autograder without any course."""
    return _digest(_engine_files())


def notebook_digest(notebook: Any) -> str:
    """Return a digest that changes with a cell's text or nbgrader metadata, but not when the notebook is executed."""
    cells = [
        [cell["cell_type"], joined(cell["source"]), cell["metadata"].get("nbgrader")] for cell in notebook["cells"]
    ]
    return hashlib.sha256(json.dumps(cells, sort_keys=True).encode()).hexdigest()


def is_edited(path: Path) -> bool:
    """Return whether a source notebook was changed by hand since it was built, or replaced by another file."""
    try:
        return _built_digest(path) != notebook_digest(msgspec.json.decode(path.read_bytes()))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, LookupError, TypeError, AttributeError):
        return True


def is_current(unit: str, class_folder: Path) -> bool:
    """Return whether a class's copy of a unit is the course's version; changes by hand do not count."""
    return _built_digest(source(unit, class_folder)) == _built_digest(source(unit))


def _built_digest(path: Path) -> str:
    """Return the digest that a source notebook had when it was built; empty if it has none."""
    try:
        return str(msgspec.json.decode(path.read_bytes())["metadata"]["autograder"]["digest"])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, LookupError, TypeError):
        return ""


@cache
def _code_digest(unit: str) -> str:
    return _digest([*_engine_files(), *_course_files(unit)])


def _digest(paths: Iterable[Path]) -> str:
    """Return the SHA-256 of files and their paths. In a checkout the engine's folder lies in the course's."""
    names = {
        f"engine/{path.relative_to(_ENGINE)}" if _is_of_engine(path) else str(path.relative_to(folder())): path
        for path in paths
    }
    digest = hashlib.sha256()
    for name, path in sorted(names.items()):
        text = path.read_bytes()
        digest.update(f"{name} {len(text)}\n".encode() + text)
    return digest.hexdigest()


def _engine_files() -> list[Path]:
    return [path for path in _ENGINE.rglob("*.py") if _is_of_engine(path)]


def _is_of_engine(path: Path) -> bool:
    """Return whether a file is the autograder's. In a checkout the course's tests and misconceptions are next to it."""
    return path.is_relative_to(_ENGINE) and path.relative_to(_ENGINE).parts[0] not in content.OF_EACH_UNIT


def _course_files(unit: str) -> list[Path]:
    """Return the course's files that belong to one unit, or to all units."""
    others = {*unit_names()} - {unit}
    files = [folder() / FILE]
    for kind in (content.SOLUTIONS, *content.OF_EACH_UNIT):
        root = content.place(kind)
        for path in root.rglob("*"):
            if path.suffix in (".py", ".yaml") and path.relative_to(root).parts[0].removesuffix(".py") not in others:
                files.append(path)
    return files
