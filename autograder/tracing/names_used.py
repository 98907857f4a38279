"""The names that a line uses, with the lines that assign to them: a number computed above, a layer from `__init__`.

Tracing sees tensors only. A line that is right in itself makes a wrong tensor if it uses a wrong number or layer.
"""

import ast
import warnings
from collections.abc import Collection, Iterable, Iterator

_MAX_CHARACTERS = 10_000
"""Longer cells are not parsed, because Python's parser may take long on them."""
_MAX_NAMES = 4


def names_used(
    lines: Iterable[str], line: int, traced_lines: Collection[int], doubtful_lines: Collection[int] = ()
) -> str:
    """Return the names that a line uses, such as `slope (line 5), self.gelu (line 9)`.

    lines: those of the whole cell. traced_lines: those that make tensors; the names of these tensors are left out,
    except if their line is one of `doubtful_lines`. The result is empty if the line uses only such names, or if the
    cell cannot be parsed.
    """
    code = "\n".join(map(str.rstrip, lines))
    if len(code) > _MAX_CHARACTERS:
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
        for name, at in _assignments(function)
        if "." not in name and at < first
    ]
    assigned, tensors = dict(local), {name for name, at in local if at in traced_lines}
    assigned |= {name: at for name, at in _assignments(tree) if "." in name and at != first}
    names = list(dict.fromkeys(name for name in _names_read(around[-1], line) if name in assigned))
    if tensors.issuperset(names):
        return ""
    names = [name for name in names if name not in tensors or assigned[name] in doubtful_lines]
    listed = ", ".join(f"{name} (line {assigned[name]})" for name in names[:_MAX_NAMES])
    return f"{listed} and more" if len(names) > _MAX_NAMES else listed


def _assignments(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield each name that is assigned to, with the line, in the order of the code."""
    for node in _name_nodes(tree):
        if isinstance(node.ctx, ast.Store):
            yield _name(node), node.lineno


def _names_read(statement: ast.stmt, line: int) -> Iterator[str]:
    """Yield the names that a statement reads; of a block, only those that this line reads."""
    for node in _name_nodes(statement):
        is_there = node.lineno == line or not hasattr(statement, "body")
        if is_there and (isinstance(node.ctx, ast.Load) or isinstance(statement, ast.AugAssign)):
            yield _name(node)


def _name_nodes(tree: ast.AST) -> list[ast.Name | ast.Attribute]:
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name | ast.Attribute) and _name(node)]
    return sorted(nodes, key=lambda node: (node.lineno, node.col_offset))


def _name(node: ast.Name | ast.Attribute) -> str:
    """Return the name of a variable, or of an attribute of `self`; empty for attributes of other objects."""
    if isinstance(node, ast.Name):
        return node.id
    return f"self.{node.attr}" if isinstance(node.value, ast.Name) and node.value.id == "self" else ""
