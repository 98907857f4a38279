"""Unit 7: the same attention in less memory, and an attention that costs less."""

from collections.abc import Iterable

import torch
import torch.nn.functional as F


def online_softmax(blocks: Iterable[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Find the maximum and the sum of a row of scores, in one pass over its blocks.

    blocks: 1-d tensors, at least one, which may differ in length; perhaps a
    generator, over which you can loop only once. A score may be -inf.
    Returns two 0-d tensors: the largest score m of all blocks, and the sum of
    exp(score - m) over all scores. If all scores are -inf: -inf and 0.
    """
    maximum, total = torch.tensor(-torch.inf), torch.tensor(0.0)
    for block in blocks:  # (B,)
        new = torch.maximum(maximum.to(block), block.max())
        shift = new.masked_fill(new == -torch.inf, 0.0)  # -inf - -inf would be NaN
        total = total.to(block) * torch.exp(maximum.to(block) - shift) + torch.exp(block - shift).sum()
        maximum = new
    return maximum, total


def merge_states(
    a: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    b: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Merge the states of attention to some keys and to other keys.

    A state is (maximum, total, output): the largest score m of each query, the sum
    of exp(score - m), and the sum of exp(score - m) * value, not divided yet. Their
    shapes are (..., T, 1), (..., T, 1) and (..., T, hv). If all scores are -inf,
    the state is (-inf, 0, 0). Returns the state for all keys.
    """
    (maximum_a, total_a, output_a), (maximum_b, total_b, output_b) = a, b
    maximum = torch.maximum(maximum_a, maximum_b)  # (..., T, 1)
    shift = maximum.masked_fill(maximum == -torch.inf, 0.0)  # -inf - -inf would be NaN
    scale_a = torch.exp(maximum_a - shift)
    scale_b = torch.exp(maximum_b - shift)
    return maximum, total_a * scale_a + total_b * scale_b, output_a * scale_a + output_b * scale_b


def tiled_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    block_size: int,
    causal: bool = False,
) -> torch.Tensor:
    """Compute scaled dot-product attention tile by tile, without a T x T matrix.

    queries, keys: (..., T, hd), values: (..., T, hv). T need not be a multiple of
    block_size. causal: hide later tokens, and skip tiles that are hidden completely.
    Makes no tensor with more elements than the queries, or than the scores of all
    queries with one block of keys, and never holds all tiles at once. Gradients flow
    back to all three: modify nothing in place that autograd needs.
    Returns (..., T, hv).
    """
    num_tokens, head_dim = queries.shape[-2:]
    outputs = []
    for first in range(0, num_tokens, block_size):
        q = queries[..., first : first + block_size, :] / head_dim**0.5  # (..., B, hd)
        rows, hv = q.shape[:-1], values.shape[-1]
        state = (
            q.new_full((*rows, 1), -torch.inf),
            q.new_zeros((*rows, 1)),
            q.new_zeros((*rows, hv)),
        )
        for start in range(0, first + block_size if causal else num_tokens, block_size):
            k = keys[..., start : start + block_size, :]  # (..., B, hd)
            v = values[..., start : start + block_size, :]  # (..., B, hv)
            scores = q @ k.transpose(-2, -1)  # (..., B, hd) @ (..., hd, B) -> (..., B, B)
            if causal and start == first:
                future = torch.ones_like(scores, dtype=torch.bool).triu(diagonal=1)
                scores = scores.masked_fill(future, float("-inf"))
            maximum = scores.amax(dim=-1, keepdim=True)  # (..., B, 1)
            weights = torch.exp(scores - maximum)
            state = merge_states(state, (maximum, weights.sum(dim=-1, keepdim=True), weights @ v))
        _, total, output = state
        outputs.append(output / total)  # (..., B, hv) / (..., B, 1)
    return torch.cat(outputs, dim=-2)  # (..., T, hv)


def attention_backward(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    grad_output: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Compute the gradients of scaled dot-product attention, without autograd.

    queries: (..., Tq, hd), keys: (..., Tk, hd), values: (..., Tk, hv), without a mask.
    grad_output: (..., Tq, hv), the gradient of the loss with respect to the output.
    Computes the weights again from queries and keys. Returns the gradients with
    respect to queries, keys and values, each of the shape of its tensor.
    """
    root = queries.shape[-1] ** 0.5
    weights = torch.softmax(queries @ keys.transpose(-2, -1) / root, dim=-1)  # (..., Tq, Tk)
    output = weights @ values  # (..., Tq, Tk) @ (..., Tk, hv) -> (..., Tq, hv)
    grad_values = weights.transpose(-2, -1) @ grad_output  # (..., Tk, Tq) @ (..., Tq, hv) -> (..., Tk, hv)
    grad_weights = grad_output @ values.transpose(-2, -1)  # (..., Tq, hv) @ (..., hv, Tk) -> (..., Tq, Tk)
    row_sums = (grad_output * output).sum(dim=-1, keepdim=True)  # (..., Tq, 1)
    grad_scores = weights * (grad_weights - row_sums)  # (..., Tq, Tk)
    grad_queries = grad_scores @ keys / root  # (..., Tq, Tk) @ (..., Tk, hd) -> (..., Tq, hd)
    grad_keys = grad_scores.transpose(-2, -1) @ queries / root  # (..., Tk, Tq) @ (..., Tq, hd) -> (..., Tk, hd)
    return grad_queries, grad_keys, grad_values


def linear_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    causal: bool = False,
) -> torch.Tensor:
    """Compute attention with f(q) . f(k) instead of exp(q . k), f(x) = elu(x) + 1.

    queries, keys: (..., T, hd), values: (..., T, hv). The weights of a query are
    f(q) . f(k) for each key, divided by their sum. causal: hide later tokens.
    In float32 f can be 0, and so can the sum: result and gradients are finite there.
    Makes no T x T tensor. Gradients flow back to all three: modify nothing in place
    that autograd needs. Returns (..., T, hv).
    """
    q = F.elu(queries) + 1.0  # (..., T, hd)
    k = F.elu(keys) + 1.0  # (..., T, hd)
    if not causal:
        memory = k.transpose(-2, -1) @ values  # (..., hd, T) @ (..., T, hv) -> (..., hd, hv)
        total = k.sum(dim=-2).unsqueeze(-1)  # (..., hd, 1)
        return (q @ memory) / (q @ total + 1e-6)  # (..., T, hv) / (..., T, 1)
    memory = (k[..., :1, :] * 0.0).transpose(-2, -1) * values[..., :1, :]  # (..., hd, hv), zeros
    total = k[..., 0, :, None] * 0.0  # (..., hd, 1)
    outputs = []
    for t in range(queries.shape[-2]):
        memory = memory + k[..., t, :, None] * values[..., t, None, :]  # (..., hd, 1) * (..., 1, hv)
        total = total + k[..., t, :, None]
        now = q[..., t : t + 1, :]  # (..., 1, hd)
        outputs.append((now @ memory) / (now @ total + 1e-6))  # (..., 1, hv) / (..., 1, 1)
    return torch.cat(outputs, dim=-2)


def hunt_tiled_attention() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return an input on which the wrong tiled_attention differs from the right one.

    Returns queries, keys and values, (T, hd) each, float32, with at most twelve
    elements in all three; block_size is 2.
    """
    queries = torch.tensor([[1.0], [1.0], [1.0]])
    keys = torch.tensor([[0.0], [0.0], [200.0]])  # the largest score is in the last block: exp(200) is infinite
    values = torch.tensor([[1.0], [1.0], [5.0]])
    return queries, keys, values


# Model answers to the written questions.
WRITTEN = {
    "why_states_merge": """
    The weights of a query are exp(score) divided by the sum of all exp(score), so for a part of the keys the sum of
    exp(score) and the sum of exp(score) * value are enough: those of two parts add up, in any order. What does not
    add up is the quotient, so the division waits until the end. To keep exp small, each part is computed relative
    to its own largest score m. Two parts can be added only relative to the same one: with the larger of the two
    maxima, the other part is multiplied by exp(m_old - m_new), which is at most 1. So three things are kept for
    each query, and no score needs to be kept once its block is done.

    One point each for:

    - sums of exp(score), and of exp(score) * value, add up over parts of the keys, and the quotient does not;
    - a part that was computed relative to a smaller maximum is multiplied by exp(m_old - m_new);
    - so a maximum, a sum and an output for each query are enough, and no matrix of T x T scores is kept.
    """,
}
