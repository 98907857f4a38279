"""The hidden graders of `context_vectors`."""

import pytest
import torch

from autograder.compare import assert_close, golden, row
from autograder.hidden.self_attention.worked_examples import projections
from autograder.hidden.statements import (
    assert_close_in_each,
    assert_dtype_kept,
    assert_follows_device,
    assert_inputs_unchanged,
    assert_same_gradients,
)
from autograder.sandbox.inside.library_calls import LIBRARY_ATTENTION


@pytest.mark.exercise("context_vectors", forbids=[LIBRARY_ATTENTION])
class TestContextVectors:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_six_words(self, student):
        """The first word's context vector is that of the worked example."""
        weights = torch.tensor([[0.1551, 0.2104, 0.2059, 0.1413, 0.1074, 0.1799]])
        _, _, values = projections()
        assert_close(row(student.context_vectors(weights, values), 0), golden([0.2996, 0.8053]))

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_other_weights(self, student, reference, rng):
        """Row i blends the values by query i's weights; there may be more keys than queries."""
        cases = [(rng.rand(Tq, Tk), rng.randn(Tk, d_v)) for Tq, Tk, d_v in [(5, 7, 3), (4, 4, 4), (1, 3, 2), (3, 1, 1)]]
        assert_close_in_each(student.context_vectors, reference.context_vectors, cases)

    @pytest.mark.points(2)
    def test_any_leading_dimensions(self, student, reference, rng):
        """Leading dimensions, such as batch and heads, stay apart."""
        shapes = [(3, 5, 7, 2), (4, 4, 4, 4), (2, 3, 5, 7, 2), (3, 3, 3, 3, 3), (1, 1, 7, 1), (2, 1, 2, 1, 3, 2)]
        cases = [(rng.rand(*leading, Tq, Tk), rng.randn(*leading, Tk, d_v)) for *leading, Tq, Tk, d_v in shapes]
        assert_close_in_each(student.context_vectors, reference.context_vectors, cases)

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the weights and to the values."""
        weights, values, cotangent = rng.rand(2, 5, 7), rng.randn(2, 7, 3), rng.randn(2, 5, 3)
        assert_same_gradients(student.context_vectors, reference.context_vectors, weights, values, cotangent=cotangent)

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """Context vectors of float64 values are as exact as float64 is."""
        weights, values = rng.rand(5, 7, dtype=torch.float64), rng.randn(7, 3, dtype=torch.float64)
        assert_close(student.context_vectors(weights, values), reference.context_vectors(weights, values))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """Weights and values are left as they were."""
        assert_inputs_unchanged(student.context_vectors, rng.rand(5, 7), rng.randn(7, 3))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """Context vectors are computed on the values' device."""
        assert_follows_device(student.context_vectors, rng.rand(5, 7), rng.randn(7, 3))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the inputs."""
        assert_dtype_kept(
            student.context_vectors, rng.rand(5, 7, dtype=torch.float64), rng.randn(7, 3, dtype=torch.float64)
        )
