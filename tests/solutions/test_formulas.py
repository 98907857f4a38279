"""Every solution gives what its formula gives: any shape, any type, ordinary and extreme scores."""

import math
from decimal import Decimal
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from autograder import course
from solutions import causal_attention as unit3
from solutions import dot_product_attention as unit1
from solutions import multi_head_attention as unit4
from solutions import self_attention as unit2
from tests.hunts import hunts

from . import formulas
from .drawing import KINDS, array, assert_close, batches, draws, kinds, leading, sizes

scales = st.sampled_from([1.0, 1.0, 0.01, 5.0])


def size_of(*factors):
    """Largest intermediate product, with which a softmax's exponents, and so its rounding, grow."""
    product = 1.0
    for factor in factors:
        product *= float(np.linalg.norm(array(factor), axis=-1).max()) if isinstance(factor, torch.Tensor) else factor
    return 1 + product


def unchanged(function, *inputs):
    """The result of a call, which leaves its arguments as they were."""
    before = [tensor.clone() if isinstance(tensor, torch.Tensor) else tensor for tensor in inputs]
    result = function(*inputs)
    for one, other in zip(before, inputs, strict=True):
        assert not isinstance(one, torch.Tensor) or torch.equal(one, other)
    return result


def test_every_exercise_is_here():
    modules = [import_module(f"tests.solutions.{path.stem}") for path in Path(__file__).parent.glob("test_*.py")]
    exercises = {
        e.name for name in course.unit_names() for e in course.unit(name).exercises if e.name not in hunts(name)
    }
    assert {f"test_{name}" for name in exercises} <= set().union(*map(vars, modules))
    assert len(exercises) >= 33


# Unit 1


@given(draws, sizes, sizes)
def test_dot_product_scores(draw, tokens, d):
    n = draw.numbers()
    query, inputs = n.randn(d), n.randn(tokens, d)
    expected = [formulas.dot(array(row), array(query)) for row in inputs]
    assert_close(unchanged(unit1.dot_product_scores, query, inputs), expected, draw.dtype, scale=size_of(query, inputs))


@given(draws, leading, sizes)
def test_normalize_by_sum(draw, before, tokens):
    scores = draw.numbers().randn(*before, tokens).abs() + 0.125
    expected = [[x / math.fsum(row) for x in row] for row in array(scores).reshape(-1, tokens)]
    result = unchanged(unit1.normalize_by_sum, scores)
    assert_close(result, np.reshape(expected, scores.shape), draw.dtype)


@pytest.mark.parametrize("kind", KINDS)
@given(draws, st.lists(sizes, min_size=1, max_size=3), st.data())
def test_softmax(kind, draw, shape, data):
    scores = draw.numbers().scores(*shape, kind=kind)
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    assume(bool(scores.isfinite().any(dim=dim).all()))
    expected = np.apply_along_axis(formulas.softmax, dim, array(scores))
    assert_close(unchanged(unit1.softmax, scores, dim), expected, draw.dtype)
    assert_close(unit1.softmax(scores.movedim(dim, -1)), np.moveaxis(expected, dim, -1), draw.dtype)


@given(draws, sizes, sizes)
def test_context_vector(draw, tokens, d):
    n = draw.numbers()
    weights, inputs = n.randn(tokens), n.randn(tokens, d)
    expected = formulas.blend(array(weights), array(inputs))
    scale = size_of(weights, inputs.T)
    assert_close(unchanged(unit1.context_vector, weights, inputs), expected, draw.dtype, scale=scale)


@given(draws, sizes, sizes)
def test_pairwise_scores(draw, tokens, d):
    inputs = draw.numbers().randn(tokens, d)
    expected = formulas.scores(array(inputs), array(inputs))
    assert_close(unchanged(unit1.pairwise_scores, inputs), expected, draw.dtype, scale=size_of(inputs, inputs))


