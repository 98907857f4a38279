"""The hidden graders of `merge_heads`."""

import pytest
import torch

from autograder.compare import assert_close, golden
from autograder.hidden.multi_head_attention.worked_examples import CONTEXT_BY_HEAD, twice
from autograder.hidden.statements import (
    assert_dtype_kept,
    assert_follows_device,
    assert_inputs_unchanged,
    assert_same_gradients,
)
from autograder.sandbox.inside.library_calls import LIBRARY_ATTENTION


@pytest.mark.exercise("merge_heads", forbids=[LIBRARY_ATTENTION])
class TestMergeHeads:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_worked_example(self, student):
        """Each token of the worked example gets its piece from head 0, then its piece from head 1."""
        right = [
            [-0.1674, -0.5873, -0.3776, -0.2045, 0.2991, 0.2583],
            [-0.1674, -0.5863, -0.3775, -0.2103, 0.3089, 0.2634],
            [-0.1673, -0.5880, -0.3772, -0.2006, 0.2925, 0.2540],
        ]
        assert_close(student.merge_heads(twice(CONTEXT_BY_HEAD)), golden([right, right]))

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_other_shapes(self, student, reference, rng):
        """(b, h, T, hd) becomes (b, T, h * hd), each token's numbers together."""
        for shape in [(2, 3, 5, 4), (3, 5, 4, 2)]:
            x = rng.randn(*shape)
            assert_close(student.merge_heads(x), reference.merge_heads(x))

    @pytest.mark.points(2)
    def test_equal_sizes(self, student, reference, rng):
        """Batch, heads and tokens keep their places where their sizes are equal."""
        for shape in [(4, 4, 4, 4), (3, 3, 3, 2), (2, 3, 2, 3)]:
            x = rng.randn(*shape)
            assert_close(student.merge_heads(x), reference.merge_heads(x))

    @pytest.mark.points(1)
    def test_one_head_or_one_token(self, student, reference, rng):
        """It works for one head, one token, a batch of one and heads of width 1."""
        for shape in [(2, 1, 5, 4), (2, 3, 1, 4), (1, 1, 1, 4), (2, 1, 4, 1)]:
            x = rng.randn(*shape)
            assert_close(student.merge_heads(x), reference.merge_heads(x))

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the input."""
        x, cotangent = rng.randn(2, 3, 5, 4), rng.randn(2, 5, 12)
        assert_same_gradients(student.merge_heads, reference.merge_heads, x, cotangent=cotangent)

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """float64 numbers come out as they went in."""
        x = rng.randn(2, 3, 5, 4, dtype=torch.float64)
        assert_close(student.merge_heads(x), reference.merge_heads(x))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_input_is_unchanged(self, student, rng):
        """The input is left as it was."""
        assert_inputs_unchanged(student.merge_heads, rng.randn(2, 3, 5, 4))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The result is on the input's device."""
        assert_follows_device(student.merge_heads, rng.randn(2, 3, 5, 4))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the input."""
        assert_dtype_kept(student.merge_heads, rng.randn(2, 3, 5, 4, dtype=torch.float64))
