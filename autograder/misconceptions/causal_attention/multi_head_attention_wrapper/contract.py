"""Mistakes of the kind "contract"."""

import torch
from torch import nn

from solutions.causal_attention import CausalAttention

from ....catalogue import misconception
from .right import RightHeads, SideBySide


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_heads_side_by_side")
class HeadsStacked(RightHeads):
    """The heads' results are stacked along a new first dimension; put them side by side: torch.cat(..., dim=-1)."""

    def forward(self, x):
        return torch.stack([head(x) for head in self.heads])


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_heads_side_by_side")
class HeadsInADimensionOfTheirOwn(RightHeads):
    """The heads' results are stacked along a new dimension before the last; torch.cat(..., dim=-1) makes none."""

    def forward(self, x):
        return torch.stack([head(x) for head in self.heads], dim=-2)


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_heads_side_by_side")
class ListOfResults(RightHeads):
    """The result is a list of the heads' results; concatenate them: torch.cat(..., dim=-1)."""

    def forward(self, x):
        return [head(x) for head in self.heads]


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_parameters")
class HeadsInAPlainList(SideBySide):
    """The heads are in no nn.ModuleList that __init__ makes (a plain list?), so no optimizer finds their parameters."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = [CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)]


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_heads_side_by_side")
class HeadsDividedAmongDOut(SideBySide):
    """Each head is d_out // num_heads wide; here d_out is the width of one head, and the result is wider."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out // num_heads, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_parameters")
class HeadsUnderAnotherName(nn.Module):
    """The heads are kept under another name; the nn.ModuleList is called `heads`."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.attention_heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x):
        return torch.cat([head(x) for head in self.attention_heads], dim=-1)


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_parameters")
class ProjectionAdded(nn.Module):
    """A linear layer is added after the heads; their results side by side are the result."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )
        self.out_proj = nn.Linear(num_heads * d_out, num_heads * d_out)

    def forward(self, x):
        return self.out_proj(torch.cat([head(x) for head in self.heads], dim=-1))


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_parameters")
class HeadsOfTheLibrary(nn.Module):
    """The heads are nn.MultiheadAttention; put your own CausalAttention into the list."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            nn.MultiheadAttention(d_in, 1, dropout, qkv_bias, batch_first=True) for _ in range(num_heads)
        )

    def forward(self, x):
        return torch.cat([head(x, x, x, need_weights=False)[0] for head in self.heads], dim=-1)


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_heads_side_by_side")
class HeadsStackedLast(RightHeads):
    """The heads' results are stacked along a new last dimension; torch.cat(..., dim=-1) makes none."""

    def forward(self, x):
        return torch.stack([head(x) for head in self.heads], dim=-1)


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_heads_side_by_side")
class TupleOfResults(RightHeads):
    """The result is a tuple of the heads' results; concatenate them: torch.cat(..., dim=-1)."""

    def forward(self, x):
        return tuple(head(x) for head in self.heads)


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_heads_side_by_side")
class NoResultReturned(RightHeads):
    """forward returns nothing (None); end it with `return` and the heads' results side by side."""

    def forward(self, x):
        torch.cat([head(x) for head in self.heads], dim=-1)


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_heads_side_by_side")
class ResultTransposed(RightHeads):
    """The result is transposed, (b, h*d_out, T); its shape is (b, T, h*d_out)."""

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1).transpose(1, 2)


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_heads_side_by_side")
class FirstSequencesOfHeads(RightHeads):
    """The first sequence of each head's result is taken (head(x)[0]); a head returns one tensor, the whole batch."""

    def forward(self, x):
        return torch.cat([head(x)[0] for head in self.heads], dim=-1)


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_parameters")
class ProjectionFirst(SideBySide):
    """A linear layer is made before the heads and follows them; their results side by side are the result."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.out_proj = nn.Linear(num_heads * d_out, num_heads * d_out)
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )

    def forward(self, x):
        return self.out_proj(torch.cat([head(x) for head in self.heads], dim=-1))


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_parameters")
class ProjectionUnused(SideBySide):
    """There is a linear layer out_proj that nothing uses; the heads are all that is asked for."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )
        self.out_proj = nn.Linear(num_heads * d_out, num_heads * d_out)


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_parameters")
class HeadsInADict(SideBySide):
    """The heads are in an nn.ModuleDict; `heads` is an nn.ModuleList, so that they are called heads.0, heads.1, ..."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleDict(
            {f"head_{i}": CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for i in range(num_heads)}
        )

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads.values()], dim=-1)


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_heads_side_by_side")
class DropoutAndContextLengthSwapped(SideBySide):
    """A head gets another argument as dropout; the order is d_in, d_out, context_length, dropout, then qkv_bias."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, dropout, context_length, qkv_bias) for _ in range(num_heads)
        )


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_heads_side_by_side")
class HeadsWidthsSwapped(SideBySide):
    """d_in and d_out are swapped on the way to the heads' layers: d_in comes first, in nn.Linear too."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_out, d_in, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_parameters")
class OneProjectionForAllHeads(nn.Module):
    """There are no heads: W_query, W_key and W_value serve all of them; keep num_heads modules in `heads`."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, num_heads * d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, num_heads * d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, num_heads * d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        b, num_tokens, _ = x.shape
        layers = self.W_query, self.W_key, self.W_value
        queries, keys, values = (layer(x).view(b, num_tokens, self.num_heads, -1).transpose(1, 2) for layer in layers)
        scores = queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5
        scores = scores.masked_fill(torch.ones_like(scores).triu(diagonal=1).bool(), float("-inf"))
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return (weights @ values).transpose(1, 2).reshape(b, num_tokens, -1)


@misconception("MultiHeadAttentionWrapper", kind="contract", caught_by="test_heads_side_by_side")
class WrapperWithoutSuper(SideBySide):
    """super().__init__() is missing or not called; it comes first in __init__."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )
