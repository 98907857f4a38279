"""Blind answers to efficient_attention: (exercise, name, is_wrong, comment, source)."""

ANSWERS = []


def add(exercise, name, is_wrong, comment, source):
    ANSWERS.append((exercise, name, is_wrong, comment, source.strip("\n") + "\n"))


add(
    "online_softmax",
    "w_first_block_hidden",
    True,
    "If the first block has only -inf, m and new_m are both -inf, and m - new_m and block - new_m are NaN, which stays in "
    "the sum.",
    """
def online_softmax(blocks: Iterable[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    m, total = None, None
    for block in blocks:
        block_max = block.max()
        if m is None:
            m, total = block_max, torch.exp(block - block_max).sum()
            continue
        new_m = torch.maximum(m, block_max)
        total = total * torch.exp(m - new_m) + torch.exp(block - new_m).sum()
        m = new_m
    return m, total
""",
)

add(
    "online_softmax",
    "r_skips_hidden_blocks",
    False,
    "Leaves out blocks that are hidden completely, and detaches the maximum.",
    """
def online_softmax(blocks: Iterable[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    maximum = total = None
    for block in blocks:
        top = block.detach().max()
        if maximum is None:
            maximum, total = top, 0 * block.masked_fill(block == -math.inf, 0).sum()
        if top == -math.inf:
            continue
        if top > maximum:
            if maximum > -math.inf:
                total = total * (maximum - top).exp()
            maximum = top
        total = total + (block - maximum).exp().sum()
    return maximum, total
""",
)

add(
    "merge_states",
    "w_where_after",
    True,
    "The factors are NaN where both maxima are -inf and torch.where replaces them afterwards: the result is right, but "
    "the gradients are NaN.",
    """
def merge_states(
    a: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    b: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    m_a, l_a, o_a = a
    m_b, l_b, o_b = b
    m = torch.maximum(m_a, m_b)

    def factor(old):
        f = torch.exp(old - m)
        return torch.where(torch.isnan(f), torch.zeros_like(f), f)

    f_a, f_b = factor(m_a), factor(m_b)
    return m, l_a * f_a + l_b * f_b, o_a * f_a + o_b * f_b
""",
)

add(
    "merge_states",
    "r_stack",
    False,
    "Both states stacked; works for any number of them.",
    """
def merge_states(
    a: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    b: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    maxima, totals, outputs = (torch.stack(pair) for pair in zip(a, b))
    top = maxima.amax(dim=0)
    # the anchor is the maximum, or 0 for an empty state
    anchor = torch.where(top.isinf(), torch.zeros_like(top), top)
    factors = torch.exp(maxima - anchor)
    return top, (factors * totals).sum(dim=0), (factors * outputs).sum(dim=0)
""",
)

add(
    "tiled_attention",
    "w_never_skips",
    True,
    "With causal=True every tile is computed and then masked: tiles that are hidden completely are not skipped, so no "
    "operations are saved.",
    """
def tiled_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    block_size: int,
    causal: bool = False,
) -> torch.Tensor:
    T, hd = queries.shape[-2:]
    scale = 1 / math.sqrt(hd)
    results = []
    for i in range(0, T, block_size):
        q = queries[..., i : i + block_size, :] * scale
        rows = torch.arange(i, i + q.shape[-2], device=q.device)
        m = q.new_full((*q.shape[:-1], 1), -torch.inf)
        l = torch.zeros_like(m)
        o = q.new_zeros(*q.shape[:-1], values.shape[-1])
        for j in range(0, T, block_size):
            k = keys[..., j : j + block_size, :]
            v = values[..., j : j + block_size, :]
            s = q @ k.transpose(-2, -1)
            if causal:
                cols = torch.arange(j, j + k.shape[-2], device=q.device)
                s = s.masked_fill(cols[None, :] > rows[:, None], -torch.inf)
            new_m = torch.maximum(m, s.amax(dim=-1, keepdim=True)).detach()
            p = torch.exp(s - new_m)
            correction = torch.exp(m - new_m)
            l = l * correction + p.sum(dim=-1, keepdim=True)
            o = o * correction + p @ v
            m = new_m
        results.append(o / l)
    return torch.cat(results, dim=-2)
""",
)

