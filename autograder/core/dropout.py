"""Judge dropout on attention weights by its structure, because the dropped entries themselves are random."""

from dataclasses import dataclass, replace
from typing import Any

import torch

from .comparison import Mismatch, assert_real, describe

NOT_FINITE = "Some weights are NaN or infinite. Does the code hide a whole row, or divide by 0?"
NONE_DROPPED = "No weight is dropped: none is 0."
ALL_DROPPED = "Every weight is dropped."
TURNED_ROUND = "A share 1-p of the weights is dropped and p is kept; drop p and keep 1-p."
ANOTHER_SHARE = "The share of dropped weights is not p."
NOT_RESCALED = "The kept weights are not changed; divide them by 1-p, so that the expected sum stays the same."
CHANGED = "Not all of the kept weights are divided by 1-p."
NOT_THE_WEIGHTS = "Elements of the values or of the result are dropped; drop attention weights instead."
WRONG_ALREADY = "The result is already wrong in evaluation, when nothing is dropped; correct that first."
DETACHED = "No gradient arrives at the weights: does the code detach a tensor on the way to the result?"

DIMENSIONS = ("sequence", "head", "query", "key")
_CLOSE = 1e-4
_SIGMAS = 6


@dataclass(frozen=True)
class Dropped:
    """Changes that dropout made to the entries of a matrix of weights, all of which were above zero."""

    outcomes: frozenset[str]
    """Names: `dropped` (0), `kept` (as it was), `rescaled` (by 1-p), `changed` (otherwise), `not finite`."""
    share: str
    """Share of dropped entries: `none`, `all`, a share that has a name in `_share`, or `another share`."""
    changes: frozenset[str] = frozenset()
    """Rules that explain all changed entries, by which misconceptions can be distinguished."""


@dataclass(frozen=True)
class Structure:
    """Changes that dropout made to all sequences' and heads' attention weights, of which the result has two copies."""

    entries: Dropped
    """Changes of the visible weights."""
    copies_agree: bool
    """True if both copies of the weights are equal. Otherwise something other than weights is dropped."""
    repeats: frozenset[str]
    """Dimensions along which the same entries are dropped at every index."""
    pairs: frozenset[str] = frozenset()
    """Dimensions along which one entry is dropped depending on another."""
    rules: frozenset[str] = frozenset()
    """Other rules that the dropped entries follow."""
    ahead: bool = False
    """True if there is weight above the diagonal."""


def always_as_many(calls: int) -> str:
    """Return the message that the number of dropped weights is not random."""
    return (
        f"In {calls} calls the same number of weights is dropped each time. Drop each weight with probability p, "
        "independently of the others; their number then varies."
    )


def dropped(result: Any, weights: torch.Tensor, p: float) -> Dropped:
    """Return the changes that dropout with probability p made to weights; raises Mismatch for another type or shape."""
    if not isinstance(result, torch.Tensor):
        raise Mismatch(f"The result is {describe(result)}; {describe(weights)} is expected.")
    if result.shape != weights.shape:
        raise Mismatch(f"The result has shape {tuple(result.shape)}; {tuple(weights.shape)} is expected.")
    assert_real(result)
    result, weights = result.detach().double(), weights.double()
    gone = result == 0
    rescaled = torch.isclose(result, weights / (1 - p), rtol=_CLOSE, atol=0)
    kept = torch.isclose(result, weights, rtol=_CLOSE, atol=0)
    changed = ~(gone | rescaled | kept)
    seen = {
        "not finite": ~result.isfinite(),
        "dropped": gone,
        "kept": kept & ~rescaled,
        "rescaled": rescaled,
        "changed": changed,
    }
    outcomes = frozenset(name for name, places in seen.items() if bool(places.any()))
    return Dropped(outcomes, _share(gone, p), _changes(result[changed], weights[changed], p))


def repeats(gone: torch.Tensor, visible: torch.Tensor, dimensions: tuple[str, ...]) -> frozenset[str]:
    """Return those of the last dimensions along which the same visible entries are dropped at every index."""

    def is_repeated(dim: int) -> bool:
        both = visible & visible.roll(1, dim)
        return gone.shape[dim] > 1 and bool(both.any()) and bool((gone == gone.roll(1, dim))[both].all())

    return frozenset(name for dim, name in zip(range(-len(dimensions), 0), dimensions, strict=True) if is_repeated(dim))


def pairs(gone: torch.Tensor, visible: torch.Tensor, dimensions: tuple[str, ...]) -> frozenset[str]:
    """Return those of the last dimensions along which one entry is dropped depending on another.

    The compared entries are neighbours, the two halves, and each entry with its mirror image.
    """
    share = float(gone[visible].double().mean())

    def depend(one: tuple[torch.Tensor, torch.Tensor], other: tuple[torch.Tensor, torch.Tensor]) -> bool:
        seen = one[1] & other[1]
        by_chance = share**2 * int(seen.sum())
        return bool(
            abs(int((one[0] & other[0] & seen).sum()) - by_chance) > _SIGMAS * (by_chance * (1 - share**2)) ** 0.5
        )

    found = set()
    for dim, name in zip(range(-len(dimensions), 0), dimensions, strict=True):
        half = gone.shape[dim] // 2
        ways = [(range(0, 2 * half, 2), range(1, 2 * half, 2)), (range(half), range(half, 2 * half))]
        ways.append((range(half), range(gone.shape[dim] - 1, gone.shape[dim] - 1 - half, -1)))
        for way in ways:
            places = [torch.tensor(list(indices), dtype=torch.long) for indices in way]
            if depend(*((gone.index_select(dim, at), visible.index_select(dim, at)) for at in places)):
                found.add(name)
    return frozenset(found)


