"""The status of each tensor of a run: matched by the reference, trivial, a mask, prescaled, confirmed, or unknown.

Example: `softmax(scores / d_k)` lacks a square root. `scores` matches a reference tensor. The quotient and its softmax
match none: they are unknown. An unknown tensor need not be wrong, because right code has many forms.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations
from typing import NamedTuple

import torch

from ..core.run_trace import TracedTensor
from .reference import TOLERANCE, Reference, RightTensor, find_ancestors, has_same_values, is_mask, squeezed_shape

_FINITE = 1e6
_FACTORIES = ("_like", "zeros", "ones", "full", "arange", "eye", "scalar_tensor", "fill_", "zero_")
"""Parts of the names of operators that use only the shape of their inputs."""
RESHAPING = {
    "view", "_unsafe_view", "reshape", "transpose", "permute", "t", "expand", "unsqueeze", "squeeze", "clone", "slice",
    "select", "split", "unbind", "_to_copy", "as_strided", "_reshape_alias", "split_with_sizes", "movedim", "chunk",
}  # fmt: skip
"""Operators that compute nothing: they copy, move or select elements."""
_SELECTING = {"slice", "select", "split", "split_with_sizes", "unbind", "chunk", "max", "min"}
_CONSTANT = 1e-6
_MAX_DIMS, _MAX_STARTS = 4, 3

Block = tuple[slice, ...]
"""The position of a block in a tensor."""


class _Values(NamedTuple):
    """The part of a tensor's status that depends only on its values."""

    matches: list[RightTensor]
    is_prescaled: bool
    says_nothing: bool
    """True for a whole number, and for the numbers from 0 to n."""
    is_constant: bool
    """True if the tensor has several elements, and all are equal."""
    is_mask: bool
    is_huge: bool
    """True if an element stands for infinity."""


