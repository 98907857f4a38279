"""What goes wrong in `context_vectors`."""

import torch

from ...catalogue import misconception


@misconception("context_vectors", kind="value", caught_by="test_other_weights")
def context_weights_transposed(weights, values):
    """The weights are transposed before they meet the values; row i already holds query i's weights."""
    return weights.transpose(-2, -1) @ values


@misconception("context_vectors", kind="value", caught_by="test_other_weights")
def values_first(weights, values):
    """The values come first in the product; the weights do: weights @ values."""
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
