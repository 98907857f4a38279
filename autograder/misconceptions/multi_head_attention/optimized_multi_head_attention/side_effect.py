"""Mistakes of the kind "side effect"."""

from ....catalogue import misconception
from ..multi_head_attention.side_effect import FirstCallRemembered
from .right import RightOptimized


@misconception("OptimizedMultiHeadAttention", kind="side effect", caught_by="test_shorter_sequences")
class OptimizedFirstCallRemembered(FirstCallRemembered, RightOptimized):
    pass


@misconception("OptimizedMultiHeadAttention", kind="side effect", caught_by="test_inputs_are_unchanged")
class OptimizedInputOverwritten(RightOptimized):
    """The context vectors are written into the input's memory (`x[...] =`, `copy_`); make a new tensor for them."""

    def forward(self, x):
        queries, keys, values = (self.split(projected) for projected in self.project(x))
        merged = self.merge(self.attend(queries, keys, values))
        x.data[...] = merged.detach()
        return self.out_proj(merged)
