"""A course's own Python modules: solutions, hidden tests and alternative solutions, imported by their path.

Python's module search path is not used: a course's `autograder/` folder is no package, and hides none.
"""

import importlib
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from .folder import folder

SOLUTIONS, HIDDEN, RIGHT_ANSWERS = "solutions", "hidden", "right_answers"
MISCONCEPTIONS = "misconceptions"
OF_EACH_UNIT = (HIDDEN, MISCONCEPTIONS, RIGHT_ANSWERS)
"""The folders in which every unit has a folder of its own."""
NOTEBOOK = "notebook"
"""The module in solutions/ with the names that the notebooks import and define for the answers."""


def place(kind: str) -> Path:
    """Return the folder of one kind of content."""
    return _place(folder(), kind)


@cache  # called for every answer that is tested
def _place(course: Path, kind: str) -> Path:
    return course / kind if kind == SOLUTIONS else course / "autograder" / kind


def solutions(unit: str) -> dict[str, Any]:
    """Return the names that the module of a unit's solutions defines or imports, with their values."""
    return vars(module(f"{SOLUTIONS}.{unit}"))


def notebook() -> dict[str, Any]:
    """Return the names that every notebook defines before its first answer, with their values."""
    return vars(module(f"{SOLUTIONS}.{NOTEBOOK}")) if (place(SOLUTIONS) / f"{NOTEBOOK}.py").is_file() else {}


def right_answers(unit: str) -> Iterator[ModuleType]:
    """Yield the modules of a unit's alternative solutions."""
    root = place(RIGHT_ANSWERS)
    for path in sorted((root / unit).rglob("[!_]*.py")):
        yield module(".".join([RIGHT_ANSWERS, *path.relative_to(root).with_suffix("").parts]))


def module(name: str) -> ModuleType:
    """Import the module of this name, such as `solutions.self_attention`."""
    for kind in (SOLUTIONS, HIDDEN, RIGHT_ANSWERS):
        package = sys.modules.get(kind)
        if package is None or list(package.__path__) != [str(place(kind))]:
            sys.modules[kind] = package = ModuleType(kind)
            package.__path__ = [str(place(kind))]
    return importlib.import_module(name)
