"""The hidden graders of the unit's other functions."""

import torch

from autograder.core.comparison import assert_close, golden
from autograder.graders import contracts
from autograder.graders.contracts import EXACT_ROOT
from autograder.graders.statements import in_each, row, rows
from solutions.six_words import SIX_WORDS

from .worked_examples import LIFE_IS_SHORT_CONTEXT, life_is_short, projections, seed_123_weights, unit_gaussians


@contracts.exercise("project_qkv")
class TestProjectQKV(contracts.Graders):
    def draw(self, rng, T=5, d_in=3, d_k=4, d_v=2):
        return rng.randn(T, d_in), rng.randn(d_in, d_k), rng.randn(d_in, d_k), rng.randn(d_in, d_v)

    @contracts.points(2, public=True)
    def test_second_word(self, student):
        """Query, key and value of journey are those of the worked example."""
        results = student.project_qkv(SIX_WORDS, *seed_123_weights())
        right = golden([0.4306, 1.4551]), golden([0.4433, 1.1419]), golden([0.3951, 1.0037])
        assert_close(rows(results, 1), right)

    test_other_widths = contracts.agree(
        "Values may be wider or narrower than queries and keys.",
        [(5, 3, 4, 2), (4, 3, 2, 5), (1, 4, 3, 1)],
        public=True,
    )
    test_square_weights = contracts.agree(
        "Square weights are used as they are, not transposed.",
        [(5, 3, 3, 3)],
        weight=1,
        essential=True,
    )
    test_gradients = contracts.gradients("Gradients flow back to the inputs and to all three weights.")
    test_float64_stays_exact = contracts.float64("For float64 inputs the projections have float64 precision.")
    test_inputs_are_unchanged = contracts.unchanged("The inputs and the weights are not modified.")
    test_follows_device = contracts.device("The projections are computed on the inputs' device.")
    test_dtype_is_kept = contracts.dtype("The results have the dtype of the inputs.")


@contracts.exercise("linear_projection")
class TestLinearProjection(contracts.Graders):
    def draw(self, rng, *sizes):
        *leading, d_in, d_out = sizes or (5, 4, 3)
        return rng.randn(*leading, d_in), rng.randn(d_out, d_in)

    @contracts.points(2, public=True)
    def test_shapes_of_the_worked_example(self, student, reference, rng):
        """Six vectors of width 16 get width 24 with a (24, 16) weight, and width 28 with a (28, 16) weight."""
        inputs = rng.randn(6, 16)
        for d_out in (24, 28):
            self.assert_agree(student, reference, inputs, rng.randn(d_out, 16))

    test_square_weight = contracts.agree(
        "A square weight is transposed like any other.", [(5, 4, 4)], weight=1, essential=True
    )

    @contracts.points(2, public=True)
    def test_any_leading_dimensions(self, student, reference, rng):
        """One token, a sequence or a batch of sequences: only the last dimension changes."""
        weight = rng.randn(3, 4)
        inputs = [rng.randn(*leading, 4) for leading in [(), (5,), (1,), (2, 5), (2, 3, 5), (4, 3, 4)]]
        in_each(inputs, lambda one: self.assert_agree(student, reference, one, weight))

    test_gradients = contracts.gradients("Gradients flow back to the inputs and to the weight.", of=(2, 5, 4, 3))
    test_float64_stays_exact = contracts.float64("For float64 inputs the projection has float64 precision.")
    test_inputs_are_unchanged = contracts.unchanged("The inputs and the weight are not modified.")
    test_follows_device = contracts.device("The projection is computed on the inputs' device.")
    test_dtype_is_kept = contracts.dtype("The result has the dtype of the inputs.")


@contracts.exercise("attention_scores")
class TestAttentionScores(contracts.Graders):
    def draw(self, rng, *sizes):
        *leading, Tq, Tk, d_k = sizes or (5, 7, 4)
        return rng.randn(*leading, Tq, d_k), rng.randn(*leading, Tk, d_k)

    test_six_words = contracts.gives(
        "The first word's scores are those of the worked example.",
        projections()[:2],
        golden([0.9231, 1.3545, 1.3241, 0.7910, 0.4032, 1.1330]),
        row=0,
    )
    test_every_query_meets_every_key = contracts.agree(
        "Every query is scored against every key, even if there are more keys than queries.",
        [(5, 7, 4), (4, 4, 4), (1, 3, 2), (3, 1, 1)],
        public=True,
    )
    test_any_leading_dimensions = contracts.agree(
        "Each element of leading dimensions, such as a batch, is computed independently.",
        [(3, 5, 7, 4), (4, 4, 4, 4), (2, 3, 5, 7, 4), (3, 3, 3, 3, 3), (1, 1, 7, 4), (2, 1, 2, 1, 3, 2)],
        essential=True,
    )
    test_gradients_reach_queries_and_keys = contracts.gradients(
        "Gradients flow back to the queries and to the keys.", of=(2, 5, 7, 4)
    )
    test_float64_stays_exact = contracts.float64("For float64 inputs the scores have float64 precision.")
    test_dtype_is_kept = contracts.dtype("The scores have the dtype of the queries.")
    test_inputs_are_unchanged = contracts.unchanged("The queries and the keys are not modified.")
    test_follows_device = contracts.device("The scores are computed on the inputs' device.")


