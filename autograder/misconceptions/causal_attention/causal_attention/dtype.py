"""Mistakes of the kind "dtype"."""

import torch

from ....catalogue import misconception
from .right import RightInit


@misconception("CausalAttention", kind="dtype", caught_by="test_float64_stays_exact")
class InputInFloat32(RightInit):
    """Something is turned to float32 in forward, so that a float64 module loses digits; leave the dtype alone."""

    def forward(self, x):
        queries, keys, values = (projected.float() for projected in self.project(x))
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@misconception("CausalAttention", kind="dtype", caught_by="test_float64_stays_exact")
class SoftmaxInFloat32(RightInit):
    """The weights are computed in float32 and turned back, so a float64 module loses digits; leave the dtype alone."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        weights = torch.softmax(scores.float() / keys.shape[-1] ** 0.5, dim=-1).to(values.dtype)
        return self.dropout(weights) @ values


@misconception("CausalAttention", kind="dtype", caught_by="test_context_vectors")
class SoftmaxInHalfPrecision(RightInit):
    """The weights are computed in half precision, which is good for three digits; leave the dtype alone."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        weights = torch.softmax(scores.half() / keys.shape[-1] ** 0.5, dim=-1).to(values.dtype)
        return self.dropout(weights) @ values


@misconception("CausalAttention", kind="dtype", caught_by="test_float64_stays_exact")
class InputTurnedToFloat32(RightInit):
    """x is turned to float32, which the layers of a float64 module refuse; leave the dtype alone."""

    def forward(self, x):
        queries, keys, values = self.project(x.float())
        scores = queries @ keys.transpose(1, 2)
        scores = scores.masked_fill(self.hidden(scores), float("-inf"))
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values
