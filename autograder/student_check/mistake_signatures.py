"""Signatures of common mistakes: code with the signature of a mistake on the public examples has that mistake."""

import contextlib
import copy
import io
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch

from ..core import draws, one_head
from ..core.arguments import Arguments, map_nested, with_instances, with_iterators
from ..core.bench import Bench, seed_in_use
from ..core.comparison import Mismatch
from ..core.cost import Cost, exceeded_limits, measure_cost
from ..core.faults import has_own_words, is_cell
from ..core.operations import Assemble, Build, Call, MeasureCost, ProbeDevice
from .example_steps import judge_hunt_input, operation_of
from .written_values import decode_value


def matching_mistakes(
    names: dict[str, Any], examples: list[Any], passed: list[bool], mistakes: list[dict[str, Any]]
) -> list[str]:
    """Return the sentences on the common mistakes with the same signature as this code, usually none or one.

    names: the notebook's. passed: for each example whether the code passes it. mistakes: as released.
    """
    pattern = pass_pattern(examples, passed)
    signatures: dict[Any, list[list[float]]] = {}
    for mistake in mistakes:
        at = mistake.get("at")
        if mistake.get("passes", pattern) != pattern:
            continue
        if at not in signatures:
            signatures[at] = signature(names, public_examples(examples) if at is None else [examples[at]])
        if match(signatures[at], mistake["shows"]):
            return list(mistake["sentences"])
    return []


def public_examples(examples: list[Any]) -> list[Any]:
    """Return the public examples, for which mistakes have signatures."""
    return [example for example in examples if example.get("public", True)]


def pass_pattern(examples: list[Any], passed: list[bool]) -> str:
    """Return a digit for each example, 1 if it passes, without the examples of devices and of refused inputs.

    Code may fail these two kinds in addition to any other mistake.
    """
    pairs = zip(examples, passed, strict=True)
    return "".join("01"[is_passed] for example, is_passed in pairs if not _is_independent(example))


def _is_independent(example: Any) -> bool:
    return "device" in example.get("looks_at", ()) or any("refuses" in step for step in example["steps"])


def signature(names: dict[str, Any], examples: list[Any], dtype: torch.dtype | None = None) -> list[list[float]]:
    """Return the signature of the code: a row of numbers for each example.

    A row has for each call a checksum of everything exact (shapes, dtypes, integers, changed arguments, missing
    gradients), then a few sums over the values and the gradients. An exception ends the row. dtype: converts floats.

    Example: `f(x)` returns a tensor. Its row is `[checksum, sum of |values|, weighted sum, sums of gradients ...]`.
    """
    rows = []
    for example in examples:
        row: list[float] = []
        try:
            with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the student has read PyTorch's warnings already
                for step, function, args in _calls(names, example["steps"], dtype):
                    if "hunt" in step:
                        row += _hunt_row(names, function(), step["hunt"])
                    elif "head" in step or "draws" in step:
                        row += _random_row(function, args, step)
                    elif step["operation"] == "cost":
                        row += _cost_row(function, args, step)
                    else:
                        is_changed = "part" in step or ("with" in step and "instance" in step)
                        row += _call_row(function, args, step.get("named", {}), once=is_changed)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            row += _error_row(error)
        rows.append([number if isinstance(number, int) else round(number, 5) for number in row])
    return rows


def match(one: list[list[float]], other: list[list[float]]) -> bool:
    """Return whether two signatures are equal but for the last digits."""
    return all(
        len(row) == len(other_row) and all(map(is_near, row, other_row))
        for row, other_row in zip(one, other, strict=True)
    )


def value_sums(value: Any) -> list[float]:
    """Return sums over the elements of a value, which differ between most values."""
    return _described(value)[1]


def is_near(one: float, other: float) -> bool:
    """Return whether two numbers are equal but for the last digits; integers must be equal in all digits."""
    if isinstance(one, int) or isinstance(other, int):  # a checksum
        return one == other
    return abs(one - other) <= 1e-3 * (1 + min(abs(one), abs(other)))


