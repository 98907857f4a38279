"""What is right but used where another is needed: queries in the place of keys, or two in each other's places."""

from collections.abc import Iterator

import torch

from .reference import Reference, Right, same
from .standing import SHAPING, Standing, rearranged


def instead_of(reference: Reference, standing: Standing, number: int) -> Iterator[tuple[Right, torch.Tensor]]:
    """What could be meant in the place of a tensor that is known, of which nothing right was made."""
    if standing.well_used[number]:
        return
    made = standing.made[number]
    for right in _unrelated(reference, standing.known[number]):
        yield from ((right, values) for values in rearranged(right.values, made.values.shape))
        # Another argument may have other sizes.
        if made.operator in SHAPING and right.operator == "given" and right.values.dim() == made.values.dim():
            yield right, right.values


def pieces_of(reference: Reference, standing: Standing, group: list[int]) -> Iterator[tuple[Right, list[torch.Tensor]]]:
    """Where a loop goes through something known: the same pieces of what could be meant in its place."""
    if any(not standing.known[one] for one in group) and not standing.is_shaping(group[0]):
        return
    if all(standing.well_used[one] for one in group):
        return
    for which, places in standing.taken_from(group):
        of = reference.rights[which].values
        for right in _unrelated(reference, [which]):
            if right.values.shape == of.shape:
                shapes = [standing.made[one].values.shape for one in group]
                yield right, [right.values[at].reshape(to) for at, to in zip(places, shapes, strict=True)]
            elif right.operator == "given" and right.values.shape[:1] == of.shape[:1] == (len(group),):
                yield right, list(right.values)


def swapped(
    reference: Reference, standing: Standing, group: list[int]
) -> Iterator[tuple[Right, dict[int, torch.Tensor]]]:
    """Known ones, of which nothing right was made, in the places of others of the same line, and these in theirs."""
    if any(not standing.known[one] or standing.well_used[one] for one in group):
        return
    made, first = standing.made, group[0]
    for later in range(group[-1] + 1, len(made)):
        others = standing.apart(later) or [later]
        if made[later].line != made[first].line:
            return
        if len(others) != len(group) or any(not standing.known[n] or standing.well_used[n] for n in others):
            continue
        if first in standing.before[later] or made[later].values.shape != made[first].values.shape:
            continue
        pairs = list(zip(group, others, strict=True))
        if not all(same(made[one].values, made[other].values) for one, other in pairs):
            new = {one: made[other].values for one, other in pairs} | {other: made[one].values for one, other in pairs}
            yield reference.rights[standing.known[later][0]], new


def _unrelated(reference: Reference, known: list[int]) -> list[Right]:
    """What neither comes of what is known nor is what it comes of."""
    numbers = [n for one in known if (n := reference.rights[one].number) is not None]
    is_given = any(_is_given(reference, reference.rights[one]) for one in known)
    found = list[Right]()
    for right in reference.rights:
        if right.is_part or right.is_mask:
            continue
        if is_given and _is_given(reference, right):
            found.append(right)
        elif right.number is not None and numbers:
            before = reference.before[right.number]
            if all(n != right.number and n not in before and right.number not in reference.before[n] for n in numbers):
                found.append(right)
    return found


def _is_given(reference: Reference, right: Right) -> bool:
    """Whether it is an argument or a parameter, or one in another shape."""
    if right.operator == "given":
        return True
    if right.number is not None:
        return right.operator in SHAPING and not reference.before[right.number]
    given = (one.values for one in reference.rights if one.operator == "given" and not one.is_part)
    return any(one.shape == right.values.shape and same(one, right.values) for one in given)
