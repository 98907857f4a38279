"""The hidden graders of the unit's functions; those of `attention_dropout`, which draws, stand apart."""

import torch

from autograder.core.comparison import assert_close, golden
from autograder.graders import contracts
from autograder.graders.statements import assert_gives_dtype, assert_right_where_large

from ..causality import assert_blind_to_the_future, assert_causal_weights
from .worked_examples import SIX_WORDS_WEIGHTS, six_words_scores, six_words_weights


@contracts.exercise("causal_mask")
class TestCausalMask(contracts.Graders):
    test_four_tokens = contracts.gives(
        "For four tokens, the mask hides exactly the six positions above the diagonal.",
        (4,),
        golden([[0, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0]]),
    )

    @contracts.points(2)
    def test_other_sizes(self, student, reference):
        """The mask has shape (T, T) for any number of tokens, one token included."""
        for num_tokens in (6, 2, 1, 70):
            assert_close(student.causal_mask(num_tokens), golden(reference.causal_mask(num_tokens).value))

    @contracts.points(1, property=True)
    def test_bool(self, student, reference):
        """The mask is a bool tensor, which masked_fill and torch.where need."""
        assert_gives_dtype(student.causal_mask, reference.causal_mask, torch.bool, 4)


@contracts.exercise("renormalized_causal_weights")
class TestRenormalizedCausalWeights(contracts.Graders):
    assert_right = staticmethod(assert_causal_weights)

    def draw(self, rng, T=5, normalized=False):
        return (torch.softmax(rng.randn(T, T), dim=-1) if normalized else rng.rand(T, T),)

    test_six_words = contracts.gives(
        "The six words' weights become those of the worked example.",
        (six_words_weights(),),
        golden(SIX_WORDS_WEIGHTS),
    )
    test_other_weights = contracts.agree_in_turn(
        "All weights above the diagonal are 0 and each row sums to 1, for any number of tokens.",
        [(5,), (2,), (1,), (9,)],
        weight=3,
        normalized=True,
    )

    @contracts.points(1)
    def test_little_is_kept(self, student, reference, rng):
        """A row sums to 1 even if nearly all of its weight was on later tokens."""
        self.assert_agree(student, reference, torch.softmax(rng.randn(6, 6) + 3.0 * torch.arange(6), dim=-1))

    test_gradients = contracts.gradients("Gradients flow back to the weights.", normalized=True)
    test_float64_stays_exact = contracts.float64(
        "For float64 weights the result has float64 precision.", normalized=True
    )
    test_inputs_are_unchanged = contracts.unchanged("The given weights are not modified.")
    test_follows_device = contracts.device("The result is computed on the weights' device.")
    test_dtype_is_kept = contracts.dtype("The result has the dtype of the weights.")


@contracts.exercise("masked_scores")
class TestMaskedScores(contracts.Graders):
    def draw(self, rng, *sizes, scale=1.0, above=0.6):
        *leading, T = sizes or (4,)
        return rng.randn(*leading, T, T, scale=scale), rng.rand(T, T) > above

    @contracts.points(2, public=True)
    def test_three_tokens(self, student):
        """With the causal mask of three tokens, three scores become minus infinity and the others stay."""
        scores = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5], [-2.0, 1.0, 0.75]])
        mask = torch.tensor([[False, True, True], [False, False, True], [False, False, False]])
        right = golden([[0.5, -torch.inf, -torch.inf], [1.5, 0.25, -torch.inf], [-2.0, 1.0, 0.75]])
        assert_close(student.masked_scores(scores, mask), right)

    test_any_mask = contracts.agree_in_turn(
        "The given mask is used, regardless of what it hides.", [(5,), (2,), (8,)], scale=3.0, above=0.7
    )
    test_any_leading_dimensions = contracts.agree_in_turn(
        "One mask applies to every sequence of a batch and to every head.",
        [(4, 4), (3, 5), (2, 3, 4), (1, 1, 3), (2, 1, 2, 3)],
        above=0.5,
        public=True,
        essential=True,
    )

    @contracts.points(1)
    def test_scores_of_zero(self, student, reference, rng):
        """A score of 0 that is not hidden stays 0."""
        scores, mask = self.draw(rng, 6)
        self.assert_agree(student, reference, scores.clamp(min=0.0), mask)

    test_gradients = contracts.gradients("Gradients flow back to the scores that are not hidden.", of=(2, 4))

    @contracts.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """Scores in float64 keep float64 precision."""
        scores, mask = self.draw(rng.of(torch.float64), 4)
        self.assert_agree(student, reference, scores / 3, mask)

    test_inputs_are_unchanged = contracts.unchanged("The given scores and the given mask are not modified.", weight=2)
    test_follows_device = contracts.device("The result is computed on the scores' device.")
    test_dtype_is_kept = contracts.dtype("The result has the dtype of the scores.")


