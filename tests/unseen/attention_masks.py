"""Masks, order and other sentences, beyond the catalogue."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from solutions.attention_masks import masked_attention  # which the notebook has

from . import rewritten, right, unlisted

# padding_mask


@rewritten("true_where_there_are_tokens")
def _(lengths, max_len):
    mask = torch.zeros(len(lengths), max_len, dtype=torch.bool, device=lengths.device)
    for row, length in enumerate(lengths.tolist()):
        mask[row, :length] = True
    return mask


@rewritten("last_token_hidden_too")
def _(lengths, max_len):
    return torch.arange(1, max_len + 1, device=lengths.device).unsqueeze(0) >= lengths.unsqueeze(1)


@rewritten("places_on_the_cpu")
def _(lengths, max_len):
    mask = torch.zeros(len(lengths), max_len, dtype=torch.bool)
    return mask | (torch.arange(max_len) >= lengths.view(-1, 1))


@unlisted("padding_mask")
def _(lengths, max_len):
    """Sorted by length."""
    return torch.arange(max_len, device=lengths.device) >= lengths.sort().values[:, None]


@right("padding_mask")
def _(lengths, max_len):
    return torch.stack([torch.arange(max_len, device=lengths.device) >= length for length in lengths])


# masked_attention


@rewritten("blind_query_is_nan")
def _(queries, keys, values, mask):
    attn = torch.einsum("...id,...jd->...ij", queries, keys) / math.sqrt(queries.shape[-1])
    attn = torch.where(mask, float("-inf"), attn)
    return F.softmax(attn, dim=-1) @ values


@rewritten("blind_query_averages")
def _(queries, keys, values, mask):
    scores = queries @ keys.mT * keys.shape[-1] ** -0.5
    return F.softmax(scores.masked_fill(mask, torch.finfo(scores.dtype).min), dim=-1) @ values


@rewritten("masked_not_scaled")
def _(queries, keys, values, mask):
    weights = (queries @ keys.mT).masked_fill(mask, -torch.inf).softmax(-1)
    return weights.nan_to_num() @ values


@rewritten("result_mended_at_the_end")
def _(queries, keys, values, mask):
    scores = queries @ keys.mT / keys.shape[-1] ** 0.5
    found = scores.masked_fill(mask, -torch.inf).softmax(-1) @ values
    return torch.where(mask.all(-1, keepdim=True), torch.zeros_like(found), found)


@rewritten("hidden_weights_removed_after_softmax")
def _(queries, keys, values, mask):
    return (F.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, -1) * ~mask) @ values


@unlisted("masked_attention")
def _(queries, keys, values, mask):
    """The weights of hidden keys go to the first key."""
    weights = torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, dim=-1)
    lost = (weights * mask).sum(-1, keepdim=True)
    first = torch.zeros_like(weights)
    first[..., 0] = 1.0
    return (weights * ~mask + lost * first) @ values


@right("masked_attention")
def _(queries, keys, values, mask):
    scores = (queries @ keys.mT / keys.shape[-1] ** 0.5).masked_fill(mask, -torch.inf)
    return scores.softmax(-1).masked_fill(mask, 0.0) @ values


# to_sdpa_mask


@rewritten("mask_passed_on")
def _(mask):
    return mask.clone()


@right("to_sdpa_mask")
def _(mask):
    return mask.eq(False)


# sliding_window_mask


@rewritten("window_one_too_wide")
def _(num_tokens, window):
    ones = torch.ones(num_tokens, num_tokens)
    return (ones.triu(1) + ones.tril(-window - 1)).bool()


@rewritten("causal_alone")
def _(num_tokens, window):
    return torch.ones(num_tokens, num_tokens).triu(1).bool()


@unlisted("sliding_window_mask", "window_of_future_and_past")
def _(num_tokens, window):
    """Half of the window on each side."""
    i = torch.arange(num_tokens)
    return (i[:, None] - i).abs() > window // 2


@right("sliding_window_mask")
def _(num_tokens, window):
    i = torch.arange(num_tokens)
    return torch.logical_or(i > i[:, None], i <= i[:, None] - window)


# permuted_outputs


@rewritten("outputs_shuffled_again")
def _(attention, x, order):
    return attention(x[:, order]).index_select(1, order)


@rewritten("outputs_not_put_back")
def _(attention, x, order):
    outputs = attention(x.index_select(1, order))
    return outputs[:, torch.arange(len(order))]


@right("permuted_outputs")
def _(attention, x, order):
    outputs = attention(x[:, order])
    result = [None] * len(order)
    for place, token in enumerate(order):
        result[int(token)] = outputs[:, place]
    return torch.stack(result, dim=1)


# alibi_bias


@rewritten("heads_counted_from_zero")
def _(num_heads, num_tokens):
    place = torch.arange(num_tokens)
    return torch.stack([-(2 ** (-8 * i / num_heads)) * (place[:, None] - place).tril() for i in range(num_heads)])


@rewritten("distances_above_the_diagonal")
def _(num_heads, num_tokens):
    place = torch.arange(num_tokens)
    slopes = torch.tensor([2 ** (-8 * i / num_heads) for i in range(1, num_heads + 1)])
    return -slopes.view(-1, 1, 1) * (place[None] - place[:, None]).abs()


@unlisted("alibi_bias")
def _(num_heads, num_tokens):
    """The slopes of twice as many heads."""
    place = torch.arange(num_tokens)
    slopes = 2.0 ** (-4.0 * torch.arange(1, num_heads + 1) / num_heads)
    return -slopes[:, None, None] * (place[:, None] - place).clamp(min=0)


@right("alibi_bias")
def _(num_heads, num_tokens):
    place = torch.arange(num_tokens)
    slopes = torch.logspace(-8 / num_heads, -8, num_heads, base=2)
    return torch.outer(slopes, (place - place[:, None]).tril().flatten()).view(num_heads, num_tokens, num_tokens)


# rotary_embedding


@rewritten("halves_rotated")
def _(x, positions, base=10000.0):
    half = x.shape[-1] // 2
    theta = base ** (-torch.arange(half, dtype=x.dtype, device=x.device) / half)
    angles = (positions[:, None] * theta).repeat(1, 2)
    turned = torch.cat([-x[..., half:], x[..., :half]], dim=-1)
    return x * angles.cos() + turned * angles.sin()


@rewritten("turned_the_other_way")
def _(x, positions, base=10000.0):
    theta = base ** (-torch.arange(0, x.shape[-1], 2, dtype=x.dtype, device=x.device) / x.shape[-1])
    angles = -positions[:, None] * theta
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1).flatten(-2)


@rewritten("places_for_positions")
def _(x, positions, base=10000.0):
    theta = base ** (-torch.arange(0, x.shape[-1], 2, dtype=x.dtype, device=x.device) / x.shape[-1])
    angles = torch.arange(x.shape[-2], device=x.device).to(x.dtype).unsqueeze(1) * theta
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


@unlisted("rotary_embedding", "only_part_turned", "exponent_of_halves")
def _(x, positions, base=10000.0):
    """Only the first half of the numbers turns, as in GPT-J."""
    half = x.shape[-1] // 4 * 2
    theta = base ** (-torch.arange(0, half, 2, dtype=x.dtype, device=x.device) / max(half, 1))
    angles = positions[:, None] * theta
    a, b = x[..., :half:2], x[..., 1:half:2]
    turned = torch.stack([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1).flatten(-2)
    return torch.cat([turned, x[..., half:]], dim=-1)


@right("rotary_embedding")
def _(x, positions, base=10000.0):
    m = torch.arange(x.shape[-1] // 2, dtype=x.dtype, device=x.device)
    angle = positions.to(x.dtype)[:, None] * torch.exp(-math.log(base) * 2 * m / x.shape[-1])
    cos, sin = (f(angle).repeat_interleave(2, -1) for f in (torch.cos, torch.sin))
    swapped = x.unflatten(-1, (-1, 2)).flip(-1).flatten(-2)
    signs = torch.tensor([-1.0, 1.0], dtype=x.dtype, device=x.device).repeat(x.shape[-1] // 2)
    return x * cos + swapped * signs * sin


# CrossAttention


@rewritten("ContextMaskTurnedRound")
class WithTheLibrarysMaskAsItIs(nn.Module):
    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out must be divisible by num_heads")
        self.h = num_heads
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key, self.W_value = nn.Linear(d_context, d_out, bias=False), nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, context, context_mask=None):
        q, k, v = self.W_query(x), self.W_key(context), self.W_value(context)
        q, k, v = (t.unflatten(-1, (self.h, -1)).transpose(1, 2) for t in (q, k, v))
        mask = None if context_mask is None else context_mask[:, None, None, :]
        found = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out_proj(found.transpose(1, 2).flatten(2))


@rewritten("MergedWithoutSwapping")
class MergedByViewAlone(nn.Module):
    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        assert d_out % num_heads == 0
        self.h = num_heads
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key, self.W_value = nn.Linear(d_context, d_out, bias=False), nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, context, context_mask=None):
        q, k, v = self.W_query(x), self.W_key(context), self.W_value(context)
        q, k, v = (t.unflatten(-1, (self.h, -1)).transpose(1, 2) for t in (q, k, v))
        if context_mask is None:
            context_mask = torch.zeros_like(context[..., 0], dtype=torch.bool)
        found = masked_attention(q, k, v, context_mask[:, None, None])
        return self.out_proj(found.contiguous().view(x.shape[0], x.shape[1], -1))


@right("CrossAttention")
class WithBatchedMatrixProducts(nn.Module):
    def __init__(self, d_query, d_context, d_out, num_heads):
        super().__init__()
        assert d_out % num_heads == 0
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_query, d_out, bias=False)
        self.W_key = nn.Linear(d_context, d_out, bias=False)
        self.W_value = nn.Linear(d_context, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, context, context_mask=None):
        (b, T, _), S, h = x.shape, context.shape[1], self.num_heads
        q = self.W_query(x).reshape(b, T, h, -1).permute(0, 2, 1, 3).reshape(b * h, T, -1)
        k = self.W_key(context).reshape(b, S, h, -1).permute(0, 2, 3, 1).reshape(b * h, -1, S)
        v = self.W_value(context).reshape(b, S, h, -1).permute(0, 2, 1, 3).reshape(b * h, S, -1)
        scores = torch.bmm(q, k) / math.sqrt(q.shape[-1])
        if context_mask is not None:
            scores = scores.masked_fill(context_mask.repeat_interleave(h, 0)[:, None], -torch.inf)
        found = torch.bmm(scores.softmax(-1).nan_to_num(), v).reshape(b, h, T, -1)
        return self.out_proj(found.permute(0, 2, 1, 3).reshape(b, T, -1))
