"""The version of the kit behind a mark: a digest of everything here that can change one."""

import hashlib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from . import content, released, source, unit_names
from .folder import FILE, folder

_ENGINE = Path(__file__).resolve().parents[1]


def digest(unit: str, class_folder: Path | None = None) -> str:
    """SHA-256 of the engine, the unit's graders, misconceptions and solutions, and its source and release notebooks.

    Other units' folders are left out, so that fixing a grader of one unit does not mean marking another again.
    """
    digested = hashlib.sha256(_digest_of_the_rest(unit).encode())
    for notebook in (source(unit, class_folder), released(unit, class_folder)):
        digested.update(notebook.read_bytes())
    return digested.hexdigest()


@cache
def _digest_of_the_rest(unit: str) -> str:
    """The digest of all but the notebooks, which may be a class's own."""
    engine = {f"engine/{path.relative_to(_ENGINE)}": path for path in _engine()}
    return _digest_of(engine | {str(path.relative_to(folder())): path for path in _of_course(unit)})


def digest_as_it_is(unit: str, class_folder: Path | None = None) -> str:
    """The same, read anew: a process that goes on for days sees by it what was changed meanwhile."""
    _digest_of_the_rest.cache_clear()
    return digest(unit, class_folder)


def engine() -> str:
    """SHA-256 of the engine alone."""
    return _digest_of({str(path.relative_to(_ENGINE)): path for path in _engine()})


def whole() -> str:
    """SHA-256 of the engine and of all that the course marks by, in every unit, as it is on disk."""
    notebooks = [place for unit in unit_names() for place in (source(unit), released(unit))]
    files = {f"engine/{path.relative_to(_ENGINE)}": path for path in _engine()}
    files |= {str(path.relative_to(folder())): path for path in [*_of_course(), *notebooks] if path.is_file()}
    return _digest_of(files)


def _digest_of(files: Mapping[str, Path]) -> str:
    digested = hashlib.sha256()
    for name, path in sorted(files.items()):
        its = path.read_bytes()
        digested.update(f"{name} {len(its)}\n".encode() + its)
    return digested.hexdigest()


def _engine() -> Iterator[Path]:
    """The engine's code; in a checkout the course's graders and mistakes are in the same folder, and none of it."""
    for path in _ENGINE.rglob("*.py"):
        if path.relative_to(_ENGINE).parts[0] not in content.OF_EACH_UNIT:
            yield path


def _of_course(unit: str | None = None) -> Iterator[Path]:
    """What the course has for the unit, or for each, and for all of its units."""
    others = {*unit_names()} - {unit} if unit else set()
    for kind in (content.SOLUTIONS, *content.OF_EACH_UNIT):
        place = content.place(kind)
        for path in place.rglob("*"):
            if path.suffix in (".py", ".yaml") and path.relative_to(place).parts[0].removesuffix(".py") not in others:
                yield path
    yield folder() / FILE
