"""Mistakes of the kind "side effect"."""

import torch

from ....catalogue import misconception
from .right import RightHeads


@misconception("MultiHeadAttentionWrapper", kind="side effect", caught_by="test_inputs_are_unchanged")
class InputChangedInPlace(RightHeads):
    """The input x is changed in place once the heads have run; leave it as it was."""

    def forward(self, x):
        result = torch.cat([head(x) for head in self.heads], dim=-1)
        with torch.no_grad():
            x.zero_()
        return result
