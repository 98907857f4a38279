"""Substitutes for hidden tests whose own calls cannot be released, because their inputs are constants or random.

`GRADERS` test the same with other numbers. `STEPS` are for random results, which are judged by their structure.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from autograder.core.comparison import assert_close, assert_equal, golden
from autograder.core.random_results import DRAWS, FEW_DRAWS
from autograder.graders.statements import assert_dtype, assert_raises, transplant

from .by_chance import LONE
from .dropped_attention import LAYERS

Steps = list[dict[str, Any]]
P = 0.25
ONE_HEAD, SEVERAL = 24, 14
"""Sequence lengths in the steps on dropout, with one head and with several."""


def _negative_scores(self: Any, student: Any, reference: Any, rng: Any) -> None:
    scores = torch.tensor([[1.5, -0.5, 1.0], [-2.0, -1.5, 0.5]])
    assert_close(student.normalize_by_sum(scores), reference.normalize_by_sum(scores))


def _small_sums(self: Any, student: Any, reference: Any, rng: Any) -> None:
    scores = rng.of(torch.float64).rand(4, 2) / 4  # where something added to the sum shows most
    assert_close(student.normalize_by_sum(scores), reference.normalize_by_sum(scores))


def _sizes_of_masks(self: Any, student: Any, reference: Any, rng: Any) -> None:
    for num_tokens in (5, 3, 1, 20):
        assert_close(student.causal_mask(num_tokens), golden(reference.causal_mask(num_tokens).value))


def _commas_of_a_vocabulary(self: Any, student: Any, reference: Any, rng: Any) -> None:
    sentence = " Well,then , it's\tso   C c, over! done.\nno "
    assert_equal(student.build_vocab(sentence), reference.build_vocab(sentence))


def _commas_of_a_sentence(self: Any, student: Any, reference: Any, rng: Any) -> None:
    tokens = student.encode("  Well,then it's,\n over! ", {"Wellthen": 6, "it's": 1, "over!": 5})
    assert_close(tokens, golden([6, 1, 5]))


def _one_word(self: Any, student: Any, reference: Any, rng: Any) -> None:
    assert_close(student.encode("sun", {"moon": 3, "sun": 4}), golden([4]))


def _int64(self: Any, student: Any, reference: Any, rng: Any) -> None:
    assert_dtype(student.encode("sun moon", {"moon": 0, "sun": 1}), torch.int64)


def _unknown_word(self: Any, student: Any, reference: Any, rng: Any) -> None:
    for sentence in ("moon sun", "sun moon"):
        assert_raises("KeyError", student.encode, sentence, {"moon": 0})


def _after_eval(self: Any, student: Any, reference: Any, rng: Any) -> None:
    own = self.callee(student, dropout=0.5).eval()  # of the graders' own widths, which other inputs would not fit
    right = transplant(self.callee(reference), own)
    for num_tokens in (5, 3):
        (x,) = self.draw(rng, 2, num_tokens, scale=2.0)
        assert_close(own(x), right(x))


def _numbers_of_documents(self: Any, student: Any, reference: Any, rng: Any) -> None:
    for documents in ([[-3, 2, -3, 2]], [[2**41, 2**41 + 1, 2**41]], [[9, 9, -1, -1, 8]]):
        numbers = torch.tensor(documents)
        assert_close(student.document_mask(numbers), golden(reference.document_mask(numbers).value))


GRADERS: dict[tuple[str, str], Callable[..., None]] = {
    ("normalize_by_sum", "test_negative_scores"): _negative_scores,
    ("normalize_by_sum", "test_float64_stays_exact"): _small_sums,
    ("causal_mask", "test_other_sizes"): _sizes_of_masks,
    ("build_vocab", "test_commas_and_spaces"): _commas_of_a_vocabulary,
    ("encode", "test_commas_and_spaces"): _commas_of_a_sentence,
    ("encode", "test_one_word"): _one_word,
    ("encode", "test_int64"): _int64,
    ("encode", "test_unknown_word"): _unknown_word,
    ("CausalAttention", "test_after_eval"): _after_eval,
    ("MultiHeadAttentionWrapper", "test_after_eval"): _after_eval,
    ("document_mask", "test_other_numbers"): _numbers_of_documents,
    ("MultiHeadAttention", "test_no_dropout_in_evaluation"): _after_eval,
    ("OptimizedMultiHeadAttention", "test_no_dropout_in_evaluation"): _after_eval,
    ("EfficientMultiHeadAttention", "test_no_dropout_in_evaluation"): _after_eval,
}


def _drawn(seed: int, *shape: int, spread: float | None = None) -> dict[str, Any]:
    rule = [seed] if spread is None else [seed, 0.0, spread]
    return {"drawn": rule, "shape": list(shape), "dtype": "float32"}


def _identity(size: int, *shape: int) -> dict[str, Any]:
    return {"identity": size, "shape": list(shape), "dtype": "float32"}


def _dropout(weights: dict[str, Any], p: float, *view: str, **more: Any) -> dict[str, Any]:
    shape = zip(view, weights["shape"], strict=True)
    return {
        "operation": "call", "name": "attention_dropout", "args": [weights, p], "whole": "argument",
        "dropped": {"p": p, "view": [list(one) for one in shape], **more},
    }  # fmt: skip


def _gradients_of_dropout() -> Steps:
    call = {**_dropout(_drawn(31, 40, 40), P, "query", "key"), "cotangents": [_identity(1, 40, 40)], "arrives_at": [0]}
    outside = {name: value for name, value in call.items() if name not in ("whole", "dropped")}
    return [call, {**outside, "args": [*call["args"], False]}]


def _built(name: str, *args: Any) -> dict[str, Any]:
    return {"operation": "build", "name": name, "args": list(args)}


def _head(seed: int, prefix: str = "") -> Iterator[tuple[str, Any]]:
    T = ONE_HEAD  # noqa: N806
    layers = [_drawn(seed, 2 * T, T, spread=0.7), _drawn(seed + 1, 2 * T, T, spread=0.7), _identity(T, 2 * T, T)]
    yield from zip((prefix + layer for layer in LAYERS), layers, strict=True)


def _one_head(room: int = 5) -> Steps:
    """A head whose result is its weights, twice side by side, for an input of unit vectors."""
    values = dict(_head(41))
    return [
        _built("CausalAttention", ONE_HEAD, 2 * ONE_HEAD, ONE_HEAD + room, P),
        {"operation": "load", "instance": 0, "values": values},
        {"operation": "train", "instance": 0, "mode": True},
    ]


def _two_heads() -> Steps:
    values = dict([*_head(43, "heads.0."), *_head(45, "heads.1.")])
    return [
        _built("MultiHeadAttentionWrapper", ONE_HEAD, 2 * ONE_HEAD, ONE_HEAD, P, 2),
        {"operation": "load", "instance": 0, "values": values},
        {"operation": "train", "instance": 0, "mode": True},
    ]


def _several_heads(name: str) -> Steps:
    """A module of three heads whose result is their weights, each twice side by side."""
    width = 3 * 2 * SEVERAL
    values: dict[str, Any] = {"W_query.weight": _drawn(47, width, width, spread=0.5)}
    if name != "EfficientMultiHeadAttention":
        values["W_key.weight"] = _drawn(48, width, width, spread=0.5)
    if name == "MultiHeadAttention":
        values["W_value.weight"] = _identity(width, width, width)
    values |= {"out_proj.weight": _identity(width, width, width),
               "out_proj.bias": {"shape": [width], "dtype": "float32", "values": [0.0] * width}}  # fmt: skip
    return [
        _built(name, width, width, SEVERAL, P, 3),
        {"operation": "load", "instance": 0, "values": values},
        {"operation": "train", "instance": 0, "mode": True},
    ]


def _called(x: dict[str, Any], view: list[Any] | None = None) -> dict[str, Any]:
    call = {"operation": "call", "instance": 0, "args": [x]}
    return call if view is None else {**call, "whole": "evaluation", "dropped": {"p": P, "view": view}}


def _of_one_head(sequences: int, tokens: int) -> dict[str, Any]:
    view = [["sequence", sequences], ["query", tokens], ["copy", 2], ["key", ONE_HEAD]]
    return _called(_identity(ONE_HEAD, sequences, tokens, ONE_HEAD), view)


def _of_two_heads() -> dict[str, Any]:
    view = [["sequence", 2], ["query", ONE_HEAD], ["head", 2], ["copy", 2], ["key", ONE_HEAD]]
    return _called(_identity(ONE_HEAD, 2, ONE_HEAD, ONE_HEAD), view)


def _of_several_heads(sequences: int, tokens: int) -> dict[str, Any]:
    view = [["sequence", sequences], ["query", tokens], ["head", 3], ["copy", 2], ["key", SEVERAL]]
    return _called(_identity(SEVERAL, sequences, tokens, 6 * SEVERAL), view)


def _by_hand(*args: Any, sentences: Sequence[Sequence[int]], mixture: bool = False) -> dict[str, Any]:
    """A call of heads_by_hand, whose matrices are run on sentences."""
    rule = {"sentences": sentences, "mixture": mixture}
    return {"operation": "call", "name": "heads_by_hand", "args": list(args), "head": rule}


_SENTENCES = [[1, 0, 0, 2, 1, 0, 2], [3, 1, 3], [1, 0, 0, 1, 3, 1, 1, 0, 2], [2]]


def _one_head_by_hand(name: str) -> Steps:
    return [_by_hand(name, 4, places, sentences=_SENTENCES) for places in (9, 11)]


def _words(levels: Sequence[float], temperature: float, top_k: int, rule: str, number: int) -> dict[str, Any]:
    """A call of sample_next with equal rows of logits. rule: what the drawn words are compared with."""
    row = {"shape": [1, len(levels)], "dtype": "float32", "values": list(levels)}
    rows = {"repeated": row, "shape": [number, len(levels)], "dtype": "float32"}
    return {"operation": "call", "name": "sample_next", "args": [rows, temperature, top_k], "draws": rule}


def _anew(call: dict[str, Any]) -> Steps:
    return [{name: value for name, value in call.items() if name not in ("whole", "dropped")}] * 3


STEPS: dict[tuple[str, str], tuple[list[str], Steps]] = {
    ("attention_dropout", "test_dropped_and_rescaled"): (
        ["dropped"],
        [_dropout(_drawn(20 + number, 60, 60), p, "query", "key") for number, p in enumerate((0.25, 0.5, 0.8))],
    ),
    ("attention_dropout", "test_each_on_its_own"): (
        ["dropped", "counted"],
        [
            _dropout(_drawn(25, 3, 40, 50), P, "sequence", "query", "key", freely=True),
            _dropout(_drawn(28, 2, 40, 40), P, "sequence", "query", "key", freely=True),
            *[_dropout(_drawn(26, LONE, 1, 1), P, "sequence", "query", "key", lone=True)] * 5,
        ],
    ),
    ("attention_dropout", "test_drawn_anew"): (["anew"], _anew(_dropout(_drawn(27, 40, 40), P, "query", "key"))),
    ("attention_dropout", "test_gradients"): (["dropped", "arrival"], _gradients_of_dropout()),
    ("CausalAttention", "test_dropout_in_training"): (
        ["dropped"],
        [*_one_head(), _of_one_head(2, ONE_HEAD), _of_one_head(LONE, 1)],
    ),
    ("CausalAttention", "test_drawn_anew"): (["anew"], [*_one_head(0), *_anew(_of_one_head(2, ONE_HEAD))]),
    ("MultiHeadAttentionWrapper", "test_dropout_in_training"): (["dropped"], [*_two_heads(), _of_two_heads()]),
    ("KVCache", "test_empty"): (
        ["value"],
        [
            {"operation": "build", "name": "KVCache", "args": [], "plain": True},
            *[
                {"operation": "read", "instance": 0, "args": [], "part": part, "result": None}
                for part in ("keys", "values")
            ],
        ],
    ),
    **{
        ("heads_by_hand", f"test_{name.replace(' ', '_')}"): (["head"], _one_head_by_hand(name))
        for name in ("itself", "first", "previous", "same word")
    },
    ("heads_by_hand", "test_average"): (
        ["head"],
        [*_one_head_by_hand("average"), _by_hand("average", 4, 9, sentences=_SENTENCES, mixture=True)],
    ),
    ("heads_by_hand", "test_values"): (
        ["head"],
        [
            _by_hand(name, 4, 9, sentences=_SENTENCES[:1], mixture=True)
            for name in ("itself", "first", "previous", "average", "same word")
        ],
    ),
    ("heads_by_hand", "test_other_sizes"): (
        ["head"],
        [
            _by_hand(name, *sizes, sentences=[sentence])
            for sizes, sentence in (((2, 25), [0, 1, 1, 0, 1] * 5), ((9, 4), [8, 3, 8, 0]), ((1, 1), [0]))
            for name in ("previous", "same word")
        ],
    ),
    ("sample_next", "test_top_k_words"): (
        ["draws"],
        [
            _words((0.5, -0.8, 2.0, -2.0, 1.2, -0.1), temperature, top_k, "support", DRAWS)
            for temperature, top_k in ((1.0, 3), (2.0, 2), (1.5, 5))
        ],
    ),
    ("sample_next", "test_tied_logits"): (
        ["draws"],
        [
            _words((-1.0, 0.5, 2.0, 0.5, -1.5, 0.5), 1.0, 2, "ties", FEW_DRAWS),
            _words((1.5, 0.0, 1.5, 0.5, 1.5, -0.5), 1.0, 2, "ties", FEW_DRAWS),
        ],
    ),
    ("sample_next", "test_shares"): (
        ["draws"],
        [
            _words((-0.1, 1.2, -2.0, 0.5, 2.0, -0.8), temperature, top_k, "shares", DRAWS)
            for temperature, top_k in ((1.0, 6), (0.5, 4), (2.0, 3))
        ],
    ),
    ("sample_next", "test_drawn_anew"): (
        ["varies"],
        [
            {"operation": "call", "name": "sample_next", "args": args}
            for args, calls in (([_drawn(51, 200, 6), 1.0, 6], 3), ([_drawn(52, 1, 60), 4.0, 60], 12))
            for _ in range(calls)
        ],
    ),
}
for _name in ("MultiHeadAttention", "OptimizedMultiHeadAttention", "EfficientMultiHeadAttention"):
    STEPS[_name, "test_dropout_in_training"] = (
        ["dropped"],
        [*_several_heads(_name), _of_several_heads(2, SEVERAL), _of_several_heads(LONE, 1)],
    )
    STEPS[_name, "test_each_call_drops_anew"] = (
        ["anew"],
        [*_several_heads(_name), *_anew(_of_several_heads(2, SEVERAL))],
    )
