"""The hidden graders of `attention_scores`."""

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


@pytest.mark.exercise("attention_scores", forbids=[LIBRARY_ATTENTION])
class TestAttentionScores:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_six_words(self, student):
        """The first word's scores are those of the worked example."""
        queries, keys, _ = projections()
        scores = student.attention_scores(queries, keys)
        assert_close(row(scores, 0), golden([0.9231, 1.3545, 1.3241, 0.7910, 0.4032, 1.1330]))

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_every_query_meets_every_key(self, student, reference, rng):
        """Every query is scored against every key, also where there are more keys than queries."""
        cases = [
            (rng.randn(Tq, d_k), rng.randn(Tk, d_k)) for Tq, Tk, d_k in [(5, 7, 4), (4, 4, 4), (1, 3, 2), (3, 1, 1)]
        ]
        assert_close_in_each(student.attention_scores, reference.attention_scores, cases)

    @pytest.mark.points(2)
    def test_any_leading_dimensions(self, student, reference, rng):
        """Leading dimensions, such as batch and heads, stay apart."""
        shapes = [(3, 5, 7, 4), (4, 4, 4, 4), (2, 3, 5, 7, 4), (3, 3, 3, 3, 3), (1, 1, 7, 4), (2, 1, 2, 1, 3, 2)]
        cases = [(rng.randn(*leading, Tq, d_k), rng.randn(*leading, Tk, d_k)) for *leading, Tq, Tk, d_k in shapes]
        assert_close_in_each(student.attention_scores, reference.attention_scores, cases)

    @pytest.mark.points(1)
    def test_gradients_reach_queries_and_keys(self, student, reference, rng):
        """Gradients flow back to the queries and to the keys."""
        queries, keys = rng.randn(2, 5, 4), rng.randn(2, 7, 4)
        cotangent = rng.randn(2, 5, 7)
        assert_same_gradients(student.attention_scores, reference.attention_scores, queries, keys, cotangent=cotangent)

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """Scores of float64 inputs are as exact as float64 is."""
        queries, keys = rng.randn(5, 4, dtype=torch.float64), rng.randn(7, 4, dtype=torch.float64)
        assert_close(student.attention_scores(queries, keys), reference.attention_scores(queries, keys))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The scores have the dtype of the queries."""
        assert_dtype_kept(
            student.attention_scores,
            rng.randn(5, 4, dtype=torch.float64),
            rng.randn(7, 4, dtype=torch.float64),
        )

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """Queries and keys are left as they were."""
        assert_inputs_unchanged(student.attention_scores, rng.randn(5, 4), rng.randn(7, 4))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The scores are computed on the inputs' device."""
        assert_follows_device(student.attention_scores, rng.randn(5, 4), rng.randn(7, 4))
