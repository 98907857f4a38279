"""What a line uses, and where that comes from: a number that was computed, a layer from `__init__`.

No tensor shows whether these are right, so a line that is right in itself may make what is wrong of them.
"""

import ast
import warnings
from collections.abc import Collection, Iterable, Iterator

_LONGEST = 10_000
"""Characters of a cell that is still read: Python's parser takes long on what is larger and strange."""
_MOST = 4


def used_from_above(lines: Iterable[str], line: int, watched: Collection[int], others: Collection[int] = ()) -> str:
    """`slope (line 5), self.gelu (line 9)`: what the line uses, and the lines that gave it its value.

    lines: of the whole cell; nothing is said where it is not Python alone. watched: those that make tensors: where the
    line uses nothing else nothing is said. others: those of them whose tensors may be meant for another place.
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
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    around = [node for node in statements if node.lineno <= line <= (node.end_lineno or 0)]  # the innermost comes last
    if not around:
        return ""
    first = around[-1].lineno
    local = [
        (name, at)
        for function in around
        if isinstance(function, ast.FunctionDef)
        for name, at in _stored(function)
        if "." not in name and at < first
    ]
    given, tensors = dict(local), {name for name, at in local if at in watched}
    given |= {name: at for name, at in _stored(tree) if "." in name and at != first}
    found = list(dict.fromkeys(name for name in _read(around[-1], line) if name in given))
    if tensors.issuperset(found):
        return ""
    found = [name for name in found if name not in tensors or given[name] in others]
    told = ", ".join(f"{name} (line {given[name]})" for name in found[:_MOST])
    return f"{told} and more" if len(found) > _MOST else told


def _stored(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """What is given a value, and the line, in their order."""
    for node in _names(tree):
        if isinstance(node.ctx, ast.Store):
            yield _called(node), node.lineno


def _read(statement: ast.stmt, line: int) -> Iterator[str]:
    """What a statement uses; of one that has others in it, what stands in the line."""
    for node in _names(statement):
        is_there = node.lineno == line or not hasattr(statement, "body")
        if is_there and (isinstance(node.ctx, ast.Load) or isinstance(statement, ast.AugAssign)):
            yield _called(node)


def _names(tree: ast.AST) -> list[ast.Name | ast.Attribute]:
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name | ast.Attribute) and _called(node)]
    return sorted(nodes, key=lambda node: (node.lineno, node.col_offset))


def _called(node: ast.Name | ast.Attribute) -> str:
    """The name of a variable, or of an attribute of self; empty of any other."""
    if isinstance(node, ast.Name):
        return node.id
    return f"self.{node.attr}" if isinstance(node.value, ast.Name) and node.value.id == "self" else ""
