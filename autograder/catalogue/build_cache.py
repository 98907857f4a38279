"""Cache the results of grading one exercise's known answers, so that a build repeats only what has changed.

The files are in the course's `.cache/`. Each has a digest of everything that its results depend on: the engine, the
installed packages, the type of processor, the unit's solutions, hidden tests and alternative solutions, and the
exercise's misconceptions. If any of these has changed, or the file is damaged, its results are not used.
"""

import hashlib
import os
import platform
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
import torch

from ..course import content
from ..course.settings import FILE, folder, read_secret
from .known_answers import misconceptions

T = TypeVar("T")
FOLDER = ".cache"
_QUOTED = re.compile(rb'"(\w+)"')
_PACKAGES = {".dist-info", ".egg-link", ".pth"}
"""Endings of files and folders whose names state an installed package and its version."""


class BuildCache:
    """The cache file for results of one kind on one exercise."""

    def __init__(self, kind: Literal["handout", "shown"], unit: str, exercise: str) -> None:
        """kind: `shown` is for results on single misconceptions, which do not depend on the others.

        Raises EditError if the exercise's misconceptions cannot be read.
        """
        self._file = folder() / FOLDER / kind / f"{unit}.{exercise}"
        self._origin = _origin(unit, exercise, with_misconceptions=kind != "shown").encode()

    def read(self, form: type[T]) -> T | None:
        """Return the cached result; None if it is missing, outdated or not of the type `form`."""
        with suppress(OSError, ValueError, msgspec.DecodeError):
            origin, digest, result = self._file.read_bytes().split(b"\n", 2)
            if origin == self._origin and digest == _digest(result):
                return msgspec.json.decode(result, type=form)
        return None

    def write(self, result: Any) -> None:
        """Replace the cached result; does nothing if the folder cannot be written."""
        encoded = msgspec.json.encode(result)
        part = self._file.with_name(f"{self._file.name}.{os.getpid()}.part")
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            (folder() / FOLDER / ".gitignore").write_text("*\n")
            part.write_bytes(b"\n".join([self._origin, _digest(encoded), encoded]))
            part.replace(self._file)


def _digest(encoded: bytes) -> bytes:
    return hashlib.sha256(encoded).hexdigest().encode()


def _origin(unit: str, exercise: str, *, with_misconceptions: bool) -> str:
    """Return a digest of everything on which the results on an exercise's known answers can depend.

    with_misconceptions: include the exercise's own misconceptions.
    """
    digested = hashlib.sha256()
    parts = *_environment(), *_content(unit, exercise, with_misconceptions=with_misconceptions)
    for part in parts:
        digested.update(b"%d %b" % (len(part), part))
    return digested.hexdigest()


def _environment() -> Iterator[bytes]:
    yield content.engine_digest().encode()
    yield read_secret().encode()
    for place in filter(os.path.isdir, sys.path):
        yield "\n".join(sorted(one.name for one in Path(place).iterdir() if one.suffix in _PACKAGES)).encode()
    machine = sys.version, torch.__version__, torch.backends.cpu.get_cpu_capability(), platform.platform()
    yield repr(machine).encode()


def _content(unit: str, exercise: str, *, with_misconceptions: bool) -> Iterator[bytes]:
    yield repr((unit, exercise)).encode()
    quoted = set[bytes]()  # a counterexample exercise's hidden test names a misconception of another exercise
    for path in sorted(_files(unit)):
        content_bytes = path.read_bytes()
        quoted |= set(_QUOTED.findall(content_bytes))
        yield str(path.relative_to(folder())).encode()
        yield content_bytes
    for one in misconceptions(unit).values():
        if (with_misconceptions and one.exercise == exercise) or one.name.encode() in quoted:
            code = one.code.base, one.code.edits
            fields = one.mistake, one.sentence, one.kind, one.caught_by, one.whatever_weights
            yield repr((one.name, *fields, code)).encode()


def _files(unit: str) -> set[Path]:
    """Return the paths of the files on which the results of a unit's exercises depend, besides the misconceptions.

    These are the course's settings, and the unit's solutions, hidden tests and alternative solutions. If one of them
    names another unit, that unit's files are included.
    """
    others = {text.stem for text in (folder() / "exercises").glob("*.py")} - {unit}
    files = _files_without(others)
    while named := {other for other in others if any(_names(other, path) for path in files)}:
        others -= named
        files = _files_without(others)
    return files


def _names(unit: str, path: Path) -> bool:
    return re.search(rb"\b%b\b" % re.escape(unit.encode()), path.read_bytes()) is not None


def _files_without(others: set[str]) -> set[Path]:
    """Return the paths of the settings and of all files of the course's modules, except those of the units `others`."""
    files = {folder() / FILE}
    for place in map(content.place, (content.SOLUTIONS, content.HIDDEN, content.RIGHT_ANSWERS)):
        files |= {
            path
            for path in place.rglob("*")
            if path.is_file()
            and "__pycache__" not in path.parts
            and path.relative_to(place).parts[0].removesuffix(".py") not in others
        }
    return files
