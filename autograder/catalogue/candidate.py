"""One known answer: its exercise, its sentence for students and its code, which may be an edited right answer.

A misconception is a mutant of a right answer. An edit replaces words and signs. Spaces, line breaks and the kind of
quotes do not matter when its old text is searched for.
"""

import ast
import copy
import inspect
import io
import linecache
import re
import sys
import tokenize
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import accumulate, pairwise
from textwrap import dedent
from typing import Any, Literal, get_args
from weakref import finalize

from .. import UserError
from ..course import content

_WORDS = re.compile(r'"[^"\n]*"|\'[^\'\n]*\'|\w+|\S')
_ARROW = re.compile(r"\s+->(?:\s+|$)")
Kind = Literal[
    "value", "mask", "edge", "gradient", "initialisation", "dropout",
    "device", "dtype", "side effect", "contract", "hard-coded output",
]  # fmt: skip
"""The aspect of the exercise that a misconception gets wrong.

value: the results in general. edge: unusual cases (sizes of 1, large scores, other lengths). contract: the form of the
result, required calls, or required rejections of inputs. hard-coded output: right only for the public examples.
"""
KINDS: tuple[Kind, ...] = get_args(Kind)


class EditError(UserError, ValueError):
    """Raised if an edit or the code of a known answer is invalid; `str()` says why."""


@dataclass(frozen=True)
class Edit:
    """One change of an answer's text: replace `old` by `new`.

    `old` must occur exactly once or, if `everywhere`, at least twice; then all occurrences are replaced.
    """

    old: str
    new: str
    everywhere: bool = False

    @classmethod
    def parse(cls, written: str, *, everywhere: bool = False) -> "Edit":
        """Parse an edit written as `old -> new`; raises EditError."""
        parts = _ARROW.split(written.rstrip("\n"), maxsplit=1)
        if len(parts) != 2 or not parts[0].strip():
            raise EditError(f"write an edit as `old -> new`, not `{written.strip()}`")
        return cls(parts[0], parts[1], everywhere)

    def places(self, text: str) -> Sequence[tuple[int, int]]:
        """Return start and end of each occurrence of `old` in a text.

        Raises EditError unless there is exactly one or, if `everywhere`, at least two.
        """
        found = _places(self.old, text)
        if self.everywhere and len(found) < 2:
            raise EditError(f"the code must contain `{self.old}` more than once, but contains it {len(found)} times")
        if not self.everywhere and len(found) != 1:
            raise EditError(f"the code must contain `{self.old}` exactly once, but contains it {len(found)} times")
        return found


def edited(text: str, edits: Sequence[Edit]) -> str:
    """Return a text with all edits made. `{}` in an edit's new text stands for the old text.

    Raises EditError if an edit does not fit the text, or if two edits overlap.
    """
    changes = [(begin, end, edit) for edit in edits for begin, end in edit.places(text)]
    changes.sort(key=lambda change: change[:2])
    for (_, end, one), (begin, _, other) in pairwise(changes):
        if begin < end:
            raise EditError(f"`{one.old}` and `{other.old}` overlap")
    for begin, end, edit in reversed(changes):
        line = text[:begin].rpartition("\n")[2]
        indent = line[: len(line) - len(line.lstrip())]
        new = edit.new.replace("{}", text[begin:end]).replace("\n", f"\n{indent}")
        text = text[:begin] + new + text[end:]
    return text


