"""The hidden graders of `causal_softmax`."""

import pytest
import torch

from autograder.compare import LARGE_LOGITS, golden
from autograder.hidden.causal_attention.worked_examples import SIX_WORDS_WEIGHTS, six_words_scores
from autograder.hidden.causality import assert_causal_weights
from autograder.hidden.statements import (
    assert_dtype_kept,
    assert_follows_device,
    assert_inputs_unchanged,
    assert_same_gradients,
)
from autograder.sandbox.inside.library_calls import LIBRARY_ATTENTION


@pytest.mark.exercise("causal_softmax", forbids=[LIBRARY_ATTENTION])
class TestCausalSoftmax:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_six_words(self, student):
        """The six words' causal weights are those of the worked example."""
        assert_causal_weights(student.causal_softmax(six_words_scores(), 2), golden(SIX_WORDS_WEIGHTS))

    @pytest.mark.points(2)
    def test_divided_by_the_root_of_d_k(self, student, reference, rng):
        """The scores are divided by the square root of d_k, whatever the number of tokens."""
        scores = rng.randn(5, 5, scale=3.0)
        for d_k in (3, 64):
            assert_causal_weights(student.causal_softmax(scores, d_k), reference.causal_softmax(scores, d_k))

    @pytest.mark.points(2)
    def test_any_leading_dimensions(self, student, reference, rng):
        """Each query's weights sum to 1 over the keys that it may see, for any leading dimensions."""
        for *leading, num_tokens in [(4, 4), (3, 5), (2, 3, 5), (1, 1), (2, 1, 2, 3), (1,)]:
            scores = rng.randn(*leading, num_tokens, num_tokens, scale=2.0)
            assert_causal_weights(student.causal_softmax(scores, 4), reference.causal_softmax(scores, 4))

    @pytest.mark.points(1)
    def test_large_scores(self, student, reference, rng):
        """Scores in the thousands, all below zero, give no NaN and no weight to the future."""
        later_is_larger = 5e3 * torch.arange(6)
        for scores in (rng.randn(6, 6, scale=5e3) - 3e4, rng.randn(6, 6, scale=5e2) - 3e4 + later_is_larger):
            right = reference.causal_softmax(scores, 4)
            assert_causal_weights(student.causal_softmax(scores, 4), right, tolerance=LARGE_LOGITS)

    @pytest.mark.points(1)
    def test_scores_of_zero(self, student, reference, rng):
        """A score of zero is a score as any other, and only the future is hidden."""
        scores = rng.randn(6, 6, scale=2.0).clamp(min=0.0)
        assert_causal_weights(student.causal_softmax(scores, 4), reference.causal_softmax(scores, 4))

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the scores."""
        scores, cotangent = rng.randn(2, 5, 5), rng.randn(2, 5, 5)
        assert_same_gradients(student.causal_softmax, reference.causal_softmax, scores, 4, cotangent=cotangent)

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """Weights of float64 scores are as exact as float64 is."""
        scores = rng.randn(5, 5, dtype=torch.float64)
        assert_causal_weights(student.causal_softmax(scores, 4), reference.causal_softmax(scores, 4))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """The scores are left as they were."""
        assert_inputs_unchanged(student.causal_softmax, rng.randn(5, 5), 4)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The weights, and the mask on the way to them, are made on the scores' device."""
        assert_follows_device(student.causal_softmax, rng.randn(5, 5), 4)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The weights have the dtype of the scores."""
        assert_dtype_kept(student.causal_softmax, rng.randn(5, 5, dtype=torch.float64), 4)
