"""Dropout by what it promises, whatever chance draws: the rate, the mean, and nothing outside of training.

Bounds are six standard deviations of a binomial count, and the seeds are fixed.
"""

import math

import pytest
import torch

from solutions import causal_attention as unit3
from solutions import multi_head_attention as unit4

RATES = [0.1, 0.5, 0.9]
TOKENS, HEADS, BATCH = 5, 2, 600


def assert_rate(dropped, p):
    """Assert that the share of dropped places is about p."""
    count = dropped.numel()
    assert abs(float(dropped.double().mean()) - p) < 6 * math.sqrt(p * (1 - p) / count)


def assert_alone(dropped, p):
    """Assert that places are dropped independently of their neighbours in the batch, the row and the column."""
    for dim in (dim for dim, length in enumerate(dropped.shape) if length > 1):
        both = dropped.narrow(dim, 1, dropped.shape[dim] - 1) & dropped.narrow(dim, 0, dropped.shape[dim] - 1)
        assert abs(float(both.double().mean()) - p * p) < 9 * math.sqrt(p * p * (1 - p * p) / both.numel())


@pytest.mark.parametrize("p", RATES)
def test_attention_dropout(p):
    torch.manual_seed(0)
    weights = torch.rand(60, 40, 50, dtype=torch.float64) + 0.5
    dropped = unit3.attention_dropout(weights, p)
    gone = dropped == 0
    assert_rate(gone, p)
    assert_alone(gone, p)
    assert torch.allclose(dropped[~gone], weights[~gone] / (1 - p), rtol=1e-12)
    assert abs(float(dropped.mean() / weights.mean()) - 1) < 6 * math.sqrt(1.1 * p / (1 - p) / weights.numel())
    assert not torch.equal(gone, unit3.attention_dropout(weights, p) == 0)
    assert torch.equal(unit3.attention_dropout(weights, p, False), weights)


def test_a_gradient_passes_where_a_weight_was_kept():
    torch.manual_seed(0)
    weights = torch.rand(8, 8, dtype=torch.float64, requires_grad=True)
    dropped = unit3.attention_dropout(weights, 0.5)
    dropped.sum().backward()
    assert torch.equal(weights.grad, torch.where(dropped == 0, 0.0, 2.0).double())


def built(name, p):
    """Return a module whose output is its attention weights, one head after another: the values are the identity."""
    width = HEADS * TOKENS
    torch.manual_seed(0)
    match name:
        case "CausalAttention":
            module = unit3.CausalAttention(width, TOKENS, TOKENS, p)
        case "MultiHeadAttentionWrapper":
            module = unit3.MultiHeadAttentionWrapper(width, TOKENS, TOKENS, p, HEADS)
        case _:
            module = getattr(unit4, name)(width, width, TOKENS, p, HEADS)
    for inner in module.modules():
        if hasattr(inner, "W_value"):
            inner.W_value.weight.data = torch.eye(*inner.W_value.weight.shape)
        if hasattr(inner, "out_proj"):
            inner.out_proj.weight.data = torch.eye(width)
            inner.out_proj.bias.data.zero_()
    return module, torch.eye(TOKENS).repeat(1, HEADS).expand(BATCH, -1, -1)


MODULES = [
    "CausalAttention",
    "MultiHeadAttentionWrapper",
    "MultiHeadAttention",
    "OptimizedMultiHeadAttention",
    "EfficientMultiHeadAttention",
]


@pytest.mark.parametrize("p", RATES)
@pytest.mark.parametrize("name", MODULES)
def test_modules(name, p):
    module, x = built(name, p)
    weights = module.eval()(x).unflatten(-1, (-1, TOKENS))  # (b, query, head, key)
    assert torch.allclose(weights.sum(-1), torch.ones(()))
    dropped = module.train()(x).unflatten(-1, (-1, TOKENS))
    seen = torch.ones(TOKENS, TOKENS).tril().bool()[None, :, None, :].expand(weights.shape)
    gone = dropped == 0
    assert gone[~seen].all()
    assert torch.allclose(dropped[~gone], weights[~gone] / (1 - p), rtol=1e-5)
    assert_rate(gone[seen], p)
    assert_alone(gone[:, -1], p)  # the last query sees every key
    assert not torch.equal(dropped, module(x).unflatten(-1, (-1, TOKENS)))


@pytest.mark.parametrize("name", MODULES)
def test_a_module_in_evaluation_is_one_without_dropout(name):
    (module, x), (without, _) = built(name, 0.9), built(name, 0.0)
    assert torch.equal(module.eval()(x), without.train()(x))