class TensorStatus:
    """The status of the tensors of one run, by their numbers in the run."""

    def __init__(
        self, reference: Reference, made: Sequence[TracedTensor], earlier: "TensorStatus | None" = None
    ) -> None:
        """earlier: the status of another run of the same answer, most of whose tensors had the same values."""
        self.reference = reference
        self.made = made
        self.ancestors = find_ancestors(made)
        """The tensors that went into each tensor, directly or through others."""
        self._known: dict[tuple[torch.Size, bytes], _Values] = earlier._known if earlier else {}
        """By shape and elements. Loops and repeated runs make the same tensors again."""
        values = self._values = [self._values_of(tensor.values) for tensor in made]
        self.matches = [one.matches for one in values]
        """The reference tensors with the same values."""
        self.is_trivial = list[bool]()
        """True for tensors that say nothing about the code: a whole number, a constant, 0 to n."""
        self.is_mask = list[bool]()
        for number in range(len(made)):
            self.is_trivial.append(self._is_trivial(number))
            self.is_mask.append(self._is_mask(number))
        self.is_prescaled = [one.is_prescaled for one in values]
        self.confirmed = self._confirmed()
        """The tensors from which a matched tensor was computed: they are right, whether matched or not."""
        self.is_rightly_used = self._rightly_used()
        """True for tensors that are used, each time with a right result."""
        self._call_of = _calls(made)
        self._iterations: dict[tuple[int | str, ...], list[int]] = {}
        for number, call in enumerate(self._call_of):
            self._iterations.setdefault(call, []).append(number)
        self._plausible = dict[int, bool]()

    def iterations(self, number: int) -> list[int]:
        """Return the tensors made at the same place of the code: one for each iteration of a loop."""
        return self._iterations[self._call_of[number]]

    def wholes_of(self, numbers: Sequence[int]) -> list[tuple[RightTensor, list[Block]]]:
        """Return the reference tensors of which all these tensors are blocks, with the blocks' positions."""
        wholes: list[tuple[RightTensor, list[Block]]] = []
        parts = [self.made[number].values.squeeze() for number in numbers]
        for whole in self.reference.whole_tensors:
            blocks = list[Block]()
            for part in parts:
                block = _find_block(whole.values, part)
                if block is None:
                    break
                blocks.append(block)
            else:
                wholes.append((whole, blocks))
        return wholes

    def unpacked(self, number: int) -> list[int]:
        """Return the tensors into which a loop unpacked a reference tensor, if this is the first; else an empty list.

        `for q, k in zip(queries, keys)` unpacks two in the same place. Only the parts of one are returned.
        """
        parts = self._unpacked_at(number)
        for count in self.reference.row_counts if len(parts) > 1 else ():
            rows = parts[:count]
            if len(rows) == count > 1 and self.reference.matches(torch.stack([self.made[n].values for n in rows])):
                return rows
        return []

    def is_reshaped(self, number: int) -> bool:
        """Return whether a tensor has elements of its input, copied, moved or selected."""
        return self.made[number].operator in RESHAPING

    def is_from_factory(self, number: int) -> bool:
        """Return whether an operator made the tensor from a shape only."""
        return _is_from_factory(self.made[number])

    def is_unknown(self, number: int) -> bool:
        """Return whether nothing shows that the tensor is right."""
        is_known = self.matches[number] or self.is_trivial[number] or self.is_prescaled[number]
        return not is_known and number not in self.confirmed

    def is_suspect(self, number: int) -> bool:
        """Return whether the tensor may be wrong. Prescaled and overflown tensors may, too."""
        if self.matches[number] or self.is_trivial[number] or self.is_mask[number]:
            return False
        is_finite = bool(self.made[number].values.abs().le(_FINITE).all())
        return number not in self.confirmed or not is_finite

    def is_unusual_constant(self, number: int) -> bool:
        """Return whether a trivial tensor counts like no right one, or is a constant in the shape of none."""
        made = self.made[number]
        if not self.is_trivial[number] or not made.values.numel():
            return False
        if made.operator == "arange" or bool((made.values != made.values.flatten()[0]).any()):
            return not self.reference.matches(made.values)
        return made.values.numel() > 1 and not self.reference.has_shape(made.values.shape)

    def is_plausible(self, number: int) -> bool:
        """Return whether the tensor resembles a right one: it is prescaled, or a block or permutation of one."""
        if number not in self._plausible:
            values = self.made[number].values
            self._plausible[number] = self.is_prescaled[number] or self._is_permuted(values) or self._is_block(values)
        return self._plausible[number]

    def is_reference_mask(self, number: int) -> bool:
        """Return whether the tensor is a right mask or the inverse of one, the same for all sequences and heads."""
        values = self.made[number].values
        if not self.is_mask[number]:
            return False
        mask = values.reshape(-1, *values.shape[-2:])[0]
        hidden = (mask != 0).double()
        return bool((values == mask).all()) and any(map(self.reference.matches, (mask, hidden, 1 - hidden)))

    def is_only_slice(self, number: int) -> bool:
        """Return whether the tensor matches slices of reference tensors only."""
        return bool(self.matches[number]) and all(match.is_slice for match in self.matches[number])

    def _confirmed(self) -> set[int]:
        confirmed = set[int]()
        for number in reversed(range(len(self.made))):
            is_right = self.matches[number] and not self.is_trivial[number] and not self.is_mask[number]
            # A right part says nothing about the other parts of a tensor.
            if (is_right or number in confirmed) and self.made[number].operator not in _SELECTING:
                confirmed.update(self.made[number].inputs)
        return confirmed

    def _rightly_used(self) -> list[bool]:
        users = [list[int]() for _ in self.made]
        for number, tensor in enumerate(self.made):
            for source in tensor.inputs:
                users[source].append(number)
        is_right = [False] * len(self.made)
        for number in reversed(range(len(self.made))):
            is_right[number] = bool(users[number]) and all(
                is_right[user] if self.is_reshaped(user) else bool(self.matches[user]) or user in self.confirmed
                for user in users[number]
            )
        return is_right

    def _unpacked_at(self, number: int) -> list[int]:
        """Return this tensor and those after it that the same call took from the same tensor."""
        first, parts = self.made[number], list[int]()
        if first.operator not in ("unbind", "select"):
            return parts
        for other_number in range(number, len(self.made)):
            other = self.made[other_number]
            if not _is_same_call(other, first) or other.values.shape != first.values.shape:
                break
            parts.append(other_number)
        return parts

    def _values_of(self, values: torch.Tensor) -> _Values:
        key = values.shape, values.numpy().tobytes()
        if key not in self._known:
            self._known[key] = _inspect(values, self.reference)
        return self._known[key]

    def _is_trivial(self, number: int) -> bool:
        made, values = self.made[number], self._values[number]
        if made.values.numel() > 1 and not values.is_constant:
            return values.says_nothing
        if made.values.numel() == 1 and not values.says_nothing:
            return False
        is_made_of_nothing = not made.values.numel() or (values.is_constant and _is_from_factory(made))
        return is_made_of_nothing or all(self.is_trivial[source] for source in made.inputs)

    def _is_mask(self, number: int) -> bool:
        made, values = self.made[number], self._values[number]
        if not values.is_mask:
            return False
        if not values.is_huge or _is_from_factory(made):
            return True
        # Computed elements that overflow may look like a mask.
        return bool(made.inputs) and all(self.is_trivial[source] or self.is_mask[source] for source in made.inputs)

    def _is_permuted(self, values: torch.Tensor) -> bool:
        elements = values.flatten().sort().values
        return any(
            whole.values.numel() == values.numel()
            and values.numel() > 1
            and has_same_values(elements, whole.values.flatten().sort().values)
            and any(has_same_values(permuted, values) for permuted in permutations_to(whole.values, values.shape))
            for whole in self.reference.whole_tensors
        )

    def _is_block(self, values: torch.Tensor) -> bool:
        wholes = self.reference.whole_tensors
        return any(_find_block(whole.values, values.squeeze()) is not None for whole in wholes)


