"""The reference of a trace case: the tensors that right code makes in it.

`grading.reference_trace` makes references from the solution and the alternative solutions. The release stores them as
numbers without code, and `read_reference` reads them in the student check.
"""

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from ..core.arguments import tensors_in
from ..core.run_trace import Run, TracedTensor

TOLERANCE = 2e-5
_INFINITE = 1e6
"""Elements beyond this are equal: some code hides a score by minus infinity, other code by -1e9."""
LARGE = 1e5
"""No computed element is as large: beyond it, an element stands for infinity."""
_NAN = 12345678.0
SOFTMAX_STEPS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "shifted": lambda values: values - values.amax(dim=-1, keepdim=True),
    "exponentials": torch.exp,
    "sums": lambda values: values.sum(dim=-1, keepdim=True),
}
"""The tensors that a softmax written by hand makes of scores."""
SPECIAL_COUNTS = {-(2**23): -torch.inf, 2**23 - 1: torch.inf, 1 - 2**23: torch.nan}
"""The packed counts that stand for infinities and NaN."""
LARGEST_COUNT = 2**23 - 2


@dataclass(frozen=True)
class TraceCase:
    """A call on which answers are traced."""

    exercise: str
    arguments: tuple[Any, ...]
    built: tuple[Any, ...] | None = None
    """The constructor's arguments; None if the exercise is a function."""
    parameters: Mapping[str, torch.Tensor] | None = None
    """The values that the instance's parameters get."""
    rules: Mapping[str, Mapping[str, Any]] | None = None
    """The rules that generate the parameters, for the release."""
    through: tuple[str, ...] = ()
    """The method to call instead of the instance, and the attributes that hold its results; empty for a callable."""
    is_silent: bool = False
    """True if wrong values are not located, but only lost aspects such as gradients."""
    unreported: frozenset[str] = frozenset()
    """The kinds of fault (`FaultKind`) that are not reported, because they often name a wrong line."""


@dataclass(frozen=True, eq=False)
class RightTensor:
    """A tensor that is right in a trace case."""

    values: torch.Tensor
    operator: str
    """The torch operator that made the tensor; `given` for inputs."""
    number: int | None = None
    """The tensor's number in the solution's run; None if an alternative solution made it."""
    step: str = ""
    """The solution's variable name for the tensor."""
    is_slice: bool = False
    """True for a part of another reference tensor: one head, sequence or token."""

    @cached_property
    def is_mask(self) -> bool:
        """True if the tensor looks like a mask."""
        return is_mask(self.values)

    @property
    def is_given(self) -> bool:
        """True for arguments and parameters."""
        return self.operator == "given"


