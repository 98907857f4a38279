"""Mistakes made by machine: small edits of the solutions and right answers, so that the wrong line is known.

The list of what is edited, and how, was fixed before the way to find a line was written. A third of the exercises is
held out: nothing is tuned on them.
"""

import ast
import copy
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from autograder import catalogue, course

HELD_OUT = 3
"""One exercise in this number is held out, by the CRC-32 of its name."""

MOST = 120
"""Maximum number of edits of one exercise."""

_OTHER_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.MatMult: ast.Mult, ast.Div: ast.Mult, ast.Mult: ast.Div, ast.Add: ast.Sub, ast.Sub: ast.Add,
}  # fmt: skip
_OTHER_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
}  # fmt: skip
_TURNED_ROUND: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Lt: ast.GtE,
                                                         ast.LtE: ast.Gt}  # fmt: skip
_OTHER_NAMES = {
    "triu": "tril", "tril": "triu", "sum": "mean", "mean": "sum", "amax": "amin", "max": "min", "ones": "zeros",
    "zeros": "ones", "ones_like": "zeros_like", "zeros_like": "ones_like", "cat": "stack", "stack": "cat",
    "softmax": "log_softmax", "masked_fill": "masked_fill_", "sorted": "list", "view": "reshape",
    "unsqueeze": "squeeze", "sqrt": "square",
}  # fmt: skip
_SHAPING = {"view", "reshape", "permute", "transpose", "swapaxes", "unflatten", "expand"}
_LIBRARIES = {"torch", "F", "nn", "math", "np"}

Make = Callable[[Any], Any]
Operators = Callable[[ast.AST, ast.AST], Iterator[tuple[str, Make]]]
"""Yields each way to edit a node of a tree: the name of the operator, and a function that makes the new node."""


@dataclass(frozen=True)
class EditedAnswer:
    """One right answer with one line made wrong, or two."""

    unit: str
    exercise: str
    of: str
    """The answer that was edited: the solution has the name of its exercise."""
    operator: str
    lines: tuple[int, ...]
    """Those that were edited; a line that was dropped is left as `pass`, so that all others keep their numbers."""
    right: str
    """The code before the edit."""
    source: str

    @property
    def name(self) -> str:
        """The edit's name in a list, unique among the edits of the same code."""
        told = zlib.crc32(self.source.encode())
        return f"{self.unit} {self.exercise} {self.of} {self.operator} {','.join(map(str, self.lines))} {told:08x}"

    @property
    def candidate(self) -> catalogue.Candidate:
        """The edit as an entry of the catalogue, on which hidden tests can be run."""
        code = catalogue.Code(self.unit, self.exercise, self.source)
        return catalogue.Candidate(self.exercise, self.exercise, self.operator, code)


def is_held_out(exercise: str) -> bool:
    """Return whether the exercise is held out: nothing may be tuned on it."""
    return zlib.crc32(exercise.encode()) % HELD_OUT == 0


@cache
def right_sources() -> dict[tuple[str, str, str], str]:
    """The code of every solution and right answer, by unit, exercise and name."""
    return {
        (unit.name, answer.exercise, answer.name): ast.unparse(ast.parse(answer.source()))
        for unit in map(course.unit, course.unit_names())
        for answer in [*catalogue.solutions(unit.name).values(), *catalogue.right_answers(unit.name).values()]
    }


def all_edits() -> list[EditedAnswer]:
    """The edits of every answer, each text once; of an exercise with more than MOST, those that a checksum picks."""
    found: dict[str, list[EditedAnswer]] = {}
    for (unit, exercise, name), source in right_sources().items():
        seen = {source}
        for operator, line, text in _edits(source):
            if text not in seen:
                seen.add(text)
                made = EditedAnswer(unit, exercise, name, operator, (line,), source, text)
                found.setdefault(exercise, []).append(made)
    picked = (sorted(edits, key=lambda one: zlib.crc32(one.name.encode()))[:MOST] for edits in found.values())
    return [one for edits in picked for one in edits]


