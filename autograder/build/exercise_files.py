"""Begin an exercise with template files, find the parts of them that are left to write, or remove an exercise.

CONTRIBUTING.md lists the files. Removing an exercise deletes its own pieces and names every other mention of it.
"""

import ast
import keyword
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from string import Template

from .. import UserError, output_files
from ..course import content
from ..course.settings import folder, load

_TEMPLATES = Path(__file__).parent / "templates"
MARK = "TO WRITE:"


class NotBegun(UserError):
    """Raised if no files for a new exercise can be written; `str()` says why. Nothing was written."""


def new_exercise(unit: str, name: str, *, of_a_class: bool = False) -> list[Path]:
    """Write the template files of an exercise, and those of its unit if the unit is new; return their paths.

    of_a_class: True if students write a class, not a function. Raises NotBegun, NotWritable and BadSettings.
    """
    for identifier in (unit, name):
        is_name = identifier.isidentifier() and identifier.isascii() and not identifier.startswith("_")
        if not is_name or keyword.iskeyword(identifier):
            raise NotBegun(f"`{identifier}` cannot be the name of a unit or exercise: use letters, digits and `_`.")
    if unit == content.NOTEBOOK:
        raise NotBegun(f"solutions/{unit}.py contains what every notebook defines: give the unit another name.")
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    text_file, lesson_file, solutions_file = files_of_unit(unit)
    graders_file = content.place(content.HIDDEN) / unit / f"test_{snake}.py"
    mistakes_file = content.place(content.MISCONCEPTIONS) / unit / f"{snake}.yaml"
    right_answers_file = content.place(content.RIGHT_ANSWERS) / unit / f"{snake}.py"
    words = {"name": name, "snake": snake, "unit": unit, "check": load().check}
    text = read_text(text_file) or _filled("unit_text", words)
    solutions = read_text(solutions_file) or _filled("unit_solutions", words)
    _reject_taken(unit, name, text, solutions)
    for file in (graders_file, mistakes_file, right_answers_file):
        if file.exists():
            raise NotBegun(f"{file.relative_to(folder())} already exists: move it, or choose another name.")
    solutions = _importing("from torch import nn" if of_a_class else "", _importing("import torch", solutions))
    kind = "class" if of_a_class else "function"
    contents = {
        text_file: text.rstrip("\n") + "\n" + _filled("exercise_text", words),
        solutions_file: solutions.rstrip("\n") + "\n" + _filled(kind, words),
        graders_file: _filled(f"{kind}_graders", words),
        mistakes_file: _filled("mistakes", words),
        right_answers_file: _filled(f"{kind}_right_answer", words),
    }
    if lesson := read_text(lesson_file):
        contents[lesson_file] = _with_hints(lesson, _filled("hints", words))
    for file in contents:
        output_files.check(file, makes_folder=True)
    output_files.write({file: content.encode() for file, content in contents.items()}, makes_folder=True)
    return list(contents)


def _filled(template: str, words: Mapping[str, str]) -> str:
    """Return the text of a template with these words filled in."""
    return Template((_TEMPLATES / f"{template}.txt").read_text()).substitute(words)


def left_to_write(unit: str) -> list[str]:
    """Return the parts left to write in a unit's files, each as `FILE, line NUMBER: TEXT`."""
    files = files_of_unit(unit)
    for kind in content.OF_EACH_UNIT:
        files += sorted(path for path in (content.place(kind) / unit).rglob("*") if path.suffix in (".py", ".yaml"))
    return [
        f"{file.relative_to(folder())}, line {number}: " + line.partition(MARK)[2].strip(' "')
        for file in files
        if file.is_file()
        for number, line in enumerate(file.read_text().splitlines(), start=1)
        if MARK in line
    ]


def files_of_unit(unit: str) -> list[Path]:
    """Return the paths of a unit's text, of its guesses and hints, and of its solutions; they may not exist."""
    text = folder() / "exercises" / f"{unit}.py"
    return [text, text.with_suffix(".yaml"), content.place(content.SOLUTIONS) / f"{unit}.py"]


def _reject_taken(unit: str, name: str, text: str, solutions: str) -> None:
    """Raise NotBegun if the unit's solutions define this name, or a cell of its text has it."""
    try:
        names = set(_bound(ast.parse(solutions)))
    except SyntaxError as error:
        raise NotBegun(f"solutions/{unit}.py, line {error.lineno}, is not Python: {error.msg}.") from None
    if name in names:
        raise NotBegun(f"solutions/{unit}.py has a `{name}` already: give the exercise another name.")
    if re.search(rf'^# %%.*"{name}"', text, re.MULTILINE):
        raise NotBegun(f"exercises/{unit}.py has a cell called `{name}` already: take another name.")


