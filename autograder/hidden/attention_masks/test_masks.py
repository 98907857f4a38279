"""The hidden graders of masks and of attention that keeps to them."""

import torch

from autograder.core.comparison import assert_close, golden
from autograder.graders import contracts
from autograder.graders.statements import assert_gives_dtype, assert_right_where_large, assert_same_gradients, in_each

SEEING = ({}, {"blind": ((0, 1),)}, {"blind": (0, 1)})
"""Each query sees a key; one sees none; none sees any."""


def whole(rng, least, most):
    """A drawn whole number."""
    return least + int((rng.rand(1).item() - 0.1) * (most + 1 - least) * 0.999)


@contracts.exercise("padding_mask")
class TestPaddingMask(contracts.Graders):
    def draw(self, rng, lengths=(5, 1, 3), max_len=5):
        return torch.tensor(lengths), max_len

    test_three_sentences = contracts.gives(
        "For sentences of 4, 1 and 3 tokens, the mask hides exactly the positions after each sentence's last token.",
        (torch.tensor([4, 1, 3]), 4),
        golden([[0, 0, 0, 0], [0, 1, 1, 1], [0, 0, 0, 1]]),
    )

    @contracts.points(2, public=True)
    def test_more_places_than_tokens(self, student):
        """The mask is always max_len wide, even if every sentence is shorter."""
        right = golden([[0, 0, 1, 1, 1], [0, 0, 0, 1, 1]])
        assert_close(student.padding_mask(torch.tensor([2, 3]), 5), right)

    @contracts.points(3)
    def test_any_lengths(self, student, reference, rng):
        """The mask has shape (b, max_len) for any number of sentences and any lengths, even for a single token."""
        sizes = [(4, 6, 0), (2, 3, 2), (1, 5, 1), (5, 5, 0), (3, 1, 0), (1, 1, 3)]
        drawn = [(torch.tensor([whole(rng, 1, most) for _ in range(b)]), most + more) for b, most, more in sizes]
        in_each(drawn, lambda case: self.assert_agree(student, reference, *case))

    @contracts.points(1, public=True)
    def test_empty_sentence(self, student):
        """In a sentence without tokens, every position is padding."""
        assert_close(student.padding_mask(torch.tensor([0, 3]), 3), golden([[1, 1, 1], [0, 0, 0]]))

    @contracts.points(1, property=True, public=True)
    def test_bool(self, student, reference):
        """The mask is a bool tensor."""
        lengths = torch.tensor([2, 4])
        assert_gives_dtype(student.padding_mask, reference.padding_mask, torch.bool, lengths, 4)

    test_lengths_are_unchanged = contracts.unchanged(
        "The lengths are not modified, even if a sentence is empty.",
        each=({}, {"lengths": (2, 0, 3), "max_len": 4}),
    )
    test_follows_device = contracts.device("The mask is made on the device of the lengths.")


