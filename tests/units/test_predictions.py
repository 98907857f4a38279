"""The notebooks' answers to predictions are true: the solutions compute each of them."""

import codecs
import contextlib
import io
import math
from collections.abc import Callable
from typing import Any

import nbformat
import pytest
import torch
import yaml
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from autograder import course
from solutions import attention_masks as unit_5
from solutions import causal_attention as unit_3
from solutions import dot_product_attention as unit_1
from solutions import efficient_attention as unit_7
from solutions import inference as unit_6
from solutions import modern_attention as unit_9
from solutions import multi_head_attention as unit_4
from solutions import self_attention as unit_2
from solutions import tiny_language_model as unit_8
from solutions.six_words import SIX_WORDS as X
from tests import RELEASE, REPOSITORY


def of_six_words() -> tuple[torch.Tensor, ...]:
    """Queries, keys and values under the weights that seed 123 draws."""
    torch.manual_seed(123)
    return unit_2.project_qkv(X, *(torch.rand(3, 2) for _ in range(3)))


def longer_query() -> float:
    return (unit_1.dot_product_scores(2 * X[1], X) / unit_1.dot_product_scores(X[1], X)).mean().item()


def most_alike() -> int:
    return int((unit_1.pairwise_scores(X).argmax(-1) != torch.arange(6)).sum())


def shuffled() -> str:
    turned = unit_1.simple_self_attention(X.flip(0)).flip(0)
    return "the same" if torch.allclose(turned, unit_1.simple_self_attention(X)) else "another"


def symmetric() -> bool:
    queries, keys, _ = of_six_words()
    scores = unit_2.attention_scores(queries, keys)
    return torch.allclose(scores[0, 1], scores[1, 0])


def variance_of_a_score() -> int:
    torch.manual_seed(0)
    raw, _ = unit_2.score_variance(torch.randn(2000, 64), torch.randn(2000, 64))
    return round(raw.item())


def equal_keys() -> str:
    values = torch.rand(5, 3)
    context = unit_2.single_query_attention(torch.rand(4), torch.ones(5, 4), values)
    return "the mean" if torch.allclose(context, values.mean(0)) else "another"


def cells(unit: str, *names: str) -> dict[str, Any]:
    """Return the names that these cells of the released notebook define, run with the solutions as answers."""
    held = {"F": nn.functional, "nn": nn, "torch": torch, "codecs": codecs, "contextlib": contextlib, "io": io}
    known: dict[str, Any] = {**held, **vars({"self_attention": unit_2, "multi_head_attention": unit_4}[unit])}
    known["show"] = lambda make: None
    given = {cell.id: cell.source for cell in nbformat.read(RELEASE / unit / f"{unit}.ipynb", as_version=4).cells}
    with contextlib.redirect_stdout(io.StringIO()):
        for name in names:
            exec(given[name], known)
    return known


def reversing() -> str:
    """Return the weights after the notebook's own training."""
    trained = cells("self_attention", "reverse_six_digits")
    with contextlib.redirect_stdout(io.StringIO()):
        trained["reverse_six_digits"](trained["ask"], trained["offer"])
    weights = unit_2.scaled_dot_product_attention(trained["ask"], trained["offer"], torch.eye(6))
    assert weights.amax(-1).min() > 0.9
    return {(5, 4, 3, 2, 1, 0): "anti-diagonal"}.get(tuple(weights.argmax(-1).tolist()), "another")


def kept_weight() -> float:
    torch.manual_seed(0)
    return unit_3.attention_dropout(torch.full((100,), 0.4), 0.2).max().item()


def zero_score() -> bool:
    weights = torch.softmax(torch.tensor([[0.5, 0.0]]), dim=-1)
    return weights[0, 1].item() == 0


def only_weight_dropped() -> list[float]:
    _, _, values = of_six_words()
    assert values[0].tolist() == pytest.approx([0.1855, 0.8812], abs=1e-4)
    return (torch.zeros(1, 1) @ values[:1])[0].tolist()


def twelve_heads() -> int:
    return unit_3.MultiHeadAttentionWrapper(4, 64, 2, 0.0, 12)(torch.rand(1, 2, 4)).shape[-1]


