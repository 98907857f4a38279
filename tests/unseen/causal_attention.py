"""Causal attention, beyond the catalogue."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from solutions.causal_attention import CausalAttention  # which the notebook has

from . import both, rewritten, right, unlisted

# causal_mask


@rewritten("past_hidden")
def _(num_tokens):
    index = torch.arange(num_tokens)
    return index[:, None] > index[None, :]


@rewritten("diagonal_hidden_too")
def _(num_tokens):
    return torch.tensor([[key >= query for key in range(num_tokens)] for query in range(num_tokens)])


@rewritten("true_means_visible")
def _(num_tokens):
    return torch.triu(torch.ones(num_tokens, num_tokens), diagonal=1) == 0


@rewritten("last_token_left_visible")
def _(num_tokens):
    mask = torch.zeros(num_tokens, num_tokens, dtype=torch.bool)
    for query in range(num_tokens):
        for key in range(query + 1, num_tokens - 1):
            mask[query, key] = True
    return mask


@unlisted("causal_mask")
def _(num_tokens):
    """One token too few."""
    return torch.tril(torch.ones(num_tokens - 1, num_tokens - 1)) == 0


@right("causal_mask")
def _(num_tokens):
    return torch.eye(num_tokens).cumsum(0).logical_not()


@right("causal_mask")
def _(num_tokens):
    return torch.full((num_tokens, num_tokens), -torch.inf).triu(1).isneginf()


# renormalized_causal_weights


@rewritten("columns_renormalized")
def _(weights):
    kept = weights.tril()
    return kept / kept.sum(0)


@rewritten("weights_cut_in_place")
def _(weights):
    weights *= torch.ones_like(weights).tril()
    weights /= weights.sum(dim=-1, keepdim=True)
    return weights


@rewritten("rows_of_length_one")
def _(weights):
    return F.normalize(torch.tril(weights), dim=1)


@unlisted("renormalized_causal_weights")
def _(weights):
    """Sums below a hundredth are lifted to it."""
    kept = torch.tril(weights)
    return kept / kept.sum(-1, keepdim=True).clamp(min=1e-2)


@right("renormalized_causal_weights")
def _(weights):
    return torch.softmax(weights.log().masked_fill(torch.ones_like(weights).triu(1) > 0, -torch.inf), dim=-1)


@right("renormalized_causal_weights")
def _(weights):
    return (weights.tril().T / weights.tril().sum(1)).T


# masked_scores


@rewritten("zeros_taken_for_hidden")
def _(scores, mask):
    filled = scores.clone()
    filled[..., mask] = 0.0
    return torch.where(filled == 0, -math.inf, filled)


@rewritten("scores_returned_unmasked")
def _(scores, mask):
    torch.where(mask, -math.inf, scores)
    return scores


@both("scores_masked_in_place", "visible_scores_hidden")
def _(scores, mask):
    """Two mistakes: the caller's scores are changed, and the mask is turned round."""
    scores[..., ~mask] = -math.inf
    return scores


@right("masked_scores")
def _(scores, mask):
    return scores + (~mask).to(scores.dtype).log()


# causal_softmax


@rewritten("hidden_filled_with_minus_ten_thousand")
def _(scores, d_k):
    future = torch.ones_like(scores).triu(1)
    return F.softmax((scores * (1 - future) - 500.0 * future) / math.sqrt(d_k), -1)


@rewritten("causal_mask_left_on_the_cpu")
def _(scores, d_k):
    bias = torch.full(scores.shape[-2:], -math.inf).triu(1)
    return torch.softmax(scores / math.sqrt(d_k) + bias, dim=-1)


@rewritten("three_dimensions_unpacked")
def _(scores, d_k):
    b, rows, columns = scores.size()
    future = torch.ones(b, rows, columns, device=scores.device).triu(1) == 1
    return torch.softmax(scores.masked_fill(future, -math.inf) * d_k**-0.5, -1)


@unlisted("causal_softmax")
def _(scores, d_k):
    """Two mistakes: not scaled, and the diagonal is hidden."""
    return scores.masked_fill(torch.ones_like(scores).triu().bool(), -math.inf).softmax(-1)