def _edits(source: str) -> Iterator[tuple[str, int, str]]:
    """Yield each edit's operator, its line, and the edited code."""
    tree = ast.parse(source)
    for number, operator, line, make in places(tree, of_node):
        text = edited(tree, number, make)
        if text:
            yield operator, line, text


def places(tree: ast.Module, operators: Operators) -> Iterator[tuple[int, str, int, Make]]:
    """Yield each possible edit: the number of the node, the name of the operator, the line, and the function."""
    for number, node in enumerate(ast.walk(tree)):
        for operator, make in operators(node, tree):
            yield number, operator, node.lineno, make  # type: ignore[attr-defined]


def edited(tree: ast.Module, number: int, make: Make) -> str:
    """Return the text with a node replaced; empty if that is no code, or has another number of lines."""
    changed = copy.deepcopy(tree)
    place = next(one for index, one in enumerate(ast.walk(changed)) if index == number)
    try:
        put(changed, place, make(place))
        text = ast.unparse(ast.fix_missing_locations(changed))
        compile(text, "<edited>", "exec")
    except (SyntaxError, ValueError, AttributeError, TypeError):
        return ""
    return text if len(text.splitlines()) == len(ast.unparse(tree).splitlines()) else ""


def of_node(node: ast.AST, tree: ast.AST) -> Iterator[tuple[str, Any]]:
    """Each way to edit this node: its name, and what makes the node that takes its place."""
    match node:
        case ast.BinOp(op=op):
            if type(op) in _OTHER_OPERATORS:
                yield "swap an operator", lambda n: replaced(n, op=_OTHER_OPERATORS[type(n.op)]())
            if isinstance(op, ast.MatMult | ast.Sub | ast.Div):
                yield "swap the operands", lambda n: replaced(n, left=n.right, right=n.left)
            if isinstance(op, ast.Div | ast.Mult | ast.Pow | ast.Add | ast.Sub):
                yield "drop an operand", lambda n: n.left
        case ast.UnaryOp(op=ast.Invert() | ast.USub() | ast.Not()):
            yield "drop a sign", lambda n: n.operand
        case ast.Compare(ops=[op]) if type(op) in _OTHER_COMPARISONS:
            yield "off by one in a comparison", lambda n: replaced(n, ops=[_OTHER_COMPARISONS[type(n.ops[0])]()])
            if type(op) in _TURNED_ROUND:
                yield "mask turned round", lambda n: replaced(n, ops=[_TURNED_ROUND[type(n.ops[0])]()])
        case ast.Constant(value=bool()):
            yield "constant changed", lambda n: ast.Constant(not n.value)
        case ast.Constant(value=int()):
            yield "off by one", lambda n: ast.Constant(n.value + 1)
            yield "off by minus one", lambda n: ast.Constant(n.value - 1)
        case ast.Constant(value=float()):
            yield "constant changed", lambda n: ast.Constant(n.value * 2)
        case ast.Constant(value=str(text)) if "->" in text:
            yield "letters swapped", lambda n: ast.Constant(n.value[:-2] + n.value[-1] + n.value[-2])
        case ast.Attribute(attr="T" | "mT"):
            yield "drop a transpose", lambda n: n.value
        case ast.Attribute(value=ast.Name(id="self"), ctx=ast.Load(), attr=name) if _next(name, _fields(tree)):
            yield "another field", lambda n: replaced(n, attr=_next(n.attr, _fields(tree)))
        case ast.Name(id=name, ctx=ast.Load()) if _next(name, _locals(tree, node)):
            other = _next(name, _locals(tree, node))
            yield "another name", lambda n: replaced(n, id=other)
        case ast.Return(value=ast.Tuple(elts=[_, _, *_])):
            yield (
                "results swapped",
                lambda n: replaced(n, value=replaced(n.value, elts=[*n.value.elts[1:], n.value.elts[0]])),
            )
    if isinstance(node, ast.Call):
        yield from _of_call(node)
    if isinstance(node, ast.Assign | ast.AugAssign | ast.Expr) and _may_go(node, tree):
        yield "drop a line", lambda n: ast.Pass()


