"""Attention with several heads, beyond the catalogue. Classes have names, by which their source is found."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from . import both, rewritten, right, unlisted


@rewritten("stacked_not_scaled")
def _(inputs, W_query, W_key, W_value):
    heads = []
    for W_q, W_k, W_v in zip(W_query, W_key, W_value, strict=True):
        scores = F.linear(inputs, W_q).mm(F.linear(inputs, W_k).t())
        heads.append(F.softmax(scores, dim=1).mm(F.linear(inputs, W_v)))
    return torch.stack(heads)


@rewritten("stacked_tokens_first")
def _(inputs, W_query, W_key, W_value):
    q, k, v = (torch.einsum("ti,hki->thk", inputs, W) for W in (W_query, W_key, W_value))
    weights = (torch.einsum("qhk,thk->hqt", q, k) * k.size(-1) ** -0.5).softmax(-1)
    return torch.einsum("hqt,thv->qhv", weights, v)


@rewritten("stacked_heads_behind_each_other")
def _(inputs, W_query, W_key, W_value):
    found = []
    for i in range(W_query.shape[0]):
        q, k, v = inputs @ W_query[i].T, inputs @ W_key[i].T, inputs @ W_value[i].T
        found.append((q @ k.T / math.sqrt(k.shape[1])).softmax(dim=-1) @ v)
    return torch.cat(found)


@unlisted("stacked_heads_attention", "stacked_divided_by_d_k")
def _(inputs, W_query, W_key, W_value):
    """Two mistakes: divided by d_k, and only the last head returned."""
    for W_q, W_k, W_v in zip(W_query, W_key, W_value, strict=True):
        q, k, v = inputs @ W_q.T, inputs @ W_k.T, inputs @ W_v.T
        found = torch.softmax(q @ k.T / k.shape[-1], dim=-1) @ v
    return found


@unlisted("stacked_heads_attention")
def _(inputs, W_query, W_key, W_value):
    """The sum of the exponentials has no dimension to divide along: rows are divided by other rows' sums."""
    q, k, v = inputs @ W_query.mT, inputs @ W_key.mT, inputs @ W_value.mT
    exponentials = torch.exp(q @ k.mT / k.shape[-1] ** 0.5)
    return exponentials / exponentials.sum(-1).unsqueeze(1) @ v


@right("stacked_heads_attention")
def _(inputs, W_query, W_key, W_value):
    def head(W_q, W_k, W_v):
        return torch.softmax((inputs @ W_q.T) @ (inputs @ W_k.T).T / W_k.shape[0] ** 0.5, dim=-1) @ (inputs @ W_v.T)

    return torch.vmap(head)(W_query, W_key, W_value)


@right("stacked_heads_attention")
def _(inputs, W_query, W_key, W_value):
    h, d_k, d_in = W_query.shape
    q, k, v = (F.linear(inputs, W.reshape(-1, d_in)).unflatten(1, (h, -1)) for W in (W_query, W_key, W_value))
    scores = torch.bmm(q.movedim(1, 0), k.permute(1, 2, 0)) / torch.sqrt(torch.tensor(d_k))
    return torch.bmm(scores.softmax(2), v.transpose(0, 1))


@rewritten("every_hth_number")
def _(x, num_heads):
    if x.size(-1) % num_heads:
        raise ValueError("cannot be split")
    return torch.stack([x[..., head::num_heads] for head in range(num_heads)], dim=1)