@given(draws, sizes, sizes, scales)
def test_simple_self_attention(draw, tokens, d, scale):
    inputs = draw.numbers().randn(tokens, d, scale=scale)
    x = array(inputs)
    expected = [formulas.blend(formulas.softmax(row), x) for row in formulas.scores(x, x)]
    result = unchanged(unit1.simple_self_attention, inputs)
    assert_close(result, expected, draw.dtype, scale=size_of(inputs, inputs) * size_of(inputs))


# Unit 2

sentences = st.text(st.sampled_from("aAbBzéß ,\t\n\u00a0\u2003.'1"), max_size=30)


@given(sentences | st.text(max_size=20))
def test_build_vocab(sentence):
    vocabulary = unit2.build_vocab(sentence)
    assert vocabulary == formulas.vocabulary(sentence)
    assert all(type(index) is int for index in vocabulary.values())


@given(sentences, sentences)
def test_encode(sentence, other):
    vocabulary = formulas.vocabulary(sentence + " " + other)
    indices = unit2.encode(sentence, vocabulary)
    assert indices.dtype == torch.int64
    assert indices.tolist() == [vocabulary[word] for word in formulas.words(sentence)]
    known = formulas.vocabulary(other)
    if set(formulas.words(sentence)) - set(known):
        with pytest.raises(KeyError):
            unit2.encode(sentence, known)


@given(draws, sizes, sizes, st.data())
def test_embed(draw, rows, d, data):
    table = draw.numbers().randn(rows, d)
    tokens = data.draw(st.lists(st.integers(0, rows - 1), min_size=1, max_size=6))
    expected = [array(table)[token] for token in tokens]
    assert_close(unchanged(unit2.embed, torch.tensor(tokens), table), expected, draw.dtype)
    with pytest.raises(IndexError):
        unit2.embed(torch.tensor([*tokens, rows]), table)


@given(draws, sizes, sizes, sizes, sizes)
def test_project_qkv(draw, tokens, d_in, d_k, d_v):
    n = draw.numbers()
    inputs, weights = n.randn(tokens, d_in), [n.randn(d_in, width) for width in (d_k, d_k, d_v)]
    results = unchanged(unit2.project_qkv, inputs, *weights)
    assert len(results) == 3
    for result, weight in zip(results, weights, strict=True):
        expected = formulas.linear(array(inputs), array(weight.T))
        assert_close(result, expected, draw.dtype, scale=size_of(inputs, weight.T))


@given(draws, leading, sizes, sizes, sizes)
def test_linear_projection(draw, before, tokens, d_in, d_out):
    n = draw.numbers()
    inputs, weight = n.randn(*before, tokens, d_in), n.randn(d_out, d_in)
    expected = formulas.for_each(lambda x: formulas.linear(x, array(weight)), array(inputs))
    result = unchanged(unit2.linear_projection, inputs, weight)
    assert_close(result, expected, draw.dtype, scale=size_of(inputs, weight))
    assert_close(
        unit2.linear_projection(inputs[..., 0, :], weight),
        expected[..., 0, :],
        draw.dtype,
        scale=size_of(inputs, weight),
    )


@given(draws, leading, sizes, sizes, sizes)
def test_attention_scores(draw, before, tq, tk, d_k):
    n = draw.numbers()
    queries, keys = n.randn(*before, tq, d_k), n.randn(*before, tk, d_k)
    expected = formulas.for_each(formulas.scores, array(queries), array(keys))
    result = unchanged(unit2.attention_scores, queries, keys)
    assert_close(result, expected, draw.dtype, scale=size_of(queries, keys))


@given(draws, leading, sizes, sizes, sizes, kinds)
def test_scaled_softmax(draw, before, tq, tk, d_k, kind):
    scores = draw.numbers().scores(*before, tq, tk, kind=kind)
    root = math.sqrt(d_k)
    expected = np.apply_along_axis(lambda row: formulas.softmax(row / root), -1, array(scores))
    finite = scores[scores.isfinite()]
    scale = 1 + float(finite.abs().max()) / root
    assert_close(unchanged(unit2.scaled_softmax, scores, d_k), expected, draw.dtype, scale=scale)


