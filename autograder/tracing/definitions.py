"""The definitions that an answer consists of, as text and as syntax trees, and edits of them.

`CodeView` has what edits need: texts, parents, and the variables at each place.
"""

import ast
import builtins
from bisect import bisect
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

Statement = ast.FunctionDef | ast.ClassDef
_MODULES = {"torch", "nn", "F", "math", "np", "numpy", "functional", "self", "super"}
FIXED = _MODULES | set(dir(builtins))
"""Names that never stand for a student's value."""
ATOMS = (ast.Name, ast.Constant, ast.Call, ast.Attribute, ast.Subscript)
"""Expressions that never need parentheses."""
_TIGHT = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Attribute, ast.Subscript, ast.Starred, ast.BoolOp)


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
        return sorted({self.first_line + bisect(self._line_starts, begin) - 1 for begin, _, _ in edit.spans})

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


def used_answers(exercise: str, cells: Iterable[tuple[str, str]], others: Collection[str]) -> frozenset[str]:
    """Return which of the other exercises' answers an answer uses, itself or in its helper functions.

    cells: as in `definitions`. A local variable with another exercise's name is not that exercise's answer.
    """
    used = set[str]()
    for part in definitions(exercise, cells, others):
        nodes = list(ast.walk(part.tree))
        names = [node for node in nodes if isinstance(node, ast.Name)]
        own = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
        own |= {node.arg for node in nodes if isinstance(node, ast.arg)}
        used |= {node.id for node in names} - own
    return frozenset(used & set(others) - {exercise})


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

    def options(self, node: ast.AST) -> list[str]:
        """Return the arguments of the function around a node that have default values."""
        around = self.function(node)
        if around is None:
            return []
        args = around.args
        named = [one.arg for one in (*args.posonlyargs, *args.args)]
        defaults = zip(args.kwonlyargs, args.kw_defaults, strict=True)
        return named[len(named) - len(args.defaults) :] + [one.arg for one, default in defaults if default is not None]

    def sizes(self, node: ast.AST) -> frozenset[str]:
        """Return the variables of the function around a node that hold a tensor's sizes, as in `b, T, d = x.shape`."""
        function = self.function(node)
        if function is None:
            return frozenset()
        if function not in self._sizes:
            assigned = [one for one in ast.walk(function) if isinstance(one, ast.Assign) and _is_shape(one.value)]
            targets = [target for one in assigned for target in one.targets]
            names = [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]
            self._sizes[function] = frozenset(names)
        return self._sizes[function]

    @cached_property
    def _sizes(self) -> dict[ast.FunctionDef, frozenset[str]]:
        return {}

    def text(self, node: ast.AST) -> str:
        """Return a node's source text."""
        if (text := self._texts.get(node)) is None:
            text = self._texts[node] = self.definition.source(node)
        return text

    @cached_property
    def _texts(self) -> dict[ast.AST, str]:
        return {}

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

    def is_stored(self, node: ast.AST) -> bool:
        """Return whether a node is part of what is assigned to an attribute or an element: `y` in `x.data = y.T`."""
        while node in self.parents and not isinstance(node, ast.stmt):
            node = self.parents[node]
        return isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute | ast.Subscript)

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


def _is_shape(node: ast.AST) -> bool:
    """Return whether an expression is a size or several: `x.shape`, `x.shape[-2:]`, `x.size()`, `len(x)`."""
    whole = node.value if isinstance(node, ast.Subscript) else node
    return is_size(node) or (isinstance(whole, ast.Attribute) and whole.attr == "shape")


def called_name(call: ast.Call) -> str:
    """Return the last part of a called function's name: `softmax` for `F.softmax(x)`."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