def _with_hints(lesson: str, new: str) -> str:
    """Return the text of a unit's guesses and hints with a new exercise's hints inserted before the others.

    lesson: the present text. new: the YAML of the new hints, which is indented like the others.
    """
    found = re.search(r"^hints:[ \t]*(?:#.*)?\n(?:[ \t]*(?:#.*)?\n)*(?=( +)\S)", lesson, re.M)
    if found:
        return lesson[: found.end()] + textwrap.indent(new, found[1]) + lesson[found.end() :]
    if re.search(r"^hints:", lesson, re.M):  # all hints are on one line: the build reports the missing ones
        return lesson
    return f"{lesson.rstrip()}\n\nhints:\n{textwrap.indent(new, '  ')}"


def _bound(module: ast.Module) -> Iterator[str]:
    """Yield the names that a module defines or imports."""
    for node in module.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from ((one.asname or one.name).partition(".")[0] for one in names)
            case ast.Assign() | ast.AnnAssign():
                yield from (one.id for one in ast.walk(node) if isinstance(one, ast.Name))


def _importing(line: str, solutions: str) -> str:
    """Return a module's source with an import added below its other imports, unless it has the imported name.

    line: the import statement; empty to add none.
    """
    module = ast.parse(solutions)
    if not line or line.split()[-1] in _bound(module):
        return solutions
    imports = [node for node in module.body if isinstance(node, ast.Import | ast.ImportFrom)]
    docstring = module.body[:1] if ast.get_docstring(module) is not None else []
    after = max((node.end_lineno or 0 for node in [*docstring, *imports]), default=0)
    lines = solutions.splitlines()
    lines[after:after] = [line] if imports else ["", line]
    return "\n".join(lines) + "\n"


def read_text(path: Path) -> str:
    """Return a file's text; empty if the file does not exist. Raises NotBegun if it cannot be read."""
    try:
        return path.read_text() if path.is_file() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise NotBegun(f"{path.relative_to(folder())} cannot be read: {error}.") from None


_CELL = re.compile(r"^# %%", re.M)
_BOX = re.compile(r"# %% \[markdown\]\n# <details><summary>What is tested</summary>")
_MENTIONS_IN = ("exercises", "solutions", "autograder", "tests", "docs", "benchmarks", "demo")
"""Folders of a course with files that may mention an exercise. source/ and release/ are built from these."""
_SUFFIXES = {".py", ".yaml", ".md", ".txt"}
_Definition = ast.FunctionDef | ast.ClassDef


class NotRemoved(NotBegun):
    """The exercise cannot be removed, and nothing was changed."""


@dataclass(frozen=True)
class Removal:
    """The files that an exercise was in."""

    changed: list[Path]
    deleted: list[Path]
    mentions: list[str]
    """Files that still mention the exercise, with the lines."""


def remove_exercise(unit: str, name: str) -> Removal:
    """Remove an exercise that no class has: undo `new_exercise`, whatever was written since.

    A unit that has nothing but the texts that `new_exercise` began it with is removed, too.
    Raises NotRemoved, NotBegun, NotWritable and BadSettings.
    """
    text_file, lesson_file, solutions_file = files_of_unit(unit)
    before = {path: read_text(path) for path in (text_file, lesson_file, solutions_file) if path.is_file()}
    if not re.search(rf'^# %%.*\bexercise="{re.escape(name)}"', before.get(text_file, ""), re.M):
        raise NotRemoved(f"exercises/{unit}.py has no exercise `{name}`.")
    of_exercise = _decorated("exercise", name), _decorated("right_answer", name)
    for kind, is_piece in zip((content.HIDDEN, content.RIGHT_ANSWERS), of_exercise, strict=True):
        before |= {path: read_text(path) for path in _files(kind, unit, ".py") if any(_pieces(path, is_piece))}
    mistakes = [path for path in _files(content.MISCONCEPTIONS, unit, ".yaml") if _is_only_of(path, name)]
    after: dict[Path, str] = dict.fromkeys(mistakes, "")
    for path, text in before.items():
        if path == text_file:
            after[path] = _without_cells(text, name)
        elif path == lesson_file:
            after[path] = _without_hints(text, name)
        elif path == solutions_file:
            after[path] = _without(text, path, lambda node: node.name == name)
        else:
            is_piece = of_exercise[path.is_relative_to(content.place(content.RIGHT_ANSWERS))]
            after[path] = _without(text, path, is_piece)
            after[path] = after[path] if any(_definitions(after[path], path)) else ""
    words = {"unit": unit, "check": load().check}
    begun = {
        text_file: _filled("unit_text", words),
        solutions_file: _filled("unit_solutions", words),
    }
    if all(after.get(path) == text for path, text in begun.items()):
        after |= dict.fromkeys(begun, "")
    changed = {path: text.encode() for path, text in after.items() if text and text != before.get(path)}
    deleted = [path for path, text in after.items() if not text]
    output_files.write(changed)
    for path in deleted:
        path.unlink()
        if path.parent.name == unit and not any(path.parent.iterdir()):
            path.parent.rmdir()
    return Removal(list(changed), deleted, list(_mentions(name)))


