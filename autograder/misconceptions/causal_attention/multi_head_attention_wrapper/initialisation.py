"""Mistakes of the kind "initialisation"."""

import torch
from torch import nn

from solutions.causal_attention import CausalAttention

from ....catalogue import misconception
from .right import SideBySide


@misconception("MultiHeadAttentionWrapper", kind="initialisation", caught_by="test_parameters")
class OneHeadManyTimes(SideBySide):
    """The list holds the same head num_heads times; make a new CausalAttention for each place."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList([CausalAttention(d_in, d_out, context_length, dropout, qkv_bias)] * num_heads)


@misconception("MultiHeadAttentionWrapper", kind="initialisation", caught_by="test_bias")
class BiasNotPassedOn(SideBySide):
    """The heads have no bias with qkv_bias=True: pass qkv_bias on to each CausalAttention, and there to its layers."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(CausalAttention(d_in, d_out, context_length, dropout) for _ in range(num_heads))


@misconception("MultiHeadAttentionWrapper", kind="initialisation", caught_by="test_seeds_matter")
class SeedSetForEachHead(SideBySide):
    """A seed is set inside, so every instance starts with the same weights; leave seeds to the caller."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        torch.manual_seed(123)
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)
        )


@misconception("MultiHeadAttentionWrapper", kind="initialisation", caught_by="test_parameters")
class BiasInEveryHead(SideBySide):
    """The heads have a bias that was not asked for; pass qkv_bias on to each CausalAttention, False by default."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList(
            CausalAttention(d_in, d_out, context_length, dropout, True) for _ in range(num_heads)
        )


@misconception("MultiHeadAttentionWrapper", kind="initialisation", caught_by="test_seeds_matter")
class SeedBeforeEachHead(SideBySide):
    """A seed is set before each head is built, so that all heads start alike; leave seeds to the caller."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList()
        for _ in range(num_heads):
            torch.manual_seed(123)
            self.heads.append(CausalAttention(d_in, d_out, context_length, dropout, qkv_bias))


@misconception("MultiHeadAttentionWrapper", kind="initialisation", caught_by="test_seed_123")
class HeadsCopied(SideBySide):
    """The heads are copies of one, so that all of them start alike; build a new CausalAttention for each."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        first = CausalAttention(d_in, d_out, context_length, dropout, qkv_bias)
        self.heads = nn.ModuleList([first])
        for _ in range(num_heads - 1):
            head = CausalAttention(d_in, d_out, context_length, dropout, qkv_bias)
            head.load_state_dict(first.state_dict())
            self.heads.append(head)
