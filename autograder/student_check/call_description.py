"""A call in words, such as `scaled_softmax(scores of shape (1, 6), d_k=24)`, and its result next to the right one."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..core.arguments import insert_instances
from ..core.comparison import right_elements
from ..core.complaints import ORDINALS
from .examples import Call, decode_value, inspected_result

_LONGEST_ARGUMENT = 60
_MOST_PARTS = 6


def calls_with_results(steps: list[Any]) -> list[Any]:
    """Return the steps that call a function and have a result.

    Steps with a module are left out, because its parameters would be needed to repeat the call.
    """
    return [step for step in steps if "name" in step and "result" in step and not step.keys() & {"with", "once"}]


def example_call(call: Call, exercise: str, number: int, example: Mapping[str, Any]) -> str:
    """Return the code that gives a call's arguments and the right result; empty if a call cannot be repeated."""
    calls = calls_with_results(example["steps"])
    at = next((at for at, step in enumerate(calls, start=1) if step is call.step), 0)
    which = f", call={at}" if at > 1 else ""
    return f'args, right = example("{exercise}", {number}{which})' if at else ""


def describe_call(call: Call, example: Mapping[str, Any]) -> str:
    """Return a call in words: the function or module, and the arguments."""
    step, args = call.step, insert_instances(call.args, call.held)
    if "name" in step:
        once = ", as an iterator, which can be walked once" if "once" in step else ""
        return f"{step['name']}({_arguments(call.function, args, call.named)}){once}"
    builds = [one for one in example["steps"] if one["operation"] in ("build", "assemble")]
    build = builds[step["instance"]]
    if "part" in step:
        ends = "" if step["operation"] == "read" else f"({_arguments(call.function, args, call.named)})"
        made = f"{build['name']}()" if "name" in build else "module"
        return f"{made}.{step['part']}{ends}"
    if "others" in build:
        x = ", ".join(_argument("x", arg) for arg in call.args)
        return f"`{build['computes']}`, with {x}"
    if build["operation"] == "assemble":
        return f"{_argument('', call.function)}, called with {_arguments(None, call.args, call.named)}"
    made = _arguments(None, [decode_value(arg) for arg in build.get("args", ())], build.get("named", {}))
    mode = "in training" if call.function.training else "after eval()"  # type: ignore[attr-defined]
    forward = getattr(call.function, "forward", None)
    return f"{build['name']}({made})({_arguments(forward, args, call.named)}), {mode}"


def _arguments(function: Any, args: Sequence[Any], named: Mapping[str, Any]) -> str:
    try:
        names = list(inspect.signature(function).parameters) if function is not None else []
    except (TypeError, ValueError):
        names = []
    words = [_argument(names[number] if number < len(names) else "", arg) for number, arg in enumerate(args)]
    return ", ".join([*words, *(_argument(name, arg) for name, arg in named.items())])


def _argument(name: str, arg: Any) -> str:
    if isinstance(arg, torch.Tensor):
        dtype = "" if arg.dtype == torch.float32 else f" and {arg.dtype}"
        return f"{name or 'a tensor'} of shape {tuple(arg.shape)}{dtype}"
    if isinstance(arg, torch.nn.Module):
        parts = [f"{part} {tuple(own.shape)}" for part, own in arg.named_parameters()]
        more = "" if len(parts) <= _MOST_PARTS else f" and {len(parts) - _MOST_PARTS} more"
        return f"{name or 'a module'} with {', '.join(parts[:_MOST_PARTS]) or 'no parameters'}{more}"
    if isinstance(arg, list | tuple):
        each = [_argument("", one) for one in arg]
        alike = len(each) > _MOST_PARTS and len(set(each)) == 1
        return f"{name} of {len(each)}: {f'each {each[0]}' if alike else ', '.join(each)}"
    said = repr(arg)
    if said == object.__repr__(arg):
        said = f"<{type(arg).__name__}>"
    said = said if len(said) <= _LONGEST_ARGUMENT else f"{said[:_LONGEST_ARGUMENT]}…"
    return f"{name}={said}" if name else said


_MOST = 8
"""Maximum number of rows and columns that are shown."""
_LARGE = 1e4
_MORE_DIGITS = (".6f", ".8g", ".10g", ".12g")


@dataclass
class MatrixComparison:
    """A matrix of the student's result and the expected one, as text. `wrong` is true where they differ."""

    where: str
    own: list[list[str]]
    right: list[list[str]]
    wrong: list[list[bool]]


def compare_matrices(call: Call | None) -> MatrixComparison | None:
    """Return the first matrix in which the call's result differs; None if no matrix can be shown."""
    if call is None or "result" not in call.step:
        return None
    pairs: list[tuple[Any, Any]] = [(call.value, inspected_result(call.step))]
    if isinstance(pairs[0][1], tuple) and isinstance(call.value, tuple | list):
        pairs = list(zip(call.value, pairs[0][1], strict=False))
    for number, (own, right) in enumerate(pairs):
        both = isinstance(own, torch.Tensor) and isinstance(right, torch.Tensor)
        if not both or own.shape != right.shape or not own.dim() or not own.numel() or own.is_complex():
            continue
        found = _first(own.detach().double(), right.double(), call.step.get("close", 1e-4))
        if found and len(pairs) > 1:
            found.where = ", ".join(filter(None, [f"{ORDINALS[number]} result", found.where]))
        if found:
            return found
    return None


def _first(own: torch.Tensor, right: torch.Tensor, tolerance: float) -> MatrixComparison | None:
    wrong = ~right_elements(own, right, tolerance)
    if not bool(wrong.any()):
        return None
    leading = tuple(wrong.nonzero()[0].tolist())[:-2] if own.dim() > 2 else ()
    own, right, wrong = ((one[leading] if leading else one).reshape(-1, one.shape[-1]) for one in (own, right, wrong))
    row, column = (max(0, int(place) - _MOST + 1) for place in wrong.nonzero()[0])
    part = slice(row, row + _MOST), slice(column, column + _MOST)
    cut = own.shape[0] > _MOST or own.shape[1] > _MOST
    where = [f"[{', '.join(map(str, leading))}]"] if leading else []
    if cut:
        where.append(f"from row {row} and column {column} on")
    own, right, wrong = own[part], right[part], wrong[part]
    own_shown, right_shown = _apart(own, right, wrong)
    return MatrixComparison(", ".join(where), own_shown, right_shown, wrong.tolist())


def _apart(own: torch.Tensor, right: torch.Tensor, wrong: torch.Tensor) -> list[list[list[str]]]:
    """Return both matrices with enough digits to tell different elements apart."""
    shown = [_numbers(one, _digits(one)) for one in (own, right)]
    for digits in _MORE_DIGITS:
        if all(
            not differs or one != other
            for rows in zip(*shown, wrong.tolist(), strict=True)
            for one, other, differs in zip(*rows, strict=True)
        ):
            break
        shown = [_numbers(one, digits) for one in (own, right)]
    return shown


def _numbers(matrix: torch.Tensor, digits: str) -> list[list[str]]:
    return [[f"{number:{digits}}" for number in row] for row in matrix.tolist()]


def _digits(matrix: torch.Tensor) -> str:
    """Return a format with the same digits for all elements, so that rows can be compared."""
    finite = matrix[matrix.isfinite()]
    whole = bool((finite == finite.round()).all())
    return ".4g" if bool((finite.abs() >= _LARGE).any()) else ".0f" if whole else ".4f"
