"""Mistakes of the kind "gradient"."""

import torch
import torch.nn.functional as F

from ....catalogue import misconception
from .right import RightInit, RightWeights


@misconception("CausalAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class AttentionWeightsDetached(RightInit):
    """The attention weights are detached, so no gradient reaches W_query and W_key."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        weights = self.dropout(weights.detach())
        return weights @ values


@misconception("CausalAttention", kind="gradient", caught_by="test_gradients_with_dropout")
class DropoutInPlace(RightWeights):
    """Dropout writes into the softmax's result (inplace=True), which the gradient needs; leave inplace out."""

    def forward(self, x):
        weights, values = self.weigh(x)
        return F.dropout(weights, self.dropout.p, self.training, inplace=True) @ values


@misconception("CausalAttention", kind="gradient", caught_by="test_gradients_reach_every_weight")
class ContextThroughNumpy(RightWeights):
    """The result has no gradient: it goes through `.detach()`, `.data`, torch.no_grad or NumPy on the way."""

    def forward(self, x):
        weights, values = self.weigh(x)
        return torch.from_numpy(self.dropout(weights).detach().numpy() @ values.detach().numpy())
