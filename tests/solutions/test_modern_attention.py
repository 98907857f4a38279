"""Unit 9's solutions against formulas in plain loops, and against PyTorch's own functions."""

import inspect
import itertools
import math
from itertools import product

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from autograder import course
from solutions import modern_attention as unit9
from solutions.latent_cache import LatentCache

from . import formulas
from .drawing import array, assert_close, draws, leading, precise, sizes
from .formulas import for_each
from .library import sdpa
from .test_formulas import parameters, size_of, unchanged, weights_of
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


@given(precise, st.integers(1, 2), st.integers(1, 3), sizes, sizes, sizes, st.integers(1, 6))
def test_absorbed_scores(draw, b, h, Tq, T, hd, r):
    """The keys are made, each score by loops; and the gradients of the products with all keys."""
    n = draw.numbers()
    queries, latents, up_key = n.randn(b, h, Tq, hd), n.randn(b, T, r), n.randn(h, hd, r)
    found = unit9.absorbed_scores(queries, latents, up_key)
    right = torch.zeros(b, h, Tq, T, dtype=torch.float64)
    for s, i, q, t in product(range(b), range(h), range(Tq), range(T)):
        key = [math.fsum(u * c for u, c in zip(row, array(latents)[s, t], strict=True)) for row in array(up_key)[i]]
        right[s, i, q, t] = math.fsum(x * y for x, y in zip(array(queries)[s, i, q], key, strict=True))
    assert_close(found, right, draw.dtype, scale=100.0 * hd * r)

    def by_way_of_the_keys(queries, latents, up_key):
        return queries @ (latents[:, None] @ up_key.mT).mT

    assert_same(draw, unit9.absorbed_scores, by_way_of_the_keys, queries, latents, up_key, scale=r)


cuts = st.lists(st.integers(1, 4), min_size=1, max_size=4)
latent_shapes = (st.integers(1, 2), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(1, 5), cuts)


def built_latent(draw, d_in, num_heads, head_dim, latent_dim):
    torch.manual_seed(draw.seed)
    return unit9.LatentAttention(d_in, num_heads * head_dim, num_heads, latent_dim).to(draw.dtype)


def in_steps(module, x, lengths):
    """The results of steps of these lengths, joined, and the cache."""
    cache = LatentCache()
    return torch.cat([module(part, cache) for part in x.split(lengths, dim=1)], dim=1), cache


@given(draws, *latent_shapes)
def test_LatentAttention(draw, b, d_in, num_heads, head_dim, latent_dim, lengths):
    """Any cut of a text gives what one causal pass gives, by the formula in plain loops, head by head."""
    module = built_latent(draw, d_in, num_heads, head_dim, latent_dim)
    x, p = draw.numbers().randn(b, sum(lengths), d_in), parameters(module)

    def one_sequence(x):
        queries, latents = formulas.linear(x, p["W_query.weight"]), formulas.linear(x, p["W_latent.weight"])
        keys, values = (formulas.linear(latents, p[f"{name}.weight"]) for name in ("W_up_key", "W_up_value"))
        context = formulas.multi_head_attention(queries, keys, values, num_heads)
        return formulas.linear(context, p["out_proj.weight"], p["out_proj.bias"])

    expected = formulas.for_each(one_sequence, array(x))
    scale = (size_of(x) * weights_of(module)) ** 2 * weights_of(module) ** 3
    assert_close(unchanged(module, x), expected, draw.dtype, scale=scale)
    found, cache = in_steps(module, x, lengths)
    assert_close(found, expected, draw.dtype, scale=scale)
    assert_close(cache.latents, formulas.for_each(lambda x: formulas.linear(x, p["W_latent.weight"]), array(x)),
                 draw.dtype, scale=scale)  # fmt: skip
    if num_heads > 1:
        with pytest.raises(ValueError, match="divisible"):
            unit9.LatentAttention(d_in, num_heads * head_dim + 1, num_heads, latent_dim)


@given(precise, *latent_shapes)
def test_gradients_through_a_cache(draw, b, d_in, num_heads, head_dim, latent_dim, lengths):
    module = built_latent(draw, d_in, num_heads, head_dim, latent_dim)
    x = draw.numbers().randn(b, sum(lengths), d_in)
    scale = weights_of(module) ** 5 * sum(lengths)
    assert_same(draw, lambda x: in_steps(module, x, lengths)[0], module, x, scale=scale)


def test_the_notebooks_cache_is_the_one_that_is_tested():
    cell = course.unit("modern_attention").instructor_cells["latent_cache"]
    assert cell.strip() == inspect.getsource(LatentCache).strip()


@st.composite
def tables(draw):
    """Page size, length and a table whose first pages are drawn from six, some of them perhaps twice."""
    page, length = draw(st.integers(1, 4)), draw(st.integers(1, 10))
    needed = math.ceil(length / page)
    pages = draw(st.lists(st.integers(0, 5), min_size=needed, max_size=needed))
    return page, length, pages + [-1] * draw(st.integers(0, 2))


