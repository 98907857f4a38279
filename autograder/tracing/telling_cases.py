"""The cases on which an answer is watched: their sizes tell one dimension from another, their numbers are their own.

They are drawn for showing and are never a hidden grader's. An exercise may have several: the first on which an answer
goes wrong is the one that is told of. `causal_mask` has none: all that it makes are masks, and either way round a mask
may be right on the way.
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from ..course import content

DECIMALS = 3


@dataclass(frozen=True)
class TellingCase:
    """What is called, and with what."""

    exercise: str
    arguments: tuple[Any, ...]
    built: tuple[Any, ...] | None = None
    """What an instance is built with, where a class is asked for."""
    parameters: Mapping[str, torch.Tensor] | None = None
    """The numbers that it gets then."""


class Shape(tuple[int, ...]):
    """Stands in the table for a tensor of this shape."""


class Weights(Shape):
    """For one with rows that are positive and sum to 1."""


class Mask(Shape):
    """For one of True and False."""


class Large(Shape):
    """For one with numbers in the thousands."""


def _s(*sizes: int) -> Shape:
    return Shape(sizes)


_B, _T, _H, _WIDTH, _IN, _ROOM = 2, 5, 3, 18, 7, 8
"""Sequences, tokens, heads, width of all heads, width of an input vector, context_length: all differ.

