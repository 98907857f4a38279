"""Mistakes of the kind "gradient"."""

import torch

from ....catalogue import misconception
from .right import RightHeads


@misconception("MultiHeadAttentionWrapper", kind="gradient", caught_by="test_gradients_reach_every_head")
class HeadsRunWithoutGradients(RightHeads):
    """The heads' results are detached from the graph, so no head can learn."""

    def forward(self, x):
        return torch.cat([head(x).detach() for head in self.heads], dim=-1)


@misconception("MultiHeadAttentionWrapper", kind="gradient", caught_by="test_gradients_reach_every_head")
class OnlyOneHeadLearns(RightHeads):
    """All heads but the first are detached from the graph, so that they never learn."""

    def forward(self, x):
        return torch.cat([self.heads[0](x), *(head(x).detach() for head in self.heads[1:])], dim=-1)


@misconception("MultiHeadAttentionWrapper", kind="gradient", caught_by="test_gradients_reach_every_head")
class HeadsThroughNumpy(RightHeads):
    """The results are computed or joined in NumPy, where no gradient follows; stay with tensors."""

    def forward(self, x):
        return torch.from_numpy(torch.cat([head(x) for head in self.heads], dim=-1).detach().numpy())
