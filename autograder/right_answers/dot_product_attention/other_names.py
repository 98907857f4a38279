"""Right answers that have a name of their own for every argument: it is by its place that a grader passes each."""

import torch

from autograder.catalogue import right_answer


@right_answer("dot_product_scores")
def dot_products_in_other_names(q, x):
    """other names for all arguments"""
    return torch.mv(x, q)


@right_answer("normalize_by_sum")
def normalized_in_other_names(s):
    """other names for all arguments"""
    return s / torch.sum(s, -1, True)


@right_answer("softmax")
def softmax_in_other_names(s, axis=-1):
    """other names for all arguments"""
    powers = torch.exp(s - s.amax(axis, keepdim=True))
    return powers / powers.sum(axis, keepdim=True)


@right_answer("context_vector")
def context_in_other_names(attn, tokens):
    """other names for all arguments"""
    return torch.matmul(attn, tokens)


@right_answer("pairwise_scores")
def pairs_in_other_names(tokens):
    """other names for all arguments"""
    return torch.matmul(tokens, tokens.t())


@right_answer("simple_self_attention")
def attention_in_other_names(tokens):
    """other names for all arguments"""
    return torch.softmax(torch.matmul(tokens, tokens.t()), -1) @ tokens
