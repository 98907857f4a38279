"""The hidden graders of `stacked_heads_attention`."""

import pytest
import torch

from autograder.compare import LARGE_LOGITS, assert_close
from autograder.hidden.statements import (
    assert_dtype_kept,
    assert_follows_device,
    assert_inputs_unchanged,
    assert_same_gradients,
)
from autograder.sandbox.inside.library_calls import LIBRARY_ATTENTION


@pytest.mark.exercise("stacked_heads_attention", forbids=[LIBRARY_ATTENTION])
class TestStackedHeadsAttention:
    @staticmethod
    def arguments(rng, h, num_tokens, d_in, d_k, d_v, dtype=torch.float32, scale=1.0):
        return (
            rng.randn(num_tokens, d_in, dtype=dtype),
            rng.randn(h, d_k, d_in, scale=scale, dtype=dtype),
            rng.randn(h, d_k, d_in, scale=scale, dtype=dtype),
            rng.randn(h, d_v, d_in, scale=0.5, dtype=dtype),
        )

    @pytest.mark.points(2)
    def test_shapes_of_the_worked_example(self, student, reference, rng):
        """Three heads with keys of width 24 and values of width 28 turn (6, 16) into (3, 6, 28)."""
        arguments = self.arguments(rng, 3, 6, 16, 24, 28, scale=0.25)
        right = reference.stacked_heads_attention(*arguments)
        assert tuple(right.value.shape) == (3, 6, 28)
        assert_close(student.stacked_heads_attention(*arguments), right)

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_other_widths(self, student, reference, rng):
        """Each head attends with its own weights; values may be wider or narrower than keys."""
        for h, num_tokens, d_in, d_k, d_v in [(2, 5, 4, 3, 6), (4, 3, 5, 2, 1)]:
            arguments = self.arguments(rng, h, num_tokens, d_in, d_k, d_v)
            assert_close(student.stacked_heads_attention(*arguments), reference.stacked_heads_attention(*arguments))

    @pytest.mark.points(2)
    def test_equal_widths(self, student, reference, rng):
        """Weights are transposed, and heads kept apart, also where all widths are equal."""
        for h, num_tokens, width in [(4, 4, 4), (3, 5, 3), (1, 4, 2)]:
            arguments = self.arguments(rng, h, num_tokens, width, width, width)
            assert_close(student.stacked_heads_attention(*arguments), reference.stacked_heads_attention(*arguments))

    @pytest.mark.points(1)
    def test_large_scores_do_not_overflow(self, student, reference, rng):
        """Scores in the thousands give context vectors, not NaN."""
        arguments = self.arguments(rng, 3, 5, 4, 2, 3, scale=30.0)
        right = reference.stacked_heads_attention(*arguments)
        assert_close(student.stacked_heads_attention(*arguments), right, tolerance=LARGE_LOGITS)

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the inputs and to all three weights."""
        arguments, cotangent = self.arguments(rng, 3, 5, 4, 2, 6), rng.randn(3, 5, 6)
        assert_same_gradients(
            student.stacked_heads_attention, reference.stacked_heads_attention, *arguments, cotangent=cotangent
        )

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """The result for float64 inputs is as exact as float64 is."""
        arguments = self.arguments(rng, 3, 5, 2, 4, 6, dtype=torch.float64)
        assert_close(student.stacked_heads_attention(*arguments), reference.stacked_heads_attention(*arguments))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """Inputs and weights are left as they were."""
        assert_inputs_unchanged(student.stacked_heads_attention, *self.arguments(rng, 3, 5, 4, 2, 6))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The result is computed on the inputs' device."""
        assert_follows_device(student.stacked_heads_attention, *self.arguments(rng, 3, 5, 4, 2, 6))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the inputs."""
        assert_dtype_kept(student.stacked_heads_attention, *self.arguments(rng, 3, 5, 4, 2, 6, dtype=torch.float64))
