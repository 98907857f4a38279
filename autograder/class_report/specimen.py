"""One answer's code as text that says nothing but what it computes: no comment, no docstring, no string."""

import ast
import warnings
from collections.abc import Collection

from ..notebook import printable
from .shape import Specimen

LONGEST = 10_000
"""Characters of a cell that is still read: Python's parser takes long on what is larger and strange."""
_MOST_LINES = 40
_MOST_CHARACTERS = 2_000
_REMOVED = "…"
_BLOCKS = ("body", "orelse", "finalbody")
"""The fields with statements, of which Python wants at least one where there was one."""


class NotPython(Exception):
    """The text is no Python, or more than is read."""


def specimen(source: str, wrong_lines: Collection[int] = ()) -> Specimen:
    """A stranger's code, cleaned and cut to what a person reads. Raises NotPython.

    wrong_lines: those of `source`, counted from 1, where it goes wrong.
    """
    if len(source) > LONGEST:
        raise NotPython
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(source)
            cleaned = _Cleaned(wrong_lines)
            cleaned.visit(tree)
            code = ast.unparse(ast.fix_missing_locations(tree))
            lines = _lines(tree, cleaned.wrong, ast.parse(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise NotPython from None
    return _cut(code, sorted(lines))


class _Cleaned(ast.NodeTransformer):
    """Takes out docstrings, and what is in strings."""

    def __init__(self, wrong_lines: Collection[int]) -> None:
        self._wrong_lines = frozenset(wrong_lines)
        self.wrong: set[ast.AST] = set()
        """The statements on the wrong lines."""

    def visit(self, node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant | ast.JoinedStr):
            return None if _is_text(node.value) else node
        if isinstance(node, ast.expr) and _is_text(node):
            return ast.Constant(_REMOVED)
        if isinstance(node, ast.stmt) and not self._wrong_lines.isdisjoint(_own_lines(node)):
            self.wrong.add(node)
        blocks = [name for name in _BLOCKS if getattr(node, name, None)]
        node = self.generic_visit(node)
        for name in blocks:
            if getattr(node, name) == []:
                setattr(node, name, [ast.Pass()])
        return node


def _is_text(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str | bytes)
    return type(node).__name__ in ("JoinedStr", "TemplateStr")


def _own_lines(statement: ast.stmt) -> range:
    """The lines of a statement; of one with a body, those above it."""
    body = getattr(statement, "body", None) or getattr(statement, "cases", None)
    end = statement.end_lineno or statement.lineno
    if body:
        first = getattr(body[0], "lineno", None) or body[0].pattern.lineno
        end = max(statement.lineno, first - 1)
    return range(statement.lineno, end + 1)


def _lines(cleaned: ast.AST, wrong: Collection[ast.AST], written: ast.AST) -> set[int]:
    """Where the wrong statements are in the text that was written of the cleaned code."""
    ours, theirs = _statements(cleaned), _statements(written)
    if len(ours) != len(theirs):
        return set()
    return {new.lineno for old, new in zip(ours, theirs, strict=True) if old in wrong}


def _statements(tree: ast.AST) -> list[ast.stmt]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]


def _cut(code: str, lines: list[int]) -> Specimen:
    shown: list[str] = []
    room = _MOST_CHARACTERS
    for line in map(printable, code.split("\n")[:_MOST_LINES]):
        if len(line) > room:
            break
        room -= len(line)
        shown.append(line)
    if not "".join(shown).strip():
        raise NotPython
    note = "" if len(shown) == code.count("\n") + 1 else "The rest of it is not shown."
    return Specimen("\n".join(shown), [line for line in lines if line <= len(shown)], note)
