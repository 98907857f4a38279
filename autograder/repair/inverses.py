"""Inverses of the catalogue's edits: a misconception is an edit of right code, its inverse repairs it.

Example: the edit `d_k**0.5 -> d_k` turns `scores / d_k**0.5` into `scores / d_k`. Its pattern is `a / b`, where `a` and
`b` stand for any expressions, and the inverse turns `x / keys.shape[-1]` into `x / keys.shape[-1] ** 0.5`.
"""

import ast
import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .. import catalogue
from .code_view import FIXED, CodeView, is_size
from .definitions import Definition, Edit

MOST_MATCHES = 12
"""Places at which one pattern is tried."""
RANK = 1


@dataclass(frozen=True)
class Inverse:
    """The pattern of a misconception's wrong expression, and the right expression."""

    misconception: str
    wrong: ast.expr
    right: ast.expr


def inverses(misconceptions: Iterable[catalogue.Candidate]) -> list[Inverse]:
    """Return the inverse of each misconception that changes one expression; others have none."""
    found: list[Inverse] = []
    for one in misconceptions:
        if not isinstance(one.code, catalogue.Code) or not one.code.edits:
            continue
        try:
            right, wrong = ast.parse(one.code.base), ast.parse(one.code.written)
        except (SyntaxError, ValueError):
            continue
        changes = list(_changes(wrong, right))
        if len(changes) == 1 and not any(map(_is_slice, changes[0])) and not _is_small(changes[0][0]):
            found.append(Inverse(one.name, *changes[0]))
    return found


def inverse_edits(definition: Definition, known: Iterable[Inverse]) -> list[Edit]:
    """Return the edits of a definition by these inverses; equal edits are joined."""
    places = [node for node in CodeView(definition).expressions if not _is_slice(node)]
    names: dict[tuple[int, int, str], set[str]] = {}
    for inverse in known:
        matches = 0
        for place in places:
            bound: dict[str, ast.expr] = {}
            if matches < MOST_MATCHES and _matches(inverse.wrong, place, bound):
                matches += 1
                new = ast.unparse(_filled(inverse.right, bound))
                begin, end = definition.span(place)
                if new != definition.source(place) and _is_expression(new):
                    names.setdefault((begin, end, _in_place(place, new, definition)), set()).add(inverse.misconception)
    return [Edit((span,), "an expression", RANK, frozenset(of)) for span, of in names.items()]


def _is_expression(text: str) -> bool:
    """Return whether a text is an expression; a filled pattern may hold a slice where none can be."""
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True


def _is_slice(node: ast.AST) -> bool:
    """Return whether a node is a slice or a tuple with slices, which is an expression only as an index."""
    return isinstance(node, ast.Slice) or (isinstance(node, ast.Tuple) and any(map(_is_slice, node.elts)))


def _in_place(place: ast.expr, new: str, definition: Definition) -> str:
    """Return the new text, in parentheses where the old text may be an operand."""
    begin, end = definition.span(place)
    before, after = definition.encoded[:begin].rstrip()[-1:], definition.encoded[end:].lstrip()[:1]
    stands_alone = (before in b"=([,:" and after in b")],:") or (
        before == b"=" and definition.encoded[end:].split(b"\n")[0].strip() == b""
    )
    is_compound = not isinstance(
        ast.parse(new, mode="eval").body, ast.Name | ast.Call | ast.Constant | ast.Attribute | ast.Subscript
    )
    return f"({new})" if is_compound and not stands_alone else new


def _changes(wrong: ast.AST, right: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the smallest expressions that differ, each with what it should be.

    A name, number or size is no pattern, so that the expression around it is taken. Nothing is yielded for others,
    such as a statement that is missing: then two impossible expressions make the difference unusable.
    """
    if ast.dump(wrong) == ast.dump(right):
        return
    if type(wrong) is type(right):
        pairs = list(_children(wrong, right))
        if pairs and None not in pairs:
            inner = [change for pair in pairs if pair for change in _changes(*pair)]
            is_too_small = len(inner) == 1 and _is_small(inner[0][0])
            if inner and not (is_too_small and isinstance(wrong, ast.expr)):
                yield from inner
                return
    if isinstance(wrong, ast.expr) and isinstance(right, ast.expr):
        yield wrong, right
        return
    yield ast.Constant(...), ast.Constant(...)
    yield ast.Constant(...), ast.Constant(...)


def _is_small(node: ast.expr) -> bool:
    """Return whether a pattern would match too much: a variable, a number, or a size of a tensor."""
    return isinstance(node, ast.Name | ast.Constant | ast.Attribute) or is_size(node)


def _children(wrong: ast.AST, right: ast.AST) -> Iterator[tuple[ast.AST, ast.AST] | None]:
    """Yield the fields of two nodes that differ, lists element by element; None for a field without nodes."""
    for name in wrong._fields:
        a, b = getattr(wrong, name, None), getattr(right, name, None)
        if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
            for one, other in zip(a, b, strict=True):
                if isinstance(one, ast.AST) and isinstance(other, ast.AST):
                    if ast.dump(one) != ast.dump(other):
                        yield one, other
                elif one != other:
                    yield None
        elif isinstance(a, ast.AST) and isinstance(b, ast.AST):
            if ast.dump(a) != ast.dump(b):
                yield a, b
        elif a != b:
            yield None


def _is_wildcard(node: ast.expr) -> str:
    """Return the name of a variable in a pattern, for which any expression may stand; empty for other nodes."""
    if isinstance(node, ast.Name) and node.id not in FIXED:
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return f"self.{node.attr}"
    return ""


def _matches(pattern: object, node: object, bound: dict[str, ast.expr]) -> bool:
    if isinstance(pattern, ast.expr) and isinstance(node, ast.expr) and (name := _is_wildcard(pattern)):
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
    """Return the right expression with the student's expressions for the variables."""

    class Filling(ast.NodeTransformer):
        def generic_visit(self, node: ast.AST) -> ast.AST:
            name = _is_wildcard(node) if isinstance(node, ast.expr) else ""
            return copy.deepcopy(bound[name]) if name in bound else super().generic_visit(node)

    filled: ast.expr = Filling().visit(copy.deepcopy(right))
    return filled
