"""Unit 2: the hidden graders of self-attention with trainable weights."""

import pytest
import torch

from autograder.compare import LARGE_LOGITS, Mismatch, assert_close, golden, row
from autograder.hidden.statements import (
    assert_dtype_kept,
    assert_follows_device,
    assert_inputs_unchanged,
    assert_same_gradients,
    transplant,
)
from autograder.sandbox.inside.library_calls import LIBRARY_ATTENTION

# "Your journey starts with one step", one word a row, and the weights that seed 123 draws for it.
X = torch.tensor(
    [
        [0.43, 0.15, 0.89],
        [0.55, 0.87, 0.66],
        [0.57, 0.85, 0.64],
        [0.22, 0.58, 0.33],
        [0.77, 0.25, 0.10],
        [0.05, 0.80, 0.55],
    ]
)


def projections() -> tuple[torch.Tensor, ...]:
    """Queries, keys and values of the six words, under the weights that seed 123 draws."""
    generator = torch.Generator().manual_seed(123)
    weights = (torch.rand(3, 2, generator=generator) for _ in range(3))
    # In float64, so that the last digit is the same on every CPU.
    return tuple((X.double() @ W.double()).float() for W in weights)  # (6, 3) @ (3, 2) -> (6, 2)


@pytest.mark.exercise("attention_scores", forbids=[LIBRARY_ATTENTION])
class TestAttentionScores:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_six_words(self, student):
        """The first word's scores are those of the worked example."""
        queries, keys, _ = projections()
        scores = student.attention_scores(queries, keys)
        assert_close(row(scores, 0), golden([0.9231, 1.3545, 1.3241, 0.7910, 0.4032, 1.1330]))

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_every_query_meets_every_key(self, student, reference, rng):
        """Every query is scored against every key, also where there are more keys than queries."""
        queries, keys = rng.randn(5, 4), rng.randn(7, 4)
        assert_close(student.attention_scores(queries, keys), reference.attention_scores(queries, keys))

    @pytest.mark.points(2)
    def test_any_leading_dimensions(self, student, reference, rng):
        """Leading dimensions, such as batch and heads, stay apart."""
        for *leading, Tq, Tk, d_k in [(4, 4, 4, 4), (3, 5, 7, 4), (2, 3, 5, 7, 4)]:
            queries, keys = rng.randn(*leading, Tq, d_k), rng.randn(*leading, Tk, d_k)
            assert_close(student.attention_scores(queries, keys), reference.attention_scores(queries, keys))

    @pytest.mark.points(1)
    def test_gradients_reach_queries_and_keys(self, student, reference, rng):
        """Gradients flow back to the queries and to the keys."""
        queries, keys = rng.randn(2, 5, 4), rng.randn(2, 7, 4)
        cotangent = rng.randn(2, 5, 7)
        assert_same_gradients(student.attention_scores, reference.attention_scores, queries, keys, cotangent=cotangent)

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """Scores of float64 inputs are as exact as float64 is."""
        queries, keys = rng.randn(5, 4, dtype=torch.float64), rng.randn(7, 4, dtype=torch.float64)
        assert_close(student.attention_scores(queries, keys), reference.attention_scores(queries, keys))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The scores have the dtype of the queries."""
        assert_dtype_kept(
            student.attention_scores,
            rng.randn(5, 4, dtype=torch.float64),
            rng.randn(7, 4, dtype=torch.float64),
        )

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """Queries and keys are left as they were."""
        assert_inputs_unchanged(student.attention_scores, rng.randn(5, 4), rng.randn(7, 4))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The scores are computed on the inputs' device."""
        assert_follows_device(student.attention_scores, rng.randn(5, 4), rng.randn(7, 4))