@given(draws, leading, sizes, sizes, sizes)
def test_context_vectors(draw, before, tq, tk, d_v):
    n = draw.numbers()
    weights, values = n.randn(*before, tq, tk), n.randn(*before, tk, d_v)
    expected = formulas.for_each(lambda w, v: [formulas.blend(row, v) for row in w], array(weights), array(values))
    result = unchanged(unit2.context_vectors, weights, values)
    assert_close(result, expected, draw.dtype, scale=size_of(weights, values.mT))


@given(draws, sizes, sizes, sizes, scales)
def test_single_query_attention(draw, tokens, d_k, d_v, scale):
    n = draw.numbers()
    query, keys, values = n.randn(d_k, scale=scale), n.randn(tokens, d_k, scale=scale), n.randn(tokens, d_v)
    (expected,) = formulas.attention([array(query)], array(keys), array(values))
    result = unchanged(unit2.single_query_attention, query, keys, values)
    assert_close(result, expected, draw.dtype, scale=size_of(query, keys) * size_of(values))


@given(draws, leading, sizes, sizes, sizes, sizes, scales)
def test_scaled_dot_product_attention(draw, before, tq, tk, d_k, d_v, scale):
    n = draw.numbers()
    queries, keys = n.randn(*before, tq, d_k, scale=scale), n.randn(*before, tk, d_k, scale=scale)
    values = n.randn(*before, tk, d_v)
    expected = formulas.for_each(formulas.attention, array(queries), array(keys), array(values))
    result = unchanged(unit2.scaled_dot_product_attention, queries, keys, values)
    assert_close(result, expected, draw.dtype, scale=size_of(queries, keys) * size_of(values))


@given(draws, leading, sizes, st.integers(2, 5), sizes)
def test_score_variance(draw, before, tq, tk, d_k):
    n = draw.numbers()
    queries, keys = n.randn(*before, tq, d_k), n.randn(*before, tk, d_k)
    raw = formulas.for_each(formulas.scores, array(queries), array(keys)).ravel()
    expected = formulas.variance(raw), formulas.variance(raw / math.sqrt(d_k))
    results = unchanged(unit2.score_variance, queries, keys)
    for result, right in zip(results, expected, strict=True):
        assert_close(result, right, draw.dtype, scale=size_of(queries, keys) ** 2)


def parameters(module):
    """A module's parameters as the formulas take them."""
    return {name: array(parameter) for name, parameter in module.named_parameters()}


def weights_of(module):
    """Largest factor by which a module's layers may enlarge their input."""
    norms = [float(torch.linalg.norm(p.detach().double())) for p in module.parameters()]
    return 1 + max(norms)


@given(draws, sizes, sizes, sizes)
def test_SelfAttention_v1(draw, tokens, d_in, d_out):
    torch.manual_seed(draw.seed)
    module = unit2.SelfAttention_v1(d_in, d_out).to(draw.dtype)
    x = draw.numbers().randn(tokens, d_in)
    p = parameters(module)
    expected = formulas.attention(*(formulas.linear(array(x), p[name].T) for name in ("W_query", "W_key", "W_value")))
    assert list(p) == ["W_query", "W_key", "W_value"]
    assert all(w.shape == (d_in, d_out) and w.min() >= 0 and w.max() <= 1 for w in p.values())
    assert_close(unchanged(module, x), expected, draw.dtype, scale=(size_of(x) * weights_of(module)) ** 2)


def projected(x, p, *names):
    """Queries, keys and values, or those of them that have a layer."""
    return [formulas.linear(x, p[f"{name}.weight"], p.get(f"{name}.bias")) for name in names]


QKV = ("W_query", "W_key", "W_value")


