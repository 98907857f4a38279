"""Writes the first pieces of a new exercise, as CONTRIBUTING.md lists them; `to_write` tells what is left of them."""

import ast
import keyword
import re
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..course import content
from ..course.folder import folder
from ..course.settings import load
from ..errors import UserError
from . import first_pieces as pieces


class NotBegun(UserError):
    """The exercise cannot be begun, and nothing was written; `str()` says why and what to do."""


@dataclass(frozen=True)
class _Place:
    """The files of a new exercise."""

    unit: str
    name: str

    @property
    def snake(self) -> str:
        """The name as files are called."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", self.name).lower()

    @property
    def text(self) -> Path:
        return folder() / "exercises" / f"{self.unit}.py"

    @property
    def lesson(self) -> Path:
        return self.text.with_suffix(".yaml")

    @property
    def solutions(self) -> Path:
        return content.place(content.SOLUTIONS) / f"{self.unit}.py"

    @property
    def graders(self) -> Path:
        return content.place(content.HIDDEN) / self.unit / f"test_{self.snake}.py"

    @property
    def mistakes(self) -> Path:
        return content.place(content.MISCONCEPTIONS) / self.unit / f"{self.snake}.yaml"

    @property
    def right_answers(self) -> Path:
        return content.place(content.RIGHT_ANSWERS) / self.unit / f"{self.snake}.py"


def new_exercise(unit: str, name: str, *, of_a_class: bool = False) -> list[Path]:
    """Writes the pieces of an exercise of this name, and of the unit if it is new; returns their files.

    of_a_class: a class is to be written, and not a function. Raises NotBegun and BadSettings.
    """
    place = _Place(unit, name)
    _refuse_unusable(place)
    words = {"name": name, "snake": place.snake, "unit": unit, "check": load().check}
    text = _read(place.text) or pieces.UNIT_TEXT.substitute(words)
    solutions = _read(place.solutions) or pieces.UNIT_SOLUTIONS.substitute(words)
    _refuse_taken(place, text, solutions)
    solutions = _importing("from torch import nn" if of_a_class else "", _importing("import torch", solutions))
    definition = pieces.CLASS if of_a_class else pieces.FUNCTION
    graders = pieces.GRADERS_OF_A_CLASS if of_a_class else pieces.GRADERS_OF_A_FUNCTION
    right = pieces.RIGHT_ANSWER_OF_A_CLASS if of_a_class else pieces.RIGHT_ANSWER_OF_A_FUNCTION
    written = {
        place.text: text.rstrip("\n") + "\n" + pieces.TEXT.substitute(words),
        place.solutions: solutions.rstrip("\n") + "\n" + definition.substitute(words),
        place.graders: graders.substitute(words),
        place.mistakes: pieces.MISTAKES.substitute(words),
        place.right_answers: right.substitute(words),
    }
    if lesson := _read(place.lesson):
        written[place.lesson] = _with_hints(lesson, pieces.HINTS.substitute(words))
    _write(written)
    return list(written)


def _with_hints(lesson: str, new: str) -> str:
    """The unit's guesses and hints, with an exercise's more where the hints begin, as far in as the others."""
    found = re.search(r"^hints:[ \t]*(?:#.*)?\n(?:[ \t]*(?:#.*)?\n)*(?=( +)\S)", lesson, re.M)
    if found:
        return lesson[: found.end()] + textwrap.indent(new, found[1]) + lesson[found.end() :]
    if re.search(r"^hints:", lesson, re.M):  # on one line: `build` says which are missing
        return lesson
    return f"{lesson.rstrip()}\n\nhints:\n{textwrap.indent(new, '  ')}"


def _write(texts: dict[Path, str]) -> None:
    """Writes all of these or none: each beside its place first, for some are there and must not be lost."""
    parts = {path: path.with_name(f".{path.name}.part") for path in texts}
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            parts[path].write_text(text)
        for path, part in parts.items():
            part.replace(path)
    except OSError as error:
        raise NotBegun(f"{error.filename} cannot be written: {error.strerror}. Nothing was changed.") from None
    finally:
        for part in parts.values():
            with suppress(OSError):
                part.unlink(missing_ok=True)


def _refuse_unusable(place: _Place) -> None:
    for name in (place.unit, place.name):
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_") or not name.isascii():
            raise NotBegun(f"`{name}` is no name that Python and a file can have: take letters, digits and `_`.")
    if place.unit == content.NOTEBOOK:
        raise NotBegun(f"solutions/{place.unit}.py is what every notebook defines: give the unit another name.")


def _refuse_taken(place: _Place, text: str, solutions: str) -> None:
    """Raises NotBegun where something of this name is there."""
    where = f"solutions/{place.unit}.py"
    try:
        names = set(_bound(ast.parse(solutions)))
    except SyntaxError as error:
        raise NotBegun(f"{where}, line {error.lineno}, is not Python: {error.msg}.") from None
    if place.name in names:
        raise NotBegun(f"{where} has a `{place.name}` already: give the exercise another name.")
    if re.search(rf'^# %%.*"{place.name}"', text, re.MULTILINE):
        raise NotBegun(f"exercises/{place.unit}.py has a cell called `{place.name}` already: take another name.")
    for path in (place.graders, place.mistakes, place.right_answers):
        if path.exists():
            raise NotBegun(f"{path.relative_to(folder())} is there already: move it, or take another name.")


def _bound(module: ast.Module) -> Iterator[str]:
    """The names that a module defines or imports."""
    for node in module.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from ((one.asname or one.name).partition(".")[0] for one in names)
            case ast.Assign() | ast.AnnAssign():
                yield from (one.id for one in ast.walk(node) if isinstance(one, ast.Name))


def _importing(line: str, solutions: str) -> str:
    """The solutions with this import, below those that are there or the docstring, if they lack what it brings."""
    module = ast.parse(solutions)
    if not line or line.split()[-1] in _bound(module):
        return solutions
    imports = [node for node in module.body if isinstance(node, ast.Import | ast.ImportFrom)]
    docstring = module.body[:1] if ast.get_docstring(module) is not None else []
    after = max((node.end_lineno or 0 for node in [*docstring, *imports]), default=0)
    lines = solutions.splitlines()
    lines[after:after] = [line] if imports else ["", line]
    return "\n".join(lines) + "\n"


def _read(path: Path) -> str:
    """What is in a file; nothing if it is not there. Raises NotBegun where it cannot be read."""
    try:
        return path.read_text() if path.is_file() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise NotBegun(f"{path.relative_to(folder())} cannot be read: {error}.") from None
