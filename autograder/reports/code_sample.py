"""A student's code as a class report shows it: without comments and strings, and only if it names nobody."""

import ast
import contextlib
import keyword
import re
import unicodedata
import warnings
from collections.abc import Collection, Iterable
from itertools import permutations
from pathlib import PurePosixPath

from ..course.notebook import printable
from ..gradebook.roster import Enrolled
from .class_report_schema import CodeSample

LONGEST = 10_000
"""Maximum number of characters of a cell that is parsed: Python's parser may take long on larger ones."""
_MOST_LINES = 40
_MOST_CHARACTERS = 2_000
_REMOVED = "…"
_BLOCKS = ("body", "orelse", "finalbody")
"""The fields with statements, of which Python requires at least one if there was one."""

_LONG = 4
"""Minimum number of letters of a name that is found inside of words too, also when two parts of a name are written
together. A shorter name counts only as a word of its own; a single letter only if it is all of an id or a name."""
_PART = re.compile(r"[^\W_]+")
_WORD = re.compile(r"[^\W\d_]+|\d+")
_KEYWORDS = set(map(str.lower, keyword.kwlist))
"""Python's keywords, which identify nobody, even a student called As or In."""
_PATH = "…/"
"""Text by which grading replaces the folders of a path."""


class NotPython(Exception):
    """The text is not Python, or too long to be parsed."""


def code_sample(source: str, wrong_lines: Collection[int] = ()) -> CodeSample:
    """Return a student's code, cleaned and truncated to what a person reads. Raises NotPython.

    wrong_lines: lines of `source` at fault, counted from 1.
    """
    if len(source) > LONGEST:
        raise NotPython
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(source)
            cleaner = _Cleaner(wrong_lines)
            cleaner.visit(tree)
            code = ast.unparse(ast.fix_missing_locations(tree))
            before, after = _statements(tree), _statements(ast.parse(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise NotPython from None
    pairs = zip(before, after, strict=True) if len(before) == len(after) else ()
    return _truncate(code, sorted({new.lineno for old, new in pairs if old in cleaner.wrong}))


def line_sample(line: str) -> str:
    """Return one line of a student's code as `code_sample` shows it; empty if it cannot be read alone as Python."""
    for rest in ("", "\n    pass"):  # the line may begin a block
        with contextlib.suppress(NotPython):
            return code_sample(line.strip() + rest).code.removesuffix("pass").rstrip()
    return ""


class _Cleaner(ast.NodeTransformer):
    """Removes docstrings and the text of strings."""

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
    """Return a statement's lines; if it has a body, the lines above the body."""
    body = getattr(statement, "body", None) or getattr(statement, "cases", None)
    end = statement.end_lineno or statement.lineno
    if body:
        first = getattr(body[0], "lineno", None) or body[0].pattern.lineno
        end = max(statement.lineno, first - 1)
    return range(statement.lineno, end + 1)


def _statements(tree: ast.AST) -> list[ast.stmt]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]


def _truncate(code: str, wrong_lines: list[int]) -> CodeSample:
    lines: list[str] = []
    left = _MOST_CHARACTERS
    for line in map(printable, code.split("\n")[:_MOST_LINES]):
        left -= len(line)
        if left < 0:
            break
        lines.append(line)
    if not "".join(lines).strip():
        raise NotPython
    note = "" if len(lines) == code.count("\n") + 1 else "The rest of it is not shown."
    return CodeSample("\n".join(lines), [line for line in wrong_lines if line <= len(lines)], note)


def full_name(student: Enrolled) -> str:
    """Return a student's first and last name, as far as they are known."""
    return " ".join(filter(None, (student.first_name, student.last_name)))


class Names:
    """The ids, names and addresses of a class, and their parts, alone and written together."""

    def __init__(self, students: Iterable[Enrolled], unit_text: str = "") -> None:
        """unit_text: the texts of the unit. A file name that is one of their words identifies nobody."""
        texts = {text for one in students for text in (one.id, full_name(one), (one.email or "").partition("@")[0])}
        names = set(map(_plain, filter(None, texts)))
        parts = [_PART.findall(name) for name in names]
        words = names | {part for group in parts for part in group if len(part) > 1}
        together = {first + second for group in parts for first, second in permutations(group, 2)}
        words -= _KEYWORDS
        self._long = {word for word in words | together if len(word) >= _LONG}
        self._short = words - self._long
        self._unit_text = _plain(unit_text)

    def is_in(self, text: str, file: str = "") -> bool:
        """Return whether a name, in any case, with accents or without, or a path is in a text.

        file: the name of the notebook that the text is from. It counts in this text only: a file called `return`
        would otherwise hide everybody's code.
        """
        plain = _plain(text)
        words = {*_WORD.findall(plain), *_PART.findall(plain)}
        stem = _plain(PurePosixPath(file).stem)
        is_own = stem and stem not in self._unit_text and stem not in _KEYWORDS
        if is_own and (stem in plain if len(stem) >= _LONG else stem in words):
            return True
        return not words.isdisjoint(self._short) or any(word in plain for word in self._long) or _PATH in text


def _plain(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in decomposed if not unicodedata.combining(character))
