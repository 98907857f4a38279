"""Attention from dot products, beyond the catalogue."""

import torch
import torch.nn.functional as F

from . import rewritten, right, unlisted

# dot_product_scores


@rewritten("products_averaged")
def _(query, inputs):
    return torch.stack([(token * query).mean() for token in inputs])


@rewritten("one_score_for_all_tokens")
def _(query, inputs):
    return torch.einsum("d,td->", query, inputs)


@rewritten("scores_as_a_column")
def _(query, inputs):
    return (inputs * query).sum(dim=1, keepdim=True)


@rewritten("score_divided_by_the_root")
def _(query, inputs):
    return torch.mv(inputs, query).div(len(query) ** 0.5)


@rewritten("scores_without_gradients")
def _(query, inputs):
    with torch.no_grad():
        return torch.stack([query.dot(token) for token in inputs])


@rewritten("scores_filled_into_a_new_tensor")
def _(query, inputs):
    result = torch.zeros(len(inputs))
    for i in range(inputs.size(0)):
        for j in range(inputs.size(1)):
            result[i] += inputs[i, j] * query[j]
    return result


@unlisted("dot_product_scores")
def _(query, inputs):
    """Two mistakes: scaled, and then a softmax."""
    return torch.softmax(inputs @ query / query.shape[0] ** 0.5, dim=0)


@unlisted("dot_product_scores")
def _(query, inputs):
    return torch.sort(inputs @ query, descending=True).values


@unlisted("dot_product_scores")
def _(query, inputs):
    """The scores sum to 1 already, and the query is a token of the inputs."""
    scores = inputs @ inputs[0]
    return scores / scores.sum()


@right("dot_product_scores")
def _(query, inputs):
    return F.linear(inputs, query)


@right("dot_product_scores")
def _(query, inputs):
    scores = inputs.new_empty(len(inputs))
    for i, token in enumerate(inputs):
        scores[i] = (token * query).sum()
    return scores


# normalize_by_sum


@rewritten("summed_over_dim_0")
def _(scores):
    return torch.div(scores, sum(scores))


@rewritten("divided_by_the_sum_of_everything")
def _(scores):
    total = scores.reshape(-1) @ torch.ones_like(scores).reshape(-1)
    return scores / total


@rewritten("sum_detached")
def _(scores):
    with torch.no_grad():
        total = scores.sum(-1, keepdim=True)
    return scores / total


@unlisted("normalize_by_sum")
def _(scores):
    return scores / scores.cumsum(dim=-1)


@unlisted("normalize_by_sum", "divided_by_the_sum_of_everything")
def _(scores):
    """Two mistakes: absolute values, and over the whole tensor."""
    return scores.abs() / scores.abs().sum()


@right("normalize_by_sum")
def _(scores):
    if scores.dim() > 1:
        return torch.stack([part / part.sum(dim=-1, keepdim=True) for part in scores])
    return scores / scores.sum()


@right("normalize_by_sum")
def _(scores):
    width = scores.shape[-1]
    return scores / (scores @ torch.ones(width, width, dtype=scores.dtype, device=scores.device))


# softmax


@rewritten("naive_exponentials")
def _(scores, dim=-1):
    powers = torch.e**scores
    return powers / powers.sum(dim, keepdim=True)


@rewritten("maximum_of_everything")
def _(scores, dim=-1):
    powers = (scores - torch.max(scores.flatten(), dim=0).values).exp()
    return powers * powers.sum(dim=dim, keepdim=True).reciprocal()


@rewritten("sign_reversed")
def _(scores, dim=-1):
    negated = -scores
    powers = torch.exp(negated - negated.amax(dim=dim, keepdim=True))
    return powers / powers.sum(dim=dim, keepdim=True)


@rewritten("maximum_of_the_last_dimension")
def _(scores, dim=-1):
    largest, _ = scores.max(-1, keepdim=True)
    powers = (scores - largest).exp()
    return powers / powers.sum(dim=dim).unsqueeze(dim)


@unlisted("softmax")
def _(scores, dim=-1):
    """Values far below the maximum are all held at the same level."""
    powers = (scores - scores.amax(dim=dim, keepdim=True)).clamp(min=-10).exp()
    return powers / powers.sum(dim=dim, keepdim=True)


@unlisted("softmax", "powers_of_two")
def _(scores, dim=-1):
    """Two mistakes: powers of 2, and over the last dimension whatever dim is."""
    powers = 2 ** (scores - scores.amax(dim=-1, keepdim=True))
    return powers / powers.sum(dim=-1, keepdim=True)


