"""The hidden graders of `renormalized_causal_weights`."""

import pytest
import torch

from autograder.compare import golden
from autograder.hidden.causal_attention.worked_examples import SIX_WORDS_WEIGHTS, six_words_weights
from autograder.hidden.causality import assert_causal_weights
from autograder.hidden.statements import (
    assert_dtype_kept,
    assert_follows_device,
    assert_inputs_unchanged,
    assert_same_gradients,
)
from autograder.sandbox.inside.library_calls import LIBRARY_ATTENTION


@pytest.mark.exercise("renormalized_causal_weights", forbids=[LIBRARY_ATTENTION])
class TestRenormalizedCausalWeights:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_six_words(self, student):
        """The six words' weights become those of the worked example."""
        assert_causal_weights(student.renormalized_causal_weights(six_words_weights()), golden(SIX_WORDS_WEIGHTS))

    @pytest.mark.points(3)
    def test_other_weights(self, student, reference, rng):
        """Nothing is left above the diagonal and each row sums to 1, for any number of tokens."""
        for num_tokens in (5, 2, 1, 9):
            weights = torch.softmax(rng.randn(num_tokens, num_tokens), dim=-1)
            right = reference.renormalized_causal_weights(weights)
            assert_causal_weights(student.renormalized_causal_weights(weights), right)

    @pytest.mark.points(1)
    def test_little_is_kept(self, student, reference, rng):
        """A row whose weight is nearly all in the future sums to 1 as well."""
        weights = torch.softmax(rng.randn(6, 6) + 3.0 * torch.arange(6), dim=-1)
        right = reference.renormalized_causal_weights(weights)
        assert_causal_weights(student.renormalized_causal_weights(weights), right)

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the weights."""
        weights, cotangent = torch.softmax(rng.randn(5, 5), dim=-1), rng.randn(5, 5)
        assert_same_gradients(
            student.renormalized_causal_weights, reference.renormalized_causal_weights, weights, cotangent=cotangent
        )

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """Weights in float64 stay as exact as float64 is."""
        weights = torch.softmax(rng.randn(5, 5, dtype=torch.float64), dim=-1)
        right = reference.renormalized_causal_weights(weights)
        assert_causal_weights(student.renormalized_causal_weights(weights), right)

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """The weights that come in are left as they were."""
        assert_inputs_unchanged(student.renormalized_causal_weights, rng.rand(5, 5))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The result is computed on the weights' device."""
        assert_follows_device(student.renormalized_causal_weights, rng.rand(5, 5))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the weights."""
        assert_dtype_kept(student.renormalized_causal_weights, rng.rand(5, 5, dtype=torch.float64))
