"""Rewrites of code that leave its behaviour as it is: other names, a helper, a loop, dead code, another order.

Each kind yields rewritten copies of a tree, one for each place in drawn order. Most are harmless; the caller tests it.
"""

import ast
import copy
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

from benchmarks.located.edits import put

_PRODUCTS = (
    "torch.stack([row @ right for row in left])",
    "torch.cat([row.unsqueeze(-2) @ right for row in left.unbind(-2)], dim=-2)",
    "torch.einsum('...ij,...jk->...ik', left, right)",
    "torch.einsum('...ij,j->...i', left, right)",
)
"""Forms of `left @ right`. Loops come first, though they fit some shapes only and take more operations."""
_DEAD = ("unused = {name}", "'Return the result.'", "assert True", "if False:\n    {name} = None")
_NOT_ONCE = ast.Lambda | ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp | ast.IfExp | ast.BoolOp
"""Expressions whose parts are not computed exactly once."""


class _Block(NamedTuple):
    """Statements that run one after another."""

    statements: list[ast.stmt]
    function: ast.FunctionDef
    of_class: ast.ClassDef | None


def _blocks(tree: ast.Module) -> list[_Block]:
    """Return the blocks of all functions and of all methods with `self`."""
    found = []
    for node in tree.body:
        of_class = node if isinstance(node, ast.ClassDef) else None
        for function in of_class.body if of_class else [node]:
            if isinstance(function, ast.FunctionDef) and (not of_class or "self" in _arguments(function)):
                parts = [getattr(one, field, 0) for one in ast.walk(function) for field in ("body", "orelse")]
                found += [_Block(part, function, of_class) for part in parts if isinstance(part, list) and part]
    return found


def _arguments(node: ast.AST) -> list[str]:
    return [one.arg for one in ast.walk(node) if isinstance(one, ast.arg)]


def _names(node: ast.AST, context: type[ast.expr_context]) -> list[str]:
    return [one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, context)]


