"""The hidden graders of `scaled_softmax`."""

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


@pytest.mark.exercise("scaled_softmax", forbids=[LIBRARY_ATTENTION])
class TestScaledSoftmax:
    @pytest.mark.public
    @pytest.mark.points(1)
    def test_six_words(self, student):
        """The second word's weights are those of the worked example."""
        queries, keys, _ = projections()
        scores = (queries.double() @ keys.double().T).float()  # (6, 6)
        weights = student.scaled_softmax(scores, 2)
        assert_close(row(weights, 1), golden([0.1500, 0.2264, 0.2199, 0.1311, 0.0906, 0.1820]))

    @pytest.mark.public
    @pytest.mark.points(1)
    def test_keys_of_width_24(self, student):
        """Scores of keys of width 24 are divided by the square root of 24."""
        scores = torch.tensor([[8.5808, -7.6597, 3.2558, 1.0395, 11.1466, -0.4800]])
        weights = student.scaled_softmax(scores, 24)  # (1, 6)
        assert_close(row(weights, 0), golden([0.2912, 0.0106, 0.0982, 0.0625, 0.4917, 0.0458]))

    @pytest.mark.points(2)
    def test_divided_by_the_root_of_d_k(self, student, reference, rng):
        """The scores are divided by the square root of d_k, whatever the number of tokens."""
        scores = rng.randn(5, 5, scale=3.0)
        assert_close_in_each(
            student.scaled_softmax, reference.scaled_softmax, [(scores, d_k) for d_k in (3, 1, 12, 64)]
        )

    @pytest.mark.points(2)
    def test_softmax_runs_over_the_keys(self, student, reference, rng):
        """Each query's weights sum to 1 over the keys, the last dimension, for any leading dimensions."""
        shapes = [(5, 7), (3, 5, 7), (2, 3, 5, 7), (4, 4, 4, 4), (1, 1, 7), (2, 1, 2, 1, 3)]
        cases = [(rng.randn(*shape, scale=2.0), 4) for shape in shapes]
        assert_close_in_each(student.scaled_softmax, reference.scaled_softmax, cases)

    @pytest.mark.points(1)
    def test_large_scores_do_not_overflow(self, student, reference, rng):
        """Scores in the thousands give weights, not NaN."""
        scores = rng.randn(5, 5, scale=1e4)  # square, so that a lost dimension raises no error
        right = reference.scaled_softmax(scores, 4)
        assert_close(student.scaled_softmax(scores, 4), right, tolerance=LARGE_LOGITS)

    @pytest.mark.points(1)
    def test_gradients_reach_the_scores(self, student, reference, rng):
        """Gradients flow back to the scores."""
        scores, cotangent = rng.randn(2, 5, 7), rng.randn(2, 5, 7)
        assert_same_gradients(student.scaled_softmax, reference.scaled_softmax, scores, 4, cotangent=cotangent)

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """Weights of float64 scores are as exact as float64 is."""
        scores = rng.randn(5, 7, dtype=torch.float64)
        assert_close(student.scaled_softmax(scores, 4), reference.scaled_softmax(scores, 4))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The weights have the dtype of the scores."""
        assert_dtype_kept(student.scaled_softmax, rng.randn(5, 7, dtype=torch.float64), 4)

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """The scores are left as they were."""
        assert_inputs_unchanged(student.scaled_softmax, rng.randn(5, 7), 4)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The weights are computed on the scores' device."""
        assert_follows_device(student.scaled_softmax, rng.randn(5, 7), 4)
