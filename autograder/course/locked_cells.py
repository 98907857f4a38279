"""Find a student's edits of a locked cell. The cell is restored; added lines can run after it, changed lines do not.

Editors other than JupyterLab let students type into locked cells.
"""

import ast
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

LONGEST = 10_000
"""Limit for the characters of a cell that is parsed: Python's parser takes long on large, unusual texts."""
_MOST_LINES = 1_000
_NOT_PYTHON = ("%", "!")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

Line = tuple[int, str]
"""A line that is not blank, with its number from 0."""


@dataclass(frozen=True)
class Edit:
    """Difference between a locked cell's text and the released text."""

    added: str = ""
    """The lines that a student added and that run by themselves, each at its position; the other lines are empty."""
    has_changes: bool = False
    """True if the cell has other lines that were not released; these are not run."""


def edit_of(released: str, submitted: str) -> Edit:
    """Compare a locked cell's text with the released one.

    >>> edit_of('check("embed")', 'import math\\ncheck("embed")')
    Edit(added='import math', has_changes=False)
    """
    if released == submitted:
        return Edit()
    before, after = _lines(released), _lines(submitted)
    if len(submitted) > LONGEST or len(after) > _MOST_LINES:
        return Edit(has_changes=True)
    matcher = SequenceMatcher(None, [text for _, text in before], [text for _, text in after], autojunk=False)
    added, has_changes = set[int](), False
    for tag, i, end_i, j, end_j in matcher.get_opcodes():
        if tag not in ("insert", "replace"):
            continue
        is_insertion = tag == "insert"
        statements = _inserted(after, j, end_j) if is_insertion else _not_replacing(before[i:end_i], after[j:end_j])
        numbers = _line_numbers(statements or [])
        added |= numbers
        has_changes |= statements is None or not (is_insertion or _covers(numbers, after[j:end_j]))
    lines = [line if number in added else "" for number, line in enumerate(_split(submitted))]
    return Edit("\n".join(lines).rstrip(), has_changes)


def _lines(text: str) -> list[Line]:
    return [(number, line.rstrip()) for number, line in enumerate(_split(text)) if line.strip()]


def _split(text: str) -> list[str]:
    """Return the lines as Python numbers them."""
    return text.replace("\r\n", "\n").split("\n")


def _inserted(lines: Sequence[Line], start: int, end: int) -> list[ast.stmt] | None:
    """Return the statements of an inserted run of lines; None if it cannot be parsed by itself.

    If lines are equal, a run can be read as one that begins a little earlier or later: `)` above it or at its end.
    """
    readings = (_statements(lines[first:last]) for first, last in _alternatives(lines, start, end))
    return next((statements for statements in readings if statements is not None), None)


def _alternatives(lines: Sequence[Line], start: int, end: int) -> Iterator[tuple[int, int]]:
    yield start, end
    first, last = start, end
    while first and lines[first - 1][1] == lines[last - 1][1]:
        first, last = first - 1, last - 1
        yield first, last
    while end < len(lines) and lines[start][1] == lines[end][1]:
        start, end = start + 1, end + 1
        yield start, end


def _not_replacing(before: Sequence[Line], after: Sequence[Line]) -> list[ast.stmt] | None:
    """Return the imports and definitions in a replacing run that the replaced run does not define.

    None if either run cannot be parsed by itself.
    """
    old, new = _statements(before), _statements(after)
    if old is None or new is None:
        return None
    replaced = {statement.name for statement in old if isinstance(statement, _DEFINITIONS)}
    return [
        statement
        for statement in new
        if isinstance(statement, ast.Import | ast.ImportFrom)
        or (isinstance(statement, _DEFINITIONS) and statement.name not in replaced)
    ]


def _statements(lines: Sequence[Line]) -> list[ast.stmt] | None:
    """Return the statements of a run of lines, numbered as in the cell; None if the run cannot be parsed by itself."""
    text = [""] * (lines[-1][0] + 1)
    for number, line in lines:
        text[number] = "" if line.lstrip().startswith(_NOT_PYTHON) else line
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        with warnings.catch_warnings(action="ignore"):
            tree: ast.Module = compile("\n".join(text), "", "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return tree.body


def _line_numbers(statements: Sequence[ast.stmt]) -> set[int]:
    """Return the numbers from 0 of the lines that statements span, with their decorators."""
    numbers = set[int]()
    for statement in statements:
        first = min(node.lineno for node in (statement, *getattr(statement, "decorator_list", [])))
        numbers.update(range(first - 1, statement.end_lineno or first))
    return numbers


def _covers(numbers: set[int], lines: Sequence[Line]) -> bool:
    """Return whether every line except comments has one of these line numbers."""
    return all(number in numbers or text.lstrip().startswith("#") for number, text in lines)
