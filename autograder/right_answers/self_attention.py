"""Unit 2: right answers to self-attention with trainable weights, as different students write them."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from ..catalogue import right_answer

# --- build_vocab ---


@right_answer("build_vocab")
def numbered_in_a_loop(sentence):
    """a loop over the sorted distinct words"""
    words = []
    for word in sentence.split():
        word = word.replace(",", "")
        if word and word not in words:
            words.append(word)
    words.sort()
    vocab = {}
    for word in words:
        vocab[word] = len(vocab)
    return vocab


@right_answer("build_vocab")
def zipped_with_a_range(sentence):
    """zip with a range, and commas dropped by join"""
    words = sorted({*"".join(c for c in sentence if c != ",").split()})
    return dict(zip(words, range(len(words)), strict=True))


# --- encode ---


@right_answer("encode")
def long_tensor_of_map(sentence, vocab):
    """torch.LongTensor of a map"""
    return torch.LongTensor(list(map(vocab.__getitem__, sentence.replace(",", "").split())))


@right_answer("encode")
def key_error_by_hand(sentence, vocab):
    """a KeyError raised by hand, long() at the end"""
    tokens = []
    for word in sentence.translate({ord(","): None}).split():
        if word not in vocab:
            raise KeyError(f"{word} is unknown")
        tokens.append(vocab[word])
    return torch.tensor(tokens).long()


# --- project_qkv ---


@right_answer("project_qkv")
def projected_by_matmul(inputs, W_query, W_key, W_value):
    """torch.matmul in a list"""
    return [torch.matmul(inputs, W) for W in (W_query, W_key, W_value)]


@right_answer("project_qkv")
def fused_and_split(inputs, W_query, W_key, W_value):
    """one fused product, split by width"""
    fused = inputs @ torch.cat((W_query, W_key, W_value), dim=1)
    return fused.split([W_query.shape[1], W_key.shape[1], W_value.shape[1]], dim=1)


@right_answer("project_qkv")
def projected_by_linear(inputs, W_query, W_key, W_value):
    """F.linear with transposed weights"""
    return F.linear(inputs, W_query.T), F.linear(inputs, W_key.T), F.linear(inputs, W_value.T)


# --- linear_projection ---


@right_answer("linear_projection")
def functional_linear(inputs, weight):
    """F.linear"""
    return F.linear(inputs, weight)


@right_answer("linear_projection")
def einsum_projection(inputs, weight):
    """einsum"""
    return torch.einsum("...i,oi->...o", inputs, weight)


@right_answer("linear_projection")
def tensordot_projection(inputs, weight):
    """tensordot"""
    return torch.tensordot(inputs, weight, dims=([-1], [1]))


# --- attention_scores ---


@right_answer("attention_scores")
def einsum_scores(queries, keys):
    """einsum"""
    return torch.einsum("...qd,...kd->...qk", queries, keys)


@right_answer("attention_scores")
def matmul_with_mt(queries, keys):
    """matmul and `.mT`"""
    return torch.matmul(queries, keys.mT)


@right_answer("attention_scores")
def broadcast_products(queries, keys):
    """elementwise products, summed over the width"""
    return (queries.unsqueeze(-2) * keys.unsqueeze(-3)).sum(dim=-1)


@right_answer("attention_scores")
def loop_over_the_keys(queries, keys):
    """a loop with one column of scores for each key"""
    columns = []
    for i in range(keys.shape[-2]):
        columns.append((queries * keys[..., i : i + 1, :]).sum(-1))
    return torch.stack(columns, dim=-1)


@right_answer("attention_scores")
def linear_scores(queries, keys):
    """F.linear in 2-D, bmm after flattening the leading dimensions"""
    if keys.dim() == 2:
        return F.linear(queries, keys)
    flat = torch.bmm(queries.flatten(0, -3), keys.flatten(0, -3).transpose(1, 2))
    return flat.view(*queries.shape[:-1], keys.shape[-2])


@right_answer("attention_scores")
def scores_in_float64(queries, keys):
    """float64 inside, the inputs' dtype outside"""
    return (queries.double() @ keys.double().transpose(-1, -2)).to(queries.dtype)


# --- scaled_softmax ---


@right_answer("scaled_softmax")
def functional_softmax(scores, d_k):
    """F.softmax and math.sqrt"""
    return F.softmax(scores / math.sqrt(d_k), dim=-1)


