"""Unit 2: what goes wrong in self-attention with trainable weights."""

import torch
import torch.nn.functional as F
from torch import nn

from ..catalogue import misconception

# --- attention_scores ---


@misconception("attention_scores", caught_by="test_every_query_meets_every_key")
def queries_and_keys_swapped(queries, keys):
    """Rows and columns are swapped: row i should hold query i's scores, so the queries come first in the product."""
    return keys @ queries.transpose(-2, -1)


@misconception("attention_scores", caught_by="test_every_query_meets_every_key")
def scores_already_scaled(queries, keys):
    """The scores are already divided by the square root of d_k; that belongs to the next step, scaled_softmax."""
    return queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5


@misconception("attention_scores", caught_by="test_every_query_meets_every_key")
def scores_already_softmaxed(queries, keys):
    """A softmax is applied; scores are the plain dot products, and scaled_softmax turns them into weights."""
    return torch.softmax(queries @ keys.transpose(-2, -1), dim=-1)


@misconception("attention_scores", caught_by="test_any_leading_dimensions")
def transposed_with_t(queries, keys):
    """`.T` reverses all dimensions, so it is right in 2-D only; swap just the last two with transpose(-2, -1)."""
    return queries @ keys.permute(*range(keys.dim() - 1, -1, -1))


@misconception("attention_scores", caught_by="test_any_leading_dimensions")
def transposed_the_first_two(queries, keys):
    """transpose(0, 1) swaps the first two dimensions, right in 2-D only; with a batch swap the last two, (-2, -1)."""
    return queries @ keys.transpose(0, 1)


@misconception("attention_scores", caught_by="test_any_leading_dimensions")
def batch_mixed_into_tokens(queries, keys):
    """The leading dimensions are flattened into the tokens, so that tokens of one sequence meet those of another."""
    return queries.flatten(0, -2) @ keys.flatten(0, -2).T


@misconception("attention_scores", caught_by="test_any_leading_dimensions")
def first_sequence_only(queries, keys):
    """Every sequence of the batch is scored against the first one's keys; keep the leading dimensions."""
    while keys.dim() > 2:
        keys = keys[0]
    return queries @ keys.T


@misconception("attention_scores", caught_by="test_every_query_meets_every_key")
def cosine_similarity(queries, keys):
    """The vectors are normalised first, which gives cosine similarities; a score is the plain dot product."""
    return F.normalize(queries, dim=-1) @ F.normalize(keys, dim=-1).transpose(-2, -1)


@misconception("attention_scores", caught_by="test_gradients_reach_queries_and_keys")
def keys_detached(queries, keys):
    """The keys are detached from the graph (`.detach()` or `.data`), so that W_key could never learn."""
    return queries @ keys.detach().transpose(-2, -1)


@misconception("attention_scores", caught_by="test_gradients_reach_queries_and_keys")
def scores_without_graph(queries, keys):
    """The scores are computed without a graph (`torch.no_grad()`, `.data` or `.detach()`), so nothing can learn."""
    with torch.no_grad():
        return queries @ keys.transpose(-2, -1)


@misconception("attention_scores", caught_by="test_float64_stays_exact")
def scores_in_float32(queries, keys):
    """Everything is turned to float32 (`.float()`), so float64 inputs lose digits; keep the inputs' dtype."""
    return queries.float() @ keys.float().transpose(-2, -1)


@misconception("attention_scores", caught_by="test_inputs_are_unchanged")
def keys_transposed_in_place(queries, keys):
    """The keys are transposed in place (`transpose_`), which changes the caller's tensor; use `transpose`."""
    return queries @ keys.transpose_(-2, -1)


@misconception("attention_scores", caught_by="test_follows_device")
def scores_filled_in_on_the_cpu(queries, keys):
    """The scores are filled into a tensor made on the CPU; make it with `queries.new_zeros` or multiply directly."""
    scores = torch.zeros(*queries.shape[:-1], keys.shape[-2], dtype=queries.dtype)
    for i in range(keys.shape[-2]):
        scores[..., i] = (queries * keys[..., i : i + 1, :]).sum(dim=-1)
    return scores


# --- scaled_softmax ---


@misconception("scaled_softmax", caught_by="test_divided_by_the_root_of_d_k")
def divided_by_d_k(scores, d_k):
    """The scores are divided by d_k; divide by its square root, so that their variance stays near 1."""
    return torch.softmax(scores / d_k, dim=-1)


@misconception("scaled_softmax", caught_by="test_divided_by_the_root_of_d_k")
def not_scaled(scores, d_k):
    """The scores are not scaled: divide them by the square root of d_k before the softmax."""
    return torch.softmax(scores, dim=-1)


