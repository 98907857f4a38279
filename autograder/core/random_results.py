"""Judge random results by their statistics, because two right answers draw different numbers from the same seed.

The results are attention weights with dropout, which are judged by the structure of the dropped entries, and words
drawn from logits, which are judged by their frequencies.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch

from . import complaints
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
DRAWS = 4000
FEW_DRAWS = 300
"""Number of draws for tests that compare no frequencies: each likely word occurs."""
_SIGMAS = 6
"""Accepted deviation in standard deviations; one in 500 million frequencies of a right answer is further off."""
LEVELS = torch.tensor([2.0, 1.2, 0.5, -0.1, -0.8, -2.0])
"""The logits of a row, in any order: even the rarest word is drawn about thirty times."""
RIGHT = "as wanted"
ALWAYS_THE_SAME = "All calls draw the same words: does the code set a seed, or always take the largest logit?"
LEAST_DRAWN = 15
"""Words with a smaller expected count may be missing by chance."""


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


def as_words(found: Any, b: int) -> torch.Tensor:
    """Return a result as drawn words, one for each of b rows. Raises Mismatch if it is something else."""
    if not isinstance(found, torch.Tensor) or found.shape != (b,):
        raise Mismatch(complaints.of_another_shape(describe(found), (b,)))
    if found.is_complex() or not bool(found.double().isfinite().all()):
        raise Mismatch("The result is not a word: it is complex, infinite or NaN.")
    return found.detach().double()


def in_short(words: torch.Tensor, logits: torch.Tensor, temperature: float) -> str:
    """Return a description of the words, one for each row, that contains nothing random: `the largest`."""
    if bool((words == logits.argmax(dim=-1)).all()):
        return "the largest"
    if bool((words == logits.argmin(dim=-1)).all()):
        return "the smallest"
    if bool((words != words.round()).any()):
        return "no words"
    if temperature == 0 and bool((words == words[0]).all()):
        return "one for all rows"
    return "others"


def laws(words: torch.Tensor, logits: torch.Tensor, temperature: float, top_k: int) -> frozenset[str]:
    """Return the rules that explain how often each word was drawn from one row of logits."""
    counts = _counts(words, logits)  # (V,)
    if int(counts.sum()) != len(words):
        return frozenset({"no word of the vocabulary"})
    if int(counts.max()) == len(words):
        return frozenset({"one word alone"})  # which one may be chance: one draw for all rows
    made = _rules(logits.double(), temperature, top_k)
    return frozenset(name for name, shares in made.items() if _explains(shares, counts))


def law(words: torch.Tensor, logits: torch.Tensor, temperature: float, top_k: int) -> frozenset[str]:
    """Return the names of the rule by which the words were drawn: the same for all answers that draw by it.

    It is the right rule if the counts allow it, and otherwise the one that explains them best. A rule has several names
    if rules give the same shares here.
    """
    found, made = laws(words, logits, temperature, top_k), _rules(logits.double(), temperature, top_k)
    if len(found) < 2:
        return found
    counts = _counts(words, logits)
    best = max(found, key=lambda name: (name == RIGHT, float(torch.xlogy(counts, made[name].double()).sum())))
    return frozenset(name for name in found if torch.allclose(made[name].double(), made[best].double()))


def _counts(words: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    places = torch.arange(len(logits), dtype=torch.float64)
    return (words[:, None] == places).sum(dim=0).double()


def _rules(logits: torch.Tensor, temperature: float, top_k: int) -> dict[str, torch.Tensor]:
    words = len(logits)
    order = logits.argsort(descending=True)
    ranks = order.argsort()
    kept = ranks < top_k

    def shares(scores: torch.Tensor, where: torch.Tensor = kept) -> torch.Tensor:
        return torch.softmax(scores.masked_fill(~where, -torch.inf), dim=-1)

    scaled = logits / temperature
    of_all = torch.softmax(scaled, dim=-1)

    def rest_to(word: int | torch.Tensor) -> torch.Tensor:
        """Shares among all words if one word gets the shares of all excluded ones."""
        return (of_all * kept).index_add(0, torch.as_tensor(word).view(1), (of_all * ~kept).sum().view(1))

    return {
        RIGHT: shares(scaled),
        "temperature left out": shares(logits),
        "temperature multiplied": shares(logits * temperature),
        "temperature squared": shares(logits / temperature**2),
        "root of the temperature": shares(logits / temperature**0.5),
        "all words": shares(scaled, ranks >= 0),
        "all words, temperature left out": shares(logits, ranks >= 0),
        "one word more": shares(scaled, ranks <= top_k),
        "one word fewer": shares(scaled, ranks < top_k - 1),
        "the smallest": shares(scaled, ranks >= words - top_k),
        "the first of the vocabulary": shares(scaled, torch.arange(words) < top_k),
        "without the largest": shares(scaled, kept & (ranks > 0)),
        "evenly": shares(torch.zeros(words)),
        "hidden ones as 0": torch.softmax(scaled * kept, dim=-1),
        "softmax twice": shares(torch.softmax(scaled, dim=-1)),
        "softmax of the kept twice": torch.softmax(shares(scaled), dim=-1),
        "ranks": shares(scaled)[order],
        "the opposite sign": shares(-scaled),
        "the rest to the last word": rest_to(words - 1),
        "the rest to the first word": rest_to(0),
        "the rest to the largest": rest_to(order[0]),
        "the rest to the smallest kept": rest_to(order[min(top_k, words) - 1]),
    }


def _explains(shares: torch.Tensor, counts: torch.Tensor) -> bool:
    draws = counts.sum()
    room = _SIGMAS * (draws * shares * (1 - shares)) ** 0.5 + 1
    return bool(((counts - draws * shares).abs() <= torch.where(shares > 0, room, 0.0)).all())


def assert_support(words: torch.Tensor, logits: torch.Tensor, temperature: float, top_k: int) -> None:
    """Raise Mismatch unless all of the top_k words with the largest logits are drawn, and no others."""
    shares = _rules(logits.double(), temperature, top_k)[RIGHT]
    for word, share in enumerate(shares.tolist()):
        drawn = bool((words == word).any())
        if drawn and not share:
            raise Mismatch(f"Word {word} is drawn, but its logit is not among the {top_k} largest.")
        if not drawn and share * len(words) > LEAST_DRAWN:
            raise Mismatch(
                f"Word {word} has one of the {top_k} largest logits, but is never drawn in {len(words)} draws."
            )
    if not bool(torch.isin(words, torch.arange(len(logits))).all()):
        raise Mismatch(f"A drawn number is not a word: words are 0 to {len(logits) - 1}.")


def fault_where_tied(words: torch.Tensor, logits: torch.Tensor, temperature: float, top_k: int) -> str:
    """Return what is wrong with words drawn from a row whose logits tie at the k-th place; empty if nothing is.

    A right answer draws from k words or from all that tie. Which of these were drawn is chance and is not reported.
    """
    counts = _counts(words, logits)
    least = logits.topk(top_k).values[-1]
    if int(counts.sum()) != len(words):
        return f"A drawn number is not a word: words are 0 to {len(logits) - 1}."
    if bool(counts[logits < least].any()):
        return f"In a row with tied logits, a word is drawn whose logit is smaller than the {top_k} largest."
    if int((counts > 0).sum()) < top_k or not bool(counts[logits > least].all()):
        return f"In a row with tied logits, fewer than {top_k} words are ever drawn in {len(words)} draws."
    return ""


def assert_shares(words: torch.Tensor, logits: torch.Tensor, temperature: float, top_k: int) -> None:
    """Raise Mismatch unless each word was drawn as often as softmax says, as far as chance allows."""
    if RIGHT not in laws(words, logits, temperature, top_k):
        raise Mismatch(
            f"In {DRAWS} draws, the words are not drawn as often as softmax(logits / temperature) over the "
            "top_k largest "
            "says; the difference is too large for chance."
        )


def assert_ties(words: torch.Tensor, logits: torch.Tensor, temperature: float, top_k: int) -> None:
    """Raise Mismatch if something is wrong with words drawn from logits that tie: see `fault_where_tied`."""
    if fault := fault_where_tied(words, logits, temperature, top_k):
        raise Mismatch(fault)