def equal_heads() -> bool:
    weights = [torch.rand(4, 3).expand(2, 4, 3) for _ in range(3)]
    first, second = unit_4.stacked_heads_attention(X, *weights)
    return not torch.allclose(first, second)


def weights_alone(width: int, num_heads: int) -> int:
    module = unit_4.MultiHeadAttention(width, width, 8, 0.0, num_heads)
    return sum(one.numel() for name, one in module.named_parameters() if "bias" not in name)


def matrices() -> float:
    module = unit_4.MultiHeadAttention(768, 768, 8, 0.0, 12)
    assert unit_4.count_parameters(module) == 2360064
    return (2360064 - 768) / 768**2


def loss_without_mask() -> str:
    """By the notebook's own model and training, a third as long: the loss on the whole text's beginning."""
    known = cells("multi_head_attention", "zen", "tiny_language_model")
    text = known["letter_tokens"][:65]
    losses = []
    for sees_the_future in (False, True):
        torch.manual_seed(0)
        model = known["TinyLanguageModel"](sees_the_future)
        with contextlib.redirect_stdout(io.StringIO()):
            known["train"](model, 100)
        losses.append(nn.functional.cross_entropy(model(text[None, :-1])[0], text[1:]).item())
    return "lower" if losses[1] < losses[0] - 0.2 else "another"


def row_of_minus_infinity() -> str:
    weights = torch.softmax(torch.full((3,), -torch.inf), dim=-1)
    return "nan" if bool(weights.isnan().all()) else "another"


def forgotten_to_turn() -> str:
    hidden = unit_5.padding_mask(torch.tensor([3]), 6)
    weights = nn.functional.scaled_dot_product_attention(X, X, torch.eye(6), attn_mask=hidden)
    return "padding" if weights[:, :3].max() == 0 else "words"


def reach() -> int:
    seen = (~unit_5.sliding_window_mask(9, 3)).float()
    return 8 - int((seen @ seen)[8].nonzero().min())


def shuffled_sentence() -> bool:
    def attention(x: torch.Tensor) -> torch.Tensor:
        return unit_5.masked_attention(x, x, x, torch.zeros(1, 1, dtype=torch.bool))

    return not torch.allclose(unit_5.permuted_outputs(attention, X[None], torch.arange(6).roll(2)), attention(X[None]))


def second_pair() -> float:
    turned = unit_5.rotary_embedding(torch.tensor([[1.0, 0.0, 1.0, 0.0]]), torch.tensor([100]))
    return math.atan2(turned[0, 3].item(), turned[0, 2].item())


def shape_of_scores() -> list[int]:
    module = unit_5.CrossAttention(5, 7, 12, 3)
    queries, keys = module.W_query(torch.rand(2, 4, 5)), module.W_key(torch.rand(2, 6, 7))
    return list((unit_4.split_heads(queries, 3) @ unit_4.split_heads(keys, 3).mT).shape)


def merged_with_itself() -> float:
    state = torch.tensor([[1.0]]), torch.tensor([[1.0]]), torch.tensor([[2.0, 4.0]])
    return unit_7.merge_states(state, state)[1].item()


def gradient_of_two_scores() -> list[float]:
    """The gradient of the scores, which the keys' gradient is a multiple of: the query [2, 0] divided by the root."""
    query, keys = torch.tensor([[2.0, 0.0]]), torch.tensor([[1.0, 0.0], [1.0, 4.0]])
    _, grad_keys, _ = unit_7.attention_backward(query, keys, torch.tensor([[3.0], [9.0]]), torch.ones(1, 1))
    return (grad_keys[:, 0] / (2.0 / math.sqrt(2.0))).tolist()


def left_first() -> float:
    """In millions; FlopCounterMode counts each multiplication with its addition as two."""
    q, k, v = torch.rand(3, 1000, 10).unbind()
    with FlopCounterMode(display=False) as counted:
        _ = (q @ k.T) @ v
    return counted.get_total_flops() / 2e6


def twice_the_heads() -> float:
    return unit_6.attention_flops(1, 50, 768, 24) / unit_6.attention_flops(1, 50, 768, 12)


def as_much_as_layers() -> int:
    layers = {tokens: 4 * 2 * tokens * 768**2 for tokens in range(1, 3000)}
    return next(tokens for tokens in layers if unit_6.attention_flops(1, tokens, 768, 12) >= 2 * layers[tokens])


