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


@misconception("attention_scores", kind="edge", caught_by="test_any_leading_dimensions")
def transposed_with_t(queries, keys):
    """`.T` reverses all dimensions, so it is right in 2-D only; swap just the last two with transpose(-2, -1)."""
    return queries @ keys.permute(*range(keys.dim() - 1, -1, -1))


@misconception("attention_scores", kind="edge", caught_by="test_any_leading_dimensions")
def transposed_the_first_two(queries, keys):
    """transpose(0, 1) swaps the first two dimensions, right in 2-D only; with a batch swap the last two, (-2, -1)."""
    return queries @ keys.transpose(0, 1)


@misconception("attention_scores", kind="edge", caught_by="test_any_leading_dimensions")
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


@misconception("attention_scores", kind="value", caught_by="test_every_query_meets_every_key")
def keys_not_transposed(queries, keys):
    """The keys are not transposed, which fails unless Tk = d_k; exchange the last two dimensions of the keys."""
    return queries @ keys


@misconception("attention_scores", kind="value", caught_by="test_every_query_meets_every_key")
def keys_reshaped(queries, keys):
    """The keys are reshaped to (d_k, Tk), which mixes their numbers; transpose(-2, -1) swaps the dimensions."""
    return queries @ keys.reshape(*keys.shape[:-2], keys.shape[-1], keys.shape[-2])


@misconception("attention_scores", kind="edge", caught_by="test_any_leading_dimensions")
def transposed_dims_1_and_2(queries, keys):
    """transpose(1, 2) fits three dimensions only; transpose(-2, -1) swaps the last two of any number."""
    return queries @ keys.transpose(1, 2)


@misconception("attention_scores", kind="edge", caught_by="test_any_leading_dimensions")
def matrices_and_batches_only(queries, keys):
    """It takes two dimensions or three, and no more; transpose(-2, -1) and @ take any number."""
    if queries.dim() == 2:
        return queries @ keys.T
    return torch.bmm(queries, keys.transpose(1, 2))


@misconception("attention_scores", kind="edge", caught_by="test_any_leading_dimensions")
def matrices_and_dims_1_and_2(queries, keys):
    """With more than two dimensions it swaps dims 1 and 2, right for three only; transpose(-2, -1) fits any number."""
    return queries @ (keys.T if keys.dim() == 2 else keys.transpose(1, 2))


@misconception("attention_scores", kind="edge", caught_by="test_any_leading_dimensions")
def matrices_only(queries, keys):
    """It works for two dimensions only (mm, `.t()`, or an einsum with fixed letters); there may be leading ones."""
    return queries.mm(keys.t())


@misconception("attention_scores", kind="edge", caught_by="test_every_query_meets_every_key")
def batches_only(queries, keys):
    """It takes exactly three dimensions (bmm, or an einsum with fixed letters); @ takes any number."""
    return torch.bmm(queries, keys.transpose(-2, -1))


@misconception("attention_scores", kind="value", caught_by="test_any_leading_dimensions")
def leading_dimensions_crossed(queries, keys):
    """Every sequence meets the keys of every other (tensordot), so dimensions double; matmul keeps leading
    dimensions apart.
    """
    return torch.tensordot(queries, keys, dims=([-1], [-1]))


@misconception("attention_scores", kind="value", caught_by="test_any_leading_dimensions")
def leading_dimensions_summed(queries, keys):
    """The scores are summed over the leading dimensions; each sequence keeps its own."""
    return torch.einsum("...qd,...kd->qk", queries, keys)


@misconception("attention_scores", kind="value", caught_by="test_every_query_meets_every_key")
def scores_of_equal_places(queries, keys):
    """Query i is multiplied with key i alone; every query meets every key: a matrix product."""
    return (queries * keys).sum(dim=-1)


@misconception("attention_scores", kind="value", caught_by="test_every_query_meets_every_key")
def scores_scaled_and_softmaxed(queries, keys):
    """Scaling and softmax are applied already; scores are the plain dot products, scaled_softmax comes later."""
    return torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5, dim=-1)


@misconception("attention_scores", kind="value", caught_by="test_every_query_meets_every_key")
def scores_averaged(queries, keys):
    """The products are divided by d_k; a score is their plain sum."""
    return queries @ keys.transpose(-2, -1) / keys.shape[-1]


@misconception("attention_scores", kind="value", caught_by="test_every_query_meets_every_key")
def scores_negated(queries, keys):
    """The sign is reversed; a score is the plain dot product."""
    return -(queries @ keys.transpose(-2, -1))


@misconception("attention_scores", kind="value", caught_by="test_every_query_meets_every_key")
def queries_against_themselves(queries, keys):
    """The queries are scored against themselves; score them against the keys."""
    return queries @ queries.transpose(-2, -1)


