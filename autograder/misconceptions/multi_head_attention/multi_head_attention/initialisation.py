"""Mistakes of the kind "initialisation"."""

import torch
import torch.nn.functional as F
from torch import nn

from ....catalogue import misconception
from .right import RightHeads


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class MaskIsAParameter(RightHeads):
    """The mask is a parameter, which counts as something to learn; register it as a buffer."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        del self.mask
        self.mask = nn.Parameter(torch.ones(context_length, context_length).triu(1).bool(), requires_grad=False)


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_seeds_matter")
class SeedSetWhenBuilt(RightHeads):
    """A seed is set inside __init__, so every instance starts with the same weights; leave seeds to the caller."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        torch.manual_seed(123)
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class OutProjNotMade(RightHeads):
    """There is no out_proj; make the layer nn.Linear(d_out, d_out) and apply it to the merged heads."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.out_proj = nn.Identity()


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class OutProjWithoutBias(RightHeads):
    """out_proj has no bias; it has one whatever qkv_bias says: nn.Linear(d_out, d_out)."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.out_proj.bias = None


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class OutProjBiasLikeTheOthers(RightHeads):
    """out_proj takes its bias from qkv_bias, which is for the three projections; out_proj always has one."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        if not qkv_bias:
            self.out_proj.bias = None


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class OutProjForEachHead(RightHeads):
    """out_proj is as narrow as one head; it goes from d_out to d_out, so that it can mix what all heads found."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.out_proj = nn.Linear(self.head_dim, self.head_dim)

    def merge(self, context):
        return context

    def forward(self, x):
        return super().forward(x).transpose(1, 2).flatten(2)


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_bias")
class QkvBiasIgnored(RightHeads):
    """qkv_bias is ignored: the projections never have a bias; pass bias=qkv_bias to each."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads)


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class QkvBiasAlwaysOn(RightHeads):
    """The projections have a bias that was not asked for: qkv_bias is False by default, and goes to each as bias."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, True)


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_seed_123")
class OutProjMadeFirst(RightHeads):
    """out_proj is created before the projections; under a fixed seed the order is W_query, W_key, W_value, out_proj."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        out_proj = nn.Linear(d_out, d_out)
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.out_proj = out_proj


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_seed_123")
class KeysMadeFirst(RightHeads):
    """W_key is created before W_query; under a fixed seed the order is W_query, W_key, W_value, out_proj."""

    projections = ("W_key", "W_query", "W_value")


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_seed_123")
class ValuesMadeFirst(RightHeads):
    """W_value is created before the others; under a fixed seed the order is W_query, W_key, W_value, out_proj."""

    projections = ("W_value", "W_query", "W_key")


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_seed_123")
class LayersStartedAnew(RightHeads):
    """The layers' weights are drawn a second time (nn.init); leave them as nn.Linear draws them."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        for name in (*self.projections, "out_proj"):
            nn.init.xavier_uniform_(getattr(self, name).weight)


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class EveryHeadAsWideAsDOut(RightHeads):
    """Every head is as wide as d_out; the heads share it, so that each is d_out / num_heads wide."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out * num_heads, context_length, dropout, num_heads, qkv_bias)
        self.out_proj = nn.Linear(d_out * num_heads, d_out)


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class LayersInAList(RightHeads):
    """The projections stand in a plain list, where no optimizer finds them; assign each to self."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.layers = [self.W_query, self.W_key, self.W_value]
        del self.W_query, self.W_key, self.W_value

    def project(self, x):
        return [layer(x) for layer in self.layers]


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class LayersForEachHead(nn.Module):
    """Each head has layers of its own; here all heads share W_query, W_key and W_value, and get a piece of each."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0
        self.W_query, self.W_key, self.W_value = (
            nn.ModuleList(nn.Linear(d_in, d_out // num_heads, bias=qkv_bias) for _ in range(num_heads))
            for _ in range(3)
        )
        self.out_proj = nn.Linear(d_out, d_out)
        self.p = dropout

    def forward(self, x):
        p, heads = self.p if self.training else 0.0, zip(self.W_query, self.W_key, self.W_value, strict=True)
        found = [F.scaled_dot_product_attention(q(x), k(x), v(x), dropout_p=p, is_causal=True) for q, k, v in heads]
        return self.out_proj(torch.cat(found, dim=-1))


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class MatricesForLayers(RightHeads):
    """The projections are nn.Parameter matrices; make them nn.Linear layers."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        del self.W_query, self.W_key, self.W_value
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def project(self, x):
        return x @ self.W_query, x @ self.W_key, x @ self.W_value


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_context_vectors")
class LayersMadeInForward(RightHeads):
    """The projections are made anew in forward, with new random weights each time; make them once, in __init__."""

    def project(self, x):
        return [
            nn.Linear(x.shape[-1], layer.out_features).to(x)(x) for layer in (self.W_query, self.W_key, self.W_value)
        ]


@misconception("MultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class WrapperOfSingleHeads(RightHeads):
    """`heads` is a list of modules with layers of their own; here all heads share W_query, W_key, W_value, and get a
    piece of each."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        out_proj = self.out_proj
        del self.W_query, self.W_key, self.W_value, self.out_proj
        self.heads = nn.ModuleList(
            nn.ModuleDict({name: nn.Linear(d_in, self.head_dim, bias=qkv_bias) for name in self.projections})
            for _ in range(num_heads)
        )
        self.out_proj = out_proj

    def project(self, x):
        return [torch.cat([head[name](x) for head in self.heads], dim=-1) for name in self.projections]
