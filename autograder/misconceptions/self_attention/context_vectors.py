"""What goes wrong in `context_vectors`."""

import torch

from ...catalogue import misconception


@misconception("context_vectors", kind="value", caught_by="test_other_weights")
def context_weights_transposed(weights, values):
    """The weights are transposed before they meet the values; row i already holds query i's weights."""
    return weights.transpose(-2, -1) @ values


@misconception("context_vectors", kind="value", caught_by="test_other_weights")
def values_first(weights, values):
    """The values come first in the product; the weights should."""
    return values @ weights


@misconception("context_vectors", kind="value", caught_by="test_other_weights")
def context_weights_softmaxed_again(weights, values):
    """A softmax is applied to the weights; they are weights already and are used as they are."""
    return torch.softmax(weights, dim=-1) @ values


@misconception("context_vectors", kind="value", caught_by="test_other_weights")
def context_averaged(weights, values):
    """The weighted values are averaged over the keys; the weights sum to 1 already, so the values are added up."""
    return weights @ values / values.shape[-2]


@misconception("context_vectors", kind="edge", caught_by="test_any_leading_dimensions")
def values_of_the_first_sequence(weights, values):
    """Every sequence of the batch takes its values from the first one; keep the leading dimensions."""
    while values.dim() > 2:
        values = values[0]
    return weights @ values


@misconception("context_vectors", kind="gradient", caught_by="test_gradients")
def context_weights_out_of_the_graph(weights, values):
    """The weights are taken out of the graph (`.detach()`, `.data`), so queries and keys can not learn."""
    return weights.detach() @ values


@misconception("context_vectors", kind="contract", caught_by="test_six_words")
def weights_and_values_transposed(weights, values):
    """The result stays transposed, (d_v, Tq); it should have one row for each query."""
    return values.transpose(-2, -1) @ weights.transpose(-2, -1)


@misconception("context_vectors", kind="value", caught_by="test_six_words")
def values_transposed_first(weights, values):
    """The values are transposed and come first; the weights come first, and nothing is transposed."""
    return values.transpose(-2, -1) @ weights


@misconception("context_vectors", kind="value", caught_by="test_other_weights")
def weights_made_to_sum_to_one(weights, values):
    """The weights are divided by their sum; they are used as they are."""
    return weights / weights.sum(dim=-1, keepdim=True) @ values


@misconception("context_vectors", kind="value", caught_by="test_six_words")
def context_scaled(weights, values):
    """The context vectors are divided by a square root; they are the plain weighted sums."""
    return weights @ values / values.shape[-1] ** 0.5


@misconception("context_vectors", kind="value", caught_by="test_six_words")
def weights_times_values(weights, values):
    """Weights and values are multiplied place by place, which mostly fails; blending is a matrix product."""
    return weights * values


@misconception("context_vectors", kind="value", caught_by="test_six_words")
def weighted_values_not_summed(weights, values):
    """The weighted values are not summed: a dimension Tk is left. Sum over the keys."""
    return weights.unsqueeze(-1) * values.unsqueeze(-3)


@misconception("context_vectors", kind="value", caught_by="test_six_words")
def summed_over_the_queries(weights, values):
    """The weighted values are summed over the queries; sum over the keys, dim=-2."""
    return (weights.unsqueeze(-1) * values.unsqueeze(-3)).sum(dim=-3)


@misconception("context_vectors", kind="edge", caught_by="test_any_leading_dimensions")
def context_of_matrices_only(weights, values):
    """It works for two dimensions only (mm, or an einsum with fixed letters); there may be leading ones."""
    return torch.mm(weights, values)


@misconception("context_vectors", kind="edge", caught_by="test_six_words")
def context_of_batches_only(weights, values):
    """It takes exactly three dimensions (bmm, or an einsum with fixed letters); @ takes any number."""
    return torch.bmm(weights, values)


@misconception("context_vectors", kind="edge", caught_by="test_any_leading_dimensions")
def context_of_matrices_and_batches_only(weights, values):
    """It takes two dimensions or three, and no more; @ takes any number."""
    return torch.bmm(weights, values) if weights.dim() == 3 else torch.mm(weights, values)


@misconception("context_vectors", kind="value", caught_by="test_any_leading_dimensions")
def context_crossed(weights, values):
    """Every sequence meets the values of every other (tensordot); matmul keeps leading dimensions apart."""
    return torch.tensordot(weights, values, dims=1)


@misconception("context_vectors", kind="value", caught_by="test_any_leading_dimensions")
def context_summed_over_the_batch(weights, values):
    """The context vectors are summed over the leading dimensions; each sequence keeps its own."""
    return torch.einsum("...qk,...kd->qd", weights, values)


