"""Generic edits of a student's code: another number, another name, one step less, one argument more.

No operator knows an exercise. `generic_edits` collects their edits, adds the edit of all equal places at once, and
sorts by how likely an edit is: rank 0 is the likeliest.
"""

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, combinations, pairwise

from .definitions import CodeView, Definition, Edit, called_name, is_attribute, is_size, is_variable

MOST_EDITS = 2_500
"""Maximum number of edits of one definition. Half of the solutions have fewer than 900."""

_KEEPDIM = {"sum", "mean", "max", "min", "amax", "amin", "var", "std", "norm", "logsumexp", "argmax", "any", "all"}
_SPREAD = {"var", "std"}
_FACTORIES = {"arange", "zeros", "ones", "full", "empty", "tensor", "eye", "rand", "randn", "linspace", "zeros_like"}
_WITH_DIM = {"softmax", "log_softmax", "cat", "stack", "sum", "mean", "cumsum", "argmax"}
_EXCHANGED = [
    "view reshape", "tril triu", "max min", "argmax argmin", "amax amin", "sin cos", "masked_fill masked_fill_",
    "append extend", "append insert", "repeat repeat_interleave", "cat stack", "softmax log_softmax",
    "softmax sigmoid", "var std", "sum mean", "exp exp2", "log log2", "relu gelu", "ReLU GELU", "SiLU GELU",
    "ones zeros", "ceil floor", "register_parameter register_buffer", "add_ add", "mul_ mul", "rand randn",
    "sqrt rsqrt", "randint arange", "int64 float32", "float64 float32", "detach clone",
]  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">", ">="), ast.LtE: ("<", ">=", ">"), ast.Gt: (">=", "<", "<="), ast.GtE: (">", "<=", "<"),
    ast.Eq: ("!=",), ast.NotEq: ("==",), ast.Is: ("is not",), ast.IsNot: ("is",), ast.In: ("not in",),
    ast.NotIn: ("in",),
}  # fmt: skip
_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.MatMult: "@", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_OTHER_SIGNS = {
    "+": "-*", "-": "+", "*": "/+@", "/": "*", "@": "*", "//": "%/", "%": "/", "**": "*", "&": "|", "|": "&",
}  # fmt: skip
_STEPS = (
    "{}.transpose(-2, -1)", "~{}", "-{}", "{} ** 0.5", "1 / {}", "{} + 1", "{} - 1", "{} // 2", "{}.unsqueeze(-1)",
    "{}.unsqueeze(0)", "{}.unsqueeze(1)", "{}.squeeze(-1)", "{}.squeeze(0)", "{}.contiguous()", "{}.clone()",
    "{}.detach()", "{}.float()", "{}.long()", "{}.bool()", "{}.transpose(1, 2)", "{}.flatten()", "{}.item()",
    "{}.sqrt()", "{}.abs()", "{}.exp()", "{}.T", "{}.sum(dim=-1, keepdim=True)", "{}[:, None]", "{}[None]", "{}[-1]",
    "{}.softmax(dim=-1)", "{}.tolist()", "list({})", "tuple({})", "int({})",
)  # fmt: skip
_LIKELY_STEPS = 8
_COPY = "{}.clone()"
"""A likely step if the value is stored, because later changes then change the original, too."""
_MOST_NAMES = 12

_Span = tuple[int, int, str]
_Spans = tuple[_Span, ...]
Change = tuple[ast.AST, str, str, int]
"""A node, its new text, what is changed in words, and the rank."""
Changes = tuple[list[tuple[ast.AST, str]], str, int]
"""Nodes with new texts that belong together, what is changed in words, and the rank."""


def generic_edits(definition: Definition) -> list[Edit]:
    """Return the edits of a definition, likeliest first."""
    view = CodeView(definition)
    edits: dict[_Spans, tuple[str, int]] = {}  # an `Edit` of each would take as long as all the rest
    equal: dict[tuple[str, str], dict[_Span, None]] = defaultdict(dict)
    for node, new, subject, rank in chain.from_iterable(operator(view) for operator in _OPERATORS):
        if new != (old := view.text(node)):
            span = (*definition.span(node), new)
            edits.setdefault((span,), (subject, rank))
            equal[old, new][span] = None
    for changes, subject, rank in chain.from_iterable(operator(view) for operator in _WIDE_OPERATORS):
        spans = tuple(sorted((*definition.span(node), new) for node, new in changes))
        if _are_apart(spans):
            edits.setdefault(spans, (subject, rank))
    for same in equal.values():
        if len(same) > 1 and _are_apart(spans := tuple(sorted(same))):
            subject, rank = edits[spans[:1]]
            edits.setdefault(spans, (subject, rank + 1))
    likeliest = sorted(edits.items(), key=lambda item: item[1][1])[:MOST_EDITS]
    return [Edit(spans, subject, rank) for spans, (subject, rank) in likeliest]


