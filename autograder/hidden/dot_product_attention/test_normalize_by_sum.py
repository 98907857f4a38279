"""The hidden graders of `normalize_by_sum`."""

import pytest
import torch

from autograder.compare import assert_close, golden
from autograder.hidden.dot_product_attention.worked_examples import SCORES
from autograder.hidden.statements import (
    assert_close_in_each,
    assert_dtype_kept,
    assert_follows_device,
    assert_inputs_unchanged,
    assert_same_gradients,
)
from autograder.sandbox.inside.library_calls import LIBRARY_ATTENTION


@pytest.mark.exercise("normalize_by_sum", forbids=[LIBRARY_ATTENTION])
class TestNormalizeBySum:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_six_words(self, student):
        """The six scores of journey become the weights of the worked example."""
        weights = student.normalize_by_sum(SCORES)
        assert_close(weights, golden([0.1455, 0.2278, 0.2249, 0.1285, 0.1077, 0.1656]))

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_leading_dimensions(self, student, reference, rng):
        """With more dimensions each row sums to 1 along the last one."""
        # Where all dimensions are equal a sum over the wrong one raises no error and shows which it was.
        cases = [(rng.rand(*shape),) for shape in [(3, 5), (4, 4, 4), (2, 3, 5)]]
        assert_close_in_each(student.normalize_by_sum, reference.normalize_by_sum, cases)

    @pytest.mark.points(1)
    def test_negative_scores(self, student, reference):
        """It is the plain sum that scores are divided by, also where some are negative."""
        scores = torch.tensor([[2.0, -1.0, 0.5], [-3.0, -1.0, 1.0]])
        assert_close(student.normalize_by_sum(scores), reference.normalize_by_sum(scores))

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the scores."""
        scores, cotangent = rng.rand(3, 5), rng.randn(3, 5)
        assert_same_gradients(student.normalize_by_sum, reference.normalize_by_sum, scores, cotangent=cotangent)

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """Weights of float64 scores are as exact as float64 is."""
        scores = rng.rand(3, 5, dtype=torch.float64)
        assert_close(student.normalize_by_sum(scores), reference.normalize_by_sum(scores))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """The scores are left as they were."""
        assert_inputs_unchanged(student.normalize_by_sum, rng.rand(3, 5))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The weights are computed on the scores' device."""
        assert_follows_device(student.normalize_by_sum, rng.rand(3, 5))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the inputs."""
        assert_dtype_kept(student.normalize_by_sum, rng.rand(3, 5, dtype=torch.float64))