@misconception("context_vectors", kind="contract", caught_by="test_other_weights")
def first_query_alone(weights, values):
    """Only the first query's context vector is returned; every query has one."""
    return weights[0] @ values


@misconception("context_vectors", kind="value", caught_by="test_six_words")
def heaviest_value_only(weights, values):
    """Only the value with the largest weight is taken; every value contributes by its weight."""
    return torch.take_along_dim(values, weights.argmax(dim=-1).unsqueeze(-1), dim=-2)


@misconception("context_vectors", kind="value", caught_by="test_other_weights")
def values_averaged(weights, values):
    """The values are averaged without the weights; each counts by its weight."""
    return values.mean(dim=-2, keepdim=True).expand(*weights.shape[:-1], -1)


@misconception("context_vectors", kind="mask", caught_by="test_other_weights")
def later_values_left_out(weights, values):
    """Weights above the diagonal are dropped (tril), a causal mask; nothing is hidden here."""
    return torch.tril(weights) @ values


@misconception("context_vectors", kind="contract", caught_by="test_six_words")
def context_with_the_weights(weights, values):
    """It returns a pair, context vectors and weights; only the context vectors are asked for."""
    return weights @ values, weights


@misconception("context_vectors", kind="edge", caught_by="test_any_leading_dimensions")
def context_squeezed(weights, values):
    """squeeze() drops dimensions of size 1, a batch or a sequence of one too; leave it out."""
    return (weights @ values).squeeze()


@misconception("context_vectors", kind="gradient", caught_by="test_gradients")
def values_out_of_the_graph(weights, values):
    """No gradient reaches the values: they are detached (`.detach()` or `.data`)."""
    return weights @ values.detach()


@misconception("context_vectors", kind="gradient", caught_by="test_gradients")
def context_out_of_the_graph(weights, values):
    """The context vectors carry no gradient (`.detach()`, `.data` or torch.no_grad())."""
    return (weights @ values).detach()


@misconception("context_vectors", kind="gradient", caught_by="test_gradients")
def context_numbers_through_numpy(weights, values):
    """The result is rebuilt from numbers (NumPy), so that no gradient flows back."""
    return torch.from_numpy(weights.detach().numpy() @ values.detach().numpy())


@misconception("context_vectors", kind="dtype", caught_by="test_float64_stays_exact")
def context_vectors_in_float32(weights, values):
    """The context vectors are float32 whatever the values are; keep their dtype."""
    return weights.float() @ values.float()


@misconception("context_vectors", kind="dtype", caught_by="test_dtype_is_kept")
def context_vectors_in_float64(weights, values):
    """The context vectors are float64 even for float32 values; convert them back."""
    return weights.double() @ values.double()


@misconception("context_vectors", kind="device", caught_by="test_any_leading_dimensions")
def context_of_matrices_in_float32_zeros(weights, values):
    """Loops fill a float32 tensor on the CPU, for two matrices alone; a matrix product takes any shape, dtype and
    device.
    """
    context = torch.zeros(weights.shape[0], values.shape[1])
    for i in range(weights.shape[0]):
        for j in range(values.shape[0]):
            context[i] += weights[i, j] * values[j]
    return context


@misconception("context_vectors", kind="device", caught_by="test_follows_device")
def context_zeros_on_the_cpu_added(weights, values):
    """A tensor that it makes stays on the CPU and meets the result; make it with device=values.device, or not at
    all.
    """
    context = weights @ values
    return context + torch.zeros(context.shape, dtype=context.dtype)


@misconception("context_vectors", kind="device", caught_by="test_follows_device")
def context_vectors_left_on_the_cpu(weights, values):
    """The context vectors end on the CPU, whatever device the values are on."""
    return (weights @ values).cpu()


@misconception("context_vectors", kind="side effect", caught_by="test_other_weights")
def weights_normalised_in_place(weights, values):
    """The caller's weights are divided by their sum in place; they are used as they are, and left so."""
    weights /= weights.sum(dim=-1, keepdim=True)
    return weights @ values


@misconception("context_vectors", kind="contract", caught_by="test_six_words")
def context_vectors_not_returned(weights, values):
    """Nothing is returned (None): end the function with `return`."""
    weights @ values


@misconception("context_vectors", kind="hard-coded output", caught_by="test_other_weights")
def context_vector_typed_in(weights, values):
    """The worked example's context vector is typed in; compute it from weights and values."""
    return torch.tensor([[0.2996, 0.8053]])
