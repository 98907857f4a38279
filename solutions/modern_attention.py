"""Unit 9: what models of 2024 to 2026 change in a transformer block."""

import torch
import torch.nn.functional as F


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """Divide each vector by the root mean square of its elements, then scale.

    x: (..., d), weight: (d,), in the dtype of x; eps: added to the mean square.
    Compute in float32 if x is in half precision. Returns (..., d), in the dtype of x.
    For example x (2, 6, 4), weight (4,) -> (2, 6, 4).
    """
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    mean_square = wide.pow(2).mean(dim=-1, keepdim=True)  # (..., d) -> (..., 1)
    return (wide * torch.rsqrt(mean_square + eps) * weight).to(x.dtype)


def hunt_rms_norm() -> tuple[torch.Tensor, torch.Tensor]:
    """Return an input on which the wrong rms_norm differs from the right one.

    It is x, (R, d), and weight, (d,), float32, with at most twelve elements together.
    """
    return torch.tensor([[1.0, 2.0, 3.0]]), torch.ones(3)  # a mean that is not 0


def qk_norm_scores(
    queries: torch.Tensor,
    keys: torch.Tensor,
    query_weight: torch.Tensor,
    key_weight: torch.Tensor,
    eps: float = 1e-6,
) -> torch.Tensor:
    """Compute scaled scores of queries and keys that are normalized first.

    queries: (..., Tq, hd), keys: (..., Tk, hd), query_weight and key_weight: (hd,).
    Returns scores (..., Tq, Tk): RMS-normalized queries times RMS-normalized keys,
    divided by the square root of hd.
    For example queries (2, 5, 4), keys (2, 6, 4) -> (2, 5, 6).
    """
    queries = rms_norm(queries, query_weight, eps)
    keys = rms_norm(keys, key_weight, eps)
    scores: torch.Tensor = queries @ keys.mT / queries.shape[-1] ** 0.5  # (..., Tq, hd) @ (..., hd, Tk)
    return scores


def softcap(scores: torch.Tensor, cap: float) -> torch.Tensor:
    """Bend large scores to at most cap in size, and keep small ones nearly as they are.

    scores: any shape, cap: above 0. Returns cap * tanh(scores / cap).
    For example scores (2, 6, 6) -> (2, 6, 6).
    """
    return cap * torch.tanh(scores / cap)


def half_precision_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
) -> torch.Tensor:
    """Compute attention in which half precision rounds only the inputs and the result.

    queries: (..., Tq, d), keys: (..., Tk, d), values: (..., Tk, dv), all of one dtype:
    float16, bfloat16, float32 or float64. Returns softmax(Q K^T / sqrt(d)) V,
    (..., Tq, dv), in this dtype. Compute half precision in float32. No mask.
    For example queries (2, 5, 4), keys (2, 6, 4), values (2, 6, 3) -> (2, 5, 3).
    """
    wide = torch.promote_types(queries.dtype, torch.float32)  # float64 stays float64
    scores = queries.to(wide) @ keys.to(wide).mT / queries.shape[-1] ** 0.5  # (..., Tq, d) @ (..., d, Tk)
    weights = torch.softmax(scores, dim=-1)  # (..., Tq, Tk)
    return (weights @ values.to(wide)).to(queries.dtype)  # (..., Tq, Tk) @ (..., Tk, dv)


def attention_with_sinks(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    sinks: torch.Tensor,
) -> torch.Tensor:
    """Compute causal attention in which a part of each head's weight goes to no token.

    queries, keys, values: (b, h, T, hd), sinks: (h,). Scores are divided by the
    square root of hd, sinks are not. In the softmax of each row, the head's sink
    is one more score. It has no value. Returns (b, h, T, hd).
    For example queries (2, 3, 6, 4), sinks (3,) -> (2, 3, 6, 4).
    """
    T, hd = queries.shape[-2:]
    scores = queries @ keys.mT / hd**0.5  # (b, h, T, hd) @ (b, h, hd, T) -> (b, h, T, T)
    hidden = torch.ones(T, T, dtype=torch.bool, device=scores.device).triu(diagonal=1)  # (T, T)
    scores = scores.masked_fill(hidden, float("-inf"))
    sink = sinks.view(1, -1, 1, 1).expand(*scores.shape[:-1], 1)  # (h,) -> (b, h, T, 1)
    weights = torch.softmax(torch.cat([scores, sink.to(scores.dtype)], dim=-1), dim=-1)  # (b, h, T, T + 1)
    return weights[..., :-1] @ values  # (b, h, T, T) @ (b, h, T, hd)


def document_mask(documents: torch.Tensor) -> torch.Tensor:
    """Hide from every query later tokens, and tokens of other documents.

    documents: (b, T), whole numbers. Tokens with the same number belong to the same
    document. Returns a bool tensor (b, T, T), True where hidden.
    For example documents (2, 6) -> (2, 6, 6).
    """
    T = documents.shape[-1]
    later = torch.ones(T, T, dtype=torch.bool, device=documents.device).triu(diagonal=1)  # (T, T)
    other = documents[:, :, None] != documents[:, None, :]  # (b, T, 1) and (b, 1, T) -> (b, T, T)
    return later | other


def swiglu(
    x: torch.Tensor,
    W_gate: torch.Tensor,
    W_up: torch.Tensor,
    W_down: torch.Tensor,
) -> torch.Tensor:
    """Scale one projection by the SiLU of another, and project back.

    x: (..., d), W_gate and W_up: (f, d), W_down: (d, f), as nn.Linear stores weights.
    Returns (..., d).
    For example x (2, 6, 4), W_gate (8, 4), W_up (8, 4), W_down (4, 8) -> (2, 6, 4).
    """
    gate = F.silu(x @ W_gate.T)  # (..., d) @ (d, f) -> (..., f)
    return (gate * (x @ W_up.T)) @ W_down.T  # (..., f) @ (f, d) -> (..., d)


WRITTEN = {
    "why_sinks": """
    A softmax gives every query a total weight of 1, even if no key fits. The weight has to go somewhere, and trained
    models give it to the first token, so that token's value is added to the output of every such query. With a sink
    nearly all weight can go to something that has no value: the head's output is then nearly 0. A sliding window
    drops the first tokens. Without a sink their weight is spread over the others, and the output changes at once. A
    sink belongs to the head and never leaves.

    One point each for:

    - the weights sum to 1, so a query that fits no key gives its weight to the first token (or to any tokens);
    - with a sink the output of this query is nearly 0, because the sink has no value;
    - the sink stays when a window drops the first tokens, so the other weights do not jump.
    """,
}
