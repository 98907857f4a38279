"""Mistakes of the kind "initialisation"."""

from torch import nn

from ....catalogue import misconception
from ..multi_head_attention.initialisation import (
    LayersStartedAnew,
    MaskIsAParameter,
    OutProjBiasLikeTheOthers,
    OutProjNotMade,
    OutProjWithoutBias,
    QkvBiasAlwaysOn,
    QkvBiasIgnored,
    SeedSetWhenBuilt,
)
from ..multi_head_attention.right import RightHeads
from .right import RightOptimized


@misconception("OptimizedMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class OptimizedMaskIsAParameter(MaskIsAParameter, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="initialisation", caught_by="test_seeds_matter")
class OptimizedSeedSetWhenBuilt(SeedSetWhenBuilt, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class OptimizedOutProjNotMade(OutProjNotMade, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class OptimizedOutProjWithoutBias(OutProjWithoutBias, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="initialisation", caught_by="test_bias")
class OptimizedQkvBiasIgnored(QkvBiasIgnored, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class OptimizedQkvBiasAlwaysOn(QkvBiasAlwaysOn, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class OptimizedOutProjBiasLikeTheOthers(OutProjBiasLikeTheOthers, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="initialisation", caught_by="test_seed_123")
class OptimizedLayersStartedAnew(LayersStartedAnew, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class OptimizedProjectsValues(RightHeads):
    """W_value is still there and makes the values; leave it out: the input itself, split into heads, is the value."""

    pass


@misconception("OptimizedMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class OptimizedKeepsWValue(RightOptimized):
    """W_value is still made, though nothing uses it; leave the layer out."""

    projections = ("W_query", "W_key", "W_value")


@misconception("OptimizedMultiHeadAttention", kind="initialisation", caught_by="test_seed_123")
class OptimizedOutProjMadeFirst(RightOptimized):
    """out_proj is created before the projections; under a fixed seed the order is W_query, W_key, out_proj."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        out_proj = nn.Linear(d_out, d_out)
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.out_proj = out_proj


@misconception("OptimizedMultiHeadAttention", kind="initialisation", caught_by="test_seed_123")
class OptimizedKeysMadeFirst(RightOptimized):
    """W_key is created before W_query; under a fixed seed the order is W_query, W_key, out_proj."""

    projections = ("W_key", "W_query")


@misconception("OptimizedMultiHeadAttention", kind="initialisation", caught_by="test_seed_123")
class OptimizedDrawsAsIfWithWValue(RightOptimized):
    """out_proj starts from other numbers, as if a third layer came before it; create W_query, W_key, out_proj only."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
