"""Self-attention, beyond the catalogue."""

import torch
import torch.nn.functional as F
from torch import nn

from . import both, rewritten, right, unlisted

# build_vocab and encode


@rewritten("words_not_sorted")
def _(sentence):
    numbers = {}
    for word in sentence.replace(",", "").split():
        numbers.setdefault(word, len(numbers))
    return numbers


@rewritten("all_punctuation_dropped")
def _(sentence):
    import string

    bare = sentence.translate(str.maketrans("", "", string.punctuation))
    return dict(map(reversed, enumerate(sorted(set(bare.split())))))


@both("numbered_from_one", "words_lowered")
def _(sentence):
    """Two mistakes: in lower case, and numbered from 1."""
    return {word: number for number, word in enumerate(sorted(set(sentence.lower().replace(",", "").split())), 1)}


@right("build_vocab")
def _(sentence):
    words = sorted(set("".join(letter for letter in sentence if letter != ",").split()))
    return dict(zip(words, range(len(words)), strict=True))


@rewritten("unknown_words_skipped")
def _(sentence, vocab):
    numbers = []
    for word in sentence.replace(",", "").split():
        try:
            numbers.append(vocab[word])
        except KeyError:
            continue
    return torch.LongTensor(numbers)


@unlisted("encode")
def _(sentence, vocab):
    """The caller's vocabulary grows by the words that it does not have."""
    return torch.tensor([vocab.setdefault(word, len(vocab) + 5) for word in sentence.replace(",", "").split()])


@right("encode")
def _(sentence, vocab):
    tokens = torch.empty(len(sentence.split()), dtype=torch.long)
    for place, word in enumerate(sentence.split()):
        word = word.replace(",", "")
        if word not in vocab:
            raise KeyError(f"{word} is not in the vocabulary")
        tokens[place] = vocab[word]
    return tokens


# embed


@rewritten("table_detached")
def _(tokens, table):
    layer = nn.Embedding.from_pretrained(table)
    return layer(tokens)


@rewritten("one_hot_transposed")
def _(tokens, table):
    chosen = torch.zeros(len(tokens), len(table), dtype=table.dtype, device=table.device)
    chosen[torch.arange(len(tokens)), tokens] = 1
    return chosen.mT @ table


@unlisted("embed", "rows_scaled_by_the_root")
def _(tokens, table):
    """The rows are scaled, and the table is detached."""
    return F.embedding(tokens, table.data) * table.size(1) ** 0.5


@unlisted("embed")
def _(tokens, table):
    """Every other number of a row has its sign changed."""
    return table[tokens] * (1 - 2 * (torch.arange(table.size(1)).to(tokens) % 2)).to(table)


@right("embed")
def _(tokens, table):
    return torch.einsum("tv,vd->td", F.one_hot(tokens, table.size(0)).to(table), table)


# project_qkv and linear_projection


@rewritten("weights_transposed")
def _(inputs, W_query, W_key, W_value):
    return F.linear(inputs, W_query), F.linear(inputs, W_key), F.linear(inputs, W_value)


@rewritten("projection_weights_detached")
def _(inputs, W_query, W_key, W_value):
    return tuple(inputs @ nn.Parameter(W) for W in (W_query, W_key, W_value))


@both("queries_and_keys_exchanged", "value_projection_detached")
def _(inputs, W_query, W_key, W_value):
    """Two mistakes: queries and keys exchanged, and the values detached."""
    return inputs @ W_key, inputs @ W_query, (inputs @ W_value).detach()


@right("project_qkv")
def _(inputs, W_query, W_key, W_value):
    widths = [W.shape[1] for W in (W_query, W_key, W_value)]
    return (inputs @ torch.cat([W_query, W_key, W_value], dim=1)).split(widths, dim=-1)


@rewritten("weight_not_transposed")
def _(inputs, weight):
    return F.linear(inputs, weight.T)


@rewritten("projection_weight_detached")
def _(inputs, weight):
    with torch.no_grad():
        turned = weight.T.clone()
    return torch.matmul(inputs, turned)


@right("linear_projection")
def _(inputs, weight):
    return torch.stack([(inputs * row).sum(dim=-1) for row in weight], dim=-1)


# attention_scores


@rewritten("queries_and_keys_swapped")
def _(queries, keys):
    return torch.einsum("...qd,...kd->...kq", queries, keys)


@rewritten("keys_reshaped")
def _(queries, keys):
    *leading, tokens, width = keys.shape
    return torch.matmul(queries, keys.view(*leading, width, tokens))


@rewritten("later_keys_hidden")
def _(queries, keys):
    scores = torch.einsum("...qd,...kd->...qk", queries, keys)
    places = torch.arange(scores.shape[-1], device=scores.device)
    rows = torch.arange(scores.shape[-2], device=scores.device)
    return torch.where(places > rows[:, None], -torch.inf, scores)


@unlisted("attention_scores", "scores_already_scaled", "transposed_with_t")
def _(queries, keys):
    """Two mistakes: `.T`, and scaled."""
    return queries @ keys.permute(*range(keys.dim() - 1, -1, -1)) / keys.shape[-1] ** 0.5