@contracts.exercise("masked_attention")
class TestMaskedAttention(contracts.Graders):
    def draw(self, rng, leading=(2,), tq=4, tk=7, d_k=5, d_v=6, mask=None, scale=1.0, blind=()):
        """mask: the shape of the mask, (..., Tq, Tk) if not said; each query sees a key, but those that are `blind`."""
        queries, keys = rng.randn(*leading, tq, d_k, scale=scale), rng.randn(*leading, tk, d_k, scale=scale)
        values, hidden = rng.randn(*leading, tk, d_v), self.hidden(rng, *(mask or (*leading, tq, tk)))
        for query in blind:
            hidden[query] = True
        return queries, keys, values, hidden

    def hidden(self, rng, *shape):
        drawn = rng.rand(*shape)
        return (drawn > 0.6) & (drawn > drawn.amin(dim=-1, keepdim=True))

    @contracts.points(2, public=True)
    def test_two_keys_of_three(self, student):
        """A query that sees two of three keys takes nothing from the third, and its two weights sum to 1."""
        queries = torch.tensor([[1.0, 2.0, 0.0], [0.0, -1.0, 1.0]])
        keys = torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, -1.0], [2.0, 1.0, 0.0]])
        values = torch.tensor([[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]])
        mask = torch.tensor([[False, False, True], [False, True, True]])
        assert_close(student.masked_attention(queries, keys, values, mask), golden([[0.3595, 0.6405], [1.0, 0.0]]))

    test_any_mask = contracts.agree_in_turn(
        "Each query attends only to the keys that its row of the mask shows; scores are divided by the root of the "
        "keys' width.",
        [((2,),), ((), 4, 4, 4, 4), ((3,), 5, 2, 6, 1), ((2, 2), 3, 6, 15, 3)],
        scale=2.0,
        weight=4,
    )

    @contracts.points(2, public=True, essential=True)
    def test_masks_that_broadcast(self, student, reference, rng):
        """A mask may be smaller than the scores: one for all queries, for all heads, or for all sentences."""
        cases = [((3,), (3, 1, 7)), ((2,), (4, 7)), ((2, 3), (2, 1, 1, 7)), ((2, 3), (2, 1, 4, 7)), ((2,), (7,))]
        drawn = [self.draw(rng, leading, mask=shape) for leading, shape in cases]
        in_each(drawn, lambda args: self.assert_agree(student, reference, *args))

    @contracts.points(2, public=True, essential=True)
    def test_a_query_that_sees_nothing(self, student, reference, rng):
        """A query that sees no key gets zeros; the other queries get what they should."""
        queries, keys, values, mask = self.draw(rng)
        mask[0, 1] = True
        self.assert_agree(student, reference, queries, keys, values, mask)

    @contracts.points(2)
    def test_nothing_to_see(self, student, reference, rng):
        """Several queries, or all queries of a sentence, may see no key: each of them gets zeros."""
        empty = torch.tensor([[[True]], [[False]]])
        cases = [(torch.ones(2, 4, 7) > 0), (torch.arange(4)[:, None] != torch.arange(7)) & empty.logical_not()]
        cases += [torch.arange(4)[:, None].expand(4, 7) < 2, empty.expand(2, 1, 7), empty.expand(2, 4, 1)]
        drawn = [(*self.draw(rng)[:3], mask) for mask in cases]
        in_each(drawn, lambda args: self.assert_agree(student, reference, *args))

    test_gradients = contracts.gradients("Gradients flow back to queries, keys and values.", scale=2.0)

    @contracts.points(2, essential=True)
    def test_gradients_where_nothing_is_seen(self, student, reference, rng):
        """If a query sees no key, no gradient is NaN: its own gradient is 0, and all others are right."""
        queries, keys, values, mask = self.draw(rng)
        mask[0, 1] = True
        mask[1, 2:] = True
        own, right = self.pair(student, reference)
        assert_same_gradients(own, right, queries, keys, values, mask, cotangent=rng.randn(2, 4, 6))

    @contracts.points(1)
    def test_large_scores(self, student, reference, rng):
        """Scores in the thousands give no NaN, and hidden keys get no weight, even if all visible scores are much
        smaller."""
        queries, keys, values = 300 * rng.rand(2, 4, 5) + 200, 300 * rng.rand(2, 7, 5) + 200, rng.randn(2, 7, 6)
        mask = self.hidden(rng, 2, 4, 7)
        mask[:, :, 1], mask[:, :, 2] = True, False
        lowered = -keys
        lowered[:, 1] *= -1  # what is hidden outweighs the rest
        own, right = self.pair(student, reference)
        cases = [(queries, one, values, mask) for one in (lowered, keys)]
        in_each(cases, lambda args: assert_right_where_large(student, own, right, *args))

    @contracts.points(0.5)
    def test_scores_of_zero(self, student, reference, rng):
        """A query of zeros has score 0 with every key, so all keys that it sees get equal weight."""
        queries, keys, values, mask = self.draw(rng)
        queries[:, 1] = 0.0
        self.assert_agree(student, reference, queries, keys, values, mask)

    test_float64_stays_exact = contracts.float64(
        "For float64 inputs the result has float64 precision.", d_k=contracts.EXACT_ROOT
    )
    test_inputs_are_unchanged = contracts.unchanged(
        "Queries, keys, values and the mask are not modified, even if a query sees no key.", each=SEEING
    )
    test_follows_device = contracts.device(
        "The result is computed on the inputs' device, even if a query sees no key.", each=SEEING
    )
    test_dtype_is_kept = contracts.dtype(
        "The result has the dtype of the inputs, even if a query sees no key.", each=SEEING
    )


