"""The hidden graders of `MultiHeadAttention`."""

import pytest

from autograder.compare import assert_close, golden
from autograder.hidden.multi_head_attention.causal_heads import CausalHeads
from autograder.hidden.multi_head_attention.worked_examples import twice
from autograder.six_words import SIX_WORDS


@pytest.mark.exercise("MultiHeadAttention", forbids=[])
class TestMultiHeadAttention(CausalHeads):
    name = "MultiHeadAttention"
    projections = ("W_query", "W_key", "W_value")
    wider = 2

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_seed_123(self, student):
        """Built under seed 123 with two heads and d_out = 2, it gives the six words their vectors of the worked
        example."""
        student.manual_seed(123)
        attention = student.MultiHeadAttention(3, 2, 6, 0.0, 2)
        right = [
            [0.3190, 0.4858],
            [0.2943, 0.3897],
            [0.2856, 0.3593],
            [0.2693, 0.3873],
            [0.2639, 0.3928],
            [0.2575, 0.4028],
        ]
        assert_close(attention(twice(SIX_WORDS)), golden([right, right]))
