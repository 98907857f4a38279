"""Mistakes of the kind "initialisation"."""

import torch
from torch import nn

from ....catalogue import misconception
from .right import RightForward


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_seed_123")
class NormalWeights(RightForward):
    """The weights come from torch.randn (normal); the exercise draws them with torch.rand, between 0 and 1."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.randn(d_in, d_out))
        self.W_key = nn.Parameter(torch.randn(d_in, d_out))
        self.W_value = nn.Parameter(torch.randn(d_in, d_out))


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_seed_123")
class CreatedInAnotherOrder(RightForward):
    """The weights are created in another order; under a fixed seed W_query comes first, then W_key, then W_value."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_parameters")
class WeightsNotRegistered(RightForward):
    """The weights are plain tensors, which no optimizer finds; wrap each in nn.Parameter."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = torch.rand(d_in, d_out)
        self.W_key = torch.rand(d_in, d_out)
        self.W_value = torch.rand(d_in, d_out)


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_seeds_matter")
class SeedSetInside(RightForward):
    """A seed is set inside __init__, so every instance starts with the same weights; leave seeds to the caller."""

    def __init__(self, d_in, d_out):
        super().__init__()
        torch.manual_seed(123)
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_seed_123")
class ValueBeforeKey(RightForward):
    """W_value is created before W_key; under a fixed seed the order is W_query, W_key, W_value."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_seed_123")
class CreatedBackwards(RightForward):
    """The weights are created backwards; under a fixed seed the order is W_query, W_key, W_value."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_seed_123")
class WeightsOfZero(RightForward):
    """The weights start as zeros, from which W_query and W_key can not learn; draw them with torch.rand."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.zeros(d_in, d_out))
        self.W_key = nn.Parameter(torch.zeros(d_in, d_out))
        self.W_value = nn.Parameter(torch.zeros(d_in, d_out))


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_seed_123")
class WeightsOfOne(RightForward):
    """The weights all start as ones, so that all columns stay alike; draw them with torch.rand."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.ones(d_in, d_out))
        self.W_key = nn.Parameter(torch.ones(d_in, d_out))
        self.W_value = nn.Parameter(torch.ones(d_in, d_out))


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_seed_123")
class WeightsAroundZero(RightForward):
    """The weights are moved to lie around 0; the exercise draws them with torch.rand, between 0 and 1."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out) - 0.5)
        self.W_key = nn.Parameter(torch.rand(d_in, d_out) - 0.5)
        self.W_value = nn.Parameter(torch.rand(d_in, d_out) - 0.5)


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_seed_123")
class WeightsBetweenMinusOneAndOne(RightForward):
    """The weights are drawn between -1 and 1; the exercise draws them with torch.rand, between 0 and 1."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.empty(d_in, d_out).uniform_(-1, 1))
        self.W_key = nn.Parameter(torch.empty(d_in, d_out).uniform_(-1, 1))
        self.W_value = nn.Parameter(torch.empty(d_in, d_out).uniform_(-1, 1))


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_seed_123")
class WeightsMadeSmaller(RightForward):
    """The weights are divided by a square root; the exercise takes torch.rand(d_in, d_out) as it is."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out) / d_in**0.5)
        self.W_key = nn.Parameter(torch.rand(d_in, d_out) / d_in**0.5)
        self.W_value = nn.Parameter(torch.rand(d_in, d_out) / d_in**0.5)


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_seed_123")
class WeightsByXavier(RightForward):
    """The weights are drawn by Xavier's rule; the exercise draws them with torch.rand, between 0 and 1."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(nn.init.xavier_uniform_(torch.empty(d_in, d_out)))
        self.W_key = nn.Parameter(nn.init.xavier_uniform_(torch.empty(d_in, d_out)))
        self.W_value = nn.Parameter(nn.init.xavier_uniform_(torch.empty(d_in, d_out)))


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_seed_123")
class ThreeTimesTheSameWeights(RightForward):
    """All three start from the same random numbers; draw each with torch.rand on its own."""

    def __init__(self, d_in, d_out):
        super().__init__()
        W = torch.rand(d_in, d_out)
        self.W_query = nn.Parameter(W.clone())
        self.W_key = nn.Parameter(W.clone())
        self.W_value = nn.Parameter(W.clone())


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_parameters")
class OneWeightForAll(RightForward):
    """One parameter serves as W_query, W_key and W_value; each is a parameter of its own."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = self.W_value = self.W_query


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_parameters")
class QueryWeightsForKeys(RightForward):
    """W_key is the same parameter as W_query; each is a parameter of its own."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = self.W_query
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_parameters")
class WeightsAsBuffers(RightForward):
    """The module has no parameters: its weights are buffers, or made anew in forward; make each an nn.Parameter in
    __init__.
    """

    def __init__(self, d_in, d_out):
        super().__init__()
        self.register_buffer("W_query", torch.rand(d_in, d_out))
        self.register_buffer("W_key", torch.rand(d_in, d_out))
        self.register_buffer("W_value", torch.rand(d_in, d_out))
