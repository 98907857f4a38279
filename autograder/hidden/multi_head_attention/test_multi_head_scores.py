"""The hidden graders of `multi_head_scores`."""

import pytest
import torch

from autograder.compare import assert_close, golden
from autograder.hidden.multi_head_attention.worked_examples import KEYS_BY_HEAD, QUERIES_BY_HEAD, twice
from autograder.hidden.statements import (
    assert_dtype_kept,
    assert_follows_device,
    assert_inputs_unchanged,
    assert_same_gradients,
)
from autograder.sandbox.inside.library_calls import LIBRARY_ATTENTION


@pytest.mark.exercise("multi_head_scores", forbids=[LIBRARY_ATTENTION])
class TestMultiHeadScores:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_worked_example(self, student):
        """The scores of the two heads are those of the worked example."""
        right = [
            [[-0.1297, 0.0669, -0.0021], [-0.0261, 0.0528, 0.0082], [-0.2096, 0.0390, -0.0267]],
            [[0.3337, 0.1287, 0.1743], [0.1751, 0.1163, 0.2615], [0.4345, 0.1396, 0.1754]],
        ]
        scores = student.multi_head_scores(twice(QUERIES_BY_HEAD), twice(KEYS_BY_HEAD))
        assert_close(scores, golden([right, right]))

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_other_shapes(self, student, reference, rng):
        """Every query of a head meets every key of the same head, and the scores are not scaled yet."""
        for shape in [(2, 3, 5, 4), (3, 2, 4, 6)]:
            queries, keys = rng.randn(*shape), rng.randn(*shape)
            assert_close(student.multi_head_scores(queries, keys), reference.multi_head_scores(queries, keys))

    @pytest.mark.points(2)
    def test_equal_sizes(self, student, reference, rng):
        """Batch and heads stay apart also where sizes are equal, or 1."""
        for shape in [(4, 4, 4, 4), (3, 3, 5, 3), (1, 4, 3, 2), (3, 1, 5, 4), (2, 3, 1, 4), (2, 3, 5, 1)]:
            queries, keys = rng.randn(*shape), rng.randn(*shape)
            assert_close(student.multi_head_scores(queries, keys), reference.multi_head_scores(queries, keys))

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the queries and to the keys."""
        queries, keys, cotangent = rng.randn(2, 3, 5, 4), rng.randn(2, 3, 5, 4), rng.randn(2, 3, 5, 5)
        assert_same_gradients(
            student.multi_head_scores, reference.multi_head_scores, queries, keys, cotangent=cotangent
        )

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """Scores of float64 inputs are as exact as float64 is."""
        queries, keys = (rng.randn(2, 3, 5, 4, dtype=torch.float64) for _ in range(2))
        assert_close(student.multi_head_scores(queries, keys), reference.multi_head_scores(queries, keys))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """Queries and keys are left as they were."""
        assert_inputs_unchanged(student.multi_head_scores, rng.randn(2, 3, 5, 4), rng.randn(2, 3, 5, 4))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The scores are computed on the inputs' device."""
        assert_follows_device(student.multi_head_scores, rng.randn(2, 3, 5, 4), rng.randn(2, 3, 5, 4))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The scores have the dtype of the inputs."""
        assert_dtype_kept(student.multi_head_scores, *(rng.randn(2, 3, 5, 4, dtype=torch.float64) for _ in range(2)))