def _each(tree: ast.Module, draw: Random, find: Callable[[ast.Module], Iterable[Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield a copy of the tree for each place that is found in it, and the place, in drawn order."""
    for number in draw.sample(range(count := len([*find(tree)])), count):
        changed = copy.deepcopy(tree)
        yield changed, *[*find(changed)][number]


def rename_variables(tree: ast.Module, _: Random) -> Iterator[ast.Module]:
    """Give all local variables other names. Arguments keep theirs, since callers may use them."""
    fixed = {*_arguments(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef):
            fixed.update(name for one in node.body if isinstance(one, ast.Assign) for name in _names(one, ast.Store))
    variables = dict.fromkeys(name for name in _names(tree, ast.Store) if name not in fixed)
    new, changed = {name: f"v{n}" for n, name in enumerate(variables, 1)}, copy.deepcopy(tree)
    for node in ast.walk(changed):
        if isinstance(node, ast.Name):
            node.id = new.get(node.id, node.id)
    if new:
        yield changed


def _expressions(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the parts of a statement or an expression that compute something, exactly once."""
    for one in ast.iter_child_nodes(node):
        if isinstance(one, ast.expr) and not isinstance(one, _NOT_ONCE):
            if isinstance(one, ast.BinOp | ast.Call | ast.Compare | ast.UnaryOp | ast.Subscript):
                yield one
            yield from _expressions(one)


def _parts(tree: ast.Module) -> Iterator[tuple[_Block, ast.stmt, ast.expr, list[str]]]:
    """Yield expressions that mean the same in another place, with their block, statement and local names."""
    for block in _blocks(tree):
        local = {*_arguments(block.function), *_names(block.function, ast.Store)}
        for statement in block.statements:
            if isinstance(statement, ast.Assign | ast.AugAssign | ast.Return):
                for part in _expressions(statement):
                    names = sorted(local.intersection(_names(part, ast.Load)))
                    is_simple = not any(isinstance(one, _NOT_ONCE | ast.NamedExpr) for one in ast.walk(part))
                    if names and is_simple and not isinstance(getattr(part, "ctx", None), ast.Store):
                        yield block, statement, part, names


def move_into_helper(tree: ast.Module, draw: Random) -> Iterator[ast.Module]:
    """Move an expression into a function or method next to it."""
    for changed, block, _, part, names in _each(tree, draw, _parts):
        given = ", ".join(name for name in names if name != "self" or not block.of_class)
        call = ast.parse(f"{'self.' if block.of_class else ''}helper({given})", mode="eval")
        put(changed, part, call.body)
        (helper,) = ast.parse(f"def helper({'self, ' if block.of_class else ''}{given}):\n    return 0").body
        put(helper, helper.body[0].value, part)  # type: ignore[attr-defined]
        around = block.of_class.body if block.of_class else changed.body
        around.insert(around.index(block.function) + draw.randrange(2), helper)
        yield changed


def write_out_product(tree: ast.Module, draw: Random) -> Iterator[ast.Module]:
    """Compute `a @ b` by a loop over rows, or by einsum."""

    def products(tree: ast.Module) -> Iterator[tuple[ast.BinOp]]:
        yield from ((n,) for n in ast.walk(tree) if isinstance(n, ast.BinOp) and isinstance(n.op, ast.MatMult))

    for text in _PRODUCTS:
        for changed, product in _each(tree, draw, products):
            form = ast.parse(text, mode="eval").body
            for name in [one for one in ast.walk(form) if isinstance(one, ast.Name) and one.id in ("left", "right")]:
                put(form, name, getattr(product, name.id))
            put(changed, product, form)
            yield changed


def add_dead_code(tree: ast.Module, draw: Random) -> Iterator[ast.Module]:
    """Add a statement without effect: an unused variable, a string, an assertion, or a branch that never runs."""

    def places(tree: ast.Module) -> Iterator[tuple[_Block, int]]:
        return ((block, position) for block in _blocks(tree) for position in range(len(block.statements)))

    for changed, block, position in _each(tree, draw, places):
        name = ["__name__", *_arguments(block.function)][-1]
        block.statements[position:position] = ast.parse(draw.choice(_DEAD).format(name=name)).body
        yield changed


def _are_independent(*two: ast.stmt) -> bool:
    reads, writes = zip(*((_texts(one, ast.Load), _texts(one, ast.Store)) for one in two), strict=True)
    is_needed = writes[0] & (reads[1] | writes[1]) or writes[1] & reads[0]
    return not is_needed and all(isinstance(one, ast.Assign) for one in two)


def _texts(node: ast.AST, context: type[ast.expr_context]) -> set[str]:
    named = (one for one in ast.walk(node) if isinstance(one, ast.Name | ast.Attribute))
    return {ast.unparse(one) for one in named if isinstance(one.ctx, context)}


def reorder_statements(tree: ast.Module, draw: Random) -> Iterator[ast.Module]:
    """Swap two assignments that follow each other and do not need each other."""

    def pairs(tree: ast.Module) -> Iterator[tuple[list[ast.stmt], int]]:
        for block, _, _ in _blocks(tree):
            yield from ((block, n) for n in range(len(block) - 1) if _are_independent(*block[n : n + 2]))

    for changed, block, n in _each(tree, draw, pairs):
        block[n : n + 2] = block[n + 1], block[n]
        yield changed


def name_part(tree: ast.Module, draw: Random) -> Iterator[ast.Module]:
    """Give a part of an expression a name first."""
    for changed, block, statement, part, _ in _each(tree, draw, _parts):
        put(statement, part, ast.Name("part", ast.Load()))
        block.statements.insert(block.statements.index(statement), ast.Assign([ast.Name("part", ast.Store())], part))
        yield changed


def inline_variable(tree: ast.Module, draw: Random) -> Iterator[ast.Module]:
    """Put a variable's value where it is used, if that is in the next line only."""

    def variables(tree: ast.Module) -> Iterator[tuple[list[ast.stmt], ast.Assign, ast.Name]]:
        for block, function, _ in _blocks(tree):
            for statement, user in pairwise(block):
                if isinstance(statement, ast.Assign) and isinstance(user, ast.Assign | ast.Return):
                    variable, places = ast.unparse(statement.targets[0]), [*_expressions(user)]
                    uses = [one for one in ast.walk(function) if isinstance(one, ast.Name) and one.id == variable]
                    if len(uses) == 2 and any(uses[1] in ast.iter_child_nodes(one) for one in places):
                        yield block, statement, uses[1]

    for changed, block, statement, use in _each(tree, draw, variables):
        put(changed, use, statement.value)
        block.remove(statement)
        yield changed


KINDS: dict[str, Callable[[ast.Module, Random], Iterator[ast.Module]]] = {
    "other variable names": rename_variables,
    "a helper": move_into_helper,
    "a product written out": write_out_product,
    "dead code": add_dead_code,
    "another order": reorder_statements,
    "a variable more": name_part,
    "a variable less": inline_variable,
}
