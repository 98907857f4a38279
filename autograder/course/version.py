"""Which version of a unit a source notebook is: by a digest of its cells, which `build` leaves in the file itself."""

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec

from ..notebook import joined
from . import source


def digest(notebook: Any) -> str:
    """A digest that changes with a cell's text or nbgrader metadata, but not when the notebook is run."""
    cells = [
        [cell["cell_type"], joined(cell["source"]), cell["metadata"].get("nbgrader")] for cell in notebook["cells"]
    ]
    return hashlib.sha256(json.dumps(cells, sort_keys=True).encode()).hexdigest()


def built(path: Path) -> str:
    """The digest of the notebook as it was built; empty where there is none to read."""
    try:
        return str(msgspec.json.decode(path.read_bytes())["metadata"]["autograder"]["digest"])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, LookupError, TypeError):
        return ""


def is_edited(path: Path) -> bool:
    """Whether somebody changed the notebook by hand since it was built, or replaced it by something else."""
    try:
        return built(path) != digest(msgspec.json.decode(path.read_bytes()))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, LookupError, TypeError, AttributeError):
        return True


def is_the_courses(unit: str, class_folder: Path) -> bool:
    """Whether what a class keeps of a unit is the version that the course has; a person's own changes do not count."""
    return built(source(unit, class_folder)) == built(source(unit))
