"""The hidden graders of `SelfAttention_v1`."""

import pytest
import torch

from autograder.compare import LARGE_LOGITS, assert_close, golden
from autograder.hidden.statements import (
    assert_close_in_each,
    assert_dtype,
    assert_follows_device,
    assert_inputs_unchanged,
    assert_parameter_shapes,
    assert_same_gradients,
    assert_seeds_matter,
    in_each,
    transplant,
)
from autograder.six_words import SIX_WORDS


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
        assert_close(attention(SIX_WORDS), right)

    @pytest.mark.points(3)
    def test_context_vectors(self, student, reference, rng):
        """With given weights, each token's context vector is the weighted sum of the values."""

        def check(case):
            d_in, d_out, num_tokens = case
            x = rng.randn(num_tokens, d_in)  # before anything can go wrong: the next case draws the same then
            attention = student.SelfAttention_v1(d_in, d_out)
            right = transplant(reference.SelfAttention_v1(d_in, d_out), attention)
            assert_close(attention(x), right(x))

        in_each([(5, 3, 7), (3, 8, 4), (4, 4, 4), (4, 1, 3), (3, 5, 1)], check)

    @pytest.mark.points(1)
    def test_called_again(self, student, reference, rng):
        """An instance can be called again, with another sequence of the same or another length, in evaluation too."""
        attention = student.SelfAttention_v1(5, 4)
        right = transplant(reference.SelfAttention_v1(5, 4), attention)
        assert_close_in_each(attention, right, [(rng.randn(num_tokens, 5),) for num_tokens in (7, 7, 3)])
        assert_close_in_each(attention.eval(), right, [(rng.randn(7, 5),) for _ in range(2)])

    @pytest.mark.points(1)
    def test_large_scores_do_not_overflow(self, student, reference, rng):
        """Scores in the thousands give context vectors, not NaN."""
        attention, x = student.SelfAttention_v1(5, 4), rng.randn(7, 5, scale=30.0)
        right = transplant(reference.SelfAttention_v1(5, 4), attention)
        assert_close(attention(x), right(x), tolerance=LARGE_LOGITS)

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
        right = dict.fromkeys(["W_query", "W_key", "W_value"], (5, 4))
        assert_parameter_shapes(student.SelfAttention_v1(5, 4), right)

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

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The context vectors have the dtype of the input."""
        assert_dtype(student.SelfAttention_v1(5, 4)(rng.randn(7, 5)), torch.float32)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_seeds_matter(self, student):
        """Two instances built under different seeds have different weights."""
        assert_seeds_matter(student, "SelfAttention_v1", 5, 4)
