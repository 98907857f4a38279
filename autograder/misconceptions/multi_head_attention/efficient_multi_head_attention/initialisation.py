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
from ..optimized_multi_head_attention.right import RightOptimized
from .right import RightEfficient


@misconception("EfficientMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class EfficientMaskIsAParameter(MaskIsAParameter, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="initialisation", caught_by="test_seeds_matter")
class EfficientSeedSetWhenBuilt(SeedSetWhenBuilt, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class EfficientOutProjNotMade(OutProjNotMade, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class EfficientOutProjWithoutBias(OutProjWithoutBias, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="initialisation", caught_by="test_bias")
class EfficientQkvBiasIgnored(QkvBiasIgnored, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class EfficientQkvBiasAlwaysOn(QkvBiasAlwaysOn, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class EfficientOutProjBiasLikeTheOthers(OutProjBiasLikeTheOthers, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="initialisation", caught_by="test_seed_123")
class EfficientLayersStartedAnew(LayersStartedAnew, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class EfficientProjectsAll(RightHeads):
    """W_key and W_value are still there and used; leave them out: the input, split into heads, is key and value."""

    pass


@misconception("EfficientMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class EfficientProjectsKeys(RightOptimized):
    """W_key is still there and makes the keys; leave it out: the input, split into heads, is key and value."""

    pass


@misconception("EfficientMultiHeadAttention", kind="initialisation", caught_by="test_parameters")
class EfficientKeepsWKey(RightEfficient):
    """W_key is still made, though nothing uses it; leave the layer out."""

    projections = ("W_query", "W_key")


@misconception("EfficientMultiHeadAttention", kind="initialisation", caught_by="test_seed_123")
class EfficientOutProjMadeFirst(RightEfficient):
    """out_proj is created before W_query; under a fixed seed W_query comes first."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        out_proj = nn.Linear(d_out, d_out)
        super().__init__(d_in, d_out, context_length, dropout, num_heads, qkv_bias)
        self.out_proj = out_proj
