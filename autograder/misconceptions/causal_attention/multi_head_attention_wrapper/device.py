"""Mistakes of the kind "device"."""

import torch

from ....catalogue import misconception
from .right import RightHeads


@misconception("MultiHeadAttentionWrapper", kind="device", caught_by="test_follows_device")
class ResultInNewZeros(RightHeads):
    """The result is a new tensor, float32 and on the CPU whatever x is; torch.cat follows the heads."""

    def forward(self, x):
        results = [head(x) for head in self.heads]
        width = results[0].shape[-1]
        joined = torch.zeros(*x.shape[:2], width * len(results))
        for number, result in enumerate(results):
            joined[..., number * width : (number + 1) * width] = result
        return joined
