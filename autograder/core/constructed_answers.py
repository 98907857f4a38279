"""Judge tensors that a student constructs by hand, many of which are right: a counterexample, or a head's matrices.

A counterexample is an input on which a wrong function gives another result than a right one. In grading the right
function is the solution, in the student check the student's own. The wrong function is released packed, so that no
notebook cell shows its lines.

The matrices of an attention head are judged by its weights, because many matrices give the same weights. Each token of
a sentence is a vector of its word and its position, both one-hot. The head is causal.
"""

import base64
import importlib
import math
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from .comparison import RIGHT_NUMBERS, Mismatch, OddForm, describe

MOST_NUMBERS = 12
"""Maximum number of elements in all tensors of an input together: few enough for a person to follow each."""
APART = 1e-3
"""Two results are different if they differ by more than this."""
_ROUNDING = 1e-6
"""Relative rounding error of float32, by which two right orders of computation may differ."""
_MOST_WRITTEN = 24
"""Maximum number of elements of a result that a message lists."""
_LONGEST = 200

ANY_MORE = "..."
_CLOSE = 0.01


@dataclass(frozen=True)
class CounterexampleTarget:
    """The wrong function of a counterexample exercise: its inputs, and the inputs that hide its misconception."""

    of: str
    """The function's name."""
    takes: tuple[str, ...]
    """The tensors of an input: `x: b h T hd`, or `mask: T T bool` with a dtype other than float32. `...` stands for any
    number of dimensions."""
    also: tuple[Any, ...] = ()
    """Further arguments of the function, after the tensors."""
    hides: tuple[str, ...] = ()
    """Conditions under which an input hides the misconception; the verdict's `why` has the first that holds.

    Forms: `T=1`, `d_k=d_v`, `x alike` (all elements equal), `x all 0`, `x within 0 9` (each element at least 0 and at
    most 9), `x alike along T`, `x alike turned h T` (equal after transposing h and T).
    """

    @property
    def tensors(self) -> list["RequiredTensor"]:
        """The required name, dimensions and dtype of each tensor."""
        return [_parse_required(text) for text in self.takes]


@dataclass(frozen=True)
class RequiredTensor:
    """Required name, dimensions and dtype of one tensor of an input."""

    name: str
    dims: tuple[str, ...]
    dtype: torch.dtype

    @property
    def sized(self) -> list[str]:
        """The dimensions that have a name: all but a leading `...`."""
        return [dim for dim in self.dims if dim != ANY_MORE]

    def place(self, dim: str) -> int:
        """Return the index of a dimension, counted from the last: -1, -2, ..."""
        return self.sized.index(dim) - len(self.sized)

    @property
    def shape(self) -> str:
        """The dimensions as a docstring writes them, such as `(T, d)`."""
        return f"({', '.join(self.dims)}{',' * (len(self.dims) == 1)})"


@dataclass(frozen=True)
class CounterexampleResult:
    """Verdict on a student's input: whether it is a counterexample."""

    problem: str
    """Reason in a sentence why the input is not a counterexample; empty if it is one."""
    why: str
    """The kind of failure without numbers, equal for all inputs that fail in the same way."""


_DIFFERS = CounterexampleResult("", "differs")


def judge_input(
    given: Any,
    target: CounterexampleTarget,
    wrong: Callable[..., Any],
    right: Callable[..., Any],
    describe: Callable[[Any], str],
    whose: str,
) -> CounterexampleResult:
    """Return the verdict on an input of a counterexample exercise.

    given: the student's tensor, or a tuple of tensors. describe: names the type and shape of a value. whose: the right
    function in words.
    """
    wanted = target.tensors
    if (unusable := _unusable(given, wanted, describe)) is not None:
        return unusable
    tensors = [given] if len(wanted) == 1 else list(given)
    held = [one.detach().to("cpu", copy=True) for one in tensors]
    expected, refused = _called(right, held, target.also)
    if refused:
        return CounterexampleResult(f"{whose} raises an error on this input: {refused}", "refused")
    got, failed = _called(wrong, held, target.also)
    if failed or _gap(got, expected) > APART:
        return _DIFFERS
    gap = _gap(got, expected)
    near = f" The results differ by {gap:.1g} at most; they must differ by more than {APART:g}." if gap > 0 else ""
    shapes = _listed([f"{one.name} of shape {tuple(each.shape)}" for one, each in zip(wanted, held, strict=True)])
    sentence = (
        f"On your input, {shapes}, the wrong function and the right one both return {_written(expected)}: there "
        "is no difference."
    )
    return CounterexampleResult(f"{sentence}{near}", f"alike: {_hidden_by(held, target)}")