@rewritten("refusal_left_to_reshape")
def _(x, num_heads):
    if x.size(2) % num_heads:
        print("d must be divisible by num_heads")
    return x.view(x.size(0), x.size(1), num_heads, x.size(2) // num_heads).permute(0, 2, 1, 3)


@rewritten("heads_before_the_batch")
def _(x, num_heads):
    if x.shape[2] % num_heads != 0:
        raise ValueError
    return torch.stack(x.split(x.shape[2] // num_heads, dim=2))


@rewritten("split_on_the_cpu")
def _(x, num_heads):
    b, num_tokens, d = x.shape
    if d % num_heads:
        raise ValueError
    return x.cpu().reshape(b, num_tokens, num_heads, -1).swapaxes(1, 2)


@both("heads_not_moved", "refusal_left_to_reshape")
def _(x, num_heads):
    """Two mistakes: nothing is refused, and the heads are not moved."""
    return x.reshape(x.shape[0], x.shape[1], num_heads, x.shape[2] // num_heads)


@unlisted("split_heads")
def _(x, num_heads):
    """A width that cannot be split is filled up with zeros."""
    x = F.pad(x, (0, -x.shape[-1] % num_heads))
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


@right("split_heads")
def _(x, num_heads):
    class CannotSplit(ValueError):
        pass

    width, rest = divmod(x.shape[-1], num_heads)
    if rest:
        raise CannotSplit(f"{x.shape[-1]} into {num_heads}")
    return x.unfold(-1, width, width).transpose(1, 2)


@right("split_heads")
def _(x, num_heads):
    assert x.shape[2] % num_heads == 0
    return torch.stack(x.tensor_split(num_heads, dim=2), dim=1)


@rewritten("head_queries_and_keys_swapped")
def _(queries, keys):
    return torch.einsum("bhqd,bhkd->bhkq", queries, keys)


@rewritten("keys_reshaped")
def _(queries, keys):
    b, h, num_tokens, width = keys.size()
    return torch.matmul(queries, keys.contiguous().view(b, h, width, num_tokens))


@unlisted("multi_head_scores")
def _(queries, keys):
    """Two mistakes: scaled, and swapped."""
    return keys @ queries.mT / queries.shape[-1] ** 0.5


@unlisted("multi_head_scores")
def _(queries, keys):
    """Distances in the place of products."""
    return -torch.cdist(queries, keys)


@right("multi_head_scores")
def _(queries, keys):
    return (queries.unsqueeze(3) * keys.unsqueeze(2)).sum(dim=-1)


@rewritten("merged_without_swapping")
def _(x):
    return x.contiguous().view(x.size(0), x.size(2), -1)


@rewritten("heads_interleaved")
def _(x):
    return torch.stack(x.unbind(1), dim=-1).flatten(start_dim=2)


@unlisted("merge_heads", "merged_by_average")
def _(x):
    """Two mistakes: averaged, and detached."""
    return x.detach().sum(1) / x.shape[1]


@unlisted("merge_heads")
def _(x):
    """Every sequence becomes the last one."""
    for sequence in x:
        merged = torch.cat(list(sequence), dim=-1)
    return merged.expand(x.shape[0], -1, -1)


@right("merge_heads")
def _(x):
    return torch.cat(x.unbind(dim=1), dim=2)


@rewritten("DropoutOnTheResultToo")
class DropsTwiceLikeMinGPT(nn.Module):
    """Like minGPT: dropout on the weights, and again after the last layer."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.attn_drop, self.resid_drop = nn.Dropout(dropout), nn.Dropout(dropout)
        self.register_buffer("bias", torch.tril(torch.ones(context_length, context_length))[None, None])

    def forward(self, x):
        b, t, _ = x.size()
        q, k, v = (
            layer(x).view(b, t, self.num_heads, -1).transpose(1, 2)
            for layer in (self.W_query, self.W_key, self.W_value)
        )
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = F.softmax(att.masked_fill(self.bias[:, :, :t, :t] == 0, float("-inf")), dim=-1)
        y = (self.attn_drop(att) @ v).transpose(1, 2).contiguous().view(b, t, -1)
        return self.resid_drop(self.out_proj(y))


@rewritten("FiniteFillLeaks")
class MasksWithTenThousand(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0, "d_out must be divisible by num_heads"
        self.h, self.d_k = num_heads, d_out // num_heads
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3))
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (w(x).view(b, t, self.h, self.d_k).transpose(1, 2) for w in (self.W_query, self.W_key, self.W_value))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_k)
        visible = torch.tril(torch.ones(t, t, device=x.device))
        p_attn = self.dropout(scores.masked_fill(visible == 0, -1e4).softmax(dim=-1))
        return self.out_proj((p_attn @ v).transpose(1, 2).reshape(b, t, self.h * self.d_k))


@unlisted("MultiHeadAttention")
class AlwaysTwoHeads(nn.Module):
    """Two heads whatever was asked for: an accident of shapes, and no matter of contiguous memory."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0
        self.head_dim = d_out // num_heads
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3))
        self.out_proj = nn.Linear(d_out, d_out)
        self.p = dropout

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (w(x).view(b, t, 2, self.head_dim).transpose(1, 2) for w in (self.W_query, self.W_key, self.W_value))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.p if self.training else 0.0, is_causal=True)
        return self.out_proj(y.transpose(1, 2).reshape(b, t, -1))


@both("MaskIsNoBuffer", "HeadsNotScaled")
class UnscaledWithAPlainMask(nn.Module):
    """Two mistakes: no scaling, and the mask is no buffer."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0
        self.num_heads = num_heads
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3))
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.mask = torch.triu(torch.full((context_length, context_length), -torch.inf), diagonal=1)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = (
            w(x).view(b, t, self.num_heads, -1).transpose(1, 2) for w in (self.W_query, self.W_key, self.W_value)
        )
        weights = self.dropout(torch.softmax(q @ k.mT + self.mask[:t, :t], dim=-1))
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2))


@right("MultiHeadAttention")
class HeadByHead(nn.Module):
    """Head by head, on pieces of one projection."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        if d_out % num_heads:
            raise AssertionError("d_out must be divisible by num_heads")
        for name in ("W_query", "W_key", "W_value"):
            setattr(self, name, nn.Linear(d_in, d_out, bias=qkv_bias))
        self.out_proj = nn.Linear(d_out, d_out)
        self.head_dim, self.p = d_out // num_heads, dropout

    def forward(self, x):
        pieces = [layer(x).split(self.head_dim, dim=-1) for layer in (self.W_query, self.W_key, self.W_value)]
        index = torch.arange(x.shape[1], device=x.device)
        found = []
        for q, k, v in zip(*pieces, strict=True):
            scores = q @ k.mT / torch.sqrt(torch.tensor(self.head_dim))
            scores = torch.where(index[None, :] > index[:, None], scores.new_tensor(-1e9), scores)
            found.append(F.dropout(scores.softmax(-1), self.p, self.training) @ v)
        return self.out_proj(torch.cat(found, dim=-1))


@rewritten("OptimizedDividedByHeadDim")
class ScaledBeforeTheLibrary(nn.Module):
    """The queries are scaled before the library does it again."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0
        self.shape, self.p = (num_heads, d_out // num_heads), dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, self.shape).transpose(1, 2) for t in (self.W_query(x), self.W_key(x), x))
        q, p = q / self.shape[1] ** 0.5, self.p if self.training else 0.0
        heads = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True)
        return self.out_proj(heads.transpose(1, 2).flatten(2))


@rewritten("EfficientDropoutAlwaysOn")
class LibraryDropoutAlwaysOn(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0
        self.shape, self.p = (num_heads, d_out // num_heads), dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        q, kv = (t.unflatten(-1, self.shape).transpose(1, 2) for t in (self.W_query(x), x))
        heads = F.scaled_dot_product_attention(q, kv, kv, dropout_p=self.p, is_causal=True)
        return self.out_proj(heads.transpose(1, 2).flatten(2))


@unlisted("EfficientMultiHeadAttention")
class WindowOfThree(nn.Module):
    """Every token sees three tokens only: itself and the two before it."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0
        self.shape, self.p = (num_heads, d_out // num_heads), dropout
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        q, kv = (t.unflatten(-1, self.shape).transpose(1, 2) for t in (self.W_query(x), x))
        seen = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).tril().triu(-2)
        p = self.p if self.training else 0.0
        heads = F.scaled_dot_product_attention(q, kv, kv, attn_mask=seen, dropout_p=p)
        return self.out_proj(heads.transpose(1, 2).flatten(2))


@rewritten("MaskMissing")
class ScoresMaskedInVain(nn.Module):
    """masked_fill returns a new tensor, which nobody keeps."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0
        self.num_heads = num_heads
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3))
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(1).bool())

    def forward(self, x):
        T = x.shape[1]
        projected = self.W_query(x), self.W_key(x), self.W_value(x)
        queries, keys, values = (one.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for one in projected)
        scores = queries @ keys.mT
        scores.masked_fill(self.mask[:T, :T], -torch.inf)
        weights = self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1))
        return self.out_proj((weights @ values).transpose(1, 2).flatten(2))


@rewritten("DropoutIgnored")
class WeightsDroppedInVain(nn.Module):
    """Dropout returns a new tensor, which nobody keeps."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0
        self.num_heads = num_heads
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3))
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(1).bool())

    def forward(self, x):
        T = x.shape[1]
        projected = self.W_query(x), self.W_key(x), self.W_value(x)
        queries, keys, values = (one.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for one in projected)
        scores = (queries @ keys.mT).masked_fill(self.mask[:T, :T], -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        self.dropout(weights)
        return self.out_proj((weights @ values).transpose(1, 2).flatten(2))


@rewritten("OneWideHead")
class AttentionBeforeTheSplit(nn.Module):
    """The library's attention gets queries, keys and values that are not split yet."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0
        self.num_heads = num_heads
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3))
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(1).bool())

    def forward(self, x):
        T = x.shape[1]
        projected = self.W_query(x), self.W_key(x), self.W_value(x)
        p = self.dropout.p if self.training else 0.0
        context = F.scaled_dot_product_attention(*projected, dropout_p=p, is_causal=True)
        return self.out_proj(context.view(x.shape[0], T, -1))


@rewritten("ScaledByTheRootOfHeads")
class ScaledByDimension1(nn.Module):
    """size(1) of (b, h, T, hd) is the number of heads."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        assert d_out % num_heads == 0
        self.num_heads = num_heads
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3))
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(1).bool())

    def forward(self, x):
        T = x.shape[1]
        projected = self.W_query(x), self.W_key(x), self.W_value(x)
        queries, keys, values = (one.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for one in projected)
        scores = (queries @ keys.mT).masked_fill(self.mask[:T, :T], -torch.inf)
        weights = self.dropout(torch.softmax(scores / keys.size(1) ** 0.5, dim=-1))
        return self.out_proj((weights @ values).transpose(1, 2).flatten(2))


# count_parameters


@rewritten("frozen_counted")
def _(module):
    total = 0
    for _, parameter in module.named_parameters():
        total += parameter.nelement()
    return total


@rewritten("state_dict_counted")
def _(module):
    return sum(map(torch.numel, module.state_dict().values()))


@unlisted("count_parameters", "frozen_counted", "shared_counted_twice")
def _(module):
    """Frozen parameters count, and shared ones twice."""
    return sum(one.numel() for part in module.modules() for one in part._parameters.values())


@unlisted("count_parameters")
def _(module):
    """One too many."""
    return 1 + sum(one.numel() for one in module.parameters() if one.requires_grad)


@right("count_parameters")
def _(module):
    different = {id(one): one for part in module.modules() for one in part._parameters.values() if one is not None}
    return sum(one.numel() * one.requires_grad for one in different.values())