add(
    "tiled_attention",
    "w_zero_start",
    True,
    "The running maximum starts at 0 (zeros_like) and not at -inf, so if all scores of a query are far below 0 its sum "
    "underflows to 0, and 0 / 0 gives NaN.",
    """
def tiled_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    block_size: int,
    causal: bool = False,
) -> torch.Tensor:
    T = queries.size(-2)
    scale = queries.size(-1) ** -0.5
    index = torch.arange(T, device=queries.device)
    outs = []
    for qs in range(0, T, block_size):
        qe = min(qs + block_size, T)
        qi = queries[..., qs:qe, :]
        acc = torch.zeros_like(values[..., qs:qe, :])
        row_max = torch.zeros_like(qi[..., :1])
        row_sum = torch.zeros_like(row_max)
        for ks in range(0, qe if causal else T, block_size):
            ke = min(ks + block_size, T)
            sij = scale * (qi @ keys[..., ks:ke, :].mT)
            if causal:
                future = index[None, ks:ke] > index[qs:qe, None]
                sij = sij.masked_fill(future, float("-inf"))
            new_max = torch.maximum(row_max, sij.amax(-1, keepdim=True))
            alpha, pij = torch.exp(row_max - new_max), torch.exp(sij - new_max)
            row_sum = alpha * row_sum + pij.sum(-1, keepdim=True)
            acc = alpha * acc + pij @ values[..., ks:ke, :]
            row_max = new_max
        outs.append(acc / row_sum)
    return torch.cat(outs, dim=-2)
""",
)

add(
    "tiled_attention",
    "r_diagonal_first",
    False,
    "A generator of tiles for each block of queries; the diagonal block first, so the maximum is finite from the start.",
    """
def _block_starts(T, size, first_query, causal):
    starts = list(range(0, T, size))
    if causal:
        starts = [s for s in starts if s <= first_query]
    return reversed(starts)


def tiled_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    block_size: int,
    causal: bool = False,
) -> torch.Tensor:
    T, hd = queries.shape[-2], queries.shape[-1]
    blocks = []
    for begin, q in zip(range(0, T, block_size), queries.split(block_size, dim=-2)):
        state = None
        for start in _block_starts(T, block_size, begin, causal):
            stop = min(start + block_size, T)
            scores = q @ keys[..., start:stop, :].mT / math.sqrt(hd)
            if causal and start == begin:
                n = scores.shape[-1]
                later = torch.ones(n, n, dtype=torch.bool, device=q.device).triu(1)
                scores = scores.masked_fill(later, -torch.inf)
            top = scores.detach().amax(dim=-1, keepdim=True)
            if state is not None:
                top = torch.maximum(top, state[0])
            powers = (scores - top).exp()
            total, output = powers.sum(-1, keepdim=True), powers @ values[..., start:stop, :]
            if state is not None:
                shrink = (state[0] - top).exp()
                total, output = total + shrink * state[1], output + shrink * state[2]
            state = top, total, output
        blocks.append(state[2] / state[1])
    return torch.cat(blocks, dim=-2)
""",
)

add(
    "hunt_tiled_attention",
    "w_one_block",
    True,
    "T is 2 and block_size is 2, so there is only one block of keys and nothing happens between two blocks.",
    """
def hunt_tiled_attention() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    # the second key has a much larger score than the first
    queries = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    keys = torch.tensor([[0.0, 1.0], [5.0, 6.0]])
    values = torch.tensor([[1.0, 2.0], [30.0, 40.0]])
    return queries, keys, values
""",
)

add(
    "attention_backward",
    "w_plain_mean",
    True,
    "D is the plain mean of each row of dP and not the mean taken with the weights P, so dS, and with it dQ and dK, are "
    "wrong unless all weights are equal; dV is right.",
    """
def attention_backward(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    grad_output: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    root = math.sqrt(queries.shape[-1])
    P = torch.softmax(queries @ keys.mT / root, dim=-1)
    dV = P.mT @ grad_output
    dP = grad_output @ values.mT
    D = dP.mean(dim=-1, keepdim=True)  # the average of the row
    dS = P * (dP - D)
    return dS @ keys / root, dS.mT @ queries / root, dV
""",
)

add(
    "attention_backward",
    "w_dk_unscaled",
    True,
    "dK is not multiplied by scale, 1 / sqrt(hd), so it is wrong for every hd above 1; dQ and dV are right.",
    """
def attention_backward(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    grad_output: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    scale = queries.shape[-1] ** -0.5
    S = torch.einsum("...qd,...kd->...qk", queries, keys) * scale
    P = torch.softmax(S, dim=-1)
    O = P @ values
    D = (grad_output * O).sum(dim=-1, keepdim=True)
    dP = torch.einsum("...qv,...kv->...qk", grad_output, values)
    dS = P * (dP - D)
    dQ = torch.einsum("...qk,...kd->...qd", dS, keys) * scale
    dK = torch.einsum("...qk,...qd->...kd", dS, queries)
    dV = torch.einsum("...qk,...qv->...kv", P, grad_output)
    return dQ, dK, dV
""",
)