The width of a head is 6: of 4 the root is also the half."""
_HEADS = (_WIDTH, _WIDTH, _ROOM, 0.0, _H)
_SENTENCE = "To be, or not to be, that is the question"

_FUNCTIONS: dict[str, list[tuple[Any, ...]]] = {
    "dot_product_scores": [(_s(4), _s(5, 4))],
    "normalize_by_sum": [(Weights((2, 3, 5)),), (_s(3, 5),), (_s(4, 4, 4),)],
    "softmax": [(_s(2, 3, 5),), (_s(2, 3, 5), 1), (_s(4, 4),), (_s(3, 5), 0), (Large((4, 5)),)],
    "context_vector": [(Weights((5,)), _s(5, 3)), (_s(4), _s(4, 4))],
    "pairwise_scores": [(_s(5, 3),)],
    "simple_self_attention": [(_s(5, 3),), (_s(4, 4),), (Large((5, 3)),)],
    "encode": [
        (_SENTENCE, {"To": 0, "be": 1, "is": 2, "not": 3, "or": 4, "question": 5, "that": 6, "the": 7, "to": 8})
    ],
    "project_qkv": [(_s(5, 3), _s(3, 4), _s(3, 4), _s(3, 2)), (_s(5, 3), _s(3, 3), _s(3, 3), _s(3, 3))],
    "linear_projection": [(_s(2, 5, 4), _s(3, 4)), (_s(5, 4), _s(4, 4)), (_s(4), _s(3, 4))],
    "attention_scores": [(_s(2, 5, 4), _s(2, 7, 4)), (_s(5, 4), _s(7, 4)), (_s(4, 4), _s(4, 4))],
    "scaled_softmax": [(_s(2, 5, 7), 6), (_s(5, 7), 6), (_s(2, 3, 5, 7), 6), (_s(4, 4), 3), (Large((5, 7)), 6)],
    "context_vectors": [(Weights((2, 5, 7)), _s(2, 7, 3)), (Weights((5, 7)), _s(7, 3)), (Weights((4, 4)), _s(4, 4))],
    "single_query_attention": [(_s(6), _s(5, 6), _s(5, 3)), (_s(4), _s(4, 4), _s(4, 4))],
    "scaled_dot_product_attention": [
        (_s(2, 5, 6), _s(2, 7, 6), _s(2, 7, 3)),
        (_s(5, 6), _s(7, 6), _s(7, 3)),
        (_s(4, 4), _s(4, 4), _s(4, 4)),
    ],
    "score_variance": [(_s(2, 5, 6), _s(2, 7, 6)), (_s(5, 6), _s(7, 6)), (_s(4, 4), _s(4, 4))],
    "renormalized_causal_weights": [(Weights((5, 5)),)],
    "masked_scores": [(_s(2, 5, 5), Mask((5, 5))), (_s(5, 5), Mask((5, 5)))],
    "causal_softmax": [(_s(2, 5, 5), 3), (_s(5, 5), 3), (_s(2, 3, 5, 5), 4), (Large((5, 5)), 4)],
    "attention_dropout": [(Weights((2, 5, 5)), 0.3, False)],
    "causal_head": [(_s(2, 5, 6), _s(2, 5, 6), _s(2, 5, 6))],
    "stacked_heads_attention": [
        (_s(5, 7), _s(3, 6, 7), _s(3, 6, 7), _s(3, 4, 7)),
        (_s(4, 4), _s(4, 4, 4), _s(4, 4, 4), _s(4, 4, 4)),
    ],
    "split_heads": [(_s(2, 5, 12), 3), (_s(4, 4, 16), 4)],
    "multi_head_scores": [(_s(2, 3, 5, 4), _s(2, 3, 5, 4)), (_s(4, 4, 4, 4), _s(4, 4, 4, 4))],
    "merge_heads": [(_s(2, 3, 5, 4),), (_s(4, 4, 4, 4),)],
}
_CLASSES: dict[str, list[tuple[tuple[Any, ...], tuple[Any, ...]]]] = {
    "SelfAttention_v1": [((_IN, 6), (_s(_T, _IN),)), ((4, 4), (_s(4, 4),))],
    "SelfAttention_v2": [((_IN, 6), (_s(_T, _IN),)), ((_IN, 6, True), (_s(_T, _IN),)), ((4, 4), (_s(4, 4),))],
    "CausalAttention": [
        ((_IN, 6, _ROOM, 0.0), (_s(_B, _T, _IN),)),
        ((_IN, 6, _ROOM, 0.0, True), (_s(_B, _T, _IN),)),
    ],
    "MultiHeadAttentionWrapper": [
        ((_IN, 6, _ROOM, 0.0, _H), (_s(_B, _T, _IN),)),
        ((_IN, 6, _ROOM, 0.0, _H, True), (_s(_B, _T, _IN),)),
    ],
    "MultiHeadAttention": [
        ((_IN, _WIDTH, _ROOM, 0.0, _H), (_s(_B, _T, _IN),)),
        ((_IN, _WIDTH, _ROOM, 0.0, _H, True), (_s(_B, _T, _IN),)),
    ],
    "OptimizedMultiHeadAttention": [(_HEADS, (_s(_B, _T, _WIDTH),)), ((*_HEADS, True), (_s(_B, _T, _WIDTH),))],
    "EfficientMultiHeadAttention": [(_HEADS, (_s(_B, _T, _WIDTH),)), ((*_HEADS, True), (_s(_B, _T, _WIDTH),))],
}


def telling_cases(unit: str, exercise: str) -> list[TellingCase]:
    """The cases of an exercise, in the order in which they are tried; none where no run would tell a line."""
    drawn = torch.Generator().manual_seed(zlib.crc32(f"to be shown: {unit} {exercise}".encode()))
    cases = [TellingCase(exercise, _drawn(args, drawn)) for args in _FUNCTIONS.get(exercise, ())]
    for built, args in _CLASSES.get(exercise, ()):
        solution = content.solutions(unit)[exercise]
        parameters = {
            name: _tensor(tuple(parameter.shape), drawn) for name, parameter in _built(solution, built).items()
        }
        cases.append(TellingCase(exercise, _drawn(args, drawn), built, parameters))
    return cases


def _built(kind: type[torch.nn.Module], built: tuple[Any, ...]) -> dict[str, torch.Tensor]:
    with torch.random.fork_rng(devices=[]):
        return dict(kind(*built).named_parameters())


def _drawn(args: tuple[Any, ...], drawn: torch.Generator) -> tuple[Any, ...]:
    return tuple(_argument(arg, drawn) for arg in args)


def _argument(arg: Any, drawn: torch.Generator) -> Any:
    match arg:
        case Weights():
            return torch.softmax(_tensor(tuple(arg), drawn), dim=-1)
        case Mask():
            return torch.rand(tuple(arg), generator=drawn) > 0.6
        case Large():
            return _tensor(tuple(arg), drawn) * 1000
        case Shape():
            return _tensor(tuple(arg), drawn)
    return arg


def _tensor(shape: tuple[int, ...], drawn: torch.Generator) -> torch.Tensor:
    return torch.randn(shape, generator=drawn, dtype=torch.float64).round(decimals=DECIMALS).float()
