"""The hidden graders of `causal_head`."""

import pytest
import torch

from autograder.compare import LARGE_LOGITS, assert_close
from autograder.hidden.causality import assert_blind_to_the_future
from autograder.hidden.statements import (
    assert_dtype_kept,
    assert_follows_device,
    assert_inputs_unchanged,
    assert_same_gradients,
)
from autograder.sandbox.inside.library_calls import LIBRARY_ATTENTION


@pytest.mark.exercise("causal_head", forbids=[LIBRARY_ATTENTION])
class TestCausalHead:
    @pytest.mark.public
    @pytest.mark.points(1)
    def test_two_sequences(self, student, reference, rng):
        """Two sequences of three tokens: the first token's result is its own value."""
        arguments = [rng.randn(2, 3, 4) for _ in range(3)]
        assert_close(student.causal_head(*arguments), reference.causal_head(*arguments))

    @pytest.mark.points(2)
    def test_shape_of_the_worked_example(self, student, reference, rng):
        """Four sequences of eight tokens with a head of width 16 give a result of shape (4, 8, 16)."""
        arguments = [rng.randn(4, 8, 16) for _ in range(3)]
        right = reference.causal_head(*arguments)
        assert right.value.shape == (4, 8, 16)
        assert_close(student.causal_head(*arguments), right)

    @pytest.mark.points(2)
    def test_other_shapes(self, student, reference, rng):
        """It is scaled and causal for any numbers of sequences and tokens, and any width."""
        for shape in [(4, 4, 4), (3, 5, 2), (1, 7, 3), (5, 1, 3), (2, 9, 64), (3, 2, 1)]:
            arguments = [rng.randn(*shape, scale=2.0) for _ in range(3)]
            assert_close(student.causal_head(*arguments), reference.causal_head(*arguments))

    @pytest.mark.points(1)
    def test_large_scores(self, student, reference, rng):
        """Scores in the thousands give no NaN, and no weight to the future."""
        queries, keys, values = rng.rand(2, 6, 4) * 100, rng.randn(2, 6, 4) * 30 - 100, rng.randn(2, 6, 4)
        right = reference.causal_head(queries, keys, values)
        assert_close(student.causal_head(queries, keys, values), right, tolerance=LARGE_LOGITS)

    @pytest.mark.points(0.5)
    def test_scores_of_zero(self, student, reference, rng):
        """A query of zeros scores zero with every key, and attends to all that it may see alike."""
        queries, keys, values = (rng.randn(2, 5, 4) for _ in range(3))
        queries[:, 2] = 0.0
        assert_close(student.causal_head(queries, keys, values), reference.causal_head(queries, keys, values))

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to queries, keys and values."""
        *arguments, cotangent = (rng.randn(2, 5, 4) for _ in range(4))
        assert_same_gradients(student.causal_head, reference.causal_head, *arguments, cotangent=cotangent)

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """The result for float64 inputs is as exact as float64 is."""
        arguments = [rng.randn(2, 5, 4, dtype=torch.float64) for _ in range(3)]
        assert_close(student.causal_head(*arguments), reference.causal_head(*arguments))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_blind_to_the_future(self, student, rng):
        """A token's result does not change when tokens after it do."""
        assert_blind_to_the_future(student.causal_head, *(rng.randn(2, 6, 4) for _ in range(3)), width=4)

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """Queries, keys and values are left as they were."""
        assert_inputs_unchanged(student.causal_head, *(rng.randn(2, 5, 4) for _ in range(3)))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The result, and the mask on the way to it, are made on the inputs' device."""
        assert_follows_device(student.causal_head, *(rng.randn(2, 5, 4) for _ in range(3)))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the inputs."""
        assert_dtype_kept(student.causal_head, *(rng.randn(2, 5, 4, dtype=torch.float64) for _ in range(3)))
