"""Unit 9's solutions against formulas in plain loops, and against PyTorch's own functions."""

import math

import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from solutions import modern_attention as unit9

from . import formulas
from .drawing import array, assert_close, draws, leading, precise, sizes
from .formulas import for_each
from .library import sdpa
from .test_library import assert_same


@given(draws, leading, st.integers(1, 8))
def test_rms_norm(draw, before, d):
    n = draw.numbers()
    x, weight = n.randn(*before, 3, d, scale=30.0), n.randn(d)
    assert_close(
        unit9.rms_norm(x, weight), F.rms_norm(x.double(), (d,), weight.double(), 1e-6), draw.dtype, scale=100.0
    )


@given(precise, leading, sizes, sizes, st.integers(1, 6))
def test_qk_norm_scores(draw, before, Tq, Tk, hd):
    n = draw.numbers()
    q, k, a, b = n.randn(*before, Tq, hd), n.randn(*before, Tk, hd), n.randn(hd), n.randn(hd)

    def by_the_library(q, k, a, b):
        return F.rms_norm(q, (hd,), a, 1e-6) @ F.rms_norm(k, (hd,), b, 1e-6).mT / math.sqrt(hd)

    assert_same(draw, unit9.qk_norm_scores, by_the_library, q, k, a, b)


@given(precise, leading, sizes, st.floats(0.5, 60.0))
def test_softcap(draw, before, T, cap):
    scores = draw.numbers().randn(*before, T, scale=20.0)
    right = [cap * math.tanh(score / cap) for score in array(scores).flatten()]
    assert_close(
        unit9.softcap(scores, cap), torch.tensor(right, dtype=torch.float64).view(scores.shape), draw.dtype, scale=cap
    )


@given(draws, leading, sizes, sizes, st.integers(1, 6), sizes)
def test_half_precision_attention(draw, before, Tq, Tk, d, dv):
    """Only the result is rounded to half precision: within 0.6 of a unit in the last place, not the usual four."""
    n = draw.numbers()
    queries, keys, values = (n.randn(*before, *size, scale=2.0) for size in ((Tq, d), (Tk, d), (Tk, dv)))
    right = for_each(formulas.attention, *map(array, (queries, keys, values)))
    found = unit9.half_precision_attention(queries, keys, values)
    assert_close(found, right, draw.dtype, scale=10.0)
    if draw.dtype.itemsize == 2:
        error = (found.double() - torch.from_numpy(right)).abs()
        assert bool((error <= 0.6 * torch.finfo(draw.dtype).eps * (torch.from_numpy(right).abs() + 1e-3)).all())


def test_half_precision_attention_beyond_float16():
    queries, keys = torch.full((1, 128), 30.0), torch.full((3, 128), 30.0)
    for dtype in (torch.float16, torch.bfloat16):
        found = unit9.half_precision_attention(queries.to(dtype), keys.to(dtype), torch.eye(3, dtype=dtype))
        assert found.tolist() == [[torch.tensor(1 / 3, dtype=dtype).item()] * 3]


@given(precise, leading, sizes, sizes, st.integers(1, 6), sizes)
def test_half_precision_attention_in_full_precision(draw, before, Tq, Tk, d, dv):
    n = draw.numbers()
    inputs = n.randn(*before, Tq, d), n.randn(*before, Tk, d), n.randn(*before, Tk, dv)
    assert_same(draw, unit9.half_precision_attention, sdpa, *inputs)


@given(precise, st.integers(1, 2), st.integers(1, 3), sizes, sizes)
def test_attention_with_sinks(draw, b, h, T, hd):
    """A sink is a first key whose scores are the sink, and whose value is 0, which every token sees."""
    n = draw.numbers()
    queries, keys, values = (n.randn(b, h, T, hd) for _ in range(3))
    sinks = n.randn(h)

    def by_the_library(queries, keys, values, sinks):
        bias = torch.cat([sinks.view(1, h, 1, 1).expand(b, h, T, 1), torch.zeros(b, h, T, T, dtype=sinks.dtype)], -1)
        later = torch.ones(T, T + 1, dtype=torch.bool).triu(2)
        nothing = torch.zeros_like(keys[:, :, :1])
        padded = (torch.cat([nothing, one], -2) for one in (keys, values))
        return F.scaled_dot_product_attention(queries, *padded, attn_mask=bias.masked_fill(later, -torch.inf))

    assert_same(draw, unit9.attention_with_sinks, by_the_library, queries, keys, values, sinks)


@given(precise, sizes, sizes)
def test_a_sink_of_minus_infinity_is_none(draw, T, hd):
    n = draw.numbers()
    inputs = [n.randn(1, 2, T, hd) for _ in range(3)]
    found = unit9.attention_with_sinks(*inputs, torch.full((2,), -torch.inf, dtype=draw.dtype))
    assert_close(found, sdpa(*inputs, is_causal=True).double(), draw.dtype, scale=10.0)


@given(st.lists(st.integers(-2, 2), min_size=1, max_size=8))
def test_document_mask(documents):
    found = unit9.document_mask(torch.tensor([documents]))[0].tolist()
    assert found == [
        [j > i or documents[i] != documents[j] for j in range(len(documents))] for i in range(len(documents))
    ]


@given(precise, leading, st.integers(1, 5), st.integers(1, 6))
def test_swiglu(draw, before, d, f):
    n = draw.numbers()
    x, gate, up, down = n.randn(*before, d), n.randn(f, d), n.randn(f, d), n.randn(d, f)

    def by_the_library(x, gate, up, down):
        hidden = F.linear(x, gate)
        return F.linear(hidden * torch.sigmoid(hidden) * F.linear(x, up), down)

    assert_same(draw, unit9.swiglu, by_the_library, x, gate, up, down)
