"""What dropout did to attention weights, told by its structure: never by which entries a seed happened to draw."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch

from autograder.compare import Mismatch, assert_real, complaints, describe, of_dropout
from autograder.core.faults import Raised
from autograder.student.proxy import InstanceProxy, StudentProxy

S = TypeVar("S")
_CLOSE = 1e-4
_SIGMAS = 6
_CALLS = 5
"""How often lone weights are dropped: that chance drops as many each time is less likely than one in 100,000."""
DIMENSIONS = ("sequence", "head", "query", "key")
LONE = 400
"""How many weights that stand alone in their rows are looked at: that none of them falls by chance is impossible."""


@dataclass(frozen=True)
class Dropped:
    """What became of the entries of a matrix of weights, all of which were above zero."""

    outcomes: frozenset[str]
    """Of `dropped` (0), `kept` (as it was), `rescaled` (divided by 1-p), `changed` (anything else), `not finite`."""
    share: str
    """How many were dropped: `none`, `all`, a share that has a name in `_share`, or `another share`."""
    changes: frozenset[str] = frozenset()
    """What happened to the changed ones, as far as one rule explains all of them; it tells mistakes apart."""


@dataclass(frozen=True)
class Structure:
    """What became of causal attention weights that a result shows twice, in all its sequences, and heads."""

    entries: Dropped
    """Of the weights on the diagonal and below."""
    copies_agree: bool
    """Whether both copies of the weights are the same; where not, it is not weights alone that are dropped."""
    repeats: frozenset[str]
    """The dimensions along which the same is dropped everywhere."""
    pairs: frozenset[str] = frozenset()
    """The dimensions along which what is dropped in one place depends on another."""
    ahead: bool = False
    """Whether there is weight above the diagonal."""


def dropped(result: Any, weights: torch.Tensor, p: float) -> Dropped:
    """What dropout with probability p made of these weights; raises Mismatch where it is no such matrix at all."""
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


def noted(student: StudentProxy, look: Callable[[], S]) -> S:
    """What is seen in calls whose results are chance; the fingerprint keeps this, and never their numbers."""
    with student.by_chance() as note:
        note(seen := look())
    return seen


def complain(
    student: StudentProxy,
    without: Callable[[], InstanceProxy],
    x: torch.Tensor,
    right: Callable[[Any], None],
    complaint: Callable[[], None],
) -> None:
    """Raises the complaint of dropout, unless the result is wrong without dropout already: then it says that.

    without: builds the same with p = 0. right: raises Mismatch unless its argument is what that gives in evaluation.
    """
    try:
        complaint()
    except Mismatch as found:
        with student.by_chance() as note:
            wrong = _is_wrong(right, lambda: without().eval()(x))
            note(wrong)
        if wrong and str(found) != of_dropout.NOT_FINITE:  # which blames no dropout, and says more
            raise Mismatch(of_dropout.WRONG_ALREADY) from None
        raise


def _is_wrong(right: Callable[[Any], None], result: Callable[[], Any]) -> bool:
    try:
        right(result())
    except Mismatch:
        return True
    except Raised:
        return False  # nothing is known of it then
    return False


def assert_finite(seen: Dropped) -> None:
    """There is no NaN: it would be taken for a weight that is changed, and zeros beside it for dropped ones."""
    if "not finite" in seen.outcomes:
        raise Mismatch(of_dropout.NOT_FINITE)


def assert_dropped(seen: Dropped) -> None:
    """Each weight is dropped with probability p, and what is kept is divided by 1-p."""
    assert_finite(seen)
    if seen.share == "none":
        raise Mismatch(of_dropout.NONE_DROPPED)
    if seen.share == "all":
        raise Mismatch(of_dropout.ALL_DROPPED)
    if seen.share == "1-p":
        raise Mismatch(of_dropout.TURNED_ROUND)
    if seen.share != "p":
        raise Mismatch(of_dropout.ANOTHER_SHARE)
    if seen.outcomes == {"dropped", "kept"}:
        raise Mismatch(of_dropout.NOT_RESCALED)
    if seen.outcomes & {"kept", "changed"}:
        raise Mismatch(of_dropout.CHANGED)


def assert_not_dropped(seen: Dropped) -> None:
    """The weights are as they were."""
    assert_finite(seen)
    if seen.outcomes != {"kept"}:
        raise Mismatch("The weights are changed; outside of training dropout does nothing.")


def assert_lone_weights_fall(
    student: StudentProxy, call: Callable[[], Any], shape: tuple[int, ...], num_heads: int = 1
) -> None:
    """Of LONE tokens that see nothing but themselves, some lose their weight and some keep it, and not always as many.

    So no place is spared, and no number of places counted out: of a single weight that would be none, or all.
    call: gives what became of them, a token to each index of the first dimension, its heads side by side in the last;
    a head's first number is 0 where its weight fell.
    """
    with student.by_chance() as note:
        fallen = []
        for _ in range(_CALLS):
            result = call()
            if not isinstance(result, torch.Tensor) or result.shape != shape:
                raise Mismatch(complaints.of_another_shape(describe(result), shape))
            fell = result.detach().reshape(len(result), num_heads, -1)[..., 0] == 0
            fallen.append(int(fell.sum()))
        fall = 0 < fallen[0] < LONE * num_heads
        counted = len({*fallen}) == 1
        note((fall, counted))
    if fall and counted:
        raise Mismatch(of_dropout.always_as_many(_CALLS))
    if not fall:
        raise Mismatch(
            f"Of {LONE} tokens that see nothing but themselves, none loses its weight, or all do. Is a place spared, "
            "or a number of places counted out? Each weight is dropped with probability p, whatever the others are."
        )


def repeats(gone: torch.Tensor, visible: torch.Tensor, dimensions: tuple[str, ...]) -> frozenset[str]:
    """Along which of these dimensions, the last ones, the same entries are gone everywhere, looking at visible ones."""
    return frozenset(
        name
        for dim, name in zip(range(-len(dimensions), 0), dimensions, strict=True)
        if bool(((gone == gone.roll(1, dim)) | ~(visible & visible.roll(1, dim))).all())
    )


def pairs(gone: torch.Tensor, visible: torch.Tensor, dimensions: tuple[str, ...]) -> frozenset[str]:
    """Along which of these dimensions, the last ones, two places fall together more often, or less, than by chance.

    Looked at are neighbours, the two halves, and each place with the one that it is when the dimension is reversed.
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


def assert_each_on_its_own(
    repeated: frozenset[str], kept: frozenset[str] = frozenset(), paired: frozenset[str] = frozenset()
) -> None:
    """No dimension has the same entries dropped all along it or two by two, and none of these rules is kept."""
    for name in DIMENSIONS:
        if name in repeated:
            raise Mismatch(f"Every {name} has the same places dropped; each weight is dropped on its own.")
    if kept:
        raise Mismatch(f"{min(kept)}; each weight is dropped on its own.")
    for name in DIMENSIONS:
        if name in paired:
            raise Mismatch(f"One {name} tells what is dropped at another; each weight is dropped on its own.")


def of_few_draws(seen: Dropped, repeated: frozenset[str]) -> Dropped:
    """Where one draw decides over many entries, the share that is dropped is chance and says nothing against p."""
    return replace(seen, share="p") if repeated and seen.share not in ("none", "all") else seen


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
    factor = float((result / weights).nanmedian())  # 1 / (1 - q) where a q of one's own is given to the library
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
