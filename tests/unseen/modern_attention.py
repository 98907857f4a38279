"""Attention in models of today, beyond the catalogue: written from the notebook alone, without the hidden tests."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from solutions.latent_cache import LatentCache
from solutions.modern_attention import rms_norm

from . import both, rewritten, right, unlisted

# attention_with_sinks


@right("attention_with_sinks")
def _(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    sinks: torch.Tensor,
) -> torch.Tensor:
    """Loops over the heads; a plain softmax, then each row is scaled by the sigmoid of its logsumexp minus the
    sink.
    """
    b, _h, T, hd = queries.shape
    later = torch.triu(torch.ones(T, T, dtype=torch.bool, device=queries.device), 1)
    heads = []
    for q, k, v, sink in zip(queries.unbind(1), keys.unbind(1), values.unbind(1), sinks.unbind(), strict=True):
        scores = torch.baddbmm(q.new_zeros(b, T, T), q, k.mT, alpha=hd**-0.5)
        scores = scores.masked_fill(later, -torch.inf)
        gate = torch.sigmoid(scores.logsumexp(dim=-1, keepdim=True) - sink)
        heads.append(gate * (scores.softmax(dim=-1) @ v))
    return torch.stack(heads, dim=1)


@right("attention_with_sinks")
def _(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    sinks: torch.Tensor,
) -> torch.Tensor:
    """Running maximum, sum and result over the keys, one key after the other, as in flash attention."""
    T, hd = queries.shape[-2:]
    sink = sinks.unsqueeze(-1)  # (h, 1)
    rows = []
    for i in range(T):
        query = queries[:, :, i]
        peak = total = result = None
        for j in range(i + 1):
            score = (query * keys[:, :, j]).sum(-1, keepdim=True) / math.sqrt(hd)
            if peak is None:
                peak = torch.maximum(score, sink).detach()
                power = torch.exp(score - peak)
                total = power + torch.exp(sink - peak)
                result = power * values[:, :, j]
                continue
            higher = torch.maximum(peak, score).detach()
            shrink, power = torch.exp(peak - higher), torch.exp(score - higher)
            total = total * shrink + power
            result = result * shrink + power * values[:, :, j]
            peak = higher
        rows.append(result / total)
    return torch.stack(rows, dim=2)


@rewritten("weights_normalized_again")
def _(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    sinks: torch.Tensor,
) -> torch.Tensor:
    T, hd = queries.shape[-2:]
    scores = queries @ keys.transpose(-2, -1) / hd**0.5
    later = torch.arange(T, device=scores.device)
    scores = scores.masked_fill(later[None, :] > later[:, None], -torch.inf)
    extra = sinks.reshape(-1, 1, 1).expand_as(scores[..., :1])
    weights = torch.softmax(torch.cat([scores, extra], dim=-1), dim=-1)
    weights = F.normalize(weights[..., :-1], p=1.0, dim=-1)
    return weights @ values


@unlisted("attention_with_sinks", "diagonal_hidden_too")
def _(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    sinks: torch.Tensor,
) -> torch.Tensor:
    """The sink stands in column 0 but the causal mask is not shifted by one, so each query cannot see its own
    token.
    """
    b, h, T, hd = queries.shape
    scores = (queries @ keys.mT) * hd**-0.5
    scores = torch.cat((sinks.view(1, h, 1, 1).expand(b, -1, T, -1), scores), dim=3)
    keep = torch.tril(torch.ones(T, T + 1, device=queries.device)).bool()
    scores = torch.where(keep, scores, float("-inf"))
    probs = scores.softmax(-1)
    return probs[..., 1:] @ values


@rewritten("sinks_detached")
def _(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    sinks: torch.Tensor,
) -> torch.Tensor:
    outputs = []
    for head in range(queries.shape[1]):
        q, k, v = queries[:, head], keys[:, head], values[:, head]
        z = sinks[head].item()
        s = q @ k.mT / math.sqrt(q.shape[-1])
        T = s.shape[-1]
        s = s.masked_fill(torch.ones(T, T, device=s.device).triu(1) == 1, -torch.inf)
        s = F.pad(s, (0, 1), value=z)
        outputs.append(s.softmax(dim=-1)[..., :T] @ v)
    return torch.stack(outputs, dim=1)


@unlisted("attention_with_sinks")
def _(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    sinks: torch.Tensor,
) -> torch.Tensor:
    """Repeat_interleave puts the sinks into the order of sequences within heads, so with two or more sequences
    heads get the sinks of other heads.
    """
    b, h, T, hd = queries.shape
    q, k, v = (t.reshape(b * h, T, hd) for t in (queries, keys, values))
    z = sinks.repeat_interleave(b).unsqueeze(1)  # (b * h, 1)
    s = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(hd)
    s = s + torch.full((T, T), -torch.inf, dtype=s.dtype, device=s.device).triu(1)
    total = torch.logaddexp(torch.logsumexp(s, dim=-1), z)
    out = torch.bmm(torch.exp(s - total[..., None]), v)
    return out.view(b, h, T, hd)


@rewritten("sinks_scaled")
def _(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    sinks: torch.Tensor,
) -> torch.Tensor:
    b, h, T, hd = queries.shape
    raw = torch.einsum("bhqd,bhkd->bhqk", queries, keys)
    future = torch.ones(T, T, dtype=torch.bool, device=queries.device).triu(1)
    raw = raw.masked_fill(future, -torch.inf)
    column = sinks[None, :, None, None].expand(b, h, T, 1)
    logits = torch.cat([raw, column], dim=-1) / math.sqrt(hd)
    alpha = F.softmax(logits, dim=-1)[..., :T]
    return torch.einsum("bhqk,bhkd->bhqd", alpha, values)


@unlisted("attention_with_sinks", "hidden_scores_minus_ten_thousand")
def _(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    sinks: torch.Tensor,
) -> torch.Tensor:
    """Hides later tokens by subtracting 10000, which scores in the thousands can outweigh."""
    _b, h, T, hd = queries.shape
    scores = queries @ keys.mT / hd**0.5
    bias = -1e4 * torch.ones(T, T).to(scores).triu(diagonal=1)
    scores = scores + bias
    z = sinks.view(h, 1, 1)
    peak = torch.maximum(scores.amax(dim=-1, keepdim=True), z).detach()
    powers = (scores - peak).exp()
    alpha = powers / (powers.sum(dim=-1, keepdim=True) + (z - peak).exp())
    return alpha @ values


@unlisted("attention_with_sinks", "sink_without_exponential", "exponentials_without_the_maximum")
def _(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    sinks: torch.Tensor,
) -> torch.Tensor:
    """Two mistakes: the sink itself and not its exponential is added to the denominator, and exponentials of
    large scores overflow to NaN.
    """
    hd = queries.shape[-1]
    above = torch.exp(torch.einsum("bhid,bhjd->bhij", queries, keys) / math.sqrt(hd))
    below = above.cumsum(dim=-1).diagonal(dim1=-2, dim2=-1) + sinks[None, :, None]
    return torch.tril(above) @ values / below.unsqueeze(-1)


@unlisted("attention_with_sinks", "zero_times_a_sink")
def _(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    sinks: torch.Tensor,
) -> torch.Tensor:
    """The sink is multiplied by an indicator of the last column, and 0 times minus infinity is NaN."""
    T, hd = queries.size(-2), queries.size(-1)
    scores = torch.matmul(queries, keys.transpose(-1, -2)).div(hd**0.5)
    column = torch.arange(T + 1, device=scores.device)
    is_sink = (column == T).to(scores.dtype)
    logits = F.pad(scores, (0, 1)) + sinks[:, None, None] * is_sink
    hidden = (column[None, :] > column[:T, None]) & (column < T)
    logits = logits.masked_fill(hidden, -torch.inf)
    return torch.softmax(logits, dim=-1).narrow(-1, 0, T) @ values


@right("attention_with_sinks")
def _(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    sinks: torch.Tensor,
) -> torch.Tensor:
    """A further token with a value of zeros carries the sink, float64 inside, torch.where for the mask."""
    b, h, T, hd = queries.shape
    q, k, v = (t.double() for t in (queries, keys, values))
    scores = torch.einsum("bhid,bhjd->bhij", q, k) / hd**0.5
    place = torch.arange(T, device=q.device)
    scores = torch.where(place[:, None] >= place, scores, -torch.inf)
    column = sinks.double().reshape(1, h, 1, 1).expand(b, h, T, 1)
    weights = torch.log_softmax(torch.cat([column, scores], dim=-1), dim=-1).exp()
    v = torch.cat([v.new_zeros(b, h, 1, hd), v], dim=2)
    return (weights @ v).to(queries.dtype)


# document_mask


@right("document_mask")
def _(documents: torch.Tensor) -> torch.Tensor:
    """Starts with everything hidden and opens row by row, slices only."""
    b, T = documents.shape
    hidden = torch.full((b, T, T), True, device=documents.device)
    for i in range(T):
        hidden[:, i, : i + 1] = documents[:, : i + 1] != documents[:, i : i + 1]
    return hidden


@unlisted("document_mask")
def _(documents: torch.Tensor) -> torch.Tensor:
    """Float32 cannot tell neighbouring whole numbers above 16777216 apart, so large different documents count
    as one.
    """
    T = documents.size(1)
    points = documents.unsqueeze(-1).float()
    gap = torch.cdist(points, points, p=1)
    foreign = gap > 0.5
    return foreign.logical_or(torch.ones(T, T, device=documents.device).triu(1).bool())


@right("document_mask")
def _(documents: torch.Tensor) -> torch.Tensor:
    """Membership of each token as one-hot rows by torch.unique, their product counts shared documents."""
    _, number = torch.unique(documents, return_inverse=True)
    member = F.one_hot(number).to(torch.float64)
    together = torch.bmm(member, member.mT)
    return torch.tril(together) < 0.5


@unlisted("document_mask")
def _(documents: torch.Tensor) -> torch.Tensor:
    """Compares the product of two numbers with a square, so a query of document 0 sees every document."""
    outer = torch.einsum("bi,bj->bij", documents, documents)
    same = outer == documents.unsqueeze(2) ** 2
    place = torch.arange(documents.shape[-1], device=documents.device)
    return torch.logical_not(same & (place[:, None] >= place[None, :]))


@rewritten("only_neighbours_count")
def _(documents: torch.Tensor) -> torch.Tensor:
    changes = documents[:, 1:] != documents[:, :-1]
    runs = F.pad(changes.long(), (1, 0)).cumsum(dim=1)
    same = runs.unsqueeze(2) == runs.unsqueeze(1)
    causal = torch.tril(torch.ones_like(same))
    return ~(same & causal)


@unlisted("document_mask", "mask_of_numbers", "itself_hidden")
def _(documents: torch.Tensor) -> torch.Tensor:
    """Two mistakes: the mask is made of whole numbers and not of bools, and each token is hidden from itself."""
    b, T = documents.shape
    mask = torch.zeros(b, T, T, dtype=torch.long, device=documents.device)
    for n, row in enumerate(documents.tolist()):
        for i in range(T):
            for j in range(T):
                if j >= i or row[i] != row[j]:
                    mask[n, i, j] = 1
    return mask


@right("document_mask")
def _(documents: torch.Tensor) -> torch.Tensor:
    """Torch.where between the comparison and True, positions by a cumulative sum."""
    place = torch.ones_like(documents, dtype=torch.long).cumsum(dim=1)
    later = place[:, None, :] > place[:, :, None]
    other = torch.ne(documents[:, :, None], documents[:, None, :])
    return torch.where(later, torch.ones_like(later), other)


@unlisted("document_mask", "zero_is_padding")
def _(documents: torch.Tensor) -> torch.Tensor:
    """Takes the number 0 for padding and hides its tokens, although 0 is a document as any other."""
    b, T = documents.shape
    hidden = torch.ones((T, T), dtype=torch.bool, device=documents.device).triu_(1)
    hidden = hidden.expand(b, T, T).logical_or(documents[:, :, None].ne(documents[:, None, :]))
    return hidden.logical_or(documents.eq(0)[:, None, :])


# qk_norm_scores


@right("qk_norm_scores")
def _(
    queries: torch.Tensor,
    keys: torch.Tensor,
    query_weight: torch.Tensor,
    key_weight: torch.Tensor,
    eps: float = 1e-6,
) -> torch.Tensor:
    """Double precision, unit vectors by hypot-like lengths that contain eps, scale hd ** 0.5 in place of hd **
    -0.5.
    """
    hd = queries.shape[-1]

    def unit(t, w):
        t = t.double()
        return t / (t.pow(2).sum(dim=-1, keepdim=True) + hd * eps).sqrt() * w.double()

    cosines = torch.matmul(unit(queries, query_weight), unit(keys, key_weight).mT)
    return (cosines * hd**0.5).type_as(queries)


@rewritten("eps_not_passed_on")
def _(
    queries: torch.Tensor,
    keys: torch.Tensor,
    query_weight: torch.Tensor,
    key_weight: torch.Tensor,
    eps: float = 1e-6,
) -> torch.Tensor:
    pairs = [(queries, query_weight), (keys, key_weight)]
    q, k = (rms_norm(t, w) for t, w in pairs)
    return torch.einsum("...qd,...kd->...qk", q, k).div(math.sqrt(queries.size(-1)))


@right("qk_norm_scores")
def _(
    queries: torch.Tensor,
    keys: torch.Tensor,
    query_weight: torch.Tensor,
    key_weight: torch.Tensor,
    eps: float = 1e-6,
) -> torch.Tensor:
    """The product of both weights goes to the queries only, one rsqrt for each query and key is applied to the
    raw scores in turn.
    """
    hd = queries.shape[-1]
    inverse_q = torch.rsqrt(queries.square().mean(-1) + eps)
    inverse_k = torch.rsqrt(keys.square().mean(-1) + eps)
    q = queries * inverse_q.unsqueeze(-1) * (query_weight * key_weight)
    scores = torch.einsum("...ih,...jh->...ij", q, keys)
    return scores * inverse_k.unsqueeze(-2) * hd**-0.5


@right("qk_norm_scores")
def _(
    queries: torch.Tensor,
    keys: torch.Tensor,
    query_weight: torch.Tensor,
    key_weight: torch.Tensor,
    eps: float = 1e-6,
) -> torch.Tensor:
    """Loops over the keys, multiplies and sums element by element, stacks the columns."""
    q = rms_norm(queries, query_weight, eps)
    columns = []
    for j in range(keys.shape[-2]):
        key = rms_norm(keys[..., j, :], key_weight, eps)
        columns.append((q * key.unsqueeze(-2)).sum(dim=-1))
    return torch.stack(columns, dim=-1) / math.sqrt(queries.shape[-1])


@unlisted("qk_norm_scores", "norm_over_the_tokens")
def _(
    queries: torch.Tensor,
    keys: torch.Tensor,
    query_weight: torch.Tensor,
    key_weight: torch.Tensor,
    eps: float = 1e-6,
) -> torch.Tensor:
    """The mean square is taken over the tokens (dim -2), not over the elements of each vector."""

    def normalize(t: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        mean_square = t.square().mean(dim=-2, keepdim=True)
        return t * torch.rsqrt(mean_square + eps) * w

    q_hat = normalize(queries, query_weight)
    k_hat = normalize(keys, key_weight)
    return q_hat @ k_hat.mT / math.sqrt(q_hat.shape[-1])


@unlisted("qk_norm_scores")
def _(
    queries: torch.Tensor,
    keys: torch.Tensor,
    query_weight: torch.Tensor,
    key_weight: torch.Tensor,
    eps: float = 1e-6,
) -> torch.Tensor:
    """The keys are reshaped to (..., hd, Tk), not transposed, which mixes the elements of different keys."""
    q = rms_norm(queries, query_weight, eps)
    k = rms_norm(keys, key_weight, eps)
    k = k.reshape(*k.shape[:-2], k.shape[-1], k.shape[-2])
    scale = queries.shape[-1] ** -0.5
    return q @ k * scale


@rewritten("divided_by_hd")
def _(
    queries: torch.Tensor,
    keys: torch.Tensor,
    query_weight: torch.Tensor,
    key_weight: torch.Tensor,
    eps: float = 1e-6,
) -> torch.Tensor:
    hd = queries.shape[-1]
    scale = 1.0 / hd**0.5
    q = rms_norm(queries, query_weight, eps=eps) * scale
    k = rms_norm(keys, key_weight, eps=eps) * scale
    return torch.matmul(q, k.swapaxes(-2, -1))


@unlisted("qk_norm_scores", "unit_length")
def _(
    queries: torch.Tensor,
    keys: torch.Tensor,
    query_weight: torch.Tensor,
    key_weight: torch.Tensor,
    eps: float = 1e-6,
) -> torch.Tensor:
    """Two mistakes: the key weights are never used, and eps is added to the lengths, not to the mean squares."""
    hd = queries.shape[-1]
    products = torch.matmul(queries * query_weight, keys.transpose(-1, -2))
    lengths = queries.norm(dim=-1)[..., :, None] * keys.norm(dim=-1)[..., None, :] + eps
    return products / lengths * math.sqrt(hd)


@unlisted("qk_norm_scores", "weights_before_the_norm")
def _(
    queries: torch.Tensor,
    keys: torch.Tensor,
    query_weight: torch.Tensor,
    key_weight: torch.Tensor,
    eps: float = 1e-6,
) -> torch.Tensor:
    """The weights scale the queries and keys before the normalization, which undoes most of what they do."""
    ones = torch.ones_like(query_weight)
    q = rms_norm(queries * query_weight, ones, eps)
    k = rms_norm(keys * key_weight, ones, eps)
    rows = [(q[..., i, None, :] * k).sum(dim=-1) for i in range(q.shape[-2])]
    return torch.stack(rows, dim=-2) / q.shape[-1] ** 0.5


# rms_norm


@unlisted("rms_norm", "divided_in_place")
def _(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """For float32 x, x.float() is x itself, so the in-place products overwrite the input (with a gradient
    wanted it raises: forward if x is a leaf, else in backward).
    """
    out = x if x.dtype == torch.float64 else x.float()
    inv = torch.rsqrt(torch.mean(torch.square(out), dim=-1, keepdim=True) + eps)
    out.mul_(inv)
    return (out * weight).to(x.dtype)


@unlisted("rms_norm", "always_in_float32")
def _(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """Float64 inputs are computed in float32, too, so they lose half of their digits."""
    in_dtype = x.dtype
    x32 = x.to(torch.float32)
    variance = x32.pow(2).mean(-1, keepdim=True)
    x32 = x32 * torch.rsqrt(variance + eps)
    return (weight.to(torch.float32) * x32).to(in_dtype)


@rewritten("eps_outside_the_root")
def _(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    h = x if x.dtype in (torch.float32, torch.float64) else x.to(torch.float32)
    d = h.shape[-1]
    rms = torch.sqrt(torch.einsum("...i,...i->...", h, h) / d) + eps
    return (h / rms[..., None] * weight).to(x.dtype)


@rewritten("sum_of_squares")
def _(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    unit = F.normalize(wide, p=2.0, dim=-1, eps=eps)
    return (unit * weight).to(x.dtype)


@right("rms_norm")
def _(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """Double precision inside, einsum for the sum of squares, converted back at the end."""
    wide = x.double()
    total = torch.einsum("...d,...d->...", wide, wide)
    root = (total / x.shape[-1] + eps) ** 0.5
    return torch.einsum("...d,...,d->...d", wide, 1 / root, weight.double()).to(x.dtype)


@right("rms_norm")
def _(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """F.rms_norm of the library, with all arguments and in a wide precision."""
    dtype = x.dtype
    if dtype in (torch.float16, torch.bfloat16):
        x = x.float()
    y = F.rms_norm(x, normalized_shape=[x.shape[-1]], weight=weight.to(x.dtype), eps=eps)
    return y.to(dtype)


@right("rms_norm")
def _(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """The weight multiplies after the conversion."""

    def _norm(t):
        return t * torch.rsqrt(t.pow(2).mean(-1, keepdim=True) + eps)

    normed = _norm(x.double() if x.dtype == torch.float64 else x.float())
    return weight * normed.type_as(x)


@rewritten("weight_one_too_large")
def _(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    out = x if x.dtype == torch.float64 else x.float()
    out = out / (out**2).mean(dim=-1, keepdim=True).add(eps).sqrt()
    out = out * (1.0 + weight.to(out.dtype))
    return out.type_as(x)


@right("rms_norm")
def _(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """Loops over the vectors one by one, promote_types for the working precision, torch.stack and reshape."""
    working = torch.promote_types(x.dtype, torch.float32)
    scale = weight.to(working)
    rows = []
    for vector in x.reshape(-1, x.shape[-1]):
        vector = vector.to(working)
        mean_square = vector.dot(vector) / len(vector)
        rows.append(scale * vector / torch.sqrt(mean_square + eps))
    if not rows:
        return x.clone()
    return torch.stack(rows).reshape(x.shape).to(x.dtype)


@rewritten("root_detached")
def _(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    compute = torch.promote_types(x.dtype, torch.float32)
    y = x.to(compute)
    with torch.no_grad():
        size = y.square().mean(dim=-1, keepdim=True).add(eps).sqrt()
    y = torch.div(y, size)
    return torch.mul(y, weight.to(compute)).to(x.dtype)


@unlisted("rms_norm", "result_left_in_float32", "eps_ignored")
def _(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """Two mistakes: eps is not handed to F.rms_norm, and the result of half-precision x stays float32."""
    if x.dtype in {torch.half, torch.bfloat16}:
        x, weight = x.float(), weight.float()
    return F.rms_norm(x, (x.size(-1),), weight)


# half_precision_attention


@right("half_precision_attention")
def _(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Key by key with a running maximum, in float32."""
    kind = torch.float64 if queries.dtype is torch.float64 else torch.float32
    q = queries.to(kind) / math.sqrt(queries.shape[-1])
    top = q.new_full((*q.shape[:-1], 1), -torch.inf)
    total, blend = torch.zeros_like(top), torch.zeros_like(top) * values.to(kind)[..., :1, :]
    for k, v in zip(keys.to(kind).unbind(-2), values.to(kind).unbind(-2), strict=True):
        score = (q * k.unsqueeze(-2)).sum(-1, keepdim=True)
        larger = torch.maximum(top, score)
        shrink, power = torch.exp(top - larger), torch.exp(score - larger)
        total, blend, top = total * shrink + power, blend * shrink + power * v.unsqueeze(-2), larger
    return (blend / total).to(queries.dtype)