@given(precise, tables(), st.integers(1, 3), sizes)
def test_paged_attention(draw, drawn, h, hd):
    """Each token is put where the table says; all other slots are NaN."""
    page, length, table = drawn
    n = draw.numbers()
    query, keys, values = n.randn(h, hd), n.randn(6, page, h, hd), n.randn(6, page, h, hd)
    places = [(table[t // page], t % page) for t in range(length)]
    is_read = torch.zeros(6, page, dtype=torch.bool)
    for place in places:
        is_read[place] = True
    keys, values = (one.masked_fill(~is_read[..., None, None], torch.nan) for one in (keys, values))

    def in_one_piece(query, keys, values):
        keys, values = (torch.stack([one[place] for place in places], dim=1) for one in (keys, values))
        return sdpa(query[:, None], keys, values)[:, 0]

    inputs = [one.requires_grad_() for one in (query, keys, values)]
    found = unit9.paged_attention(*inputs, torch.tensor(table), length)
    right = in_one_piece(*inputs)
    size = hd * (1 + max(float(one.detach().nan_to_num().abs().max()) for one in inputs)) ** 3
    assert_close(found, right.detach().double(), draw.dtype, scale=size)
    cotangent = n.randn(h, hd)
    gradients = (torch.autograd.grad(result, inputs, cotangent) for result in (found, right))
    for one, other in zip(*gradients, strict=True):
        assert_close(one, other.double(), draw.dtype, scale=size**2)


def probabilities(numbers, rows, V):
    return torch.softmax(numbers.randn(rows, V), dim=-1)


@given(precise, st.integers(1, 5), st.integers(2, 6), st.data())
def test_accept_draft(draw, n, V, data):
    numbers = draw.numbers()
    draft, target = probabilities(numbers, n, V), probabilities(numbers, n + 1, V)
    tokens = data.draw(st.lists(st.integers(0, V - 1), min_size=n, max_size=n))
    uniforms = data.draw(st.lists(st.floats(0.001, 0.999), min_size=n, max_size=n))
    q, p = array(draft), array(target)
    ratios = [p[i][token] / q[i][token] for i, token in enumerate(tokens)]
    uniforms = [u if abs(u - ratio) > 1e-4 else u / 2 for u, ratio in zip(uniforms, ratios, strict=True)]
    accepted = 0
    while accepted < n and uniforms[accepted] < ratios[accepted]:
        accepted += 1
    right = p[n]
    if accepted < n:
        positive = [max(0.0, one - other) for one, other in zip(p[accepted], q[accepted], strict=True)]
        right = [one / sum(positive) for one in positive]
    found, next_probs = unit9.accept_draft(
        draft, target, torch.tensor(tokens), torch.tensor(uniforms, dtype=draw.dtype)
    )
    assert type(found) is int
    assert found == accepted
    least = 1.0 if accepted == n else float((target[accepted] - draft[accepted]).clamp(min=0).sum())
    assert_close(next_probs, right, draw.dtype, scale=10.0 / least)


def emitted(draft, target):
    """Return the distribution of the first token, and of the second after each first, over all drafts and all u.

    A token's probability of being accepted is the ratio, at most 1; a u below it and one above stand for all others.
    """
    (n, V), rows = draft.shape, range(draft.shape[0])
    first, second = torch.zeros(V, dtype=torch.float64), torch.zeros(V, V, dtype=torch.float64)
    for tokens in itertools.product(range(V), repeat=n):
        ratios = (target[rows, tokens] / draft[rows, tokens]).clamp(max=1.0)
        for is_accepted in itertools.product((True, False), repeat=n):
            chances = [ratio if yes else 1 - ratio for ratio, yes in zip(ratios.tolist(), is_accepted, strict=True)]
            chance = math.prod([*chances, *draft[rows, tokens].tolist()])
            if chance == 0.0:
                continue
            uniforms = torch.where(torch.tensor(is_accepted), ratios / 2, (ratios + 1) / 2)
            accepted, next_probs = unit9.accept_draft(draft, target, torch.tensor(tokens), uniforms)
            if accepted == 0:
                first += chance * next_probs
                continue
            first[tokens[0]] += chance
            if accepted == 1:
                second[tokens[0]] += chance * next_probs
            else:
                second[tokens[0], tokens[1]] += chance
    return first, second


@given(st.integers(0, 2**32 - 1), st.integers(1, 2), st.integers(2, 4))
def test_emitted_tokens_have_the_distribution_of_the_target(seed, n, V):
    """By enumeration: the first token has the target's first distribution, and the second, after it, its second."""
    generator = torch.Generator().manual_seed(seed)
    draft, target = (
        torch.softmax(2 * torch.randn(rows, V, generator=generator, dtype=torch.float64), -1) for rows in (n, n + 1)
    )
    first, second = emitted(draft, target)
    torch.testing.assert_close(first, target[0], rtol=0, atol=1e-12)
    kept = torch.minimum(draft[0], target[0])  # what is drafted and accepted, and so has a second token in this pass
    torch.testing.assert_close(second, kept[:, None] * target[1], rtol=0, atol=1e-12)
