"""What a line uses beside tensors, and where that comes from: a number that was computed, a layer from `__init__`.

No tensor shows whether these are right, so a line that is right in itself may make what is wrong of them.
"""

import ast
import warnings
from collections.abc import Collection, Iterable, Iterator

_LONGEST = 10_000
"""Characters of a cell that is still read: Python's parser takes long on what is larger and strange."""
_MOST = 4


def used_from_above(lines: Iterable[str], line: int, watched: Collection[int]) -> str:
    """`slope (line 5), self.gelu (line 9)`: what the line uses, and the lines that gave it its value.

    lines: of the whole cell; nothing is said where it is not Python alone. watched: those that make tensors, the names
    of which are left out.
    """
    code = "\n".join(map(str.rstrip, lines))
    if len(code) > _LONGEST:
        return ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    around = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and _covers(node, line)]
    if not around:
        return ""
    given = _given(tree, [one for one in around if isinstance(one, ast.FunctionDef)], around[-1].lineno, watched)
    found = list(dict.fromkeys(name for name in _read(around[-1], line) if name in given))
    told = ", ".join(f"{name} (line {given[name]})" for name in found[:_MOST])
    return f"such as {told}" if len(found) > _MOST else told


def _covers(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _given(tree: ast.Module, functions: list[ast.FunctionDef], before: int, watched: Collection[int]) -> dict[str, int]:
    """The lines that give the names of these functions their values before a line, and the attributes of self."""
    found: dict[str, int] = {}
    for function in functions:  # an inner one comes last
        for name, line in _stored(function):
            if "." not in name and line < before:
                found[name] = line
    found = {name: line for name, line in found.items() if line not in watched}
    attributes = ((name, line) for name, line in _stored(tree) if "." in name)
    return {**found, **{name: line for name, line in attributes if line != before}}


def _stored(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in sorted(ast.walk(tree), key=lambda one: getattr(one, "lineno", 0)):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store) and (name := _name(node)):
            yield name, node.lineno


def _read(statement: ast.stmt, line: int) -> Iterator[str]:
    """The names that a statement uses, in their order; of one that has others in it, those in the line alone."""
    is_simple = not hasattr(statement, "body")
    nodes = [node for node in ast.walk(statement) if isinstance(node, ast.Name | ast.Attribute)]
    for node in sorted(nodes, key=lambda one: (one.lineno, one.col_offset)):
        is_written = isinstance(node.ctx, ast.Store) and not isinstance(statement, ast.AugAssign)
        if (is_simple or node.lineno == line) and not is_written and (name := _name(node)):
            yield name


def _name(node: ast.Name | ast.Attribute) -> str:
    """The name of a variable, or of an attribute of self; empty of any other."""
    if isinstance(node, ast.Name):
        return node.id
    return f"self.{node.attr}" if isinstance(node.value, ast.Name) and node.value.id == "self" else ""