@pytest.mark.exercise("scaled_softmax", forbids=[LIBRARY_ATTENTION])
class TestScaledSoftmax:
    @pytest.mark.public
    @pytest.mark.points(1)
    def test_six_words(self, student):
        """The second word's weights are those of the worked example."""
        queries, keys, _ = projections()
        scores = (queries.double() @ keys.double().T).float()  # (6, 6)
        weights = student.scaled_softmax(scores, 2)
        assert_close(row(weights, 1), golden([0.1500, 0.2264, 0.2199, 0.1311, 0.0906, 0.1820]))

    @pytest.mark.public
    @pytest.mark.points(1)
    def test_keys_of_width_24(self, student):
        """Scores of keys of width 24 are divided by the square root of 24."""
        scores = torch.tensor([[8.5808, -7.6597, 3.2558, 1.0395, 11.1466, -0.4800]])
        weights = student.scaled_softmax(scores, 24)  # (1, 6)
        assert_close(row(weights, 0), golden([0.2912, 0.0106, 0.0982, 0.0625, 0.4917, 0.0458]))

    @pytest.mark.points(2)
    def test_divided_by_the_root_of_d_k(self, student, reference, rng):
        """The scores are divided by the square root of d_k, whatever the number of tokens."""
        scores = rng.randn(5, 5, scale=3.0)
        for d_k in (3, 64):
            assert_close(student.scaled_softmax(scores, d_k), reference.scaled_softmax(scores, d_k))

    @pytest.mark.points(2)
    def test_softmax_runs_over_the_keys(self, student, reference, rng):
        """Each query's weights sum to 1 over the keys, the last dimension, for any leading dimensions."""
        for shape in [(5, 7), (3, 5, 7), (2, 3, 5, 7)]:
            scores = rng.randn(*shape, scale=2.0)
            assert_close(student.scaled_softmax(scores, 4), reference.scaled_softmax(scores, 4))

    @pytest.mark.points(1)
    def test_large_scores_do_not_overflow(self, student, reference, rng):
        """Scores in the thousands give weights, not NaN."""
        scores = rng.randn(5, 7, scale=1e4)
        right = reference.scaled_softmax(scores, 4)
        assert_close(student.scaled_softmax(scores, 4), right, tolerance=LARGE_LOGITS)

    @pytest.mark.points(1)
    def test_gradients_reach_the_scores(self, student, reference, rng):
        """Gradients flow back to the scores."""
        scores, cotangent = rng.randn(2, 5, 7), rng.randn(2, 5, 7)
        assert_same_gradients(student.scaled_softmax, reference.scaled_softmax, scores, 4, cotangent=cotangent)

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """Weights of float64 scores are as exact as float64 is."""
        scores = rng.randn(5, 7, dtype=torch.float64)
        assert_close(student.scaled_softmax(scores, 4), reference.scaled_softmax(scores, 4))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The weights have the dtype of the scores."""
        assert_dtype_kept(student.scaled_softmax, rng.randn(5, 7, dtype=torch.float64), 4)

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """The scores are left as they were."""
        assert_inputs_unchanged(student.scaled_softmax, rng.randn(5, 7), 4)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The weights are computed on the scores' device."""
        assert_follows_device(student.scaled_softmax, rng.randn(5, 7), 4)


@pytest.mark.exercise("SelfAttention_v1", forbids=[])
class TestSelfAttentionV1:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_seed_123(self, student):
        """Built under seed 123, it gives the six words the context vectors of the worked example."""
        student.manual_seed(123)
        attention = student.SelfAttention_v1(3, 2)
        right = golden(
            [
                [0.2996, 0.8053],
                [0.3061, 0.8210],
                [0.3058, 0.8203],
                [0.2948, 0.7939],
                [0.2927, 0.7891],
                [0.2990, 0.8040],
            ]
        )
        assert_close(attention(X), right)

    @pytest.mark.points(3)
    def test_context_vectors(self, student, reference, rng):
        """With given weights, each token's context vector is the weighted sum of the values."""
        for d_in, d_out, num_tokens in [(5, 4, 7), (3, 9, 4)]:
            attention, x = student.SelfAttention_v1(d_in, d_out), rng.randn(num_tokens, d_in)
            right = transplant(reference.SelfAttention_v1(d_in, d_out), attention)
            assert_close(attention(x), right(x))

    @pytest.mark.points(2)
    def test_gradients_reach_every_weight(self, student, reference, rng):
        """Gradients flow back to the input and to all three weight matrices."""
        attention, x = student.SelfAttention_v1(5, 4), rng.randn(7, 5)
        right = transplant(reference.SelfAttention_v1(5, 4), attention)
        assert_same_gradients(attention, right, x, cotangent=rng.randn(7, 4))

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """After `.to(torch.float64)` the result is as exact as float64 is."""
        attention, x = student.SelfAttention_v1(5, 4), rng.randn(7, 5, dtype=torch.float64)
        right = transplant(reference.SelfAttention_v1(5, 4), attention.to(torch.float64))
        assert_close(attention(x), right(x))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_parameters(self, student):
        """Its parameters are W_query, W_key and W_value, each of shape (d_in, d_out)."""
        shapes = {name: tuple(p.shape) for name, p in student.SelfAttention_v1(5, 4).named_parameters().items()}
        right = dict.fromkeys(["W_query", "W_key", "W_value"], (5, 4))
        if shapes != right:
            raise Mismatch(f"Found: {', '.join(f'{name} {shape}' for name, shape in shapes.items()) or 'none'}.")

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """The input is left as it was."""
        assert_inputs_unchanged(student.SelfAttention_v1(5, 4), rng.randn(7, 5))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """It works on another device once it is moved there."""
        assert_follows_device(student.SelfAttention_v1(5, 4), rng.randn(7, 5))
