"""What goes wrong in `attention_scores`."""

import torch
import torch.nn.functional as F

from ...catalogue import misconception


@misconception("attention_scores", kind="value", caught_by="test_every_query_meets_every_key")
def queries_and_keys_swapped(queries, keys):
    """Rows and columns are swapped: row i should hold query i's scores, so the queries come first in the product."""
    return keys @ queries.transpose(-2, -1)


@misconception("attention_scores", kind="value", caught_by="test_every_query_meets_every_key")
def scores_already_scaled(queries, keys):
    """The scores are already divided by the square root of d_k; that belongs to the next step, scaled_softmax."""
    return queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5


@misconception("attention_scores", kind="value", caught_by="test_every_query_meets_every_key")
def scores_already_softmaxed(queries, keys):
    """A softmax is applied; scores are the plain dot products, and scaled_softmax turns them into weights."""
    return torch.softmax(queries @ keys.transpose(-2, -1), dim=-1)


@misconception("attention_scores", kind="value", caught_by="test_any_leading_dimensions")
def transposed_with_t(queries, keys):
    """`.T` reverses all dimensions, so it is right in 2-D only; swap just the last two with transpose(-2, -1)."""
    return queries @ keys.permute(*range(keys.dim() - 1, -1, -1))


@misconception("attention_scores", kind="edge", caught_by="test_any_leading_dimensions")
def transposed_the_first_two(queries, keys):
    """transpose(0, 1) swaps the first two dimensions, right in 2-D only; with a batch swap the last two, (-2, -1)."""
    return queries @ keys.transpose(0, 1)


@misconception("attention_scores", kind="value", caught_by="test_any_leading_dimensions")
def batch_mixed_into_tokens(queries, keys):
    """The leading dimensions are flattened into the tokens, so that tokens of one sequence meet those of another."""
    return queries.flatten(0, -2) @ keys.flatten(0, -2).T


@misconception("attention_scores", kind="edge", caught_by="test_any_leading_dimensions")
def first_sequence_only(queries, keys):
    """Every sequence of the batch is scored against the first one's keys; keep the leading dimensions."""
    while keys.dim() > 2:
        keys = keys[0]
    return queries @ keys.T


@misconception("attention_scores", kind="value", caught_by="test_every_query_meets_every_key")
def cosine_similarity(queries, keys):
    """The vectors are normalised first, which gives cosine similarities; a score is the plain dot product."""
    return F.normalize(queries, dim=-1) @ F.normalize(keys, dim=-1).transpose(-2, -1)


@misconception("attention_scores", kind="gradient", caught_by="test_gradients_reach_queries_and_keys")
def keys_detached(queries, keys):
    """The keys are detached from the graph (`.detach()` or `.data`), so that W_key could never learn."""
    return queries @ keys.detach().transpose(-2, -1)


@misconception("attention_scores", kind="gradient", caught_by="test_gradients_reach_queries_and_keys")
def scores_without_graph(queries, keys):
    """The scores are computed without a graph (`torch.no_grad()`, `.data` or `.detach()`), so nothing can learn."""
    with torch.no_grad():
        return queries @ keys.transpose(-2, -1)


@misconception("attention_scores", kind="dtype", caught_by="test_float64_stays_exact")
def scores_in_float32(queries, keys):
    """The scores are float32 whatever the inputs are (`.float()`), so float64 loses digits; keep the inputs' dtype."""
    return queries.float() @ keys.float().transpose(-2, -1)


@misconception("attention_scores", kind="dtype", caught_by="test_dtype_is_kept")
def scores_in_float64(queries, keys):
    """The scores are float64 whatever the inputs are; keep the inputs' dtype."""
    return queries.double() @ keys.double().transpose(-2, -1)


@misconception("attention_scores", kind="edge", caught_by="test_any_leading_dimensions")
def dimensions_of_one_squeezed(queries, keys):
    """`squeeze()` drops every dimension of size 1, a batch or a sequence of one too; leave it out or name the dim."""
    return (queries @ keys.transpose(-2, -1)).squeeze()


@misconception("attention_scores", kind="side effect", caught_by="test_inputs_are_unchanged")
def keys_transposed_in_place(queries, keys):
    """The keys are transposed in place (`transpose_`), which changes the caller's tensor; use `transpose`."""
    return queries @ keys.transpose_(-2, -1)


@misconception("attention_scores", kind="device", caught_by="test_follows_device")
def scores_left_on_the_cpu(queries, keys):
    """The scores end up on the CPU wherever the inputs are: made there (torch.zeros) or moved there (`.cpu()`)."""
    scores = torch.zeros(*queries.shape[:-1], keys.shape[-2], dtype=queries.dtype)
    for i in range(keys.shape[-2]):
        scores[..., i] = (queries * keys[..., i : i + 1, :]).sum(dim=-1)
    return scores