@unlisted("attention_scores")
def _(queries, keys):
    """Right for up to four dimensions."""
    return queries @ keys.transpose({2: 0, 3: 1, 4: 2}[keys.dim()], keys.dim() - 1)


@right("attention_scores")
def _(queries, keys):
    if queries.dim() > 2:
        pairs = zip(queries, keys, strict=True)
        return torch.stack([torch.einsum("...qd,...kd->...qk", one, other) for one, other in pairs])
    return queries.mm(keys.t())


# scaled_softmax


@rewritten("divided_by_d_k")
def _(scores, d_k):
    return (scores / d_k).softmax(-1)


@rewritten("scaled_after_softmax")
def _(scores, d_k):
    return F.softmax(scores, dim=-1).div(d_k**0.5)


@rewritten("exponentials_overflow")
def _(scores, d_k):
    powers = (scores * d_k**-0.5).exp()
    return powers / powers.sum(dim=-1).unsqueeze(-1)


@rewritten("root_rounded_down")
def _(scores, d_k):
    import math

    return nn.Softmax(dim=-1)(scores / math.isqrt(d_k))


@rewritten("later_keys_without_weight")
def _(scores, d_k):
    kept = torch.tril(torch.ones_like(scores)) == 1
    return torch.softmax(torch.where(kept, scores, -torch.inf) / d_k**0.5, dim=-1)


@both("divided_by_d_k", "softmax_over_the_queries")
def _(scores, d_k):
    """Two mistakes: divided by d_k, and a softmax over the queries."""
    return torch.softmax(scores / d_k, dim=-2)


@unlisted("scaled_softmax")
def _(scores, d_k):
    return F.dropout(torch.softmax(scores / d_k**0.5, dim=-1), 0.1)


@right("scaled_softmax")
def _(scores, d_k):
    return torch.exp(torch.log_softmax(scores * d_k**-0.5, -1))


@right("scaled_softmax")
def _(scores, d_k):
    return torch.softmax(scores / torch.sqrt(torch.tensor(d_k, dtype=scores.dtype)), dim=scores.dim() - 1)


# context_vectors, single_query_attention, scaled_dot_product_attention


@rewritten("context_weights_transposed")
def _(weights, values):
    return torch.matmul(weights.swapaxes(-1, -2), values)


@unlisted("context_vectors", "context_weights_transposed")
def _(weights, values):
    """Two mistakes: softmaxed again, and transposed."""
    return torch.softmax(weights, dim=-1).transpose(-2, -1) @ values


@right("context_vectors")
def _(weights, values):
    return sum(weights[..., i : i + 1] * values[..., i : i + 1, :] for i in range(values.shape[-2]))


@rewritten("single_query_not_scaled")
def _(query, keys, values):
    scores = torch.einsum("d,td->t", query, keys)
    return torch.einsum("t,tv->v", F.softmax(scores, dim=0), values)


@rewritten("single_query_result_as_a_matrix")
def _(query, keys, values):
    scores = F.linear(query.view(1, -1), keys) * query.numel() ** -0.5
    return torch.mm(scores.softmax(1), values)


@both("single_query_not_scaled", "keys_blended")
def _(query, keys, values):
    """Two mistakes: not scaled, and the keys are blended."""
    return torch.softmax(keys @ query, dim=-1) @ keys


@right("single_query_attention")
def _(query, keys, values):
    scores = torch.stack([torch.dot(query, key) for key in keys]) / keys.size(-1) ** 0.5
    return sum(weight * value for weight, value in zip(scores.softmax(0), values, strict=True))


@rewritten("attention_scaled_by_d_v")
def _(queries, keys, values):
    scores = torch.einsum("...qd,...kd->...qk", queries, keys) / values.size(-1) ** 0.5
    return torch.einsum("...qk,...kd->...qd", scores.softmax(-1), values)


@rewritten("attention_and_weights")
def _(queries, keys, values):
    d_k = queries.size(-1)
    scores = torch.matmul(queries, keys.transpose(-1, -2)) / torch.sqrt(torch.tensor(float(d_k), dtype=queries.dtype))
    p_attn = scores.softmax(dim=-1)
    return torch.matmul(p_attn, values), p_attn


@unlisted("scaled_dot_product_attention")
def _(queries, keys, values):
    """Two mistakes: a causal mask, and no scaling."""
    scores = queries @ keys.transpose(-2, -1)
    return torch.softmax(scores.masked_fill(torch.ones_like(scores).triu(1) > 0, -torch.inf), dim=-1) @ values


@right("scaled_dot_product_attention")
def _(queries, keys, values):
    root = keys.shape[-1] ** 0.25
    scores = (queries / root) @ (keys / root).mT
    powers = (scores - scores.amax(dim=-1, keepdim=True)).exp()
    return (powers @ values) / powers.sum(dim=-1, keepdim=True)


# score_variance


@rewritten("mean_squares")
def _(queries, keys):
    scores = torch.einsum("...qd,...kd->...qk", queries, keys)
    return scores.square().mean(), scores.square().mean() / keys.shape[-1]