@dataclass
class Reference:
    """The tensors that are right in a trace case."""

    case: TraceCase
    results: list[torch.Tensor]
    tensors: list[RightTensor]
    ancestors: dict[int, frozenset[int]]
    """The tensors that went into each tensor of the solution's run, directly or through others."""
    inputs: dict[int, list[int]]
    """The direct inputs of each tensor of the solution's run, without masks and single elements."""
    prescaled: list[torch.Tensor]
    """Tensors that the solution scales in a later step, with the scale applied already."""

    @cached_property
    def _by_shape(self) -> dict[tuple[int, ...], tuple[torch.Tensor, list[RightTensor]]]:
        by_shape: dict[tuple[int, ...], list[RightTensor]] = {}
        for tensor in self.tensors:
            by_shape.setdefault(squeezed_shape(tensor.values.shape), []).append(tensor)
        return {
            shape: (comparable(torch.stack([tensor.values.double().flatten() for tensor in tensors])), tensors)
            for shape, tensors in by_shape.items()
        }

    @cached_property
    def _prescaled_by_shape(self) -> dict[torch.Size, torch.Tensor]:
        by_shape: dict[torch.Size, list[torch.Tensor]] = {}
        for scaled in self.prescaled:
            by_shape.setdefault(scaled.shape, []).append(comparable(scaled).flatten())
        return {shape: torch.stack(tensors) for shape, tensors in by_shape.items()}

    @cached_property
    def whole_tensors(self) -> list[RightTensor]:
        """The reference tensors without slices and masks."""
        return [tensor for tensor in self.tensors if not tensor.is_slice and not tensor.is_mask]

    @cached_property
    def row_counts(self) -> list[int]:
        """The sizes of the tensors' first dimensions, ascending."""
        return sorted({size for tensor in self.tensors for size in tensor.values.shape[:1]})

    @cached_property
    def hidden_positions(self) -> list[torch.Tensor]:
        """Boolean tensors, true where a mask hides: where a mask is not 0, where another tensor is 0 or -infinity."""
        hidden_positions: list[torch.Tensor] = []
        for tensor in self.tensors:
            if tensor.is_slice or tensor.values.dim() < 2:
                continue
            values = tensor.values.squeeze()
            for hidden in (values != 0,) if is_mask(values) else (values == 0, values <= -LARGE):
                is_new = not any(torch.equal(other, hidden) for other in hidden_positions)
                if is_new and bool(hidden.any()) and not bool(hidden.all()):
                    hidden_positions.append(hidden)
        return hidden_positions

    def matches(self, values: torch.Tensor) -> list[RightTensor]:
        """Return the reference tensors with these values. Dimensions of size 1 do not count."""
        stacked, tensors = self._by_shape.get(squeezed_shape(values.shape), (None, []))
        if stacked is None:
            return []
        is_close = _is_close(stacked, comparable(values).flatten())
        return [tensor for tensor, matches in zip(tensors, is_close.tolist(), strict=True) if matches]

    def has_shape(self, shape: Iterable[int]) -> bool:
        """Return whether a reference tensor has this shape. Dimensions of size 1 do not count."""
        return squeezed_shape(shape) in self._by_shape

    def is_prescaled(self, values: torch.Tensor) -> bool:
        """Return whether a tensor equals a prescaled one."""
        squeezed = values.squeeze()
        stacked = self._prescaled_by_shape.get(squeezed.shape)
        return stacked is not None and bool(_is_close(stacked, comparable(squeezed).flatten()).any())

    def is_right(self, run: Run) -> bool:
        """Return whether a run ended with the right result."""
        if run.error is not None:
            return False
        results = list(tensors_in(run.result))
        return len(results) == len(self.results) and all(
            result.shape == expected.shape and not result.is_complex() and has_same_values(result, expected)
            for result, expected in zip(results, self.results, strict=True)
        )


def _is_close(stacked: torch.Tensor, flat: torch.Tensor) -> torch.Tensor:
    """Return, for each row of comparable values, whether all of them are near these."""
    return ((stacked - flat).abs() <= TOLERANCE * (1 + flat.abs())).all(dim=1)


def comparable(values: torch.Tensor) -> torch.Tensor:
    """Return the values in float64, with one number for infinity and huge elements, and one for NaN."""
    return values.double().clamp(-_INFINITE, _INFINITE).nan_to_num(_NAN)