@right("half_precision_attention")
def _(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Powers of two, with log2(e) in the scale."""
    target = values.dtype
    if torch.finfo(target).bits < 32:
        queries, keys, values = queries.float(), keys.float(), values.float()
    logits = (queries * (math.log2(math.e) * keys.size(-1) ** -0.5)).matmul(keys.transpose(-1, -2))
    powers = torch.exp2(logits - logits.amax(-1, keepdim=True))
    return powers.div(powers.sum(-1, keepdim=True)).matmul(values).type(target)


@rewritten("everything_in_half")
def _(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    scores = torch.matmul(queries, keys.transpose(-2, -1))
    scores = scores / math.sqrt(keys.size(-1))
    return torch.matmul(F.softmax(scores, dim=-1), values)


@rewritten("product_and_scale_in_half")
def _(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    scores = (queries @ keys.mT) / queries.shape[-1] ** 0.5
    if queries.dtype in (torch.float16, torch.bfloat16):
        return (scores.float().softmax(dim=-1) @ values.float()).to(queries.dtype)
    return scores.softmax(dim=-1) @ values


@rewritten("weights_in_half")
def _(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    q, k = (x.float() if x.dtype != torch.float64 else x for x in (queries, keys))
    weights = F.softmax(q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5, dim=-1)
    return weights.type_as(values) @ values


@rewritten("queries_scaled_in_half")
def _(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    queries = queries / math.sqrt(queries.shape[-1])
    q, k, v = (x if x.dtype == torch.float64 else x.float() for x in (queries, keys, values))
    return (torch.softmax(q @ k.mT, dim=-1) @ v).to(values.dtype)


@rewritten("float64_lowered")
def _(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    q, k, v = queries.float(), keys.float(), values.float()
    return torch.softmax(q @ k.mT / math.sqrt(q.size(-1)), dim=-1).matmul(v).to(queries.dtype)


@both("result_left_wide", "float64_lowered")
def _(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Two mistakes: everything is float32, and so is the result."""
    q, k, v = queries.float(), keys.float(), values.float()
    return torch.softmax(q @ k.mT / math.sqrt(q.size(-1)), dim=-1) @ v


# softcap


@rewritten("tanh_from_exponentials")
def _(scores: torch.Tensor, cap: float) -> torch.Tensor:
    ratio = scores / cap
    up, down = torch.exp(ratio), torch.exp(-ratio)
    return cap * (up - down) / (up + down)


@right("softcap")
def _(scores: torch.Tensor, cap: float) -> torch.Tensor:
    """Expm1 and exp of a clamped ratio, beyond 20 tanh is 1 in either precision."""
    twice = 2 * torch.clamp(scores / cap, min=-20.0, max=20.0)
    return torch.expm1(twice) / (torch.exp(twice) + 1) * cap


@rewritten("scores_bent_in_place")
def _(scores: torch.Tensor, cap: float) -> torch.Tensor:
    return scores.div_(cap).tanh_().mul_(cap)


@rewritten("only_large_scores_capped")
def _(scores: torch.Tensor, cap: float) -> torch.Tensor:
    bent = cap * torch.tanh(scores / cap)
    return torch.where(scores.abs() < cap, scores, bent)


@right("softcap")
def _(scores: torch.Tensor, cap: float) -> torch.Tensor:
    """Tanh by the sigmoid of twice the ratio, in double precision, converted back."""
    gate = torch.sigmoid(2.0 * scores.double() / cap)
    return (cap * (gate - (1.0 - gate))).to(scores.dtype)


@unlisted("softcap", "sigmoid_without_the_factor")
def _(scores: torch.Tensor, cap: float) -> torch.Tensor:
    """Tanh(u) is 2 sigmoid(2u) - 1, here the 2 in the sigmoid is missing, so small scores are halved."""
    u = torch.true_divide(scores, cap)
    squashed = torch.sigmoid(u).mul(2).sub(1)
    return cap * squashed


@right("softcap")
def _(scores: torch.Tensor, cap: float) -> torch.Tensor:
    """The cap as a tensor that looks like the scores, method calls only."""
    ceiling = scores.new_tensor(float(cap))
    return scores.div(ceiling).tanh().mul(ceiling)


@unlisted("softcap")
def _(scores: torch.Tensor, cap: float) -> torch.Tensor:
    """Two mistakes: numbers taken out with tolist lose the gradient, and float64 scores come back as float32."""
    capped = []
    for s in scores.flatten().tolist():
        capped.append(cap * math.tanh(s / cap))
    return torch.tensor(capped).reshape(scores.shape)


# swiglu


@rewritten("silu_from_exponentials")
def _(
    x: torch.Tensor,
    W_gate: torch.Tensor,
    W_up: torch.Tensor,
    W_down: torch.Tensor,
) -> torch.Tensor:
    g = torch.einsum("...d,fd->...f", x, W_gate)
    u = torch.einsum("...d,fd->...f", x, W_up)
    act = g * torch.exp(g) / (1 + torch.exp(g))
    return torch.einsum("...f,df->...d", act * u, W_down)


@right("swiglu")
def _(
    x: torch.Tensor,
    W_gate: torch.Tensor,
    W_up: torch.Tensor,
    W_down: torch.Tensor,
) -> torch.Tensor:
    """F.glu with the gate in both roles: gate times the sigmoid of the gate, F.linear for the projections."""
    gate = F.linear(x, W_gate)
    silu = F.glu(torch.cat([gate, gate], dim=-1), dim=-1)
    return F.linear(silu.mul(F.linear(x, W_up)), W_down)


@unlisted("swiglu")
def _(
    x: torch.Tensor,
    W_gate: torch.Tensor,
    W_up: torch.Tensor,
    W_down: torch.Tensor,
) -> torch.Tensor:
    """Decides by the shape whether to transpose, so square matrices (f equal to d) are not transposed."""

    def project(t, W):
        return t @ W if W.shape[0] == t.shape[-1] else t @ W.T

    gate, up = project(x, W_gate), project(x, W_up)
    return project(F.silu(gate) * up, W_down)


@rewritten("silu_after_the_product")
def _(
    x: torch.Tensor,
    W_gate: torch.Tensor,
    W_up: torch.Tensor,
    W_down: torch.Tensor,
) -> torch.Tensor:
    hidden = []
    for g, u in zip(W_gate, W_up, strict=False):
        hidden.append(F.silu(torch.mul(x @ g, x @ u)))
    return F.linear(torch.stack(hidden, dim=-1), W_down)


@right("swiglu")
def _(
    x: torch.Tensor,
    W_gate: torch.Tensor,
    W_up: torch.Tensor,
    W_down: torch.Tensor,
) -> torch.Tensor:
    """Float64 inside, SiLU by the tanh of half the gate, einsum for all three projections."""
    x64, gate64, up64, down64 = (t.double() for t in (x, W_gate, W_up, W_down))
    gate, up = torch.einsum("...d,gfd->g...f", x64, torch.stack([gate64, up64]))
    hidden = 0.5 * gate * (1 + torch.tanh(0.5 * gate)) * up
    return torch.einsum("...f,df->...d", hidden, down64).type_as(x)


@unlisted("swiglu", "sigmoid_gate", "gate_and_up_swapped")
def _(
    x: torch.Tensor,
    W_gate: torch.Tensor,
    W_up: torch.Tensor,
    W_down: torch.Tensor,
) -> torch.Tensor:
    """Two mistakes: F.glu takes a sigmoid, not SiLU, and takes it of the second half, which here is W_up and
    not the gate.
    """
    both = F.linear(x, torch.cat([W_gate, W_up], dim=0))
    hidden = F.glu(both, dim=-1)
    return F.linear(hidden, W_down)


@right("swiglu")
def _(
    x: torch.Tensor,
    W_gate: torch.Tensor,
    W_up: torch.Tensor,
    W_down: torch.Tensor,
) -> torch.Tensor:
    """Loops over the f hidden units and sums their contributions."""
    out = torch.zeros_like(x)
    for gate_row, up_row, down_column in zip(W_gate, W_up, W_down.T, strict=True):
        gate = (x * gate_row).sum(dim=-1, keepdim=True)
        up = (x * up_row).sum(dim=-1, keepdim=True)
        out = out + gate * torch.sigmoid(gate) * up * down_column
    return out


# absorbed_scores


@rewritten("absorbed_scores_scaled")
def _(queries, latents, up_key):
    hd = queries.shape[-1]
    absorbed = queries @ up_key
    return absorbed @ latents[:, None].mT / math.sqrt(hd)


@rewritten("keys_made")
def _(queries, latents, up_key):
    keys = torch.einsum("btr,hdr->bhtd", latents, up_key)
    return torch.einsum("bhqd,bhtd->bhqt", queries, keys)


@rewritten("sequences_taken_for_heads")
def _(queries, latents, up_key):
    absorbed = queries @ up_key  # (b, h, Tq, r)
    return absorbed @ latents.transpose(-2, -1)


@unlisted("absorbed_scores")
def _(queries, latents, up_key):
    """Heads and queries are merged for the product and not put back in order."""
    b, h, Tq, hd = queries.shape
    r = latents.shape[-1]
    q = queries.transpose(1, 2).reshape(b * Tq, h, 1, hd)
    absorbed = (q @ up_key).squeeze(2)  # (b * Tq, h, r)
    absorbed = absorbed.reshape(b, h, Tq, r)
    return absorbed @ latents.unsqueeze(1).mT


@unlisted("absorbed_scores")
def _(queries, latents, up_key):
    """`repeat` in place of `repeat_interleave`: latents meet the wrong sequence if b > 1 and h > 1."""
    b, h, _Tq, _hd = queries.shape
    _, T, r = latents.shape
    # the same latents for every head
    latents = latents.repeat(h, 1, 1).view(b, h, T, r)
    return (queries @ up_key) @ latents.transpose(2, 3)


@rewritten("only_the_first_query")
def _(queries, latents, up_key):
    q = queries[:, :, 0]  # one step has one query
    absorbed = (q[..., None] * up_key).sum(dim=2)  # (b, h, r)
    scores = absorbed @ latents.mT  # (b, h, T)
    return scores[:, :, None]


@unlisted("absorbed_scores", "scaled_by_the_latents", "keys_made_head_by_head")
def _(queries, latents, up_key):
    """Two mistakes: the keys are made head by head, and scores are divided by sqrt(r)."""
    r = latents.shape[-1]
    scores = []
    for i in range(queries.shape[1]):
        keys = latents @ up_key[i].T  # (b, T, hd)
        scores.append(queries[:, i] @ keys.transpose(1, 2))
    return torch.stack(scores, dim=1) / r**0.5


@unlisted("absorbed_scores", "absorbed_in_float32", "up_key_detached")
def _(queries, latents, up_key):
    """Two mistakes: scores are float32 for float64 inputs, and up_key gets no gradient."""
    b, h, Tq, _ = queries.shape
    T = latents.shape[1]
    scores = torch.zeros(b, h, Tq, T)
    matrices = up_key.detach()
    for n in range(b):
        for i in range(h):
            scores[n, i] = queries[n, i] @ matrices[i] @ latents[n].T
    return scores


@right("absorbed_scores")
def _(queries, latents, up_key):
    """Broadcast matmul."""
    absorbed = torch.matmul(queries, up_key)  # (b, h, Tq, r)
    return torch.matmul(absorbed, latents.unsqueeze(1).transpose(-2, -1))


@right("absorbed_scores")
def _(
    queries: torch.Tensor,
    latents: torch.Tensor,
    up_key: torch.Tensor,
) -> torch.Tensor:
    """Two einsums."""
    moved = torch.einsum("bhqd,hdr->bhqr", queries, up_key)
    return torch.einsum("bhqr,btr->bhqt", moved, latents)


@right("absorbed_scores")
def _(queries, latents, up_key):
    """Loops over sequences and heads."""
    sequences = []
    for q, c in zip(queries, latents, strict=False):
        heads = [(c @ (u.T @ one.T)).T for one, u in zip(q, up_key, strict=False)]
        sequences.append(torch.stack(heads))
    return torch.stack(sequences)


@right("absorbed_scores")
def _(queries, latents, up_key):
    """Heads and queries as rows of one matrix, by `bmm`."""
    b, h, Tq, hd = queries.shape
    r = up_key.size(2)
    by_head = queries.permute(1, 0, 2, 3).reshape(h, b * Tq, hd)
    absorbed = torch.bmm(by_head, up_key).view(h, b, Tq, r)
    rows = absorbed.permute(1, 0, 2, 3).reshape(b, h * Tq, r)
    return torch.bmm(rows, latents.mT).view(b, h, Tq, -1)


@right("absorbed_scores")
def _(queries, latents, up_key):
    """A copy of the latents for each head."""
    copies = latents[:, None].repeat(1, queries.shape[1], 1, 1)
    return (queries @ up_key) @ copies.transpose(-2, -1)


@right("absorbed_scores")
def _(queries, latents, up_key):
    """Makes the keys if there are several queries."""
    if queries.shape[2] > 1:
        keys = latents[:, None] @ up_key.mT
        return queries @ keys.mT
    return (queries @ up_key) @ latents[:, None].mT


# LatentAttention


@rewritten("LatentMaskNotMoved")
class MaskAtTheUpperLeft(nn.Module):
    def __init__(self, d_in, d_out, num_heads, latent_dim):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads = num_heads
        self.hd = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_latent = nn.Linear(d_in, latent_dim, bias=False)
        self.W_up_key = nn.Linear(latent_dim, d_out, bias=False)
        self.W_up_value = nn.Linear(latent_dim, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def split(self, x):
        b, T, _ = x.shape
        return x.view(b, T, self.num_heads, self.hd).transpose(1, 2)

    def forward(self, x, cache=None):
        latents = self.W_latent(x)
        if cache is not None:
            cache.append(latents)
            latents = cache.latents
        q = self.split(self.W_query(x))
        k = self.split(self.W_up_key(latents))
        v = self.split(self.W_up_value(latents))
        context = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out_proj(context.transpose(1, 2).flatten(2))


@rewritten("LatentNothingHiddenWithACache")
class NothingHiddenInSteps(nn.Module):
    def __init__(self, d_in, d_out, num_heads, latent_dim):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out % num_heads")
        self.h, self.hd = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_latent = nn.Linear(d_in, latent_dim, bias=False)
        self.W_up_key = nn.Linear(latent_dim, d_out, bias=False)
        self.W_up_value = nn.Linear(latent_dim, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, cache=None):
        b, t, _ = x.shape
        q = self.W_query(x).view(b, t, self.h, self.hd).transpose(1, 2)
        latents = self.W_latent(x)
        if cache is not None:
            cache.append(latents)
            latents = cache.latents
        T = latents.shape[1]
        k = self.W_up_key(latents).view(b, T, self.h, self.hd).transpose(1, 2)
        v = self.W_up_value(latents).view(b, T, self.h, self.hd).transpose(1, 2)
        scores = q @ k.mT / self.hd**0.5
        if cache is None:  # cached tokens are all earlier ones
            hidden = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(hidden, -torch.inf)
        context = scores.softmax(dim=-1) @ v
        return self.out_proj(context.transpose(1, 2).reshape(b, t, -1))


@rewritten("AppendsDetachedLatents")
class DetachedOnTheWayIn(nn.Module):
    def __init__(self, d_in, d_out, num_heads, latent_dim):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_latent = nn.Linear(d_in, latent_dim, bias=False)
        self.W_up_key = nn.Linear(latent_dim, d_out, bias=False)
        self.W_up_value = nn.Linear(latent_dim, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out, bias=True)

    def forward(self, x, cache=None):
        _b, t, _ = x.shape
        new = self.W_latent(x)
        latents, n = new, 0
        if cache is not None:
            if cache.latents is not None:
                n = cache.latents.shape[1]
                latents = torch.cat([cache.latents, new], dim=1)
            cache.append(new.detach())

        def heads(y):
            return y.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

        q, k, v = heads(self.W_query(x)), heads(self.W_up_key(latents)), heads(self.W_up_value(latents))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        hidden = torch.ones(t, n + t, dtype=torch.bool, device=x.device).triu(n + 1)
        weights = torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1)
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2))


