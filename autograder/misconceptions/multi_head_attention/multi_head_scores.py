"""What goes wrong in `multi_head_scores`."""

import torch

from ...catalogue import misconception


@misconception("multi_head_scores", kind="value", caught_by="test_other_shapes")
def head_scores_already_scaled(queries, keys):
    """The scores are already divided by the square root of the width; here they are the plain dot products."""
    return queries @ keys.mT / keys.shape[-1] ** 0.5


@misconception("multi_head_scores", kind="value", caught_by="test_other_shapes")
def head_scores_already_softmaxed(queries, keys):
    """A softmax is applied; scores are the plain dot products, and softmax comes later."""
    return torch.softmax(queries @ keys.mT, dim=-1)


@misconception("multi_head_scores", kind="value", caught_by="test_other_shapes")
def head_weights_at_once(queries, keys):
    """The scores are scaled and softmaxed, which makes weights of them; return the plain dot products."""
    return torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1)


@misconception("multi_head_scores", kind="mask", caught_by="test_other_shapes")
def head_scores_already_masked(queries, keys):
    """The scores of later keys are already hidden; that is a step of its own, and these are all the dot products."""
    later = torch.ones(keys.shape[-2], keys.shape[-2], device=keys.device).triu(diagonal=1).bool()
    return (queries @ keys.mT).masked_fill(later, -torch.inf)


@misconception("multi_head_scores", kind="value", caught_by="test_other_shapes")
def head_queries_and_keys_swapped(queries, keys):
    """Rows and columns are swapped: row i should hold query i's scores, so the queries come first in the product."""
    return keys @ queries.mT


@misconception("multi_head_scores", kind="value", caught_by="test_equal_sizes")
def heads_and_tokens_transposed(queries, keys):
    """transpose(1, 2) swaps heads and tokens; the product needs the keys' last two dimensions swapped: (-2, -1)."""
    return queries @ keys.transpose(1, 2)


@misconception("multi_head_scores", kind="edge", caught_by="test_equal_sizes")
def batch_and_heads_transposed(queries, keys):
    """transpose(0, 1) swaps batch and heads; the product needs the keys' last two dimensions swapped: (-2, -1)."""
    return queries @ keys.transpose(0, 1)


@misconception("multi_head_scores", kind="value", caught_by="test_equal_sizes")
def keys_not_transposed(queries, keys):
    """The keys are not transposed, so shapes fit only by luck; swap their last two dimensions: (-2, -1)."""
    return queries @ keys


@misconception("multi_head_scores", kind="value", caught_by="test_other_shapes")
def keys_reversed(queries, keys):
    """`.T` reverses all four dimensions; swap just the last two with transpose(-2, -1)."""
    return queries @ keys.permute(3, 2, 1, 0)


@misconception("multi_head_scores", kind="value", caught_by="test_other_shapes")
def keys_reshaped(queries, keys):
    """The keys are reshaped to (b, h, hd, T), which mixes their numbers; transpose(-2, -1) swaps the dimensions."""
    b, h, num_tokens, head_dim = keys.shape
    return queries @ keys.reshape(b, h, head_dim, num_tokens)


@misconception("multi_head_scores", kind="value", caught_by="test_other_shapes")
def queries_transposed_instead(queries, keys):
    """The queries are transposed in place of the keys, which gives (hd, hd) a head; scores are (T, T)."""
    return queries.mT @ keys


@misconception("multi_head_scores", kind="value", caught_by="test_other_shapes")
def heads_meet_each_other(queries, keys):
    """The heads are flattened into the tokens, so that queries meet keys of other heads; keep (b, h) as they are."""
    return queries.flatten(1, 2) @ keys.flatten(1, 2).mT


@misconception("multi_head_scores", kind="value", caught_by="test_other_shapes")
def head_scores_summed(queries, keys):
    """The scores of all heads are summed into one; every head keeps its own: (b, h, T, T)."""
    return torch.einsum("bhqd,bhkd->bqk", queries, keys)


@misconception("multi_head_scores", kind="value", caught_by="test_other_shapes")
def head_scores_averaged(queries, keys):
    """The scores of all heads are averaged into one; every head keeps its own: (b, h, T, T)."""
    return (queries @ keys.mT).mean(dim=1)


@misconception("multi_head_scores", kind="value", caught_by="test_other_shapes")
def own_keys_only(queries, keys):
    """Each query meets only the key of its own token (an elementwise product); it should meet all: a matrix product."""
    return (queries * keys).sum(dim=-1)


@misconception("multi_head_scores", kind="value", caught_by="test_other_shapes")
def keys_of_head_0(queries, keys):
    """Every head is scored against head 0's keys; each head has its own."""
    return queries @ keys[:, :1].mT


@misconception("multi_head_scores", kind="edge", caught_by="test_other_shapes")
def keys_of_the_first_sequence(queries, keys):
    """Every sequence of the batch is scored against the first one's keys; keep the batch dimension."""
    return queries @ keys[:1].mT


@misconception("multi_head_scores", kind="edge", caught_by="test_equal_sizes")
def head_scores_squeezed(queries, keys):
    """`squeeze` drops a dimension of size 1, such as a batch of one; leave it out."""
    return (queries @ keys.mT).squeeze()


@misconception("multi_head_scores", kind="gradient", caught_by="test_gradients")
def head_keys_detached(queries, keys):
    """The keys are detached from the graph (`.detach()` or `.data`), so that W_key could never learn."""
    return queries @ keys.detach().mT


@misconception("multi_head_scores", kind="gradient", caught_by="test_gradients")
def head_scores_without_graph(queries, keys):
    """The scores are outside of the graph (`torch.no_grad()`, `.data`, `.detach()`), so nothing can learn."""
    return (queries @ keys.mT).detach()