def _calls(
    names: dict[str, Any], steps: list[Any], dtype: torch.dtype | None = None
) -> Iterator[tuple[Any, Callable[..., Any], list[Any]]]:
    """Yield each call of an example: its step, the function, and the arguments, with floats in `dtype` if given."""
    seed_in_use(0)
    bench = Bench(names)
    for step in steps:
        operation = operation_of(step, lambda plain: _in(decode_value(plain), dtype))
        if isinstance(operation, ProbeDevice):
            yield step, bench.target(operation.target), list(operation.arguments.positional)
        elif isinstance(operation, Call):
            own = _target(bench.target(operation.target), step)
            if isinstance(operation, MeasureCost):
                ready = with_instances(own, operation.held, bench.instances)
                own = partial(_cost, own, ready, operation.once)
            else:
                own = with_instances(with_iterators(own, operation.once), operation.held, bench.instances)
            yield step, own, list(operation.arguments.positional)
        else:
            bench.ask(operation)
            is_new = isinstance(operation, Build | Assemble) and not getattr(operation, "plain", False)
            if dtype is not None and is_new:
                bench.instances[-1].to(dtype)


def _target(own: Any, step: Any) -> Any:
    if step["operation"] == "read":
        return lambda: getattr(own, step["part"])
    return getattr(own, step["part"]) if "part" in step else own


def _call_row(function: Callable[..., Any], args: list[Any], named: dict[str, Any], *, once: bool) -> list[float]:
    """Return a call's part of a row: its result, the arguments that it wrote into, its gradients, its float64 dtype.

    once: the call may change its function, so only the result and the arguments are described.
    """
    held = _copied(args)
    unused = None if once else copy.deepcopy(function)  # afterwards it may hold tensors that cannot be copied
    exact, sums = _described(function(*args, **named))
    changed = [not _is_unwritten(before, after) for before, after in zip(held, args, strict=True)]
    if unused is None:
        return [_checksum(repr((exact, changed))), *(sums or [1.0])]
    wide = [_in(arg, torch.float64) for arg in _copied(held)]
    wider = _attempt(lambda: _described(_widened(unused)(*wide, **named))[0])
    gradients = _attempt(lambda: _gradient_sums(function, held, named))
    flows, flow_sums = gradients if isinstance(gradients, tuple) else (gradients, [])
    return [_checksum(repr((exact, changed, wider, flows))), *([*sums, *flow_sums] or [1.0])]


def _error_row(error: BaseException) -> list[float]:
    """Return an exception's part of a row: a library's message counts, because it contains the sizes that met."""
    kind = type(error).__name__
    return [_checksum(kind)] if has_own_words(error) else [_checksum(f"{kind}: {error}"), 1.0]


def _cost(own: Any, ready: Callable[..., Any], once: bool, *args: Any, **named: Any) -> Cost:
    return measure_cost(ready, Arguments(args, named), own, is_cell, once=once).cost


def _cost_row(function: Callable[..., Any], args: list[Any], step: Any) -> list[float]:
    """Return a cost's part of a row: the exceeded limits, because the cost depends on more than the mistake."""
    limits = exceeded_limits(function(*args, **step.get("named", {})), step["limits"])
    return [_checksum(repr(limits)), float(len(limits))]


def _hunt_row(names: dict[str, Any], given: Any, hunt: dict[str, Any]) -> list[float]:
    """Return a bug hunt's part of a row: its input's kind of failure. The 1 distinguishes it from an error."""
    return [_checksum(judge_hunt_input(given, hunt, names).why), 1.0]


