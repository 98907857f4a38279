"""The message on a located fault: the wrong line, the made and the needed elements, and the steps that are right.

It lists the names that a line uses, with the lines that assign to them: a number computed above, a layer from
`__init__`. Tracing sees tensors only. A line that is right in itself makes a wrong tensor if it uses a wrong number or
layer.
"""

import ast
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import torch

from .fault import FaultKind, LocatedFault
from .reference import TOLERANCE, TraceCase, comparable, is_mask

_MAX_CHARACTERS = 10_000
"""Longer cells are not parsed, because Python's parser may take long on them."""
_MAX_NAMES = 6
MAX_LINE = 100
"""Maximum number of characters of a quoted line."""
_SHOWN = 4
_DIGITS, _MORE_DIGITS = 4, 7
_MOST_COMPARED = 1_000
_SMALL = 1e-3
_OF_ONE_LINE = (FaultKind.WRONG_VALUES, FaultKind.MISSING_STEP, FaultKind.FIRST_OF_TWO, FaultKind.ONLY_LINE)
"""Kinds of fault whose cause is one line, or a number or layer that the line uses."""
_ALIAS = re.compile(r"\s*([^\W\d]\w*) *= *((?!None\b|True\b|False\b)[^\W\d][\w.]*)\s*(?:#.*)?")
_ASSIGNED = re.compile(r"([\w.,\s*]+?)(?::[^=]*)?\s*(?:[-+*/@]|\*\*)?=(?!=)")
Source = Callable[[str], Sequence[str]]
"""Returns the lines of a file; an empty list if they are unknown."""


