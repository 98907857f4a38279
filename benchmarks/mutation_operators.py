"""Classic mutation operators, besides those in `benchmarks.located.edits`: each makes one small edit in one line.

They know neither the exercises nor the repairs: several of their edits, such as a dropped statement, have no inverse
among the repair operators.
"""

import ast
import random
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain, repeat, zip_longest
from typing import Any

from benchmarks.located import edits
from benchmarks.located.edits import EditedAnswer, Make, edited, places, replaced

_OTHER_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.FloorDiv: ast.Div, ast.Pow: ast.Mult, ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
_OTHER_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Gt: ast.NotEq, ast.LtE: ast.Eq,
}  # fmt: skip
_FAMILIES = [
    *("sin cos", "argmax argmin", "amin amax", "relu gelu", "ReLU GELU", "exp expm1", "log log1p", "floor ceil"),
    *("zeros ones", "zeros_like ones_like", "rand randn", "cumsum cumprod", "repeat repeat_interleave"),
    *("softmax sigmoid", "mean median", "min max", "any all", "append extend", "sum prod"),
]


def of_node(node: ast.AST, tree: ast.AST) -> Iterator[tuple[str, Any]]:
    """Yield each way to edit a node: the name of the operator, and a function that makes the new node."""
    match node:
        case ast.If() | ast.While() | ast.IfExp():
            yield "negate a condition", lambda n: replaced(n, test=ast.UnaryOp(ast.Not(), n.test))
            yield "always true", lambda n: replaced(n, test=ast.Constant(True))
            yield "never true", lambda n: replaced(n, test=ast.Constant(False))
        case ast.BoolOp():
            other = ast.Or if isinstance(node.op, ast.And) else ast.And
            yield "and for or", lambda n: replaced(n, op=other())
            for place in range(len(node.values)):
                yield "drop a condition", lambda n, place=place: n.values[place]
        case ast.Compare(ops=[op]) if type(op) in _OTHER_COMPARISONS:
            yield "another comparison", lambda n: replaced(n, ops=[_OTHER_COMPARISONS[type(n.ops[0])]()])
        case ast.BinOp(op=op):
            if type(op) in _OTHER_OPERATORS:
                yield "another operator", lambda n: replaced(n, op=_OTHER_OPERATORS[type(n.op)]())
            yield "drop the first operand", lambda n: n.right
        case ast.AugAssign():
            yield "assign instead of add", lambda n: ast.Assign([n.target], n.value)
            yield "another operator", lambda n: replaced(n, op=(ast.Mult if type(n.op) is ast.Add else ast.Add)())
        case ast.Constant(value=bool() | None):
            return
        case ast.Constant(value=int() | float() as number):
            yield from ((f"constant {new}", lambda n, new=new: ast.Constant(new)) for new in (0, 1) if new != number)
            if number:
                yield "constant negated", lambda n: ast.UnaryOp(ast.USub(), n)
        case ast.Constant(value="-inf" | "inf" as text):
            yield "constant negated", lambda n: ast.Constant(text.removeprefix("-") if text[0] == "-" else "-inf")
        case ast.Subscript(slice=index, ctx=ast.Load()):
            yield "drop an index", lambda n: n.value
            for place, part in enumerate(index.elts if isinstance(index, ast.Tuple) else [index]):
                yield from (
                    ("drop a bound", lambda n, place=place, bound=bound: _without_bound(n, place, bound))
                    for bound in ("lower", "upper", "step")
                    if isinstance(part, ast.Slice) and getattr(part, bound)
                )
        case ast.Attribute(value=ast.Name(id="self"), attr="training", ctx=ast.Load()):
            yield from (("training ignored", lambda n, new=new: ast.Constant(new)) for new in (True, False))
        case ast.Attribute(attr=name, ctx=ast.Load()):
            yield from (
                ("function of the same family", lambda n, other=other: replaced(n, attr=other))
                for other in _relatives(name)
            )
        case ast.Tuple(elts=[_, _, *_], ctx=ast.Load()):
            yield "elements swapped", lambda n: replaced(n, elts=[n.elts[1], n.elts[0], *n.elts[2:]])
        case ast.Call(func=ast.Name(id="range")):
            one = ast.Constant(1)
            yield (
                "one turn less",
                lambda n: replaced(n, args=[*n.args[:-1], ast.BinOp(n.args[-1], ast.Sub(), one)]),
            )
        case ast.Call(args=[_, *_]):
            yield "drop an argument", lambda n: replaced(n, args=n.args[:-1])
        case ast.Assign(targets=[ast.Tuple(elts=[_, _, *_] as names)], value=ast.expr()):
            swapped = [names[1], names[0], *names[2:]]
            yield "elements swapped", lambda n: replaced(n, targets=[ast.Tuple(swapped, ast.Store())])
    if isinstance(node, ast.Assign | ast.AugAssign | ast.Expr | ast.Return | ast.Raise | ast.Assert):
        yield "drop a statement", lambda n: ast.Pass()


def _without_bound(node: ast.Subscript, place: int, bound: str) -> Any:
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    parts = [replaced(part, **{bound: None}) if number == place else part for number, part in enumerate(parts)]
    return replaced(node, slice=ast.Tuple(parts, ast.Load()) if len(parts) > 1 else parts[0])


def _relatives(name: str) -> list[str]:
    families = [family.split() for family in _FAMILIES]
    return [other for family in families if name in family for other in family if other != name]


def drawn(unit: str, exercise: str, name: str, source: str, seed: str) -> Iterator[EditedAnswer]:
    """Yield mutants of an answer, of each operator in turn, so that no frequent one prevails.

    source: as `ast.unparse` writes it. The same seed draws the same mutants.
    """
    draw, tree = random.Random(f"{seed} {unit} {name}"), ast.parse(source)
    by_operator: dict[str, list[tuple[int, int, Make]]] = defaultdict(list)
    for number, operator, line, make in chain(places(tree, edits.of_node), places(tree, of_node)):
        by_operator[operator].append((number, line, make))
    queues = {operator: draw.sample(of, len(of)) for operator, of in sorted(by_operator.items())}
    turns = zip_longest(
        *(zip(repeat(operator), queue) for operator, queue in draw.sample(list(queues.items()), len(queues)))
    )
    seen = {source}
    for operator, (number, line, make) in filter(None, chain.from_iterable(turns)):
        text = edited(tree, number, make)
        if text and text not in seen:
            seen.add(text)
            yield EditedAnswer(unit, exercise, name, operator, (line,), source, text)