add(
    "attention_backward",
    "r_jacobian",
    False,
    "With the Jacobian of softmax of each row, diag(p) - p p^T.",
    """
def attention_backward(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    grad_output: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    scaled = queries / queries.shape[-1] ** 0.5
    p = torch.softmax(scaled @ keys.transpose(-1, -2), dim=-1)
    grad_p = grad_output @ values.transpose(-1, -2)
    jacobian = torch.diag_embed(p) - p[..., :, None] * p[..., None, :]  # (..., Tq, Tk, Tk)
    grad_s = (jacobian @ grad_p[..., None])[..., 0]
    grad_q = grad_s @ keys / queries.shape[-1] ** 0.5
    grad_k = grad_s.transpose(-1, -2) @ scaled
    grad_v = p.transpose(-1, -2) @ grad_output
    return grad_q, grad_k, grad_v
""",
)

add(
    "linear_attention",
    "w_causal_square",
    True,
    "With causal=True it makes all scores f(Q) f(K)^T, a T x T tensor, and cuts it with tril; memory and operations grow "
    "with T ** 2.",
    """
def linear_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    causal: bool = False,
) -> torch.Tensor:
    q, k = F.elu(queries) + 1, F.elu(keys) + 1
    if causal:
        scores = (q @ k.transpose(-2, -1)).tril()
        return scores @ values / (scores.sum(dim=-1, keepdim=True) + 1e-6)
    state = k.transpose(-2, -1) @ values
    norm = k.sum(dim=-2).unsqueeze(-1)
    return (q @ state) / (q @ norm + 1e-6)
""",
)

add(
    "linear_attention",
    "w_inplace_state_no_eps",
    True,
    "Two: the causal state is updated in place (`state += ...`, `norm += ...`), so backward raises an error because "
    "autograd needs the old states; and nothing protects the denominator, so a sum of 0 gives NaN.",
    """
def linear_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    causal: bool = False,
) -> torch.Tensor:
    fq = F.elu(queries) + 1
    fk = F.elu(keys) + 1
    if not causal:
        kv = torch.einsum("...td,...tv->...dv", fk, values)
        z = torch.einsum("...td,...d->...t", fq, fk.sum(-2))
        return torch.einsum("...td,...dv->...tv", fq, kv) / z.unsqueeze(-1)
    state = torch.zeros(*fk.shape[:-2], fk.shape[-1], values.shape[-1],
                        dtype=fk.dtype, device=fk.device)
    norm = torch.zeros(*fk.shape[:-2], fk.shape[-1], dtype=fk.dtype, device=fk.device)
    outs = []
    for t in range(fk.shape[-2]):
        state += fk[..., t, :, None] * values[..., t, None, :]
        norm += fk[..., t, :]
        top = (fq[..., t, :, None] * state).sum(-2)
        outs.append(top / (fq[..., t, :] * norm).sum(-1, keepdim=True))
    return torch.stack(outs, dim=-2)
""",
)

add(
    "linear_attention",
    "r_chunks",
    False,
    "Causal in chunks of 32: the state of earlier chunks, and a small triangle.",
    """
CHUNK = 32


def _feature(x):
    return torch.where(x > 0, x + 1, x.clamp(max=0).exp())


def linear_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    causal: bool = False,
) -> torch.Tensor:
    fq, fk = _feature(queries), _feature(keys)
    if not causal:
        top = fq @ (fk.mT @ values)
        bottom = fq @ fk.sum(dim=-2, keepdim=True).mT
        return top / bottom.clamp(min=1e-6)
    state = fk.new_zeros(*fk.shape[:-2], fk.shape[-1], values.shape[-1])
    norm = fk.new_zeros(*fk.shape[:-2], fk.shape[-1], 1)
    parts = []
    for q, k, v in zip(*(t.split(CHUNK, dim=-2) for t in (fq, fk, values)), strict=True):
        inside = (q @ k.mT).tril()
        top = q @ state + inside @ v
        bottom = q @ norm + inside.sum(dim=-1, keepdim=True)
        parts.append(top / bottom.clamp(min=1e-6))
        state = state + k.mT @ v
        norm = norm + k.sum(dim=-2, keepdim=True).mT
    return torch.cat(parts, dim=-2)
""",
)