def _parse_required(written: str) -> RequiredTensor:
    name, _, about = written.partition(": ")
    *dims, last = about.split()
    dtypes = {"bool": torch.bool, "int64": torch.int64}
    if last in dtypes:
        return RequiredTensor(name, tuple(dims), dtypes[last])
    return RequiredTensor(name, (*dims, last), torch.float32)


def _unusable(
    given: Any, wanted: Sequence[RequiredTensor], describe: Callable[[Any], str]
) -> CounterexampleResult | None:
    """Return the verdict on an input of another form than required; None if the form is right."""
    if len(wanted) == 1:
        given = (given,)
    elif not isinstance(given, tuple | list) or len(given) != len(wanted):
        expected = f"{len(wanted)} tensors are expected: {', '.join(one.name for one in wanted)}"
        return CounterexampleResult(f"The input is {describe(given)}; {expected}.", f"no input: {_kind(given)}")
    for one, tensor in zip(wanted, given, strict=True):
        what = "The input" if len(wanted) == 1 else f"`{one.name}`"
        if not isinstance(tensor, torch.Tensor) or tensor.layout is not torch.strided or tensor.is_meta:
            return CounterexampleResult(
                f"{what} is {describe(tensor)}; a tensor is expected.", f"no tensor: {_kind(tensor)}"
            )
        least = len(one.sized)
        if tensor.dim() < least or (ANY_MORE not in one.dims and tensor.dim() > least):
            several = f"{tensor.dim()} dimension{'s' * (tensor.dim() != 1)}"
            return CounterexampleResult(
                f"{what} has {several}; {one.shape} is expected.", f"{one.name} of {tensor.dim()} dimensions"
            )
        if tensor.dtype != one.dtype:
            how = ""
            if one.dtype == torch.float32 and not tensor.is_complex():
                how = (
                    " Call `.float()`"
                    if tensor.is_floating_point()
                    else " Write its numbers with a decimal point, or call `.float()`"
                )
                how += "."
            return CounterexampleResult(
                f"{what} is {tensor.dtype}; {one.dtype} is expected.{how}", f"{one.name} in {tensor.dtype}"
            )
        if not tensor.numel():  # results without elements never differ
            return CounterexampleResult(f"{what} has no elements: its shape is {tuple(tensor.shape)}.", "empty")
    count = sum(tensor.numel() for tensor in given)
    if count > MOST_NUMBERS:
        return CounterexampleResult(
            f"The input has {count} numbers; at most {MOST_NUMBERS} are allowed.", "too many numbers"
        )
    if not all(bool(tensor.isfinite().all()) for tensor in given):
        return CounterexampleResult("The input has NaN or infinite numbers; finite ones are expected.", "not finite")
    return _unfit(wanted, [one.shape for one in given])


def _unfit(wanted: Sequence[RequiredTensor], shapes: Sequence[torch.Size]) -> CounterexampleResult | None:
    """Return the verdict on a dimension with two different sizes; None if all sizes agree."""
    sizes: dict[str, int] = {}
    for one, shape in zip(wanted, shapes, strict=True):
        for dim, size in zip(one.sized, shape[len(shape) - len(one.sized) :], strict=True):
            if sizes.setdefault(dim, size) != size:
                expected = f"{_listed([each.shape for each in wanted])} {'are' if len(wanted) > 1 else 'is'} expected"
                said = f"{dim} is {sizes[dim]} in one dimension and {size} in another; {expected}."
                return CounterexampleResult(said, f"{dim} of two sizes")
    return None


def _called(function: Callable[..., Any], tensors: Sequence[torch.Tensor], also: Sequence[Any]) -> tuple[Any, str]:
    """Return the result of a function and an empty string, or None and the error message."""
    try:
        with torch.no_grad():
            return function(*(one.clone() for one in tensors), *also), ""
    except Exception as error:
        message = str(error).strip().partition("\n")[0][:_LONGEST]
        return None, f"{type(error).__name__}: {message}" if message else type(error).__name__


def _gap(one: Any, other: Any) -> float:
    """Return the largest difference of two results; infinity if their types or shapes differ."""
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor) or one.shape != other.shape:
        return torch.inf
    a, b = one.detach().double(), other.detach().double()
    is_same = (a == b) | (a.isnan() & b.isnan())
    gaps = ((a - b).abs() - _ROUNDING * b.abs()).nan_to_num(torch.inf, torch.inf)
    return max(0.0, float(gaps.masked_fill(is_same, 0.0).amax())) if gaps.numel() else 0.0


def _listed(words: Sequence[str]) -> str:
    """Join words to `a, b and c`."""
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