@given(draws, sizes, sizes, sizes, st.booleans())
def test_SelfAttention_v2(draw, tokens, d_in, d_out, bias):
    torch.manual_seed(draw.seed)
    module = unit2.SelfAttention_v2(d_in, d_out, bias).to(draw.dtype)
    x = draw.numbers().randn(tokens, d_in)
    expected = formulas.attention(*projected(array(x), parameters(module), *QKV))
    assert_close(unchanged(module, x), expected, draw.dtype, scale=(size_of(x) * weights_of(module)) ** 2)


@given(draws, sizes, sizes, st.booleans())
def test_copy_weights(draw, d_in, d_out, bias):
    torch.manual_seed(draw.seed)
    v1 = unit2.SelfAttention_v1(d_in, d_out).to(draw.dtype)
    v2 = unit2.SelfAttention_v2(d_in, d_out, bias).to(draw.dtype)
    before = {name: values.copy() for name, values in parameters(v1).items()}
    own = dict(v2.named_parameters())
    unit2.copy_weights(v1, v2)
    assert all(own[name] is now and now.requires_grad for name, now in v2.named_parameters())
    with torch.no_grad():
        for name, matrix in v1.named_parameters():
            assert np.array_equal(array(matrix), before[name])
            matrix.zero_()
    for name in QKV:
        assert own[f"{name}.weight"].tolist() == [list(column) for column in zip(*before[name].tolist(), strict=True)]
        assert not bias or own[f"{name}.bias"].tolist() == [0.0] * d_out


# Unit 3


@given(st.integers(0, 12))
def test_causal_mask(tokens):
    mask = unit3.causal_mask(tokens)
    assert (mask.dtype, mask.shape) == (torch.bool, (tokens, tokens))
    assert mask.tolist() == [[key > query for key in range(tokens)] for query in range(tokens)]


@given(draws, sizes)
def test_renormalized_causal_weights(draw, tokens):
    weights = torch.softmax(draw.numbers().randn(tokens, tokens), dim=-1)
    expected = [
        [float(w) / math.fsum(row[: i + 1]) if j <= i else 0.0 for j, w in enumerate(row)]
        for i, row in enumerate(array(weights))
    ]
    assert_close(unchanged(unit3.renormalized_causal_weights, weights), expected, draw.dtype)


@given(draws, leading, sizes, kinds)
def test_masked_scores(draw, before, tokens, kind):
    n = draw.numbers()
    scores, mask = n.scores(*before, tokens, tokens, kind=kind), n.randn(tokens, tokens) > 0
    expected = array(scores).copy()
    for i, j in np.argwhere(mask.numpy()):
        expected[..., i, j] = -np.inf
    assert_close(unchanged(unit3.masked_scores, scores, mask), expected, draw.dtype)


@given(draws, leading, sizes, sizes, kinds)
def test_causal_softmax(draw, before, tokens, d_k, kind):
    scores = draw.numbers().scores(*before, tokens, tokens, kind=kind)
    expected = formulas.for_each(lambda s: formulas.causal_softmax(s, d_k), array(scores))
    scale = 1 + float(scores[scores.isfinite()].abs().max()) / math.sqrt(d_k)
    result = unchanged(unit3.causal_softmax, scores, d_k)
    assert_close(result, expected, draw.dtype, scale=scale)
    assert not result.triu(1).any()


@given(draws, leading, sizes, st.sampled_from([0.0, 0.25, 0.5, 0.9]))
def test_attention_dropout(draw, before, tokens, p):
    """Each weight is 0 or w / (1 - p); what chance decides is in test_dropout."""
    weights = torch.softmax(draw.numbers().randn(*before, tokens, tokens), dim=-1)
    torch.manual_seed(draw.seed)
    dropped = unchanged(unit3.attention_dropout, weights, p)
    kept = array(dropped) != 0
    right = array(weights) / float(1 - Decimal(str(p)))
    assert_close(dropped, np.where(kept, right, 0.0), draw.dtype)
    assert p or kept.all()
    assert torch.equal(unit3.attention_dropout(weights, p, training=False), weights)


