"""What goes wrong in `simple_self_attention`."""

import torch

from ...catalogue import misconception


@misconception("simple_self_attention", kind="value", caught_by="test_other_tokens")
def softmax_over_columns(inputs):
    """The columns of the weights sum to 1, not the rows: the softmax runs over dim=0, or the weights are transposed."""
    return torch.softmax(inputs @ inputs.T, dim=0) @ inputs


@misconception("simple_self_attention", kind="value", caught_by="test_other_tokens")
def attention_scaled(inputs):
    """The scores are divided by the square root of the width; simple attention does not scale yet, unit 2 does."""
    return torch.softmax(inputs @ inputs.T / inputs.shape[-1] ** 0.5, dim=-1) @ inputs


@misconception("simple_self_attention", kind="value", caught_by="test_other_tokens")
def attention_without_softmax(inputs):
    """The softmax is missing: the scores themselves are used as weights."""
    return inputs @ inputs.T @ inputs


@misconception("simple_self_attention", kind="value", caught_by="test_other_tokens")
def attention_by_plain_sums(inputs):
    """The scores are divided by their sum; take a softmax over each row."""
    scores = inputs @ inputs.T
    return scores / scores.sum(dim=-1, keepdim=True) @ inputs


@misconception("simple_self_attention", kind="value", caught_by="test_other_tokens")
def attention_weights_returned(inputs):
    """The attention weights are returned; multiply them with the inputs to get the context vectors."""
    return torch.softmax(inputs @ inputs.T, dim=-1)


@misconception("simple_self_attention", kind="value", caught_by="test_other_tokens")
def softmax_of_everything(inputs):
    """The softmax runs over the whole matrix; each row should sum to 1 on its own, so use dim=-1."""
    scores = inputs @ inputs.T
    return torch.softmax(scores.flatten(), dim=0).view_as(scores) @ inputs


@misconception("simple_self_attention", kind="value", caught_by="test_other_tokens")
def attention_of_the_second_token(inputs):
    """Every row is the second token's context vector; each token is the query of its own row."""
    return (torch.softmax(inputs @ inputs[1], dim=-1) @ inputs).expand_as(inputs)


@misconception("simple_self_attention", kind="gradient", caught_by="test_gradients")
def attention_detached(inputs):
    """The weights are detached from the graph (`.detach()` or torch.no_grad()); gradients flow through them too."""
    return torch.softmax(inputs @ inputs.T, dim=-1).detach() @ inputs
