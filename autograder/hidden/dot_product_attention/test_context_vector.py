"""The hidden graders of `context_vector`."""

import pytest
import torch

from autograder.compare import assert_close, golden
from autograder.hidden.dot_product_attention.worked_examples import WEIGHTS
from autograder.hidden.statements import (
    assert_close_in_each,
    assert_dtype_kept,
    assert_follows_device,
    assert_inputs_unchanged,
    assert_same_gradients,
)
from autograder.sandbox.inside.library_calls import LIBRARY_ATTENTION
from autograder.six_words import SIX_WORDS


@pytest.mark.exercise("context_vector", forbids=[LIBRARY_ATTENTION])
class TestContextVector:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_six_words(self, student):
        """The context vector of journey is that of the worked example."""
        assert_close(student.context_vector(WEIGHTS, SIX_WORDS), golden([0.4419, 0.6515, 0.5683]))

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_other_weights(self, student, reference, rng):
        """Every token contributes by its weight, for any number and width of tokens."""
        cases = [
            (torch.softmax(rng.randn(T).double(), dim=-1).float(), rng.randn(T, d))
            for T, d in [(5, 3), (3, 5), (4, 4), (8, 2), (1, 3), (3, 1)]
        ]
        assert_close_in_each(student.context_vector, reference.context_vector, cases)

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the weights and to the inputs."""
        weights, inputs, cotangent = rng.rand(5), rng.randn(5, 3), rng.randn(3)
        assert_same_gradients(student.context_vector, reference.context_vector, weights, inputs, cotangent=cotangent)

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """The context vector of float64 inputs is as exact as float64 is."""
        weights, inputs = rng.randn(5, dtype=torch.float64), rng.randn(5, 3, dtype=torch.float64)
        assert_close(student.context_vector(weights, inputs), reference.context_vector(weights, inputs))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """Weights and inputs are left as they were."""
        assert_inputs_unchanged(student.context_vector, rng.rand(5), rng.randn(5, 3))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The context vector is computed on the inputs' device."""
        assert_follows_device(student.context_vector, rng.rand(5), rng.randn(5, 3))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the inputs."""
        assert_dtype_kept(
            student.context_vector, rng.rand(5, dtype=torch.float64), rng.randn(5, 3, dtype=torch.float64)
        )
