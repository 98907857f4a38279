"""A course's own modules: its solutions, hidden graders and right answers, each imported by its place in the course.

They are never looked for on Python's path: a course's `autograder/` folder is no package, and hides none.
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
"""In these every unit has a folder of its own."""
NOTEBOOK = "notebook"
"""The module of solutions/ that is no unit's: the names that the notebooks import and define for the answers."""


def place(kind: str) -> Path:
    """The folder of one kind of content."""
    return _place(folder(), kind)


@cache  # asked for with every answer that is tried
def _place(course: Path, kind: str) -> Path:
    return course / kind if kind == SOLUTIONS else course / "autograder" / kind


def solutions(unit: str) -> dict[str, Any]:
    """Everything that the module of a unit's solutions defines or imports, by name."""
    return vars(module(f"{SOLUTIONS}.{unit}"))


def notebook() -> dict[str, Any]:
    """What every notebook of the course has defined before its first answer, if the course says so."""
    return vars(module(f"{SOLUTIONS}.{NOTEBOOK}")) if (place(SOLUTIONS) / f"{NOTEBOOK}.py").is_file() else {}


def right_answers(unit: str) -> Iterator[ModuleType]:
    """The modules of a unit's right answers."""
    for path in sorted((place(RIGHT_ANSWERS) / unit).rglob("[!_]*.py")):
        parts = path.relative_to(place(RIGHT_ANSWERS)).with_suffix("").parts
        yield module(".".join([RIGHT_ANSWERS, *parts]))


def module(name: str) -> ModuleType:
    """The module of this name, such as `solutions.self_attention`."""
    for kind in (SOLUTIONS, HIDDEN, RIGHT_ANSWERS):
        package = sys.modules.get(kind)
        if package is None or list(package.__path__) != [str(place(kind))]:
            sys.modules[kind] = package = ModuleType(kind)
            package.__path__ = [str(place(kind))]
    return importlib.import_module(name)
