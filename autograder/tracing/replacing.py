"""What could be right in the place of what a run made: for one tensor, or for all that a loop made."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice, permutations

import torch

from ..core.run_trace import TracedTensor
from . import another
from .reference import LARGE, Reference, Right, same, without_ones
from .standing import Standing, rearranged

MOST_ATTEMPTS, MOST_OF_A_SHAPE = 24, 6
"""In one place."""
MOST_TURNS, MOST_STEPS = 4, 6
"""Of a loop whose turns each make another step."""


@dataclass(frozen=True)
class Replacement:
    """One attempt."""

    number: int
    """Of the tensor that is tried."""
    right: Right
    values: torch.Tensor
    """What is put in its place."""
    replaced: dict[int, torch.Tensor]
    """All that is put in some place."""
    is_swap: bool = False
    """Whether two that are right change places."""


def replacements(reference: Reference, standing: Standing, number: int) -> Iterator[Replacement]:
    """What could be right in the place of this tensor, likely ones first; of one made in a loop, in that of all."""
    turns = standing.turns(number)
    found: Iterator[Replacement] = iter(())
    group = standing.apart(number) or (turns if len(turns) > 1 and number == turns[0] else [])
    if group:
        pieces = another.pieces_of(reference, standing, group)
        if any(map(standing.is_unknown, group)):
            pieces = chain(_in_their_places(reference, standing, group), pieces)
        found = (Replacement(number, right, some[0], dict(zip(group, some, strict=True))) for right, some in pieces)
    if len(turns) == 1 or standing.is_shaping(number):
        alone = (
            Replacement(number, right, values, {number: values})
            for right, values in _in_its_place(reference, standing, number)
        )
        found = chain(found, alone)
    swapped = (
        Replacement(number, right, new[number], new, is_swap=True)
        for right, new in another.swapped(reference, standing, group or [number])
    )
    return islice(chain(found, swapped), MOST_OF_A_SHAPE if _only_reshapes(standing, number) else MOST_ATTEMPTS)


def _only_reshapes(standing: Standing, number: int) -> bool:
    """Whether it has the numbers of what is unknown too: what could be right there was tried already."""
    return standing.is_shaping(number) and any(map(standing.is_unknown, standing.made[number].inputs))


Pieces = tuple[Right, list[torch.Tensor]]


def _in_their_places(reference: Reference, standing: Standing, turns: list[int]) -> Iterator[Pieces]:
    """What could be right in the places of all that a loop made: something right, cut up."""
    made = [standing.made[one].values for one in turns]
    shape = made[0].shape
    is_even = all(one.shape == shape for one in made)
    if is_even:
        yield from _steps_in_turn(reference, shape, len(turns))
        if len(turns) == len(reference.result) and all(one.shape == shape for one in reference.result):
            yield Right(reference.result[0], ""), reference.result
    wholes = [right for right in reference.rights if not right.is_part and not right.is_mask]
    for right in wholes if is_even else ():
        if right.values.numel() != len(turns) * shape.numel():
            continue
        squeezed = right.values.squeeze()
        for order in permutations(range(squeezed.dim())):
            turned = squeezed.permute(order)
            if turned.shape[turned.dim() - len(without_ones(shape)) :] == without_ones(shape):
                yield right, list(turned.reshape(len(turns), *shape))
    for right in wholes:
        for dim, size in enumerate(right.values.shape):
            if size == len(turns) and (pieces := _cut_to(right.values.split(1, dim), dim, made)):
                yield right, pieces


def _cut_to(slices: Sequence[torch.Tensor], dim: int, made: list[torch.Tensor]) -> list[torch.Tensor]:
    """The beginning of each slice, as large as what was made there; nothing where one is too small."""
    found = list[torch.Tensor]()
    for piece, there in zip(slices, made, strict=True):
        whole = piece if piece.dim() == there.dim() else piece.squeeze(dim)
        sizes = there.shape
        if whole.dim() != len(sizes) or any(size > of for size, of in zip(sizes, whole.shape, strict=True)):
            return []
        found.append(whole[tuple(slice(size) for size in sizes)])
    return found


def _steps_in_turn(reference: Reference, shape: torch.Size, turns: int) -> Iterator[Pieces]:
    """Steps of the solution, one for each turn, as queries, keys and values are often made."""
    steps = [right for right in reference.rights if right.step and right.values.numel() == shape.numel()]
    if not 1 < turns <= MOST_TURNS or len(steps) > MOST_STEPS:
        return
    for some in combinations(sorted(steps, key=lambda one: one.number or 0), turns):
        if len({right.values.shape for right in some}) != 1:
            continue
        for order in permutations(range(some[0].values.dim())):
            turned = [right.values.permute(order) for right in some]
            if without_ones(turned[0].shape) == without_ones(shape):
                yield some[0], [one.reshape(shape) for one in turned]
        if some[0].values.shape != shape:
            yield some[0], [right.values for right in some]


def _in_its_place(reference: Reference, standing: Standing, number: int) -> Iterator[tuple[Right, torch.Tensor]]:
    """What could be right in the place of a tensor, likely ones first."""
    made = standing.made[number]
    if standing.mask[number] or _is_last_constant(standing, number):
        yield from _masks(reference, made)
        return
    if standing.neutral[number]:
        if standing.is_new(number) and made.values.numel() > 1:  # what a sum begins with
            filled = (torch.full_like(made.values, one) for one in (0.0, 1.0))
            yield from ((Right(one, ""), one) for one in filled if not torch.equal(one, made.values))
        return
    if standing.scaled[number]:
        yield from ((Right(one, "mul"), one.reshape(made.values.shape)) for one in _scaled_alike(reference, made))
        return
    if number in standing.comes_right and not standing.known[number]:
        return
    seen = [made.values]
    if standing.known[number]:
        ways = another.instead_of(reference, standing, number)
    else:
        ways = ((right, one) for right in _likely(reference, standing, made) for one in _arrangements(right, made))
    for right, values in ways:
        if not any(one.shape == values.shape and same(one, values) for one in seen):
            seen.append(values)
            yield right, values


def _likely(reference: Reference, standing: Standing, made: TracedTensor) -> list[Right]:
    """The solution's own first, and of them those that are not there and that the same operator makes."""
    present = {right for known in standing.known for right in known}
    wanted = [(n, right) for n, right in enumerate(reference.rights) if not right.is_part and not right.is_mask]
    wanted.sort(key=lambda one: (one[1].number is None, one[0] in present, one[1].operator != made.operator))
    scaled = [Right(one, "mul") for one in reference.scaled if one.numel() == made.values.numel()]
    own = [right for _, right in wanted if right.number is not None]
    return [*own, *scaled, *(right for _, right in wanted if right.number is None)]