def strip_annotations(source: str) -> str:
    """Return the source of a function or class without docstrings, annotations, decorators and comments.

    The rest of each line is unchanged.
    """
    text = dedent(source)
    encoded = text.encode()
    line_starts = [0, *accumulate(map(len, encoded.splitlines(keepends=True)))]

    def start(node: ast.stmt | ast.expr | ast.arg) -> int:
        return line_starts[node.lineno - 1] + node.col_offset

    def end(node: ast.stmt | ast.expr | ast.arg) -> int:
        return line_starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)

    cuts: list[tuple[int, int]] = []
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.FunctionDef() | ast.ClassDef():
                if node.decorator_list:
                    cuts.append((start(node.decorator_list[0]) - len("@"), start(node)))
                if ast.get_docstring(node) is not None:
                    cuts.append((start(node.body[0]), end(node.body[0])))
                if isinstance(node, ast.FunctionDef) and node.returns is not None:
                    cuts.append((encoded.rindex(b"->", 0, start(node.returns)), end(node.returns)))
            case ast.arg(annotation=ast.expr() as annotation):
                cuts.append((start(node) + len(node.arg.encode()), end(annotation)))
            case ast.AnnAssign(value=None):
                cuts.append((start(node), end(node)))
            case ast.AnnAssign():
                cuts.append((end(node.target), end(node.annotation)))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            begin = line_starts[token.start[0] - 1] + len(token.line[: token.start[1]].encode())
            cuts.append((begin, begin + len(token.string.encode())))
    for begin, stop in sorted(cuts, reverse=True):
        encoded = encoded[:begin] + encoded[stop:]
    lines = [line.rstrip() for line in encoded.decode().splitlines()]
    return "\n".join(filter(None, lines)).replace(" :\n", ":\n") + "\n"


@cache  # edits are paired thousands of times, in the same few texts
def _places(old: str, text: str) -> Sequence[tuple[int, int]]:
    wanted, _ = _words(old)
    words, spans = _words(text)
    return [
        (spans[i][0], spans[i + len(wanted) - 1][1])
        for i in range(len(words) - len(wanted) + 1)
        if wanted and words[i : i + len(wanted)] == wanted
    ]


@cache
def _words(text: str) -> tuple[list[str], list[tuple[int, int]]]:
    """Return the words and signs of a text, with strings in double quotes, and the span of each in the text."""
    matches = list(_WORDS.finditer(text))
    words = [f'"{m[0][1:-1]}"' if m[0][0] == "'" and len(m[0]) > 1 else m[0] for m in matches]
    return words, [match.span() for match in matches]


@dataclass(frozen=True)
class Code:
    """A known answer as text: the base, such as the solution's source, and edits of it."""

    unit: str
    exercise: str
    base: str
    edits: tuple[Edit, ...] = ()
    origin: str = ""
    """The file and the answer's name, for error messages."""

    @property
    def text(self) -> str:
        """The code with all edits, formatted by `ast.unparse`.

        Raises EditError if an edit cannot be made, or if the code is not one definition with the exercise's name.
        """
        try:
            (definition,) = ast.parse(self.written).body
        except (SyntaxError, ValueError) as reason:
            raise self._no_definition(reason) from None
        if getattr(definition, "name", None) != self.exercise:
            raise self._does_not_define()
        return ast.unparse(definition)

    @cached_property
    def written(self) -> str:
        """The base's text with all edits made; raises EditError if one cannot be made."""
        try:
            return edited(self.base, self.edits)
        except EditError as reason:
            raise self._wrong(str(reason)) from None

    @cached_property
    def answer(self) -> Any:
        """The function or class that the code defines; raises EditError if the code does not define it.

        Its globals are the unit's other solutions and the names that notebooks define.
        """
        file = f"<{self.exercise} {id(self):x}>"
        try:
            code = compile(self.written, file, "exec")
        except (SyntaxError, ValueError) as reason:
            raise self._no_definition(reason) from None
        linecache.cache[file] = (len(self.written), None, self.written.splitlines(keepends=True), file)  # TorchScript
        finalize(self, linecache.cache.pop, file, None)
        scope = {**content.notebook(), **content.solutions(self.unit), "__name__": self.exercise}
        scope.pop(self.exercise, None)
        exec(code, scope)
        if self.exercise not in scope:
            raise self._does_not_define()
        return scope[self.exercise]

    def _no_definition(self, reason: Exception) -> EditError:
        return self._wrong(f"the code is not one definition ({reason}):\n{self.written}")

    def _does_not_define(self) -> EditError:
        return self._wrong(f"the code does not define `{self.exercise}`")

    def _wrong(self, reason: str) -> EditError:
        return EditError(f"{self.origin}: {reason}." if self.origin else reason)