def _of_call(node: ast.Call) -> Iterator[tuple[str, Any]]:
    match node.func:
        case ast.Attribute(value=value, attr=name):
            on_a_tensor = not (isinstance(value, ast.Name) and value.id in _LIBRARIES) and name != "__init__"
            if on_a_tensor:
                yield "drop a call", lambda n: n.func.value
            elif node.args and isinstance(node.args[0], ast.expr) and name not in ("ones", "zeros", "arange", "Linear"):
                yield "drop a call", lambda n: n.args[0]
            if name in _OTHER_NAMES:
                yield "another function", lambda n: replaced(n, func=replaced(n.func, attr=_OTHER_NAMES[n.func.attr]))
            if name in ("masked_fill", "masked_fill_"):
                turned = ast.UnaryOp
                yield "mask turned round", lambda n: replaced(n, args=[turned(ast.Invert(), n.args[0]), *n.args[1:]])
        case ast.Name(id=name) if name in _OTHER_NAMES:
            yield "another function", lambda n: replaced(n, func=ast.Name(_OTHER_NAMES[n.func.id], ast.Load()))
    if len(node.args) > 1:
        for at in range(len(node.args) - 1):
            yield "arguments swapped", lambda n, at=at: replaced(n, args=_swapped(n.args, at))
    for at, keyword in enumerate(node.keywords):
        if keyword.arg == "dim":
            for dim in (0, 1, -1, -2):
                yield "change the dimension", lambda n, at=at, dim=dim: _with_keyword(n, at, dim)
        if keyword.arg is not None:
            yield "drop an argument", lambda n, at=at: replaced(n, keywords=n.keywords[:at] + n.keywords[at + 1 :])


def replaced(node: Any, **changed: Any) -> Any:
    """Return a copy of a node with other fields."""
    other = copy.copy(node)
    for field, value in changed.items():
        setattr(other, field, value)
    return other


def _with_keyword(node: ast.Call, at: int, dim: int) -> Any:
    keywords = list(node.keywords)
    keywords[at] = replaced(keywords[at], value=ast.Constant(dim))
    return replaced(node, keywords=keywords)


def _swapped(args: list[ast.expr], at: int) -> list[ast.expr]:
    return [*args[:at], args[at + 1], args[at], *args[at + 2 :]]


def put(tree: ast.AST, place: ast.AST, new: ast.AST) -> None:
    """Put a node into the place of another one."""
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if value is place:
                setattr(parent, field, new)
            elif isinstance(value, list) and any(one is place for one in value):
                setattr(parent, field, [new if one is place else one for one in value])


def _next(name: str, names: list[str]) -> str:
    """Another name in the place of this one: the next, and after the last the first; empty where there is none."""
    if name not in names or len(names) < 2:
        return ""
    return names[(names.index(name) + 1) % len(names)]


def _fields(tree: ast.AST) -> list[str]:
    """The layers, parameters and numbers of a class, as they are set."""
    return list(
        dict.fromkeys(
            node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        )
    )


def _locals(tree: ast.AST, name: ast.Name) -> list[str]:
    """The names that the function around this one has by its line, in the order in which they are given a value."""
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.lineno <= name.lineno <= (node.end_lineno or 0)
    ]
    if not around:
        return []
    function = around[-1]
    found = [arg.arg for arg in function.args.args if arg.arg != "self"]
    found += [
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.lineno < name.lineno
    ]
    return list(dict.fromkeys(found))


def _may_go(node: ast.stmt, tree: ast.AST) -> bool:
    """Return whether every name that the statement sets has a value without it."""
    if isinstance(node, ast.Expr):
        return not (isinstance(node.value, ast.Constant) or "__init__" in ast.unparse(node))
    if isinstance(node, ast.AugAssign):
        return True
    assert isinstance(node, ast.Assign)
    set_here = {one.id for target in node.targets for one in ast.walk(target) if isinstance(one, ast.Name)}
    before = {
        one.id
        for one in ast.walk(tree)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store) and one.lineno < node.lineno
    }
    before |= {arg.arg for one in ast.walk(tree) if isinstance(one, ast.FunctionDef) for arg in one.args.args}
    return bool(set_here) and set_here <= before
