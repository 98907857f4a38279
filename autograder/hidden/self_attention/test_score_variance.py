"""The hidden graders of `score_variance`."""

import pytest
import torch

from autograder.compare import assert_close, golden
from autograder.hidden.self_attention.worked_examples import unit_gaussians
from autograder.hidden.statements import (
    assert_close_in_each,
    assert_dtype_kept,
    assert_follows_device,
    assert_inputs_unchanged,
    assert_same_gradients,
)
from autograder.sandbox.inside.library_calls import LIBRARY_ATTENTION


@pytest.mark.exercise("score_variance", forbids=[LIBRARY_ATTENTION])
class TestScoreVariance:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_worked_example(self, student):
        """The variances of the worked example are 17.4690 and, scaled, 1.0918."""
        assert_close(student.score_variance(*unit_gaussians()), (golden(17.4690), golden(1.0918)))

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_other_shapes(self, student, reference, rng):
        """It is the variance of all scores together, for any leading dimensions."""
        shapes = [(3, 4, 5), (2, 3, 3, 4), (3, 3, 3, 3), (2, 2, 3, 4, 9)]
        cases = [(rng.randn(*leading, Tq, d_k), rng.randn(*leading, Tk, d_k)) for *leading, Tq, Tk, d_k in shapes]
        assert_close_in_each(student.score_variance, reference.score_variance, cases)

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to queries and keys."""
        queries, keys, cotangents = rng.randn(2, 3, 4), rng.randn(2, 5, 4), (rng.randn(), rng.randn())
        assert_same_gradients(student.score_variance, reference.score_variance, queries, keys, cotangent=cotangents)

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """Variances of float64 inputs are as exact as float64 is."""
        queries, keys = rng.randn(2, 3, 4, dtype=torch.float64), rng.randn(2, 5, 4, dtype=torch.float64)
        assert_close(student.score_variance(queries, keys), reference.score_variance(queries, keys))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """Queries and keys are left as they were."""
        assert_inputs_unchanged(student.score_variance, rng.randn(2, 3, 4), rng.randn(2, 5, 4))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The variances are computed on the inputs' device."""
        assert_follows_device(student.score_variance, rng.randn(2, 3, 4), rng.randn(2, 5, 4))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The results have the dtype of the inputs."""
        assert_dtype_kept(
            student.score_variance, rng.randn(2, 3, 4, dtype=torch.float64), rng.randn(2, 5, 4, dtype=torch.float64)
        )
