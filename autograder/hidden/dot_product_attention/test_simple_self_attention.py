"""The hidden graders of `simple_self_attention`."""

import pytest
import torch

from autograder.compare import LARGE_LOGITS, assert_close, golden, row
from autograder.hidden.statements import (
    assert_close_in_each,
    assert_dtype_kept,
    assert_follows_device,
    assert_inputs_unchanged,
    assert_same_gradients,
)
from autograder.sandbox.inside.library_calls import LIBRARY_ATTENTION
from autograder.six_words import SIX_WORDS


@pytest.mark.exercise("simple_self_attention", forbids=[LIBRARY_ATTENTION])
class TestSimpleSelfAttention:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_six_words(self, student):
        """The first word's context vector is that of the worked example."""
        assert_close(row(student.simple_self_attention(SIX_WORDS), 0), golden([0.4421, 0.5931, 0.5790]))

    @pytest.mark.public
    @pytest.mark.points(3)
    def test_other_tokens(self, student, reference, rng):
        """Every token gets the context vector of its own row of weights."""
        cases = [(rng.randn(T, d),) for T, d in [(5, 3), (3, 5), (4, 4), (8, 2), (1, 3), (3, 1)]]
        assert_close_in_each(student.simple_self_attention, reference.simple_self_attention, cases)

    @pytest.mark.points(1)
    def test_large_inputs_do_not_overflow(self, student, reference, rng):
        """Inputs with scores in the hundreds give context vectors, not NaN."""
        inputs = rng.randn(5, 3, scale=30.0)
        right = reference.simple_self_attention(inputs)
        assert_close(student.simple_self_attention(inputs), right, tolerance=LARGE_LOGITS)

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the inputs, through scores, weights and sum."""
        inputs, cotangent = rng.randn(5, 3), rng.randn(5, 3)
        assert_same_gradients(
            student.simple_self_attention, reference.simple_self_attention, inputs, cotangent=cotangent
        )

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """The result for float64 inputs is as exact as float64 is."""
        inputs = rng.randn(5, 3, dtype=torch.float64)
        assert_close(student.simple_self_attention(inputs), reference.simple_self_attention(inputs))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """The inputs are left as they were."""
        assert_inputs_unchanged(student.simple_self_attention, rng.randn(5, 3))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The result is computed on the inputs' device."""
        assert_follows_device(student.simple_self_attention, rng.randn(5, 3))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the inputs."""
        assert_dtype_kept(student.simple_self_attention, rng.randn(5, 3, dtype=torch.float64))
