"""Unit 9: what models of 2024 to 2026 change in a transformer block."""

import torch
import torch.nn.functional as F
from torch import nn

from .latent_cache import LatentCache


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

    It is x, (R, d), and weight, (d,), float32, with at most twelve elements together;
    eps is 1e-12.
    """
    return torch.full((1, 3), 1e-6), torch.ones(3)  # the mean square is as large as eps


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


def absorbed_scores(
    queries: torch.Tensor,
    latents: torch.Tensor,
    up_key: torch.Tensor,
) -> torch.Tensor:
    """Compute the scores of queries with keys that are stored as latents.

    queries: (b, h, Tq, hd), latents: (b, T, r), the same for all heads,
    up_key: (h, hd, r). Head i has the keys latents @ up_key[i].T. With Tq = 1 these
    are not made; with more queries they may be.
    Returns scores (b, h, Tq, T), not divided by anything.
    For example queries (2, 3, 1, 4), latents (2, 6, 5), up_key (3, 4, 5) ->
    (2, 3, 1, 6).
    """
    absorbed = queries @ up_key  # (b, h, Tq, hd) @ (h, hd, r) -> (b, h, Tq, r)
    return absorbed @ latents[:, None].mT  # (b, h, Tq, r) @ (b, 1, r, T) -> (b, h, Tq, T)


class LatentAttention(nn.Module):
    """Causal self-attention whose cache has one latent for each token.

    d_in: width of an input vector, d_out: width of all heads together,
    num_heads: how many heads, latent_dim: width of a latent.
    The layers W_query (d_in to d_out), W_latent (d_in to latent_dim), W_up_key and
    W_up_value (latent_dim to d_out), all four without a bias, and out_proj (d_out to
    d_out), with one, are created in this order.
    Raises ValueError if d_out is not divisible by num_heads.
    """

    def __init__(self, d_in: int, d_out: int, num_heads: int, latent_dim: int) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(f"d_out = {d_out} is not divisible by num_heads = {num_heads}.")
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_latent = nn.Linear(d_in, latent_dim, bias=False)
        self.W_up_key = nn.Linear(latent_dim, d_out, bias=False)
        self.W_up_value = nn.Linear(latent_dim, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(
        self,
        x: torch.Tensor,
        cache: LatentCache | None = None,
    ) -> torch.Tensor:
        """Return the context vectors of the tokens of x.

        x: (b, t, d_in), the next t tokens, or all if there is no cache.
        cache: a LatentCache with the latents of earlier tokens; those of x are
        appended. Each token sees the cached tokens, and those of x up to itself.
        The result is (b, t, d_out).
        """
        width = (self.num_heads, self.head_dim)
        queries = self.W_query(x).unflatten(-1, width).transpose(1, 2)  # (b, h, t, hd)
        latents = self.W_latent(x)  # (b, t, latent_dim)
        if cache is not None:
            cache.append(latents)
            assert cache.latents is not None
            latents = cache.latents  # (b, n + t, latent_dim)
        keys = self.W_up_key(latents).unflatten(-1, width).transpose(1, 2)  # (b, h, n + t, hd)
        values = self.W_up_value(latents).unflatten(-1, width).transpose(1, 2)  # (b, h, n + t, hd)
        new, seen = queries.shape[-2], keys.shape[-2]
        hidden = torch.ones(new, seen, dtype=torch.bool, device=x.device).triu(diagonal=1 + seen - new)
        scores = queries @ keys.mT / self.head_dim**0.5  # (b, h, t, n + t)
        weights = torch.softmax(scores.masked_fill(hidden, -torch.inf), dim=-1)
        context = (weights @ values).transpose(1, 2)  # (b, t, h, hd)
        merged: torch.Tensor = self.out_proj(context.flatten(2))  # (b, t, d_out)
        return merged


def paged_attention(
    query: torch.Tensor,
    key_pages: torch.Tensor,
    value_pages: torch.Tensor,
    block_table: torch.Tensor,
    length: int,
) -> torch.Tensor:
    """Compute attention of one query over a cache whose tokens are stored in pages.

    query: (h, hd), key_pages and value_pages: (pages, page, h, hd), block_table: (n,),
    whole numbers, length: at least 1. Token t of the text is in page
    block_table[t // page], in slot t % page. The query attends to tokens 0 to
    length - 1. Scores are divided by the square root of hd. All other slots may hold
    NaN, and entries of the table that are not needed may be -1. Returns (h, hd).
    For example query (3, 4), pages (5, 2, 3, 4), block_table (4,), length 5 -> (3, 4).
    """
    page, hd = key_pages.shape[1], query.shape[-1]
    tokens = torch.arange(length, device=block_table.device)  # (length,)
    pages, slots = block_table[tokens // page], tokens % page  # (length,) each
    keys = key_pages[pages, slots].transpose(0, 1)  # (length, h, hd) -> (h, length, hd)
    values = value_pages[pages, slots].transpose(0, 1)
    scores = query[:, None] @ keys.mT / hd**0.5  # (h, 1, hd) @ (h, hd, length) -> (h, 1, length)
    weights = torch.softmax(scores, dim=-1)
    return (weights @ values)[:, 0]  # (h, 1, length) @ (h, length, hd) -> (h, 1, hd) -> (h, hd)


def accept_draft(
    draft_probs: torch.Tensor,
    target_probs: torch.Tensor,
    tokens: torch.Tensor,
    uniforms: torch.Tensor,
) -> tuple[int, torch.Tensor]:
    """Say how many drafted tokens are accepted, and how the token after them is drawn.

    draft_probs: (n, V), target_probs: (n + 1, V), of the same dtype; n is at least 1.
    tokens: (n,), drawn from draft_probs, uniforms: (n,), between 0 and 1. Token i is
    accepted while uniforms[i] is below its target probability divided by its draft
    probability. Returns (accepted, next_probs): an int, the number of tokens before
    the first refusal, and (V,), the positive part of target minus draft at the refused
    token, divided by its sum; if no token is refused, the last row of target_probs.
    For example n = 3 and V = 5 -> an int from 0 to 3, and (5,).
    """
    n = len(tokens)
    at = torch.arange(n, device=tokens.device), tokens
    ratios = target_probs[at] / draft_probs[at]  # (n,)
    accepted = int((uniforms < ratios).long().cumprod(dim=0).sum())
    if accepted == n:
        return accepted, target_probs[n]
    missing = (target_probs[accepted] - draft_probs[accepted]).clamp(min=0)  # (V,)
    return accepted, missing / missing.sum()


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