def _random_row(function: Callable[..., Any], args: list[Any], step: Any) -> list[float]:
    """Return a random or freely chosen result's part of a row: a checksum of what distinguishes mistakes."""
    result = function(*args)
    try:
        if "head" in step:
            of_each = [one_head.attended(sentence, result, *args) for sentence in step["head"]["sentences"]]
            return [_checksum(repr([one_head.behaviour(one) for one in of_each])), 1.0]
        words = draws.as_words(result, len(args[0]))
    except Mismatch as mismatch:
        return [_checksum(one_head.behaviour_without_weights(mismatch)), 1.0]
    if step["draws"] == "ties":
        return [_checksum(draws.fault_where_tied(words, args[0][0], *args[1:])), 1.0]
    return [_checksum(repr(sorted(draws.law(words, args[0][0], *args[1:])))), 1.0]


def _gradient_sums(
    function: Callable[..., Any], args: list[Any], named: dict[str, Any]
) -> tuple[list[bool], list[float]]:
    """Return for each argument and parameter whether a gradient arrives, and the sums of the gradients."""
    args = [arg.clone().requires_grad_() if _is_float(arg) else arg for arg in args]
    parameters = list(function.parameters()) if isinstance(function, torch.nn.Module) else []
    leaves = [leaf for leaf in [*args, *parameters] if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    result = function(*args, **named)
    outputs = [one for one in (result if isinstance(result, tuple | list) else [result]) if _is_float(one)]
    reached = [_weighed(one.double()).sum() for one in outputs if one.requires_grad]
    found = torch.autograd.grad(reached, leaves, allow_unused=True) if reached else [None] * len(leaves)
    sums = [number for gradient in found if gradient is not None for number in _described(gradient)[1]]
    return [gradient is not None for gradient in found], sums


def _described(value: Any) -> tuple[Any, list[float]]:
    """Return the exact part of a value (type, shape, integers), and sums over its elements."""
    if isinstance(value, tuple | list):
        parts = [_described(item) for item in value]
        return (type(value).__name__, [exact for exact, _ in parts]), [number for _, sums in parts for number in sums]
    if isinstance(value, dict):
        return sorted(map(repr, value.items())), []
    if isinstance(value, int | float):
        exact = [value] if isinstance(value, int) else []
        return (type(value).__name__, exact), _described(torch.tensor(float(value)))[1]
    if not isinstance(value, torch.Tensor):
        return type(value).__name__, []
    flat = value.detach().flatten().double()
    broken = [int(flat.isnan().sum()), int((flat == torch.inf).sum()), int((flat == -torch.inf).sum())]
    flat = flat.nan_to_num(0.0, 0.0, 0.0)
    flat = flat.sign() * flat.abs().log1p()  # so that one huge element does not hide the others
    return (list(value.shape), str(value.dtype), broken), [float(flat.abs().sum()), float(_weighed(flat).sum())]


def _weighed(values: torch.Tensor) -> torch.Tensor:
    """Return each element times a factor of its position, so that the sum depends on the order."""
    places = torch.arange(1, values.numel() + 1, dtype=torch.float64).reshape(values.shape)
    return values * torch.cos(places * 2.399963)  # the golden angle: the cosines never repeat


def _checksum(exact: str) -> int:
    return zlib.crc32(exact.encode())


def _attempt(do: Callable[[], Any]) -> Any:
    try:
        return do()
    except Exception as error:
        return type(error).__name__


def _widened(function: Callable[..., Any]) -> Callable[..., Any]:
    return function.double() if isinstance(function, torch.nn.Module) else function


def _in(value: Any, dtype: torch.dtype | None) -> Any:
    return map_nested(value, lambda one: one.to(dtype) if _is_float(one) else one) if dtype is not None else value


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _copied(args: Sequence[Any]) -> list[Any]:
    # Copying a tensor deeply takes ten times as long as cloning it.
    return [
        map_nested(arg, lambda one: one.clone() if isinstance(one, torch.Tensor) else copy.deepcopy(one))
        for arg in args
    ]


def _is_unwritten(one: Any, other: Any) -> bool:
    """Return whether an argument is the same after a call as before."""
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_is_unwritten, one, other))
    if not isinstance(one, torch.Tensor):
        return bool(one == other)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    one, other = one.detach(), other.detach()
    return torch.equal(one, other) or torch.equal(one.nan_to_num(), other.nan_to_num())