def rules(gone: torch.Tensor, repeated: frozenset[str]) -> frozenset[str]:
    """Return the rules that the dropped entries (b, Tq, Tk) follow, if dropout repeats along no dimension."""
    counts, square = gone.sum(-1), gone.shape[-1] == gone.shape[-2]
    kept = {
        "The diagonal is never dropped": not bool(gone.diagonal(dim1=-2, dim2=-1).any()),
        "Every row loses the same number of weights": bool((counts == counts.flatten()[0]).all()),
        "What is dropped is the same on both sides of the diagonal": square and torch.equal(gone, gone.mT),
    }
    return frozenset(rule for rule, holds in kept.items() if holds and not repeated)


def of_few_draws(seen: Dropped, repeated: frozenset[str]) -> Dropped:
    """Return `seen` with the share `p` if one draw decides over many entries: the share is random then."""
    return replace(seen, share="p") if repeated and seen.share not in ("none", "all") else seen


def assert_finite(seen: Dropped) -> None:
    """Raise Mismatch for a NaN: it would count as a changed weight, and zeros next to it as dropped ones."""
    if "not finite" in seen.outcomes:
        raise Mismatch(NOT_FINITE)


def assert_dropped(seen: Dropped) -> None:
    """Raise Mismatch unless each weight is dropped with probability p, and kept ones are divided by 1-p."""
    assert_finite(seen)
    if seen.share == "none":
        raise Mismatch(NONE_DROPPED)
    if seen.share == "all":
        raise Mismatch(ALL_DROPPED)
    if seen.share == "1-p":
        raise Mismatch(TURNED_ROUND)
    if seen.share != "p":
        raise Mismatch(ANOTHER_SHARE)
    if seen.outcomes == {"dropped", "kept"}:
        raise Mismatch(NOT_RESCALED)
    if seen.outcomes & {"kept", "changed"}:
        raise Mismatch(CHANGED)


def assert_not_dropped(seen: Dropped) -> None:
    """Raise Mismatch unless the weights are unchanged."""
    assert_finite(seen)
    if seen.outcomes != {"kept"}:
        raise Mismatch("The weights are changed outside of training; there, dropout must do nothing.")


def assert_each_on_its_own(
    repeated: frozenset[str], kept: frozenset[str] = frozenset(), paired: frozenset[str] = frozenset()
) -> None:
    """Raise Mismatch if the same entries, or pairs of them, are dropped along a dimension, or by a rule."""
    for name in DIMENSIONS:
        if name in repeated:
            raise Mismatch(f"Every {name} drops the same positions; drop each weight independently.")
    if kept:
        raise Mismatch(f"{min(kept)}; drop each weight independently.")
    for name in DIMENSIONS:
        if name in paired:
            raise Mismatch(
                f"The positions dropped in one {name} determine those in another; drop each weight independently."
            )


def assert_weights_dropped(seen: Structure) -> None:
    """Raise Mismatch unless dropout is applied once, to each weight after the softmax, and rescales the kept ones."""
    if seen.ahead:
        raise Mismatch("Later tokens get weight: the module attends to the future.")
    assert_finite(seen.entries)
    if not seen.copies_agree:
        raise Mismatch(NOT_THE_WEIGHTS)
    assert_dropped(seen.entries)
    assert_each_on_its_own(seen.repeats, seen.rules, seen.pairs)


def _changes(result: torch.Tensor, weights: torch.Tensor, p: float) -> frozenset[str]:
    if not len(result):
        return frozenset()
    if not bool(result.isfinite().any()):
        return frozenset({"infinite" if bool(result.isinf().all()) else "not finite"})
    rules = {
        "times 1-p": weights * (1 - p),
        "divided by p": weights / p,
        "divided by 1-p twice": weights / (1 - p) ** 2,
        "divided by the root of 1-p": weights / (1 - p) ** 0.5,
    }
    named = {name for name, made in rules.items() if torch.allclose(result, made, rtol=_CLOSE, atol=0)}
    factor = float((result / weights).nanmedian())  # 1 / (1 - q) if another q is passed to the library
    if torch.allclose(result, factor * weights, rtol=_CLOSE, atol=0):
        named.add(f"times {factor:.3g}")
    return frozenset(named)


def _share(gone: torch.Tensor, p: float) -> str:
    share, entries = float(gone.double().mean()), gone.numel()
    if share in (0.0, 1.0):
        return "all" if share else "none"
    names = {"p": p, "1-p": 1 - p, "a half": 0.5, "a tenth": 0.1, "p twice": 1 - (1 - p) ** 2}
    for name, wanted in names.items():
        if abs(share - wanted) <= _SIGMAS * (wanted * (1 - wanted) / entries) ** 0.5:
            return name
    return "another share"
