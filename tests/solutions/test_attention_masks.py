"""Unit 5's solutions against formulas in plain loops, and against PyTorch's own attention."""

import math
import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from solutions import attention_masks as unit5
from tests import REPOSITORY

from . import formulas
from .drawing import array, assert_close, batches, draws, leading, sizes
from .library import sdpa
from .test_formulas import parameters, projected, scales, size_of, unchanged, weights_of
from .test_library import assert_same

numbers = st.integers(0, 6)


def hidden(draw, *shape):
    """A mask in which some rows hide everything."""
    drawn = torch.rand(shape, generator=torch.Generator().manual_seed(draw.seed))
    return (drawn > 0.5) | (drawn[..., :1] > 0.8)


@given(st.lists(numbers, min_size=1, max_size=5), numbers)
def test_padding_mask(lengths, more):
    places = max(lengths) + more
    mask = unchanged(unit5.padding_mask, torch.tensor(lengths), places)
    assert mask.dtype == torch.bool
    assert mask.shape == (len(lengths), places)
    assert mask.tolist() == [[place >= length for place in range(places)] for length in lengths]


@given(st.integers(1, 9), st.integers(1, 11))
def test_sliding_window_mask(tokens, window):
    mask = unit5.sliding_window_mask(tokens, window)
    assert mask.dtype == torch.bool
    assert mask.tolist() == [[not i - window < j <= i for j in range(tokens)] for i in range(tokens)]


@given(draws, leading, sizes, sizes, sizes, sizes, scales)
def test_masked_attention(draw, before, tq, tk, d_k, d_v, scale):
    n = draw.numbers()
    queries, keys = n.randn(*before, tq, d_k, scale=scale), n.randn(*before, tk, d_k, scale=scale)
    values, mask = n.randn(*before, tk, d_v), hidden(draw, *before, tq, tk)
    expected = formulas.for_each(formulas.masked_attention, array(queries), array(keys), array(values), array(mask))
    result = unchanged(unit5.masked_attention, queries, keys, values, mask)
    assert_close(result, expected, draw.dtype, scale=size_of(queries, keys) * size_of(values))


@given(draws, batches, sizes, sizes, sizes, sizes, st.sampled_from(["all", "keys", "queries", "heads"]))
def test_masked_attention_and_the_librarys(draw, b, tq, tk, d_k, d_v, kind):
    """The same results and gradients, also where a query sees nothing; masks of any shape that broadcasts."""
    n = draw.numbers()
    inputs = n.randn(b, 2, tq, d_k), n.randn(b, 2, tk, d_k), n.randn(b, 2, tk, d_v)
    shapes = {"all": (b, 2, tq, tk), "keys": (b, 1, 1, tk), "queries": (tq, tk), "heads": (b, 1, tq, tk)}
    mask = hidden(draw, *shapes[kind])
    takes_part = unit5.to_sdpa_mask(mask)
    assert_same(
        draw,
        lambda q, k, v: unit5.masked_attention(q, k, v, mask),
        lambda q, k, v: sdpa(q, k, v, attn_mask=takes_part),
        *inputs,
    )


@given(draws, st.lists(sizes, max_size=4))
def test_to_sdpa_mask(draw, shape):
    mask = hidden(draw, *shape, 3)
    turned = unchanged(unit5.to_sdpa_mask, mask)
    assert turned.dtype == torch.bool
    assert turned.tolist() == (mask == 0).tolist()


@given(st.integers(0, 4), sizes)
def test_alibi_bias(power, tokens):
    heads = 2**power
    expected = [
        [[-(2 ** (-8 * i / heads)) * (q - k) if k <= q else 0.0 for k in range(tokens)] for q in range(tokens)]
        for i in range(1, heads + 1)
    ]
    assert_close(unit5.alibi_bias(heads, tokens), expected, torch.float32)


positions = st.lists(st.integers(0, 50), min_size=1, max_size=4)
precise = draws.filter(lambda draw: draw.dtype in (torch.float64, torch.float32))


