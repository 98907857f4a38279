"""The hidden graders of `pairwise_scores`."""

import pytest
import torch

from autograder.compare import assert_close, golden, row
from autograder.hidden.statements import (
    assert_close_in_each,
    assert_dtype_kept,
    assert_follows_device,
    assert_inputs_unchanged,
    assert_same_gradients,
)
from autograder.sandbox.inside.library_calls import LIBRARY_ATTENTION
from autograder.six_words import SIX_WORDS


@pytest.mark.exercise("pairwise_scores", forbids=[LIBRARY_ATTENTION])
class TestPairwiseScores:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_six_words(self, student):
        """The first row of scores is that of the worked example."""
        scores = student.pairwise_scores(SIX_WORDS)
        assert_close(row(scores, 0), golden([0.9995, 0.9544, 0.9422, 0.4753, 0.4576, 0.6310]))

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_other_tokens(self, student, reference, rng):
        """Row i holds token i's score with every token, itself included."""
        cases = [(rng.randn(T, d),) for T, d in [(5, 3), (3, 5), (4, 4), (8, 2), (1, 3)]]
        assert_close_in_each(student.pairwise_scores, reference.pairwise_scores, cases)

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the inputs, through both of their parts."""
        inputs, cotangent = rng.randn(5, 3), rng.randn(5, 5)
        assert_same_gradients(student.pairwise_scores, reference.pairwise_scores, inputs, cotangent=cotangent)

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """Scores of float64 inputs are as exact as float64 is."""
        inputs = rng.randn(5, 3, dtype=torch.float64)
        assert_close(student.pairwise_scores(inputs), reference.pairwise_scores(inputs))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """The inputs are left as they were."""
        assert_inputs_unchanged(student.pairwise_scores, rng.randn(5, 3))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The scores are computed on the inputs' device."""
        assert_follows_device(student.pairwise_scores, rng.randn(5, 3))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the inputs."""
        assert_dtype_kept(student.pairwise_scores, rng.randn(5, 3, dtype=torch.float64))
