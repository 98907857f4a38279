"""Unit 3: right answers to causal attention, as different students write them."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from solutions.causal_attention import CausalAttention

from ..catalogue import right_answer

# --- causal_mask ---


@right_answer("causal_mask")
def compared_positions(num_tokens):
    """positions compared with each other"""
    positions = torch.arange(num_tokens)
    return positions.unsqueeze(0) > positions.unsqueeze(1)


@right_answer("causal_mask")
def lower_triangle_inverted(num_tokens):
    """tril, then turned round"""
    return ~torch.tril(torch.ones(num_tokens, num_tokens)).bool()


@right_answer("causal_mask")
def filled_in_a_loop(num_tokens):
    """a loop over the rows"""
    mask = torch.zeros((num_tokens, num_tokens), dtype=torch.bool)
    for query in range(num_tokens):
        mask[query, query + 1 :] = True
    return mask


@right_answer("causal_mask")
def list_of_comparisons(num_tokens):
    """a tensor made of a nested list"""
    return torch.tensor([[key > query for key in range(num_tokens)] for query in range(num_tokens)])


@right_answer("causal_mask")
def triangle_compared_with_zero(num_tokens):
    """tril == 0"""
    return torch.ones(num_tokens, num_tokens).tril() == 0


@right_answer("causal_mask")
def triangle_by_indices(num_tokens):
    """triu_indices"""
    mask = torch.full((num_tokens, num_tokens), False)
    mask[tuple(torch.triu_indices(num_tokens, num_tokens, offset=1))] = True
    return mask


# --- renormalized_causal_weights ---


@right_answer("renormalized_causal_weights")
def multiplied_with_a_triangle(weights):
    """a triangle of ones, multiplied"""
    masked = weights * torch.tril(torch.ones_like(weights))
    return masked / masked.sum(-1).unsqueeze(-1)


@right_answer("renormalized_causal_weights")
def normalized_by_functional(weights):
    """F.normalize with the 1-norm"""
    return F.normalize(weights.tril(), p=1.0, dim=-1)


@right_answer("renormalized_causal_weights")
def filled_with_zero(weights):
    """masked_fill with zero"""
    T = weights.size(0)
    future = torch.triu(torch.ones(T, T, device=weights.device), diagonal=1) == 1
    masked = weights.masked_fill(future, 0)
    return torch.div(masked, masked.sum(dim=1, keepdim=True))


@right_answer("renormalized_causal_weights")
def divided_by_the_diagonal_of_cumulative_sums(weights):
    """cumulative sums, whose diagonal is each row's kept sum"""
    sums = weights.cumsum(dim=-1).diagonal()
    return torch.tril(weights) / sums[:, None]


@right_answer("renormalized_causal_weights")
def row_by_row(weights):
    """one row at a time"""
    rows = []
    for i in range(weights.shape[0]):
        kept = weights[i, : i + 1]
        rows.append(F.pad(kept / kept.sum(), (0, weights.shape[1] - i - 1)))
    return torch.stack(rows)


@right_answer("renormalized_causal_weights")
def softmax_of_logarithms(weights):
    """the masked softmax of the weights' logarithms"""
    future = torch.ones_like(weights).triu(diagonal=1).bool()
    return torch.softmax(weights.log().masked_fill(future, -torch.inf), dim=-1)


# --- masked_scores ---


@right_answer("masked_scores")
def chosen_with_where(scores, mask):
    """torch.where with a 0-d tensor"""
    return torch.where(mask, torch.tensor(-torch.inf, dtype=scores.dtype, device=scores.device), scores)


@right_answer("masked_scores")
def copied_then_filled(scores, mask):
    """masked_fill_ on a copy"""
    result = scores.clone()
    result.masked_fill_(mask, -math.inf)
    return result


@right_answer("masked_scores")
def minus_infinity_added(scores, mask):
    """an additive mask of 0 and -inf"""
    return scores + torch.zeros_like(mask, dtype=scores.dtype).masked_fill(mask, float("-inf"))


@right_answer("masked_scores")
def indexed_from_the_end(scores, mask):
    """assignment to a copy, with the mask as the last index"""
    result = scores.clone()
    result[..., mask] = -torch.inf
    return result


# --- causal_softmax ---


