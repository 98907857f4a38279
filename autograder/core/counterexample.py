"""Judge a counterexample: an input on which a wrong function gives another result than a right one.

In grading the right function is the solution, in the student check the student's own. The wrong function is released
packed, so that no notebook cell shows its lines.
"""

import base64
import importlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

MOST_NUMBERS = 12
"""In all tensors of an input together: so few that a person can follow each."""
APART = 1e-3
"""Results must differ by more."""
_ROUNDING = 1e-6
"""Of a number, what may be the rounding of float32: two right orders of computing may differ by as much."""
_MOST_WRITTEN = 24
"""Numbers of a result that are written out."""
_LONGEST = 200

ANY_MORE = "..."


@dataclass(frozen=True)
class HuntTarget:
    """What is hunted: which function, called with what, and what keeps the mistake from showing."""

    of: str
    """The function's name."""
    takes: tuple[str, ...]
    """The tensors of an input: `x: b h T hd`, and `mask: T T bool` where it is not float32. `...` stands for any more
    dimensions."""
    also: tuple[Any, ...] = ()
    """What the function is called with after them."""
    hides: tuple[str, ...] = ()
    """What hides the mistake, the first that holds being told: `T=1`, `d_k=d_v`, `x alike` (all its numbers),
    `x all 0`, `x alike along T`, `x alike turned h T`."""

    @property
    def tensors(self) -> list["Wanted"]:
        """What is wanted of each tensor."""
        return [_wanted(one) for one in self.takes]


@dataclass(frozen=True)
class Wanted:
    """What one tensor of an input is to be."""

    name: str
    dims: tuple[str, ...]
    dtype: torch.dtype

    @property
    def sized(self) -> list[str]:
        """The dimensions that have a name, which are the last ones."""
        return [dim for dim in self.dims if dim != ANY_MORE]

    @property
    def shape(self) -> str:
        """The dimensions in words, as a docstring has them."""
        return f"({', '.join(self.dims)}{',' * (len(self.dims) == 1)})"


@dataclass(frozen=True)
class HuntResult:
    """What an input showed."""

    problem: str
    """Why it is none that the hunt is for, in a sentence; empty where the two differ."""
    why: str
    """The same for all inputs that fail in one way, whatever their numbers are."""


_DIFFERS = HuntResult("", "differs")


def shown_by(
    given: Any,
    target: HuntTarget,
    wrong: Callable[..., Any],
    right: Callable[..., Any],
    named: Callable[[Any], str],
    whose: str,
) -> HuntResult:
    """What comes of an input. named: what a value is, in words. whose: what the right function is called."""
    wanted = target.tensors
    if (unusable := _unusable(given, wanted, named)) is not None:
        return unusable
    tensors = [given] if len(wanted) == 1 else list(given)
    held = [one.detach().to("cpu", copy=True) for one in tensors]
    expected, refused = _called(right, held, target.also)
    if refused:
        return HuntResult(f"{whose} does not take this input: {refused}", "refused")
    got, failed = _called(wrong, held, target.also)
    if failed or _gap(got, expected) > APART:
        return _DIFFERS
    gap = _gap(got, expected)
    near = f" They differ by {gap:.1g} at most; more than {APART:g} is asked." if gap > 0 else ""
    shapes = _listed([f"{one.name} of shape {tuple(each.shape)}" for one, each in zip(wanted, held, strict=True)])
    sentence = (
        f"On your input, {shapes}, the wrong one and the right one both give {_written(expected)}: no difference."
    )
    return HuntResult(f"{sentence}{near}", f"alike: {_hidden_by(held, target)}")


def _wanted(written: str) -> Wanted:
    name, _, about = written.partition(": ")
    *dims, last = about.split()
    dtypes = {"bool": torch.bool, "int64": torch.int64}
    if last in dtypes:
        return Wanted(name, tuple(dims), dtypes[last])
    return Wanted(name, (*dims, last), torch.float32)


def _unusable(given: Any, wanted: Sequence[Wanted], named: Callable[[Any], str]) -> HuntResult | None:
    """What keeps an input from being one at all; None where nothing does."""
    if len(wanted) == 1:
        given = (given,)
    elif not isinstance(given, tuple | list) or len(given) != len(wanted):
        expected = f"{len(wanted)} tensors are expected: {', '.join(one.name for one in wanted)}"
        return HuntResult(f"The input is {named(given)}; {expected}.", f"no input: {_kind(given)}")
    for one, tensor in zip(wanted, given, strict=True):
        what = "The input" if len(wanted) == 1 else f"`{one.name}`"
        if not isinstance(tensor, torch.Tensor) or tensor.layout is not torch.strided or tensor.is_meta:
            return HuntResult(f"{what} is {named(tensor)}; a tensor is expected.", f"no tensor: {_kind(tensor)}")
        least = len(one.sized)
        if tensor.dim() < least or (ANY_MORE not in one.dims and tensor.dim() > least):
            several = f"{tensor.dim()} dimension{'s' * (tensor.dim() != 1)}"
            return HuntResult(
                f"{what} has {several}; {one.shape} is expected.", f"{one.name} of {tensor.dim()} dimensions"
            )
        if tensor.dtype != one.dtype:
            how = ""
            if one.dtype == torch.float32 and not tensor.is_complex():
                how = (
                    " Call `.float()`"
                    if tensor.is_floating_point()
                    else " Write its numbers with a point, or call `.float()`"
                )
                how += "."
            return HuntResult(
                f"{what} is {tensor.dtype}; {one.dtype} is expected.{how}", f"{one.name} in {tensor.dtype}"
            )
        if not tensor.numel():  # one such result may have any number of numbers
            return HuntResult(f"{what} has no numbers: its shape is {tuple(tensor.shape)}.", "empty")
    count = sum(tensor.numel() for tensor in given)
    if count > MOST_NUMBERS:
        return HuntResult(f"The input has {count} numbers; at most {MOST_NUMBERS} are allowed.", "too many numbers")
    if not all(bool(tensor.isfinite().all()) for tensor in given):
        return HuntResult("The input has NaN or infinite numbers; finite ones are expected.", "not finite")
    return _unfit(wanted, [one.shape for one in given])