def _are_apart(spans: Sequence[_Span]) -> bool:
    return all(one[1] <= other[0] for one, other in pairwise(spans))


def _numbers(view: CodeView) -> Iterator[Change]:
    """Edits to another number."""
    for node in view.expressions:
        parent = view.parents.get(node)
        is_negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
        constant = node.operand if isinstance(node, ast.UnaryOp) and is_negative else node
        is_inner = isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.USub)
        if is_inner or not isinstance(constant, ast.Constant):
            continue
        value = constant.value
        if isinstance(value, bool):
            yield node, str(not value), "a value", 0
        elif value in ("inf", "-inf"):
            yield node, '"-inf"' if value == "inf" else '"inf"', "a number", 0
        elif isinstance(value, int | float):
            number = -value if is_negative else value
            if isinstance(value, int) and isinstance(parent, ast.Subscript | ast.Tuple):
                yield from ((node, name, "an index", 2) for name in view.locals(node))
            others: list[float] = [number - 1, number + 1, -number, 0, 1, -1, 2, -2, 3, 0.5]
            if isinstance(value, float):
                others = [-number, 1 / number if number else 1.0, 1.0, 0.0, 0.5, -0.5, 2.0, 1e-5, 1e4]
            for place, other in enumerate(others):
                new = str(other)
                yield node, view.wrapped(node, new) if new.startswith("-") else new, "a number", place // 3
            if isinstance(value, float) or value > 99:
                yield node, view.wrapped(node, '-float("inf")'), "a number", 1


def _names(view: CodeView) -> Iterator[Change]:
    """Edits to another variable, or to a size of one."""
    for node in view.expressions:
        parent = view.parents.get(node)
        if is_variable(node) and not (isinstance(node, ast.Name) and view.is_called(node)):
            for other in view.names(node):
                yield node, other, "a name", 1 if other.startswith("self.") == is_attribute(node) else 3
        is_number = isinstance(node, ast.Constant) and type(node.value) is int
        may_be_size = isinstance(parent, ast.BinOp | ast.Call | ast.Tuple | ast.Assign) and not view.is_called(node)
        if may_be_size and (is_number or is_variable(node) or is_size(node)):
            for other in view.locals(node):
                yield from ((node, f"{other}.shape[{axis}]", "a size", 3) for axis in (-1, 0, 1, -2))


def _less(view: CodeView) -> Iterator[Change]:
    """Edits that drop a step, operand or argument."""
    for call, value in view.methods():
        yield call, view.text(value), "a call that is too many", 1
    for node in view.expressions:
        match node:
            case ast.BinOp(left=one, right=other):
                for side in (one, other):
                    yield node, view.wrapped(node, view.text(side)), "an operation that is too many", 1
            case ast.UnaryOp(operand=operand):
                yield node, view.wrapped(node, view.text(operand)), "an operation that is too many", 0
            case ast.Subscript(value=value):
                yield node, view.text(value), "an index that is too many", 2
            case ast.BoolOp(values=values):
                yield from ((node, view.wrapped(node, view.text(value)), "a condition", 2) for value in values)
            case ast.IfExp(body=one, orelse=other):
                for side in (one, other):
                    yield node, view.wrapped(node, view.text(side)), "a condition", 1
            case ast.Call(args=[first, *_]) if not isinstance(first, ast.Starred):
                yield node, view.wrapped(node, view.text(first)), "a call that is too many", 2
            case ast.Tuple(elts=elements) if len(elements) > 1:
                is_returned = isinstance(view.parents.get(node), ast.Return)
                for one in elements:
                    rest = [view.text(other) for other in elements if other is not one]
                    new = f"({', '.join(rest)}{',' * (len(rest) == 1)})"
                    yield node, new, "an element that is too many", 3
                    if is_returned:
                        yield node, view.text(one), "what is returned", 2
        if isinstance(node, ast.Call):
            for number in range(len(node.args) + len(node.keywords)):
                is_keyword = number >= len(node.args)
                yield node, view.call(node, without=number), "an argument that is too many", 1 if is_keyword else 3