@rewritten("LatentKeysSplitByReshape")
class ViewedWithoutSwapping(nn.Module):
    def __init__(self, d_in, d_out, num_heads, latent_dim):
        super().__init__()
        assert d_out % num_heads == 0
        self.num_heads, self.head_dim = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_latent = nn.Linear(d_in, latent_dim, bias=False)
        self.W_up_key = nn.Linear(latent_dim, d_out, bias=False)
        self.W_up_value = nn.Linear(latent_dim, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, cache=None):
        b, t, _ = x.shape
        q = self.W_query(x).view(b, t, self.num_heads, self.head_dim).transpose(1, 2)
        latents = self.W_latent(x)
        if cache is not None:
            cache.append(latents)
            latents = cache.latents
        total = latents.size(1)
        k = self.W_up_key(latents).view(b, self.num_heads, total, self.head_dim)
        v = self.W_up_value(latents).view(b, self.num_heads, total, self.head_dim)
        rows = torch.arange(total - t, total, device=x.device)
        hidden = torch.arange(total, device=x.device) > rows[:, None]
        scores = (q @ k.mT / self.head_dim**0.5).masked_fill(hidden, -torch.inf)
        context = scores.softmax(-1) @ v
        return self.out_proj(context.transpose(1, 2).reshape(b, t, -1))


