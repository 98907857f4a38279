"""Mistakes of the kind "hard-coded output"."""

import torch

from ....catalogue import misconception
from .right import RightHeads


@misconception("MultiHeadAttention", kind="hard-coded output", caught_by="test_context_vectors")
class WorkedExampleTypedIn(RightHeads):
    """The worked example's numbers are returned whatever the input is; compute them."""

    def forward(self, x):
        rows = [
            [0.3190, 0.4858],
            [0.2943, 0.3897],
            [0.2856, 0.3593],
            [0.2693, 0.3873],
            [0.2639, 0.3928],
            [0.2575, 0.4028],
        ]
        return torch.tensor([rows, rows])