def _statements(view: CodeView) -> Iterator[Change]:
    """Edits that drop a statement, change an assignment, or exchange two statements."""
    for block, position in view.statements:
        statement = block[position]
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        is_last = position == len(block) - 1
        if (
            not is_text
            and not isinstance(statement, ast.FunctionDef)
            and not (isinstance(statement, ast.Return) and is_last)
        ):
            yield statement, "pass", "a statement that is too many", 2
        match statement:
            case ast.If(test=test) | ast.While(test=test):
                yield test, f"not ({view.text(test)})", "a condition", 2
                yield test, "True", "a condition", 2
            case ast.AugAssign(target=target, op=op, value=value):
                name, sign = view.text(target), _SIGNS[type(op)]
                yield statement, f"{name} = {name} {sign} ({view.text(value)})", "an assignment in place", 1
                yield statement, f"{name} = {view.text(value)}", "an assignment", 3
                for other in _OTHER_SIGNS.get(sign, ""):
                    yield statement, f"{name} {other}= {view.text(value)}", "an operator", 1
            case ast.Assign(targets=[ast.Name() | ast.Subscript() | ast.Attribute() as target], value=value):
                yield statement, f"{view.text(target)} = {view.text(target)} + {view.text(value)}", "an assignment", 4
                yield statement, f"return {view.text(value)}", "what is returned", 5
            case ast.Return(value=ast.expr() as value):
                for name in view.names(statement):
                    yield value, name, "what is returned", 2
                    yield value, f"{view.text(value)}, {name}", "what is returned", 4
        if not is_last and not isinstance(statement, ast.FunctionDef | ast.Return):
            following = block[position + 1]
            if not isinstance(following, ast.FunctionDef | ast.Return):
                both = ast.Pass(
                    lineno=statement.lineno,
                    col_offset=statement.col_offset,
                    end_lineno=following.end_lineno,
                    end_col_offset=following.end_col_offset,
                )
                new = f"{view.text(following)}\n{' ' * statement.col_offset}{view.text(statement)}"
                yield both, new, "the order of two statements", 2


def _arguments(view: CodeView) -> Iterator[Change]:
    """Edits that add an argument."""
    for node in view.expressions:
        if isinstance(node, ast.Call):
            for more in _more_arguments(view, node):
                yield node, view.call(node, more=more), "an argument that is missing", 1


def _more_arguments(view: CodeView, call: ast.Call) -> Iterator[str]:
    name, given = called_name(call), {one.arg for one in call.keywords}
    variables = view.locals(call)[:_MOST_NAMES]
    passed = {view.text(one) for one in call.args}
    yield from (f"{one}={one}" for one in view.options(call) if one not in given | passed)
    if name in _KEEPDIM and "keepdim" not in given:
        yield "keepdim=True"
        if "dim" not in given and not call.args:
            yield "dim=-1, keepdim=True"
    if name in _SPREAD and not given & {"unbiased", "correction"}:
        yield from ("unbiased=False", "unbiased=False, keepdim=True")
    if name == "dropout" and "training" not in given:
        yield "training=self.training"
    if name == "Linear" and "bias" not in given:
        yield from ("bias=False", *(f"bias={other}" for other in view.names(call) if "bias" in other))
    if name in ("tril", "triu") and "diagonal" not in given:
        yield from ("diagonal=1", "diagonal=-1")
    if name in _FACTORIES:
        dtypes = ["torch.bool", "torch.long", *(f"{one}.dtype" for one in variables)] if "dtype" not in given else []
        yield from (f"dtype={dtype}" for dtype in dtypes)
        if "device" not in given:
            yield from (f"device={one}.device" for one in variables)
            yield from (f"dtype={one}.dtype, device={one}.device" for one in variables if dtypes)
    if name in _WITH_DIM and "dim" not in given:
        yield from ("dim=-1", "dim=-2", "dim=1")
    if name == "register_buffer" and "persistent" not in given:
        yield "persistent=False"


