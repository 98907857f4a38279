"""The hidden graders of `project_qkv`."""

import pytest
import torch

from autograder.compare import assert_close, golden, rows
from autograder.hidden.self_attention.worked_examples import seed_123_weights
from autograder.hidden.statements import (
    assert_close_in_each,
    assert_dtype_kept,
    assert_follows_device,
    assert_inputs_unchanged,
    assert_same_gradients,
)
from autograder.sandbox.inside.library_calls import LIBRARY_ATTENTION
from autograder.six_words import SIX_WORDS


@pytest.mark.exercise("project_qkv", forbids=[LIBRARY_ATTENTION])
class TestProjectQKV:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_second_word(self, student):
        """Query, key and value of journey are those of the worked example."""
        results = student.project_qkv(SIX_WORDS, *seed_123_weights())
        right = golden([0.4306, 1.4551]), golden([0.4433, 1.1419]), golden([0.3951, 1.0037])
        assert_close(rows(results, 1), right)

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_other_widths(self, student, reference, rng):
        """Values may be wider or narrower than queries and keys."""
        cases = [
            (rng.randn(T, d_in), rng.randn(d_in, d_k), rng.randn(d_in, d_k), rng.randn(d_in, d_v))
            for T, d_in, d_k, d_v in [(5, 3, 4, 2), (4, 3, 2, 5), (1, 4, 3, 1)]
        ]
        assert_close_in_each(student.project_qkv, reference.project_qkv, cases)

    @pytest.mark.points(1)
    def test_square_weights(self, student, reference, rng):
        """Square weights are used as they are, not transposed."""
        arguments = rng.randn(5, 3), rng.randn(3, 3), rng.randn(3, 3), rng.randn(3, 3)
        assert_close(student.project_qkv(*arguments), reference.project_qkv(*arguments))

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the inputs and to all three weights."""
        arguments = rng.randn(5, 3), rng.randn(3, 4), rng.randn(3, 4), rng.randn(3, 2)
        cotangents = rng.randn(5, 4), rng.randn(5, 4), rng.randn(5, 2)
        assert_same_gradients(student.project_qkv, reference.project_qkv, *arguments, cotangent=cotangents)

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """The projections of float64 inputs are as exact as float64 is."""
        arguments = [rng.randn(*shape, dtype=torch.float64) for shape in [(5, 3), (3, 4), (3, 4), (3, 2)]]
        assert_close(student.project_qkv(*arguments), reference.project_qkv(*arguments))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """Inputs and weights are left as they were."""
        assert_inputs_unchanged(student.project_qkv, rng.randn(5, 3), rng.randn(3, 4), rng.randn(3, 4), rng.randn(3, 2))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The projections are computed on the inputs' device."""
        assert_follows_device(student.project_qkv, rng.randn(5, 3), rng.randn(3, 4), rng.randn(3, 4), rng.randn(3, 2))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The results have the dtype of the inputs."""
        assert_dtype_kept(
            student.project_qkv, *[rng.randn(*s, dtype=torch.float64) for s in [(5, 3), (3, 4), (3, 4), (3, 2)]]
        )
