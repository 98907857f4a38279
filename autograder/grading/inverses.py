"""Inverse edits: a misconception in the catalogue is an edit of right code, and the inverse edit repairs wrong code.

Example: the edit `d_k**0.5 -> d_k` turns `scores / d_k**0.5` into `scores / d_k`. The inverse has the pattern `a / b`,
which matches any quotient, and turns a student's `x / keys.shape[-1]` into `x / keys.shape[-1] ** 0.5`.
"""

import ast
import copy
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from .. import catalogue
from ..tracing.definitions import ATOMS, FIXED, CodeView, Definition, Edit, is_size, is_variable

MOST_MATCHES = 12
"""Most places of an answer at which one pattern is tried."""
RANK = 1


@dataclass(frozen=True)
class Inverse:
    """The inverse of a misconception: the pattern of its wrong expression, and the right expression."""

    misconception: str
    wrong: ast.expr
    right: ast.expr


def inverses(misconceptions: Iterable[catalogue.Candidate]) -> list[Inverse]:
    """Return the inverses of those misconceptions that change a single expression."""
    found: list[Inverse] = []
    parsed = cache(_Parsed)
    for one in misconceptions:
        if not isinstance(one.code, catalogue.Code) or not one.code.edits:
            continue
        try:
            wrong, right = _Parsed(one.code.written), parsed(one.code.base)
        except (SyntaxError, ValueError):
            continue
        changes = list(_changes(wrong.tree, right.tree, wrong, right))
        change = changes[0] if len(changes) == 1 else None
        if change and not any(map(_is_slice, change)) and not _is_small(change[0]):
            found.append(Inverse(one.name, *change))
    return found


def inverse_edits(definition: Definition, known: Iterable[Inverse]) -> list[Edit]:
    """Return the edits that the inverses allow in a student's definition; each edit is returned once."""
    view = CodeView(definition)
    places = defaultdict[type[ast.expr], list[ast.expr]](list)
    for node in view.expressions:
        if not _is_slice(node):
            places[type(node)].append(node)
    names: dict[tuple[int, int, str], set[str]] = {}
    for inverse in known:
        matches = 0
        for place in places[type(inverse.wrong)]:  # a pattern is never a single variable
            bound: dict[str, ast.expr] = {}
            if matches < MOST_MATCHES and _matches(inverse.wrong, place, bound):
                matches += 1
                new = _text(_filled(inverse.right, bound), place, view)
                if new and new != view.text(place):
                    names.setdefault((*definition.span(place), new), set()).add(inverse.misconception)
    return [Edit((span,), "an expression", RANK, frozenset(of)) for span, of in names.items()]


def _text(new: ast.expr, place: ast.expr, view: CodeView) -> str:
    """Return the text of a new expression for a place, in parentheses if it needs them; empty if it is not valid."""
    text = ast.unparse(new)
    try:
        parsed = ast.parse(text, mode="eval").body
    except SyntaxError:
        return ""
    return text if isinstance(parsed, ATOMS) else view.wrapped(place, text)


def _is_slice(node: ast.AST) -> bool:
    """Return whether a node is a slice or a tuple with slices, which is an expression only as an index."""
    return isinstance(node, ast.Slice) or (isinstance(node, ast.Tuple) and any(map(_is_slice, node.elts)))


class _Parsed:
    """A syntax tree and its text, by which nodes are compared: the edits of a misconception are edits of text."""

    def __init__(self, text: str) -> None:
        self.tree = ast.parse(text)
        self._definition = Definition("", "", text, 1)

    def text(self, node: ast.AST) -> str:
        """Return the text of a node; its dump if it has no position, as operators and arguments."""
        if node is self.tree:
            return self._definition.text
        return self._definition.source(node) if hasattr(node, "end_lineno") else ast.dump(node)


def _changes(wrong: ast.AST, right: ast.AST, a: _Parsed, b: _Parsed) -> Iterator[tuple[ast.expr, ast.expr] | None]:
    """Yield each smallest wrong expression with the right one; None for a difference outside expressions.

    If only a name, number or size differs, the expression around it is taken, because a name would be no pattern.
    """
    if a.text(wrong) == b.text(right):
        return
    if type(wrong) is type(right):
        pairs = list(_children(wrong, right, a, b))
        if None not in pairs:
            inner = [change for pair in pairs if pair for change in _changes(*pair, a, b)]
            is_too_small = len(inner) == 1 and inner[0] is not None and _is_small(inner[0][0])
            if not (is_too_small and isinstance(wrong, ast.expr)):
                yield from inner  # of none, the texts differ only in spaces or parentheses
                return
    yield (wrong, right) if isinstance(wrong, ast.expr) and isinstance(right, ast.expr) else None


def _is_small(node: ast.expr) -> bool:
    """Return whether an expression would match too much as a pattern: a name, a number, or a size of a tensor."""
    return isinstance(node, ast.Name | ast.Constant | ast.Attribute) or is_size(node)


def _children(wrong: ast.AST, right: ast.AST, a: _Parsed, b: _Parsed) -> Iterator[tuple[ast.AST, ast.AST] | None]:
    """Yield the pairs of child nodes that differ between two nodes; None for a difference in any other field."""
    for name in wrong._fields:
        first, second = getattr(wrong, name, None), getattr(right, name, None)
        parts: list[tuple[Any, Any]] = [(first, second)]
        if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
            parts = list(zip(first, second, strict=True))
        for one, other in parts:
            if isinstance(one, ast.AST) and isinstance(other, ast.AST):
                if a.text(one) != b.text(other):
                    yield one, other
            elif repr(one) != repr(other):  # 2 == 2.0
                yield None


def _wildcard(node: object) -> str:
    """Return the name of a variable in a pattern, which matches any expression; empty for other nodes."""
    return ast.unparse(node) if isinstance(node, ast.expr) and is_variable(node) else ""


def _matches(pattern: object, node: object, bound: dict[str, ast.expr]) -> bool:
    if isinstance(node, ast.expr) and (name := _wildcard(pattern)):
        known = bound.setdefault(name, node)
        if isinstance(node, ast.Name) and node.id in FIXED:
            return False
        return ast.dump(known) == ast.dump(node)
    if isinstance(pattern, ast.AST):
        return type(pattern) is type(node) and all(
            _matches(getattr(pattern, name, None), getattr(node, name, None), bound)
            for name in pattern._fields
            if name not in ("ctx", "kind", "type_comment")
        )
    if isinstance(pattern, list):
        return (
            isinstance(node, list)
            and len(pattern) == len(node)
            and all(_matches(one, other, bound) for one, other in zip(pattern, node, strict=True))
        )
    return pattern == node


def _filled(right: ast.expr, bound: dict[str, ast.expr]) -> ast.expr:
    """Return the right expression with its variables replaced by the student's expressions in `bound`."""

    class Filling(ast.NodeTransformer):
        def generic_visit(self, node: ast.AST) -> ast.AST:
            name = _wildcard(node)
            return copy.deepcopy(bound[name]) if name in bound else super().generic_visit(node)

    filled: ast.expr = Filling().visit(copy.deepcopy(right))
    return filled
