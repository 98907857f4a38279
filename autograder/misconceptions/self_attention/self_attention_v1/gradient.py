"""Mistakes of the kind "gradient"."""

import torch
from torch import nn

from ....catalogue import misconception
from .right import RightForward, RightParameters


@misconception("SelfAttention_v1", kind="gradient", caught_by="test_gradients_reach_every_weight")
class WeightsFrozen(RightForward):
    """No gradient reaches the weights: they are frozen (requires_grad=False) or detached (`.detach()`, `.data`)."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out), requires_grad=False)
        self.W_key = nn.Parameter(torch.rand(d_in, d_out), requires_grad=False)
        self.W_value = nn.Parameter(torch.rand(d_in, d_out), requires_grad=False)


@misconception("SelfAttention_v1", kind="gradient", caught_by="test_gradients_reach_every_weight")
class AttentionWeightsDetached(RightParameters):
    """The attention weights are detached, so no gradient reaches W_query and W_key."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1).detach() @ values


@misconception("SelfAttention_v1", kind="gradient", caught_by="test_gradients_reach_every_weight")
class ValuesDetached(RightParameters):
    """The values are detached, so no gradient reaches W_value."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values.detach()


@misconception("SelfAttention_v1", kind="gradient", caught_by="test_gradients_reach_every_weight")
class KeysDetached(RightParameters):
    """The keys are detached, so no gradient reaches W_key."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T.detach() / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="gradient", caught_by="test_gradients_reach_every_weight")
class QueriesDetached(RightParameters):
    """The queries are detached, so no gradient reaches W_query."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries.detach() @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="gradient", caught_by="test_gradients_reach_every_weight")
class ResultDetached(RightParameters):
    """The result carries no gradient (`.detach()`, `.data`, torch.no_grad()), so nothing can learn."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return (torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values).detach()


@misconception("SelfAttention_v1", kind="gradient", caught_by="test_gradients_reach_every_weight")
class ResultThroughNumpy(RightParameters):
    """The result is rebuilt from numbers (NumPy), so that no gradient flows back."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.from_numpy(
            (torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values).detach().numpy()
        )


@misconception("SelfAttention_v1", kind="gradient", caught_by="test_gradients_reach_every_weight")
class InputDetached(RightParameters):
    """The input is detached, so no gradient flows back to it."""

    def forward(self, x):
        x = x.detach()
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="gradient", caught_by="test_gradients_reach_every_weight")
class FrozenValueWeights(nn.Module):
    """No gradient reaches W_value, so that it never learns: it is frozen (requires_grad=False) or used as `.data`."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value.requires_grad_(False)

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values
