"""The hidden graders of `dot_product_scores`."""

import pytest
import torch

from autograder.compare import assert_close, golden
from autograder.hidden.dot_product_attention.worked_examples import SCORES
from autograder.hidden.statements import (
    assert_close_in_each,
    assert_dtype_kept,
    assert_follows_device,
    assert_inputs_unchanged,
    assert_same_gradients,
)
from autograder.sandbox.inside.library_calls import LIBRARY_ATTENTION
from autograder.six_words import SIX_WORDS


@pytest.mark.exercise("dot_product_scores", forbids=[LIBRARY_ATTENTION])
class TestDotProductScores:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_six_words(self, student):
        """The scores of journey are those of the worked example."""
        scores = student.dot_product_scores(SIX_WORDS[1], SIX_WORDS)
        assert_close(scores, golden(SCORES))

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_other_queries(self, student, reference, rng):
        """The query need not be one of the tokens, and tokens may have any width."""
        # A square matrix, and the worked example's width, let mistakes through that other shapes stop with an error.
        cases = [(rng.randn(d), rng.randn(T, d)) for T, d in [(7, 4), (4, 4), (5, 3), (1, 3), (4, 1)]]
        assert_close_in_each(student.dot_product_scores, reference.dot_product_scores, cases)

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the query and to the inputs."""
        query, inputs, cotangent = rng.randn(4), rng.randn(7, 4), rng.randn(7)
        assert_same_gradients(
            student.dot_product_scores, reference.dot_product_scores, query, inputs, cotangent=cotangent
        )

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """Scores of float64 inputs are as exact as float64 is."""
        query, inputs = rng.randn(4, dtype=torch.float64), rng.randn(7, 4, dtype=torch.float64)
        assert_close(student.dot_product_scores(query, inputs), reference.dot_product_scores(query, inputs))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """Query and inputs are left as they were."""
        assert_inputs_unchanged(student.dot_product_scores, rng.randn(4), rng.randn(7, 4))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The scores are computed on the inputs' device."""
        assert_follows_device(student.dot_product_scores, rng.randn(4), rng.randn(7, 4))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the inputs."""
        assert_dtype_kept(
            student.dot_product_scores, rng.randn(4, dtype=torch.float64), rng.randn(7, 4, dtype=torch.float64)
        )
