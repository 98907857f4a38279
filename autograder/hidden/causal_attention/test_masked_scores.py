"""The hidden graders of `masked_scores`."""

import pytest
import torch

from autograder.compare import assert_close, golden
from autograder.hidden.statements import (
    assert_dtype_kept,
    assert_follows_device,
    assert_inputs_unchanged,
    assert_same_gradients,
)
from autograder.sandbox.inside.library_calls import LIBRARY_ATTENTION


@pytest.mark.exercise("masked_scores", forbids=[LIBRARY_ATTENTION])
class TestMaskedScores:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_three_tokens(self, student):
        """With the causal mask of three tokens, three scores become minus infinity and the others stay."""
        scores = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5], [-2.0, 1.0, 0.75]])
        mask = torch.tensor([[False, True, True], [False, False, True], [False, False, False]])
        right = golden([[0.5, -torch.inf, -torch.inf], [1.5, 0.25, -torch.inf], [-2.0, 1.0, 0.75]])
        assert_close(student.masked_scores(scores, mask), right)

    @pytest.mark.points(2)
    def test_any_mask(self, student, reference, rng):
        """The mask that is passed in decides, whatever it hides."""
        for num_tokens in (5, 2, 8):
            scores, mask = rng.randn(num_tokens, num_tokens, scale=3.0), rng.rand(num_tokens, num_tokens) > 0.7
            assert_close(student.masked_scores(scores, mask), reference.masked_scores(scores, mask))

    @pytest.mark.points(2)
    def test_any_leading_dimensions(self, student, reference, rng):
        """One mask serves every sequence of a batch, and every head."""
        for *leading, num_tokens in [(4, 4), (3, 5), (2, 3, 4), (1, 1, 3), (2, 1, 2, 3)]:
            scores = rng.randn(*leading, num_tokens, num_tokens)
            mask = rng.rand(num_tokens, num_tokens) > 0.5
            assert_close(student.masked_scores(scores, mask), reference.masked_scores(scores, mask))

    @pytest.mark.points(1)
    def test_scores_of_zero(self, student, reference, rng):
        """A score of zero that is not hidden stays."""
        scores, mask = rng.randn(6, 6).clamp(min=0.0), rng.rand(6, 6) > 0.6
        assert_close(student.masked_scores(scores, mask), reference.masked_scores(scores, mask))

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the scores that stay."""
        scores, mask = rng.randn(2, 4, 4), rng.rand(4, 4) > 0.6
        cotangent = rng.randn(2, 4, 4).masked_fill(mask, 0.0)
        assert_same_gradients(student.masked_scores, reference.masked_scores, scores, mask, cotangent=cotangent)

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """Scores in float64 stay as exact as float64 is."""
        scores, mask = rng.randn(4, 4, dtype=torch.float64) / 3, rng.rand(4, 4) > 0.6
        assert_close(student.masked_scores(scores, mask), reference.masked_scores(scores, mask))

    @pytest.mark.property
    @pytest.mark.points(2)
    def test_inputs_are_unchanged(self, student, rng):
        """The scores and the mask that come in are left as they were."""
        assert_inputs_unchanged(student.masked_scores, rng.randn(4, 4), rng.rand(4, 4) > 0.6)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The result is computed on the scores' device."""
        assert_follows_device(student.masked_scores, rng.randn(4, 4), rng.rand(4, 4) > 0.6)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the scores."""
        assert_dtype_kept(student.masked_scores, rng.randn(4, 4, dtype=torch.float64), rng.rand(4, 4) > 0.6)