@misconception("multi_head_scores", kind="dtype", caught_by="test_float64_stays_exact")
def head_scores_in_float32(queries, keys):
    """The scores are float32 whatever the inputs are (`.float()`), so float64 loses digits; keep the inputs' dtype."""
    return queries.float() @ keys.float().mT


@misconception("multi_head_scores", kind="dtype", caught_by="test_dtype_is_kept")
def head_scores_in_float64(queries, keys):
    """The scores are float64 whatever the inputs are; keep the inputs' dtype."""
    return queries.double() @ keys.double().mT


@misconception("multi_head_scores", kind="side effect", caught_by="test_inputs_are_unchanged")
def head_keys_transposed_in_place(queries, keys):
    """The keys are transposed in place (`transpose_`), which changes the caller's tensor; use `transpose`."""
    return queries @ keys.transpose_(-2, -1)


@misconception("multi_head_scores", kind="device", caught_by="test_follows_device")
def head_scores_on_the_cpu(queries, keys):
    """The scores are on the CPU wherever the inputs are (`.cpu()`, torch.zeros without a device); one product makes
    them all."""
    b, h, num_tokens, _ = queries.shape
    scores = torch.zeros(b, h, num_tokens, num_tokens, dtype=queries.dtype)
    for head in range(h):
        scores[:, head] = queries[:, head] @ keys[:, head].mT
    return scores


@misconception("multi_head_scores", kind="value", caught_by="test_other_shapes")
def head_scores_divided_by_the_width(queries, keys):
    """The scores are divided by the width of a head; here they are the plain dot products."""
    return queries @ keys.mT / keys.shape[-1]


@misconception("multi_head_scores", kind="value", caught_by="test_other_shapes")
def head_queries_scored_against_themselves(queries, keys):
    """The queries are scored against themselves; the second factor is the keys."""
    return queries @ queries.mT


@misconception("multi_head_scores", kind="value", caught_by="test_other_shapes")
def head_keys_scored_against_themselves(queries, keys):
    """The keys are scored against themselves; the first factor is the queries."""
    return keys @ keys.mT


@misconception("multi_head_scores", kind="value", caught_by="test_other_shapes")
def products_not_summed(queries, keys):
    """Queries and keys are multiplied number by number, (b, h, T, hd); a dot product of every pair needs `@`."""
    return queries * keys


@misconception("multi_head_scores", kind="value", caught_by="test_other_shapes")
def heads_scored_within_a_token(queries, keys):
    """Heads meet heads within a token, (b, T, h, h); tokens meet tokens within a head: (b, h, T, T)."""
    return queries.transpose(1, 2) @ keys.permute(0, 2, 3, 1)


@misconception("multi_head_scores", kind="value", caught_by="test_other_shapes")
def keys_of_all_heads_summed(queries, keys):
    """A query meets the sum of all heads' keys; it meets those of its own head alone."""
    return queries @ keys.sum(dim=1, keepdim=True).mT


@misconception("multi_head_scores", kind="value", caught_by="test_other_shapes")
def keys_of_all_sequences_summed(queries, keys):
    """A query meets the sum of all sequences' keys; it meets those of its own sequence alone."""
    return queries @ keys.sum(dim=0, keepdim=True).mT


@misconception("multi_head_scores", kind="edge", caught_by="test_other_shapes")
def first_sequence_scored(queries, keys):
    """Only the first sequence of the batch is scored; keep the batch as the first dimension."""
    return queries[:1] @ keys[:1].mT


@misconception("multi_head_scores", kind="value", caught_by="test_other_shapes")
def batch_and_heads_flattened(queries, keys):
    """Batch and heads are one dimension, (b * h, T, T); they stay apart: (b, h, T, T)."""
    return (queries @ keys.mT).flatten(0, 1)


@misconception("multi_head_scores", kind="value", caught_by="test_other_shapes")
def cosines_for_scores(queries, keys):
    """The vectors are normalised, which gives cosines; scores are the plain dot products."""
    return torch.cosine_similarity(queries.unsqueeze(-2), keys.unsqueeze(-3), dim=-1)


@misconception("multi_head_scores", kind="gradient", caught_by="test_gradients")
def head_scores_through_numpy(queries, keys):
    """The numbers go through NumPy or Python, which takes them out of the graph; multiply the tensors themselves."""
    return torch.from_numpy(queries.detach().numpy() @ keys.detach().numpy().swapaxes(2, 3))


@misconception("multi_head_scores", kind="dtype", caught_by="test_float64_stays_exact")
def head_scores_in_plain_zeros(queries, keys):
    """The scores are collected in torch.zeros without dtype and device, float32 on the CPU; one product keeps both."""
    b, h, num_tokens, _ = queries.shape
    scores = torch.zeros(b, h, num_tokens, num_tokens)
    for head in range(h):
        scores[:, head] = queries[:, head] @ keys[:, head].mT
    return scores


@misconception("multi_head_scores", kind="contract", caught_by="test_other_shapes")
def head_scores_not_returned(queries, keys):
    """Nothing is returned (None); end with `return` and the scores."""
    queries @ keys.mT


@misconception("multi_head_scores", kind="hard-coded output", caught_by="test_other_shapes")
def head_scores_typed_in(queries, keys):
    """The worked example's scores are returned whatever the inputs are; compute them."""
    heads = [
        [[-0.1297, 0.0669, -0.0021], [-0.0261, 0.0528, 0.0082], [-0.2096, 0.0390, -0.0267]],
        [[0.3337, 0.1287, 0.1743], [0.1751, 0.1163, 0.2615], [0.4345, 0.1396, 0.1754]],
    ]
    return torch.tensor([heads, heads])
