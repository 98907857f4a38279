"""The sizes of the trace cases: see `autograder.grading.reference_trace`.

For the exercises in `SILENT`, no faulty line is reported. `causal_mask` and other mask functions compute only masks,
and in between a mask may rightly be inverted: for one edit in eight, the reported line was wrong. For
`masked_attention` it was one in six of the edits that change values. The right results of `sample_next` are random.
"""

from typing import Any

import torch

from autograder.grading.reference_trace import Below, Large, Mask, Shape, Weights


def _s(*sizes: int) -> Shape:
    return Shape(sizes)


_B, _T, _H, _WIDTH, _IN, _ROOM = 2, 5, 3, 18, 7, 8
"""Sequences, tokens, heads, width of all heads, width of an input vector, context_length: all differ.

The width of a head is 6: of 4 the root is also the half."""
_HEADS = (_WIDTH, _WIDTH, _ROOM, 0.0, _H)
_SENTENCE = "To be, or not to be, that is the question"

SILENT = frozenset(
    {
        "causal_mask", "document_mask", "masked_attention", "padding_mask", "sample_next", "sliding_window_mask",
        "to_sdpa_mask",
    }
)  # fmt: skip
"""Exercises in which no line with wrong values is reported."""
UNTOLD: dict[str, set[str]] = {
    "KVCache": {"of another kind"},
    "accept_draft": {"mended", "returned"},
    "alibi_bias": {"returned"},
    "attention_with_sinks": {"missing"},
    "linear_attention": {"another", "first of two", "missing"},
    "merge_states": {"one line"},
    "next_token_loss": {"first of two", "mended", "missing", "one line"},
    "online_softmax": {"another", "mended", "of another kind", "one line", "returned"},
    "qk_norm_scores": {"mended"},
    "rms_norm": {"mended", "missing"},
    "paged_attention": {"one line"},
    "rotary_embedding": {"missing", "one line"},
    "share_heads": {"returned"},
    "sinusoidal_positions": {"one line"},
    "tiled_attention": {"missing", "one line"},
}
"""Values of `LocatedFault.kind` that are not reported: `benchmarks.located.measure` saw them name wrong lines."""
_INF = float("inf")
FUNCTIONS: dict[str, list[tuple[Any, ...]]] = {
    "causal_mask": [(4,)],
    "padding_mask": [(torch.tensor([3, 0, 5]), 5)],
    "sliding_window_mask": [(6, 3)],
    "to_sdpa_mask": [(Mask((2, 1, 6)),)],
    "masked_attention": [(_s(2, 5, 6), _s(2, 7, 6), _s(2, 7, 3), Mask((2, 1, 7)))],
    "sample_next": [(_s(3, 7), 0.7, 4), (_s(3, 7), 0, 4)],
    "dot_product_scores": [(_s(4), _s(5, 4))],
    "normalize_by_sum": [(Weights((2, 3, 5)),), (_s(3, 5),), (_s(4, 4, 4),)],
    "softmax": [(_s(2, 3, 5),), (_s(2, 3, 5), 1), (_s(4, 4),), (_s(3, 5), 0), (Large((4, 5)),)],
    "context_vector": [(Weights((5,)), _s(5, 3)), (_s(4), _s(4, 4))],
    "pairwise_scores": [(_s(5, 3),)],
    "simple_self_attention": [(_s(5, 3),), (_s(4, 4),), (Large((5, 3)),)],
    "encode": [
        (_SENTENCE, {"To": 0, "be": 1, "is": 2, "not": 3, "or": 4, "question": 5, "that": 6, "the": 7, "to": 8})
    ],
    "embed": [(torch.tensor([2, 0, 3, 3, 1]), _s(4, 6)), (torch.tensor([2, 0, 3, 1]), _s(4, 4))],
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
        (_s(3, 3), _s(3, 3, 3), _s(3, 3, 3), _s(3, 3, 3)),
    ],
    "split_heads": [(_s(2, 5, 12), 3), (_s(3, 3, 9), 3)],
    "multi_head_scores": [(_s(2, 3, 5, 4), _s(2, 3, 5, 4)), (_s(3, 3, 3, 3), _s(3, 3, 3, 3))],
    "online_softmax": [
        (_s(3, 5),),
        (torch.tensor([[3.5, 1.2], [2.1, 0.4], [-1.3, -2.2]]),),
        (torch.tensor([[0.3, -_INF, 1.1], [-_INF, -_INF, -_INF], [0.7, 1.9, -_INF]]),),
        (Below((3, 4)),),
    ],
    "merge_states": [
        ((_s(5, 1), _s(5, 1), _s(5, 4)), (_s(5, 1), _s(5, 1), _s(5, 4))),
        ((_s(2, 3, 1), _s(2, 3, 1), _s(2, 3, 4)), (Below((2, 3, 1)), _s(2, 3, 1), _s(2, 3, 4))),
        ((_s(3, 1), _s(3, 1), _s(3, 4)), (torch.full((3, 1), -_INF), torch.zeros(3, 1), torch.zeros(3, 4))),
    ],
    "tiled_attention": [
        (_s(5, 6), _s(5, 6), _s(5, 3), 2),
        (_s(5, 6), _s(5, 6), _s(5, 3), 2, True),
        (_s(2, 3, 5, 4), _s(2, 3, 5, 4), _s(2, 3, 5, 7), 3, True),
        (Weights((5, 3)), Below((5, 3)), _s(5, 3), 2, True),
    ],
    "attention_backward": [
        (_s(4, 6), _s(5, 6), _s(5, 3), _s(4, 3)),
        (_s(2, 4, 6), _s(2, 5, 6), _s(2, 5, 3), _s(2, 4, 3)),
        (_s(3, 3), _s(3, 3), _s(3, 3), _s(3, 3)),
    ],
    "linear_attention": [
        (_s(5, 3), _s(5, 3), _s(5, 4)),
        (_s(5, 3), _s(5, 3), _s(5, 4), True),
        (_s(2, 3, 4, 2), _s(2, 3, 4, 2), _s(2, 3, 4, 5), True),
    ],
    "share_heads": [(_s(2, 2, 5, 7), 6), (_s(3, 2, 5, 4), 4)],
    "sinusoidal_positions": [(5, 6), (3, 10)],
    "next_token_loss": [
        (_s(2, 5, 6), torch.tensor([[2, 0, 5, 1, 1], [4, 3, 0, 2, 5]])),
        (Large((2, 3, 4)), torch.tensor([[2, 0, 3], [1, 3, 0]])),
    ],
    "rms_norm": [(_s(2, 5, 6), _s(6)), (_s(3, 4), _s(4), 0.5), (_s(3, 3), _s(3))],
    "qk_norm_scores": [
        (_s(2, 5, 6), _s(2, 7, 6), _s(6), _s(6)),
        (_s(5, 6), _s(7, 6), _s(6), _s(6), 0.5),
        (_s(3, 3), _s(3, 3), _s(3), _s(3)),
    ],
    "softcap": [(_s(2, 3, 5), 2.5), (_s(4, 4), 0.5)],
    "half_precision_attention": [
        (_s(2, 5, 6), _s(2, 7, 6), _s(2, 7, 3)),
        (_s(5, 6), _s(7, 6), _s(7, 3)),
        (_s(3, 3), _s(3, 3), _s(3, 3)),
    ],
    "attention_with_sinks": [(_s(2, 3, 5, 6), _s(2, 3, 5, 6), _s(2, 3, 5, 6), _s(3))],
    "document_mask": [(torch.tensor([[1, 1, 2, 2, 1], [7, 3, 7, 3, 3]]),)],
    "swiglu": [(_s(2, 5, 4), _s(6, 4), _s(6, 4), _s(4, 6)), (_s(3, 3), _s(3, 3), _s(3, 3), _s(3, 3))],
    "merge_heads": [(_s(2, 3, 5, 4),), (_s(3, 3, 3, 3),)],
    "absorbed_scores": [(_s(2, 3, 5, 4), _s(2, 7, 6), _s(3, 4, 6)), (_s(3, 3, 3, 3), _s(3, 3, 3), _s(3, 3, 3))],
    "alibi_bias": [(4, 5), (2, 3)],
    "rotary_embedding": [
        (_s(2, 5, 6), torch.tensor([2, 3, 4, 5, 6])),
        (_s(3, 4), torch.tensor([1, 0, 5])),
        (_s(2, 3, 5, 6), torch.tensor([0, 1, 2, 3, 4]), 100.0),
    ],
    "paged_attention": [
        (_s(3, 6), _s(5, 2, 3, 6), _s(5, 2, 3, 6), torch.tensor([3, 1, 4, -1]), 5),
        (_s(3, 3), _s(4, 3, 3, 3), _s(4, 3, 3, 3), torch.tensor([2, 0]), 6),
        (Large((2, 6)), _s(3, 4, 2, 6), _s(3, 4, 2, 6), torch.tensor([1, 2, -1]), 7),
    ],
    "accept_draft": [
        (Weights((4, 5)), Weights((5, 5)), torch.tensor([3, 0, 4, 1]), torch.tensor([0.02, 0.98, 0.03, 0.04])),
        (Weights((2, 3)), Weights((3, 3)), torch.tensor([1, 2]), torch.tensor([0.01, 0.02])),
        (Weights((3, 6)), Weights((4, 6)), torch.tensor([5, 2, 2]), torch.tensor([0.99, 0.02, 0.97])),
    ],
}
CLASSES: dict[str, list[tuple[tuple[Any, ...], tuple[Any, ...]]]] = {
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
    "CrossAttention": [
        ((_IN, 4, _WIDTH, _H), (_s(_B, _T, _IN), _s(_B, 6, 4))),
        ((_IN, 4, _WIDTH, _H), (_s(_B, _T, _IN), _s(_B, 6, 4), torch.arange(6) >= torch.tensor([[6], [2]]))),
        ((3, 4, 6, 2), (_s(2, 3, 3), _s(2, 4, 4), torch.arange(4) >= torch.tensor([[4], [0]]))),
    ],
    "TransformerBlock": [((6, 2, _ROOM), (_s(_B, _T, 6),))],
    "KVCache": [
        ((), (_s(2, 3, 4, 6), _s(2, 3, 4, 5), _s(2, 3, 1, 6), _s(2, 3, 1, 5))),
        ((), (_s(2, 6), _s(2, 5), _s(3, 6), _s(3, 5), _s(1, 6), _s(1, 5), _s(4, 6), _s(4, 5))),
    ],
    "CachedMultiHeadAttention": [((_IN, _WIDTH, _H), (_s(_B, _T, _IN),))],
    "LatentAttention": [((4, 12, 2, 3), (_s(_B, _T, 4),)), ((3, 12, 2, 7), (_s(_B, _T, 3),))],
    "GroupedQueryAttention": [
        ((_IN, 36, _ROOM, 6, 2), (_s(_B, _T, _IN),)),
        ((_IN, _WIDTH, _ROOM, _H, 1), (_s(_B, _T, _IN),)),
    ],
    "EfficientMultiHeadAttention": [(_HEADS, (_s(_B, _T, _WIDTH),)), ((*_HEADS, True), (_s(_B, _T, _WIDTH),))],
}
THROUGH: dict[str, tuple[str, ...]] = {"KVCache": ("append", "keys", "values")}
"""For a class whose instances are not called: the method to call, and the attributes to read afterwards."""
