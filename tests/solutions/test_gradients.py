"""Gradients against finite differences, in float64."""

import pytest
import torch

from autograder import course
from solutions import attention_masks as unit5
from solutions import causal_attention as unit3
from solutions import dot_product_attention as unit1
from solutions import efficient_attention as unit7
from solutions import inference as unit6
from solutions import modern_attention as unit9
from solutions import multi_head_attention as unit4
from solutions import self_attention as unit2
from solutions import tiny_language_model as unit8

MASK = torch.rand(2, 4, 5, generator=torch.Generator().manual_seed(0)) > 0.5
MASK[1, 2] = True  # this query sees no key
FUNCTIONS = {
    "dot_product_scores": (unit1.dot_product_scores, [(3,), (4, 3)]),
    "softmax": (unit1.softmax, [(3, 4)]),
    "context_vector": (unit1.context_vector, [(4,), (4, 3)]),
    "pairwise_scores": (unit1.pairwise_scores, [(4, 3)]),
    "simple_self_attention": (unit1.simple_self_attention, [(4, 3)]),
    "embed": (lambda table: unit2.embed(torch.tensor([2, 0, 2, 3]), table), [(4, 3)]),
    "project_qkv": (unit2.project_qkv, [(4, 3), (3, 2), (3, 2), (3, 5)]),
    "linear_projection": (unit2.linear_projection, [(2, 4, 3), (5, 3)]),
    "attention_scores": (unit2.attention_scores, [(2, 4, 3), (2, 5, 3)]),
    "scaled_softmax": (lambda scores: unit2.scaled_softmax(scores, 3), [(2, 4, 4)]),
    "context_vectors": (unit2.context_vectors, [(2, 4, 5), (2, 5, 3)]),
    "single_query_attention": (unit2.single_query_attention, [(3,), (4, 3), (4, 2)]),
    "scaled_dot_product_attention": (unit2.scaled_dot_product_attention, [(2, 4, 3), (2, 5, 3), (2, 5, 2)]),
    "score_variance": (unit2.score_variance, [(4, 3), (5, 3)]),
    "causal_softmax": (lambda scores: unit3.causal_softmax(scores, 3), [(2, 4, 4)]),
    "causal_head": (unit3.causal_head, [(2, 4, 3)] * 3),
    "stacked_heads_attention": (unit4.stacked_heads_attention, [(4, 3), (2, 2, 3), (2, 2, 3), (2, 5, 3)]),
    "multi_head_scores": (unit4.multi_head_scores, [(1, 2, 4, 3)] * 2),
    "merge_heads": (unit4.merge_heads, [(1, 2, 4, 3)]),
    "masked_attention": (lambda *inputs: unit5.masked_attention(*inputs, MASK), [(2, 4, 3), (2, 5, 3), (2, 5, 2)]),
    "rotary_embedding": (lambda x: unit5.rotary_embedding(x, torch.tensor([3, 0, 7])), [(2, 3, 4)]),
    "linear_attention": (unit7.linear_attention, [(2, 4, 3), (2, 4, 3), (2, 4, 2)]),
    "linear_attention, causal": (
        lambda *inputs: unit7.linear_attention(*inputs, True),
        [(2, 4, 3), (2, 4, 3), (2, 4, 2)],
    ),
    "half_precision_attention": (unit9.half_precision_attention, [(2, 4, 3), (2, 5, 3), (2, 5, 2)]),
}


@pytest.mark.parametrize(("function", "shapes"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_of_functions(function, shapes):
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True) for shape in shapes]
    assert torch.autograd.gradcheck(function, inputs)


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