def _steps(view: CodeView) -> Iterator[Change]:
    """Edits that add a step or operand."""
    for node in view.expressions:
        parent = view.parents.get(node)
        is_name, is_result = is_variable(node), isinstance(node, ast.Call | ast.BinOp) and not is_size(node)
        is_other = isinstance(node, ast.Subscript | ast.Compare | ast.UnaryOp) and not is_size(node)
        if not (is_name or is_result or is_other) or view.is_called(node):
            continue
        atom = view.atom(node)
        if isinstance(parent, ast.If | ast.While | ast.IfExp | ast.BoolOp):
            yield node, f"not {atom}", "a condition", 2
            continue
        is_stored = is_name and view.is_stored(node)
        for number, step in enumerate(_STEPS):
            rank = 5 if number >= _LIKELY_STEPS else 3 if is_name else 4
            rank = 2 if is_stored and step == _COPY else rank
            yield node, view.wrapped(node, step.format(atom)), "a step that is missing", rank
        variables = [name for name in view.locals(node)[:_MOST_NAMES] if name != view.text(node)]
        if is_result and isinstance(parent, ast.Return | ast.Assign):
            for name in variables:
                if name not in view.sizes(node):
                    yield node, f"{name} + {atom}", "an operand that is missing", 2
            for name in view.attributes:
                yield node, f"{name}({view.text(node)})", "a step that is missing", 3
        for name in variables if is_result or is_name else ():
            for scale in (f"{name}.shape[-1] ** 0.5", f"{name} ** 0.5"):
                yield node, view.wrapped(node, f"{atom} / {scale}"), "a scale that is missing", 4
            yield node, f"{atom}.to({name}.dtype)", "a dtype", 4
            yield node, f"{atom}.to({name}.device)", "a device", 4
            for sign in ("*", "/") if name in view.sizes(node) else ("+", "-", "*", "/"):
                yield node, view.wrapped(node, f"{atom} {sign} {name}"), "an operand that is missing", 5


def _others(view: CodeView) -> Iterator[Change]:
    """Edits to another operator, another order, or another function of the same kind."""
    pairs = [pair.split() for pair in _EXCHANGED]
    for node in view.expressions:
        match node:
            case ast.Compare(ops=[op], left=left, comparators=[right]):
                for sign in _COMPARISONS[type(op)]:
                    yield node, f"{view.text(left)} {sign} {view.text(right)}", "a comparison", 0
            case ast.BinOp(left=left, op=operator, right=right):
                sign, one, other = _SIGNS[type(operator)], view.text(left), view.text(right)
                for another in _OTHER_SIGNS.get(sign, ""):
                    yield node, view.wrapped(node, f"{one} {another} {other}"), "an operator", 1
                if sign == "//":
                    yield node, view.wrapped(node, f"-(-{view.atom(left)} // {other})"), "the direction of rounding", 1
                if sign not in "+*":
                    yield node, view.wrapped(node, f"{view.atom(right)} {sign} {view.atom(left)}"), "the order", 2
                if sign in "*/":
                    for power, rank in (("0.5", 1), ("2", 3)):
                        new = f"{one} {sign} {view.atom(right)} ** {power}"
                        yield node, view.wrapped(node, new), "a root or power that is missing", rank
                if isinstance(left, ast.BinOp):
                    inner = f"{view.text(left.right)} {sign} {other}"
                    new = f"{view.atom(left.left)} {_SIGNS[type(left.op)]} ({inner})"
                    yield node, view.wrapped(node, new), "parentheses", 3
            case ast.BoolOp(op=joint, values=values):
                new = (" or " if isinstance(joint, ast.And) else " and ").join(map(view.text, values))
                yield node, view.wrapped(node, new), "a condition", 1
            case ast.Call(func=ast.Attribute(value=value, attr="repeat"), args=[ast.expr() as times, *_]):
                new = f"{view.text(value)}.repeat_interleave({view.text(times)}, dim=0)"
                yield node, new, "a function", 1
                yield from _reordered(view, node)
            case ast.Attribute(value=value, attr=name):
                if view.is_called(node) and name.endswith("_") and not name.startswith("_"):
                    yield node, f"{view.text(value)}.{name[:-1]}", "a call in place", 0
                for pair in pairs:
                    if name in pair:
                        yield node, f"{view.text(value)}.{pair[1 - pair.index(name)]}", "a function", 1
            case ast.Call():
                yield from _reordered(view, node)
            case ast.Tuple(elts=elements) if 1 < len(elements) <= 5:
                for i, j in combinations(range(len(elements)), 2):
                    parts = [view.text(one) for one in elements]
                    parts[i], parts[j] = parts[j], parts[i]
                    new = ", ".join(parts)
                    yield node, f"({new})" if view.text(node).startswith("(") else new, "the order", 2
            case ast.Constant(value=str() as letters) if "->" in letters:
                yield from ((node, repr(new), "an equation", 1) for new in _equations(letters))


