"""Right answers that have a name of their own for every argument: it is by its place that a grader passes each."""

import torch
from torch import nn

from autograder.catalogue import right_answer


@right_answer("build_vocab")
def vocab_in_other_names(text):
    """other names for all arguments"""
    return {token: number for number, token in enumerate(sorted({*text.replace(",", "").split()}))}


@right_answer("encode")
def encoded_in_other_names(text, numbers):
    """other names for all arguments"""
    return torch.tensor([numbers[token] for token in text.replace(",", "").split()])


@right_answer("embed")
def embedded_in_other_names(numbers, rows):
    """other names for all arguments"""
    return rows[numbers, :]


@right_answer("project_qkv")
def projected_in_other_names(x, wq, wk, wv):
    """other names for all arguments"""
    return torch.matmul(x, wq), torch.matmul(x, wk), torch.matmul(x, wv)


@right_answer("linear_projection")
def linear_in_other_names(x, w):
    """other names for all arguments"""
    return torch.matmul(x, w.t())


@right_answer("attention_scores")
def scores_in_other_names(q, k):
    """other names for all arguments"""
    return torch.matmul(q, k.transpose(-1, -2))


@right_answer("scaled_softmax")
def scaled_in_other_names(attn, width):
    """other names for all arguments"""
    return (attn / width**0.5).softmax(-1)


@right_answer("context_vectors")
def contexts_in_other_names(attn, v):
    """other names for all arguments"""
    return torch.matmul(attn, v)


@right_answer("single_query_attention")
def query_in_other_names(q, k, v):
    """other names for all arguments"""
    return torch.softmax(k @ q / len(q) ** 0.5, 0) @ v


@right_answer("scaled_dot_product_attention")
def attention_in_other_names(q, k, v):
    """other names for all arguments"""
    return torch.softmax(q @ k.transpose(-1, -2) / k.size(-1) ** 0.5, -1) @ v


@right_answer("score_variance")
def variance_in_other_names(q, k):
    """other names for all arguments"""
    products = q @ k.transpose(-1, -2)
    return products.var(), (products / k.size(-1) ** 0.5).var()


@right_answer("SelfAttention_v1")
class MatricesInOtherNames(nn.Module):
    """other names for all arguments"""

    def __init__(self, n_in, n_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Parameter(torch.rand(n_in, n_out)) for _ in range(3))

    def forward(self, tokens):
        q, k, v = tokens @ self.W_query, tokens @ self.W_key, tokens @ self.W_value
        return torch.softmax(q @ k.mT / k.size(-1) ** 0.5, -1) @ v


@right_answer("SelfAttention_v2")
class LayersInOtherNames(nn.Module):
    """other names for all arguments"""

    def __init__(self, n_in, n_out, use_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(n_in, n_out, use_bias) for _ in range(3))

    def forward(self, tokens):
        q, k, v = self.W_query(tokens), self.W_key(tokens), self.W_value(tokens)
        return torch.softmax(q @ k.mT / k.size(-1) ** 0.5, -1) @ v


@right_answer("copy_weights")
def copied_in_other_names(source, target):
    """other names for all arguments"""
    with torch.no_grad():
        for name, own in target.named_parameters():
            layer, _, part = name.partition(".")
            own.copy_(source.get_parameter(layer).mT if part == "weight" else torch.zeros_like(own))