def _hidden_by(tensors: Sequence[torch.Tensor], target: CounterexampleTarget) -> str:
    """Return the first condition of `hides` that holds for this input; empty if none does."""
    sizes: dict[str, int] = {}
    by_name: dict[str, tuple[RequiredTensor, torch.Tensor]] = {}
    for wanted, tensor in zip(target.tensors, tensors, strict=True):
        sizes |= dict(zip(wanted.sized, tensor.shape[tensor.dim() - len(wanted.sized) :], strict=True))
        by_name[wanted.name] = wanted, tensor
    return next((one for one in target.hides if _holds(one, sizes, by_name)), "")


def _holds(hiding: str, sizes: Mapping[str, int], tensors: Mapping[str, tuple[RequiredTensor, torch.Tensor]]) -> bool:
    if "=" in hiding:
        one, _, other = hiding.partition("=")
        return sizes[one] == (int(other) if other.isdigit() else sizes[other])
    name, *condition = hiding.split()
    wanted, tensor = tensors[name]
    match condition:
        case ["alike"]:
            return bool((tensor == tensor.flatten()[0]).all())
        case ["all", number]:
            return bool((tensor == float(number)).all())
        case ["within", least, most]:
            return bool(((tensor >= float(least)) & (tensor <= float(most))).all())
        case ["alike", "along", dim]:
            return bool((tensor == tensor.narrow(wanted.place(dim), 0, 1)).all())
        case ["alike", "turned", one, other]:
            return torch.equal(tensor.transpose(wanted.place(one), wanted.place(other)), tensor)
    raise ValueError(f"{hiding!r} is not a condition.")


def _kind(value: Any) -> str:
    """Return the name of a value's type. A value from another process is an `Opaque`, which has only that name."""
    return str(getattr(value, "type_name", type(value).__name__))


PackedFunction = Mapping[str, Any]
"""`code`: the packed source. `imports`: module names by the names that the code has for them."""


def packed_function(code: str, imports: Mapping[str, str]) -> PackedFunction:
    """Pack a function's source and imports for the release."""
    return {"code": base64.b85encode(zlib.compress(code.encode(), 9)).decode(), "imports": dict(imports)}


def unpacked_function(name: str, function: PackedFunction) -> Callable[..., Any]:
    """Return the function that was packed, limited to inputs that a counterexample exercise accepts.

    Most wrong functions are right on nearly all inputs. Without a limit, a student could submit one as the answer to
    the exercise that asks for the right function. So it raises ValueError if its arguments have more than MOST_NUMBERS
    elements or another floating dtype than float32, and its result has no graph. `inspect` finds no packed line.
    """
    scope: dict[str, Any] = {as_: importlib.import_module(module) for as_, module in function["imports"].items()}
    scope["__name__"] = f"a wrong {name}"
    code = zlib.decompress(base64.b85decode(function["code"])).decode()
    exec(compile(code, f"<a wrong {name}>", "exec"), scope)
    wrong: Callable[..., Any] = scope[name]

    def called(*args: Any, **kwargs: Any) -> Any:
        tensors = [each for each in (*args, *kwargs.values()) if isinstance(each, torch.Tensor)]
        count = sum(each.numel() for each in tensors)
        if count > MOST_NUMBERS:
            raise ValueError(
                f"The wrong {name} takes at most {MOST_NUMBERS} numbers, as in a bug hunt; these are {count}."
            )
        if other := [each.dtype for each in tensors if each.is_floating_point() and each.dtype != torch.float32]:
            raise ValueError(f"The wrong {name} takes float32, as in a bug hunt, and not {other[0]}.")
        with torch.no_grad():
            return wrong(*args, **kwargs)

    return called


class Attended(NamedTuple):
    """A head's weights and result for one sentence."""

    head: str
    words: torch.Tensor  # (T,)
    one_hot: torch.Tensor  # (T, num_words)
    weights: torch.Tensor  # (T, T)
    result: torch.Tensor  # (T, num_words)
    has_batch: bool
    """True if each matrix has a first dimension of size 1, (1, d, d_k)."""


def attended(sentence: Sequence[int], found: Any, head: str, num_words: int, num_places: int) -> Attended:
    """Run a head on a sentence. found: its matrices, as a student's code returns them.

    Raises Mismatch unless these are three matrices that fit together.
    """
    has_batch = _has_batch(found)
    query, key, value = _matrices([one[0] for one in found] if has_batch else found, num_words, num_places)
    words = torch.tensor(sentence)
    one_hot = torch.eye(num_words, dtype=torch.float64)[words]
    x = torch.cat([one_hot, torch.eye(num_places, dtype=torch.float64)[: len(words)]], dim=-1)  # (T, d)
    scores = (x @ query) @ (x @ key).T / math.sqrt(query.shape[1])
    weights = torch.softmax(scores.masked_fill(torch.ones_like(scores).triu(1) > 0, -torch.inf), dim=-1)
    return Attended(head, words, one_hot, weights, weights @ (x @ value), has_batch)