@rewritten("LatentMaskOfFixedSize")
class MaskOfSoManyTokens(nn.Module):
    def __init__(self, d_in, d_out, num_heads, latent_dim):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.d_out = d_out
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_latent = nn.Linear(d_in, latent_dim, bias=False)
        self.W_up_key = nn.Linear(latent_dim, d_out, bias=False)
        self.W_up_value = nn.Linear(latent_dim, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        mask = torch.triu(torch.ones(1024, 1024), diagonal=1).bool()
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x, cache=None):
        b, t, _ = x.shape
        latents = self.W_latent(x)
        if cache is not None:
            cache.append(latents)
            latents = cache.latents
        T = latents.shape[1]
        queries = self.W_query(x).view(b, t, self.num_heads, self.head_dim)
        keys = self.W_up_key(latents).view(b, T, self.num_heads, self.head_dim)
        values = self.W_up_value(latents).view(b, T, self.num_heads, self.head_dim)
        scores = queries.transpose(1, 2) @ keys.permute(0, 2, 3, 1)
        scores = scores / self.head_dim**0.5
        scores = scores.masked_fill(self.mask[T - t : T, :T], -torch.inf)
        weights = torch.softmax(scores, dim=-1)
        context = (weights @ values.transpose(1, 2)).transpose(1, 2)
        return self.out_proj(context.contiguous().view(b, t, self.d_out))


