"""How each tensor of a run stands to what is right: known, of no meaning, a mask, like something right, or unknown."""

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations

import torch

from ..core.run_trace import TracedTensor
from .reference import TOLERANCE, Reference, all_before, is_mask, same

_FINITE = 1e6
_MAKE_NEW = ("_like", "zeros", "ones", "full", "arange", "eye", "scalar_tensor", "fill_", "zero_")
"""How the operators are called that take only a shape of what they are given."""
SHAPING = {
    "view", "_unsafe_view", "reshape", "transpose", "permute", "t", "expand", "unsqueeze", "squeeze", "clone", "slice",
    "select", "split", "unbind", "_to_copy", "as_strided", "_reshape_alias", "split_with_sizes", "movedim", "chunk",
}  # fmt: skip
_CUTTING = {"slice", "select", "split", "split_with_sizes", "unbind", "chunk", "max", "min"}
_ALIKE = 1e-6
_MOST_DIMS, _MOST_PLACES = 4, 3

Place = tuple[slice, ...]
"""Where in a tensor a block of it stands."""


class Standing:
    """What is known of the tensors of one run, by their numbers in it."""

    def __init__(self, reference: Reference, made: Sequence[TracedTensor]) -> None:
        self._reference = reference
        self.made = made
        self.before = all_before(made)
        self.known = [[] if _tells_nothing(one.values) else reference.known(one.values) for one in made]
        """Which of the right ones each is."""
        self.neutral = list[bool]()
        self.mask = list[bool]()
        for one in made:
            self.neutral.append(self._is_neutral(one))
            self.mask.append(self._is_mask(one))
        self.scaled = [
            not known and reference.is_scaled(one.values) for known, one in zip(self.known, made, strict=True)
        ]
        self.comes_right = self._vouched()
        """What something right was made of: it is right, whether known or not."""
        self.well_used = self._well_used()
        """Whether all that was made of it is right."""
        self._call_of = _calls(made)
        self._calls: dict[tuple[int | str, ...], list[int]] = {}
        for number, call in enumerate(self._call_of):
            self._calls.setdefault(call, []).append(number)
        self._plausible = dict[int, bool]()

    def turns(self, number: int) -> list[int]:
        """The tensors that the same call made, in a loop or in a function that is called more than once."""
        return self._calls[self._call_of[number]]

    def taken_from(self, numbers: Sequence[int]) -> list[tuple[int, list[Place]]]:
        """Which of the right ones all of these were taken out of, and from which places."""
        found: list[tuple[int, list[Place]]] = []
        blocks = [self.made[number].values.squeeze() for number in numbers]
        for which, right in enumerate(self._reference.rights):
            if right.is_part or right.is_mask:
                continue
            places = list[Place]()
            for block in blocks:
                place = _place_of(right.values, block)
                if place is None:
                    break
                places.append(place)
            else:
                found.append((which, places))
        return found

    def apart(self, number: int) -> list[int]:
        """Those that one call took apart from here on, as where a loop goes through the rows of an argument.

        Where several are taken apart in turn by the same call, as by zip, only one's.
        """
        alike = self._taken_apart(number)
        for length in self._reference.lengths if len(alike) > 1 else ():
            whole = alike[:length]
            if len(whole) == length > 1 and self._reference.known(torch.stack([self.made[n].values for n in whole])):
                return whole
        return []

    def is_shaping(self, number: int) -> bool:
        """Whether it has the numbers of what it was made of, in other places."""
        return self.made[number].operator in SHAPING

    def is_new(self, number: int) -> bool:
        """Whether it takes but a shape of what it was made of."""
        return _makes_new(self.made[number])

    def is_unknown(self, number: int) -> bool:
        """Whether nothing speaks for it."""
        fine = self.known[number] or self.neutral[number] or self.scaled[number]
        return not fine and number not in self.comes_right

    def may_be_wrong(self, number: int) -> bool:
        """Whether it is not known for right: what is only like something right, or overflows, may be what is wrong."""
        if self.known[number] or self.neutral[number] or self.mask[number]:
            return False
        is_finite = bool(self.made[number].values.abs().le(_FINITE).all())
        return number not in self.comes_right or not is_finite

    def is_odd(self, number: int) -> bool:
        """Whether it counts as nothing that is right counts, or is one number in a shape that nothing right has."""
        made = self.made[number]
        if not self.neutral[number] or not made.values.numel():
            return False
        if made.operator == "arange" or bool((made.values != made.values.flatten()[0]).any()):
            return not self._reference.known(made.values)
        return made.values.numel() > 1 and not self._reference.has_shape(made.values.shape)

    def is_plausible(self, number: int) -> bool:
        """Whether it is like something right: scaled early, cut out of it, or with its dimensions in another order."""
        if number not in self._plausible:
            values = self.made[number].values
            self._plausible[number] = self.scaled[number] or self._is_rearranged(values) or self._is_cut(values)
        return self._plausible[number]

    def is_known_mask(self, number: int) -> bool:
        """Whether it is a mask that is right, or is so the other way round, for all that it is made for alike."""
        values = self.made[number].values
        if not self.mask[number]:
            return False
        one = values.reshape(-1, *values.shape[-2:])[0]
        hidden = (one != 0).double()
        is_alike = bool((values == one).all())
        return is_alike and any(self._reference.known(way) for way in (one, hidden, 1 - hidden))

    def is_only_a_part(self, number: int) -> bool:
        """Whether it is a slice of what is right, and nothing that is right as a whole."""
        known = self.known[number]
        return bool(known) and all(self._reference.rights[one].is_part for one in known)

    def _vouched(self) -> set[int]:
        found = set[int]()
        for number in reversed(range(len(self.made))):
            is_right = self.known[number] and not self.neutral[number] and not self.mask[number]
            # A piece that is right says nothing of the other pieces.
            if (is_right or number in found) and self.made[number].operator not in _CUTTING:
                found.update(self.made[number].inputs)
        return found

    def _well_used(self) -> list[bool]:
        users = [list[int]() for _ in self.made]
        for number, one in enumerate(self.made):
            for other in one.inputs:
                users[other].append(number)
        found = [False] * len(self.made)
        for number in reversed(range(len(self.made))):
            found[number] = bool(users[number]) and all(
                found[one] if self.is_shaping(one) else bool(self.known[one]) or one in self.comes_right
                for one in users[number]
            )
        return found

    def _taken_apart(self, number: int) -> list[int]:
        """Those that the same call gave from here on."""
        first = self.made[number]
        found = list[int]()
        if first.operator not in ("unbind", "select"):
            return found
        for one in range(number, len(self.made)):
            other = self.made[one]
            if (other.line, other.place, other.operator, other.inputs) != (
                first.line, first.place, first.operator, first.inputs
            ) or other.values.shape != first.values.shape:  # fmt: skip
                break
            found.append(one)
        return found

    def _is_neutral(self, made: TracedTensor) -> bool:
        """Whether it tells nothing: a number alone, or the same one everywhere that was made of nothing that tells."""
        values = made.values
        if not values.numel():
            return True
        if values.numel() == 1:
            return bool(values == values.round()) and all(self.neutral[one] for one in made.inputs)
        if bool((values != values.flatten()[0]).any()):
            return max(values.shape) == values.numel() and _counts(values)
        return _makes_new(made) or all(self.neutral[one] for one in made.inputs)

    def _is_mask(self, made: TracedTensor) -> bool:
        """Whether it is a mask, and none that only looks like one because numbers made of the arguments overflow."""
        if not is_mask(made.values):
            return False
        if not bool((made.values > _FINITE).any()) or _makes_new(made):
            return True
        return bool(made.inputs) and all(self.neutral[one] or self.mask[one] for one in made.inputs)

    def _is_rearranged(self, values: torch.Tensor) -> bool:
        numbers = values.flatten().sort().values
        return any(
            right.values.numel() == values.numel()
            and values.numel() > 1
            and not right.is_part
            and not right.is_mask
            and same(numbers, right.values.flatten().sort().values)
            and any(same(one, values) for one in rearranged(right.values, values.shape))
            for right in self._reference.rights
        )

    def _is_cut(self, values: torch.Tensor) -> bool:
        rights = (right.values for right in self._reference.rights if not right.is_part and not right.is_mask)
        return any(_place_of(one, values.squeeze()) is not None for one in rights)