@unlisted("causal_softmax")
def _(scores, d_k):
    """Small weights are rounded away."""
    future = torch.ones_like(scores).triu(1) > 0
    weights = (scores.masked_fill(future, -math.inf) / d_k**0.5).softmax(-1)
    return torch.where(weights < 1e-2, 0.0, weights)


@right("causal_softmax")
def _(scores, d_k):
    num_tokens = scores.shape[-1]
    rows = [F.pad((scores[..., i, : i + 1] / d_k**0.5).softmax(-1), (0, num_tokens - i - 1)) for i in range(num_tokens)]
    return torch.stack(rows, dim=-2)


# attention_dropout


@rewritten("always_half_dropped")
def _(weights, p, training=True):
    return nn.Dropout()(weights) if training else weights


@rewritten("kept_weights_divided_twice")
def _(weights, p, training=True):
    if training:
        weights = nn.functional.dropout(weights, p)
        weights = weights.div(1 - p)
    return weights


@rewritten("kept_weights_divided_by_p_above_zero")
def _(weights, p, training=True):
    if not training or not p:
        return weights
    return torch.bernoulli(torch.full_like(weights, 1 - p)).mul(weights).div(p)


@rewritten("seed_set_in_dropout")
def _(weights, p, training=True):
    if not training:
        return weights
    torch.random.manual_seed(len(weights))
    return weights * (torch.rand_like(weights) >= p) / (1 - p)


@unlisted("attention_dropout")
def _(weights, p, training=True):
    """alpha_dropout keeps another mean, and drops to a negative number."""
    return F.alpha_dropout(weights, p, training)


@unlisted("attention_dropout", "smallest_weights_dropped")
def _(weights, p, training=True):
    """The largest weights are dropped."""
    if not training:
        return weights
    return weights * (weights <= weights.quantile(1 - p)) / (1 - p)


@right("attention_dropout")
def _(weights, p, training=True):
    return weights * F.dropout(torch.ones_like(weights), p, training)


# causal_head


@rewritten("head_does_not_see_itself_and_nan_replaced")
def _(queries, keys, values):
    result = torch.zeros_like(queries)
    for i in range(1, queries.shape[1]):
        weights = torch.softmax(torch.einsum("bd,btd->bt", queries[:, i], keys[:, :i]) / keys.shape[-1] ** 0.5, dim=-1)
        result[:, i] = torch.einsum("bt,btd->bd", weights, values[:, :i])
    return result


@rewritten("head_weights_transposed")
def _(queries, keys, values):
    scores = torch.einsum("bid,bjd->bij", queries, keys) / math.sqrt(keys.shape[-1])
    weights = scores.masked_fill(torch.ones_like(scores).triu(1) > 0, -math.inf).softmax(-1)
    return torch.einsum("bji,bjd->bid", weights, values)


@unlisted("causal_head")
def _(queries, keys, values):
    """Two mistakes: not scaled, and the keys in the place of the values."""
    scores = queries @ keys.mT
    return scores.masked_fill(torch.ones_like(scores).triu(1) > 0, -math.inf).softmax(-1) @ keys


@right("causal_head")
def _(queries, keys, values):
    scores = keys @ queries.mT / keys.shape[-1] ** 0.5  # (b, key, query)
    past = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril(-1)
    return torch.einsum("bkq,bkd->bqd", scores.masked_fill(past, -math.inf).softmax(-2), values)


# CausalAttention


@rewritten("NotMasked")
class MaskedCopyThrownAway(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in range(3))
        self.p = dropout
        self.register_buffer("visible", torch.ones(context_length, context_length).tril(), persistent=False)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = torch.einsum("bid,bjd->bij", queries, keys)
        scores.masked_fill(self.visible[: x.shape[1], : x.shape[1]] == 0, -math.inf)
        weights = F.softmax(scores / math.sqrt(keys.shape[-1]), dim=-1)
        return F.dropout(weights, self.p, self.training) @ values


