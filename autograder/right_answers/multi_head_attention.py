"""Unit 4: right answers to attention with several heads, as different students write them."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from ..catalogue import right_answer

# --- stacked_heads_attention ---


@right_answer("stacked_heads_attention")
def stacked_in_a_loop(inputs, W_query, W_key, W_value):
    """a loop over the heads, stacked at the end"""
    heads = []
    for W_q, W_k, W_v in zip(W_query, W_key, W_value, strict=True):
        queries, keys, values = F.linear(inputs, W_q), F.linear(inputs, W_k), F.linear(inputs, W_v)
        weights = F.softmax(queries @ keys.T / math.sqrt(keys.shape[1]), dim=1)
        heads.append(weights @ values)
    return torch.stack(heads)


@right_answer("stacked_heads_attention")
def stacked_by_einsum(inputs, W_query, W_key, W_value):
    """einsum throughout"""
    queries = torch.einsum("ti,hki->htk", inputs, W_query)
    keys = torch.einsum("ti,hki->htk", inputs, W_key)
    values = torch.einsum("ti,hvi->htv", inputs, W_value)
    weights = torch.einsum("hqk,htk->hqt", queries * W_key.shape[1] ** -0.5, keys).softmax(-1)
    return torch.einsum("hqt,htv->hqv", weights, values)


@right_answer("stacked_heads_attention")
def stacked_by_bmm(inputs, W_query, W_key, W_value):
    """bmm with repeated inputs and weights on the left, as in the source document"""
    stacked = inputs.repeat(len(W_query), 1, 1).permute(0, 2, 1)
    queries, keys, values = W_query.bmm(stacked), W_key.bmm(stacked), W_value.bmm(stacked)
    weights = torch.softmax(queries.permute(0, 2, 1).bmm(keys) / W_key.shape[1] ** 0.5, dim=-1)
    return weights.bmm(values.permute(0, 2, 1))


@right_answer("stacked_heads_attention")
def stacked_as_one_wide_projection(inputs, W_query, W_key, W_value):
    """the heads' weights laid into one matrix, split afterwards; softmax by hand"""
    queries, keys, values = (
        F.linear(inputs, W.flatten(0, 1)).unflatten(-1, W.shape[:2]).movedim(1, 0) for W in (W_query, W_key, W_value)
    )
    scores = queries.matmul(keys.mT).div(keys.size(-1) ** 0.5)
    exponentials = (scores - scores.amax(-1, keepdim=True)).exp()
    return (exponentials / exponentials.sum(-1, keepdim=True)).matmul(values)


@right_answer("stacked_heads_attention")
def stacked_in_float64(inputs, W_query, W_key, W_value):
    """float64 inside, the inputs' dtype outside"""
    queries, keys, values = (inputs.double() @ W.double().mT for W in (W_query, W_key, W_value))
    return (torch.softmax(queries @ keys.mT / keys.shape[-1] ** 0.5, -1) @ values).to(inputs.dtype)


# --- split_heads ---


@right_answer("split_heads")
def split_by_view_and_permute(x, num_heads):
    """view, permute and contiguous"""
    b, num_tokens, d = x.size()
    assert d % num_heads == 0, "d must be divisible by num_heads"
    return x.view(b, num_tokens, num_heads, -1).permute(0, 2, 1, 3).contiguous()


@right_answer("split_heads")
def split_by_chunk(x, num_heads):
    """chunk, and stack along dimension 1"""
    if x.size(-1) % num_heads:
        raise ValueError(f"{x.size(-1)} is not divisible by {num_heads}")
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)


@right_answer("split_heads")
def split_by_unflatten(x, num_heads):
    """unflatten and movedim; its own RuntimeError becomes a ValueError"""
    try:
        return x.unflatten(-1, (num_heads, -1)).movedim(-2, -3)
    except RuntimeError as error:
        raise ValueError("the width is not divisible by the number of heads") from error


@right_answer("split_heads")
def split_by_slices(x, num_heads):
    """slices, head by head"""
    head_dim, rest = divmod(x.shape[2], num_heads)
    assert not rest
    pieces = [x[:, :, i * head_dim : (i + 1) * head_dim].unsqueeze(1) for i in range(num_heads)]
    return torch.cat(pieces, dim=1)


