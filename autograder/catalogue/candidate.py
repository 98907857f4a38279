"""One known answer: its exercise, its sentence and its code, which may be made by edits of a right answer's text.

A misconception is a mutant of a right answer. An edit replaces words and signs. Spaces, line breaks and the kind of
quotes do not matter when it is looked up.
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

from ..course import content
from ..errors import UserError

_WORDS = re.compile(r'"[^"\n]*"|\'[^\'\n]*\'|\w+|\S')
_ARROW = re.compile(r"\s+->(?:\s+|$)")
Kind = Literal[
    "value", "mask", "edge", "gradient", "initialisation", "dropout",
    "device", "dtype", "side effect", "contract", "hard-coded output",
]  # fmt: skip
"""The aspect that a misconception gets wrong: the results in general, or a part of the exercise.

edge: right in common cases only (sizes of 1, large scores, other lengths). contract: a wrong form of the result, or
calls and refusals other than required. hard-coded output: right only for the public examples.
"""
KINDS: tuple[Kind, ...] = get_args(Kind)


class EditError(UserError, ValueError):
    """An edit cannot be made; says why."""


@dataclass(frozen=True)
class Edit:
    """One change: `new` where `old` is found, or wherever it is found if it is made `everywhere`."""

    old: str
    new: str
    everywhere: bool = False

    @classmethod
    def parse(cls, written: str, *, everywhere: bool = False) -> "Edit":
        """Read `old -> new`; raises EditError."""
        parts = _ARROW.split(written.rstrip("\n"), maxsplit=1)
        if len(parts) != 2 or not parts[0].strip():
            raise EditError(f"write an edit as `old -> new`, not `{written.strip()}`")
        return cls(parts[0], parts[1], everywhere)

    def places(self, text: str) -> Sequence[tuple[int, int]]:
        """Return begin and end of each place; raises EditError unless there is one, or several with `everywhere`."""
        found = _places(self.old, text)
        if self.everywhere and len(found) < 2:
            raise EditError(f"the code must contain `{self.old}` more than once, but contains it {len(found)} times")
        if not self.everywhere and len(found) != 1:
            raise EditError(f"the code must contain `{self.old}` exactly once, but contains it {len(found)} times")
        return found


def edited(text: str, edits: Sequence[Edit]) -> str:
    """Return the text with all edits made. `{}` in a new text stands for the old one.

    Raises EditError, also if two edits overlap.
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
    """Return the text of a function or class as a student would type it.

    Docstrings, annotations, decorators and comments are removed; the rest of each line stays as it is written.
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
    """Return the words and signs of a text, with double quotes, and their spans."""
    matches = list(_WORDS.finditer(text))
    words = [f'"{m[0][1:-1]}"' if m[0][0] == "'" and len(m[0]) > 1 else m[0] for m in matches]
    return words, [match.span() for match in matches]


@dataclass(frozen=True)
class Code:
    """An answer as text: a base, which may be the text of another answer, and edits of it."""

    unit: str
    exercise: str
    base: str
    edits: tuple[Edit, ...] = ()
    origin: str = ""
    """The file and name for error messages."""

    @property
    def text(self) -> str:
        """The code; raises EditError if an edit cannot be made, or the result is no answer to the exercise."""
        try:
            (definition,) = ast.parse(self.written).body
        except (SyntaxError, ValueError) as reason:
            raise self._no_definition(reason) from None
        if getattr(definition, "name", None) != self.exercise:
            raise self._does_not_define()
        return ast.unparse(definition)

    @cached_property
    def written(self) -> str:
        """The base with all edits made; raises EditError."""
        try:
            return edited(self.base, self.edits)
        except EditError as reason:
            raise self._wrong(str(reason)) from None

    @cached_property
    def answer(self) -> Any:
        """The function or class. Its globals are the unit's solutions and the notebooks' names. Raises EditError."""
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
    """One answer to an exercise, right or wrong."""

    exercise: str
    name: str
    sentence: str
    """The sentence for the student; for an alternative solution, its style."""
    code: Any
    """`Code`, or the function or class itself."""
    kind: Kind | None = None
    """The aspect that it gets wrong; None for a right answer."""
    caught_by: str | None = None
    """The hidden test that must fail for a misconception; None for a right answer."""
    mistake: str = ""
    """The name of the misconception of which this is a variant; its own name if it is the only one."""
    whatever_weights: bool = False
    """True if its sentence holds for each class that behaves alike but for its initial weights."""

    @property
    def answer(self) -> Any:
        """The function or class."""
        return self.code.answer if isinstance(self.code, Code) else self.code

    def anew(self) -> "Candidate":
        """Return the answer with new code, of which nothing has been called: a class may store results."""
        return replace(self, code=replace(self.code)) if isinstance(self.code, Code) else self

    def source(self) -> str:
        """Return the code as a student would have typed it, under the exercise's name and without the docstring."""
        return self.code.text if isinstance(self.code, Code) else _typed(self.code, self.exercise)


def can_be_combined(one: Candidate, other: Candidate) -> bool:
    """Return whether both edits have different places in the code of one of the two."""
    return _common_base(one, other) is not None


def combined(one: Candidate, other: Candidate) -> Candidate:
    """Return an answer with both misconceptions.

    Raises EditError if they edit the same place, or have no common code. The combined code may be invalid, which its
    `answer` raises.
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
    """Return that of two combined misconceptions whose code is then another, and how it is alone in that code.

    The same edit may be another misconception there, for which its sentence is not true.
    """
    base = _common_base(one, other)
    return [
        (each, replace(each, code=replace(each.code, base=base))) for each in (one, other) if each.code.base != base
    ]


def _are_edits(*candidates: Candidate) -> bool:
    return all(isinstance(one.code, Code) and one.code.edits for one in candidates)


def _common_base(one: Candidate, other: Candidate) -> str | None:
    """Return the code in which both can be made, the first one's if possible; None if there is none."""
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
    """Return a module's functions and classes by name, and by the line where their decorators begin."""
    found: dict[str | int, ast.FunctionDef | ast.ClassDef] = {}
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, ast.ClassDef) and node.name in found:
            raise ValueError(f"{module}: two classes are called `{node.name}`. Rename one.")
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = found[min(one.lineno for one in [node, *node.decorator_list])] = node
    return found
