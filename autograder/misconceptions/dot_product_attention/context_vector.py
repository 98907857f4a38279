"""What goes wrong in `context_vector`."""

import torch

from ...catalogue import misconception


@misconception("context_vector", kind="value", caught_by="test_other_weights")
def products_left_apart(weights, inputs):
    """The weighted tokens are not summed: add them up over the tokens (dim=0), which leaves (d,)."""
    return weights.unsqueeze(-1) * inputs


@misconception("context_vector", kind="value", caught_by="test_other_weights")
def weighted_tokens_averaged(weights, inputs):
    """The weighted tokens are averaged; the weights sum to 1 already, so add the tokens up."""
    return (weights.unsqueeze(-1) * inputs).mean(dim=0)


@misconception("context_vector", kind="value", caught_by="test_other_weights")
def weights_ignored(weights, inputs):
    """The tokens are averaged without the weights; multiply each token by its weight and add them up."""
    return inputs.mean(dim=0)


@misconception("context_vector", kind="edge", caught_by="test_other_weights")
def heaviest_token_only(weights, inputs):
    """Only the token with the largest weight is returned; every token contributes by its weight."""
    return inputs[weights.argmax()]


@misconception("context_vector", kind="value", caught_by="test_other_weights")
def weights_normalised_again(weights, inputs):
    """A softmax is applied to the weights; they are weights already and are used as they are."""
    return torch.softmax(weights, dim=-1) @ inputs


@misconception("context_vector", kind="gradient", caught_by="test_gradients")
def context_weights_detached(weights, inputs):
    """The weights are detached (`.detach()`, `.item()` or `.tolist()`), so no gradient reaches them."""
    return weights.detach() @ inputs