@contracts.exercise("scaled_softmax")
class TestScaledSoftmax(contracts.Graders):
    def draw(self, rng, *shape, scale=1.0, d_k=5):
        return rng.randn(*shape or (5, 7), scale=scale), d_k

    @contracts.points(1, public=True)
    def test_six_words(self, student):
        """The second word's weights are those of the worked example."""
        queries, keys, _ = projections()
        scores = (queries.double() @ keys.double().T).float()  # (6, 6)
        weights = student.scaled_softmax(scores, 2)
        assert_close(row(weights, 1), golden([0.1500, 0.2264, 0.2199, 0.1311, 0.0906, 0.1820]))

    test_keys_of_width_24 = contracts.gives(
        "Scores of keys of width 24 are divided by the square root of 24.",
        (torch.tensor([[8.5808, -7.6597, 3.2558, 1.0395, 11.1466, -0.4800]]), 24),
        golden([0.2912, 0.0106, 0.0982, 0.0625, 0.4917, 0.0458]),
        weight=1,
        row=0,
    )

    @contracts.points(2)
    def test_divided_by_the_root_of_d_k(self, student, reference, rng):
        """The scores are divided by the square root of d_k, regardless of the number of tokens."""
        scores = rng.randn(5, 5, scale=3.0)
        in_each((3, 1, 12, 64), lambda d_k: self.assert_agree(student, reference, scores, d_k))

    test_softmax_runs_over_the_keys = contracts.agree(
        "Each query's weights sum to 1 over the keys, the last dimension, for any leading dimensions.",
        [(5, 7), (3, 5, 7), (2, 3, 5, 7), (4, 4, 4, 4), (1, 1, 7), (2, 1, 2, 1, 3)],
        scale=2.0,
        essential=True,
    )
    # Square, so that a lost dimension raises no error.
    test_large_scores_do_not_overflow = contracts.large_scores(
        "Scores in the thousands give weights, not NaN.", of=(5, 5), scale=1e4
    )
    test_gradients_reach_the_scores = contracts.gradients("Gradients flow back to the scores.", of=(2, 5, 7))
    test_float64_stays_exact = contracts.float64(
        "For float64 scores the weights have float64 precision.", d_k=EXACT_ROOT
    )
    test_dtype_is_kept = contracts.dtype("The weights have the dtype of the scores.")
    test_inputs_are_unchanged = contracts.unchanged("The scores are not modified.")
    test_follows_device = contracts.device("The weights are computed on the scores' device.")


@contracts.exercise("context_vectors")
class TestContextVectors(contracts.Graders):
    def draw(self, rng, *sizes):
        *leading, Tq, Tk, d_v = sizes or (5, 7, 3)
        return rng.rand(*leading, Tq, Tk), rng.randn(*leading, Tk, d_v)

    @contracts.points(2, public=True)
    def test_six_words(self, student):
        """The first word's context vector is that of the worked example."""
        weights = torch.tensor([[0.1551, 0.2104, 0.2059, 0.1413, 0.1074, 0.1799]])
        _, _, values = projections()
        assert_close(row(student.context_vectors(weights, values), 0), golden([0.2996, 0.8053]))

    test_other_weights = contracts.agree(
        "Row i is the sum of the values times query i's weights; there may be more keys than queries.",
        [(5, 7, 3), (4, 4, 4), (1, 3, 2), (3, 1, 1)],
        public=True,
    )
    test_any_leading_dimensions = contracts.agree(
        "Each element of leading dimensions, such as a batch, is computed independently.",
        [(3, 5, 7, 2), (4, 4, 4, 4), (2, 3, 5, 7, 2), (3, 3, 3, 3, 3), (1, 1, 7, 1), (2, 1, 2, 1, 3, 2)],
        essential=True,
    )
    test_gradients = contracts.gradients("Gradients flow back to the weights and to the values.", of=(2, 5, 7, 3))
    test_float64_stays_exact = contracts.float64("For float64 values the context vectors have float64 precision.")
    test_inputs_are_unchanged = contracts.unchanged("The weights and the values are not modified.")
    test_follows_device = contracts.device("Context vectors are computed on the values' device.")
    test_dtype_is_kept = contracts.dtype("The result has the dtype of the inputs.")