def rearranged(values: torch.Tensor, shape: torch.Size) -> Iterator[torch.Tensor]:
    """The tensor with its dimensions in other orders, neighbours merged where the shape asks for that."""
    squeezed = values.squeeze()
    if squeezed.dim() > _MOST_DIMS or values.numel() != shape.numel():
        return
    for order in permutations(range(squeezed.dim())):
        turned = squeezed.permute(order)
        if _merges(tuple(turned.shape), tuple(size for size in shape if size != 1)):
            yield turned.reshape(shape)


def _merges(sizes: tuple[int, ...], into: tuple[int, ...]) -> bool:
    left = list(sizes)
    for size in into:
        product = 1
        while product < size and left:
            product *= left.pop(0)
        if product != size:
            return False
    return not left


def _place_of(values: torch.Tensor, block: torch.Tensor) -> Place | None:
    """Where the block stands in the tensor, each of its dimensions along one of the tensor's, in their order."""
    if not block.numel() or block.dim() > min(values.dim(), _MOST_DIMS):
        return None
    first = block.flatten()[0]
    starts = torch.nonzero((values - first).abs() <= TOLERANCE * (1 + first.abs()))
    for start in starts.tolist() if len(starts) <= _MOST_PLACES else ():
        for dims in combinations(range(values.dim()), block.dim()):
            sizes = dict(zip(dims, block.shape, strict=True))
            place = tuple(slice(at, at + sizes.get(dim, 1)) for dim, at in enumerate(start))
            cut = values[place]
            if cut.numel() == block.numel() and same(cut, block):
                return place
    return None


def _tells_nothing(values: torch.Tensor) -> bool:
    """Whether it is alike to others by chance: the same number everywhere, or overflown."""
    if bool(values.isposinf().any()) or bool(values.isnan().any()):
        return True
    first = values.flatten()[:1]
    return values.numel() > 1 and bool(((values == first) | ((values - first).abs() <= _ALIKE)).all())


def _makes_new(made: TracedTensor) -> bool:
    return any(part in made.operator for part in _MAKE_NEW)


def _counts(values: torch.Tensor) -> bool:
    return bool((values.flatten() == torch.arange(values.numel(), dtype=values.dtype)).all())


def _calls(made: Sequence[TracedTensor]) -> list[tuple[int | str, ...]]:
    """For each tensor, the call that made it, the same in each turn of a loop, and its number among what that gave."""
    calls: list[tuple[int | str, ...]] = []
    for number, one in enumerate(made):
        before = made[number - 1] if number else None
        same_call = before is not None and (one.line, one.place, one.operator, one.inputs) == (
            before.line, before.place, before.operator, before.inputs
        )  # fmt: skip
        place = int(calls[-1][-1]) + 1 if same_call and one.inputs else 0
        calls.append((one.line, one.place, one.operator, place))
    return calls