@rewritten("DropoutAfterEvalToo")
class LibraryDropsAlways(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in range(3))
        self.p = dropout
        self.register_buffer("visible", torch.ones(context_length, context_length).tril(), persistent=False)

    def forward(self, x):
        return F.scaled_dot_product_attention(
            self.W_query(x), self.W_key(x), self.W_value(x), is_causal=True, dropout_p=self.p
        )


@rewritten("MaskIsNoBuffer")
class MaskOfEachCall(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in range(3))
        self.p = dropout
        self.register_buffer("visible", torch.ones(context_length, context_length).tril(), persistent=False)

    def forward(self, x):
        future = torch.triu(torch.ones(x.shape[1], x.shape[1]), diagonal=1).bool()
        scores = torch.bmm(self.W_query(x), self.W_key(x).permute(0, 2, 1)).masked_fill(future, -math.inf)
        weights = torch.softmax(scores * self.W_key.out_features**-0.5, dim=-1)
        return F.dropout(weights, self.p, self.training).bmm(self.W_value(x))


@rewritten("KeysUsedAsValues")
class KeyLayerTwice(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in range(3))
        self.p = dropout
        self.register_buffer("visible", torch.ones(context_length, context_length).tril(), persistent=False)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_key(x)
        p = self.p if self.training else 0.0
        return F.scaled_dot_product_attention(queries, keys, values, is_causal=True, dropout_p=p)


@rewritten("DropoutInPlace")
class InPlaceModule(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in range(3))
        self.p = dropout
        self.register_buffer("visible", torch.ones(context_length, context_length).tril(), persistent=False)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        hidden = self.visible[: x.shape[1], : x.shape[1]] == 0
        weights = torch.softmax((queries @ keys.mT).masked_fill(hidden, -math.inf) / keys.shape[-1] ** 0.5, dim=-1)
        return nn.Dropout(self.p, inplace=True).train(self.training)(weights) @ values


@unlisted("CausalAttention")
class NeitherMaskedNorScaled(nn.Module):
    """Two mistakes: not masked, and not scaled."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in range(3))
        self.p = dropout
        self.register_buffer("visible", torch.ones(context_length, context_length).tril(), persistent=False)

    def forward(self, x):
        weights = torch.softmax(self.W_query(x) @ self.W_key(x).mT, dim=-1)
        return F.dropout(weights, self.p, self.training) @ self.W_value(x)


@rewritten("ValuesAdded")
class ValuesOnceMore(nn.Module):
    """The values are added once more."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in range(3))
        self.p = dropout
        self.register_buffer("visible", torch.ones(context_length, context_length).tril(), persistent=False)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        p = self.p if self.training else 0.0
        return F.scaled_dot_product_attention(queries, keys, values, is_causal=True, dropout_p=p) + values


@unlisted("CausalAttention")
class TransposedWeight(nn.Module):
    """A layer is called as if its weight were (d_in, d_out)."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in range(3))
        self.p = dropout
        self.register_buffer("visible", torch.ones(context_length, context_length).tril(), persistent=False)

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), x @ self.W_value.weight
        p = self.p if self.training else 0.0
        return F.scaled_dot_product_attention(queries, keys, values, is_causal=True, dropout_p=p)


@right("CausalAttention")
class LibraryHead(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in range(3))
        self.p = dropout
        self.register_buffer("visible", torch.ones(context_length, context_length).tril(), persistent=False)

    def forward(self, x):
        p = self.p if self.training else 0.0
        queries, keys, values = (layer(x).unsqueeze(1) for layer in (self.W_query, self.W_key, self.W_value))
        return F.scaled_dot_product_attention(queries, keys, values, is_causal=True, dropout_p=p).squeeze(1)


@right("CausalAttention")
class SequenceAfterSequence(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, qkv_bias) for _ in range(3))
        self.p = dropout
        self.register_buffer("visible", torch.ones(context_length, context_length).tril(), persistent=False)

    def forward(self, x):
        results = []
        for words in x:
            scores = self.W_query(words) @ self.W_key(words).T / math.sqrt(self.W_key.out_features)
            scores = torch.where(self.visible[: len(words), : len(words)] > 0, scores, -1e9)
            results.append(F.dropout(scores.softmax(1), self.p, self.training) @ self.W_value(words))
        return torch.stack(results)


# MultiHeadAttentionWrapper


@rewritten("HeadsInTheBatch")
class JoinedInTheBatch(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList()
        for _ in range(num_heads):
            self.heads.append(CausalAttention(d_in, d_out, context_length, dropout, qkv_bias=qkv_bias))

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads])


@rewritten("HeadsOneAfterTheOther")
class Chained(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList()
        for _ in range(num_heads):
            self.heads.append(CausalAttention(d_in, d_out, context_length, dropout, qkv_bias=qkv_bias))

    def forward(self, x):
        return nn.Sequential(*self.heads)(x)


@unlisted("MultiHeadAttentionWrapper", "HeadsReversed")
class ReversedAndDetached(nn.Module):
    """Two mistakes: in reverse order, and detached."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList()
        for _ in range(num_heads):
            self.heads.append(CausalAttention(d_in, d_out, context_length, dropout, qkv_bias=qkv_bias))

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads][::-1], dim=-1).detach()