def names_used(
    lines: Iterable[str], line: int, computing_lines: Collection[int], doubtful_lines: Collection[int] = ()
) -> str:
    """Return the names that a line uses, such as `slope (line 5), self.gelu (line 9)`.

    lines: those of the whole cell. computing_lines: those that compute tensors; the names of these tensors are left
    out, except if their line is one of `doubtful_lines`. The result is empty if the line uses only such names, or if
    the cell cannot be parsed.
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
    assigned, tensors = dict(local), {name for name, at in local if at in computing_lines}
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


def explain(fault: LocatedFault, case: TraceCase, source: Source) -> str:
    """Return the message on a fault that was located on this case, as plain text of several lines.

    source: returns the lines of the fault's file. The numbers in the message are those of the case, which is released:
    none is from a hidden test.
    """
    wrong = fault.lines[-1:] if fault.kind == FaultKind.MISSING_STEP else fault.lines
    lines = source(fault.file)

    def text(line: int) -> str:
        return line_of(lines, line)

    names: set[str] = (
        set() if "lambda" in text(wrong[0]) else _assigned(text(wrong[0]))
    )  # the name is then the function's
    is_whole = fault.expected is not None and not fault.is_intermediate
    if len(wrong) > 1:
        message = [f"{_lines(wrong).capitalize()} do not fit together."]
    elif fault.step in names or (is_whole and len(names) == 1):
        message = [f"Line {wrong[0]} makes `{fault.step if fault.step in names else names.pop()}` wrong."]
    else:
        message = [f"What line {wrong[0]} {_verb(fault, case, text(wrong[0]))} is wrong."]
    message += [f"  line {line}: {code}" for line in fault.lines if (code := quote(text(line)))]
    message += [f"  {row}" for row in (*_elements(fault), *_patterns(fault))]
    others = [line for step, line in fault.right_steps.items() if step not in _assigned(text(line))]
    others = [] if fault.kind == FaultKind.ONLY_LINE else others
    used = names_used(lines, wrong[-1], fault.computing_lines, others) if fault.kind in _OF_ONE_LINE else ""
    if not (used and fault.kind == FaultKind.ONLY_LINE):  # a number that the line uses may be wrong
        message += _advice(fault, case)
    if used:
        message.append(f"If {_lines(wrong)} is right, look at what the line uses: {used}.")
    if fault.kind == FaultKind.WRONG_TENSOR and (alias := _alias_above(lines, wrong[-1])):
        message.append(alias)
    if right := _right_steps(fault, text):
        message.append(f"As it should be: {', '.join(right)}.")
    return "\n".join([*message, f"Tried on {describe_call(case)}"])


def line_of(lines: Sequence[str], number: int) -> str:
    """Return a line of a file, counted from 1; empty if the file has no such line."""
    return lines[number - 1] if 0 < number <= len(lines) else ""


def _right_steps(fault: LocatedFault, text: Callable[[int], str]) -> list[str]:
    """Return the solution's steps that are right, if their lines assign to the solution's names.

    A line's last step must have its name too: otherwise the line computes further with its steps.
    """
    last = {line: step for step, line in fault.right_steps.items()}
    return [
        f"`{step}` (line {line})"
        for step, line in fault.right_steps.items()
        if line not in fault.lines and step != fault.step and {step, last[line]} <= _assigned(text(line))
    ]


def _alias_above(lines: Sequence[str], line: int) -> str:
    """Return a message if a line uses an alias: a name to which a line above assigns another variable."""
    names = re.findall(r"\w+", line_of(lines, line))
    for number in range(line - 1, 0, -1):
        above = line_of(lines, number)
        if above.lstrip().startswith("def "):
            return ""
        if (alias := _ALIAS.fullmatch(above[:MAX_LINE])) and alias[1] in names:
            return f"Line {number} makes `{alias[1]}` another name for `{alias[2]}`."
    return ""


def _assigned(line: str) -> set[str]:
    """Return the names to which a line assigns."""
    lefts = (_ASSIGNED.match(statement) for statement in line[:MAX_LINE].split(";"))
    return {name for left in lefts if left for name in re.findall(r"\w+", left[1])}


def _verb(fault: LocatedFault, case: TraceCase, line: str) -> str:
    if fault.kind not in (FaultKind.WRONG_RETURN, FaultKind.WRONG_COUNT):
        return "makes"
    return "keeps" if case.through and "return" not in line else "returns"


def _advice(fault: LocatedFault, case: TraceCase) -> list[str]:
    """Return how the lines are related, and what to look for."""
    first, second = fault.lines[0], fault.lines[-1]
    is_one = first == second
    match fault.kind:
        case FaultKind.MISSING_STEP if not is_one:
            where = (
                f"A step of line {second} is wrong, or one is missing before it."
                if second == first + 1
                else f"Look at line {second}, and at the lines between the two: a step there is wrong, or missing."
            )
            return [f"What line {first} makes can be right; what line {second} makes of it is not. {where}"]
        case FaultKind.UNUSED if not is_one:
            return [
                f"What line {first} makes is right, but line {second} does not use it: "
                f"it uses the input of line {first} instead."
            ]
        case FaultKind.INVERTED_MASK if not is_one:
            return [_mask_advice(fault)]
        case FaultKind.SWAPPED:
            where = f"between line {first} and line {second}" if not is_one else "in this line"
            return [f"Two tensors, each right in itself, are swapped {where}: look at their order."]
        case FaultKind.WRONG_TENSOR if _is_inverted(fault):
            return ["This mask is the inverse of the required one: invert it, as ~ does with a bool mask."]
        case FaultKind.WRONG_TENSOR:
            return ["The tensor here is right in itself, but another one is needed here: are two names mixed up?"]
        case FaultKind.WRONG_RETURN if case.through:
            return ["A part of the required tensor is missing: did the code lose it, or is another name meant?"]
        case FaultKind.WRONG_RETURN:
            return [
                "This is not the required result: does the code return too early, is a last step missing, or "
                "is another "
                "name meant?"
            ]
        case FaultKind.WRONG_COUNT if fault.expected_count and fault.made is not None and not fault.made.dim():
            return ["It returns this number as a tensor; a Python number is required, as int(...) or .item() makes it."]
        case FaultKind.WRONG_COUNT:
            expected, verb = _tensors(fault.expected_count), "is" if fault.expected_count == 1 else "are"
            return [f"It returns {_tensors(fault.result_count)}; {expected} {verb} required."]
        case FaultKind.FIRST_OF_TWO:
            return ["It is not enough to correct this line: a later line is wrong too, perhaps for the same reason."]
        case FaultKind.ONLY_LINE:
            return ["The tensors that go into this line are right: look at the line itself."]
    return []


def _mask_advice(fault: LocatedFault) -> str:
    first, second = fault.lines
    made, needed = fault.made, fault.expected
    if made is not None and needed is not None and torch.equal(made == 0, needed == 0):
        return (
            f"The mask of line {first} is right in its positions, but line {second} needs other numbers there. "
            "Change one of the two lines."
        )
    return (
        f"Line {first} makes a mask, but line {second} reads it with the opposite meaning: it keeps what should "
        "be hidden, "
        "and hides what should be kept. Change one of the two lines."
    )


def _is_inverted(fault: LocatedFault) -> bool:
    """Return whether the wrong tensor is a mask and the inverse of the right one."""
    made, needed = fault.made, fault.expected
    if made is None or needed is None or made.shape != needed.shape or not is_mask(made):
        return False
    return torch.equal(made == 0, needed != 0)


def _tensors(count: int | None) -> str:
    return "no tensor" if not count else "one tensor" if count == 1 else f"{count} tensors"


def _lines(lines: Sequence[int]) -> str:
    return f"line{'s' if len(lines) > 1 else ''} {' and '.join(map(str, lines))}"


def quote(line: str) -> str:
    """Return a line of code without indentation, cut after 100 characters."""
    line = line.strip()
    return line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}…"


def describe_call(case: TraceCase) -> str:
    """Return a case's call with shapes instead of tensors: `softmax(a tensor of shape (2, 3), 1).`"""
    if case.through:
        method, *read = case.through
        steps = range(0, len(case.arguments), len(read))
        each = (", ".join(map(_argument, case.arguments[n : n + len(read)])) for n in steps)
        return f"{case.exercise} after {' and '.join(f'{method}({step})' for step in each)}."
    args = ", ".join(map(_argument, case.arguments))
    built = "" if case.built is None else f"({', '.join(map(str, case.built))})"
    return f"{case.exercise}{built} with {args}." if built else f"{case.exercise}({args})."


