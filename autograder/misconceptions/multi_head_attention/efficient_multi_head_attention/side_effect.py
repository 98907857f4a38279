"""Mistakes of the kind "side effect"."""

import torch

from ....catalogue import misconception
from ..multi_head_attention.side_effect import FirstCallRemembered
from .right import RightEfficient


@misconception("EfficientMultiHeadAttention", kind="side effect", caught_by="test_shorter_sequences")
class EfficientFirstCallRemembered(FirstCallRemembered, RightEfficient):
    pass


@misconception("EfficientMultiHeadAttention", kind="side effect", caught_by="test_inputs_are_unchanged")
class EfficientKeysScaledInPlace(RightEfficient):
    """The input is scaled in place (`/=`, `div_`) to make the keys; it is the caller's, so scale the scores instead."""

    def project(self, x):
        queries, values = self.W_query(x), x.clone()
        x.data /= self.head_dim**0.5
        return queries, x, values

    def weigh(self, scores):
        return torch.softmax(scores, dim=-1)
