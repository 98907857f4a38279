"""Blind answers to efficient_attention: (exercise, name, is_wrong, comment, source)."""

ANSWERS = []


def add(exercise, name, is_wrong, comment, source):
    ANSWERS.append((exercise, name, is_wrong, comment, source.strip("\n") + "\n"))


# ---------------------------------------------------------------------- online_softmax
add(
    "online_softmax",
    "python_floats",
    True,
    "Maximum and sum are kept as Python floats (.item()) and wrapped in new tensors at the end, so no gradient flows "
    "back to the scores; values are right in float32.",
    """
def online_softmax(blocks: Iterable[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    m, total = -math.inf, 0.0
    like = None
    for block in blocks:
        like = block
        block_max = block.max().item()
        if block_max == -math.inf:
            continue
        new_m = max(m, block_max)
        total = total * math.exp(m - new_m) + (block - new_m).exp().sum().item()
        m = new_m
    return like.new_tensor(m), like.new_tensor(total)
""",
)

add(
    "online_softmax",
    "nan_to_num_afterwards",
    True,
    "-inf - (-inf) is computed for blocks that are hidden completely at the beginning, and nan_to_num only repairs "
    "the result: the gradient through exp(NaN) is NaN for these blocks.",
    """
def online_softmax(blocks: Iterable[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    m = torch.tensor(-torch.inf)
    l = torch.tensor(0.0)
    for s in blocks:
        m, l = m.to(s), l.to(s)
        m_new = torch.maximum(m, s.max())
        alpha = torch.exp(m - m_new).nan_to_num(0.0)
        p = torch.exp(s - m_new).nan_to_num(0.0)
        l = alpha * l + p.sum()
        m = m_new
    return m, l
""",
)

add(
    "online_softmax",
    "zero_for_a_hidden_maximum",
    False,
    "Detached maxima, and 0 in the place of a maximum of -inf inside the exponents.",
    """
def _finite(maximum):
    return torch.where(maximum == -torch.inf, torch.zeros_like(maximum), maximum)


def online_softmax(blocks: Iterable[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    iterator = iter(blocks)
    first = next(iterator)
    m = first.detach().amax()
    total = torch.exp(first - _finite(m)).sum()
    for block in iterator:
        larger = torch.maximum(m, block.detach().amax())
        base = _finite(larger)
        total = total * torch.exp(m - base) + torch.exp(block - base).sum()
        m = larger
    return m, total
""",
)

# ------------------------------------------------------------------------ merge_states
add(
    "merge_states",
    "outputs_taken_as_divided",
    True,
    "As in ring attention's code the outputs are taken to be divided already: they are multiplied by their totals "
    "and the sum is divided by the new total; the text's outputs are not divided, so the output is wrong "
    "unless the totals are 1.",
    """
def merge_states(
    a: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    b: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    (m_a, l_a, o_a), (m_b, l_b, o_b) = a, b
    m = torch.maximum(m_a, m_b)
    base = m.masked_fill(m == -torch.inf, 0.0)
    w_a, w_b = l_a * torch.exp(m_a - base), l_b * torch.exp(m_b - base)
    total = w_a + w_b
    safe = total.masked_fill(total == 0, 1.0)
    output = (o_a * w_a + o_b * w_b) / safe
    return m, total, output
""",
)

# --------------------------------------------------------------------- tiled_attention
add(
    "tiled_attention",
    "accumulators_in_place",
    True,
    "The state is updated in place, and m.copy_(m_new) overwrites the tensor that torch.maximum has saved for its "
    "gradient, so the backward pass raises a RuntimeError; the forward result is right.",
    """
def tiled_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    block_size: int,
    causal: bool = False,
) -> torch.Tensor:
    # port of the Triton kernel
    *lead, T, hd = queries.shape
    scale = hd**-0.5
    out = []
    for q0 in range(0, T, block_size):
        q = queries[..., q0 : q0 + block_size, :] * scale
        rows = torch.arange(q0, q0 + q.shape[-2], device=q.device)[:, None]
        m = q.new_full((*lead, q.shape[-2], 1), -torch.inf)
        l = q.new_zeros((*lead, q.shape[-2], 1))
        acc = q.new_zeros((*lead, q.shape[-2], values.shape[-1]))
        end = min(T, q0 + block_size) if causal else T
        for k0 in range(0, end, block_size):
            k, v = keys[..., k0 : k0 + block_size, :], values[..., k0 : k0 + block_size, :]
            s = q @ k.mT
            if causal and k0 + block_size > q0:
                cols = torch.arange(k0, k0 + k.shape[-2], device=q.device)
                s = s.masked_fill(cols > rows, -torch.inf)
            m_new = torch.maximum(m, s.amax(dim=-1, keepdim=True))
            alpha, p = torch.exp(m - m_new), torch.exp(s - m_new)
            l.mul_(alpha).add_(p.sum(dim=-1, keepdim=True))
            acc.mul_(alpha).add_(p @ v)
            m.copy_(m_new)
        out.append(acc / l)
    return torch.cat(out, dim=-2)
""",
)

