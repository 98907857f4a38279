"""Find a student's edits of a locked cell. The cell is restored; added lines can run after it, changed lines do not.

Editors other than JupyterLab let students type into locked cells.
"""

import ast
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

LONGEST = 10_000
"""Characters of a cell that is still read: Python's parser takes long on what is larger and strange."""
_MOST_LINES = 1_000
_NOT_PYTHON = ("%", "!")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

Line = tuple[int, str]
"""A line that is not blank, with its number from 0."""


@dataclass(frozen=True)
class Edit:
    """Difference between a locked cell's text and the released text."""

    added: str = ""
    """The lines that a student added and that run by themselves, each at its place; the other lines are empty."""
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
    kept, has_changes = set[int](), False
    for tag, i, end_i, j, end_j in matcher.get_opcodes():
        if tag == "insert":
            numbers = _inserted(after, j, end_j)
        elif tag == "replace":
            numbers = _not_replacing(before[i:end_i], after[j:end_j])
        else:
            continue
        kept |= numbers or set()
        has_changes |= numbers is None or (tag == "replace" and not _covers(numbers, after[j:end_j]))
    added = [line if number in kept else "" for number, line in enumerate(_split(submitted))]
    return Edit("\n".join(added).rstrip(), has_changes)


def _lines(text: str) -> list[Line]:
    return [(number, line.rstrip()) for number, line in enumerate(_split(text)) if line.strip()]


def _split(text: str) -> list[str]:
    """The lines as Python numbers them."""
    return text.replace("\r\n", "\n").split("\n")


def _inserted(lines: Sequence[Line], start: int, end: int) -> set[int] | None:
    """The numbers of the lines of an inserted run; None if it is no Python by itself.

    Where lines are alike a run can be read as one that begins a little earlier or later: `)` above it or at its end.
    """
    for first, last in _alternatives(lines, start, end):
        statements = _statements(lines[first:last])
        if statements is not None:
            return _numbers(statements, lines[first:last])
    return None


def _alternatives(lines: Sequence[Line], start: int, end: int) -> Iterator[tuple[int, int]]:
    yield start, end
    first, last = start, end
    while first and lines[first - 1][1] == lines[last - 1][1]:
        first, last = first - 1, last - 1
        yield first, last
    while end < len(lines) and lines[start][1] == lines[end][1]:
        start, end = start + 1, end + 1
        yield start, end


def _not_replacing(before: Sequence[Line], after: Sequence[Line]) -> set[int] | None:
    """The numbers of the lines, in a run that replaces another, that import or define what the other does not.

    None if either run is no Python by itself.
    """
    old, new = _statements(before), _statements(after)
    if old is None or new is None:
        return None
    replaced = {statement.name for statement in old if isinstance(statement, _DEFINITIONS)}
    return _numbers(
        [
            statement
            for statement in new
            if isinstance(statement, ast.Import | ast.ImportFrom)
            or (isinstance(statement, _DEFINITIONS) and statement.name not in replaced)
        ],
        after,
    )


def _statements(lines: Sequence[Line]) -> list[ast.stmt] | None:
    """The statements of a run of lines, numbered as in the cell; None if they are no Python by themselves."""
    if not lines:
        return []
    first = lines[0][0]
    text = [""] * (lines[-1][0] - first + 1)
    for number, line in lines:
        text[number - first] = "" if line.lstrip().startswith(_NOT_PYTHON) else line
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = compile("\n".join(text), "", "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    statements: list[ast.stmt] = tree.body
    return statements


def _numbers(statements: Sequence[ast.stmt], lines: Sequence[Line]) -> set[int]:
    """The lines' numbers in the cell that the statements take."""
    numbers = set[int]()
    for statement in statements:
        decorators = getattr(statement, "decorator_list", [])
        first = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
        numbers.update(range(lines[0][0] + first - 1, lines[0][0] + (statement.end_lineno or first)))
    return numbers


def _covers(numbers: set[int], lines: Sequence[Line]) -> bool:
    """Return whether every line except comments has one of these line numbers."""
    return all(number in numbers or text.lstrip().startswith("#") for number, text in lines)
