"""The hidden tests of the ninth unit's functions for a model that writes: a cache in pages, and drafted tokens."""

import torch

from autograder.core.comparison import golden
from autograder.graders import contracts
from autograder.graders.statements import assert_right_where_large

SPARE = 2
"""Entries of a table that are not needed."""
OTHERS = 6
"""Pages that belong to other texts."""


def shuffled_pages(rng, needed, pages):
    """The first entries of a table: drawn pages, of which a sorted table would have another one last."""
    order = torch.argsort(rng.rand(pages), stable=True)
    if needed == 1:
        return order[order != 0][:1]
    chosen = order[:needed]
    return chosen.flip(0) if chosen[-1] == chosen.max() else chosen


@contracts.exercise("paged_attention")
class TestPagedAttention(contracts.Graders):
    def draw(self, rng, h=3, hd=5, page=4, length=10, scale=1.0, spare=SPARE, unread=None):
        """unread: what slots of no token hold, instead of drawn numbers."""
        needed = -(-length // page)
        pages = needed + OTHERS
        query = rng.randn(h, hd, scale=scale)
        key_pages, value_pages = rng.randn(pages, page, h, hd, scale=scale), rng.randn(pages, page, h, hd)
        table = torch.full((needed + spare,), -1)
        table[:needed] = shuffled_pages(rng, needed, pages)
        if unread is not None:
            is_read = torch.zeros(pages, page, dtype=torch.bool)
            tokens = torch.arange(length)
            is_read[table[tokens // page], tokens % page] = True
            key_pages[~is_read], value_pages[~is_read] = unread, unread
        return query, key_pages, value_pages, table, length

    test_three_tokens = contracts.gives(
        "Three tokens in two pages of two slots, with the scores 0, 1, 2 and the values 1, 2, 4, give 3.2405.",
        (
            torch.tensor([[1.0]]),
            torch.tensor([[2.0, 7.0], [8.0, 9.0], [0.0, 1.0]]).view(3, 2, 1, 1),
            torch.tensor([[4.0, 70.0], [80.0, 90.0], [1.0, 2.0]]).view(3, 2, 1, 1),
            torch.tensor([2, 0, -1]),
            3,
        ),
        golden([[3.2405]]),
    )
    test_two_heads = contracts.agree_in_turn(
        "Five tokens of two heads in pages of two slots: each head attends on its own.",
        [(2, 3, 2, 5)],
        weight=1,
        public=True,
    )
    test_other_sizes = contracts.agree_in_turn(
        "Each token is read from its page and slot, for any numbers of heads, pages, slots and tokens.",
        [(4, 4, 4, 4), (3, 5, 4, 10), (2, 6, 1, 5), (1, 3, 16, 21), (5, 3, 4, 8), (3, 15, 7, 3), (2, 3, 5, 1)],
        scale=1.5,
        weight=4,
        essential=True,
    )
    test_full_table = contracts.agree_in_turn(
        "The table may have no entry more than needed, and the last page may be full.",
        [(2, 3, 4, 8), (3, 5, 2, 5), (2, 6, 3, 3)],
        spare=0,
        weight=1,
    )

    @contracts.points(1)
    def test_shared_pages(self, student, reference, rng):
        """Two texts can share a page, and a page can be in a table twice."""
        query, key_pages, value_pages, table, _ = self.draw(rng, 2, 5, 3, 9)
        first, second, third = table[:3]
        for pages, length in (((first, second, third), 8), ((first, second), 5), ((third, first, third), 9)):
            self.assert_agree(student, reference, query, key_pages, value_pages, torch.stack(pages), length)

    test_nan_elsewhere = contracts.agree_in_turn(
        "Slots of no token hold NaN, and the result has none.",
        [(3, 5, 4, 10), (2, 3, 4, 8), (2, 5, 5, 2)],
        unread=torch.nan,
        weight=2,
    )

    @contracts.points(1)
    def test_large_scores(self, student, reference, rng):
        """Scores in the thousands, of either sign, give no NaN."""
        query, key_pages, *others = self.draw(rng, 3, 5, 2, 5, scale=100.0)
        far_below_zero = query.abs() + 50.0, -key_pages.abs() - 50.0
        for large in ((query, key_pages), far_below_zero):
            assert_right_where_large(
                student, student.paged_attention, reference.paged_attention, *large, *others, check=self.assert_right
            )

    test_gradients = contracts.gradients("Gradients flow back to the query and to the pages of keys and values.")
    test_gradients_with_nan_elsewhere = contracts.gradients(
        "Slots of no token hold NaN, and no gradient has one.", of=(2, 5, 3, 7), unread=torch.nan
    )
    test_float64_stays_exact = contracts.float64(
        "The result for float64 inputs is as exact as float64.", of=(2, contracts.EXACT_ROOT, 2, 3)
    )
    test_inputs_are_unchanged = contracts.unchanged("The function modifies neither the pages nor the table.")
    test_follows_device = contracts.device("The result is on the device of the query.")
    test_dtype_is_kept = contracts.dtype("The result has the dtype of the query.")


def distributions(rng, rows, words):
    """Rows of probabilities in thousandths, so that they are equal on all CPUs. Small ones may be 0."""
    drawn = rng.rand(rows, words)
    shares = drawn.double() ** 3
    shares = (shares / shares.sum(dim=-1, keepdim=True)).round(decimals=3)
    largest = shares.argmax(dim=-1, keepdim=True)
    others = shares.scatter(-1, largest, 0.0).sum(dim=-1, keepdim=True)
    return shares.scatter(-1, largest, 1.0 - others).round(decimals=3).to(drawn.dtype)


def ratios_of(draft, target):
    """Target by draft for each token, NaN if it cannot be drafted."""
    return torch.where(draft > 0, target[: len(draft)] / draft, torch.nan)


def unlike_distributions(rng, n, words):
    """Draft and target, in each row of which the target gives some token clearly more, and some clearly less."""
    while True:
        draft, target = distributions(rng, n, words), distributions(rng, n + 1, words)
        ratios = ratios_of(draft, target)
        if bool(((ratios > 1.2).any(dim=-1) & ((ratios > 0.1) & (ratios < 0.8)).any(dim=-1)).all()):
            return draft, target


@contracts.exercise("accept_draft")
class TestAcceptDraft(contracts.Graders):
    def draw(self, rng, n=4, words=6, accepted=2):
        """accepted: the number of tokens before the first refusal. After it every other token would be accepted."""
        draft, target = unlike_distributions(rng, n, words)
        ratios = ratios_of(draft.double(), target.double())
        is_below = (ratios > 0.1) & (ratios < 0.8)
        below = torch.where(is_below, (ratios - 0.5).abs(), torch.inf).argmin(dim=-1)
        above = ratios.nan_to_num(0.0).argmax(dim=-1)
        tokens, uniforms = below.clone(), torch.zeros(n, dtype=torch.float64)
        chances = 0.1 + 0.7 * (rng.of(torch.float64).rand(n) - 0.1)
        for i, (chance, ratio) in enumerate(zip(chances, ratios[torch.arange(n), below], strict=True)):
            if i >= accepted and (i - accepted) % 2 == 0:
                uniforms[i] = ratio + (1.0 - ratio) * chance
            elif i % 4 < 2:
                uniforms[i] = ratio * chance
            else:
                tokens[i], uniforms[i] = above[i], chance
        return draft, target, tokens, uniforms.round(decimals=3).to(draft.dtype)

    test_refused_token = contracts.gives(
        "With the draft 0.5 0.3 0.2, the target 0.2 0.5 0.3 and u = 0.9, token 0 is refused; then 0 0.6667 0.3333.",
        (
            torch.tensor([[0.5, 0.3, 0.2]]),
            torch.tensor([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]]),
            torch.tensor([0]),
            torch.tensor([0.9]),
        ),
        (0, golden([0.0, 0.6667, 0.3333])),
    )
    test_accepted_token = contracts.gives(
        "With u = 0.3 the same token is accepted: 1, and the target's last row.",
        (
            torch.tensor([[0.5, 0.3, 0.2]]),
            torch.tensor([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]]),
            torch.tensor([0]),
            torch.tensor([0.3]),
        ),
        (1, golden([0.6, 0.3, 0.1])),
        weight=1,
    )
    test_four_tokens = contracts.agree_in_turn(
        "Of four drafted tokens the third is refused: two are accepted, and the fourth does not count.",
        [(4, 5, 2)],
        weight=1,
        public=True,
    )
    test_other_sizes = contracts.agree_in_turn(
        "The first refusal decides, wherever it is, if there is one, for any number of tokens and any vocabulary.",
        [(4, 6, 2), (3, 5, 3), (5, 5, 0), (6, 9, 5), (1, 3, 0), (1, 4, 1), (2, 3, 1), (6, 25, 3), (7, 6, 7)],
        weight=4,
        essential=True,
    )

    @contracts.points(2)
    def test_drawn_tokens(self, student, reference, rng):
        """The result is right for randomly drawn tokens."""
        for _ in range(8):
            draft, target = unlike_distributions(rng, 3, 5)
            tokens = ((draft > 0) * rng.rand(3, 5)).argmax(dim=-1)
            ratios = ratios_of(draft, target)[torch.arange(3), tokens]
            uniforms = (rng.rand(3) - 0.1).clamp(0.02, 0.98)
            uniforms = torch.where((uniforms - ratios).abs() < 0.02, uniforms / 2, uniforms)
            self.assert_agree(student, reference, draft, target, tokens, uniforms)

    @contracts.points(1)
    def test_equal_distributions(self, student, reference, rng):
        """If draft and target are equal, every token is accepted."""
        target = distributions(rng, 4, 6)
        tokens = target[:3].argmax(dim=-1)
        for uniforms in ([0.999, 0.5, 0.001], [0.9, 0.99, 0.995]):
            self.assert_agree(student, reference, target[:3], target, tokens, torch.tensor(uniforms))

    @contracts.points(1)
    def test_probabilities_of_zero(self, student, reference, rng):
        """A token of target probability 0 is refused, and a token that the draft never gives can follow."""
        draft, target, tokens, uniforms = self.draw(rng, 2, 5, 1)
        draft[1], target[1] = draft.new_tensor([0.5, 0.5, 0, 0, 0]), draft.new_tensor([0, 0.25, 0, 0.25, 0.5])
        for token, uniform in ((0, 0.001), (1, 0.4), (1, 0.6)):
            tokens, uniforms = tokens.clone(), uniforms.clone()
            tokens[1], uniforms[1] = token, uniform
            self.assert_agree(student, reference, draft, target, tokens, uniforms)

    test_float64_stays_exact = contracts.float64("For float64 inputs the probabilities are as exact as float64.")
    test_inputs_are_unchanged = contracts.unchanged(
        "The function modifies none of its arguments, with a refusal or without.", each=({}, {"accepted": 4})
    )
    test_follows_device = contracts.device(
        "The probabilities are on the device of the inputs, with a refusal or without.", each=({}, {"accepted": 4})
    )
    test_dtype_is_kept = contracts.dtype(
        "The probabilities have the dtype of the target's, with a refusal or without.", each=({}, {"accepted": 4})
    )
