"""Judge words drawn from logits by their frequencies, because right answers draw other words from the same seed."""

from typing import Any

import torch

from . import complaints
from .comparison import Mismatch, describe

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
