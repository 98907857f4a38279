"""The hidden graders of `split_heads`."""

import pytest
import torch

from autograder.compare import assert_close, golden
from autograder.hidden.multi_head_attention.worked_examples import QUERIES, QUERIES_BY_HEAD, twice
from autograder.hidden.statements import (
    assert_dtype_kept,
    assert_follows_device,
    assert_inputs_unchanged,
    assert_refuses,
    assert_same_gradients,
)
from autograder.sandbox.inside.library_calls import LIBRARY_ATTENTION


@pytest.mark.exercise("split_heads", forbids=[LIBRARY_ATTENTION])
class TestSplitHeads:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_worked_example(self, student):
        """Three queries of width 6 become two heads of width 3, as in the worked example."""
        assert_close(student.split_heads(twice(QUERIES), 2), golden(twice(QUERIES_BY_HEAD)))

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_other_shapes(self, student, reference, rng):
        """Head 0 gets the first piece of every token, head 1 the second, and so on."""
        for b, num_tokens, d, h in [(2, 5, 12, 3), (3, 4, 10, 5)]:
            x = rng.randn(b, num_tokens, d)
            assert_close(student.split_heads(x, h), reference.split_heads(x, h))

    @pytest.mark.points(2)
    def test_equal_sizes(self, student, reference, rng):
        """Batch, tokens and heads keep their places where their sizes are equal, or 1."""
        for b, num_tokens, d, h in [(4, 4, 16, 4), (3, 3, 6, 3), (3, 1, 6, 2), (2, 5, 4, 1), (1, 5, 3, 3)]:
            x = rng.randn(b, num_tokens, d)
            assert_close(student.split_heads(x, h), reference.split_heads(x, h))

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the input."""
        x, cotangent = rng.randn(2, 5, 12), rng.randn(2, 3, 5, 4)
        assert_same_gradients(student.split_heads, reference.split_heads, x, 3, cotangent=cotangent)

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """float64 numbers come out as they went in."""
        x = rng.randn(2, 5, 12, dtype=torch.float64)
        assert_close(student.split_heads(x, 3), reference.split_heads(x, 3))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_refuses_what_cannot_be_split(self, student, rng):
        """Where the width is not divisible by the number of heads it raises ValueError or AssertionError."""
        for d, h in [(6, 4), (3, 2), (2, 4)]:
            assert_refuses(student, student.split_heads, rng.randn(2, 8, d), h)

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_input_is_unchanged(self, student, rng):
        """The input is left as it was."""
        assert_inputs_unchanged(student.split_heads, rng.randn(2, 5, 12), 3)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The result is on the input's device."""
        assert_follows_device(student.split_heads, rng.randn(2, 5, 12), 3)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the input."""
        assert_dtype_kept(student.split_heads, rng.randn(2, 5, 12, dtype=torch.float64), 3)