@given(precise, leading, positions, sizes, st.sampled_from([10000.0, 10.0]))
def test_rotary_embedding(draw, before, places, pairs, base):
    x = draw.numbers().randn(*before, len(places), 2 * pairs)
    expected = formulas.for_each(lambda one: formulas.rotated(one, places, base), array(x))
    result = unchanged(unit5.rotary_embedding, x, torch.tensor(places), base)
    assert_close(result, expected, draw.dtype, scale=1 + max(places))


@given(precise, positions, sizes, st.integers(-20, 20))
def test_rotary_scores_depend_on_distances_alone(draw, places, pairs, shift):
    n = draw.numbers()
    queries, keys = (n.randn(len(places), 2 * pairs) for _ in range(2))
    here = torch.tensor(places)
    one, other = ([unit5.rotary_embedding(x, at) for x in (queries, keys)] for at in (here, here + shift))
    scale = 100 * size_of(queries, keys)
    assert_close(one[0] @ one[1].mT, (other[0] @ other[1].mT).double(), draw.dtype, scale=scale)
    assert_close(one[0].norm(dim=-1), queries.double().norm(dim=-1), draw.dtype, scale=scale)


@given(precise, batches, st.permutations(range(5)), sizes, st.booleans())
def test_permuted_outputs(draw, b, order, d, causal):
    x = draw.numbers().randn(b, 5, d)

    def attention(one):
        return sdpa(one, one, one, is_causal=causal)

    result = unchanged(lambda x, order: unit5.permuted_outputs(attention, x, order), x, torch.tensor(order))
    shuffled = attention(x[:, order])
    expected = torch.stack([shuffled[:, order.index(token)] for token in range(5)], dim=1)
    assert torch.equal(result, expected)
    if not causal:
        assert_close(result, attention(x).double(), draw.dtype, scale=10 * size_of(x, x))


@given(draws, batches, sizes, sizes, sizes, sizes, st.integers(1, 3), st.integers(1, 3), st.booleans())
def test_CrossAttention(draw, b, tokens, others, d_query, d_context, num_heads, head_dim, masked):
    torch.manual_seed(draw.seed)
    module = unit5.CrossAttention(d_query, d_context, num_heads * head_dim, num_heads).to(draw.dtype)
    n = draw.numbers()
    x, context = n.randn(b, tokens, d_query), n.randn(b, others, d_context)
    mask = hidden(draw, b, others) if masked else None
    p = parameters(module)

    def one_sentence(number):
        (queries,) = projected(array(x[number]), p, "W_query")
        keys, values = projected(array(context[number]), p, "W_key", "W_value")
        row = [False] * others if mask is None else mask[number].tolist()
        pieces = zip(*(formulas.heads(one, num_heads) for one in (queries, keys, values)), strict=True)
        found = [formulas.masked_attention(q, k, v, [row] * tokens) for q, k, v in pieces]
        return formulas.linear(formulas.side_by_side(found), p["out_proj.weight"], p["out_proj.bias"])

    expected = [one_sentence(number) for number in range(b)]
    scale = (size_of(x) * size_of(context) * weights_of(module)) ** 2
    assert_close(unchanged(module, x, context, *([] if mask is None else [mask])), expected, draw.dtype, scale=scale)
    if num_heads > 1:
        with pytest.raises(ValueError, match="divisible"):
            unit5.CrossAttention(d_query, d_context, num_heads * head_dim + 1, num_heads)


def test_the_listing_of_flex_attention_gives_what_the_text_says():
    text = (REPOSITORY / "exercises" / "attention_masks.py").read_text()
    listing = text.partition("# ```python\n")[2].partition("# ```\n")[0]
    code = "\n".join(line.removeprefix("#").removeprefix(" ") for line in listing.splitlines())
    heads, tokens, width = 4, 7, 5
    generator = torch.Generator().manual_seed(0)
    queries, keys, values = torch.randn(3, 2, heads, tokens, width, generator=generator).unbind()
    names = {"alibi_bias": unit5.alibi_bias, "num_heads": heads, "T": tokens, "torch": torch}
    names |= {"queries": queries, "keys": keys, "values": values}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(code, names)
    scores = queries @ keys.mT / math.sqrt(width) + unit5.alibi_bias(heads, tokens)
    hidden = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    right = scores.masked_fill(hidden, -torch.inf).softmax(-1) @ values
    assert torch.allclose(names["output"], right, atol=1e-6)
