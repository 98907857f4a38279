"""Solutions and PyTorch's own attention give the same results, and the same gradients."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from solutions import causal_attention as unit3
from solutions import dot_product_attention as unit1
from solutions import multi_head_attention as unit4
from solutions import self_attention as unit2

from .drawing import assert_close, batches, draws, leading, precise, sizes
from .library import hidden_keys, library_module, sdpa


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


@given(draws, sizes, sizes)
def test_simple_self_attention(draw, tokens, d):
    inputs = draw.numbers().randn(tokens, d)
    assert_same(draw, unit1.simple_self_attention, lambda x: sdpa(x, x, x, scale=1.0), inputs)


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
    weights = unit2.scaled_softmax(unit2.attention_scores(*inputs[:2]), d_k)
    assert_close(unit2.context_vectors(weights, inputs[2]), sdpa(*inputs).double(), draw.dtype, scale=d_k * 16)


@given(draws, sizes, sizes, sizes)
def test_single_query_attention(draw, tokens, d_k, d_v):
    n = draw.numbers()
    inputs = n.randn(d_k), n.randn(tokens, d_k), n.randn(tokens, d_v)
    assert_same(draw, unit2.single_query_attention, lambda q, k, v: sdpa(q[None], k, v)[0], *inputs)


@given(draws, batches, sizes, sizes)
def test_causal_head(draw, b, tokens, head_dim):
    n = draw.numbers()
    inputs = [n.randn(b, tokens, head_dim) for _ in range(3)]
    assert_same(draw, unit3.causal_head, lambda q, k, v: sdpa(q, k, v, is_causal=True), *inputs)
    seen = ~hidden_keys(tokens)
    assert_same(draw, unit3.causal_head, lambda q, k, v: sdpa(q, k, v, attn_mask=seen, dropout_p=0.0), *inputs)


@given(precise, batches, sizes, sizes)
def test_causal_softmax(draw, b, tokens, d_k):
    """With the identity for values, attention is its own weights."""
    n = draw.numbers()
    queries, keys = n.randn(b, tokens, d_k), n.randn(b, tokens, d_k)
    values = torch.eye(tokens, dtype=draw.dtype).expand(b, -1, -1)
    weights = unit3.causal_softmax(queries @ keys.mT, d_k)
    right = sdpa(queries, keys, values, is_causal=True)
    assert_close(weights, right.double(), draw.dtype, scale=d_k * 16)
    full = unit2.scaled_softmax(queries @ keys.mT, d_k)
    for one, other in zip(full, right, strict=True):
        assert_close(unit3.renormalized_causal_weights(one), other.double(), draw.dtype, scale=d_k * 256)


@given(draws, sizes, sizes, sizes, sizes, st.integers(1, 3))
def test_stacked_heads_attention(draw, tokens, d_in, d_k, d_v, num_heads):
    n = draw.numbers()
    inputs = n.randn(tokens, d_in), *(n.randn(num_heads, width, d_in) for width in (d_k, d_k, d_v))

    def library(x, q, k, v):
        return sdpa(*((x @ weight.mT)[None] for weight in (q, k, v)))[0]

    assert_same(draw, unit4.stacked_heads_attention, library, *inputs, scale=64.0 * d_in**2)


def check_module(draw, module, theirs, x, pairs, *, causal):
    """A module and nn.MultiheadAttention: the same results, the same gradients of the input and of every weight.

    pairs: each parameter of the module, and what its gradient is of the library's.
    """
    module, theirs = module.to(draw.dtype).eval(), theirs.to(draw.dtype).eval()
    ours_in, theirs_in = (x.detach().clone().requires_grad_() for _ in range(2))
    batch = theirs_in if x.dim() == 3 else theirs_in[None]
    mask = hidden_keys(x.shape[-2]) if causal else None
    right = theirs(batch, batch, batch, attn_mask=mask, need_weights=False)[0]
    result, right = module(ours_in), right if x.dim() == 3 else right[0]
    size = (1 + float(x.abs().max())) ** 2 * x.shape[-1] ** 2 * 4
    assert_close(result, right.detach().double(), draw.dtype, scale=size)
    if draw.dtype not in (torch.float64, torch.float32):
        return
    cotangent = draw.numbers().randn(*result.shape)
    result.backward(cotangent)
    right.backward(cotangent)
    assert_close(ours_in.grad, theirs_in.grad.double(), draw.dtype, scale=size**2)
    for parameter, gradient in pairs(theirs):
        assert_close(parameter.grad, gradient.double(), draw.dtype, scale=size**2)


def thirds(module, theirs, layers):
    """The gradients of nn.MultiheadAttention for the layers that the module has."""
    width = theirs.embed_dim
    for name in layers:
        third = slice(*(("W_query", "W_key", "W_value").index(name) * width + end for end in (0, width)))
        layer = getattr(module, name)
        if isinstance(layer, nn.Parameter):
            yield layer, theirs.in_proj_weight.grad[third].T
            continue
        yield layer.weight, theirs.in_proj_weight.grad[third]
        if layer.bias is not None:
            yield layer.bias, theirs.in_proj_bias.grad[third]
    if hasattr(module, "out_proj"):
        yield module.out_proj.weight, theirs.out_proj.weight.grad
        yield module.out_proj.bias, theirs.out_proj.bias.grad


QKV = ("W_query", "W_key", "W_value")


@given(draws, sizes, sizes)
def test_SelfAttention_v1(draw, tokens, width):
    torch.manual_seed(draw.seed)
    module = unit2.SelfAttention_v1(width, width).to(draw.dtype)
    theirs = library_module(module.W_query.T, module.W_key.T, module.W_value.T, None, 1)
    x = draw.numbers().randn(tokens, width)
    check_module(draw, module, theirs, x, lambda t: thirds(module, t, QKV), causal=False)


@given(draws, sizes, sizes, st.booleans())
def test_SelfAttention_v2(draw, tokens, width, bias):
    torch.manual_seed(draw.seed)
    module = unit2.SelfAttention_v2(width, width, bias).to(draw.dtype)
    theirs = library_module(module.W_query, module.W_key, module.W_value, None, 1)
    x = draw.numbers().randn(tokens, width)
    check_module(draw, module, theirs, x, lambda t: thirds(module, t, QKV), causal=False)


@given(draws, batches, sizes, sizes, st.integers(0, 2), st.booleans())
def test_CausalAttention(draw, b, tokens, width, spare, bias):
    torch.manual_seed(draw.seed)
    module = unit3.CausalAttention(width, width, tokens + spare, 0.5, bias).to(draw.dtype)
    theirs = library_module(module.W_query, module.W_key, module.W_value, None, 1)
    x = draw.numbers().randn(b, tokens, width)
    check_module(draw, module, theirs, x, lambda t: thirds(module, t, QKV), causal=True)


@given(draws, batches, sizes, st.integers(1, 3), st.integers(1, 3), st.integers(0, 2), st.booleans())
def test_MultiHeadAttentionWrapper(draw, b, tokens, num_heads, head_dim, spare, bias):
    """Heads of their own are one layer whose rows are the heads' rows, one head after another."""
    torch.manual_seed(draw.seed)
    width = num_heads * head_dim
    module = unit3.MultiHeadAttentionWrapper(width, head_dim, tokens + spare, 0.5, num_heads, bias).to(draw.dtype)
    layers = []
    for name in QKV:
        joined = nn.Linear(width, width, dtype=draw.dtype)
        joined.weight.data = torch.cat([getattr(head, name).weight.detach() for head in module.heads])
        biases = [getattr(head, name).bias for head in module.heads]
        joined.bias.data = torch.cat([b.detach() for b in biases]) if bias else torch.zeros(width, dtype=draw.dtype)
        layers.append(joined)

    def pairs(theirs):
        for n, gradient in enumerate(theirs.in_proj_weight.grad.split(head_dim)):
            yield getattr(module.heads[n % num_heads], QKV[n // num_heads]).weight, gradient

    x = draw.numbers().randn(b, tokens, width)
    check_module(draw, module, library_module(*layers, None, num_heads), x, pairs, causal=True)


def check_multi_head(kind, layers, draw, b, tokens, num_heads, head_dim, spare, bias):
    """A class of several heads; a layer that it does not have is the identity in the library's module."""
    torch.manual_seed(draw.seed)
    width = num_heads * head_dim
    module = kind(width, width, tokens + spare, 0.5, num_heads, bias).to(draw.dtype)
    theirs = library_module(*(getattr(module, name, None) for name in QKV), module.out_proj, num_heads)
    x = draw.numbers().randn(b, tokens, width)
    check_module(draw, module, theirs, x, lambda t: thirds(module, t, layers), causal=True)


shapes = (draws, batches, sizes, st.integers(1, 3), st.integers(1, 3), st.integers(0, 2), st.booleans())


@given(*shapes)
def test_MultiHeadAttention(draw, b, tokens, num_heads, head_dim, spare, bias):
    check_multi_head(unit4.MultiHeadAttention, QKV, draw, b, tokens, num_heads, head_dim, spare, bias)


@given(*shapes)
def test_OptimizedMultiHeadAttention(draw, b, tokens, num_heads, head_dim, spare, bias):
    check_multi_head(unit4.OptimizedMultiHeadAttention, QKV[:2], draw, b, tokens, num_heads, head_dim, spare, bias)


@given(*shapes)
def test_EfficientMultiHeadAttention(draw, b, tokens, num_heads, head_dim, spare, bias):
    check_multi_head(unit4.EfficientMultiHeadAttention, QKV[:1], draw, b, tokens, num_heads, head_dim, spare, bias)