def permutations_to(values: torch.Tensor, shape: torch.Size) -> Iterator[torch.Tensor]:
    """Yield each tensor of this shape that comes from permuting dimensions and merging adjacent ones."""
    squeezed = values.squeeze()
    if squeezed.dim() > _MAX_DIMS or values.numel() != shape.numel():
        return
    for order in permutations(range(squeezed.dim())):
        permuted = squeezed.permute(order)
        if _can_merge(permuted.shape, squeezed_shape(shape)):
            yield permuted.reshape(shape)


def _can_merge(sizes: Sequence[int], into: Sequence[int]) -> bool:
    left = list(sizes)
    for size in into:
        product = 1
        while product < size and left:
            product *= left.pop(0)
        if product != size:
            return False
    return not left


def _find_block(values: torch.Tensor, part: torch.Tensor) -> Block | None:
    """Return the position of a part in a tensor, the part's dimensions in the tensor's order; None if not found."""
    if not part.numel() or part.dim() > min(values.dim(), _MAX_DIMS):
        return None
    first = part.flatten()[0]
    starts = torch.nonzero((values - first).abs() <= TOLERANCE * (1 + first.abs()))
    for start in starts.tolist() if len(starts) <= _MAX_STARTS else ():
        for dims in combinations(range(values.dim()), part.dim()):
            sizes = dict(zip(dims, part.shape, strict=True))
            block = tuple(slice(at, at + sizes.get(dim, 1)) for dim, at in enumerate(start))
            cut = values[block]
            if cut.numel() == part.numel() and has_same_values(cut, part):
                return block
    return None


def _inspect(values: torch.Tensor, reference: Reference) -> _Values:
    count = values.numel()
    if not count:
        return _Values([], reference.is_prescaled(values), True, False, False, False)
    flat = values.flatten()
    first = flat[0]
    differs = flat != first
    is_constant = count > 1 and not bool(differs.any())
    matches = [] if is_constant or _matches_by_chance(flat, differs) else reference.matches(values)
    if count == 1:
        says_nothing = bool(first == first.round())
    else:
        says_nothing = not is_constant and max(values.shape) == count and _counts(values)
    return _Values(
        matches,
        not matches and reference.is_prescaled(values),
        says_nothing,
        is_constant,
        not is_constant and is_mask(values),
        bool((flat > _FINITE).any()),
    )


def _matches_by_chance(flat: torch.Tensor, differs: torch.Tensor) -> bool:
    """Return whether a tensor is overflown or nearly constant, so that a match would prove nothing.

    flat: its elements. differs: True for those that are not equal to the first.
    """
    if bool((flat.isnan() | flat.isposinf()).any()):
        return True
    return flat.numel() > 1 and bool((~differs | ((flat - flat[0]).abs() <= _CONSTANT)).all())


def _is_from_factory(made: TracedTensor) -> bool:
    return any(part in made.operator for part in _FACTORIES)


def _counts(values: torch.Tensor) -> bool:
    return bool((values.flatten() == torch.arange(values.numel(), dtype=values.dtype)).all())


def _is_same_call(*tensors: TracedTensor) -> bool:
    return len({(tensor.line, tensor.place, tensor.operator, tensor.inputs) for tensor in tensors}) == 1


def _calls(made: Sequence[TracedTensor]) -> list[tuple[int | str, ...]]:
    """Return a key of each tensor's call, equal in all iterations of a loop, and its position in the result."""
    calls: list[tuple[int | str, ...]] = []
    for number, tensor in enumerate(made):
        is_same = number > 0 and bool(tensor.inputs) and _is_same_call(tensor, made[number - 1])
        calls.append((tensor.line, tensor.place, tensor.operator, int(calls[-1][-1]) + 1 if is_same else 0))
    return calls
