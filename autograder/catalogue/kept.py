"""What was found out of one exercise and what the kit knows of it, kept while a course is written.

It is kept in the course's `.cache/`, which is no part of the course, under a digest of all that it comes from: the
engine, the installed packages, the processor's kind, solutions and graders, and of mistakes and right answers those of
the exercise. Where any of these is another, or the file is damaged, there is nothing.
"""

import hashlib
import inspect
import os
import platform
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec
import torch

from .. import course
from ..course import content, kit
from ..course.folder import FILE, folder
from . import misconceptions, right_answers

FOLDER = ".cache"
_OF_OTHERS = re.compile(r"right_answers|^\s*from\s+\.", re.M)
"""In a module of right answers: that it needs another one."""
_QUOTED = re.compile(rb'"(\w+)"')
_TELL = {".dist-info", ".egg-link", ".pth"}
"""The endings of names among installed packages that say which version is there, and from where."""


class Kept:
    """What is kept of one kind and one exercise."""

    def __init__(self, kind: Literal["handout", "marks", "shown"], unit: str, exercise: str) -> None:
        """shown: of each mistake by itself, whatever others there are.

        Raises EditError where the exercise's mistakes cannot be read, and UnknownUnit and UnusableUnit.
        """
        self._file = folder() / FOLDER / kind / f"{unit}.{exercise}"
        its = repr(course.unit(unit).exercise(exercise)) if kind == "marks" else ""  # its points
        self._origin = _origin(unit, exercise, its, with_mistakes=kind != "shown").encode()

    def read(self) -> Any:
        """What was written last, as JSON gives it; None if that came from something else."""
        with suppress(OSError, ValueError, msgspec.DecodeError):
            origin, digest, made = self._file.read_bytes().split(b"\n", 2)
            if origin == self._origin and digest == _digest(made):
                return msgspec.json.decode(made)
        return None

    def write(self, found: Any) -> None:
        """Keeps it in the place of what was kept before, if the folder can be written."""
        made = msgspec.json.encode(found)
        part = self._file.with_name(f"{self._file.name}.{os.getpid()}.part")
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            (folder() / FOLDER / ".gitignore").write_text("*\n")
            part.write_bytes(b"\n".join([self._origin, _digest(made), made]))
            part.replace(self._file)


def _digest(made: bytes) -> bytes:
    return hashlib.sha256(made).hexdigest().encode()


def _origin(unit: str, exercise: str, its: str, *, with_mistakes: bool) -> str:
    """A digest of everything that what the graders find in the exercise's known answers can depend on."""
    digested = hashlib.sha256()
    for part in (its.encode(), *_surroundings(), *_of_course(unit, exercise, with_mistakes=with_mistakes)):
        digested.update(b"%d %b" % (len(part), part))
    return digested.hexdigest()


def _surroundings() -> Iterator[bytes]:
    yield kit.engine().encode()
    for place in filter(os.path.isdir, sys.path):
        yield "\n".join(sorted(one.name for one in Path(place).iterdir() if one.suffix in _TELL)).encode()
    about = sys.version, torch.__version__, torch.backends.cpu.get_cpu_capability(), platform.platform()
    yield repr(about).encode()


def _of_course(unit: str, exercise: str, *, with_mistakes: bool) -> Iterator[bytes]:
    yield repr((unit, exercise)).encode()
    quoted = set[bytes]()  # a hunt's grader names a mistake of another exercise
    for path in sorted(_files(unit, exercise)):
        held = path.read_bytes()
        quoted |= set(_QUOTED.findall(held))
        yield str(path.relative_to(folder())).encode()
        yield held
    for one in misconceptions(unit).values():
        if (with_mistakes and one.exercise == exercise) or one.name.encode() in quoted:
            code = one.code.base, one.code.edits
            said = one.mistake, one.sentence, one.kind, one.caught_by, one.whatever_weights
            yield repr((one.name, *said, code)).encode()


def _files(unit: str, exercise: str) -> set[Path]:
    """Settings, solutions and graders of the unit, its right answers to the exercise, and what these name of others."""
    others = {text.stem for text in (folder() / "exercises").glob("*.py")} - {unit}
    kinds = content.SOLUTIONS, content.HIDDEN
    files = {folder() / FILE, *_with_right_answers(unit, exercise, others)}
    files |= {path for kind in kinds for path in _of_units(kind, others)}
    while named := {other for other in others if any(_is_in(other, path) for path in files)}:
        others -= named
        files |= {path for kind in (*kinds, content.RIGHT_ANSWERS) for path in _of_units(kind, others)}
    return files


def _is_in(unit: str, path: Path) -> bool:
    return re.search(rb"\b%b\b" % re.escape(unit.encode()), path.read_bytes()) is not None


def _of_units(kind: str, others: set[str]) -> set[Path]:
    """What all units share of a kind, and what those have that are not `others`: modules, and what they may read."""
    place = content.place(kind)
    return {
        path
        for path in place.rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and path.relative_to(place).parts[0].removesuffix(".py") not in others
    }


def _with_right_answers(unit: str, exercise: str, others: set[str]) -> set[Path]:
    """The modules with right answers to the exercise, and those that are nobody's; all, where one needs another."""
    place, every = content.place(content.RIGHT_ANSWERS), _of_units(content.RIGHT_ANSWERS, others)
    known = [one.answer for one in right_answers(unit).values() if one.exercise == exercise]
    its = {Path(inspect.getsourcefile(answer) or "") for answer in known}
    if any(_OF_OTHERS.search(path.read_text()) for path in its):
        return every
    return its | {path for path in every if path.parent == place or path.name == "__init__.py"}