@right_answer("causal_softmax")
def additive_mask(scores, d_k):
    """-inf added above the diagonal, math.sqrt"""
    T = scores.size(-1)
    mask = torch.full((T, T), float("-inf"), device=scores.device, dtype=scores.dtype).triu(1)
    return F.softmax(scores / math.sqrt(d_k) + mask, dim=-1)


@right_answer("causal_softmax")
def smallest_number(scores, d_k):
    """the dtype's smallest number in the place of -inf, after scaling"""
    future = torch.ones_like(scores, dtype=torch.bool).triu(diagonal=1)
    return (scores * d_k**-0.5).masked_fill(future, torch.finfo(scores.dtype).min).softmax(-1)


@right_answer("causal_softmax")
def positions_and_where(scores, d_k):
    """positions compared, torch.where"""
    i = torch.arange(scores.shape[-1], device=scores.device)
    return torch.softmax(torch.where(i[None, :] <= i[:, None], scores / d_k**0.5, -torch.inf), dim=-1)


@right_answer("causal_softmax")
def exponentials_of_the_visible(scores, d_k):
    """exp and sum by hand, the maximum of the visible scores subtracted"""
    visible = torch.ones_like(scores).tril().bool()
    scaled = (scores / d_k**0.5).masked_fill(~visible, float("-inf"))
    exponentials = (scaled - scaled.amax(dim=-1, keepdim=True).detach()).exp()
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


@right_answer("causal_softmax")
def a_row_at_a_time(scores, d_k):
    """softmax of each row's visible part, padded with zeros"""
    T = scores.shape[-1]
    rows = []
    for i in range(T):
        share = torch.softmax(scores[..., i, : i + 1] / d_k**0.5, dim=-1)
        rows.append(torch.cat([share, share.new_zeros(*share.shape[:-1], T - i - 1)], dim=-1))
    return torch.stack(rows, dim=-2)


@right_answer("causal_softmax")
def minus_a_billion(scores, d_k):
    """-1e9 in the place of -inf, a float mask"""
    tril = torch.tril(torch.ones(scores.shape[-2:])).to(scores)
    return torch.softmax(scores.masked_fill(tril == 0, -1e9) / d_k**0.5, dim=-1)


@right_answer("causal_softmax")
def softmax_in_float64(scores, d_k):
    """float64 inside"""
    wide = scores.double() / d_k**0.5
    wide = wide.masked_fill(torch.ones_like(wide).triu(1).bool(), float("-inf"))
    return wide.softmax(dim=-1).to(scores.dtype)


# --- attention_dropout ---


@right_answer("attention_dropout")
def functional_dropout(weights, p, training=True):
    """F.dropout"""
    return F.dropout(weights, p=p, training=training)


@right_answer("attention_dropout")
def dropout_module(weights, p, training=True):
    """an nn.Dropout in the right mode"""
    return nn.Dropout(p).train(training)(weights)


@right_answer("attention_dropout")
def bernoulli_by_hand(weights, p, training=True):
    """bernoulli on the weights' device"""
    if not training or p == 0:
        return weights
    kept = torch.bernoulli(torch.full_like(weights, 1 - p))
    return weights * kept / (1 - p)


@right_answer("attention_dropout")
def dropped_by_masked_fill(weights, p, training=True):
    """rand_like, masked_fill, a copy outside of training"""
    if training:
        return weights.masked_fill(torch.rand_like(weights) < p, 0.0) / (1.0 - p)
    return weights.clone()


@right_answer("attention_dropout")
def scale_drawn_with_the_mask(weights, p, training=True):
    """where, with the scale in the mask"""
    if not training:
        return weights
    noise = torch.rand(weights.shape, device=weights.device)
    return weights * torch.where(noise < p, 0.0, 1 / (1 - p)).to(weights.dtype)


# --- causal_head ---


@right_answer("causal_head")
def einsum_head(queries, keys, values):
    """einsum, queries scaled first"""
    T = queries.shape[1]
    scores = torch.einsum("bqd,bkd->bqk", queries * queries.shape[-1] ** -0.5, keys)
    i = torch.arange(T, device=queries.device)
    weights = scores.masked_fill(i > i.view(-1, 1), float("-inf")).softmax(-1)
    return torch.einsum("bqk,bkd->bqd", weights, values)


