"""Unit 1: right answers to attention without weights, as different students write them."""

import torch

from ..catalogue import right_answer


@right_answer("dot_product_scores")
def one_dot_a_token(query, inputs):
    """torch.dot in a loop, stacked"""
    return torch.stack([torch.dot(token, query) for token in inputs])


@right_answer("dot_product_scores")
def filled_in_one_by_one(query, inputs):
    """filled into an empty tensor of the inputs' dtype and device"""
    scores = torch.empty(inputs.shape[0], dtype=inputs.dtype, device=inputs.device)
    for i, token in enumerate(inputs):
        scores[i] = torch.dot(token, query)
    return scores


@right_answer("dot_product_scores")
def query_times_transposed(query, inputs):
    """query @ inputs.T"""
    return query @ inputs.T


@right_answer("dot_product_scores")
def products_summed(query, inputs):
    """products, then a sum over the width"""
    return (inputs * query).sum(-1)


@right_answer("normalize_by_sum")
def divided_with_unsqueeze(scores):
    """torch.div and a sum with an unsqueeze"""
    return torch.div(scores, scores.sum(-1).unsqueeze(-1))


@right_answer("normalize_by_sum")
def times_the_reciprocal(scores):
    """times the reciprocal of the sum"""
    return scores * torch.sum(scores, dim=scores.dim() - 1, keepdim=True).reciprocal()


@right_answer("softmax")
def maximum_with_values(scores, dim=-1):
    """torch.max along dim and its values"""
    exponentials = torch.exp(scores - torch.max(scores, dim=dim, keepdim=True).values)
    return exponentials / torch.sum(exponentials, dim=dim, keepdim=True)


@right_answer("softmax")
def log_sum_by_hand(scores, dim=-1):
    """exp of the shifted scores minus the logarithm of their sum"""
    shifted = scores - scores.max(dim, keepdim=True)[0].detach()
    return (shifted - shifted.exp().sum(dim, keepdim=True).log()).exp()


@right_answer("softmax")
def powers_of_e(scores, dim=-1):
    """math.e to the power of the shifted scores"""
    import math

    powers = math.e ** (scores - scores.amax(dim, True))
    return powers / powers.sum(dim, True)


@right_answer("softmax")
def moved_to_the_end(scores, dim=-1):
    """the dimension is moved to the end and back; float64 inside"""
    moved = scores.movedim(dim, -1).double()
    exponentials = (moved - moved.max(-1, keepdim=True).values).exp()
    return (exponentials / exponentials.sum(-1, keepdim=True)).movedim(-1, dim).to(scores.dtype)


@right_answer("context_vector")
def weighted_tokens_summed(weights, inputs):
    """weighted tokens, summed over dim 0"""
    return (weights[:, None] * inputs).sum(dim=0)


@right_answer("context_vector")
def summed_in_a_loop(weights, inputs):
    """a running sum"""
    context = torch.zeros_like(inputs[0])
    for weight, token in zip(weights, inputs, strict=True):
        context = context + weight * token
    return context


@right_answer("context_vector")
def transposed_product(weights, inputs):
    """inputs.T @ weights"""
    return inputs.T @ weights


@right_answer("pairwise_scores")
def two_loops(inputs):
    """two loops of dot products"""
    return torch.stack([torch.stack([torch.dot(a, b) for b in inputs]) for a in inputs])


@right_answer("pairwise_scores")
def einsum_pairs(inputs):
    """einsum"""
    return torch.einsum("id,jd->ij", inputs, inputs)


@right_answer("simple_self_attention")
def query_by_query(inputs):
    """one query at a time"""
    rows = []
    for query in inputs:
        weights = torch.nn.functional.softmax(inputs @ query, dim=0)
        rows.append(weights @ inputs)
    return torch.stack(rows)


@right_answer("simple_self_attention")
def softmax_written_out(inputs):
    """the softmax written out"""
    scores = torch.mm(inputs, inputs.t())
    exponentials = torch.exp(scores - scores.max(dim=1, keepdim=True)[0])
    return torch.mm(exponentials / exponentials.sum(dim=1, keepdim=True), inputs)
