"""Solutions and PyTorch's own attention give the same results, and the same gradients.

`test_formulas` has every solution; what is here shows that its formulas mean what PyTorch means by attention.
"""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from solutions import causal_attention as unit3
from solutions import dot_product_attention as unit1
from solutions import multi_head_attention as unit4
from solutions import self_attention as unit2

from .drawing import assert_close, batches, draws, leading, precise, sizes
from .library import hidden_keys, sdpa


def assert_same(draw, function, library, *inputs, scale=1.0):
    """Both give the same result and, in the types that are precise enough, the same gradients of their inputs."""
    inputs = [tensor.detach().requires_grad_() for tensor in inputs]
    ours, theirs = function(*inputs), library(*inputs)
    size = scale * (1 + max(float(tensor.detach().abs().max()) for tensor in inputs)) ** 3 * inputs[0].shape[-1]
    assert_close(ours, theirs.detach().double(), draw.dtype, scale=size)
    if draw.dtype in (torch.float64, torch.float32):
        cotangent = draw.numbers().randn(*ours.shape)
        gradients = (torch.autograd.grad(result, inputs, cotangent) for result in (ours, theirs))
        for one, other in zip(*gradients, strict=True):
            assert_close(one, other.double(), draw.dtype, scale=size**2)


@given(draws, st.lists(sizes, min_size=1, max_size=3), st.data())
def test_softmax(draw, shape, data):
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    scores = draw.numbers().randn(*shape)
    assert_same(draw, lambda s: unit1.softmax(s, dim), lambda s: torch.softmax(s, dim), scores)


@given(draws, leading, sizes, sizes, sizes, sizes)
def test_scaled_dot_product_attention(draw, before, tq, tk, d_k, d_v):
    n = draw.numbers()
    inputs = n.randn(*before, tq, d_k), n.randn(*before, tk, d_k), n.randn(*before, tk, d_v)
    assert_same(draw, unit2.scaled_dot_product_attention, sdpa, *inputs)


@given(draws, batches, sizes, sizes)
def test_causal_head(draw, b, tokens, head_dim):
    n = draw.numbers()
    inputs = [n.randn(b, tokens, head_dim) for _ in range(3)]
    assert_same(draw, unit3.causal_head, lambda q, k, v: sdpa(q, k, v, is_causal=True), *inputs)


@given(precise, batches, sizes, sizes)
def test_causal_softmax(draw, b, tokens, d_k):
    """With the identity for values, attention is its own weights."""
    n = draw.numbers()
    queries, keys = n.randn(b, tokens, d_k), n.randn(b, tokens, d_k)
    values = torch.eye(tokens, dtype=draw.dtype).expand(b, -1, -1)
    right = sdpa(queries, keys, values, is_causal=True)
    assert_close(unit3.causal_softmax(queries @ keys.mT, d_k), right.double(), draw.dtype, scale=d_k * 16)
    full = unit2.scaled_softmax(queries @ keys.mT, d_k)
    for one, other in zip(full, right, strict=True):
        assert_close(unit3.renormalized_causal_weights(one), other.double(), draw.dtype, scale=d_k * 256)


@pytest.mark.parametrize(
    "kind", [unit4.MultiHeadAttention, unit4.OptimizedMultiHeadAttention, unit4.EfficientMultiHeadAttention]
)
@given(draws, batches, sizes, st.integers(1, 3), st.integers(1, 3), st.integers(0, 2), st.booleans())
def test_multi_head_attention(kind, draw, b, tokens, num_heads, head_dim, spare, bias):
    """nn.MultiheadAttention with copied weights; a layer that the class does not have is the identity there."""
    torch.manual_seed(draw.seed)
    width = num_heads * head_dim
    module = kind(width, width, tokens + spare, 0.5, num_heads, bias).to(draw.dtype).eval()
    theirs = nn.MultiheadAttention(width, num_heads, batch_first=True).to(draw.dtype).eval()
    layers = [getattr(module, name, None) for name in ("W_query", "W_key", "W_value")]
    identity, nothing = torch.eye(width, dtype=draw.dtype), torch.zeros(width, dtype=draw.dtype)
    theirs.in_proj_weight.data = torch.cat([layer.weight.detach() if layer else identity for layer in layers])
    theirs.in_proj_bias.data = torch.cat([layer.bias.detach() if layer and bias else nothing for layer in layers])
    theirs.out_proj.load_state_dict(module.out_proj.state_dict())
    mask = hidden_keys(tokens)
    assert_same(
        draw,
        module,
        lambda x: theirs(x, x, x, attn_mask=mask, need_weights=False)[0],
        draw.numbers().randn(b, tokens, width),
        scale=4.0 * width,
    )
