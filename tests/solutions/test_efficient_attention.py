"""Unit 7's solutions against formulas in plain loops, and against PyTorch's own attention."""

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from solutions import efficient_attention as unit7

from .drawing import array, assert_close, draws, leading, precise, sizes
from .library import sdpa
from .test_formulas import unchanged
from .test_library import assert_same

finite_or_hidden = st.lists(st.floats(-50, 50) | st.just(-math.inf), min_size=1, max_size=5)


@given(st.lists(finite_or_hidden, min_size=1, max_size=5))
def test_online_softmax(blocks):
    row = [score for block in blocks for score in block]
    most = max(row)
    maximum, total = unit7.online_softmax([torch.tensor(block, dtype=torch.float64) for block in blocks])
    assert float(maximum) == most
    right = sum(math.exp(score - most) for score in row) if most > -math.inf else 0.0
    assert math.isclose(float(total), right, rel_tol=1e-12)


def state_of(queries, keys, values, hidden):
    """The state of attention to some keys, as the text defines it."""
    scores = (queries @ keys.mT).masked_fill(hidden, -torch.inf)
    maximum = scores.amax(-1, keepdim=True)
    weights = torch.exp(scores - maximum.clamp(min=-1e300)).nan_to_num(0.0)
    return maximum, weights.sum(-1, keepdim=True), weights @ values


@given(st.integers(0, 2**32 - 1), leading, sizes, st.lists(sizes, min_size=3, max_size=3))
def test_merge_states(seed, before, tokens, lengths):
    """The parts make the whole however they are grouped, and in either order; queries may see nothing of a part."""
    generator = torch.Generator().manual_seed(seed)
    n, hd = sum(lengths), 3
    queries, keys, values = (
        torch.randn(*before, size, hd, generator=generator, dtype=torch.float64) for size in (tokens, n, n)
    )
    hidden = torch.rand(*before, tokens, n, generator=generator) > 0.5
    a, b, c = (
        state_of(queries, *part)
        for part in zip(keys.split(lengths, -2), values.split(lengths, -2), hidden.split(lengths, -1), strict=True)
    )
    whole = state_of(queries, keys, values, hidden)
    merge = unit7.merge_states
    for merged in (merge(merge(a, b), c), merge(a, merge(b, c)), merge(merge(c, a), b)):
        for one, right in zip(merged, whole, strict=True):
            assert torch.allclose(one, right, rtol=1e-12, atol=1e-12)


@given(draws, leading, st.integers(1, 9), sizes, sizes, st.integers(1, 10), st.booleans())
def test_tiled_attention(draw, before, tokens, hd, hv, block_size, causal):
    n = draw.numbers()
    inputs = n.randn(*before, tokens, hd), n.randn(*before, tokens, hd), n.randn(*before, tokens, hv)
    assert_same(
        draw,
        lambda q, k, v: unchanged(unit7.tiled_attention, q, k, v, block_size, causal),
        lambda q, k, v: sdpa(q, k, v, is_causal=causal),
        *inputs,
    )


@given(precise, leading, sizes, sizes, sizes, sizes)
def test_attention_backward(draw, before, tq, tk, d, dv):
    """The gradients are those of PyTorch's own attention by autograd, and need no inputs that require gradients."""
    n = draw.numbers()
    *inputs, grad_output = (n.randn(*before, *shape) for shape in ((tq, d), (tk, d), (tk, dv), (tq, dv)))
    with torch.no_grad():
        found = unchanged(unit7.attention_backward, *inputs, grad_output)
    required = [one.clone().requires_grad_() for one in inputs]
    right = torch.autograd.grad(sdpa(*required), required, grad_output)
    size = (1 + max(float(one.abs().max()) for one in (*inputs, grad_output))) ** 4 * d * dv * tk
    for one, other in zip(found, right, strict=True):
        assert_close(one, other.double(), draw.dtype, scale=size)


@given(precise, st.integers(1, 6), sizes, sizes, st.booleans())
def test_linear_attention(draw, tokens, hd, hv, causal):
    n = draw.numbers()
    queries, keys, values = n.randn(tokens, hd), n.randn(tokens, hd), n.randn(tokens, hv)
    f = [[[x + 1 if x > 0 else math.exp(x) for x in row] for row in array(one)] for one in (queries, keys)]
    expected = []
    for i in range(tokens):
        seen = range(i + 1 if causal else tokens)
        weights = [sum(a * b for a, b in zip(f[0][i], f[1][j], strict=True)) for j in seen]
        total = sum(weights) + 1e-6
        columns = array(values).T
        expected.append([sum(w * column[j] for w, j in zip(weights, seen, strict=True)) / total
                         for column in columns])  # fmt: skip
    result = unchanged(unit7.linear_attention, queries, keys, values, causal)
    assert_close(result, expected, draw.dtype, scale=50 * hd * tokens)