@unlisted("score_variance")
def _(queries, keys):
    """Two mistakes: standard deviations, and the other way round."""
    scores = queries @ keys.transpose(-2, -1)
    return (scores / keys.shape[-1] ** 0.5).std(), scores.std()


@right("score_variance")
def _(queries, keys):
    scores = queries @ keys.transpose(-2, -1)
    return scores.var(), scores.var() / keys.shape[-1]


# SelfAttention_v1 and SelfAttention_v2


@rewritten("CausalMaskAdded")
class _Causal(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def forward(self, x):
        return F.scaled_dot_product_attention(x @ self.W_query, x @ self.W_key, x @ self.W_value, is_causal=True)


@rewritten("ValueBeforeKey")
class _AnotherOrder(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        for name in ("W_query", "W_value", "W_key"):
            self.register_parameter(name, nn.Parameter(torch.rand(d_in, d_out)))

    def forward(self, x):
        queries, keys, values = (x.matmul(W) for W in (self.W_query, self.W_key, self.W_value))
        weights = queries.mm(keys.t()).mul(keys.size(1) ** -0.5).softmax(1)
        return weights.mm(values)


@both("NormalWeights", "ScoresNotScaled")
class _RandnAndNotScaled(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.randn(d_in, d_out))
        self.W_key = nn.Parameter(torch.randn(d_in, d_out))
        self.W_value = nn.Parameter(torch.randn(d_in, d_out))

    def forward(self, x):
        return torch.softmax(x @ self.W_query @ (x @ self.W_key).T, dim=-1) @ (x @ self.W_value)


@right("SelfAttention_v1")
class _OneParameterAtATime(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Parameter(torch.empty(d_in, d_out).uniform_()) for _ in range(3))
        self.register_buffer("scale", torch.tensor(d_out**-0.5), persistent=False)

    def forward(self, x):
        scores = F.linear(x @ self.W_query, x @ self.W_key) * self.scale
        return torch.einsum("qk,kd->qd", scores.softmax(-1), x @ self.W_value)


@rewritten("LayersValuesDetached")
class _ValuesWithoutGradients(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, qkv_bias)

    def forward(self, x):
        with torch.no_grad():
            values = self.W_value(x)
        weights = F.softmax(self.W_query(x) @ self.W_key(x).T / self.W_key.out_features**0.5, dim=1)
        return weights @ values


@rewritten("LayersContextAndWeights")
class _Both(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.d_out = d_out
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        weights = ((self.W_query(x) / self.d_out**0.5) @ self.W_key(x).transpose(0, 1)).softmax(dim=-1)
        return torch.matmul(weights, self.W_value(x)), weights


@unlisted("SelfAttention_v2")
class _TwoHeads(nn.Module):
    """Two heads where one is asked for."""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        heads = [
            torch.softmax(q @ k.T / k.shape[-1] ** 0.5, dim=-1) @ v
            for q, k, v in zip(
                *(layer(x).chunk(2, dim=-1) for layer in (self.W_query, self.W_key, self.W_value)), strict=True
            )
        ]
        return torch.cat(heads, dim=-1)


@right("SelfAttention_v2")
class _Functional(nn.Module):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        make = lambda: nn.Linear(d_in, d_out, bias=qkv_bias)  # noqa: E731
        self.W_query, self.W_key, self.W_value = make(), make(), make()

    def forward(self, x):
        batch = [layer(x)[None, None] for layer in (self.W_query, self.W_key, self.W_value)]
        return F.scaled_dot_product_attention(*batch)[0, 0]


# copy_weights


@rewritten("storage_shared")
def _(v1, v2):
    for name in ("W_query", "W_key", "W_value"):
        layer = getattr(v2, name)
        layer.weight = nn.Parameter(getattr(v1, name).T)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)


@rewritten("copied_without_transposing")
def _(v1, v2):
    with torch.no_grad():
        for name, matrix in v1.named_parameters():
            getattr(v2, name).weight.copy_(matrix)
            if getattr(v2, name).bias is not None:
                getattr(v2, name).bias.fill_(0)


@both("value_matrix_forgotten", "storage_shared")
def _(v1, v2):
    """Two mistakes: W_value stays as it was, and the others share memory with v1."""
    for layer, matrix in ((v2.W_query, v1.W_query), (v2.W_key, v1.W_key)):
        layer.weight.data = matrix.data.T
        if layer.bias is not None:
            layer.bias.data.zero_()


@unlisted("copy_weights")
def _(v1, v2):
    """The weights of the queries get the other sign."""
    with torch.no_grad():
        for layer, matrix in ((v2.W_query, -v1.W_query), (v2.W_key, v1.W_key), (v2.W_value, v1.W_value)):
            layer.weight.copy_(matrix.T)
            if layer.bias is not None:
                layer.bias.zero_()


@right("copy_weights")
def _(v1, v2):
    for name, matrix in v1.state_dict().items():
        state = {"weight": matrix.T}
        if v2.get_submodule(name).bias is not None:
            state["bias"] = torch.zeros(matrix.shape[1], dtype=matrix.dtype)
        v2.get_submodule(name).load_state_dict(state)
