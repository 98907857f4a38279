"""The hidden graders of `single_query_attention`."""

import pytest
import torch

from autograder.compare import LARGE_LOGITS, assert_close, golden
from autograder.hidden.self_attention.worked_examples import LIFE_IS_SHORT_CONTEXT, life_is_short
from autograder.hidden.statements import (
    assert_close_in_each,
    assert_dtype_kept,
    assert_follows_device,
    assert_inputs_unchanged,
    assert_same_gradients,
)
from autograder.sandbox.inside.library_calls import LIBRARY_ATTENTION


@pytest.mark.exercise("single_query_attention", forbids=[LIBRARY_ATTENTION])
class TestSingleQueryAttention:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_second_word(self, student):
        """The context vector of "is" in "Life is short, eat dessert first" is that of the worked example."""
        context = student.single_query_attention(*life_is_short())
        assert_close(context, golden(LIFE_IS_SHORT_CONTEXT))

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_other_widths(self, student, reference, rng):
        """Values may be wider or narrower than keys."""
        cases = [
            (rng.randn(d_k, scale=2.0), rng.randn(T, d_k), rng.randn(T, d_v))
            for T, d_k, d_v in [(7, 5, 3), (3, 8, 9), (5, 5, 5), (4, 6, 1)]
        ]
        assert_close_in_each(student.single_query_attention, reference.single_query_attention, cases)

    @pytest.mark.points(1)
    def test_large_scores_do_not_overflow(self, student, reference, rng):
        """Scores in the thousands give a context vector, not NaN."""
        query, keys, values = rng.randn(4, scale=100.0), rng.randn(7, 4, scale=100.0), rng.randn(7, 3)
        right = reference.single_query_attention(query, keys, values)
        assert_close(student.single_query_attention(query, keys, values), right, tolerance=LARGE_LOGITS)

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the query, the keys and the values."""
        arguments = rng.randn(4), rng.randn(7, 4), rng.randn(7, 3)
        assert_same_gradients(
            student.single_query_attention, reference.single_query_attention, *arguments, cotangent=rng.randn(3)
        )

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """The result for float64 inputs is as exact as float64 is."""
        arguments = [rng.randn(*shape, dtype=torch.float64) for shape in [(4,), (7, 4), (7, 3)]]
        assert_close(student.single_query_attention(*arguments), reference.single_query_attention(*arguments))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """Query, keys and values are left as they were."""
        assert_inputs_unchanged(student.single_query_attention, rng.randn(4), rng.randn(7, 4), rng.randn(7, 3))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The result is computed on the inputs' device."""
        assert_follows_device(student.single_query_attention, rng.randn(4), rng.randn(7, 4), rng.randn(7, 3))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the inputs."""
        assert_dtype_kept(
            student.single_query_attention, *[rng.randn(*s, dtype=torch.float64) for s in [(4,), (7, 4), (7, 3)]]
        )
