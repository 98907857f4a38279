"""Find a student's edits in a locked cell, which editors other than JupyterLab allow.

Grading runs the cell's released text instead. After that it runs lines that the student added, but not changed lines.
"""

import ast
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

LONGEST = 10_000
"""Most characters of a cell that is parsed: Python's parser takes long on large, unusual texts."""
_MOST_LINES = 1_000
_NOT_PYTHON = ("%", "!")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

Line = tuple[int, str]
"""A line that is not blank: its number in the cell, from 0, and its text."""


@dataclass(frozen=True)
class Edit:
    """Difference between a locked cell's text and the released text."""

    added: str = ""
    """The added lines that run by themselves, each at its position in the cell; all other lines are empty."""
    has_changes: bool = False
    """True if the cell also has changed lines, or added lines that do not run by themselves; these are not run."""


def edit_of(released: str, submitted: str) -> Edit:
    """Compare a locked cell's submitted text with the released text.

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
    """Return the lines of a text, divided where Python's parser begins a new line."""
    return text.replace("\r\n", "\n").split("\n")


def _inserted(lines: Sequence[Line], start: int, end: int) -> list[ast.stmt] | None:
    """Return the statements of a block of inserted lines; None if the block cannot be parsed by itself.

    start, end: the block in `lines`. If the line before the block equals its last line, such as `)`, the block may also
    begin and end one line earlier; in the same way it may begin and end later.
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
    """Return the imports and new definitions in a block of lines that replaced another block.

    A definition is new if the replaced block, `before`, does not define its name. Return None if either block cannot be
    parsed by itself.
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
    """Return the statements of a block of lines, with the cell's line numbers; None if it cannot be parsed."""
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
    """Return the numbers, from 0, of all lines that the statements and their decorators span."""
    numbers = set[int]()
    for statement in statements:
        first = min(node.lineno for node in (statement, *getattr(statement, "decorator_list", [])))
        numbers.update(range(first - 1, statement.end_lineno or first))
    return numbers


def _covers(numbers: set[int], lines: Sequence[Line]) -> bool:
    """Return whether `numbers` contains the number of every line that is not a comment."""
    return all(number in numbers or text.lstrip().startswith("#") for number, text in lines)