@contracts.exercise("causal_softmax")
class TestCausalSoftmax(contracts.Graders):
    assert_right = staticmethod(assert_causal_weights)

    def draw(self, rng, *sizes, scale=1.0, d_k=5):
        *leading, T = sizes or (5,)
        return rng.randn(*leading, T, T, scale=scale), d_k

    test_six_words = contracts.gives(
        "The six words' causal weights are those of the worked example.",
        (six_words_scores(), 2),
        golden(SIX_WORDS_WEIGHTS),
    )

    @contracts.points(2)
    def test_divided_by_the_root_of_d_k(self, student, reference, rng):
        """The scores are divided by the square root of d_k, regardless of the number of tokens."""
        scores = rng.randn(5, 5, scale=3.0)
        for d_k in (3, 6, 64):
            self.assert_agree(student, reference, scores, d_k)

    test_any_leading_dimensions = contracts.agree_in_turn(
        "Each query's weights sum to 1 over the keys that it may see, for any leading dimensions.",
        [(4, 4), (3, 5), (2, 3, 5), (1, 1), (2, 1, 2, 3), (1,)],
        scale=2.0,
        public=True,
        essential=True,
    )

    @contracts.points(1)
    def test_large_scores(self, student, reference, rng):
        """Scores far below zero give no NaN, and later tokens get no weight."""
        later_is_larger = 5e4 * torch.arange(6)
        for scores in (rng.randn(6, 6, scale=5e4) - 3e5, rng.randn(6, 6, scale=5e3) - 3e5 + later_is_larger):
            assert_right_where_large(
                student, student.causal_softmax, reference.causal_softmax, scores, 5, check=self.assert_right
            )

    @contracts.points(1)
    def test_scores_of_zero(self, student, reference, rng):
        """A score of 0 is treated like any other score, and only later tokens are hidden."""
        self.assert_agree(student, reference, rng.randn(6, 6, scale=2.0).clamp(min=0.0), 3)

    test_gradients = contracts.gradients("Gradients flow back to the scores.", of=(2, 5))
    test_float64_stays_exact = contracts.float64(
        "For float64 scores the weights have float64 precision.", d_k=contracts.EXACT_ROOT
    )
    test_inputs_are_unchanged = contracts.unchanged("The scores are not modified.")
    test_follows_device = contracts.device("The mask and the weights are made on the scores' device.")
    test_dtype_is_kept = contracts.dtype("The weights have the dtype of the scores.")


@contracts.exercise("causal_head")
class TestCausalHead(contracts.Graders):
    def draw(self, rng, b=2, num_tokens=5, width=5, scale=1.0):
        return tuple(rng.randn(b, num_tokens, width, scale=scale) for _ in range(3))

    test_two_sequences = contracts.agree_in_turn(
        "For two sequences of three tokens, the first token's result is its own value.",
        [(2, 3, 5)],
        weight=1,
        public=True,
    )

    test_shape_of_the_worked_example = contracts.agree_in_turn(
        "Four sequences of eight tokens with a head of width 16 give a result of shape (4, 8, 16).",
        [(4, 8, 16)],
        weight=1,
    )
    test_other_shapes = contracts.agree_in_turn(
        "The head scales its scores and is causal, for any number of sequences and tokens and any width.",
        [(4, 4, 4), (3, 5, 2), (1, 7, 3), (5, 1, 3), (2, 9, 64), (3, 2, 1)],
        scale=2.0,
        weight=4,
    )

    @contracts.points(1)
    def test_large_scores(self, student, reference, rng):
        """Scores far below zero give no NaN, and later tokens get no weight."""
        queries, keys, values = rng.rand(2, 6, 5) * 100, rng.randn(2, 6, 5) * 300 - 1000, rng.randn(2, 6, 5)
        assert_right_where_large(student, student.causal_head, reference.causal_head, queries, keys, values)

    @contracts.points(0.5)
    def test_scores_of_zero(self, student, reference, rng):
        """A query of zeros has score 0 with every key, so all keys that it sees get equal weight."""
        queries, keys, values = self.draw(rng, 2, 5, 3)
        queries[:, 2] = 0.0
        self.assert_agree(student, reference, queries, keys, values)

    test_gradients = contracts.gradients("Gradients flow back to queries, keys and values.")
    test_float64_stays_exact = contracts.float64(
        "For float64 inputs the result has float64 precision.", of=(2, 5, contracts.EXACT_ROOT)
    )

    @contracts.points(1, property=True)
    def test_blind_to_the_future(self, student, rng):
        """A token's result does not change if later tokens change."""
        assert_blind_to_the_future(student.causal_head, *self.draw(rng, 2, 6, 4), width=4)

    test_inputs_are_unchanged = contracts.unchanged("Queries, keys and values are not modified.")
    test_follows_device = contracts.device("The mask and the result are made on the inputs' device.")
    test_dtype_is_kept = contracts.dtype("The result has the dtype of the inputs.")
