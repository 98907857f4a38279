"""Mistakes of the kind "value"."""

import torch
from torch import nn

from solutions.causal_attention import CausalAttention

from ....catalogue import misconception
from .right import RightHeads, SideBySide


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class HeadsBelowEachOther(RightHeads):
    """The heads are concatenated along the tokens (dim=1); their vectors stand side by side: dim=-1."""

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=1)


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class HeadsInTheBatch(RightHeads):
    """The heads are concatenated along the batch (dim=0); their vectors stand side by side: dim=-1."""

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=0)


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class HeadsSummed(RightHeads):
    """The heads' results are added up; put them side by side: torch.cat(..., dim=-1)."""

    def forward(self, x):
        return sum(head(x) for head in self.heads)


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class HeadsAveraged(RightHeads):
    """The heads' results are averaged; put them side by side: torch.cat(..., dim=-1)."""

    def forward(self, x):
        return torch.stack([head(x) for head in self.heads]).mean(dim=0)


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class HeadsInterleaved(RightHeads):
    """The heads' numbers alternate; all of head 0 comes first, then all of head 1: torch.cat(..., dim=-1)."""

    def forward(self, x):
        return torch.stack([head(x) for head in self.heads], dim=-1).flatten(2)


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class HeadsReversed(RightHeads):
    """The heads stand in reverse order; head 0 comes first."""

    def forward(self, x):
        return torch.cat([head(x) for head in reversed(self.heads)], dim=-1)


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class FirstHeadRepeated(RightHeads):
    """The first head's result stands there num_heads times; call each head."""

    def forward(self, x):
        return torch.cat([self.heads[0](x) for _ in self.heads], dim=-1)


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class OneHeadReturned(RightHeads):
    """Only one head's result is returned; put all of them side by side."""

    def forward(self, x):
        return self.heads[0](x)


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class ContextLengthNotPassedOn(SideBySide):
    """The heads are built for other numbers of tokens than context_length; pass context_length on to each."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(CausalAttention(d_in, d_out, d_out, dropout, qkv_bias) for _ in range(num_heads))


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class HeadsOneAfterTheOther(RightHeads):
    """Each head gets the result of the one before; every head takes x itself."""

    def forward(self, x):
        for head in self.heads:
            x = head(x)
        return x


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class InputSplitAmongHeads(RightHeads):
    """x is split among the heads; every head takes all of x."""

    def forward(self, x):
        parts = x.chunk(len(self.heads), dim=-1)
        return torch.cat([head(part) for head, part in zip(self.heads, parts, strict=False)], dim=-1)


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class HeadsMixedWithTokens(RightHeads):
    """view or reshape mixes heads and tokens; put the results side by side: torch.cat(..., dim=-1)."""

    def forward(self, x):
        stacked = torch.stack([head(x) for head in self.heads], dim=1)  # (b, h, T, d_out)
        return stacked.reshape(x.shape[0], x.shape[1], -1)


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class LastHeadReturned(RightHeads):
    """Only the last head's result is returned; collect all of them and put them side by side."""

    def forward(self, x):
        return self.heads[-1](x)


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class OneHeadTooMany(SideBySide):
    """There is one head too many; num_heads says how many."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads + 1)
        )


@misconception("MultiHeadAttentionWrapper", kind="value", caught_by="test_heads_side_by_side")
class OneHeadTooFew(SideBySide):
    """There is one head too few (range(1, num_heads)?); num_heads says how many."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(1, num_heads)
        )