def _files(kind: str, unit: str, suffix: str) -> list[Path]:
    return sorted((content.place(kind) / unit).rglob(f"*{suffix}"))


def _is_only_of(path: Path, name: str) -> bool:
    """Return whether a file has misconceptions of this exercise and of no other."""
    return bool(re.search(rf"^exercises: *{re.escape(name)} *(#.*)?$", read_text(path), re.M))


def _decorated(decorator: str, name: str) -> Callable[[_Definition], bool]:
    """Return a predicate: a definition is decorated like `@contracts.exercise("softmax")`, with this name."""

    def is_piece(node: _Definition) -> bool:
        return any(
            isinstance(call, ast.Call)
            and ast.unparse(call.func).rpartition(".")[2] == decorator
            and bool(call.args)
            and ast.unparse(call.args[0]) == repr(name)
            for call in node.decorator_list
        )

    return is_piece


def _parsed(text: str, path: Path) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise NotRemoved(f"{path.relative_to(folder())}, line {error.lineno}, is not Python: {error.msg}.") from None


def _definitions(text: str, path: Path) -> Iterator[_Definition]:
    yield from (node for node in _parsed(text, path).body if isinstance(node, _Definition))


def _pieces(path: Path, is_piece: Callable[[_Definition], bool]) -> Iterator[_Definition]:
    yield from filter(is_piece, _definitions(read_text(path), path))


def _without(text: str, path: Path, is_piece: Callable[[_Definition], bool]) -> str:
    """Return a module without these definitions, and without the imports that only they used."""
    lines, module = text.splitlines(), _parsed(text, path)
    removed = [node for node in module.body if isinstance(node, _Definition) and is_piece(node)]
    names = {one.id for node in removed for one in ast.walk(node) if isinstance(one, ast.Name)}
    kept = [node for node in module.body if node not in removed]
    names -= {one.id for node in kept for one in ast.walk(node) if isinstance(one, ast.Name)}
    imports = [node for node in kept if isinstance(node, ast.Import | ast.ImportFrom) and _binds_only(node, names)]
    for node in reversed(module.body):
        if node not in removed and node not in imports:
            continue
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))]) - 1
        while first and lines[first - 1].startswith("#"):
            first -= 1
        last = node.end_lineno or node.lineno
        is_alone = last == len(lines) or not lines[last].strip()
        while first and is_alone and not lines[first - 1].strip():
            first -= 1
        del lines[first:last]
    return "\n".join(lines).rstrip("\n") + "\n"


def _binds_only(node: ast.Import | ast.ImportFrom, names: set[str]) -> bool:
    return all((one.asname or one.name).partition(".")[0] in names for one in node.names)


def _without_cells(text: str, name: str) -> str:
    """Return a unit's text without an exercise's cell, the text above that mentions it, and what is tested below."""
    starts = [match.start() for match in _CELL.finditer(text)]
    cells = [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    number = next(n for n, cell in enumerate(cells) if re.match(rf'# %%.*\bexercise="{re.escape(name)}"', cell))
    first, last = number, number + 1
    if number and cells[number - 1].startswith("# %% [markdown]") and _is_mentioned(name, cells[number - 1]):
        first -= 1
    if last < len(cells) and _BOX.match(cells[last]):
        last += 1
    return (text[: starts[0]] + "".join(cells[:first] + cells[last:])).rstrip("\n") + "\n"


def _without_hints(text: str, name: str) -> str:
    """Return a unit's guesses and hints without an exercise's hints."""
    block = re.compile(rf"^( +){re.escape(name)}:.*\n(?:\1[ -].*\n|[ \t]*\n)*", re.M)
    head, hints, rest = text.partition("hints:")
    rest = block.sub("", rest, count=1)
    if not rest.strip():
        return head.rstrip("\n") + "\n"
    return head + hints + rest


def _is_mentioned(name: str, text: str) -> bool:
    return bool(re.search(rf"\b{re.escape(name)}\b", text))


def _mentions(name: str) -> Iterator[str]:
    """Yield the course's files that mention an exercise, with the lines."""
    for place in _MENTIONS_IN:
        for path in sorted((folder() / place).rglob("*")):
            if path.suffix in _SUFFIXES and path.is_file():
                lines = enumerate(path.read_text(errors="replace").splitlines(), start=1)
                if numbers := [number for number, line in lines if _is_mentioned(name, line)]:
                    yield f"{path.relative_to(folder())}: {', '.join(_ranges(numbers))}"


def _ranges(numbers: list[int]) -> Iterator[str]:
    """Yield rising numbers as text, those that follow each other as `3-5`."""
    for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        first, *_, last = [number for _, number in run] * 2
        yield str(first) if first == last else f"{first}-{last}"