def _has_batch(found: Any) -> bool:
    return (
        isinstance(found, tuple | list)
        and bool(found)
        and all(isinstance(one, torch.Tensor) and one.dim() == 3 and len(one) == 1 for one in found)
    )


def _matrices(found: Any, num_words: int, num_places: int) -> list[torch.Tensor]:
    d = num_words + num_places
    if not isinstance(found, tuple | list) or len(found) != 3:
        raise Mismatch(f"The result is {describe(found)}; W_query, W_key and W_value are expected.")
    for name, one in zip(("W_query", "W_key", "W_value"), found, strict=True):
        if not isinstance(one, torch.Tensor) or one.dim() != 2 or len(one) != d or one.is_complex():
            raise Mismatch(f"{name} is {describe(one)}; a matrix with {d} rows is expected.")
        if not bool(one.isfinite().all()):
            raise Mismatch(f"{name} has inf or NaN. Use finite numbers: large ones are enough.")
    query, key, value = (one.detach().double() for one in found)
    if query.shape != key.shape:
        raise Mismatch("W_query and W_key have different widths, so queries cannot be multiplied with keys.")
    if value.shape[1] != num_words:
        raise Mismatch(f"W_value is {describe(value)}; a tensor of shape {(d, num_words)} is expected.")
    return [query, key, value]


def assert_attends(seen: Attended) -> None:
    """Raise Mismatch unless the weights follow the pattern of the head's name, such as `previous`."""
    right = _patterns(seen.words)[seen.head]
    if not _is_close(seen.weights, right):
        i, j = ((seen.weights - right).abs() > _CLOSE).nonzero()[0].tolist()
        raise Mismatch(
            f'In "{seen.head}", token {i} of {len(seen.words)} gives token {j} the weight {seen.weights[i, j]:.3f}; '
            f"{right[i, j]:.3f} is expected."
        )
    _assert_no_batch(seen)


def assert_mixes(seen: Attended) -> None:
    """Raise Mismatch unless the result is the weights times the one-hot words."""
    if not _is_close(seen.result, seen.weights @ seen.one_hot):
        raise Mismatch(f'In "{seen.head}", the result is not the weighted sum of the words\' one-hot vectors.')
    _assert_no_batch(seen)


def _assert_no_batch(seen: Attended) -> None:
    if seen.has_batch:
        raise OddForm("Each matrix has an extra dimension of size 1.", RIGHT_NUMBERS)


def behaviour(seen: Attended) -> tuple[Any, ...]:
    """Return features of the head by which misconceptions differ, regardless of the chosen matrices."""
    patterns = _patterns(seen.words)
    alike = sorted(name for name, one in patterns.items() if _is_close(seen.weights, one))
    is_peaked = bool((seen.weights.amax(dim=-1) > 1 - _CLOSE).all())
    meant = patterns[seen.head] > 0
    wanted, average = ((one * meant).sum(dim=-1) for one in (seen.weights, patterns["average"]))
    turns_away = bool((wanted < average - _CLOSE).any())
    is_zero = _is_close(seen.result, torch.zeros_like(seen.result))
    return alike, is_peaked, turns_away, _mixture(seen), is_zero, seen.has_batch


def behaviour_without_weights(mismatch: Mismatch) -> str:
    """Return the message on an unusable result without the matrices' width, which students choose."""
    return re.sub(r"shape \((\d+), \d+\); a matrix", r"shape (\1, ...); a matrix", str(mismatch))


def _patterns(words: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the weights, (T, T), of each head by its name, and those of some misconceptions."""
    num_tokens = len(words)
    i, j = torch.arange(num_tokens)[:, None], torch.arange(num_tokens)
    seen = j <= i
    where = {
        "itself": i == j,
        "first": j.expand(num_tokens, -1) == 0,
        "previous": j == (i - 1).clamp(min=0),
        "average": seen,
        "same word": seen & (words[:, None] == words),
        "other words": seen & ((words[:, None] != words) | (i == j)),
        "two before": j == (i - 2).clamp(min=0),
        "word 0": seen & (words == 0),
    }
    return {name: one / one.sum(dim=-1, keepdim=True) for name, one in where.items()}


def _mixture(seen: Attended) -> str:
    """Return a name for the relation of the result to the right mixture of words."""
    result, right = seen.result, seen.weights @ seen.one_hot
    if _is_close(result, right):
        return "as wanted"
    if result.shape != right.shape:
        return "of another shape"
    scale = (result * right).sum() / (right * right).sum()
    if _is_close(result, scale * right):
        return "scaled"
    return "shifted" if _is_close(result, right + (result - right).mean()) else "otherwise"


def _is_close(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and bool(((one - other).abs() <= _CLOSE).all())