@misconception("attention_scores", kind="value", caught_by="test_every_query_meets_every_key")
def distances_for_scores(queries, keys):
    """The scores are distances with a minus; the score is the dot product."""
    return -torch.cdist(queries, keys)


@misconception("attention_scores", kind="mask", caught_by="test_every_query_meets_every_key")
def later_keys_hidden(queries, keys):
    """Later keys are hidden with -inf, a causal mask; no score is hidden here."""
    scores = queries @ keys.transpose(-2, -1)
    return scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf)


@misconception("attention_scores", kind="mask", caught_by="test_every_query_meets_every_key")
def later_keys_zeroed(queries, keys):
    """Scores above the diagonal are 0 (tril); every query meets every key."""
    return torch.tril(queries @ keys.transpose(-2, -1))


@misconception("attention_scores", kind="contract", caught_by="test_every_query_meets_every_key")
def second_query_alone(queries, keys):
    """Only the second query is scored; every query has a row."""
    return queries[..., 1, :] @ keys.transpose(-2, -1)


@misconception("attention_scores", kind="contract", caught_by="test_every_query_meets_every_key")
def scores_with_a_dimension_more(queries, keys):
    """The scores have a dimension of size 1 at the end (keepdim=True); leave it out."""
    return (queries.unsqueeze(-2) * keys.unsqueeze(-3)).sum(dim=-1, keepdim=True)


@misconception("attention_scores", kind="value", caught_by="test_every_query_meets_every_key")
def products_left_unsummed(queries, keys):
    """The products are not summed: a last dimension d_k is left. Sum over it."""
    return queries.unsqueeze(-2) * keys.unsqueeze(-3)


@misconception("attention_scores", kind="gradient", caught_by="test_gradients_reach_queries_and_keys")
def queries_detached(queries, keys):
    """The queries are detached from the graph (`.detach()` or `.data`), so that W_query could never learn."""
    return queries.detach() @ keys.transpose(-2, -1)


@misconception("attention_scores", kind="gradient", caught_by="test_gradients_reach_queries_and_keys")
def scores_through_numpy(queries, keys):
    """The scores are rebuilt from numbers (NumPy), so that no gradient flows back."""
    return torch.from_numpy(queries.detach().numpy() @ keys.detach().numpy().swapaxes(-2, -1))


@misconception("attention_scores", kind="gradient", caught_by="test_gradients_reach_queries_and_keys")
def scores_through_a_list(queries, keys):
    """The scores pass through `.tolist()`, which loses gradients, device, and float64's digits."""
    return torch.tensor((queries @ keys.transpose(-2, -1)).tolist())


@misconception("attention_scores", kind="device", caught_by="test_any_leading_dimensions")
def scores_of_matrices_in_float32_zeros(queries, keys):
    """Loops fill a float32 tensor on the CPU with the scores of two matrices; a matrix product has any shape,
    dtype and device.
    """
    scores = torch.zeros(queries.shape[0], keys.shape[0])
    for i, query in enumerate(queries):
        for j, key in enumerate(keys):
            scores[i, j] = query @ key
    return scores


@misconception("attention_scores", kind="device", caught_by="test_follows_device")
def zeros_on_the_cpu_added(queries, keys):
    """A tensor that it makes stays on the CPU and meets the scores; make it with device=queries.device, or not at
    all.
    """
    scores = queries @ keys.transpose(-2, -1)
    return scores + torch.zeros(scores.shape, dtype=scores.dtype)


@misconception("attention_scores", kind="dtype", caught_by="test_every_query_meets_every_key")
def scores_in_half_precision(queries, keys):
    """The products are taken in float16, which keeps three digits; stay in the inputs' dtype."""
    return (queries.half() @ keys.half().transpose(-2, -1)).to(queries.dtype)


@misconception("attention_scores", kind="side effect", caught_by="test_every_query_meets_every_key")
def queries_scaled_in_place_first(queries, keys):
    """The caller's queries are scaled in place; scores are plain dot products, and inputs stay as they are."""
    queries *= keys.shape[-1] ** -0.5
    return queries @ keys.transpose(-2, -1)


@misconception("attention_scores", kind="contract", caught_by="test_every_query_meets_every_key")
def scores_not_returned(queries, keys):
    """Nothing is returned (None): end the function with `return`."""
    queries @ keys.transpose(-2, -1)


@misconception("attention_scores", kind="hard-coded output", caught_by="test_every_query_meets_every_key")
def scores_typed_in(queries, keys):
    """The worked example's first row is typed in; compute the scores from queries and keys."""
    return torch.tensor([[0.9231, 1.3545, 1.3241, 0.7910, 0.4032, 1.1330]]).repeat(6, 1)
