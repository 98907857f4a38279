"""Right answers to `CausalAttention`, as different students write them."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from autograder.catalogue import right_answer


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