@dataclass(frozen=True)
class Candidate:
    """One known answer to an exercise: a misconception, an alternative solution or the solution."""

    exercise: str
    name: str
    sentence: str
    """A misconception's sentence for students; for an alternative solution, a description of its style."""
    code: Any
    """The answer as `Code`, or as the function or class itself."""
    kind: Kind | None = None
    """The aspect that a misconception gets wrong; None for a right answer."""
    caught_by: str | None = None
    """Name of the hidden test that a misconception must fail; None for a right answer."""
    mistake: str = ""
    """Name of the misconception of which this is a variant; the answer's own name if it is not a variant."""
    whatever_weights: bool = False
    """True if the sentence is also true for every class that differs only in its initial weights."""

    @property
    def is_misconception(self) -> bool:
        """True if the answer is a misconception, not a right answer."""
        return self.caught_by is not None

    @property
    def answer(self) -> Any:
        """The answer as a function or class."""
        return self.code.answer if isinstance(self.code, Code) else self.code

    def recreated(self) -> "Candidate":
        """Return a copy whose function or class is created again, because a used class may have stored results."""
        return replace(self, code=replace(self.code)) if isinstance(self.code, Code) else self

    def source(self) -> str:
        """Return the answer's source as a student could have typed it: with the exercise's name, without docstring."""
        return self.code.text if isinstance(self.code, Code) else _typed(self.code, self.exercise)


def can_be_combined(one: Candidate, other: Candidate) -> bool:
    """Return whether the edits of both misconceptions can be made in the same code without overlapping."""
    return _common_base(one, other) is not None


def combined(one: Candidate, other: Candidate) -> Candidate:
    """Return an answer that has both misconceptions.

    Raises EditError if either has no edits, or if the edits overlap or cannot be made in the same code. If the combined
    code is not valid, the result's `answer` raises EditError.
    """
    if not _are_edits(one, other):
        raise EditError("they are not edits of the same code")
    base = _common_base(one, other) or one.code.base
    code = Code(one.code.unit, one.exercise, base, (*one.code.edits, *other.code.edits))
    _ = code.written
    return Candidate(
        one.exercise, f"{one.name} and {other.name}", f"{one.sentence} {other.sentence}", code, one.kind, one.caught_by
    )


def moved(one: Candidate, other: Candidate) -> list[tuple[Candidate, Candidate]]:
    """Return each of two combined misconceptions whose edit was moved to other code, with the edit made only there.

    In the other code, the same edit may be another misconception, and its sentence not true.
    """
    base = _common_base(one, other)
    return [
        (each, replace(each, code=replace(each.code, base=base))) for each in (one, other) if each.code.base != base
    ]


def _are_edits(*candidates: Candidate) -> bool:
    return all(isinstance(one.code, Code) and one.code.edits for one in candidates)


def _common_base(one: Candidate, other: Candidate) -> str | None:
    """Return a base in which both misconceptions' edits can be made, that of `one` if possible; else None."""
    if not _are_edits(one, other):
        return None
    edits = (*one.code.edits, *other.code.edits)
    for base in dict.fromkeys((one.code.base, other.code.base)):
        with suppress(EditError):
            places = sorted(place for edit in edits for place in edit.places(base))
            if all(a[1] <= b[0] for a, b in pairwise(places)):
                return str(base)
    return None


def _typed(thing: Any, name: str) -> str:
    # A class is found by its name; of functions several may be called `_`.
    where = thing.__name__ if inspect.isclass(thing) else thing.__code__.co_firstlineno
    definition = copy.copy(_definitions(thing.__module__)[where])  # a shallow copy: only its own fields are replaced
    definition.name = name
    definition.decorator_list = []
    if ast.get_docstring(definition) is not None:  # the catalogue's, not the student's
        definition.body = definition.body[1:] or [ast.Pass()]
    return ast.unparse(definition)


@cache
def _definitions(module: str) -> dict[str | int, ast.FunctionDef | ast.ClassDef]:
    """Return a module's functions and classes, each by its name and by the number of its first line."""
    found: dict[str | int, ast.FunctionDef | ast.ClassDef] = {}
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, ast.ClassDef) and node.name in found:
            raise ValueError(f"{module}: two classes are called `{node.name}`. Rename one.")
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = found[min(one.lineno for one in [node, *node.decorator_list])] = node
    return found
