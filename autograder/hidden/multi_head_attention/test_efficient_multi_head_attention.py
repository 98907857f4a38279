"""The hidden graders of `EfficientMultiHeadAttention`."""

import pytest

from autograder.compare import assert_close, golden
from autograder.hidden.multi_head_attention.causal_heads import CausalHeads
from autograder.hidden.multi_head_attention.worked_examples import twice
from autograder.six_words import SIX_WORDS


@pytest.mark.exercise("EfficientMultiHeadAttention", forbids=[])
class TestEfficientMultiHeadAttention(CausalHeads):
    name = "EfficientMultiHeadAttention"
    projections = ("W_query",)

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_seed_123(self, student):
        """Built under seed 123 with three heads, it gives the six words their vectors of the worked example."""
        student.manual_seed(123)
        attention = student.EfficientMultiHeadAttention(3, 3, 6, 0.0, 3)
        right = [
            [0.1366, -0.2666, 0.6299],
            [0.0486, -0.3934, 0.4185],
            [0.0216, -0.4372, 0.3483],
            [-0.0181, -0.3713, 0.3232],
            [-0.0167, -0.3554, 0.2943],
            [-0.0415, -0.3257, 0.2941],
        ]
        assert_close(attention(twice(SIX_WORDS)), golden([right, right]))