def projected_without_a_cache() -> int:
    """The tokens that an attention without a cache is given, while it writes 100."""
    return sum(torch.rand(1, 100, 3)[:, :step].shape[1] for step in range(1, 101))


def hidden_in_a_step() -> int:
    """Return the number of keys that do not reach a new token's vector."""
    attention, text = unit_6.CachedMultiHeadAttention(5, 6, 1).double(), torch.rand(1, 8, 5).double()

    def step(text: torch.Tensor) -> torch.Tensor:
        cache = unit_6.KVCache()
        attention(text[:, :5], cache)
        return attention(text[:, 5:], cache)[0]

    seen = torch.autograd.functional.jacobian(step, text).abs().sum((1, 2, 4))  # (3, 8)
    return int((seen == 0).sum())


def group_of_head_13() -> float:
    return unit_6.share_heads(torch.arange(8.0).reshape(1, 8, 1, 1), 32)[0, 13].item()


def third_call() -> int:
    """Return the number of tokens in a model's third call."""
    read = []

    def model(tokens: torch.Tensor) -> torch.Tensor:
        read.append(tokens.shape[1])
        return torch.zeros(*tokens.shape, 2)

    unit_8.generate(model, torch.zeros(1, 5, dtype=torch.long), 3, 6)
    return read[2]


def token_zero() -> float:
    """The number of draws makes chance less than a thousandth."""
    torch.manual_seed(0)
    drawn = unit_8.sample_next(torch.tensor([2.0, 1.0, 0.0]).expand(1_000_000, -1), 1.0, 2)
    return (drawn == 0).float().mean().item()


def same_elements() -> float:
    return unit_9.rms_norm(torch.full((4,), 5.0), torch.ones(4))[0].item()


def largest_score() -> float:
    query, ones = torch.randn(1, 64), torch.ones(64)
    return unit_9.qk_norm_scores(query, 3 * query, ones, ones).item()


def sum_of_ones() -> float:
    total = torch.zeros((), dtype=torch.bfloat16)
    for _ in range(4096):
        total = total + 1
    return total.item()


def first_token() -> float:
    zero = torch.zeros(1, 1, 1, 1)
    return unit_9.attention_with_sinks(zero, zero, torch.ones(1, 1, 1, 1), torch.zeros(1)).item()


def packed() -> int:
    return int((~unit_9.document_mask(torch.arange(3).repeat_interleave(4)[None])).sum())


def without_keys() -> int:
    """PyTorch's count for one head, both ways, as the nearest of the three numbers."""
    query, latents, up_key = (
        torch.empty(*shape, device="meta") for shape in ((1, 1, 1, 128), (1, 4096, 512), (1, 128, 512))
    )
    spent = []
    for way in (
        lambda: query @ (latents[:, None] @ up_key.mT).mT,
        lambda: unit_9.absorbed_scores(query, latents, up_key),
    ):
        with FlopCounterMode(display=False) as counter:
            way()
        spent.append(counter.get_total_flops())
    return min((1, 10, 100), key=lambda one: abs(math.log(spent[0] / spent[1] / one)))


def empty_slots() -> int:
    """The slots that 100 tokens in pages of 16 do not fill."""
    pages = torch.arange(100) // 16
    return int(pages[-1] + 1) * 16 - len(pages)


def accepted() -> float:
    """The share of a million u, from 0 to 1, for which the token is accepted."""
    n = 1_000_000
    draft, target = torch.tensor([[0.5, 0.5]]), torch.tensor([[0.3, 0.7], [1.0, 0.0]])
    low, high = 0, n
    while high - low > 1:
        u = (low + high) // 2
        number, _ = unit_9.accept_draft(draft, target, torch.tensor([0]), torch.tensor([u / n]))
        low, high = (u, high) if number else (low, u)
    return high / n


