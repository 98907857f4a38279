"""The hidden graders of `scaled_dot_product_attention`."""

import pytest
import torch

from autograder.compare import LARGE_LOGITS, assert_close, golden, row
from autograder.hidden.self_attention.worked_examples import projections
from autograder.hidden.statements import (
    assert_close_in_each,
    assert_dtype_kept,
    assert_follows_device,
    assert_inputs_unchanged,
    assert_same_gradients,
)
from autograder.sandbox.inside.library_calls import LIBRARY_ATTENTION


@pytest.mark.exercise("scaled_dot_product_attention", forbids=[LIBRARY_ATTENTION])
class TestScaledDotProductAttention:
    @pytest.mark.public
    @pytest.mark.points(1)
    def test_six_words(self, student):
        """The first two context vectors are those of the worked example."""
        context = student.scaled_dot_product_attention(*projections())
        assert_close(row(context, 0), golden([0.2996, 0.8053]))
        assert_close(row(context, 1), golden([0.3061, 0.8210]))

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_other_widths(self, student, reference, rng):
        """Queries and keys may differ in number, keys and values in width."""
        cases = [
            (rng.randn(Tq, d_k, scale=2.0), rng.randn(Tk, d_k), rng.randn(Tk, d_v))
            for Tq, Tk, d_k, d_v in [(5, 7, 5, 3), (5, 5, 8, 8), (4, 4, 3, 3), (1, 3, 2, 1)]
        ]
        assert_close_in_each(student.scaled_dot_product_attention, reference.scaled_dot_product_attention, cases)

    @pytest.mark.points(2)
    def test_any_leading_dimensions(self, student, reference, rng):
        """Leading dimensions, such as batch and heads, stay apart."""
        shapes = [(3, 5, 7, 3, 2), (3, 3, 3, 3, 3), (2, 3, 5, 7, 5, 2), (3, 3, 3, 3, 3, 3), (2, 1, 2, 1, 3, 5, 1)]
        cases = [
            (rng.randn(*leading, Tq, d_k), rng.randn(*leading, Tk, d_k), rng.randn(*leading, Tk, d_v))
            for *leading, Tq, Tk, d_k, d_v in shapes
        ]
        assert_close_in_each(student.scaled_dot_product_attention, reference.scaled_dot_product_attention, cases)

    @pytest.mark.points(1)
    def test_large_scores_do_not_overflow(self, student, reference, rng):
        """Scores in the thousands give context vectors, not NaN."""
        arguments = rng.randn(5, 4, scale=100.0), rng.randn(7, 4, scale=100.0), rng.randn(7, 3)
        right = reference.scaled_dot_product_attention(*arguments)
        assert_close(student.scaled_dot_product_attention(*arguments), right, tolerance=LARGE_LOGITS)

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to queries, keys and values."""
        arguments, cotangent = (rng.randn(2, 5, 4), rng.randn(2, 7, 4), rng.randn(2, 7, 3)), rng.randn(2, 5, 3)
        assert_same_gradients(
            student.scaled_dot_product_attention,
            reference.scaled_dot_product_attention,
            *arguments,
            cotangent=cotangent,
        )

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """The result for float64 inputs is as exact as float64 is."""
        arguments = [rng.randn(*shape, dtype=torch.float64) for shape in [(5, 4), (7, 4), (7, 3)]]
        right = reference.scaled_dot_product_attention(*arguments)
        assert_close(student.scaled_dot_product_attention(*arguments), right)

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """Queries, keys and values are left as they were."""
        arguments = rng.randn(5, 4), rng.randn(7, 4), rng.randn(7, 3)
        assert_inputs_unchanged(student.scaled_dot_product_attention, *arguments)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The result is computed on the inputs' device."""
        arguments = rng.randn(5, 4), rng.randn(7, 4), rng.randn(7, 3)
        assert_follows_device(student.scaled_dot_product_attention, *arguments)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the inputs."""
        assert_dtype_kept(
            student.scaled_dot_product_attention,
            *[rng.randn(*s, dtype=torch.float64) for s in [(5, 4), (7, 4), (7, 3)]],
        )