def _argument(arg: Any) -> str:
    if isinstance(arg, tuple | list) and any(isinstance(element, torch.Tensor) for element in arg):
        return f"({', '.join(map(_argument, arg))})"
    return f"a tensor of shape {tuple(arg.shape)}" if isinstance(arg, torch.Tensor) else repr(arg)[:MAX_LINE]


def _elements(fault: LocatedFault) -> list[str]:
    """Return lines with a few elements of the made and of the needed tensor, from where printed digits differ."""
    made, needed, start, digits = fault.made, fault.expected, 0, _DIGITS
    if fault.is_intermediate and needed is None and fault.kind != FaultKind.WRONG_TENSOR:
        return []  # it may be right in itself, and say nothing about what the line makes
    above = ["On the way to its result, the line makes:"] if fault.is_intermediate and made is not None else []
    if made is not None and needed is not None and made.shape == needed.shape and made.numel():
        one, other = comparable(made).flatten(), comparable(needed).flatten()
        apart = ((one - other).abs() > TOLERANCE * (1 + other.abs())).nonzero().flatten().tolist()[:_MOST_COMPARED]
        visible = [n for n in apart if f"{float(one[n]):.{digits}g}" != f"{float(other[n]):.{digits}g}"]
        start, digits = (visible or apart or [0])[0], digits if visible else _MORE_DIGITS
    rows = above if made is None else [*above, f"made:   {_tensor(made, start, digits)}"]
    return rows if needed is None else [*rows, f"needed: {_tensor(needed, start, digits)}"]


def _tensor(values: torch.Tensor, start: int, digits: int) -> str:
    if values.dim() == 0:
        return f"the number {float(values):.{digits}g}"
    numbers = ", ".join(f"{number:.{digits}g}" for number in (values + 0.0).flatten()[start : start + _SHOWN].tolist())
    more = ", …" if values.numel() > start + _SHOWN else ""
    place = (torch.arange(values.numel()).view(values.shape) == start).nonzero()[0].tolist() if start else []
    where = f"from {place} on" if start else "beginning with"
    return f"shape {tuple(values.shape)}, {where} {numbers}{more}" if numbers else f"shape {tuple(values.shape)}"


def _patterns(fault: LocatedFault) -> list[str]:
    """Return sentences on typical differences: NaN, an inverted mask, a factor, a wrong temperature."""
    made, needed = fault.made, fault.expected
    if made is None or needed is None or made.shape != needed.shape or made.dim() == 0 or not made.numel():
        return []
    made, needed = made.double(), needed.double()
    if bool(made.isnan().any()) and not bool(needed.isnan().any()):
        of = "infinity - infinity, 0 * infinity, 0 / 0 and the root of a negative number"
        return [f"The tensor contains NaN; {of} give NaN."]
    if is_mask(made) or is_mask(needed):
        is_inverted = fault.kind == FaultKind.INVERTED_MASK and torch.equal(made == 0, needed != 0)
        return (
            ["It is inverted: 0 where other numbers are needed, and other numbers where 0 is needed."]
            if is_inverted
            else []
        )
    return [*_softness(made, needed), *_factor(made, needed)]


def _softness(made: torch.Tensor, needed: torch.Tensor) -> list[str]:
    sums = torch.stack([made, needed]).sum(dim=-1)
    if not torch.allclose(sums, torch.ones_like(sums), atol=1e-4):
        return []
    largest, should = float(made.amax(dim=-1).mean()), float(needed.amax(dim=-1).mean())
    if abs(largest - should) < 0.02 or not torch.equal(made == 0, needed == 0):
        return []
    how = "too even" if largest < should else "too uneven"
    if made.dim() == 1:
        return [f"They sum to 1, but are {how}: the largest is {largest:.2f}, and should be {should:.2f}."]
    return [f"Each row sums to 1, but they are {how}: the largest of a row is {largest:.2f}, and should be {should:.2f}"
            ", on average."]  # fmt: skip


def _factor(made: torch.Tensor, needed: torch.Tensor) -> list[str]:
    there = needed.isfinite() & made.isfinite() & (needed.abs() > 1e-6)
    if int(there.sum()) < 2 or not torch.equal(needed.isfinite(), made.isfinite()):
        return []
    ratio = made[there] / needed[there]
    factor = float(ratio[0])
    if (
        not torch.allclose(ratio, ratio[0].expand_as(ratio), rtol=1e-3)
        or not torch.allclose(made[~there & made.isfinite()], torch.zeros(()).to(made), atol=1e-6)
        or abs(factor) < _SMALL
        or abs(factor - 1) < _SMALL
    ):
        return []
    return [f"It is {factor:.4g} times what is needed."]