add(
    "tiled_attention",
    "triangle_in_every_tile",
    True,
    "With causal=True the local triangle triu(1) hides keys in every computed tile and not only in those on the "
    "diagonal, so earlier tokens that are fully visible are hidden in part; shows for T above block_size.",
    """
def tiled_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    block_size: int,
    causal: bool = False,
) -> torch.Tensor:
    T, hd = queries.shape[-2:]
    starts = range(0, T, block_size)
    results = []
    for i in starts:
        q = queries[..., i : i + block_size, :]
        maximum = total = output = None
        for j in starts:
            if causal and j > i:
                break
            k, v = keys[..., j : j + block_size, :], values[..., j : j + block_size, :]
            scores = q @ k.transpose(-1, -2) / math.sqrt(hd)
            if causal:
                local = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device)
                scores = scores.masked_fill(local.triu(1), -torch.inf)
            tile_max = scores.amax(dim=-1, keepdim=True)
            new_max = tile_max if maximum is None else torch.maximum(maximum, tile_max)
            p = torch.exp(scores - new_max)
            if maximum is None:
                total, output = p.sum(-1, keepdim=True), p @ v
            else:
                factor = torch.exp(maximum - new_max)
                total = factor * total + p.sum(-1, keepdim=True)
                output = factor * output + p @ v
            maximum = new_max
        results.append(output / total)
    return torch.cat(results, dim=-2)
""",
)

add(
    "tiled_attention",
    "factor_after_the_update",
    True,
    "Two: `m` is overwritten by the new maximum before the factor exp(m - m_new) is computed, so it is always 1 and "
    "earlier sums are not rescaled when a later block has a larger score; and with causal=True all tiles are "
    "computed and masked, none is skipped.",
    """
def tiled_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    block_size: int,
    causal: bool = False,
) -> torch.Tensor:
    T, hd = queries.shape[-2:]
    q = queries / hd**0.5
    position = torch.arange(T, device=q.device)
    m = l = o = None
    for k, v, at in zip(
        keys.split(block_size, dim=-2),
        values.split(block_size, dim=-2),
        position.split(block_size),
    ):
        s = torch.einsum("...qd,...kd->...qk", q, k)
        if causal:
            s = s.masked_fill(at[None, :] > position[:, None], -torch.inf)
        block_max = s.amax(-1, keepdim=True)
        if m is None:
            m = block_max
            p = torch.exp(s - m)
            l, o = p.sum(-1, keepdim=True), p @ v
            continue
        m_new = torch.maximum(m, block_max)
        m = m_new
        factor = torch.exp(m - m_new)
        p = torch.exp(s - m_new)
        l = l * factor + p.sum(-1, keepdim=True)
        o = o * factor + p @ v
    return o / l
""",
)

add(
    "tiled_attention",
    "key_blocks_outside",
    False,
    "One loop over blocks of keys; if causal, a block updates only the queries from its first key on.",
    """
def tiled_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    block_size: int,
    causal: bool = False,
) -> torch.Tensor:
    T, hd = queries.shape[-2:]
    below = lambda top, rest: torch.cat([top, rest], dim=-2) if top.shape[-2] else rest
    largest = total = output = None
    for k0 in range(0, T, block_size):
        first = k0 if causal else 0  # queries before it do not see this block
        k, v = keys[..., k0 : k0 + block_size, :], values[..., k0 : k0 + block_size, :]
        scores = queries[..., first:, :] @ k.mT * hd**-0.5
        if causal:
            n = k.shape[-2]
            later = torch.ones(n, n, dtype=torch.bool, device=k.device).triu(1)
            diagonal = scores[..., :n, :].masked_fill(later, -torch.inf)
            scores = torch.cat([diagonal, scores[..., n:, :]], dim=-2)
        highest = scores.amax(dim=-1, keepdim=True)
        if largest is None:
            largest = highest
            e = torch.exp(scores - largest)
            total, output = e.sum(dim=-1, keepdim=True), e @ v
            continue
        new = torch.maximum(largest[..., first:, :], highest)
        keep = torch.exp(largest[..., first:, :] - new)
        e = torch.exp(scores - new)
        del scores
        sums = keep * total[..., first:, :] + e.sum(dim=-1, keepdim=True)
        mixed = keep * output[..., first:, :] + e @ v
        del e
        largest = below(largest[..., :first, :], new)
        total = below(total[..., :first, :], sums)
        output = below(output[..., :first, :], mixed)
        del mixed
    return output / total
""",
)

# ---------------------------------------------------------------- hunt_tiled_attention
add(
    "hunt_tiled_attention",
    "one_block_only",
    True,
    "T is 2 and the block size 2, so there is only one block, and nothing between two blocks can go wrong.",
    """
def hunt_tiled_attention() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    queries, keys, values = (5 * torch.randn(2, 2) for _ in range(3))
    return queries, keys, values
""",
)

