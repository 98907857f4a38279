"""A course's Python modules (solutions, hidden tests, alternative solutions), and digests of the course's files.

The modules are imported by their path, not by Python's module search path, so a course's `autograder/` folder is not
taken for the installed package.

The digest of all files that can change a grade is the field `kit` of the grade's report. A source notebook contains its
own digest from when it was built, so that edits by hand are recognised.
"""

import hashlib
import importlib
import json
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from .notebook import joined
from .settings import FILE, folder, read_secret
from .units import released, source, unit_names

SOLUTIONS, HIDDEN, RIGHT_ANSWERS = "solutions", "hidden", "right_answers"
MISCONCEPTIONS = "misconceptions"
OF_EACH_UNIT = (HIDDEN, MISCONCEPTIONS, RIGHT_ANSWERS)
"""The folders that contain a subfolder for each unit."""
NOTEBOOK = "notebook"
"""The module in solutions/ that defines the names which all notebooks define before the first answer."""
_ENGINE = Path(__file__).resolve().parents[1]


def place(kind: str) -> Path:
    """Return the course's folder for one kind of content. kind: SOLUTIONS, HIDDEN, RIGHT_ANSWERS or MISCONCEPTIONS."""
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


def unit_digest(unit: str, class_folder: Path | None = None) -> str:
    """Return one SHA-256 of all files that can change a unit's grades.

    These are the autograder's code, both notebooks of the unit, its solutions, its folders of hidden tests,
    misconceptions and alternative solutions, and the secret of the hidden cases. Other units' files are left out, so
    that after a change in them this unit is not graded again. A process reads the code only once.
    """
    digest = hashlib.sha256(_code_digest(unit).encode())
    for notebook in (source(unit, class_folder), released(unit, class_folder)):
        digest.update(notebook.read_bytes())
    return digest.hexdigest()


def current_unit_digest(unit: str, class_folder: Path | None = None) -> str:
    """Return `unit_digest` after reading the code again, so that a long-lived process recognises changes."""
    _code_digest.cache_clear()
    return unit_digest(unit, class_folder)


def inputs_digest(unit: str) -> str:
    """Return one SHA-256 of the course's files from which a unit's notebooks and release are built.

    The autograder's own files are left out; `autograder build --check` finds whether their changes matter.
    """
    return _digest([*_course_files(unit), *(folder() / "exercises").glob(f"{unit}.*")])


def engine_digest() -> str:
    """Return one SHA-256 of the autograder's code, without any course's files."""
    return _digest(_engine_files())


def notebook_digest(notebook: Any) -> str:
    """Return a digest of all cells' types, texts and nbgrader metadata. Executing the notebook does not change it."""
    cells = [
        [cell["cell_type"], joined(cell["source"]), cell["metadata"].get("nbgrader")] for cell in notebook["cells"]
    ]
    return hashlib.sha256(json.dumps(cells, sort_keys=True).encode()).hexdigest()


def is_edited(path: Path) -> bool:
    """Return whether a source notebook was edited since it was built, replaced by another file, or cannot be read."""
    try:
        return _built_digest(path) != notebook_digest(msgspec.json.decode(path.read_bytes()))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, LookupError, TypeError, AttributeError):
        return True


def is_current(unit: str, class_folder: Path) -> bool:
    """Return whether a class's copy of a unit was built from the course's present version; edits do not count."""
    return _built_digest(source(unit, class_folder)) == _built_digest(source(unit))


def _built_digest(path: Path) -> str:
    """Return the digest that a source notebook had when it was built; empty if it has none."""
    try:
        return str(msgspec.json.decode(path.read_bytes())["metadata"]["autograder"]["digest"])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, LookupError, TypeError):
        return ""


@cache
def _code_digest(unit: str) -> str:
    return _digest([*_engine_files(), *_course_files(unit)], read_secret())


def _digest(paths: Iterable[Path], secret: str = "") -> str:
    """Return one SHA-256 of a secret, and of the contents and relative paths of the engine's and the course's files."""
    names = {
        f"engine/{path.relative_to(_ENGINE)}" if _is_of_engine(path) else str(path.relative_to(folder())): path
        for path in paths
    }
    digest = hashlib.sha256(secret.encode())
    for name, path in sorted(names.items()):
        text = path.read_bytes()
        digest.update(f"{name} {len(text)}\n".encode() + text)
    return digest.hexdigest()


def _engine_files() -> list[Path]:
    return [path for path in _ENGINE.rglob("*.py") if _is_of_engine(path)]


def _is_of_engine(path: Path) -> bool:
    """Return whether a file belongs to the engine. In a checkout, the course's hidden tests are in the same folder."""
    return path.is_relative_to(_ENGINE) and path.relative_to(_ENGINE).parts[0] not in OF_EACH_UNIT


def _course_files(unit: str) -> list[Path]:
    """Return the course's files that belong to one unit, or to all units."""
    others = {*unit_names()} - {unit}
    files = [folder() / FILE]
    for kind in (SOLUTIONS, *OF_EACH_UNIT):
        root = place(kind)
        for path in root.rglob("*"):
            if path.suffix in (".py", ".yaml") and path.relative_to(root).parts[0].removesuffix(".py") not in others:
                files.append(path)
    return files
