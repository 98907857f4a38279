"""Unit 6's solutions against one pass without a cache, and against PyTorch's own attention and counter."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from solutions import inference as unit6
from solutions import multi_head_attention as unit4

from . import formulas
from .drawing import array, assert_close, batches, draws, leading, precise, sizes
from .test_formulas import QKV, parameters, projected, size_of, unchanged, weights_of
from .test_library import assert_same


@given(batches, st.integers(1, 9), sizes, st.integers(1, 4))
def test_attention_flops(b, tokens, head_dim, num_heads):
    """PyTorch's counter, on its own module: in training mode nothing in it is fused."""
    d = num_heads * head_dim
    module = nn.MultiheadAttention(d, num_heads, batch_first=True)
    x = torch.rand(b, tokens, d)
    with FlopCounterMode(display=False) as counted:
        module(x, x, x)
    assert unit6.attention_flops(b, tokens, d, num_heads) == counted.get_total_flops()
    own = unit4.MultiHeadAttention(d, d, tokens, 0.0, num_heads)
    with FlopCounterMode(display=False) as counted:
        own(x)
    assert unit6.attention_flops(b, tokens, d, num_heads) == counted.get_total_flops()


@given(sizes, sizes, sizes, st.integers(0, 9), st.sampled_from([torch.float16, torch.float32, torch.int8]))
def test_kv_cache_bytes(layers, kv_heads, head_dim, tokens, dtype):
    """The bytes of tensors that are made, one layer after the other."""
    kept = [torch.zeros(1, kv_heads, tokens, head_dim, dtype=dtype) for _ in range(layers) for _ in ("key", "value")]
    found = unit6.kv_cache_bytes(layers, kv_heads, head_dim, tokens, dtype.itemsize)
    assert found == sum(one.nbytes for one in kept)
    assert isinstance(found, int)


@given(draws, leading, st.lists(sizes, min_size=1, max_size=5), sizes, sizes)
def test_KVCache(draw, before, lengths, hd, hv):
    n, cache = draw.numbers(), unit6.KVCache()
    assert cache.keys is None
    assert cache.values is None
    chunks = [(n.randn(*before, t, hd), n.randn(*before, t, hv)) for t in lengths]
    for number, (keys, values) in enumerate(chunks, start=1):
        unchanged(cache.append, keys, values)
        assert torch.equal(cache.keys, torch.cat([one for one, _ in chunks[:number]], dim=-2))
        assert torch.equal(cache.values, torch.cat([one for _, one in chunks[:number]], dim=-2))


cuts = st.lists(st.integers(1, 4), min_size=1, max_size=5)


@given(draws, batches, sizes, st.integers(1, 3), sizes, cuts)
def test_CachedMultiHeadAttention(draw, b, d_in, num_heads, head_dim, lengths):
    """Any cut of a text gives what one causal pass gives, by the formula in plain loops."""
    torch.manual_seed(draw.seed)
    module = unit6.CachedMultiHeadAttention(d_in, num_heads * head_dim, num_heads).to(draw.dtype)
    x, p = draw.numbers().randn(b, sum(lengths), d_in), parameters(module)

    def one_sequence(x):
        context = formulas.multi_head_attention(*projected(x, p, *QKV), num_heads)
        return formulas.linear(context, p["out_proj.weight"], p["out_proj.bias"])

    expected = formulas.for_each(one_sequence, array(x))
    scale = (size_of(x) * weights_of(module)) ** 2 * weights_of(module)
    assert_close(unchanged(module, x), expected, draw.dtype, scale=scale)
    cache = unit6.KVCache()
    steps = [module(part, cache) for part in x.split(lengths, dim=1)]
    assert_close(torch.cat(steps, dim=1), expected, draw.dtype, scale=scale)
    if num_heads > 1:
        with pytest.raises(ValueError, match="divisible"):
            unit6.CachedMultiHeadAttention(d_in, num_heads * head_dim + 1, num_heads)


@given(precise, batches, st.integers(1, 3), sizes, cuts)
def test_gradients_through_a_cache(draw, b, num_heads, head_dim, lengths):
    torch.manual_seed(draw.seed)
    width = num_heads * head_dim
    module = unit6.CachedMultiHeadAttention(width, width, num_heads).to(draw.dtype)

    def in_steps(x):
        cache = unit6.KVCache()
        return torch.cat([module(part, cache) for part in x.split(lengths, dim=1)], dim=1)

    x = draw.numbers().randn(b, sum(lengths), width)
    assert_same(draw, in_steps, module, x, scale=weights_of(module) ** 4 * sum(lengths))


@given(draws, batches, sizes, sizes, st.integers(1, 3), st.integers(1, 3))
def test_share_heads(draw, b, tokens, head_dim, groups, each):
    x = draw.numbers().randn(b, groups, tokens, head_dim)
    shared = unchanged(unit6.share_heads, x, groups * each)
    assert shared.shape == (b, groups * each, tokens, head_dim)
    assert all(torch.equal(shared[:, i], x[:, i // each]) for i in range(groups * each))


@given(draws, batches, sizes, sizes, st.integers(1, 3), st.integers(1, 3), sizes, st.integers(0, 3))
def test_GroupedQueryAttention(draw, b, tokens, d_in, groups, each, head_dim, spare):
    torch.manual_seed(draw.seed)
    h = groups * each
    module = unit6.GroupedQueryAttention(d_in, h * head_dim, tokens + spare, h, groups).to(draw.dtype)
    x, p = draw.numbers().randn(b, tokens, d_in), parameters(module)

    def one_sequence(x):
        queries, keys, values = projected(x, p, *QKV)
        q = formulas.heads(queries, h)
        k, v = formulas.heads(keys, groups), formulas.heads(values, groups)
        found = [formulas.attention(q[i], k[i // each], v[i // each], causal=True) for i in range(h)]
        return formulas.linear(formulas.side_by_side(found), p["out_proj.weight"], p["out_proj.bias"])

    expected = formulas.for_each(one_sequence, array(x))
    scale = (size_of(x) * weights_of(module)) ** 2 * weights_of(module)
    assert_close(unchanged(module, x), expected, draw.dtype, scale=scale)


@pytest.mark.parametrize(("d_out", "h", "groups"), [(7, 2, 1), (12, 4, 3), (12, 2, 4)])
def test_what_cannot_be_split_is_refused(d_out, h, groups):
    with pytest.raises(ValueError, match="divisible"):
        unit6.GroupedQueryAttention(3, d_out, 4, h, groups)
