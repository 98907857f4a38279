"""What the mistakes in this exercise are made in: right but for what a mistake changes."""

from ..multi_head_attention.right import RightHeads


class RightEfficient(RightHeads):
    """Every step as it should be. A mistake that MultiHeadAttention knows too keeps its sentence."""

    projections = ("W_query",)

    def project(self, x):
        return self.W_query(x), x, x
