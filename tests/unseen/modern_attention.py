"""Attention in models of today, beyond the catalogue: written from the notebook alone, without the hidden tests."""

import math

import torch
import torch.nn.functional as F

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