@misconception("scaled_softmax", caught_by="test_divided_by_the_root_of_d_k")
def multiplied_by_the_root(scores, d_k):
    """The scores are multiplied by the square root of d_k; divide by it."""
    return torch.softmax(scores * d_k**0.5, dim=-1)


@misconception("scaled_softmax", caught_by="test_divided_by_the_root_of_d_k")
def scaled_by_the_number_of_tokens(scores, d_k):
    """The scores are scaled by the number of tokens, their last dimension; scale by d_k, the width of a key."""
    return torch.softmax(scores / scores.shape[-1] ** 0.5, dim=-1)


@misconception("scaled_softmax", caught_by="test_divided_by_the_root_of_d_k")
def scaled_after_softmax(scores, d_k):
    """The weights are scaled after the softmax, so they no longer sum to 1; scale the scores before it."""
    return torch.softmax(scores, dim=-1) / d_k**0.5


@misconception("scaled_softmax", caught_by="test_softmax_runs_over_the_keys")
def softmax_over_the_queries(scores, d_k):
    """The softmax runs over the queries (dim=-2), so the columns sum to 1; over the keys, dim=-1, the rows do."""
    return torch.softmax(scores / d_k**0.5, dim=-2)


@misconception("scaled_softmax", caught_by="test_softmax_runs_over_the_keys")
def softmax_over_dim_0(scores, d_k):
    """The softmax runs over dim=0, the first dimension; the keys are the last one, dim=-1."""
    return torch.softmax(scores / d_k**0.5, dim=0)


@misconception("scaled_softmax", caught_by="test_softmax_runs_over_the_keys")
def softmax_over_dim_1(scores, d_k):
    """The softmax runs over dim=1, which is the keys in 2-D only; dim=-1 is the last dimension for every shape."""
    return torch.softmax(scores / d_k**0.5, dim=1)


@misconception("scaled_softmax", caught_by="test_softmax_runs_over_the_keys")
def softmax_over_everything(scores, d_k):
    """The softmax runs over the whole tensor; each row should sum to 1 on its own, so use dim=-1."""
    return torch.softmax((scores / d_k**0.5).flatten(), dim=0).view_as(scores)


@misconception("scaled_softmax", caught_by="test_large_scores_do_not_overflow")
def exponentials_overflow(scores, d_k):
    """exp overflows for large scores: subtract each row's maximum first (the weights stay the same), or use softmax."""
    exponentials = torch.exp(scores / d_k**0.5)
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


@misconception("scaled_softmax", caught_by="test_divided_by_the_root_of_d_k")
def sum_without_exponentials(scores, d_k):
    """The scores are divided by their sum without exponentials; softmax takes exp of every score first."""
    scaled = scores / d_k**0.5
    return scaled / scaled.sum(dim=-1, keepdim=True)


@misconception("scaled_softmax", caught_by="test_divided_by_the_root_of_d_k")
def log_weights(scores, d_k):
    """This is the logarithm of the weights (log_softmax); attention needs the weights themselves."""
    return torch.log_softmax(scores / d_k**0.5, dim=-1)


@misconception("scaled_softmax", caught_by="test_inputs_are_unchanged")
def scaled_in_place(scores, d_k):
    """`/=` scales the caller's scores in place; write `scores / d_k ** 0.5`, which makes a new tensor."""
    scores /= d_k**0.5
    return torch.softmax(scores, dim=-1)


@misconception("scaled_softmax", caught_by="test_gradients_reach_the_scores")
def weights_detached(scores, d_k):
    """The weights are detached from the graph (`.detach()`, `.data` or `torch.no_grad()`), so nothing can learn."""
    return torch.softmax(scores / d_k**0.5, dim=-1).detach()


@misconception("scaled_softmax", caught_by="test_float64_stays_exact")
def weights_in_float32(scores, d_k):
    """The scores are turned to float32 on the way, so float64 inputs lose digits; keep the inputs' dtype."""
    return torch.softmax(scores.float() / d_k**0.5, dim=-1)


@misconception("scaled_softmax", caught_by="test_divided_by_the_root_of_d_k")
def root_rounded_down(scores, d_k):
    """The square root of d_k is rounded to an integer; divide by `d_k ** 0.5` as it is."""
    return torch.softmax(scores / int(d_k**0.5), dim=-1)


# --- SelfAttention_v1 ---


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


@misconception("SelfAttention_v1", caught_by="test_context_vectors")
class ScoresNotScaled(RightParameters):
    """The scores are not scaled: divide them by the square root of the keys' width (d_out) before the softmax."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T, dim=-1) @ values


@misconception("SelfAttention_v1", caught_by="test_context_vectors")
class ScaledByDOut(RightParameters):
    """The scores are divided by the keys' width d_out; divide by its square root."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1], dim=-1) @ values


