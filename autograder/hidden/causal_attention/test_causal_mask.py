"""The hidden graders of `causal_mask`."""

import pytest
import torch

from autograder.compare import assert_close, golden
from autograder.hidden.statements import (
    assert_dtype,
)
from autograder.sandbox.inside.library_calls import LIBRARY_ATTENTION


@pytest.mark.exercise("causal_mask", forbids=[LIBRARY_ATTENTION])
class TestCausalMask:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_four_tokens(self, student):
        """For four tokens exactly the six places above the diagonal are hidden."""
        right = golden([[0, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0]])
        assert_close(student.causal_mask(4), right)

    @pytest.mark.points(2)
    def test_other_sizes(self, student, reference):
        """It has shape (T, T) for every number of tokens, one token included."""
        for num_tokens in (6, 2, 1, 70):
            assert_close(student.causal_mask(num_tokens), golden(reference.causal_mask(num_tokens).value))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_bool(self, student):
        """The mask is a bool tensor, as masked_fill and torch.where want it."""
        assert_dtype(student.causal_mask(4), torch.bool)
