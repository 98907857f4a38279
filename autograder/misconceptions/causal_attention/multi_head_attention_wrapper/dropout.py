"""Mistakes of the kind "dropout"."""

import torch
from torch import nn

from solutions.causal_attention import CausalAttention

from ....catalogue import misconception
from .right import RightHeads, SideBySide


@misconception("MultiHeadAttentionWrapper", kind="dropout", caught_by="test_dropout_in_training")
class DropoutOnTheHeads(RightHeads):
    """Dropout is on the heads' results as well; dropout on each head's weights is all there is."""

    def forward(self, x):
        p = self.heads[0].dropout.p if len(self.heads) else 0.0
        return nn.functional.dropout(torch.cat([head(x) for head in self.heads], dim=-1), p, self.training)


@misconception("MultiHeadAttentionWrapper", kind="dropout", caught_by="test_dropout_in_training")
class SameDropInEveryHead(RightHeads):
    """A seed is set for each head's call, so that all heads drop the same weights; leave seeds to the caller."""

    def forward(self, x):
        results = []
        for head in self.heads:
            torch.manual_seed(0)
            results.append(head(x))
        return torch.cat(results, dim=-1)


@misconception("MultiHeadAttentionWrapper", kind="dropout", caught_by="test_dropout_in_training")
class DropoutNotPassedOn(SideBySide):
    """No head drops anything in training: pass dropout on to each CausalAttention, which drops while train() is on."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, 0.0, qkv_bias) for _ in range(num_heads)
        )


@misconception("MultiHeadAttentionWrapper", kind="dropout", caught_by="test_after_eval")
class AlwaysTraining(RightHeads):
    """The heads drop after eval() too; what drops has to follow train() and eval(), and nothing else may call them."""

    def forward(self, x):
        self.heads.train()
        return torch.cat([head(x) for head in self.heads], dim=-1)


@misconception("MultiHeadAttentionWrapper", kind="dropout", caught_by="test_dropout_in_training")
class DropoutOnTheResultOnly(SideBySide):
    """Dropout is on the heads' results; it belongs on the weights within each CausalAttention."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, 0.0, qkv_bias) for _ in range(num_heads)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(torch.cat([head(x) for head in self.heads], dim=-1))


@misconception("MultiHeadAttentionWrapper", kind="dropout", caught_by="test_heads_side_by_side")
class HalfDroppedInEveryHead(SideBySide):
    """Every head drops half of its weights whatever `dropout` is; pass dropout on to each CausalAttention."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, 0.5, qkv_bias) for _ in range(num_heads)
        )
