"""The hidden graders of `linear_projection`."""

import pytest
import torch

from autograder.compare import assert_close
from autograder.hidden.statements import (
    assert_close_in_each,
    assert_dtype_kept,
    assert_follows_device,
    assert_inputs_unchanged,
    assert_same_gradients,
)
from autograder.sandbox.inside.library_calls import LIBRARY_ATTENTION


@pytest.mark.exercise("linear_projection", forbids=[LIBRARY_ATTENTION])
class TestLinearProjection:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_shapes_of_the_worked_example(self, student, reference, rng):
        """Six tokens of width 16 become width 24 with a (24, 16) weight, width 28 with a (28, 16) one."""
        inputs = rng.randn(6, 16)
        for d_out in (24, 28):
            weight = rng.randn(d_out, 16)
            assert_close(student.linear_projection(inputs, weight), reference.linear_projection(inputs, weight))

    @pytest.mark.points(1)
    def test_square_weight(self, student, reference, rng):
        """A square weight is transposed like any other."""
        inputs, weight = rng.randn(5, 4), rng.randn(4, 4)
        assert_close(student.linear_projection(inputs, weight), reference.linear_projection(inputs, weight))

    @pytest.mark.points(2)
    def test_any_leading_dimensions(self, student, reference, rng):
        """One token, a sequence or a batch of sequences: only the last dimension changes."""
        weight = rng.randn(3, 4)
        cases = [(rng.randn(*leading, 4), weight) for leading in [(), (5,), (1,), (2, 5), (2, 3, 5), (4, 3, 4)]]
        assert_close_in_each(student.linear_projection, reference.linear_projection, cases)

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the inputs and to the weight."""
        inputs, weight, cotangent = rng.randn(2, 5, 4), rng.randn(3, 4), rng.randn(2, 5, 3)
        assert_same_gradients(
            student.linear_projection, reference.linear_projection, inputs, weight, cotangent=cotangent
        )

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """The projection of float64 inputs is as exact as float64 is."""
        inputs, weight = rng.randn(5, 4, dtype=torch.float64), rng.randn(3, 4, dtype=torch.float64)
        assert_close(student.linear_projection(inputs, weight), reference.linear_projection(inputs, weight))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """Inputs and weight are left as they were."""
        assert_inputs_unchanged(student.linear_projection, rng.randn(5, 4), rng.randn(3, 4))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The projection is computed on the inputs' device."""
        assert_follows_device(student.linear_projection, rng.randn(5, 4), rng.randn(3, 4))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the inputs."""
        assert_dtype_kept(
            student.linear_projection, rng.randn(5, 4, dtype=torch.float64), rng.randn(3, 4, dtype=torch.float64)
        )