@contracts.exercise("to_sdpa_mask")
class TestToSdpaMask(contracts.Graders):
    def draw(self, rng, *shape):
        return (rng.rand(*(shape or (3, 4, 5))) > 0.5,)

    test_two_sentences = contracts.gives(
        "Hidden keys become False, which means that they take no part; all others become True.",
        (torch.tensor([[False, False, True], [False, True, True]]),),
        golden([[1, 1, 0], [1, 0, 0]]),
    )
    test_any_shape = contracts.agree_in_turn(
        "The mask keeps its shape, and each of its elements is inverted.",
        [(4, 4), (2, 1, 5), (2, 3, 4, 5), (1,), (7,)],
    )

    @contracts.points(1, public=True)
    def test_all_alike(self, student):
        """A mask that hides nothing becomes all True; a mask that hides everything becomes all False."""
        for hidden in (False, True):
            mask = torch.full((2, 3), hidden)
            assert_close(student.to_sdpa_mask(mask), golden(torch.full((2, 3), not hidden)))

    @contracts.points(1, property=True)
    def test_bool(self, student, reference, rng):
        """The result is a bool tensor."""
        assert_gives_dtype(student.to_sdpa_mask, reference.to_sdpa_mask, torch.bool, *self.draw(rng))

    test_mask_is_unchanged = contracts.unchanged("The given mask is not modified.", weight=0.5)
    test_follows_device = contracts.device("The result is on the mask's device.")


@contracts.exercise("sliding_window_mask")
class TestSlidingWindowMask(contracts.Graders):
    test_five_tokens = contracts.gives(
        "With a window of 3, each of five tokens sees itself and the two before it.",
        (5, 3),
        golden([[0, 1, 1, 1, 1], [0, 0, 1, 1, 1], [0, 0, 0, 1, 1], [1, 0, 0, 0, 1], [1, 1, 0, 0, 0]]),
    )

    @contracts.points(3)
    def test_other_sizes(self, student, reference, rng):
        """The mask has shape (T, T) for any number of tokens and any window."""
        drawn = [(whole(rng, 5, 6), 2), (whole(rng, 8, 11), whole(rng, 4, 6)), (whole(rng, 25, 40), whole(rng, 7, 9))]
        in_each([*drawn, (4, 3), (9, 3)], lambda size: self.assert_agree(student, reference, *size))

    @contracts.points(1)
    def test_window_of_one(self, student, reference, rng):
        """With a window of 1, a token sees only itself."""
        in_each([whole(rng, 3, 6), 1], lambda tokens: self.assert_agree(student, reference, tokens, 1))

    @contracts.points(1)
    def test_window_over_all(self, student, reference, rng):
        """A window as long as the text, or longer, hides only later tokens."""
        tokens = whole(rng, 3, 6)
        sizes = [(tokens, tokens), (tokens, tokens + 2), (tokens, 50), (1, 3)]
        in_each(sizes, lambda size: self.assert_agree(student, reference, *size))

    @contracts.points(1, property=True)
    def test_bool(self, student, reference):
        """The mask is a bool tensor."""
        assert_gives_dtype(student.sliding_window_mask, reference.sliding_window_mask, torch.bool, 5, 2)
