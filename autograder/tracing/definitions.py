"""The definitions that an answer consists of, as text, and edits of them."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

Statement = ast.FunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Edit:
    """A change of a definition's text. Positions count bytes, as `ast` does."""

    spans: tuple[tuple[int, int, str], ...]
    """Begin, end and new text of each changed place, in order."""
    subject: str
    """The changed thing, in words: "a number", "a name"."""
    rank: int
    """Unlikely edits have a high rank."""
    misconceptions: frozenset[str] = frozenset()
    """The names of the known misconceptions that this edit is the inverse of."""

    def is_apart_from(self, other: "Edit") -> bool:
        """Return whether two edits of one text change different places."""
        return all(a[1] <= b[0] or b[1] <= a[0] for a in self.spans for b in other.spans)

    def after(self, other: "Edit") -> "Edit":
        """Return this edit for the text after the other edit, which changes another place."""

        def moved(position: int) -> int:
            return position + sum(len(new.encode()) - (e - b) for b, e, new in other.spans if e <= position)

        return replace(self, spans=tuple((moved(begin), moved(end), new) for begin, end, new in self.spans))


@dataclass(frozen=True)
class Definition:
    """A function or class that a cell defines at its top level."""

    name: str
    cell: str
    text: str
    first_line: int
    """The line of the cell in which the text begins, counted from 1."""

    @cached_property
    def tree(self) -> Statement:
        """The parsed definition, with positions in `text`."""
        (statement,) = ast.parse(self.text).body
        assert isinstance(statement, Statement)
        return statement

    @cached_property
    def encoded(self) -> bytes:
        """The text in UTF-8."""
        return self.text.encode()

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *accumulate(len(line) for line in self.encoded.splitlines(keepends=True))]

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return begin and end of an expression or statement."""
        starts = self._line_starts
        begin = starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        return begin, starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    def source(self, node: ast.AST) -> str:
        """Return the text of an expression or statement."""
        begin, end = self.span(node)
        return self.encoded[begin:end].decode()

    def edited(self, edit: Edit) -> "Definition":
        """Return the definition with an edit made."""
        encoded = self.encoded
        for begin, end, new in reversed(edit.spans):
            encoded = encoded[:begin] + new.encode() + encoded[end:]
        return Definition(self.name, self.cell, encoded.decode(), self.first_line)

    def lines(self, edit: Edit) -> list[int]:
        """Return the lines of the cell that an edit changes."""
        return sorted({self.first_line + self.encoded[:begin].count(b"\n") for begin, _, _ in edit.spans})

    def line(self, number: int) -> str:
        """Return one line of the text, by its number in the cell; empty for other numbers."""
        lines = self.text.splitlines()
        return lines[number - self.first_line] if 0 <= number - self.first_line < len(lines) else ""


def definitions(exercise: str, cells: Iterable[tuple[str, str]], others: Iterable[str]) -> list[Definition]:
    """Return the definition of an answer, and after it those of the functions and classes that it uses.

    cells: the name and source of each. others: the other exercises, whose definitions are left out. The list is empty
    if the answer cannot be parsed, or is not defined by a `def` or `class` at the top level of a cell.
    """
    known: dict[str, Definition] = {}
    for cell, source in cells:
        try:
            body = ast.parse(source).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        lines = source.splitlines(keepends=True)
        for node in body:
            if isinstance(node, Statement):
                first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                known[node.name] = Definition(node.name, cell, "".join(lines[first - 1 : node.end_lineno]), first)
    left_out, found = set(others) - {exercise}, dict[str, Definition]()
    waiting = [exercise]
    while waiting:
        name = waiting.pop(0)
        if name in known and name not in found and name not in left_out:
            found[name] = known[name]
            waiting += [node.id for node in ast.walk(known[name].tree) if isinstance(node, ast.Name)]
    return list(found.values()) if exercise in found else []
