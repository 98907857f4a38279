"""Make edits in the text of a right answer: a misconception is a mutant of it.

An edit replaces words and signs. Spaces, line breaks and the kind of quotes do not matter when it is looked up.
"""

import ast
import io
import re
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from textwrap import dedent

from ..errors import UserError

_WORDS = re.compile(r'"[^"\n]*"|\'[^\'\n]*\'|\w+|\S')
_ARROW = re.compile(r"\s+->(?:\s+|$)")


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
            raise EditError(f"an edit is written `old -> new`, not `{written.strip()}`")
        return cls(parts[0], parts[1], everywhere)

    def places(self, text: str) -> Sequence[tuple[int, int]]:
        """Return begin and end of each place; raises EditError unless there is one, or several with `everywhere`."""
        found = _places(self.old, text)
        if self.everywhere and len(found) < 2:
            raise EditError(f"`{self.old}` should be there more than once, and is {len(found)} times")
        if not self.everywhere and len(found) != 1:
            raise EditError(f"`{self.old}` should be there exactly once, and is {len(found)} times")
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