TRUE: dict[str, Callable[[], Any]] = {
    "empty_slots": empty_slots,
    "accepted": accepted,
    "same_elements": same_elements,
    "largest_score": largest_score,
    "capped": lambda: unit_9.softcap(torch.tensor(1000.0), 50.0).item(),
    "sum_of_ones": sum_of_ones,
    "first_token": first_token,
    "packed": packed,
    "gated_width": lambda: 2 * 4 / 3,
    "without_keys": without_keys,
    "smaller_cache": lambda: 128 * (192 + 128) / (512 + 64),
    "twice_the_heads": twice_the_heads,
    "as_much_as_layers": as_much_as_layers,
    "projected_without_a_cache": projected_without_a_cache,
    "hidden_in_a_step": hidden_in_a_step,
    "one_token": lambda: unit_6.kv_cache_bytes(32, 32, 128, 1, 2) / 1024,
    "group_of_head_13": group_of_head_13,
    "row_with_itself": lambda: unit_8.sinusoidal_positions(9, 6)[5].square().sum().item(),
    "knows_nothing": lambda: unit_8.next_token_loss(torch.zeros(2, 4, 50), torch.tensor([[1, 7, 2, 49]] * 2)).item(),
    "third_call": third_call,
    "score_for_a_sure_head": lambda: next(s for s in range(50) if math.exp(s) / (math.exp(s) + 3) > 0.99),
    "weights_of_a_block": lambda: (
        sum(one.numel() for one in unit_8.TransformerBlock(8, 2, 5).parameters() if one.dim() == 2) // 8**2
    ),
    "token_zero": token_zero,
    "six_zeros": lambda: [
        one.item() for one in unit_7.online_softmax([torch.zeros(2), torch.zeros(1), torch.zeros(3)])
    ],
    "merged_with_itself": merged_with_itself,
    "tiles_computed": lambda: int(torch.ones(4, 4).tril().sum()),
    "gradient_of_two_scores": gradient_of_two_scores,
    "left_first": left_first,
    "longer_query": longer_query,
    "negative_score": lambda: unit_1.normalize_by_sum(torch.tensor([2.0, -1.0]))[0].item(),
    "equal_scores": lambda: unit_1.softmax(torch.full((6,), 1000.0))[0].item(),
    "all_on_one": lambda: unit_1.context_vector(torch.tensor([0.0, 0, 0, 0, 1, 0]), X).tolist(),
    "most_alike": most_alike,
    "shuffled": shuffled,
    "same_word_twice": lambda: len(unit_2.embed(torch.tensor([3, 3]), torch.rand(5, 2)).unique(dim=0)),
    "symmetric": symmetric,
    "variance_of_a_score": variance_of_a_score,
    "equal_keys": equal_keys,
    "reversing": reversing,
    "hidden_places": lambda: int(unit_3.causal_mask(6).sum()),
    "first_row": lambda: unit_3.renormalized_causal_weights(torch.rand(6, 6))[0, 0].item(),
    "zero_score": zero_score,
    "kept_weight": kept_weight,
    "only_weight_dropped": only_weight_dropped,
    "twelve_heads": twelve_heads,
    "equal_heads": equal_heads,
    "width_of_a_head": lambda: unit_4.split_heads(torch.rand(1, 2, 768), 12).shape[-1],
    "twice_the_width": lambda: weights_alone(16, 4) / weights_alone(8, 2),
    "matrices": matrices,
    "loss_without_mask": loss_without_mask,
    "padding_places": lambda: int(unit_5.padding_mask(torch.tensor([6, 3, 2]), 6).sum()),
    "row_of_minus_infinity": row_of_minus_infinity,
    "forgotten_to_turn": forgotten_to_turn,
    "window_places": lambda: int((~unit_5.sliding_window_mask(6, 3)).sum()),
    "reach": reach,
    "shuffled_sentence": shuffled_sentence,
    "third_head": lambda: unit_5.alibi_bias(8, 5)[2, 4, 0].item(),
    "second_pair": second_pair,
    "shape_of_scores": shape_of_scores,
}

ANSWERS = {
    name: guess["answer"]
    for unit in course.unit_names()
    for name, guess in yaml.safe_load((REPOSITORY / "exercises" / f"{unit}.yaml").read_text())["guesses"].items()
}


@pytest.mark.parametrize("name", ANSWERS)
def test_what_a_guess_is_answered_is_true(name):
    worked_out, answer = TRUE[name](), ANSWERS[name]
    if isinstance(answer, str | bool):
        assert worked_out == answer
    else:
        assert worked_out == pytest.approx(answer, rel=0.005)
