"""The hidden graders of `OptimizedMultiHeadAttention`."""

import pytest

from autograder.compare import assert_close, golden
from autograder.hidden.multi_head_attention.causal_heads import CausalHeads
from autograder.hidden.multi_head_attention.worked_examples import THREE_TOKENS, twice


@pytest.mark.exercise("OptimizedMultiHeadAttention", forbids=[])
class TestOptimizedMultiHeadAttention(CausalHeads):
    name = "OptimizedMultiHeadAttention"
    projections = ("W_query", "W_key")

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_seed_123(self, student):
        """Built under seed 123 with two heads, it gives three tokens of width 6 the right vectors."""
        student.manual_seed(123)
        attention = student.OptimizedMultiHeadAttention(6, 6, 3, 0.0, 2)
        right = [
            [-0.0395, 0.2886, 0.5358, 0.1082, 0.6340, -0.1723],
            [0.0924, 0.2635, 0.4175, -0.0971, 0.8621, -0.1494],
            [-0.0216, 0.3041, 0.3614, -0.0687, 0.8802, -0.1010],
        ]
        assert_close(attention(twice(THREE_TOKENS)), golden([right, right]))
