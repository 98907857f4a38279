"""More blind answers to efficient_attention: (exercise, name, is_wrong, comment, source)."""

ANSWERS = []


def add(exercise, name, is_wrong, comment, source):
    ANSWERS.append((exercise, name, is_wrong, comment, source.strip("\n") + "\n"))


# ---------------------------------------------------------------------- online_softmax
add(
    "online_softmax",
    "maximum_starts_at_zero",
    True,
    "The running maximum starts at 0 (new_zeros) and not at -inf, so if all scores are negative the returned maximum "
    "is 0, and for scores below about -100 the sum is 0.",
    """
def online_softmax(blocks: Iterable[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    running_max = running_sum = None
    for scores in blocks:
        if running_max is None:
            running_max, running_sum = scores.new_zeros(()), scores.new_zeros(())
        updated = torch.maximum(running_max, scores.amax())
        running_sum = running_sum * (running_max - updated).exp()
        running_sum = running_sum + (scores - updated).exp().sum()
        running_max = updated
    return running_max, running_sum
""",
)

# ------------------------------------------------------------------------ merge_states
add(
    "merge_states",
    "clamped_to_the_smallest_float",
    True,
    "The maximum is clamped to torch.finfo.min against NaN, and the clamped one is returned, so two empty states give "
    "the maximum -3.4e38 instead of -inf.",
    """
def merge_states(
    a: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    b: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    lowest = torch.finfo(a[0].dtype).min
    m = torch.maximum(a[0], b[0]).clamp(min=lowest)
    total, output = 0, 0
    for maximum, part_total, part_output in (a, b):
        factor = torch.exp(maximum - m)
        total = total + factor * part_total
        output = output + factor * part_output
    return m, total, output
""",
)

add(
    "merge_states",
    "stacked_parts",
    False,
    "Stacks both states and reduces over the new dimension.",
    """
def merge_states(
    a: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    b: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    maxima, totals, outputs = (torch.stack(pair) for pair in zip(a, b, strict=True))
    m = maxima.amax(dim=0)
    seen = m != -torch.inf
    shift = torch.where(seen, m, torch.zeros_like(m)).detach()
    factors = (maxima - shift).exp()  # exp(-inf) = 0 for an empty state
    return m, (factors * totals).sum(dim=0), (factors * outputs).sum(dim=0)
""",
)

# --------------------------------------------------------------------- tiled_attention
add(
    "tiled_attention",
    "last_block_lost",
    True,
    "The number of blocks is T // block_size, so the rows of a last, shorter block are neither queries nor keys "
    "(the result is too short), and a block_size above T gives no block at all.",
    """
def tiled_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    block_size: int,
    causal: bool = False,
) -> torch.Tensor:
    B = block_size
    num_blocks = queries.shape[-2] // B
    scale = 1 / math.sqrt(queries.shape[-1])
    tile = lambda x, n: x[..., n * B : (n + 1) * B, :]
    diagonal = torch.ones(B, B, dtype=torch.bool, device=queries.device).triu(1)
    outputs = []
    for i in range(num_blocks):
        state = None
        for j in range(i + 1 if causal else num_blocks):
            s = scale * tile(queries, i) @ tile(keys, j).mT
            if causal and i == j:
                s = s.masked_fill(diagonal, -torch.inf)
            m = s.amax(-1, keepdim=True)
            e = (s - m).exp()
            new = m, e.sum(-1, keepdim=True), e @ tile(values, j)
            if state is not None:
                both = torch.maximum(state[0], m)
                f, g = (state[0] - both).exp(), (m - both).exp()
                new = both, f * state[1] + g * new[1], f * state[2] + g * new[2]
            state = new
        outputs.append(state[2] / state[1])
    return torch.cat(outputs, dim=-2)
""",
)

# ---------------------------------------------------------------- hunt_tiled_attention
add(
    "hunt_tiled_attention",
    "growing_keys",
    False,
    "Four tokens of width 1; the larger key is in the second block.",
    """
def hunt_tiled_attention() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    queries = torch.ones(4, 1)
    keys = torch.tensor([[0.0], [1.0], [2.0], [4.0]])
    values = torch.tensor([[8.0], [-4.0], [1.0], [0.0]])
    return queries, keys, values
""",
)

# ------------------------------------------------------------------ attention_backward
add(
    "attention_backward",
    "plain_mean_of_dp",
    True,
    "D is the plain mean of dP over the keys and not the mean with the weights P, so dS, dQ and dK are wrong unless "
    "all weights of a row are equal.",
    """
def attention_backward(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    grad_output: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    root = queries.size(-1) ** 0.5
    P = F.softmax(torch.einsum("...qd,...kd->...qk", queries, keys) / root, dim=-1)
    dV = torch.einsum("...qk,...qv->...kv", P, grad_output)
    dP = torch.einsum("...qv,...kv->...qk", grad_output, values)
    average = dP.mean(dim=-1, keepdim=True)  # only the difference to the average counts
    dS = P * (dP - average) / root
    dQ = torch.einsum("...qk,...kd->...qd", dS, keys)
    dK = torch.einsum("...qk,...qd->...kd", dS, queries)
    return dQ, dK, dV
""",
)

add(
    "attention_backward",
    "unsafe_exp_and_rows_of_d",
    True,
    "Two: the weights are exp(S) / sum without subtracting the maximum, so scores above about 88 give NaN in "
    "float32; and D is summed over dim=-2 (the queries), which is a column's sum and not a row's, so dQ and dK are "
    "wrong.",
    """
def attention_backward(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    grad_output: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    scale = queries.shape[-1] ** -0.5
    e = torch.exp(queries @ keys.transpose(-2, -1) * scale)
    weights = e / e.sum(dim=-1, keepdim=True)
    grad_values = weights.transpose(-2, -1) @ grad_output
    grad_weights = grad_output @ values.transpose(-2, -1)
    pulled = weights * grad_weights
    grad_scores = pulled - weights * pulled.sum(dim=-2, keepdim=True)
    grad_queries = scale * (grad_scores @ keys)
    grad_keys = scale * (grad_scores.transpose(-2, -1) @ queries)
    return grad_queries, grad_keys, grad_values
""",
)

# -------------------------------------------------------------------- linear_attention
add(
    "linear_attention",
    "denominator_over_all_keys",
    True,
    "With causal=True the numerator is summed up to i, but the denominator uses the sum of all keys' f (k.sum), so "
    "earlier tokens' results are too small; the last token and causal=False are right.",
    """
def linear_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    causal: bool = False,
) -> torch.Tensor:
    q, k = F.elu(queries) + 1, F.elu(keys) + 1
    z = torch.einsum("...td,...d->...t", q, k.sum(dim=-2)).unsqueeze(-1) + 1e-6
    if not causal:
        return q @ (k.mT @ values) / z
    T, block = q.shape[-2], 32
    state = q.new_zeros(*q.shape[:-2], q.shape[-1], values.shape[-1])
    rows = []
    for start in range(0, T, block):
        part = slice(start, start + block)
        qb, kb, vb = q[..., part, :], k[..., part, :], values[..., part, :]
        inside = (qb @ kb.mT).tril()
        rows.append(qb @ state + inside @ vb)
        state = state + kb.mT @ vb
    return torch.cat(rows, dim=-2) / z
""",
)