# ------------------------------------------------------------------ attention_backward
add(
    "attention_backward",
    "scaled_twice_in_dk",
    True,
    "The queries are scaled by 1 / sqrt(hd) at the beginning, and dK is computed from the scaled ones and multiplied "
    "by the scale again, so dK is too small by the factor sqrt(hd); dQ and dV are right.",
    """
def attention_backward(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    grad_output: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    scale = 1 / math.sqrt(queries.shape[-1])
    q = queries * scale
    P = torch.softmax(q @ keys.mT, dim=-1)
    O = P @ values
    dV = P.mT @ grad_output
    dP = grad_output @ values.mT
    D = (grad_output * O).sum(dim=-1, keepdim=True)
    dS = P * (dP - D)
    dQ = dS @ keys * scale
    dK = dS.mT @ q * scale
    return dQ, dK, dV
""",
)

add(
    "attention_backward",
    "jacobian_of_the_softmax",
    False,
    "The whole Jacobian of each row's softmax, applied by einsum.",
    """
def attention_backward(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    grad_output: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    c = 1 / math.sqrt(queries.shape[-1])
    weights = torch.softmax(c * torch.matmul(queries, keys.transpose(-1, -2)), dim=-1)
    jacobian = torch.diag_embed(weights) - weights[..., :, None] * weights[..., None, :]
    grad_weights = torch.einsum("...qv,...kv->...qk", grad_output, values)
    grad_scores = torch.einsum("...qjk,...qk->...qj", jacobian, grad_weights)
    return (
        torch.einsum("...qk,...kd->...qd", grad_scores, keys) * c,
        torch.einsum("...qk,...qd->...kd", grad_scores, queries) * c,
        torch.einsum("...qk,...qv->...kv", weights, grad_output),
    )
""",
)

# -------------------------------------------------------------------- linear_attention
add(
    "linear_attention",
    "where_hides_the_nan",
    True,
    "No small number is added: 0 / 0 is computed and replaced by torch.where afterwards, so where a denominator is 0 "
    "the result is 0, but its gradients are NaN.",
    """
def linear_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    causal: bool = False,
) -> torch.Tensor:
    feature = lambda x: F.elu(x) + 1.0
    fq, fk = feature(queries), feature(keys)
    if causal:
        num, den = [], []
        kv = fk.new_zeros(*fk.shape[:-2], fk.shape[-1], values.shape[-1])
        ks = fk.new_zeros(*fk.shape[:-2], fk.shape[-1])
        for t in range(fk.shape[-2]):
            kv = kv + fk[..., t, :, None] * values[..., t, None, :]
            ks = ks + fk[..., t, :]
            num.append((fq[..., t, None, :] @ kv).squeeze(-2))
            den.append((fq[..., t, :] * ks).sum(-1, keepdim=True))
        num, den = torch.stack(num, dim=-2), torch.stack(den, dim=-2)
    else:
        num = fq @ (fk.transpose(-1, -2) @ values)
        den = (fq * fk.sum(dim=-2, keepdim=True)).sum(dim=-1, keepdim=True)
    return torch.where(den == 0, torch.zeros_like(num), num / den)
""",
)

add(
    "linear_attention",
    "scaled_and_square_if_causal",
    True,
    "Two: queries are divided by sqrt(hd) before the feature map, which the text excludes, so all weights are wrong "
    "for hd above 1; and causal=True makes a T x T matrix of f(q) . f(k) and takes its tril.",
    """
def linear_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    causal: bool = False,
) -> torch.Tensor:
    phi = lambda x: F.elu(x).add(1)
    q = phi(queries * queries.shape[-1] ** -0.5)
    k = phi(keys)
    if causal:
        w = torch.tril(q @ k.mT)
        return (w @ values) / w.sum(-1, keepdim=True).clamp(min=1e-6)
    kv = torch.einsum("...td,...tv->...dv", k, values)
    norm = torch.einsum("...td,...d->...t", q, k.sum(-2)).clamp(min=1e-6)
    return torch.einsum("...td,...dv->...tv", q, kv) / norm[..., None]
""",
)

add(
    "linear_attention",
    "ones_as_a_value_column",
    False,
    "A column of ones beside the values makes numerator and denominator by the same code, in chunks if causal.",
    """
def linear_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    causal: bool = False,
) -> torch.Tensor:
    fq, fk = F.elu(queries) + 1, F.elu(keys) + 1
    extended = F.pad(values, (0, 1), value=1.0)  # (..., T, hv + 1)
    if causal:
        pieces, state = [], None
        for q, k, v in zip(*(x.split(16, dim=-2) for x in (fq, fk, extended)), strict=True):
            piece = torch.tril(q @ k.mT) @ v
            update = k.mT @ v
            if state is None:
                state = update
            else:
                piece, state = piece + q @ state, state + update
            pieces.append(piece)
        both = torch.cat(pieces, dim=-2)
    else:
        both = fq @ (fk.mT @ extended)
    numerator, denominator = both[..., :-1], both[..., -1:]
    return numerator / (denominator + 1e-7)
""",
)
