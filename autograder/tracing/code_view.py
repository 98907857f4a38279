"""A definition's syntax tree as edits need it: source texts, parents, and the variables at each node."""

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from .definitions import Definition

_MODULES = {"torch", "nn", "F", "math", "np", "numpy", "functional", "self", "super"}
FIXED = _MODULES | set(dir(builtins))
"""Names that never stand for a student's value."""
ATOMS = (ast.Name, ast.Constant, ast.Call, ast.Attribute, ast.Subscript)
"""Expressions that never need parentheses."""
_TIGHT = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Attribute, ast.Subscript, ast.Starred, ast.BoolOp)


@dataclass(frozen=True)
class CodeView:
    """A definition's syntax nodes, without annotations."""

    definition: Definition

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """The parent of each node, in breadth-first order."""
        parents: dict[ast.AST, ast.AST] = {}
        waiting: list[ast.AST] = [self.definition.tree]
        for node in waiting:
            children = [child for child in ast.iter_child_nodes(node) if not _is_annotation(node, child)]
            if isinstance(node, ast.ExceptHandler):
                children = list(node.body)  # the type of an error is no value
            parents.update(dict.fromkeys(children, node))
            waiting += children
        return parents

    @cached_property
    def expressions(self) -> list[ast.expr]:
        """The expressions whose value is read."""
        return [
            node for node in self.parents
            if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        ]  # fmt: skip

    @cached_property
    def statements(self) -> list[tuple[list[ast.stmt], int]]:
        """Each statement outside of class bodies, as its block and its position in the block."""
        blocks = [
            getattr(node, block)
            for node in (self.definition.tree, *self.parents)
            for block in ("body", "orelse")
            if isinstance(getattr(node, block, None), list) and not isinstance(node, ast.ClassDef)
        ]
        return [(block, position) for block in blocks for position in range(len(block))]

    @cached_property
    def attributes(self) -> list[str]:
        """The attributes of `self`, as text."""
        return list(dict.fromkeys(self.text(node) for node in self.parents if is_attribute(node)))

    def function(self, node: ast.AST) -> ast.FunctionDef | None:
        """Return the innermost function around a node."""
        around = self.parents.get(node)
        while around is not None and not isinstance(around, ast.FunctionDef):
            around = self.parents.get(around)
        is_whole = around is None and isinstance(self.definition.tree, ast.FunctionDef)
        return self.definition.tree if is_whole else around  # type: ignore[return-value]

    def names(self, node: ast.AST) -> list[str]:
        """Return the variables of the function around a node: arguments, assigned names, attributes of `self`."""
        function = self.function(node)
        if function is None:
            return []
        if function not in self._names:
            args = function.args
            names = [one.arg for one in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
            nodes = [one for one in ast.walk(function) if isinstance(one, ast.Name)]
            names += [one.id for one in nodes if isinstance(one.ctx, ast.Store)]
            self._names[function] = [name for name in dict.fromkeys(names) if name != "self"]
        return self._names[function] + self.attributes

    @cached_property
    def _names(self) -> dict[ast.FunctionDef, list[str]]:
        return {}

    def locals(self, node: ast.AST) -> list[str]:
        """Return the variables as `names` does, without attributes of `self`."""
        return [name for name in self.names(node) if "." not in name]

    def text(self, node: ast.AST) -> str:
        """Return a node's source text."""
        return self.definition.source(node)

    def atom(self, node: ast.expr) -> str:
        """Return an expression's text, in parentheses if it needs them as an operand."""
        return self.text(node) if isinstance(node, ATOMS) else f"({self.text(node)})"

    def wrapped(self, node: ast.AST, new: str) -> str:
        """Return a node's new text, in parentheses if the code around it needs them."""
        parent = self.parents.get(node)
        is_called = isinstance(parent, ast.Call) and parent.func is node
        is_index = isinstance(parent, ast.Subscript) and parent.slice is node
        return f"({new})" if is_called or (isinstance(parent, _TIGHT) and not is_index) else new

    def call(self, call: ast.Call, *, without: int = -1, more: str = "", swapped: tuple[int, int] | None = None) -> str:
        """Return the text of a call with other arguments: without one, with one more, or with two that are swapped."""
        parts = [self.text(one) for one in (*call.args, *call.keywords)]
        if swapped:
            one, other = swapped
            parts[one], parts[other] = parts[other], parts[one]
        parts = [part for number, part in enumerate(parts) if number != without] + [more] * bool(more)
        return f"{self.text(call.func)}({', '.join(parts)})"

    def is_called(self, node: ast.AST) -> bool:
        """Return whether a node is the function of a call: `f` in `f(x)`."""
        parent = self.parents.get(node)
        return isinstance(parent, ast.Call) and parent.func is node

    def methods(self) -> Iterator[tuple[ast.Call, ast.expr]]:
        """Yield each call of a method of a value, with the value."""
        for node in self.expressions:
            match node:
                case ast.Call(func=ast.Attribute(value=value)) if not (
                    isinstance(value, ast.Name) and value.id in FIXED
                ):
                    yield node, value


def _is_annotation(node: ast.AST, child: ast.AST) -> bool:
    is_own = child is getattr(node, "annotation", None) or child is getattr(node, "returns", None)
    return is_own or isinstance(node, ast.arg)


def is_attribute(node: ast.AST) -> bool:
    """Return whether a node is an attribute of `self`."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def is_variable(node: ast.AST) -> bool:
    """Return whether a node is a variable of the student's."""
    return (isinstance(node, ast.Name) and node.id not in FIXED) or is_attribute(node)


def is_size(node: ast.AST) -> bool:
    """Return whether an expression is a size: `len(x)`, `x.size(0)`, `x.shape[0]`."""
    if isinstance(node, ast.Call):
        return called_name(node) in ("len", "size")
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape"


def called_name(call: ast.Call) -> str:
    """Return the last part of a called function's name: `softmax` for `F.softmax(x)`."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
