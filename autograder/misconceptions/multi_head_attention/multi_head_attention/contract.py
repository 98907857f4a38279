"""Mistakes of the kind "contract"."""

from ....catalogue import misconception
from .right import RightHeads


@misconception("MultiHeadAttention", kind="contract", caught_by="test_refuses_what_cannot_be_split")
class NothingRefused(RightHeads):
    """A d_out that num_heads does not divide is not refused when the module is built; raise ValueError in __init__."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, 1, qkv_bias)
        self.num_heads, self.head_dim = num_heads, d_out // num_heads


@misconception("MultiHeadAttention", kind="contract", caught_by="test_refuses_what_cannot_be_split")
class RefusedByATypeError(RightHeads):
    """An indivisible d_out raises TypeError; its type is right, its value is not: raise ValueError (or use assert)."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        if d_out % num_heads != 0:
            raise TypeError("d_out must be divisible by num_heads")
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)


@misconception("MultiHeadAttention", kind="contract", caught_by="test_context_vectors")
class DInMustBeDivisible(RightHeads):
    """d_in is checked for divisibility; it is d_out that is split into heads, and d_in may be any width."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        assert d_in % num_heads == 0, "d_in must be divisible by num_heads"
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)


@misconception("MultiHeadAttention", kind="contract", caught_by="test_context_vectors")
class HeadsReturnedApart(RightHeads):
    """The heads are returned apart, (b, h, T, hd); merge them, (b, T, d_out), and apply out_proj."""

    def forward(self, x):
        queries, keys, values = (self.split(projected) for projected in self.project(x))
        return self.attend(queries, keys, values)


@misconception("MultiHeadAttention", kind="contract", caught_by="test_context_vectors")
class WeightsReturned(RightHeads):
    """The attention weights are returned; multiply them with the values, merge the heads, apply out_proj."""

    def forward(self, x):
        queries, keys, _ = (self.split(projected) for projected in self.project(x))
        return self.weigh(self.hide(queries @ keys.mT))


@misconception("MultiHeadAttention", kind="contract", caught_by="test_context_vectors")
class ResultInATuple(RightHeads):
    """The result is a tuple, of context vectors and weights; return the context vectors alone."""

    def forward(self, x):
        queries, keys, values = (self.split(projected) for projected in self.project(x))
        weights = self.dropout(self.weigh(self.hide(queries @ keys.mT)))
        return self.out_proj(self.merge(weights @ values)), weights


@misconception("MultiHeadAttention", kind="contract", caught_by="test_context_vectors")
class InputAdded(RightHeads):
    """The input is added to the result (a residual connection); that belongs to the block around this module."""

    def forward(self, x):
        merged = super().forward(x)
        return merged + x[..., : merged.shape[-1]]


@misconception("MultiHeadAttention", kind="contract", caught_by="test_context_vectors")
class NothingReturned(RightHeads):
    """forward returns None; it should end with `return` and the result of out_proj."""

    def forward(self, x):
        super().forward(x)