@misconception("SelfAttention_v1", caught_by="test_context_vectors")
class ScaledByRootOfDIn(RightParameters):
    """The scores are scaled by the root of d_in, the input's width; scale by that of the keys' width, d_out."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / x.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", caught_by="test_context_vectors")
class ScaledByRootOfTokens(RightParameters):
    """The scores are scaled by the root of the number of tokens; scale by that of the keys' width, d_out."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / x.shape[0] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", caught_by="test_context_vectors")
class SoftmaxOverQueries(RightParameters):
    """The softmax runs over the queries (dim=0), so the columns sum to 1; over the keys, dim=-1, the rows do."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=0) @ values


@misconception("SelfAttention_v1", caught_by="test_context_vectors")
class SoftmaxForgotten(RightParameters):
    """The softmax is missing: the scaled scores themselves are used as weights."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return (queries @ keys.T / keys.shape[-1] ** 0.5) @ values


@misconception("SelfAttention_v1", caught_by="test_context_vectors")
class QueriesAndKeysSwapped(RightParameters):
    """Queries and keys are swapped in the product: row i of the scores should belong to query i."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(keys @ queries.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", caught_by="test_context_vectors")
class KeysUsedAsValues(RightParameters):
    """The weights are applied to the keys; they belong to the values, x @ W_value."""

    def forward(self, x):
        queries, keys, _ = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ keys


@misconception("SelfAttention_v1", caught_by="test_context_vectors")
class QueriesUsedAsKeys(RightParameters):
    """The queries are scored against themselves; score them against the keys, x @ W_key."""

    def forward(self, x):
        queries, _, values = self.project(x)
        return torch.softmax(queries @ queries.T / queries.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", caught_by="test_context_vectors")
class WeightsTransposed(RightParameters):
    """The attention weights are transposed before they meet the values; each row already belongs to one query."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1).T @ values


@misconception("SelfAttention_v1", caught_by="test_seed_123")
class NormalWeights(RightForward):
    """The weights come from torch.randn (normal); the exercise draws them with torch.rand, between 0 and 1."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.randn(d_in, d_out))
        self.W_key = nn.Parameter(torch.randn(d_in, d_out))
        self.W_value = nn.Parameter(torch.randn(d_in, d_out))


@misconception("SelfAttention_v1", caught_by="test_seed_123")
class CreatedInAnotherOrder(RightForward):
    """The weights are created in another order; under a fixed seed W_query comes first, then W_key, then W_value."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))


@misconception("SelfAttention_v1", caught_by="test_context_vectors")
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


@misconception("SelfAttention_v1", caught_by="test_parameters")
class WeightsNotRegistered(RightForward):
    """The weights are plain tensors, which no optimizer finds; wrap each in nn.Parameter."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = torch.rand(d_in, d_out)
        self.W_key = torch.rand(d_in, d_out)
        self.W_value = torch.rand(d_in, d_out)


@misconception("SelfAttention_v1", caught_by="test_gradients_reach_every_weight")
class WeightsFrozen(RightForward):
    """The parameters are made with requires_grad=False, so they never learn; leave it out."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out), requires_grad=False)
        self.W_key = nn.Parameter(torch.rand(d_in, d_out), requires_grad=False)
        self.W_value = nn.Parameter(torch.rand(d_in, d_out), requires_grad=False)


@misconception("SelfAttention_v1", caught_by="test_gradients_reach_every_weight")
class AttentionWeightsDetached(RightParameters):
    """The attention weights are detached, so no gradient reaches W_query and W_key."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1).detach() @ values


@misconception("SelfAttention_v1", caught_by="test_context_vectors")
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


@misconception("SelfAttention_v1", caught_by="test_context_vectors")
class WeightsReturned(RightParameters):
    """The attention weights are returned; multiply them with the values to get the context vectors."""

    def forward(self, x):
        queries, keys, _ = self.project(x)
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1)


@misconception("SelfAttention_v1", caught_by="test_float64_stays_exact")
class InputInFloat32(RightParameters):
    """Input and weights are turned to float32 in forward, so a float64 module loses digits; leave the dtype alone."""

    def forward(self, x):
        queries, keys, values = (
            x.float() @ self.W_query.float(),
            x.float() @ self.W_key.float(),
            x.float() @ self.W_value.float(),
        )
        return torch.softmax(queries @ keys.T / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("SelfAttention_v1", caught_by="test_follows_device")
class ScaleLeftOnTheCpu(RightParameters):
    """A tensor made in forward stays on the CPU when the module moves; use a number, or make it on x's device."""

    def forward(self, x):
        queries, keys, values = self.project(x)
        scale = torch.full((x.shape[0], x.shape[0]), keys.shape[-1], dtype=x.dtype).sqrt()
        return torch.softmax(queries @ keys.T / scale, dim=-1) @ values