def _scaled_alike(reference: Reference, made: TracedTensor) -> list[torch.Tensor]:
    """What is scaled too, and has nothing to do with this one: with a mask in it, it would still have most of it."""
    squeezed = made.values.squeeze()
    alike = [one for one in reference.scaled if one.shape == squeezed.shape]
    return [one for one in alike if not bool(torch.isclose(one, squeezed, rtol=1e-4, atol=1e-6).any())]


def _is_last_constant(standing: Standing, number: int) -> bool:
    """Whether it is the same everywhere, as a mask never is, and no mask was made of it."""
    made = standing.made[number]
    if made.values.dim() < 2 or made.values.numel() < 2 or not standing.neutral[number]:
        return False
    return not any(
        number in standing.before[later] and standing.mask[later] for later in range(number + 1, len(standing.made))
    )


def _masks(reference: Reference, made: TracedTensor) -> Iterator[tuple[Right, torch.Tensor]]:
    seen = [made.values]
    shape = without_ones(made.values.shape)
    there = made.values[made.values != 0].flatten()[:1].tolist() or [1.0]
    # Of one that is added, infinity with the wrong sign is as likely as the wrong places.
    fills = [there[0], -there[0]] if abs(there[0]) > LARGE else there
    for hidden in reference.hidden:
        if tuple(hidden.shape) != shape[max(len(shape) - hidden.dim(), 0) :]:
            continue
        for filled in fills:
            for one in (hidden, ~hidden):
                values = torch.where(one, filled, 0.0).to(made.values.dtype).expand(shape).reshape(made.values.shape)
                if not any(torch.equal(other, values) for other in seen):
                    seen.append(values)
                    yield Right(hidden, ""), values


def _arrangements(right: Right, made: TracedTensor) -> Iterator[torch.Tensor]:
    """What is right, as it would stand in the place of what was made."""
    values, shape = right.values, made.values.shape
    turned = list(rearranged(values, shape))
    yield from turned
    if values.shape != shape and (turned or values.numel() == shape.numel() or right.operator == made.operator):
        yield values
