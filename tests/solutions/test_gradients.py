"""Gradients against finite differences, in float64."""

import pytest
import torch

from autograder import course
from solutions import attention_masks as unit5
from solutions import causal_attention as unit3
from solutions import dot_product_attention as unit1
from solutions import inference as unit6
from solutions import modern_attention as unit9
from solutions import multi_head_attention as unit4
from solutions import self_attention as unit2
from solutions import tiny_language_model as unit8

FUNCTIONS = {
    unit1.dot_product_scores: [(3,), (4, 3)],
    unit1.softmax: [(3, 4)],
    unit1.context_vector: [(4,), (4, 3)],
    unit1.pairwise_scores: [(4, 3)],
    unit1.simple_self_attention: [(4, 3)],
    unit2.project_qkv: [(4, 3), (3, 2), (3, 2), (3, 5)],
    unit2.linear_projection: [(2, 4, 3), (5, 3)],
    unit2.attention_scores: [(2, 4, 3), (2, 5, 3)],
    unit2.context_vectors: [(2, 4, 5), (2, 5, 3)],
    unit2.single_query_attention: [(3,), (4, 3), (4, 2)],
    unit2.scaled_dot_product_attention: [(2, 4, 3), (2, 5, 3), (2, 5, 2)],
    unit2.score_variance: [(4, 3), (5, 3)],
    unit3.causal_head: [(2, 4, 3)] * 3,
    unit4.stacked_heads_attention: [(4, 3), (2, 2, 3), (2, 2, 3), (2, 5, 3)],
    unit4.multi_head_scores: [(1, 2, 4, 3)] * 2,
    unit4.merge_heads: [(1, 2, 4, 3)],
}


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_of_functions(function):
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(s, generator=generator, dtype=torch.float64, requires_grad=True) for s in FUNCTIONS[function]]
    assert torch.autograd.gradcheck(function, inputs)


@pytest.mark.parametrize("blind", [False, True])
def test_of_masked_attention(blind):
    generator = torch.Generator().manual_seed(0)
    shapes = [(2, 4, 3), (2, 5, 3), (2, 5, 2)]
    inputs = [torch.randn(s, generator=generator, dtype=torch.float64, requires_grad=True) for s in shapes]
    mask = torch.rand(2, 4, 5, generator=generator) > 0.5
    mask[1, 2] = blind
    assert torch.autograd.gradcheck(lambda *args: unit5.masked_attention(*args, mask), inputs)


def test_of_rotary_embeddings():
    x = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda one: unit5.rotary_embedding(one, torch.tensor([3, 0, 7])), [x])


def test_of_next_token_loss():
    logits = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    tokens = torch.tensor([[1, 3, 0], [2, 2, 1]])
    assert torch.autograd.gradcheck(lambda one: unit8.next_token_loss(one, tokens), [logits])


def test_of_embeddings():
    table = torch.randn(4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    tokens = torch.tensor([2, 0, 2, 3])
    assert torch.autograd.gradcheck(lambda one: unit2.embed(tokens, one), [table])


@pytest.mark.parametrize("d_k", [1, 3])
@pytest.mark.parametrize("function", [unit2.scaled_softmax, unit3.causal_softmax])
def test_of_scaled_weights(function, d_k):
    scores = torch.randn(2, 4, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda s: function(s, d_k), [scores])


MODULES = {
    "SelfAttention_v1": lambda: unit2.SelfAttention_v1(4, 2),
    "SelfAttention_v2": lambda: unit2.SelfAttention_v2(4, 2, True),
    "CausalAttention": lambda: unit3.CausalAttention(4, 2, 5, 0.0, True),
    "MultiHeadAttentionWrapper": lambda: unit3.MultiHeadAttentionWrapper(4, 2, 5, 0.0, 2, True),
    "MultiHeadAttention": lambda: unit4.MultiHeadAttention(4, 6, 5, 0.0, 2, True),
    "OptimizedMultiHeadAttention": lambda: unit4.OptimizedMultiHeadAttention(4, 4, 5, 0.0, 2, True),
    "EfficientMultiHeadAttention": lambda: unit4.EfficientMultiHeadAttention(4, 4, 5, 0.0, 2, True),
    "CrossAttention": lambda: unit5.CrossAttention(4, 5, 6, 2),
    "CachedMultiHeadAttention": lambda: unit6.CachedMultiHeadAttention(4, 6, 2),
    "GroupedQueryAttention": lambda: unit6.GroupedQueryAttention(4, 6, 5, 2, 1),
    "TransformerBlock": lambda: unit8.TransformerBlock(4, 2, 5),
    "LatentAttention": lambda: unit9.LatentAttention(4, 6, 2, 3),
}
MORE = {"CrossAttention": [(2, 5, 5)]}
"""Further arguments of a module after x, by shape."""


def test_every_class_is_here():
    names = {e.name for unit in course.unit_names() for e in course.unit(unit).exercises}
    assert {name for name in names if name[0].isupper()} - {"KVCache"} <= set(MODULES)  # which is no module


@pytest.mark.parametrize("name", MODULES)
def test_of_modules(name):
    """Gradients of the inputs and of every parameter."""
    torch.manual_seed(0)
    module = MODULES[name]().double()
    shape = (3, 4) if name.startswith("SelfAttention") else (2, 3, 4)
    inputs = [torch.randn(one, dtype=torch.float64, requires_grad=True) for one in [shape, *MORE.get(name, ())]]
    names, values = zip(*module.named_parameters(), strict=True)

    def call(*args):
        given, values = args[: len(inputs)], args[len(inputs) :]
        return torch.func.functional_call(module, dict(zip(names, values, strict=True)), given)

    assert torch.autograd.gradcheck(call, (*inputs, *(value.detach().requires_grad_() for value in values)))