def has_same_values(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two tensors with the same number of elements have equal ones, regardless of shape."""
    first, second = comparable(tensor.detach()).flatten(), comparable(other.detach()).flatten()
    return bool(((first - second).abs() <= TOLERANCE * (1 + second.abs())).all())


def is_mask(values: torch.Tensor) -> bool:
    """Return whether a tensor has exactly two values, one of them 0, and two dimensions or more."""
    if values.numel() < 2 or values.dim() < 2:
        return False
    numbers = comparable(values).flatten()
    hides = numbers != 0
    if bool(hides.all()):
        return False
    others = numbers[hides]
    return bool(others.numel()) and bool((others == others[0]).all())


def is_unambiguous(needed: torch.Tensor, made: torch.Tensor) -> bool:
    """Return whether the needed values are the only right ones, so that a message may show them.

    After a softmax, all large negative scores have weight 0, and scores may be shifted.
    """
    return not bool((needed.abs() > LARGE).any()) or bool((made.isinf() & needed.isinf()).any())


def squeezed_shape(shape: Iterable[int]) -> tuple[int, ...]:
    """Return a shape without the dimensions of size 1."""
    return tuple(size for size in shape if size != 1)


def find_ancestors(made: Sequence[TracedTensor]) -> dict[int, frozenset[int]]:
    """Return, for each tensor of a run, the tensors that went into it, directly or through others."""
    ancestors: dict[int, frozenset[int]] = {}
    for number, tensor in enumerate(made):
        ancestors[number] = frozenset(tensor.inputs).union(
            *(ancestors[other] for other in tensor.inputs if other < number)
        )
    return ancestors


def without_duplicates(tensors: Iterable[RightTensor]) -> list[RightTensor]:
    """Return one of each group of equal tensors: the first, or the first that has a step's name.

    Two may remain that differ in the last digit compared.
    """
    kept: dict[tuple[torch.Size, bytes], RightTensor] = {}
    candidates = [tensor for tensor in tensors if tensor.values.numel()]
    by_shape: dict[torch.Size, list[torch.Tensor]] = {}
    for tensor in candidates:
        by_shape.setdefault(tensor.values.shape, []).append(tensor.values.double())
    # All tensors of a shape at once, which is faster. Adding 0.0 turns minus zero into zero.
    digits = {
        shape: iter(comparable(torch.stack(values)).round(decimals=4).add(0.0).numpy())
        for shape, values in by_shape.items()
    }
    for tensor in candidates:
        key = tensor.values.shape, next(digits[tensor.values.shape]).tobytes()
        if key not in kept or (tensor.step and not kept[key].step):
            kept[key] = tensor
    return list(kept.values())


def slices_of(tensors: Iterable[RightTensor]) -> list[RightTensor]:
    """Return the parts of the tensors that code makes in a loop: those of a head, a sequence or a token."""
    return [
        RightTensor(values, tensor.operator, is_slice=True) for tensor in tensors for values in _slices(tensor.values)
    ]


def _slices(values: torch.Tensor, first: int = 0, depth: int = 2) -> Iterable[torch.Tensor]:
    for dim in range(first, values.dim() - 1) if depth else ():
        for index in range(values.shape[dim] if values.shape[dim] > 1 else 0):
            part = values.select(dim, index)
            yield part
            yield from _slices(part, dim, depth - 1)


def read_reference(written: Mapping[str, Any], operators: Sequence[str], case: TraceCase) -> Reference:
    """Read a reference from the release's JSON.

    operators: their names; `written` has their positions in this list.
    """
    inputs, tensors = input_tensors(case), list[RightTensor]()
    for entry in written["rights"]:
        values = read_tensor(entry, inputs, tensors)
        operator = operators[entry["operator"]]
        tensors.append(RightTensor(values, operator, entry.get("number"), entry.get("step", "")))
    return Reference(
        case,
        [read_tensor(entry, inputs, tensors) for entry in written["result"]],
        without_duplicates([*tensors, *slices_of(tensors)]),
        {number: frozenset(numbers) for number, numbers in enumerate(written["before"])},
        dict(enumerate(written["inputs"])),
        [tensors[of].values.squeeze() * by for of, by in written["scaled"]],
    )


def input_tensors(case: TraceCase) -> list[torch.Tensor]:
    """Return the arguments and parameters of a case that are tensors, in float64."""
    arguments = [arg for arg in case.arguments if isinstance(arg, torch.Tensor)]
    return [tensor.double() for tensor in [*arguments, *(case.parameters or {}).values()]]


def read_tensor(
    written: Mapping[str, Any], inputs: Sequence[torch.Tensor], earlier: Sequence[RightTensor]
) -> torch.Tensor:
    """Read one tensor, in float64: its elements, or how it is made from an input or from an earlier tensor."""
    if "given" in written or "of" in written:
        values = inputs[written["given"]] if "given" in written else earlier[written["of"]].values
        return _derived(values, written)
    if "whole" in written:
        return torch.tensor(written["whole"], dtype=torch.float64).reshape(written["shape"])
    return unpack_numbers(written).reshape(written["shape"])


def _derived(values: torch.Tensor, written: Mapping[str, Any]) -> torch.Tensor:
    if "by hand" in written:
        return SOFTMAX_STEPS[written["by hand"]](values)
    if "part" in written:
        values = values.narrow(*written["part"])
    if "order" in written:
        values = values.squeeze().permute(written["order"])
    values = values.reshape(written.get("shape", values.shape)) * written.get("times", 1.0)
    if "filled" in written:
        hidden = torch.tensor([digit == "1" for digit in f"{int(written['hidden'], 16):0{values.numel()}b}"])
        values = torch.where(hidden.reshape(values.shape), float(written["filled"]), values)
    return values


def unpack_numbers(written: Mapping[str, Any]) -> torch.Tensor:
    """Decode packed elements: 24 bits each, as multiples of a unit; float32 without a unit."""
    held = torch.frombuffer(bytearray(base64.b85decode(written["packed"])), dtype=torch.uint8)
    if "unit" not in written:
        return held.view(torch.float32).double()
    low, middle, high = held.reshape(-1, 3).long().unbind(1)
    counts = low + (middle << 8) + (high << 16) - 2**23
    values: torch.Tensor = counts.double() * float(written["unit"])
    for count, special in SPECIAL_COUNTS.items():
        values[counts == count] = special
    return values