@given(draws, batches, sizes, sizes, scales)
def test_causal_head(draw, b, tokens, head_dim, scale):
    n = draw.numbers()
    queries, keys, values = (n.randn(b, tokens, head_dim, scale=scale) for _ in range(3))
    expected = formulas.for_each(
        lambda q, k, v: formulas.attention(q, k, v, causal=True), array(queries), array(keys), array(values)
    )
    result = unchanged(unit3.causal_head, queries, keys, values)
    assert_close(result, expected, draw.dtype, scale=size_of(queries, keys) * size_of(values))


@given(draws, batches, sizes, sizes, sizes, st.integers(0, 3), st.booleans())
def test_CausalAttention(draw, b, tokens, d_in, d_out, spare, bias):
    torch.manual_seed(draw.seed)
    module = unit3.CausalAttention(d_in, d_out, tokens + spare, 0.5, bias).to(draw.dtype).eval()
    x = draw.numbers().randn(b, tokens, d_in)
    p = parameters(module)
    expected = formulas.for_each(lambda one: formulas.attention(*projected(one, p, *QKV), causal=True), array(x))
    assert_close(unchanged(module, x), expected, draw.dtype, scale=(size_of(x) * weights_of(module)) ** 2)


@given(draws, batches, sizes, sizes, sizes, st.integers(1, 3), st.integers(0, 3), st.booleans())
def test_MultiHeadAttentionWrapper(draw, b, tokens, d_in, d_out, num_heads, spare, bias):
    torch.manual_seed(draw.seed)
    module = unit3.MultiHeadAttentionWrapper(d_in, d_out, tokens + spare, 0.5, num_heads, bias).to(draw.dtype).eval()
    x = draw.numbers().randn(b, tokens, d_in)
    each = [parameters(head) for head in module.heads]
    expected = formulas.for_each(
        lambda one: formulas.side_by_side([formulas.attention(*projected(one, p, *QKV), causal=True) for p in each]),
        array(x),
    )
    assert_close(unchanged(module, x), expected, draw.dtype, scale=(size_of(x) * weights_of(module)) ** 2)


# Unit 4


@given(draws, sizes, sizes, sizes, sizes, st.integers(1, 3))
def test_stacked_heads_attention(draw, tokens, d_in, d_k, d_v, num_heads):
    n = draw.numbers()
    inputs = n.randn(tokens, d_in)
    weights = [n.randn(num_heads, width, d_in) for width in (d_k, d_k, d_v)]
    x = array(inputs)
    expected = [formulas.attention(*(formulas.linear(x, array(w[head])) for w in weights)) for head in range(num_heads)]
    scale = (size_of(inputs) * max(size_of(w) for w in weights)) ** 2 * d_k
    assert_close(unchanged(unit4.stacked_heads_attention, inputs, *weights), expected, draw.dtype, scale=scale)


@given(draws, batches, sizes, st.integers(1, 4), sizes)
def test_split_heads(draw, b, tokens, num_heads, head_dim):
    x = draw.numbers().randn(b, tokens, num_heads * head_dim)
    expected = [formulas.heads(array(one), num_heads) for one in x]
    assert_close(unchanged(unit4.split_heads, x, num_heads), expected, draw.dtype)
    if num_heads > 1:
        with pytest.raises(ValueError, match="cannot be split"):
            unit4.split_heads(torch.zeros(b, tokens, num_heads * head_dim + 1), num_heads)


@given(draws, batches, st.integers(1, 3), sizes, sizes)
def test_multi_head_scores(draw, b, num_heads, tokens, head_dim):
    n = draw.numbers()
    queries, keys = (n.randn(b, num_heads, tokens, head_dim) for _ in range(2))
    expected = formulas.for_each(formulas.scores, array(queries), array(keys))
    result = unchanged(unit4.multi_head_scores, queries, keys)
    assert_close(result, expected, draw.dtype, scale=size_of(queries, keys))