@unlisted("softmax", "library_softmax")
def _(scores, dim=-1):
    return torch.distributions.Categorical(logits=scores.movedim(dim, -1)).probs.movedim(-1, dim)


@right("softmax")
def _(scores, dim=-1):
    lines = scores.movedim(dim, -1)
    powers = torch.exp(lines - lines.max(dim=-1, keepdim=True).values.detach())
    return (powers / powers.sum(dim=-1, keepdim=True)).movedim(-1, dim)


@right("softmax")
def _(scores, dim=-1):
    shifted = scores - scores.amax(dim=dim, keepdim=True)
    return torch.exp(shifted - shifted.exp().sum(dim=dim, keepdim=True).log())


# context_vector


@rewritten("summed_over_the_width")
def _(weights, inputs):
    return torch.einsum("t,td->t", weights, inputs)


@rewritten("context_as_a_row")
def _(weights, inputs):
    return (weights[:, None] * inputs).sum(dim=0, keepdim=True)


@rewritten("last_token_alone")
def _(weights, inputs):
    for weight, token in zip(weights, inputs, strict=True):
        blended = weight * token
    return blended


@unlisted("context_vector", "context_through_numpy", "weights_made_to_sum_to_1")
def _(weights, inputs):
    import numpy as np

    return torch.tensor(np.average(inputs.tolist(), axis=0, weights=weights.tolist()))


@unlisted("context_vector")
def _(weights, inputs):
    return weights.flip(0) @ inputs


@right("context_vector")
def _(weights, inputs):
    return sum(weight * token for weight, token in zip(weights, inputs, strict=True))


@right("context_vector")
def _(weights, inputs):
    return torch.addmv(inputs.new_zeros(inputs.shape[1]), inputs.t(), weights)


# pairwise_scores


@rewritten("pairwise_cosines")
def _(inputs):
    return F.cosine_similarity(inputs[:, None], inputs[None], dim=-1)


@rewritten("pairwise_filled_into_a_new_tensor")
def _(inputs):
    count = inputs.size(0)
    table = torch.zeros((count, count))
    for row in range(count):
        table[row] = inputs @ inputs[row]
    return table


@rewritten("lower_half_only")
def _(inputs):
    table = inputs.new_zeros(len(inputs), len(inputs))
    for i in range(len(inputs)):
        for j in range(i + 1):
            table[i, j] = inputs[i] @ inputs[j]
    return table


@unlisted("pairwise_scores")
def _(inputs):
    """Two mistakes: no score with itself, and a softmax."""
    return torch.softmax((inputs @ inputs.T).fill_diagonal_(0), dim=-1)


@right("pairwise_scores")
def _(inputs):
    return torch.vmap(lambda query: inputs @ query)(inputs)


# simple_self_attention


@rewritten("attention_is_causal")
def _(inputs):
    rows = [torch.softmax(inputs[: i + 1] @ inputs[i], dim=0) @ inputs[: i + 1] for i in range(len(inputs))]
    return torch.stack(rows)


@rewritten("attention_overflows")
def _(inputs):
    powers = (inputs @ inputs.T).exp()
    return torch.einsum("ij,jd->id", powers / powers.sum(1)[:, None], inputs)


@rewritten("attention_with_weights")
def _(inputs):
    attention = F.softmax(torch.mm(inputs, inputs.t()), dim=1)
    return attention.mm(inputs), attention


@unlisted("simple_self_attention")
def _(inputs):
    """Two mistakes: causal, and scaled."""
    scores = inputs @ inputs.T / inputs.shape[-1] ** 0.5
    return torch.softmax(scores.masked_fill(torch.ones_like(scores).triu(1) > 0, -torch.inf), dim=-1) @ inputs


@unlisted("simple_self_attention")
def _(inputs):
    weights = torch.softmax(inputs @ inputs.T, dim=-1)
    return (weights > weights.mean()).to(inputs.dtype) @ inputs


@right("simple_self_attention")
def _(inputs):
    """The scores are symmetric, so that columns are rows."""
    return torch.softmax(inputs @ inputs.T, dim=0).T @ inputs


@right("simple_self_attention")
def _(inputs):
    exact = inputs.double()
    return (torch.softmax(exact @ exact.T, dim=-1) @ exact).to(inputs.dtype)
