"""The common mistakes as numbers: code that shows the numbers of one on the public examples is that mistake."""

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
from ..core.arguments import Arguments, each, walking_once, with_held
from ..core.bench import Bench, seed_in_use
from ..core.comparison import Mismatch
from ..core.cost import Cost, of_call
from ..core.cost_limits import exceeded
from ..core.faults import has_own_words, is_cell
from ..core.operations import Assemble, Build, Call, MeasureCost, ProbeDevice
from ..core.steps import operation_of
from .bug_hunt import looked_at
from .written_values import as_value


def mistakes_alike(
    names: dict[str, Any], examples: list[Any], passed: list[bool], mistakes: list[dict[str, Any]]
) -> list[str]:
    """The sentences on the common mistakes that show, number for number, what this code shows; mostly none or one."""
    pattern = as_pattern(examples, passed)
    shown: dict[Any, list[list[float]]] = {}
    for mistake in mistakes:
        at = mistake.get("at")
        if mistake.get("passes", pattern) != pattern:
            continue
        if at not in shown:
            shown[at] = numbers(names, public(examples) if at is None else [examples[at]])
        if alike(shown[at], mistake["shows"]):
            return list(mistake["sentences"])
    return []


def public(examples: list[Any]) -> list[Any]:
    """The examples on which mistakes are known by numbers."""
    return [example for example in examples if example.get("public", True)]


def as_pattern(examples: list[Any], passed: list[bool]) -> str:
    """Which examples pass, but for two kinds that hide no other mistake.

    A tensor may be left on the CPU, or an input that should be refused not be refused yet.
    """
    tried = zip(examples, passed, strict=True)
    return "".join("01"[right] for example, right in tried if not _stands_apart(example))


def _stands_apart(example: Any) -> bool:
    return "device" in example.get("looks_at", ()) or any("refuses" in step for step in example["steps"])


def numbers(names: dict[str, Any], examples: list[Any], dtype: torch.dtype | None = None) -> list[list[float]]:
    """What the code shows on the examples: a row of numbers for each.

    A row describes every call in turn: a checksum of all that is exact (shapes, dtypes, whole numbers, what was written
    into, which gradients arrive), then a few sums over the values and the gradients. An exception ends the row.
    """
    rows = []
    for example in examples:
        row: list[float] = []
        try:
            with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # PyTorch's own, of which the student has read already
                for step, function, args in _calls(names, example["steps"], dtype):
                    if "hunt" in step:
                        row += _hunted(names, function(), step["hunt"])
                    elif "head" in step or "draws" in step:
                        row += _by_chance(function, args, step)
                    elif step["operation"] == "cost":
                        row += _spent(function, args, step)
                    else:
                        is_changed = "part" in step or ("with" in step and "instance" in step)
                        row += _observed(function, args, step.get("named", {}), once=is_changed)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            row += _raised(error)
        rows.append([number if isinstance(number, int) else round(number, 5) for number in row])
    return rows


def alike(one: list[list[float]], other: list[list[float]]) -> bool:
    """Return whether the numbers of two pieces of code are equal but for the last digits."""
    return all(
        len(row) == len(other_row) and all(map(near, row, other_row)) for row, other_row in zip(one, other, strict=True)
    )


def sums(value: Any) -> list[float]:
    """Some sums over the numbers of a value, by which one is told from another."""
    return _described(value)[1]


def near(one: float, other: float) -> bool:
    """Return whether two numbers are equal but for the last digits; integers must be equal in all digits."""
    if isinstance(one, int) or isinstance(other, int):  # a checksum
        return one == other
    return abs(one - other) <= 1e-3 * (1 + min(abs(one), abs(other)))


