"""The normal form of code: the same if two codes differ only in names, comments, layout and order of definitions."""

import ast
import copy
import io
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

_LONGEST = 20_000
"""Maximum number of characters of code that is parsed: Python's parser may take long on more."""
_WORDS = {tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP}
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_NAMES = {
    (ast.Name, "id"), (ast.arg, "arg"), (ast.alias, "asname"), (ast.ExceptHandler, "name"),
    (ast.FunctionDef, "name"), (ast.AsyncFunctionDef, "name"), (ast.ClassDef, "name"),
}  # fmt: skip
"""Fields of nodes with a name."""


@dataclass(frozen=True)
class NormalForm:
    """Code without names, comments, docstrings and annotations."""

    text: str
    """Equal for equal answers."""
    tokens: int
    """Number of tokens without comments, docstrings and annotations."""


def normal_form(code: str) -> NormalForm | None:
    """Return the normal form of code; None if the code is not Python, or too long to be parsed.

    Names that the code binds are numbered: local names in each function, others in the whole code. Definitions that
    follow each other are sorted. Names that the code only uses, such as `torch`, stay.

    >>> normal_form("def f(a):\\n    b = a + 1\\n    return b") == normal_form("def g(x): y = x + 1; return y  # so")
    True
    """
    tree = parsed(code)
    if tree is None:
        return None
    try:
        tree = _Cleaner().visit(tree)
        words = tokenize.generate_tokens(io.StringIO(ast.unparse(tree)).readline)
        tokens = sum(word.type in _WORDS for word in words)
        attributes = {name for node in ast.walk(tree) for name in _bound_attributes(node)}
        names = {name for statement in tree.body for name in _bound_names(statement)}
        for node in reversed(list(ast.walk(tree))):  # classes before the code around them
            if isinstance(node, ast.ClassDef | ast.Module):
                node.body = _sorted(node.body, _Renamer(names, attributes, is_masked=True))
        return NormalForm(_Renamer(names, attributes).renamed(tree), tokens)
    except (ValueError, RecursionError, tokenize.TokenError):
        return None


def parsed(code: str) -> ast.Module | None:
    """Return the syntax tree of code; None if the code is not Python, or too long to be parsed."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.parse(code) if len(code) <= _LONGEST else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class _Cleaner(ast.NodeTransformer):
    """Removes docstrings and annotations."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, _Function):
            node.returns = None
        elif isinstance(node, ast.AnnAssign) and node.value:
            return ast.copy_location(ast.Assign([node.target], node.value), node)
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [one for one in body if not _is_unused(one)] or [ast.Pass()]  # type: ignore[attr-defined]
        return node


def _is_unused(node: ast.AST) -> bool:
    """Return whether a statement is only a text or an annotation."""
    return isinstance(node, ast.AnnAssign) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    )


def _bound_attributes(node: ast.AST) -> list[str]:
    """Return the attributes that a node binds: an assigned one, or a class's methods without special ones."""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return [node.attr]
    methods = [one.name for one in node.body if isinstance(one, _Function)] if isinstance(node, ast.ClassDef) else []
    return [name for name in methods if not name.startswith("__")]


def _bound_names(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement binds outside of functions and classes."""
    if isinstance(node, _Function | ast.ClassDef):
        yield node.name
        return
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.alias):
        yield node.asname or node.name
    elif isinstance(node, ast.ExceptHandler) and node.name:
        yield node.name
    for child in ast.iter_child_nodes(node):
        yield from _bound_names(child)


def _sorted(body: list[ast.stmt], masked: "_Renamer") -> list[ast.stmt]:
    """Return statements with each run of definitions sorted by their texts without names."""

    def text(definition: ast.stmt) -> str:  # a method gets another name only within a class
        return masked.renamed(ast.ClassDef("", bases=[], keywords=[], body=[definition], decorator_list=[]))

    runs = groupby(body, lambda statement: isinstance(statement, _Function | ast.ClassDef))
    return [one for is_definition, run in runs for one in (sorted(run, key=text) if is_definition else run)]


class _Renamer(ast.NodeTransformer):
    """Numbers bound names in the order in which they occur."""

    def __init__(self, names: set[str], attributes: set[str], *, is_masked: bool = False) -> None:
        """names, attributes: those that the whole code binds. is_masked: True to give all of them the same name."""
        self._is_masked = is_masked
        self._scopes = [dict.fromkeys(attributes, ""), dict.fromkeys(names, "")]
        """New names by old name: attributes, names of the whole code, and then of each function around."""

    def renamed(self, tree: ast.AST) -> str:
        """Return a text of the code with its new names; the tree itself stays."""
        return ast.dump(self.visit(copy.deepcopy(tree)))

    def visit(self, node: ast.AST) -> Any:
        """Rename a node and those below it."""
        is_function = isinstance(node, _Function | ast.Lambda)
        if is_function:
            own = (name for child in ast.iter_child_nodes(node) for name in _bound_names(child))
            self._scopes.append(dict.fromkeys(own, ""))
        if isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, _Function):
                    method.name = self._label(0, method.name)
        for field, value in ast.iter_fields(node):
            if (type(node), field) in _NAMES and value:
                setattr(node, field, self._name(value))
        if isinstance(node, ast.Attribute):
            node.attr = self._label(0, node.attr)
        self.generic_visit(node)
        if is_function:
            self._scopes.pop()
        return node

    def _name(self, name: str) -> str:
        depth = next((depth for depth in range(len(self._scopes) - 1, 0, -1) if name in self._scopes[depth]), None)
        return self._label(depth, name) if depth else name

    def _label(self, depth: int, name: str) -> str:
        """Return the new name of a name in the scope at this depth."""
        labels = self._scopes[depth]
        if name not in labels:
            return name
        labels[name] = labels[name] or ("_" if self._is_masked else f"_{depth}_{sum(map(bool, labels.values()))}")
        return labels[name]