@rewritten("LatentCacheOfTheModule")
class FallsBackOnItsOwnCache(nn.Module):
    def __init__(self, d_in, d_out, num_heads, latent_dim):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("no whole number")
        self.h = num_heads
        self.hd = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_latent = nn.Linear(d_in, latent_dim, bias=False)
        self.W_up_key = nn.Linear(latent_dim, d_out, bias=False)
        self.W_up_value = nn.Linear(latent_dim, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.cache = LatentCache()

    def forward(self, x, cache=None):
        cache = cache or self.cache
        b, t, _ = x.shape
        cache.append(self.W_latent(x))
        c = cache.latents
        n = c.shape[1] - t
        q = self.W_query(x).view(b, t, self.h, self.hd).transpose(1, 2)
        k = self.W_up_key(c).view(b, n + t, self.h, self.hd).transpose(1, 2)
        v = self.W_up_value(c).view(b, n + t, self.h, self.hd).transpose(1, 2)
        seen = torch.ones(t, n + t, dtype=torch.bool, device=x.device).tril(n)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return self.out_proj(out.transpose(1, 2).reshape(b, t, -1))


@unlisted("LatentAttention", "LatentLayersInAnotherOrder", "LatentAcceptsAnyWidth")
class LatentLayerLastAndNoError(nn.Module):
    """Two mistakes: W_latent is created last, and a d_out that num_heads does not divide raises nothing."""

    def __init__(self, d_in, d_out, num_heads, latent_dim):
        super().__init__()
        self.num_heads = num_heads
        self.hd = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_up_key = nn.Linear(latent_dim, d_out, bias=False)
        self.W_up_value = nn.Linear(latent_dim, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.W_latent = nn.Linear(d_in, latent_dim, bias=False)

    def forward(self, x, cache=None):
        b, t, _ = x.shape
        latents = self.W_latent(x)
        if cache is not None:
            cache.append(latents)
            latents = cache.latents
        n = latents.shape[1] - t
        q = self.W_query(x).reshape(b, t, self.num_heads, self.hd)
        k = self.W_up_key(latents).reshape(b, n + t, self.num_heads, self.hd)
        v = self.W_up_value(latents).reshape(b, n + t, self.num_heads, self.hd)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / self.hd**0.5
        hidden = torch.triu(torch.ones_like(scores, dtype=torch.bool), n + 1)
        weights = scores.masked_fill(hidden, -torch.inf).softmax(dim=-1)
        return self.out_proj(torch.einsum("bhqk,bkhd->bqhd", weights, v).flatten(2))


@both("LatentNothingHiddenWithACache", "LatentScaledByLatentDim")
class CountedTooLateAndScaledByTheLatent(nn.Module):
    def __init__(self, d_in, d_out, num_heads, latent_dim):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be a multiple of num_heads")
        self.h, self.hd, self.r = num_heads, d_out // num_heads, latent_dim
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_latent = nn.Linear(d_in, latent_dim, bias=False)
        self.W_up_key = nn.Linear(latent_dim, d_out, bias=False)
        self.W_up_value = nn.Linear(latent_dim, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, cache=None):
        b, t, _ = x.shape
        latents, n = self.W_latent(x), 0
        if cache is not None:
            cache.append(latents)
            latents = cache.latents
            n = latents.shape[1]
        q = self.W_query(x).view(b, t, self.h, self.hd).transpose(1, 2)
        up_key = self.W_up_key.weight.view(self.h, self.hd, self.r)
        scores = q @ up_key @ latents[:, None].mT / math.sqrt(self.r)
        T = latents.shape[1]
        hidden = torch.triu(torch.ones(t, T, device=x.device), diagonal=n + 1) == 1
        weights = scores.masked_fill(hidden, -torch.inf).softmax(dim=-1)
        v = self.W_up_value(latents).view(b, T, self.h, self.hd).transpose(1, 2)
        return self.out_proj((weights @ v).transpose(1, 2).reshape(b, t, -1))


@right("LatentAttention")
class LatentKeysMade(nn.Module):
    """Makes the keys; mask by triu with an offset."""

    def __init__(self, d_in: int, d_out: int, num_heads: int, latent_dim: int) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_latent = nn.Linear(d_in, latent_dim, bias=False)
        self.W_up_key = nn.Linear(latent_dim, d_out, bias=False)
        self.W_up_value = nn.Linear(latent_dim, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        b, T, _ = x.shape
        return x.view(b, T, self.num_heads, self.head_dim).transpose(1, 2)

    def forward(self, x: torch.Tensor, cache: LatentCache | None = None) -> torch.Tensor:
        b, t, _ = x.shape
        latents = self.W_latent(x)
        if cache is not None:
            cache.append(latents)
            latents = cache.latents
        n = latents.shape[1] - t
        queries = self.split(self.W_query(x))
        keys = self.split(self.W_up_key(latents))
        values = self.split(self.W_up_value(latents))
        scores = queries @ keys.transpose(2, 3) / self.head_dim**0.5
        hidden = torch.ones(t, n + t, dtype=torch.bool, device=x.device).triu(n + 1)
        weights = torch.softmax(scores.masked_fill(hidden, -torch.inf), dim=-1)
        context = (weights @ values).transpose(1, 2).reshape(b, t, -1)
        return self.out_proj(context)


@right("LatentAttention")
class LatentAlwaysWithACache(nn.Module):
    """The library's attention with a bool mask."""

    def __init__(self, d_in, d_out, num_heads, latent_dim):
        super().__init__()
        assert d_out % num_heads == 0, "d_out must be divisible by num_heads"
        self.h = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_latent = nn.Linear(d_in, latent_dim, bias=False)
        self.W_up_key = nn.Linear(latent_dim, d_out, bias=False)
        self.W_up_value = nn.Linear(latent_dim, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, cache=None):
        if cache is None:
            cache = LatentCache()
        cache.append(self.W_latent(x))
        everything = cache.latents
        t, T = x.size(1), everything.size(1)
        q, k, v = (
            y.unflatten(2, (self.h, -1)).transpose(1, 2)
            for y in (self.W_query(x), self.W_up_key(everything), self.W_up_value(everything))
        )
        position = torch.arange(T, device=x.device)
        seen = position[None, :] <= position[T - t :, None]
        context = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return self.out_proj(context.transpose(1, 2).flatten(2))


@right("LatentAttention")
class LatentBothMatricesAbsorbed(nn.Module):
    """Both matrices absorbed, head by head; mask by an added -inf."""

    def __init__(self, d_in, d_out, num_heads, latent_dim):
        super().__init__()
        self.hd, rest = divmod(d_out, num_heads)
        if rest:
            raise ValueError(f"{d_out} is not divisible by {num_heads}")
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_latent = nn.Linear(d_in, latent_dim, bias=False)
        self.W_up_key = nn.Linear(latent_dim, d_out, bias=False)
        self.W_up_value = nn.Linear(latent_dim, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, cache=None):
        new = self.W_latent(x)
        n = 0
        if cache is not None:
            n = 0 if cache.latents is None else cache.latents.shape[1]
            cache.append(new)
        c = new if cache is None else cache.latents  # (b, n + t, r)
        t = x.shape[1]
        mask = torch.full((t, n + t), -torch.inf, dtype=x.dtype, device=x.device).triu(n + 1)
        contexts = []
        for q, up_key, up_value in zip(
            self.W_query(x).split(self.hd, dim=-1),
            self.W_up_key.weight.split(self.hd),
            self.W_up_value.weight.split(self.hd),
            strict=False,
        ):
            scores = (q / math.sqrt(self.hd)) @ up_key @ c.mT + mask
            contexts.append(scores.softmax(dim=-1) @ c @ up_value.T)
        return self.out_proj(torch.cat(contexts, dim=-1))


@right("LatentAttention")
class LatentRowByRow(nn.Module):
    """Einsum, no mask: each new token reads its part of keys and values only."""

    def __init__(self, d_in, d_out, num_heads, latent_dim):
        super().__init__()
        if num_heads * (d_out // num_heads) != d_out:
            raise ValueError("d_out / num_heads is no whole number")
        self.shape = (num_heads, d_out // num_heads)
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_latent = nn.Linear(d_in, latent_dim, bias=False)
        self.W_up_key = nn.Linear(latent_dim, d_out, bias=False)
        self.W_up_value = nn.Linear(latent_dim, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, cache=None):
        latents = self.W_latent(x)
        if cache is not None:
            cache.append(latents)
            latents = cache.latents
        n = latents.shape[1] - x.shape[1]
        q = self.W_query(x).unflatten(-1, self.shape)
        k = self.W_up_key(latents).unflatten(-1, self.shape)
        v = self.W_up_value(latents).unflatten(-1, self.shape)
        rows = []
        for i in range(x.shape[1]):
            end = n + i + 1
            scores = torch.einsum("bhd,bkhd->bhk", q[:, i], k[:, :end]) / self.shape[1] ** 0.5
            weights = scores.softmax(dim=2)
            rows.append(torch.einsum("bhk,bkhd->bhd", weights, v[:, :end]).flatten(1))
        return self.out_proj(torch.stack(rows, dim=1))


# paged_attention


@rewritten("masked_after_reading")
def _(query, key_pages, value_pages, block_table, length):
    keys = key_pages[block_table].flatten(0, 1)  # (n * page, h, hd)
    values = value_pages[block_table].flatten(0, 1)
    scores = torch.einsum("hd,thd->ht", query, keys) / math.sqrt(query.shape[-1])
    hidden = torch.arange(keys.shape[0], device=query.device) >= length
    weights = scores.masked_fill(hidden, -torch.inf).softmax(dim=-1)
    return torch.einsum("ht,thd->hd", weights, values)


@rewritten("nan_replaced_in_the_values")
def _(query, key_pages, value_pages, block_table, length):
    h, hd = query.shape
    keys = key_pages[block_table].reshape(-1, h, hd).transpose(0, 1)
    values = value_pages[block_table].reshape(-1, h, hd).transpose(0, 1)
    seen = torch.arange(keys.shape[1], device=query.device) < length
    values = torch.where(seen[:, None], values, 0.0)
    scores = (keys @ query[:, :, None]).squeeze(-1) / hd**0.5  # (h, T)
    scores = torch.where(seen, scores, -torch.inf)
    return (torch.softmax(scores, dim=-1)[:, None] @ values).squeeze(1)


@rewritten("last_page_left_out")
def _(query, key_pages, value_pages, block_table, length):
    page = key_pages.shape[1]
    used = block_table[: length // page]
    keys = torch.cat([key_pages[p] for p in used.tolist()] + [key_pages[:0].flatten(0, 1)])[:length]
    values = torch.cat([value_pages[p] for p in used.tolist()] + [value_pages[:0].flatten(0, 1)])[:length]
    scores = (query * keys).sum(dim=-1) / query.shape[-1] ** 0.5  # (T, h)
    weights = scores.softmax(dim=0)
    return (weights[..., None] * values).sum(dim=0)


@rewritten("table_sorted")
def _(query, key_pages, value_pages, block_table, length):
    n = math.ceil(length / key_pages.shape[1])
    pages = torch.unique(block_table[:n])
    keys = key_pages[pages].flatten(0, 1)[:length]
    values = value_pages[pages].flatten(0, 1)[:length]
    keys, values = keys.transpose(0, 1), values.transpose(0, 1)  # (h, T, hd)
    weights = torch.softmax(query[:, None] @ keys.mT / math.sqrt(query.shape[1]), dim=-1)
    return (weights @ values)[:, 0]


@rewritten("heads_split_by_reshape")
def _(query, key_pages, value_pages, block_table, length):
    h, hd = query.shape
    page = key_pages.shape[1]
    t = torch.arange(length, device=block_table.device)
    where, slot = block_table[t // page], t % page
    keys = key_pages[where, slot].reshape(h, length, hd)
    values = value_pages[where, slot].reshape(h, length, hd)
    scores = torch.einsum("hd,htd->ht", query, keys) / hd**0.5
    return torch.einsum("ht,htd->hd", scores.softmax(dim=-1), values)


@unlisted("paged_attention", "empty_slots_attended")
def _(query, key_pages, value_pages, block_table, length):
    """Takes slots for empty if they hold NaN, and never reads length."""
    pages = block_table[block_table >= 0]
    keys = key_pages[pages].flatten(0, 1)
    values = value_pages[pages].flatten(0, 1)
    written = ~keys.isnan().any(dim=-1).any(dim=-1)
    keys, values = keys[written], values[written]
    scores = torch.einsum("hd,thd->th", query, keys) / query.shape[-1] ** 0.5
    weights = torch.softmax(scores, dim=0)
    return torch.einsum("th,thd->hd", weights, values)


@unlisted("paged_attention", "page_exponentials_without_the_maximum", "page_scores_in_float32")
def _(query, key_pages, value_pages, block_table, length):
    """Two mistakes: exponentials without subtracting the maximum, and a float32 result for float64 inputs."""
    h, hd = query.shape
    page = key_pages.shape[1]
    total = torch.zeros(h, 1)
    output = torch.zeros(h, hd)
    for t in range(length):
        p, s = int(block_table[t // page]), t % page
        score = (query * key_pages[p, s]).sum(dim=-1, keepdim=True) / hd**0.5
        weight = torch.exp(score).float()
        total = total + weight
        output = output + weight * value_pages[p, s].float()
    return output / total


@unlisted("paged_attention", "slot_after_the_last_token", "empty_slots_cleared")
def _(query, key_pages, value_pages, block_table, length):
    """Two mistakes: nan_to_num_ modifies the pages, and token number `length` is seen, too."""
    key_pages.nan_to_num_()
    value_pages.nan_to_num_()
    n = (length - 1) // key_pages.shape[1] + 1
    keys = key_pages[block_table[:n]].flatten(0, 1).transpose(0, 1)
    values = value_pages[block_table[:n]].flatten(0, 1).transpose(0, 1)
    scores = torch.matmul(keys, query.unsqueeze(-1)).squeeze(-1) / query.shape[-1] ** 0.5
    positions = torch.arange(keys.shape[1], device=keys.device)
    scores = scores.masked_fill(positions > length, -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    return torch.matmul(weights.unsqueeze(1), values).squeeze(1)


@right("paged_attention")
def _(query, key_pages, value_pages, block_table, length):
    """Page and slot of each token by advanced indexing, einsum."""
    page = key_pages.shape[1]
    t = torch.arange(length, device=block_table.device)
    pages, slots = block_table[t // page].long(), t % page
    keys, values = key_pages[pages, slots], value_pages[pages, slots]  # (T, h, hd)
    scores = torch.einsum("hd,thd->ht", query, keys) / math.sqrt(query.shape[-1])
    return torch.einsum("ht,thd->hd", torch.softmax(scores, dim=-1), values)


@right("paged_attention")
def _(query, key_pages, value_pages, block_table, length):
    """Pages joined by cat, cut at length, one head after another."""
    h, hd = query.shape
    page = key_pages.size(1)
    used = [int(block_table[i]) for i in range(-(-length // page))]
    keys = torch.cat([key_pages[p] for p in used])[:length]
    values = torch.cat([value_pages[p] for p in used])[:length]
    rows = []
    for head in range(h):
        scores = keys[:, head] @ query[head] / hd**0.5
        rows.append(scores.softmax(dim=0) @ values[:, head])
    return torch.stack(rows)


@right("paged_attention")
def _(query, key_pages, value_pages, block_table, length):
    """All pages of the table; what is no token is set to 0 before the products."""
    table = block_table.clamp(min=0).long()
    k = key_pages.index_select(0, table).flatten(0, 1)
    v = value_pages.index_select(0, table).flatten(0, 1)
    empty = torch.arange(k.shape[0], device=k.device) >= length
    k = k.masked_fill(empty[:, None, None], 0.0).transpose(0, 1)
    v = v.masked_fill(empty[:, None, None], 0.0).transpose(0, 1)
    scores = (query.unsqueeze(1) @ k.mT).squeeze(1) * query.shape[-1] ** -0.5
    weights = scores.masked_fill(empty, -torch.inf).softmax(-1)
    return (weights.unsqueeze(1) @ v).squeeze(1)


@right("paged_attention")
def _(query, key_pages, value_pages, block_table, length):
    """Softmax in one pass over the pages."""
    h, hd = query.shape
    page = key_pages.shape[1]
    maximum = query.new_full((h, 1), -torch.inf)
    total = query.new_zeros(h, 1)
    output = query.new_zeros(h, hd)
    for number, start in enumerate(range(0, length, page)):
        p = block_table[number].item()
        end = min(page, length - start)
        k, v = key_pages[p][:end], value_pages[p][:end]  # (<= page, h, hd)
        scores = (k * query).sum(-1).T / math.sqrt(hd)  # (h, <= page)
        new = torch.maximum(maximum, scores.amax(dim=1, keepdim=True)).detach()
        old, weights = torch.exp(maximum - new), torch.exp(scores - new)
        total = total * old + weights.sum(dim=1, keepdim=True)
        output = output * old + (weights.T[..., None] * v).sum(dim=0)
        maximum = new
    return output / total


# accept_draft


@rewritten("all_accepted_counted")
def _(draft_probs, target_probs, tokens, uniforms):
    n = tokens.shape[0]
    rows = torch.arange(n, device=tokens.device)
    ratio = target_probs[rows, tokens] / draft_probs[rows, tokens]
    accepted = int((uniforms < ratio).sum())
    if accepted == n:
        return n, target_probs[-1]
    rest = (target_probs[accepted] - draft_probs[accepted]).clamp(min=0)
    rest = rest / rest.sum() if rest.sum() > 0 else target_probs[accepted]
    return accepted, rest.to(target_probs.dtype)


@rewritten("softmax_of_the_positive_part")
def _(draft_probs, target_probs, tokens, uniforms):
    for i, token in enumerate(tokens.tolist()):
        if uniforms[i] >= target_probs[i, token] / draft_probs[i, token]:
            left = F.relu(target_probs[i] - draft_probs[i])
            return i, torch.softmax(left, dim=-1)
    return len(tokens), target_probs[-1]


@rewritten("drawn_from_the_target")
def _(draft_probs, target_probs, tokens, uniforms):
    accepted = 0
    for i in range(len(tokens)):
        x = tokens[i]
        if uniforms[i] < target_probs[i, x] / draft_probs[i, x]:
            accepted += 1
        else:
            break
    return accepted, target_probs[accepted]


@rewritten("argmax_of_no_refusal")
def _(draft_probs, target_probs, tokens, uniforms):
    p = target_probs[:-1].gather(1, tokens[:, None])[:, 0]
    q = draft_probs.gather(1, tokens[:, None])[:, 0]
    refused = uniforms >= p / q
    first = refused.int().argmax().item()
    if first == len(tokens):
        return first, target_probs[-1]
    rest = torch.clamp(target_probs[first] - draft_probs[first], min=0.0)
    return first, rest / rest.sum()


@rewritten("written_into_the_target")
def _(draft_probs, target_probs, tokens, uniforms):
    n = len(tokens)
    accepted = 0
    while accepted < n:
        x = tokens[accepted]
        if uniforms[accepted] >= target_probs[accepted, x] / draft_probs[accepted, x]:
            break
        accepted += 1
    next_probs = target_probs[accepted]
    if accepted < n:
        next_probs.sub_(draft_probs[accepted]).clamp_(min=0)
        next_probs = next_probs / next_probs.sum()
    return accepted, next_probs


@rewritten("ratio_inverted")
def _(draft_probs, target_probs, tokens, uniforms):
    accepted = 0
    for q, p, x, u in zip(draft_probs, target_probs, tokens, uniforms, strict=False):
        if u >= q[x] / p[x]:
            difference = torch.clamp(p - q, min=0)
            return accepted, difference / difference.sum()
        accepted += 1
    return accepted, target_probs[-1]


@unlisted("accept_draft", "size_of_the_difference", "accepted_as_a_tensor")
def _(draft_probs, target_probs, tokens, uniforms):
    """Two mistakes: the absolute value in place of the positive part, and the number is a tensor."""
    n = tokens.shape[0]
    rows = torch.arange(n, device=tokens.device)
    keep = uniforms < target_probs[rows, tokens] / draft_probs[rows, tokens]
    accepted = keep.long().cumprod(dim=0).sum()
    if accepted == n:
        return accepted, target_probs[n]
    difference = (target_probs[accepted] - draft_probs[accepted]).abs()
    return accepted, difference / difference.sum()


@unlisted("accept_draft", "draft_minus_target")
def _(draft_probs, target_probs, tokens, uniforms):
    """Two mistakes: draft minus target, and no break, so that the last accepted token counts."""
    accepted = 0
    for i in range(tokens.shape[0]):
        p = target_probs[i][tokens[i]]
        q = draft_probs[i][tokens[i]]
        if uniforms[i] < p / q:
            accepted = i + 1
    if accepted == tokens.shape[0]:
        return accepted, target_probs[-1]
    left = torch.relu(draft_probs[accepted] - target_probs[accepted])
    return accepted, left / left.sum()


@right("accept_draft")
def _(
    draft_probs: torch.Tensor,
    target_probs: torch.Tensor,
    tokens: torch.Tensor,
    uniforms: torch.Tensor,
) -> tuple[int, torch.Tensor]:
    """Loop that returns at the first refusal."""
    for i, x in enumerate(tokens.tolist()):
        if uniforms[i] >= target_probs[i, x] / draft_probs[i, x]:
            difference = target_probs[i] - draft_probs[i].to(target_probs)
            positive = difference.clamp(min=0)
            return i, positive / positive.sum()
    return len(tokens), target_probs[-1]


@right("accept_draft")
def _(draft_probs, target_probs, tokens, uniforms):
    """Without a loop: cumprod; a row of zeros as the draft of the position after the last."""
    draft = torch.cat([draft_probs.to(target_probs), torch.zeros_like(target_probs[:1])])
    rows = torch.arange(len(tokens), device=tokens.device)
    ratio = target_probs[rows, tokens] / draft[rows, tokens]
    accepted = int((uniforms < ratio).long().cumprod(dim=0).sum())
    if accepted == len(tokens):
        return accepted, target_probs[accepted].clone()
    rest = F.relu(target_probs[accepted] - draft[accepted])
    return accepted, F.normalize(rest, p=1, dim=0, eps=0.0)


@right("accept_draft")
def _(draft_probs, target_probs, tokens, uniforms):
    """Compares logarithms; finds the first refusal by nonzero."""
    n = tokens.numel()
    index = tokens.long().unsqueeze(1)
    log_p = target_probs[:n].gather(1, index).squeeze(1).log()
    log_q = draft_probs.gather(1, index).squeeze(1).log()
    refusals = torch.nonzero(~(uniforms.log() < log_p - log_q)).flatten().tolist()
    if not refusals:
        return n, target_probs[n]
    k = refusals[0]
    p, q = target_probs[k], draft_probs[k].to(target_probs)
    left = torch.where(p > q, p - q, torch.zeros_like(p))
    return k, left / left.sum()


@right("accept_draft")
def _(draft_probs, target_probs, tokens, uniforms):
    """Compares u * q with p, without a quotient; p - min(p, q) in place of the positive part."""
    accepted = 0
    for q, p, x, u in zip(draft_probs, target_probs, tokens, uniforms, strict=False):
        if not u * q[x] < p[x]:
            break
        accepted += 1
    if accepted == tokens.shape[0]:
        return accepted, target_probs[accepted]
    p = target_probs[accepted]
    left = p - torch.minimum(p, draft_probs[accepted].to(p))
    return accepted, left.div(left.sum())