@right_answer("scaled_softmax")
def softmax_by_hand(scores, d_k):
    """exp and sum after subtracting each row's maximum"""
    scaled = scores * d_k**-0.5
    exponentials = torch.exp(scaled - scaled.max(dim=-1, keepdim=True).values)
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


@right_answer("scaled_softmax")
def root_as_a_tensor(scores, d_k):
    """torch.sqrt of a 0-d tensor, the tensor's own softmax method"""
    return (scores / torch.sqrt(torch.tensor(d_k))).softmax(-1)


@right_answer("scaled_softmax")
def exp_of_log_softmax(scores, d_k):
    """exp of log_softmax"""
    return torch.exp(F.log_softmax(scores / d_k**0.5, dim=-1))


@right_answer("scaled_softmax")
def minus_logsumexp(scores, d_k):
    """logsumexp over the last dimension, counted from the front"""
    scaled = scores / d_k**0.5
    return torch.exp(scaled - torch.logsumexp(scaled, dim=scaled.dim() - 1, keepdim=True))


@right_answer("scaled_softmax")
def softmax_module(scores, d_k):
    """an nn.Softmax module on a scaled copy"""
    scaled = scores.clone()
    scaled /= d_k**0.5
    return nn.Softmax(dim=-1)(scaled)


# --- context_vectors ---


@right_answer("context_vectors")
def einsum_contexts(weights, values):
    """einsum"""
    return torch.einsum("...qk,...kv->...qv", weights, values)


@right_answer("context_vectors")
def weighted_values_summed(weights, values):
    """weighted values, summed over the keys"""
    return (weights.unsqueeze(-1) * values.unsqueeze(-3)).sum(dim=-2)


# --- single_query_attention ---


@right_answer("single_query_attention")
def one_query_as_a_matrix(query, keys, values):
    """the query as a (1, d_k) matrix, squeezed at the end"""
    scores = query.unsqueeze(0) @ keys.T / math.sqrt(keys.size(1))
    return (F.softmax(scores, dim=1) @ values).squeeze(0)


@right_answer("single_query_attention")
def one_query_in_loops(query, keys, values):
    """dot products in a loop, a weighted sum in another"""
    scores = torch.stack([torch.dot(query, key) for key in keys]) / len(query) ** 0.5
    weights = scores.softmax(0)
    return sum(weight * value for weight, value in zip(weights, values, strict=True))


# --- scaled_dot_product_attention ---


@right_answer("scaled_dot_product_attention")
def einsum_attention(queries, keys, values):
    """einsum, queries scaled first"""
    scores = torch.einsum("...qd,...kd->...qk", queries * queries.shape[-1] ** -0.5, keys)
    return torch.einsum("...qk,...kv->...qv", scores.softmax(-1), values)


@right_answer("scaled_dot_product_attention")
def bmm_attention(queries, keys, values):
    """bmm after flattening the leading dimensions, softmax by hand"""
    leading = queries.shape[:-2]
    q, k, v = (t.reshape(-1, *t.shape[-2:]) for t in (queries, keys, values))
    scores = torch.bmm(q, k.transpose(1, 2)).div(math.sqrt(k.shape[-1]))
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    return torch.bmm(weights / weights.sum(-1, keepdim=True), v).view(*leading, q.shape[1], v.shape[2])


@right_answer("scaled_dot_product_attention")
def attention_in_float64(queries, keys, values):
    """float64 inside"""
    q, k, v = queries.double(), keys.double(), values.double()
    return (torch.softmax(q @ k.mT / k.shape[-1] ** 0.5, dim=-1) @ v).type_as(queries)


# --- score_variance ---


@right_answer("score_variance")
def variance_by_hand(queries, keys):
    """the unbiased variance written out"""

    def variance(t):
        return ((t - t.mean()) ** 2).sum() / (t.numel() - 1)

    scores = queries.matmul(keys.mT)
    return variance(scores), variance(scores * keys.shape[-1] ** -0.5)


@right_answer("score_variance")
def variance_divided_by_d_k(queries, keys):
    """the raw variance divided by d_k"""
    raw = torch.var(torch.einsum("...qd,...kd->...qk", queries, keys))
    return raw, raw / keys.shape[-1]


# --- SelfAttention_v1 ---