def _unfit(wanted: Sequence[Wanted], shapes: Sequence[torch.Size]) -> HuntResult | None:
    """A size that is not the same everywhere; None where all are."""
    sizes: dict[str, int] = {}
    for one, shape in zip(wanted, shapes, strict=True):
        for dim, size in zip(one.sized, shape[len(shape) - len(one.sized) :], strict=True):
            if sizes.setdefault(dim, size) != size:
                expected = f"{_listed([each.shape for each in wanted])} {'are' if len(wanted) > 1 else 'is'} expected"
                said = f"{dim} is {sizes[dim]} in one place and {size} in another; {expected}."
                return HuntResult(said, f"{dim} of two sizes")
    return None


def _called(function: Callable[..., Any], tensors: Sequence[torch.Tensor], also: Sequence[Any]) -> tuple[Any, str]:
    """What a function gives, or the error that it raised."""
    try:
        with torch.no_grad():
            return function(*(one.clone() for one in tensors), *also), ""
    except Exception as error:
        said = str(error).strip().partition("\n")[0][:_LONGEST]
        return None, f"{type(error).__name__}: {said}" if said else type(error).__name__


def _gap(one: Any, other: Any) -> float:
    """How far two results are apart; infinity where it is not their numbers that differ."""
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor) or one.shape != other.shape:
        return torch.inf
    a, b = one.detach().double(), other.detach().double()
    same = (a == b) | (a.isnan() & b.isnan())
    gaps = ((a - b).abs() - _ROUNDING * b.abs()).nan_to_num(torch.inf, torch.inf)
    return max(0.0, float(gaps.masked_fill(same, 0.0).amax())) if gaps.numel() else 0.0


def _listed(words: Sequence[str]) -> str:
    """`a, b and c`."""
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def _written(value: Any) -> str:
    if not isinstance(value, torch.Tensor) or value.numel() > _MOST_WRITTEN:
        return "the same"
    return _in_brackets(value.detach().tolist())


def _in_brackets(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_in_brackets, value))}]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _hidden_by(tensors: Sequence[torch.Tensor], target: HuntTarget) -> str:
    """What hides the mistake in this input, if that is known."""
    sizes: dict[str, int] = {}
    by_name: dict[str, tuple[Wanted, torch.Tensor]] = {}
    for wanted, tensor in zip(target.tensors, tensors, strict=True):
        sizes |= dict(zip(wanted.sized, tensor.shape[tensor.dim() - len(wanted.sized) :], strict=True))
        by_name[wanted.name] = wanted, tensor
    return next((one for one in target.hides if _holds(one, sizes, by_name)), "")


def _holds(hiding: str, sizes: Mapping[str, int], tensors: Mapping[str, tuple[Wanted, torch.Tensor]]) -> bool:
    if "=" in hiding:
        one, _, other = hiding.partition("=")
        return sizes[one] == (int(other) if other.isdigit() else sizes[other])
    name, _, *how = hiding.split()
    wanted, tensor = tensors[name]
    if hiding.split()[1] == "all":
        return bool((tensor == float(how[0])).all())
    places = [wanted.sized.index(dim) - len(wanted.sized) for dim in how[1:]]
    match how[:1]:
        case []:
            return bool((tensor == tensor.flatten()[0]).all())
        case ["along"]:
            return bool((tensor == tensor.narrow(places[0], 0, 1)).all())
    return torch.equal(tensor.transpose(*places), tensor)


def _kind(value: Any) -> str:
    """The type of what is no tensor; what came from another process has its name alone."""
    return str(getattr(value, "type_name", type(value).__name__))


PackedFunction = Mapping[str, Any]
"""`code`, packed, and `imports`: by the name that the code has for it, the module."""


def packed_function(code: str, imports: Mapping[str, str]) -> PackedFunction:
    """Return the function as it is released."""
    return {"code": base64.b85encode(zlib.compress(code.encode(), 9)).decode(), "imports": dict(imports)}


def unpacked_function(name: str, function: PackedFunction) -> Callable[..., Any]:
    """Return the function. No file holds its lines, so that `inspect` finds none."""
    scope: dict[str, Any] = {as_: importlib.import_module(module) for as_, module in function["imports"].items()}
    scope["__name__"] = f"a wrong {name}"
    code = zlib.decompress(base64.b85decode(function["code"])).decode()
    exec(compile(code, f"<a wrong {name}>", "exec"), scope)
    found: Callable[..., Any] = scope[name]
    return found
