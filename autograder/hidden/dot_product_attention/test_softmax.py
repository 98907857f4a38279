"""The hidden graders of `softmax`."""

import pytest
import torch

from autograder.compare import LARGE_LOGITS, assert_close, golden
from autograder.hidden.dot_product_attention.worked_examples import SCORES, WEIGHTS
from autograder.hidden.statements import (
    assert_dtype_kept,
    assert_follows_device,
    assert_inputs_unchanged,
    assert_same_gradients,
    in_each,
)
from autograder.sandbox.inside.library_calls import LIBRARY_ATTENTION, LIBRARY_SOFTMAX


@pytest.mark.exercise("softmax", forbids=[LIBRARY_SOFTMAX, LIBRARY_ATTENTION])
class TestSoftmax:
    @pytest.mark.public
    @pytest.mark.points(1)
    def test_six_words(self, student):
        """The six scores of journey become the weights of the worked example."""
        assert_close(student.softmax(SCORES), golden(WEIGHTS))

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_any_dimension(self, student, reference, rng):
        """The weights sum to 1 along dim, whichever it is; without dim, along the last one."""
        cases = [(rng.randn(4, 4, scale=2.0), {}), (rng.randn(3, 3, 3, scale=2.0), {})]
        scores = rng.randn(2, 3, 4, scale=2.0)
        cases += [(scores, {"dim": dim}) for dim in (0, 1, 2, -1, -2)]
        in_each(
            cases, lambda case: assert_close(student.softmax(case[0], **case[1]), reference.softmax(case[0], **case[1]))
        )

    @pytest.mark.points(1)
    def test_large_scores_do_not_overflow(self, student, reference, rng):
        """Scores as large as 1e4, positive or negative, give weights, not NaN."""
        scores = rng.randn(5, 5, scale=1e4)  # square, so that a lost dimension raises no error
        assert_close(student.softmax(scores), reference.softmax(scores), tolerance=LARGE_LOGITS)

    @pytest.mark.points(1)
    def test_rows_far_apart(self, student, reference, rng):
        """Rows are independent, even when one is a thousand times larger than the next."""
        scores = rng.randn(4, 6) + torch.tensor([[0.0], [1000.0], [-1000.0], [10000.0]])
        assert_close(student.softmax(scores), reference.softmax(scores), tolerance=LARGE_LOGITS)

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the scores."""
        scores, cotangent = rng.randn(3, 5), rng.randn(3, 5)
        assert_same_gradients(student.softmax, reference.softmax, scores, cotangent=cotangent)

    @pytest.mark.points(1)
    def test_dtypes(self, student, reference, rng):
        """float64 stays exact; half precision works and stays half precision."""
        for dtype, scale in ((torch.float64, 8.0), (torch.float16, 1.0), (torch.bfloat16, 1.0)):
            scores = rng.randn(3, 5, scale=scale, dtype=dtype)
            assert_close(student.softmax(scores), reference.softmax(scores))
            assert_dtype_kept(student.softmax, scores)

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """The scores are left as they were."""
        assert_inputs_unchanged(student.softmax, rng.randn(3, 5))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The weights are computed on the scores' device."""
        assert_follows_device(student.softmax, rng.randn(3, 5))