@right_answer("SelfAttention_v1")
class ScaledQueries(nn.Module):
    """the queries are scaled instead of the scores"""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))
        self.scale = 1.0 / math.sqrt(d_out)

    def forward(self, x):
        queries = torch.matmul(x, self.W_query) * self.scale
        weights = F.softmax(torch.mm(queries, torch.mm(x, self.W_key).t()), dim=1)
        return torch.mm(weights, torch.mm(x, self.W_value))


@right_answer("SelfAttention_v1")
class LibraryAttention(nn.Module):
    """F.scaled_dot_product_attention, which the classes may call"""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query, self.W_key, self.W_value = (nn.Parameter(torch.rand(d_in, d_out)) for _ in range(3))

    def forward(self, x):
        return F.scaled_dot_product_attention(x @ self.W_query, x @ self.W_key, x @ self.W_value)


@right_answer("SelfAttention_v1")
class KeepsItsWeights(nn.Module):
    """the attention weights are kept for a plot"""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))
        self.history = []

    def forward(self, x):
        keys = x @ self.W_key
        self.weights = torch.softmax(x @ self.W_query @ keys.T / keys.shape[-1] ** 0.5, dim=-1)
        self.history.append(self.weights)
        return self.weights @ (x @ self.W_value)


@right_answer("SelfAttention_v1")
class FusedProjection(nn.Module):
    """one product for queries, keys and values; parameters registered by name"""

    def __init__(self, d_in, d_out):
        super().__init__()
        for name in ("W_query", "W_key", "W_value"):
            self.register_parameter(name, nn.Parameter(torch.rand(d_in, d_out)))

    def forward(self, x):
        fused = x @ torch.cat([self.W_query, self.W_key, self.W_value], dim=1)
        queries, keys, values = fused.chunk(3, dim=-1)
        scores = torch.einsum("qd,kd->qk", queries, keys)
        return torch.einsum("qk,kd->qd", (scores / keys.size(1) ** 0.5).softmax(dim=-1), values)


@right_answer("SelfAttention_v1")
class TokenByToken(nn.Module):
    """one query at a time"""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.d_out = d_out
        self.W_query = nn.Parameter(torch.rand(d_in, d_out))
        self.W_key = nn.Parameter(torch.rand(d_in, d_out))
        self.W_value = nn.Parameter(torch.rand(d_in, d_out))

    def attend(self, query, keys, values):
        scores = keys @ query / torch.tensor(self.d_out).sqrt()
        return torch.softmax(scores, dim=0) @ values

    def forward(self, x):
        keys, values = x @ self.W_key, x @ self.W_value
        return torch.stack([self.attend(token @ self.W_query, keys, values) for token in x])


@right_answer("SelfAttention_v1")
class ParametersThroughFunctions(nn.Module):
    """requires_grad_() on the parameters, bmm with a batch of one"""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_query = nn.Parameter(torch.empty(d_in, d_out).uniform_(0, 1)).requires_grad_()
        self.W_key = nn.Parameter(torch.empty(d_in, d_out).uniform_(0, 1))
        self.W_value = nn.Parameter(torch.empty(d_in, d_out).uniform_(0, 1))

    def forward(self, x):
        queries, keys, values = ((x @ w).unsqueeze(0) for w in (self.W_query, self.W_key, self.W_value))
        weights = torch.softmax(torch.bmm(queries, keys.transpose(1, 2)) / keys.shape[2] ** 0.5, dim=2)
        return torch.bmm(weights, values).squeeze(0)


# --- SelfAttention_v2 ---


@right_answer("SelfAttention_v2")
class LibraryAttentionOverLayers(nn.Module):
    """F.scaled_dot_product_attention, which the classes may call"""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, qkv_bias)

    def forward(self, x):
        queries, keys, values = (layer(x)[None] for layer in (self.W_query, self.W_key, self.W_value))
        return F.scaled_dot_product_attention(queries, keys, values)[0]


@right_answer("SelfAttention_v2")
class LayersAppliedByHand(nn.Module):
    """F.linear with the layers' weights and biases"""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        for name in ("W_query", "W_key", "W_value"):
            self.add_module(name, nn.Linear(d_in, d_out, bias=qkv_bias))
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, x):
        queries, keys, values = (F.linear(x, m.weight, m.bias) for m in (self.W_query, self.W_key, self.W_value))
        return self.softmax(queries.mm(keys.t()).mul(keys.shape[-1] ** -0.5)).mm(values)