@contracts.exercise("single_query_attention")
class TestSingleQueryAttention(contracts.Graders):
    def draw(self, rng, T=7, d_k=5, d_v=3, query=1.0, keys=1.0):
        return rng.randn(d_k, scale=query), rng.randn(T, d_k, scale=keys), rng.randn(T, d_v)

    test_second_word = contracts.gives(
        'The context vector of "is" in "Life is short, eat dessert first" is that of the worked example.',
        life_is_short(),
        golden(LIFE_IS_SHORT_CONTEXT),
    )
    test_other_widths = contracts.agree(
        "Values may be wider or narrower than keys.",
        [(7, 5, 3), (3, 8, 9), (5, 5, 5), (4, 6, 1)],
        weight=3,
        query=2.0,
        public=True,
    )
    test_large_scores_do_not_overflow = contracts.large_scores(
        "Scores in the thousands give a context vector, not NaN.", query=100.0, keys=100.0
    )
    test_gradients = contracts.gradients("Gradients flow back to the query, the keys and the values.")
    test_float64_stays_exact = contracts.float64(
        "For float64 inputs the result has float64 precision.", of=(7, EXACT_ROOT, 3)
    )
    test_inputs_are_unchanged = contracts.unchanged("The query, the keys and the values are not modified.")
    test_follows_device = contracts.device("The result is computed on the inputs' device.")
    test_dtype_is_kept = contracts.dtype("The result has the dtype of the inputs.")


@contracts.exercise("scaled_dot_product_attention")
class TestScaledDotProductAttention(contracts.Graders):
    def draw(self, rng, *sizes, queries=1.0, keys=1.0):
        *leading, Tq, Tk, d_k, d_v = sizes or (5, 7, 5, 3)
        query, key = rng.randn(*leading, Tq, d_k, scale=queries), rng.randn(*leading, Tk, d_k, scale=keys)
        return query, key, rng.randn(*leading, Tk, d_v)

    @contracts.points(1, public=True)
    def test_six_words(self, student):
        """The first two context vectors are those of the worked example."""
        context = student.scaled_dot_product_attention(*projections())
        assert_close(row(context, 0), golden([0.2996, 0.8053]))
        assert_close(row(context, 1), golden([0.3061, 0.8210]))

    test_other_widths = contracts.agree(
        "Queries and keys may differ in number, and keys and values in width.",
        [(5, 7, 5, 3), (5, 5, 8, 8), (4, 4, 3, 3), (1, 3, 2, 1)],
        queries=2.0,
        public=True,
    )
    test_any_leading_dimensions = contracts.agree(
        "Each element of leading dimensions, such as a batch, is computed independently.",
        [(3, 5, 7, 3, 2), (3, 3, 3, 3, 3), (2, 3, 5, 7, 5, 2), (3, 3, 3, 3, 3, 3), (2, 1, 2, 1, 3, 5, 1)],
        essential=True,
    )
    test_large_scores_do_not_overflow = contracts.large_scores(
        "Scores in the thousands give context vectors, not NaN.", queries=100.0, keys=100.0
    )
    test_gradients = contracts.gradients("Gradients flow back to queries, keys and values.", of=(2, 5, 7, 6, 3))
    test_float64_stays_exact = contracts.float64(
        "For float64 inputs the result has float64 precision.", of=(5, 7, EXACT_ROOT, 3)
    )
    test_inputs_are_unchanged = contracts.unchanged("Queries, keys and values are not modified.")
    test_follows_device = contracts.device("The result is computed on the inputs' device.")
    test_dtype_is_kept = contracts.dtype("The result has the dtype of the inputs.")


@contracts.exercise("score_variance")
class TestScoreVariance(contracts.Graders):
    def draw(self, rng, *sizes):
        *leading, Tq, Tk, d_k = sizes or (2, 3, 5, 6)
        return rng.randn(*leading, Tq, d_k), rng.randn(*leading, Tk, d_k)

    test_worked_example = contracts.gives(
        "The variances of the worked example are 17.469 and, scaled, 1.092.",
        unit_gaussians(),
        (golden(17.4690), golden(1.0918)),
    )
    test_other_shapes = contracts.agree(
        "The variance is taken over all scores together, for any leading dimensions.",
        [(3, 4, 5), (2, 3, 3, 4), (3, 3, 3, 3), (2, 2, 3, 4, 9)],
        essential=True,
        public=True,
    )
    test_gradients = contracts.gradients("Gradients flow back to queries and keys.")
    test_float64_stays_exact = contracts.float64(
        "For float64 inputs the variances have float64 precision.", of=(2, 3, 5, EXACT_ROOT)
    )
    test_inputs_are_unchanged = contracts.unchanged("The queries and the keys are not modified.")
    test_follows_device = contracts.device("The variances are computed on the inputs' device.")
    test_dtype_is_kept = contracts.dtype("The results have the dtype of the inputs.")