@right_answer("causal_head")
def bmm_head(queries, keys, values):
    """bmm, tril of ones"""
    _, T, head_dim = queries.shape
    weights = torch.bmm(queries, keys.transpose(1, 2)) * head_dim**-0.5
    tril = torch.tril(torch.ones(T, T, device=queries.device))
    return torch.bmm(F.softmax(weights.masked_fill(tril == 0, float("-inf")), dim=-1), values)


@right_answer("causal_head")
def baddbmm_head(queries, keys, values):
    """baddbmm with an additive mask"""
    T, head_dim = queries.shape[-2:]
    mask = torch.triu(queries.new_full((T, T), -torch.inf), diagonal=1).expand(len(queries), -1, -1)
    return torch.baddbmm(mask, queries, keys.mT, alpha=1 / math.sqrt(head_dim)).softmax(dim=2) @ values


@right_answer("causal_head")
def one_token_at_a_time(queries, keys, values):
    """each token with the keys up to its own"""
    contexts = []
    for i in range(queries.shape[1]):
        scores = (queries[:, i : i + 1] * keys[:, : i + 1]).sum(-1) / queries.shape[-1] ** 0.5
        contexts.append((scores.softmax(-1).unsqueeze(-1) * values[:, : i + 1]).sum(1))
    return torch.stack(contexts, dim=1)


@right_answer("causal_head")
def one_sequence_at_a_time(queries, keys, values):
    """a loop over the batch"""
    future = torch.ones(queries.shape[1], queries.shape[1], dtype=torch.bool, device=queries.device).triu(1)
    results = []
    for q, k, v in zip(queries, keys, values, strict=True):
        results.append(torch.softmax((q @ k.T).masked_fill_(future, -torch.inf) / q.shape[-1] ** 0.5, dim=1) @ v)
    return torch.stack(results)


# --- CausalAttention ---


@right_answer("CausalAttention")
class FloatMaskFilledInPlace(nn.Module):
    """a float buffer turned to bool in forward, the module's own scores filled in place"""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.d_out = d_out
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        T = x.shape[1]
        scores = torch.matmul(self.W_query(x), self.W_key(x).transpose(1, 2))
        scores.masked_fill_(self.mask[:T, :T].bool(), -math.inf)
        scores.div_(math.sqrt(self.d_out))
        return torch.matmul(self.dropout(scores.softmax(dim=2)), self.W_value(x))


@right_answer("CausalAttention")
class LibraryAttention(nn.Module):
    """F.scaled_dot_product_attention with is_causal, which the classes may call"""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.p = dropout

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        p = self.p if self.training else 0.0
        return F.scaled_dot_product_attention(queries, keys, values, dropout_p=p, is_causal=True)


@right_answer("CausalAttention")
class InvertedBufferNotSaved(nn.Module):
    """a non-persistent tril buffer with another name, F.dropout"""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in range(3))
        self.p = dropout
        self.register_buffer("visible", torch.tril(torch.ones(context_length, context_length)), persistent=False)

    def forward(self, x):
        T = x.size(1)
        scores = self.W_query(x) @ self.W_key(x).mT / self.W_key.out_features**0.5
        weights = scores.masked_fill(self.visible[:T, :T] == 0, float("-inf")).softmax(-1)
        return F.dropout(weights, self.p, training=self.training) @ self.W_value(x)


@right_answer("CausalAttention")
class MaskMadeInForward(nn.Module):
    """positions compared in forward, einsum, dropout by hand"""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        for name in ("W_query", "W_key", "W_value"):
            setattr(self, name, nn.Linear(d_in, d_out, bias=qkv_bias))
        self.dropout = dropout

    def forward(self, x):
        i = torch.arange(x.shape[1], device=x.device)
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = torch.einsum("bqd,bkd->bqk", queries, keys) / math.sqrt(keys.shape[-1])
        weights = torch.where(i[:, None] >= i, scores, torch.finfo(scores.dtype).min).softmax(dim=-1)
        if self.training and self.dropout > 0:
            weights = weights * (torch.rand_like(weights) >= self.dropout) / (1 - self.dropout)
        return torch.einsum("bqk,bkd->bqd", weights, values)