@right_answer("split_heads")
def split_by_einsum(x, num_heads):
    """einsum only to swap dimensions"""
    b, num_tokens, d = x.shape
    if d % num_heads != 0:
        raise AssertionError
    return torch.einsum("bthd->bhtd", torch.reshape(x, (b, num_tokens, num_heads, d // num_heads)))


# --- multi_head_scores ---


@right_answer("multi_head_scores")
def head_scores_by_einsum(queries, keys):
    """einsum"""
    return torch.einsum("bhqd,bhkd->bhqk", queries, keys)


@right_answer("multi_head_scores")
def head_scores_by_bmm(queries, keys):
    """bmm over batch and heads together"""
    b, h, num_tokens, head_dim = queries.shape
    flat = torch.bmm(queries.reshape(b * h, num_tokens, head_dim), keys.reshape(b * h, num_tokens, head_dim).mT)
    return flat.view(b, h, num_tokens, num_tokens)


@right_answer("multi_head_scores")
def head_scores_by_baddbmm(queries, keys):
    """baddbmm with beta = 0"""
    q, k = queries.flatten(0, 1), keys.flatten(0, 1)
    scores = torch.baddbmm(q.new_zeros(len(q), q.shape[1], k.shape[1]), q, k.permute(0, 2, 1), beta=0)
    return scores.unflatten(0, queries.shape[:2])


@right_answer("multi_head_scores")
def head_scores_in_loops(queries, keys):
    """a loop over batch and heads"""
    rows = [[q @ k.T for q, k in zip(qs, ks, strict=True)] for qs, ks in zip(queries, keys, strict=True)]
    return torch.stack([torch.stack(row) for row in rows])


@right_answer("multi_head_scores")
def head_scores_by_products(queries, keys):
    """elementwise products, summed over the width"""
    return queries.unsqueeze(3).mul(keys.unsqueeze(2)).sum(-1)


# --- merge_heads ---


@right_answer("merge_heads")
def merged_by_view(x):
    """transpose, contiguous, view"""
    b, h, num_tokens, head_dim = x.shape
    return x.transpose(1, 2).contiguous().view(b, num_tokens, h * head_dim)


@right_answer("merge_heads")
def merged_by_cat(x):
    """unbind and cat"""
    return torch.cat(x.unbind(dim=1), dim=-1)


@right_answer("merge_heads")
def merged_by_flatten(x):
    """permute and flatten"""
    return x.permute(0, 2, 1, 3).flatten(start_dim=2)


@right_answer("merge_heads")
def merged_token_by_token(x):
    """each token's pieces, joined in a loop"""
    tokens = [x[:, :, t].reshape(x.shape[0], -1) for t in range(x.shape[2])]
    return torch.stack(tokens, 1)


# --- MultiHeadAttention ---


@right_answer("MultiHeadAttention")
class AsInBooks(nn.Module):
    """a float mask as a buffer, masked_fill_ in place, assert, contiguous and view"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0, "d_out must be divisible by num_heads"
        self.d_out = d_out
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("hidden", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        b, num_tokens, _ = x.shape
        keys = self.W_key(x).view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        queries = self.W_query(x).view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        values = self.W_value(x).view(b, num_tokens, self.num_heads, self.head_dim).transpose(1, 2)
        scores = queries @ keys.transpose(2, 3)
        scores.masked_fill_(self.hidden.bool()[:num_tokens, :num_tokens], -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        context = (self.dropout(weights) @ values).transpose(1, 2)
        return self.out_proj(context.contiguous().view(b, num_tokens, self.d_out))


@right_answer("MultiHeadAttention")
class TheLibrarysAttention(nn.Module):
    """F.scaled_dot_product_attention, causal, with dropout in training"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out must be divisible by num_heads")
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.num_heads, self.p = num_heads, dropout

    def forward(self, x):
        projected = (layer(x) for layer in (self.W_query, self.W_key, self.W_value))
        queries, keys, values = (t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for t in projected)
        p = self.p if self.training else 0.0
        context = F.scaled_dot_product_attention(queries, keys, values, dropout_p=p, is_causal=True)
        return self.out_proj(context.transpose(1, 2).flatten(-2))


@right_answer("MultiHeadAttention")
class FusedWeights(nn.Module):
    """one product with the weights joined at run time, split by chunk; an inverted mask made in forward"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError
        self.h, self.p = num_heads, dropout
        for name in ("W_query", "W_key", "W_value"):
            setattr(self, name, nn.Linear(d_in, d_out, bias=qkv_bias))
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        layers = (self.W_query, self.W_key, self.W_value)
        weight = torch.cat([layer.weight for layer in layers])
        bias = None if layers[0].bias is None else torch.cat([layer.bias for layer in layers])
        fused = F.linear(x, weight, bias)
        fused = fused.reshape(*x.shape[:2], 3, self.h, -1).permute(2, 0, 3, 1, 4)
        queries, keys, values = fused.unbind(0)
        scores = queries @ keys.mT / math.sqrt(keys.shape[-1])
        seen = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).tril()
        weights = F.dropout(scores.masked_fill(~seen, float("-inf")).softmax(-1), self.p, self.training)
        return self.out_proj((weights @ values).permute(0, 2, 1, 3).reshape(*x.shape[:2], -1))


@right_answer("MultiHeadAttention")
class HeadByHead(nn.Module):
    """a loop over the heads, slices of the projections, cat at the end; an additive mask"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.drop = nn.Dropout(dropout)
        bias = torch.full((context_length, context_length), -torch.inf).triu(1)
        self.register_buffer("causal_bias", bias, persistent=False)

    def forward(self, x):
        T = x.size(1)
        projected = (layer(x).split(self.head_dim, dim=-1) for layer in (self.W_query, self.W_key, self.W_value))
        found = []
        for q, k, v in zip(*projected, strict=True):
            scores = torch.bmm(q, k.transpose(1, 2)) * self.head_dim**-0.5 + self.causal_bias[:T, :T]
            found.append(torch.bmm(self.drop(F.softmax(scores, dim=2)), v))
        return self.out_proj(torch.cat(found, dim=2))


@right_answer("MultiHeadAttention")
class EinsumThroughout(nn.Module):
    """einsum, queries scaled first, finfo.min in place of -inf, a mask made by arange"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("no whole number of heads")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        q, k, v = (f(x).unflatten(2, (self.num_heads, -1)) for f in (self.W_query, self.W_key, self.W_value))
        scores = torch.einsum("bqhd,bkhd->bhqk", q / q.shape[-1] ** 0.5, k)
        place = torch.arange(x.shape[1], device=x.device)
        scores = torch.where(place[:, None] >= place, scores, torch.finfo(scores.dtype).min)
        return self.out_proj(torch.einsum("bhqk,bkhd->bqhd", self.dropout(scores.softmax(-1)), v).flatten(2))


@right_answer("MultiHeadAttention")
class BatchTimesHeads(nn.Module):
    """batch and heads folded together for baddbmm, an additive mask of -1e9 from a lower triangle"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0, (d_out, num_heads)
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.attn_dropout = nn.Dropout(p=dropout)
        self.register_buffer("tril", torch.tril(torch.ones(context_length, context_length)))

    def fold(self, t):
        return torch.cat(t.chunk(self.num_heads, dim=-1), dim=0)

    def forward(self, x):
        T = x.shape[1]
        queries, keys, values = self.fold(self.W_query(x)), self.fold(self.W_key(x)), self.fold(self.W_value(x))
        hidden = ((1.0 - self.tril[:T, :T]) * -1e9).to(x.dtype).expand(len(queries), T, T)
        scores = torch.baddbmm(hidden, queries, keys.mT, alpha=1 / math.sqrt(keys.shape[-1]))
        context = torch.bmm(self.attn_dropout(nn.Softmax(dim=-1)(scores)), values)
        return self.out_proj(torch.cat(context.chunk(self.num_heads, dim=0), dim=-1))


@right_answer("MultiHeadAttention")
class InFloat64Inside(nn.Module):
    """scores and softmax in float64, the input's dtype outside; weights renormalised after the mask; dropout by hand"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads, self.keep = num_heads, 1 - dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.register_buffer("seen", torch.ones(context_length, context_length, dtype=torch.bool).tril())

    def forward(self, x):
        b, T, _ = x.shape
        queries, keys, values = (
            layer(x).double().reshape(b, T, self.num_heads, -1).movedim(2, 1)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        scores = (queries @ keys.mT / keys.shape[-1] ** 0.5).masked_fill(~self.seen[:T, :T], -math.inf)
        exponentials = torch.exp(scores - scores.max(dim=-1, keepdim=True).values) * self.seen[:T, :T]
        weights = exponentials / exponentials.sum(dim=-1, keepdim=True)
        if self.training and self.keep < 1:
            weights = weights * torch.empty_like(weights).bernoulli_(self.keep) / self.keep
        return self.out_proj((weights @ values).movedim(1, 2).reshape(b, T, -1).to(x.dtype))


@right_answer("MultiHeadAttention")
class KeepsItsWeightsForAPlot(nn.Module):
    """helper methods, a mask with batch and head dimensions, the weights kept for a plot"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.tril(torch.ones(1, 1, context_length, context_length, dtype=torch.uint8)))
        self.history = []

    def heads(self, t):
        return t.view(t.size(0), t.size(1), self.num_heads, t.size(2) // self.num_heads).transpose(1, 2)

    def forward(self, x):
        T = x.size(1)
        q, k, v = self.heads(self.W_query(x)), self.heads(self.W_key(x)), self.heads(self.W_value(x))
        self.weights = (q @ k.mT / k.size(-1) ** 0.5).masked_fill(self.mask[..., :T, :T] == 0, -1e30).softmax(-1)
        self.history.append(self.weights)
        return self.out_proj((self.dropout(self.weights) @ v).transpose(1, 2).reshape(x.size(0), T, -1))


# --- OptimizedMultiHeadAttention ---


@right_answer("OptimizedMultiHeadAttention")
class LibraryWithInputAsValue(nn.Module):
    """F.scaled_dot_product_attention with an additive mask"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads, self.p = num_heads, dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        queries, keys, values = (
            t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for t in (self.W_query(x), self.W_key(x), x)
        )
        mask = torch.full((x.shape[1], x.shape[1]), -torch.inf, dtype=x.dtype, device=x.device).triu(1)
        p = self.p * self.training
        context = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, dropout_p=p)
        return self.out_proj(context.transpose(1, 2).flatten(2))


@right_answer("OptimizedMultiHeadAttention")
class OptimizedHeadByHead(nn.Module):
    """a loop over slices of queries, keys and input"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0
        self.num_heads = num_heads
        self.W_query, self.W_key = nn.Linear(d_in, d_out, qkv_bias), nn.Linear(d_in, d_out, qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("later", torch.ones(context_length, context_length).triu(diagonal=1) > 0)

    def forward(self, x):
        later = self.later[: x.shape[1], : x.shape[1]]
        found = []
        for q, k, v in zip(*(t.chunk(self.num_heads, -1) for t in (self.W_query(x), self.W_key(x), x)), strict=True):
            scores = (q @ k.mT).masked_fill(later, -torch.inf) / q.shape[-1] ** 0.5
            found.append(self.dropout(scores.softmax(dim=-1)) @ v)
        return self.out_proj(torch.cat(found, -1))


@right_answer("OptimizedMultiHeadAttention")
class OptimizedByEinsum(nn.Module):
    """einsum over (b, T, h, hd), finfo.min for later keys"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError(num_heads)
        self.shape = (num_heads, d_out // num_heads)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = dropout

    def forward(self, x):
        q, k, v = (t.unflatten(-1, self.shape) for t in (self.W_query(x), self.W_key(x), x))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k).mul(self.shape[1] ** -0.5)
        later = torch.ones_like(scores, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, torch.finfo(x.dtype).min)
        weights = nn.functional.dropout(scores.softmax(-1), p=self.dropout, training=self.training)
        return self.out_proj(torch.einsum("bhqk,bkhd->bqhd", weights, v).flatten(2))


# --- EfficientMultiHeadAttention ---


@right_answer("EfficientMultiHeadAttention")
class LibraryWithInputAsKeyAndValue(nn.Module):
    """F.scaled_dot_product_attention, causal"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads, self.p = num_heads, dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        b, T, d = x.shape
        queries = self.W_query(x).view(b, T, self.num_heads, -1).transpose(1, 2)
        inputs = x.view(b, T, self.num_heads, -1).transpose(1, 2)
        p = self.p if self.training else 0.0
        context = F.scaled_dot_product_attention(queries, inputs, inputs, dropout_p=p, is_causal=True)
        return self.out_proj(context.transpose(1, 2).reshape(b, T, d))


@right_answer("EfficientMultiHeadAttention")
class EfficientTokenByToken(nn.Module):
    """each token with the tokens up to it, so that no mask is needed"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        queries, inputs = (t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for t in (self.W_query(x), x))
        tokens = []
        for t in range(x.shape[1]):
            past = inputs[:, :, : t + 1]
            scores = queries[:, :, t : t + 1] @ past.mT / past.shape[-1] ** 0.5
            tokens.append(self.dropout(scores.softmax(-1)) @ past)
        return self.out_proj(torch.cat(tokens, dim=2).transpose(1, 2).flatten(2))


@right_answer("EfficientMultiHeadAttention")
class EfficientByBmm(nn.Module):
    """bmm over batch times heads, an integer mask as a non-persistent buffer, F.linear by hand"""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("not divisible")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        order = torch.arange(context_length)
        self.register_buffer("later", (order[None] > order[:, None]).long(), persistent=False)

    def forward(self, x):
        b, T, d = x.shape

        def fold(t):
            return t.reshape(b, T, self.num_heads, -1).permute(0, 2, 1, 3).reshape(b * self.num_heads, T, -1)

        queries, inputs = fold(F.linear(x, self.W_query.weight, self.W_query.bias)), fold(x)
        scores = torch.bmm(queries, inputs.permute(0, 2, 1)) / math.sqrt(inputs.shape[-1])
        weights = torch.softmax(scores.masked_fill(self.later[:T, :T] == 1, -torch.inf), dim=2)
        context = torch.bmm(self.dropout(weights), inputs).view(b, self.num_heads, T, -1)
        return self.out_proj(context.permute(0, 2, 1, 3).contiguous().view(b, T, d))