@given(draws, batches, st.integers(1, 3), sizes, sizes)
def test_merge_heads(draw, b, num_heads, tokens, head_dim):
    x = draw.numbers().randn(b, num_heads, tokens, head_dim)
    expected = [formulas.side_by_side(array(one)) for one in x]
    assert_close(unchanged(unit4.merge_heads, x), expected, draw.dtype)
    assert torch.equal(unit4.merge_heads(unit4.split_heads(unit4.merge_heads(x), num_heads)), unit4.merge_heads(x))


def check_multi_head(kind, layers, draw, b, tokens, d_in, num_heads, head_dim, spare, bias):
    """A class of several heads, whose keys and values are the input where it has no layer for them."""
    torch.manual_seed(draw.seed)
    d_out = num_heads * head_dim
    module = kind(d_in, d_out, tokens + spare, 0.5, num_heads, bias).to(draw.dtype).eval()
    x = draw.numbers().randn(b, tokens, d_in)
    p = parameters(module)

    def one_sequence(x):
        given = dict(zip(layers, projected(x, p, *layers), strict=True))
        context = formulas.multi_head_attention(*(given.get(name, x.tolist()) for name in QKV), num_heads)
        return formulas.linear(context, p["out_proj.weight"], p["out_proj.bias"])

    expected = formulas.for_each(one_sequence, array(x))
    scale = (size_of(x) * weights_of(module)) ** 2 * weights_of(module)
    assert_close(unchanged(module, x), expected, draw.dtype, scale=scale)
    if num_heads > 1:
        with pytest.raises(ValueError, match="divisible"):
            kind(d_in, d_out + 1, tokens, 0.0, num_heads)


@given(draws, batches, sizes, sizes, st.integers(1, 3), st.integers(1, 3), st.integers(0, 3), st.booleans())
def test_MultiHeadAttention(draw, b, tokens, d_in, num_heads, head_dim, spare, bias):
    check_multi_head(unit4.MultiHeadAttention, QKV, draw, b, tokens, d_in, num_heads, head_dim, spare, bias)


@given(draws, batches, sizes, st.integers(1, 3), st.integers(1, 3), st.integers(0, 3), st.booleans())
def test_OptimizedMultiHeadAttention(draw, b, tokens, num_heads, head_dim, spare, bias):
    kind, width = unit4.OptimizedMultiHeadAttention, num_heads * head_dim
    check_multi_head(kind, QKV[:2], draw, b, tokens, width, num_heads, head_dim, spare, bias)


@given(draws, batches, sizes, st.integers(1, 3), st.integers(1, 3), st.integers(0, 3), st.booleans())
def test_EfficientMultiHeadAttention(draw, b, tokens, num_heads, head_dim, spare, bias):
    kind, width = unit4.EfficientMultiHeadAttention, num_heads * head_dim
    check_multi_head(kind, QKV[:1], draw, b, tokens, width, num_heads, head_dim, spare, bias)


@given(st.lists(st.tuples(st.lists(sizes, max_size=3), st.booleans()), max_size=5), st.integers(0, 4))
def test_count_parameters(parts, repeated):
    """Parameters of a chain of modules, each in the one before, trainable or not, one of them twice."""
    outermost = inner = torch.nn.Module()
    for shape, learns in parts:
        inner.own = torch.nn.Parameter(torch.zeros(shape), requires_grad=learns)
        inner.register_buffer("seen", torch.zeros(3))
        inner.inside = torch.nn.Module()
        inner = inner.inside
    if repeated < len(parts):
        inner.again = list(outermost.parameters())[repeated]
    assert unit4.count_parameters(outermost) == sum(math.prod(shape) for shape, learns in parts if learns)