@right_answer("CausalAttention")
class FusedProjection(nn.Module):
    """one product for queries, keys and values; an additive buffer"""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.drop = nn.Dropout(p=dropout)
        self.register_buffer("bias", torch.full((1, context_length, context_length), -torch.inf).triu(diagonal=1))

    def forward(self, x):
        layers = self.W_query, self.W_key, self.W_value
        weight = torch.cat([layer.weight for layer in layers])
        bias = torch.cat([layer.bias for layer in layers]) if self.W_query.bias is not None else None
        queries, keys, values = F.linear(x, weight, bias).chunk(3, dim=-1)
        T, d_k = keys.shape[1:]
        scores = torch.baddbmm(self.bias[:, :T, :T], queries, keys.transpose(1, 2), alpha=d_k**-0.5)
        return torch.bmm(self.drop(F.softmax(scores, dim=2)), values)


@right_answer("CausalAttention")
class MaskBeforeTheProduct(nn.Module):
    """the mask's values multiplied and added, softmax in float64"""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.register_buffer("future", torch.ones(context_length, context_length).triu(1))
        self.dropout = nn.Dropout(dropout)
        self.weights = None

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        T = x.shape[-2]
        scores = queries.double() @ keys.double().transpose(-1, -2) / keys.size(-1) ** 0.5
        scores = scores - 1e12 * self.future[:T, :T]
        self.weights = torch.softmax(scores, dim=-1).type_as(x)
        return self.dropout(self.weights) @ values


@right_answer("CausalAttention")
class LibraryAttentionWithAMask(nn.Module):
    """F.scaled_dot_product_attention with a bool mask of what is visible, and a heads dimension of one"""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("tril", torch.tril(torch.ones(context_length, context_length, dtype=torch.uint8)))

    def forward(self, x):
        queries, keys, values = (layer(x).unsqueeze(1) for layer in (self.W_query, self.W_key, self.W_value))
        visible = self.tril[: x.shape[1], : x.shape[1]].bool()
        p = self.dropout.p * self.training
        return F.scaled_dot_product_attention(queries, keys, values, attn_mask=visible, dropout_p=p).squeeze(1)


@right_answer("CausalAttention")
class SequenceBySequence(nn.Module):
    """a loop over the batch, a mask kept as a plain tensor and taken to the device of x"""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.dropout = nn.Dropout(dropout)

    def attend(self, sequence):
        queries, keys, values = self.W_query(sequence), self.W_key(sequence), self.W_value(sequence)
        mask = torch.ones(len(sequence), len(sequence)).triu(diagonal=1).bool().to(sequence.device)
        scores = torch.mm(queries, keys.t()) / keys.size(1) ** 0.5
        return torch.mm(self.dropout(scores.masked_fill(mask, -torch.inf).softmax(1)), values)

    def forward(self, x):
        return torch.stack([self.attend(sequence) for sequence in x])


# --- MultiHeadAttentionWrapper ---


@right_answer("MultiHeadAttentionWrapper")
class ListedThenAdded(nn.Module):
    """append in a loop, concatenated in dim 2"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.num_heads = num_heads
        self.heads = nn.ModuleList()
        for _ in range(num_heads):
            self.heads.append(CausalAttention(d_in, d_out, context_length, dropout, qkv_bias=qkv_bias))

    def forward(self, x):
        results = []
        for i in range(self.num_heads):
            results.append(self.heads[i](x))
        return torch.cat(results, 2)


@right_answer("MultiHeadAttentionWrapper")
class StackedThenFlattened(nn.Module):
    """stacked before the last dimension, then flattened"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        make = lambda: CausalAttention(d_in, d_out, context_length, dropout, qkv_bias)  # noqa: E731
        self.heads = nn.ModuleList(make() for _ in range(num_heads))

    def forward(self, x):
        return torch.stack([head(x) for head in self.heads], dim=-2).flatten(start_dim=-2)


@right_answer("MultiHeadAttentionWrapper")
class WrittenIntoPlace(nn.Module):
    """written into slices of a new tensor"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.d_out = d_out
        self.heads = nn.ModuleList(
            [CausalAttention(d_in, d_out, context_length, dropout, qkv_bias) for _ in range(num_heads)]
        )

    def forward(self, x):
        result = x.new_zeros(x.shape[0], x.shape[1], len(self.heads) * self.d_out)
        for i, head in enumerate(self.heads):
            result[:, :, i * self.d_out : (i + 1) * self.d_out] = head(x)
        return result