@rewritten("LargestOfTheHeads")
class LargestNumbers(nn.Module):
    """The heads' largest numbers."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList()
        for _ in range(num_heads):
            self.heads.append(CausalAttention(d_in, d_out, context_length, dropout, qkv_bias=qkv_bias))

    def forward(self, x):
        return torch.stack([head(x) for head in self.heads]).amax(0)


@right("MultiHeadAttentionWrapper")
class StackedAndFlattened(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList()
        for _ in range(num_heads):
            self.heads.append(CausalAttention(d_in, d_out, context_length, dropout, qkv_bias=qkv_bias))

    def forward(self, x):
        return torch.stack([head(x) for head in self.heads]).permute(1, 2, 0, 3).flatten(2)


@right("MultiHeadAttentionWrapper")
class FilledIn(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads = nn.ModuleList()
        for _ in range(num_heads):
            self.heads.append(CausalAttention(d_in, d_out, context_length, dropout, qkv_bias=qkv_bias))

    def forward(self, x):
        results = [head(x) for head in self.heads]
        joined = x.new_empty(*x.shape[:2], sum(result.shape[-1] for result in results))
        at = 0
        for result in results:
            joined[..., at : at + result.shape[-1]] = result
            at += result.shape[-1]
        return joined


@rewritten("own_key_hidden")
def _(scores, d_k):
    """The mask also stays on the CPU, which must not change the diagnosis."""
    hidden = torch.tensor([[j >= i for j in range(scores.shape[-1])] for i in range(scores.shape[-2])])
    return torch.where(hidden, torch.full_like(scores, -torch.inf), scores / d_k**0.5).softmax(-1)


@rewritten("NotMasked")
class MaskedScoresThrownAway(nn.Module):
    """masked_fill returns a new tensor, which nobody keeps."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3))
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(1).bool())

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = queries @ keys.mT
        scores.masked_fill(self.mask[: x.shape[1], : x.shape[1]], -torch.inf)
        return self.dropout(torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)) @ values


@rewritten("DropoutForgotten")
class DroppedWeightsThrownAway(nn.Module):
    """Dropout returns a new tensor, which nobody keeps."""

    def __init__(self, d_in, d_out, context_length, dropout, qkv_bias=False):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3))
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(1).bool())

    def forward(self, x):
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        scores = (queries @ keys.mT).masked_fill(self.mask[: x.shape[1], : x.shape[1]], -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        self.dropout(weights)
        return weights @ values


@rewritten("head_sees_the_next_token")
def _(queries, keys, values):
    seen = torch.ones(queries.shape[1], queries.shape[1], device=queries.device).tril(diagonal=1)
    scores = (queries @ keys.mT / queries.size(-1) ** 0.5).masked_fill(seen == 0, -torch.inf)
    return torch.softmax(scores, dim=-1) @ values
