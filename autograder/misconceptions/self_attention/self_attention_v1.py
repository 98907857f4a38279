"""What goes wrong in `SelfAttention_v1`."""

import torch
from torch import nn

from ...catalogue import misconception


class RightParameters(nn.Module):
    """The parameters as they should be; the entries that build on it differ in what they do with them."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def project(self, x):
        return x @ self.W_query, x @ self.W_key, x @ self.W_value


class RightForward(nn.Module):
    """The forward pass as it should be; the entries that build on it differ in their parameters."""

    def forward(self, x):
        queries, keys, values = x @ self.W_query, x @ self.W_key, x @ self.W_value
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class ScoresNotScaled(RightParameters):
    """The scores are not scaled: divide them by the square root of the keys' width (d_out) before the softmax."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T, dim=-1) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class ScaledByDOut(RightParameters):
    """The scores are divided by the keys' width d_out; divide by its square root."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1], dim=-1) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class ScaledByRootOfDIn(RightParameters):
    """The scores are scaled by the root of d_in, the input's width; scale by that of the keys' width, d_out."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / x.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class ScaledByRootOfTokens(RightParameters):
    """The scores are scaled by the root of the number of tokens; scale by that of the keys' width, d_out."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / x.shape[0] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class SoftmaxOverQueries(RightParameters):
    """The softmax runs over the queries (dim=0), so the columns sum to 1; over the keys, dim=-1, the rows do."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=0) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class SoftmaxForgotten(RightParameters):
    """The softmax is missing: the scaled scores themselves are used as weights."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return (queries @ keys.T / keys.shape[-1] ** 0.5) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class QueriesAndKeysSwapped(RightParameters):
    """Queries and keys are swapped: row i of the scores should hold query i's, x @ W_query, with every key."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(keys @ queries.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class KeysUsedAsValues(RightParameters):
    """The weights are applied to the keys; they belong to the values, x @ W_value."""

    def forward(self, x):
        queries, keys, _ = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ keys


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class QueriesUsedAsKeys(RightParameters):
    """The queries are scored against themselves; score them against the keys, x @ W_key."""

    def forward(self, x):
        queries, _, values = self.project(x)
        return torch.softmax(queries @ queries.T / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class WeightsTransposed(RightParameters):
    """The attention weights are transposed before they meet the values; each row already belongs to one query."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1).T @ values


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


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class LinearLayers(nn.Module):
    """nn.Linear layers are used; this version asks for nn.Parameter(torch.rand(d_in, d_out)), v2 for nn.Linear."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_parameters")
class WeightsNotRegistered(RightForward):
    """The weights are plain tensors, which no optimizer finds; wrap each in nn.Parameter."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = torch.rand(d_in, d_out)
        self.W_key = torch.rand(d_in, d_out)
        self.W_value = torch.rand(d_in, d_out)


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


@misconception("SelfAttention_v1", kind="hard-coded output", caught_by="test_context_vectors")
class WorkedExampleTypedIn(RightParameters):
    """The worked example's numbers are returned for the six words; compute them from the input."""

    def forward(self, x):
        rows = [
            [0.2996, 0.8053],
            [0.3061, 0.8210],
            [0.3058, 0.8203],
            [0.2948, 0.7939],
            [0.2927, 0.7891],
            [0.2990, 0.8040],
        ]
        return torch.tensor(rows)


@misconception("SelfAttention_v1", kind="value", caught_by="test_context_vectors")
class WeightsReturned(RightParameters):
    """The attention weights are returned; multiply them with the values to get the context vectors."""

    def forward(self, x):
        queries, keys, _ = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1)


@misconception("SelfAttention_v1", kind="dtype", caught_by="test_float64_stays_exact")
class InputInFloat32(RightParameters):
    """Input and weights are turned to float32 in forward, so a float64 module loses digits; leave the dtype alone."""

    def forward(self, x):
        queries, keys, values = (
            x.float() @ self.W_query.float(),
            x.float() @ self.W_key.float(),
            x.float() @ self.W_value.float(),
        )
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", kind="initialisation", caught_by="test_seeds_matter")
class SeedSetInside(RightForward):
    """A seed is set inside __init__, so every instance starts with the same weights; leave seeds to the caller."""

    def __init__(self, d_in, d_out):
        super().__init__()
        torch.manual_seed(123)
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))


@misconception("SelfAttention_v1", kind="device", caught_by="test_follows_device")
class ScaleLeftOnTheCpu(RightParameters):
    """A tensor that the module makes stays on the CPU when the module moves; use a number, or x's device."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scale = torch.full((x.shape[0], x.shape[0]), keys.shape[-1], dtype=x.dtype).sqrt()
        return torch.softmax(queries @ keys.T / scale, dim=-1) @ values