def _calls(
    names: dict[str, Any], steps: list[Any], dtype: torch.dtype | None = None
) -> Iterator[tuple[Any, Callable[..., Any], list[Any]]]:
    """The calls that an example makes, each with what is called and its arguments (floats in another dtype, if given).

    Randomness starts at the same place each time.
    """
    seed_in_use(0)
    bench = Bench(names)
    for step in steps:
        operation = operation_of(step, lambda plain: _in(as_value(plain), dtype))
        if isinstance(operation, ProbeDevice):
            yield step, bench.target(operation.target), list(operation.arguments.positional)
        elif isinstance(operation, Call):
            own = _target(bench.target(operation.target), step)
            if isinstance(operation, MeasureCost):
                ready = with_held(own, operation.held, bench.instances)
                own = partial(_cost, own, ready, operation.once)
            else:
                own = with_held(walking_once(own, operation.once), operation.held, bench.instances)
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


def _observed(function: Callable[..., Any], args: list[Any], named: dict[str, Any], *, once: bool) -> list[float]:
    """Return the numbers of a call: its result, the arguments that it wrote into, its gradients, its float64 dtype.

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


def _raised(error: BaseException) -> list[float]:
    """Return the numbers of an exception: the words of a library count, because they contain the sizes that met."""
    kind = type(error).__name__
    return [_checksum(kind)] if has_own_words(error) else [_checksum(f"{kind}: {error}"), 1.0]


def _cost(own: Any, ready: Callable[..., Any], once: bool, *args: Any, **named: Any) -> Cost:
    return of_call(ready, Arguments(args, named), own, is_cell, once=once).cost


def _spent(function: Callable[..., Any], args: list[Any], step: Any) -> list[float]:
    """Which limits a call passes: how far depends on more than the mistake."""
    passed = exceeded(function(*args, **step.get("named", {})), step["limits"])
    return [_checksum(repr(passed)), float(len(passed))]


def _hunted(names: dict[str, Any], given: Any, hunt: dict[str, Any]) -> list[float]:
    """In what way an input fails, which is the same for many, and that it is told of an input and no error."""
    return [_checksum(looked_at(given, hunt, names).why), 1.0]


def _by_chance(function: Callable[..., Any], args: list[Any], step: Any) -> list[float]:
    """A call whose numbers are chance, or the answer's choice: what tells mistakes apart whatever they are."""
    found = function(*args)
    try:
        if "head" in step:
            of_each = [one_head.attended(sentence, found, *args) for sentence in step["head"]["sentences"]]
            return [_checksum(repr([one_head.behaviour(one) for one in of_each])), 1.0]
        words = draws.as_words(found, len(args[0]))
    except Mismatch as mismatch:
        return [_checksum(one_head.behaviour_without_weights(mismatch)), 1.0]
    if step["draws"] == "ties":
        return [_checksum(draws.fault_where_tied(words, args[0][0], *args[1:])), 1.0]
    return [_checksum(repr(sorted(draws.law(words, args[0][0], *args[1:])))), 1.0]


def _gradient_sums(
    function: Callable[..., Any], args: list[Any], named: dict[str, Any]
) -> tuple[list[bool], list[float]]:
    """At which arguments and parameters a gradient arrives, and their sums."""
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
    """A value as what is exact about it, and some sums over its numbers."""
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
    flat = flat.sign() * flat.abs().log1p()  # beside one huge number the others still count
    return (list(value.shape), str(value.dtype), broken), [float(flat.abs().sum()), float(_weighed(flat).sum())]


def _weighed(values: torch.Tensor) -> torch.Tensor:
    """Each number times one of its own, so that their sum tells which stands where."""
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
    return each(value, lambda one: one.to(dtype) if _is_float(one) else one) if dtype is not None else value


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _copied(args: Sequence[Any]) -> list[Any]:
    """Arguments of their own for one call."""
    # To copy a tensor deeply takes ten times as long as to clone it.
    return [each(arg, lambda one: one.clone() if isinstance(one, torch.Tensor) else copy.deepcopy(one)) for arg in args]


def _is_unwritten(one: Any, other: Any) -> bool:
    """Return whether a value is unchanged."""
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_is_unwritten, one, other))
    if not isinstance(one, torch.Tensor):
        return bool(one == other)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    one, other = one.detach(), other.detach()
    return torch.equal(one, other) or torch.equal(one.nan_to_num(), other.nan_to_num())