def _reordered(view: CodeView, call: ast.Call) -> Iterator[Change]:
    for swapped in combinations(range(min(len(call.args), 5)), 2):
        yield call, view.call(call, swapped=swapped), "the order", 1


def _equations(letters: str) -> Iterator[str]:
    """Yield other equations for `einsum`.

    They have any number of dimensions instead of one, two letters in the other order, or one letter replaced.
    """
    names = sorted(set(filter(str.isalpha, letters)))
    yield from (letters.replace(name, "...") for name in names)
    for place, letter in enumerate(letters):
        others = [name for name in names if name != letter] if letter.isalpha() else []
        yield from (f"{letters[:place]}{name}{letters[place + 1 :]}" for name in others)
    left, _, right = letters.partition("->")
    for one, other in combinations(names, 2):
        yield f"{left}->{right.translate(str.maketrans(one + other, other + one))}"


def _misplaced(view: CodeView) -> Iterator[Changes]:
    """Edits that move a product or quotient to another expression of the function."""
    for node in view.expressions:
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Mult)):
            continue
        kept, moved = node.left, node.right
        inside = set(ast.walk(node))
        for other in view.expressions:
            if (
                other in inside
                or not isinstance(other, ast.Call | ast.BinOp)
                or view.function(other) is not view.function(node)
            ):
                continue
            new = view.wrapped(other, f"{view.atom(other)} {_SIGNS[type(node.op)]} {view.atom(moved)}")
            yield [(node, view.wrapped(node, view.text(kept))), (other, new)], "the place of an operation", 3


def _of_classes(view: CodeView) -> Iterator[Changes]:
    """Edits of classes: `self.` that is missing, attributes of the class, buffers, dropout made in each call."""
    attributes = {one.removeprefix("self.") for one in view.attributes}
    bare = [
        node for node in view.expressions
        if isinstance(node, ast.Name) and node.id in attributes and node.id not in view.locals(node)
    ]  # fmt: skip
    if bare:
        yield [(node, f"self.{node.id}") for node in bare], "a name without `self.`", 0
    tree = view.definition.tree
    if isinstance(tree, ast.ClassDef):
        shared = [one for one in tree.body if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)]
        for function in tree.body if shared else ():
            if isinstance(function, ast.FunctionDef) and function.name == "__init__":
                own = "".join(f"self.{view.text(one)}; " for one in shared)
                changes: list[tuple[ast.AST, str]] = [(one, "pass") for one in shared]
                changes.append((function.body[0], own + view.text(function.body[0])))
                yield changes, "attributes of the class that each instance needs", 0
    for block, position in view.statements:
        match block[position]:
            case ast.Assign(targets=[ast.Attribute(attr=name) as target], value=value) as statement if is_attribute(
                target
            ):
                is_parameter = isinstance(value, ast.Call) and called_name(value) == "Parameter" and bool(value.args)
                inner = value.args[0] if is_parameter and isinstance(value, ast.Call) else value
                yield [(statement, f'self.register_buffer("{name}", {view.text(inner)})')], "a buffer", 2
                if not is_parameter:
                    yield [(statement, f"self.{name} = nn.Parameter({view.text(value)})")], "a parameter", 3
    for node in view.expressions:
        match node:
            case ast.Call(func=ast.Call() as made, args=[weights]) if called_name(made) == "Dropout":
                rates = [*made.args, *(one.value for one in made.keywords)]
                arguments = ", ".join(map(view.text, [weights, *rates]))
                new = f"nn.functional.dropout({arguments}, training=self.training)"
                yield [(node, new)], "a module that is made in each call", 0


_OPERATORS: tuple[Callable[[CodeView], Iterator[Change]], ...] = (
    _numbers, _names, _less, _statements, _arguments, _steps, _others,
)  # fmt: skip
_WIDE_OPERATORS: tuple[Callable[[CodeView], Iterator[Changes]], ...] = (_misplaced, _of_classes)
