"""Blind answers to modern_attention: (exercise, name, is_wrong, comment, source)."""

ANSWERS = []


def add(exercise, name, is_wrong, comment, source):
    ANSWERS.append((exercise, name, is_wrong, comment, source.strip("\n") + "\n"))


# ---------------------------------------------------------------------------- rms_norm
add(
    "rms_norm",
    "eps_outside_the_root",
    True,
    "eps is added to the root mean square and not to the mean square below the root, so results differ for larger "
    "eps or small vectors, and a vector of zeros has the root's gradient at 0, which is NaN.",
    """
def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    wide = torch.promote_types(x.dtype, torch.float32)
    h = x.to(wide)
    rms = torch.sqrt(torch.mean(h * h, dim=-1, keepdim=True))
    return (weight.to(wide) * h / (rms + eps)).to(x.dtype)
""",
)

add(
    "rms_norm",
    "norm_over_the_root_of_d",
    False,
    "Mean square and scaling by einsum, in float32 at least.",
    """
def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    compute = torch.float64 if x.dtype == torch.float64 else torch.float32
    h, w = x.to(compute), weight.to(compute)
    mean_square = torch.einsum("...d,...d->...", h, h) / h.shape[-1]
    inverse = (mean_square + eps).pow(-0.5)
    return torch.einsum("...d,...,d->...d", h, inverse, w).to(x.dtype)
""",
)

# ----------------------------------------------------------------------- hunt_rms_norm
add(
    "hunt_rms_norm",
    "zeros_for_the_eps",
    True,
    "x is all zeros, for which a wrong norm that subtracts the mean or divides by something else gives zeros, too, so "
    "the two results do not differ.",
    """
def hunt_rms_norm() -> tuple[torch.Tensor, torch.Tensor]:
    # the edge case where only eps keeps the division finite
    x = torch.zeros(2, 4)
    weight = torch.tensor([0.5, 1.0, 2.0, 4.0])
    return x, weight
""",
)

# ---------------------------------------------------------------------- qk_norm_scores
add(
    "qk_norm_scores",
    "eps_not_passed_on",
    True,
    "The helper `norm` has its own default eps of 1e-6, and the calls do not pass the argument eps on, so another "
    "eps has no effect.",
    """
def qk_norm_scores(
    queries: torch.Tensor,
    keys: torch.Tensor,
    query_weight: torch.Tensor,
    key_weight: torch.Tensor,
    eps: float = 1e-6,
) -> torch.Tensor:
    def norm(x, w, eps=1e-6):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * w

    q, k = norm(queries, query_weight), norm(keys, key_weight)
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
""",
)

# ----------------------------------------------------------------------------- softcap
add(
    "softcap",
    "in_place_chain",
    True,
    "The chain div_, tanh_, mul_ works in place on the caller's tensor (`out` is no copy), so the given scores are "
    "overwritten, and a leaf that requires gradients raises an error.",
    """
def softcap(scores: torch.Tensor, cap: float) -> torch.Tensor:
    out = scores  # three kernels, but no new memory
    return out.div_(cap).tanh_().mul_(cap)
""",
)

# ----------------------------------------------------------- half_precision_attention
add(
    "half_precision_attention",
    "float_softmax_only",
    True,
    "The product queries @ keys.mT is still computed in half precision and only its result is converted for the "
    "softmax, so products beyond 65504 are infinite in float16 (NaN) and bfloat16 scores have lost their digits.",
    """
def half_precision_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
) -> torch.Tensor:
    scale = 1.0 / math.sqrt(queries.shape[-1])
    wide = torch.promote_types(queries.dtype, torch.float32)
    scores = torch.matmul(queries, keys.transpose(-1, -2)).to(wide) * scale
    weights = torch.softmax(scores, dim=-1, dtype=wide)
    return torch.matmul(weights, values.to(wide)).to(queries.dtype)
""",
)

# ---------------------------------------------------------------- attention_with_sinks
add(
    "attention_with_sinks",
    "sink_first_last_column_dropped",
    True,
    "The sink is concatenated before the scores (column 0), but weights[..., :-1] drops the last column, so weight 0 "
    "is the sink's and each value gets the weight of the key before it.",
    """
def attention_with_sinks(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    sinks: torch.Tensor,
) -> torch.Tensor:
    b, h, T, hd = queries.shape
    scores = queries @ keys.mT / math.sqrt(hd)
    hidden = torch.ones(T, T, dtype=torch.bool, device=queries.device).triu(1)
    scores = scores.masked_fill(hidden, -torch.inf)
    column = sinks.view(1, h, 1, 1).expand(b, h, T, 1)
    weights = torch.cat([column, scores], dim=-1).softmax(dim=-1)
    return weights[..., :-1] @ values
""",
)

add(
    "attention_with_sinks",
    "maximum_without_the_sink",
    True,
    "Two: the maximum is taken over the scores only and not over the sink, so exp(z - m) is infinite for a sink "
    "more than about 88 above the scores and gradients are NaN; and `sinks[None, :, None]` broadcasts heads against "
    "the wrong dimension (the heads' axis gets size 1), so with several heads there is "
    "an error unless T = h, and then row i takes the sink of head i.",
    """
def attention_with_sinks(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    sinks: torch.Tensor,
) -> torch.Tensor:
    T, hd = queries.shape[-2:]
    causal = torch.ones(T, T, dtype=torch.bool, device=queries.device).tril()
    s = torch.einsum("bhqd,bhkd->bhqk", queries, keys) / hd**0.5
    s = s.masked_fill(~causal, float("-inf"))
    m = s.amax(dim=-1, keepdim=True)
    e = torch.exp(s - m)
    z = sinks[None, :, None]  # (1, h, 1)
    denominator = e.sum(dim=-1, keepdim=True) + torch.exp(z - m)
    return (e / denominator) @ values
""",
)

add(
    "attention_with_sinks",
    "sigmoid_of_logsumexp",
    False,
    "Usual attention, times the share that is not the sink's: sigmoid(logsumexp of scores - sink).",
    """
def attention_with_sinks(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    sinks: torch.Tensor,
) -> torch.Tensor:
    T, hd = queries.shape[-2], queries.shape[-1]
    at = torch.arange(T, device=queries.device)
    scores = (queries / hd**0.5) @ keys.transpose(-1, -2)
    scores = scores.masked_fill(at[None, :] > at[:, None], -math.inf)
    largest = scores.amax(dim=-1, keepdim=True)  # finite: each query sees itself
    log_total = (scores - largest).logsumexp(dim=-1, keepdim=True)
    kept = torch.sigmoid(log_total + (largest - sinks[:, None, None]))
    return kept * (torch.softmax(scores, dim=-1) @ values)
""",
)

# ----------------------------------------------------------------------- document_mask
add(
    "document_mask",
    "segments_by_boundaries",
    True,
    "Documents are numbered again by their boundaries (cumsum of changes), so a document that comes back later in "
    "the sequence counts as a new one and its earlier part is hidden: `7 3 7`.",
    """
def document_mask(documents: torch.Tensor) -> torch.Tensor:
    changes = documents[:, 1:] != documents[:, :-1]
    segment = F.pad(changes.long().cumsum(dim=1), (1, 0))
    other = segment.unsqueeze(2) != segment.unsqueeze(1)
    T = documents.shape[1]
    future = torch.ones(T, T, dtype=torch.bool, device=documents.device).triu(1)
    return other | future
""",
)

# ------------------------------------------------------------------------------ swiglu
add(
    "swiglu",
    "fused_and_unpacked_in_other_order",
    True,
    "The two weights are fused as [W_up, W_gate] but unpacked as gate, up, so SiLU is applied to x W_up^T and the "
    "gate scales it.",
    """
def swiglu(
    x: torch.Tensor,
    W_gate: torch.Tensor,
    W_up: torch.Tensor,
    W_down: torch.Tensor,
) -> torch.Tensor:
    fused = torch.cat([W_up, W_gate], dim=0)  # one kernel launch instead of two
    gate, up = F.linear(x, fused).chunk(2, dim=-1)
    return F.linear(F.silu(gate) * up, W_down)
""",
)

# --------------------------------------------------------------------- absorbed_scores
add(
    "absorbed_scores",
    "keys_head_by_head",
    True,
    "In the loop the keys of each head are made (latents @ up_key[i].T) also for a single query, which the text "
    "forbids; the numbers are right, but the operations are those of making all keys.",
    """
def absorbed_scores(
    queries: torch.Tensor,
    latents: torch.Tensor,
    up_key: torch.Tensor,
) -> torch.Tensor:
    per_head = []
    for head, U in enumerate(up_key):
        k = F.linear(latents, U)  # (b, T, hd)
        per_head.append(torch.bmm(queries[:, head], k.transpose(1, 2)))
    return torch.stack(per_head, dim=1)
""",
)

add(
    "absorbed_scores",
    "einsum_shares_one_matrix",
    True,
    "The einsum names the head of up_key `g`, which is in no other operand, so up_key is summed over its heads and "
    "every query is absorbed by the sum of all matrices; right only with one head.",
    """
def absorbed_scores(
    queries: torch.Tensor,
    latents: torch.Tensor,
    up_key: torch.Tensor,
) -> torch.Tensor:
    absorbed = torch.einsum("bhqd,gdr->bhqr", queries, up_key)
    return torch.einsum("bhqr,btr->bhqt", absorbed, latents)
""",
)

# -------------------------------------------------------------------- LatentAttention
add(
    "LatentAttention",
    "is_causal_with_a_cache",
    True,
    "F.scaled_dot_product_attention is called with is_causal=True whenever t > 1, and its mask begins at the first "
    "cached key, so in a later step of several tokens they do not see the newest n keys; one pass and steps of one "
    "token are right.",
    """
class LatentAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, num_heads: int, latent_dim: int) -> None:
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_latent = nn.Linear(d_in, latent_dim, bias=False)
        self.W_up_key = nn.Linear(latent_dim, d_out, bias=False)
        self.W_up_value = nn.Linear(latent_dim, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def _heads(self, x):
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def forward(
        self,
        x: torch.Tensor,
        cache: LatentCache | None = None,
    ) -> torch.Tensor:
        latents = self.W_latent(x)
        if cache is not None:
            cache.append(latents)
            latents = cache.latents
        q = self._heads(self.W_query(x))
        k, v = self._heads(self.W_up_key(latents)), self._heads(self.W_up_value(latents))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=x.shape[1] > 1)
        return self.out_proj(out.transpose(1, 2).flatten(2))
""",
)

add(
    "LatentAttention",
    "cache_detached",
    True,
    "The new latents are appended as latents.detach() and read back from the cache, so no gradient flows through the "
    "cache to W_latent and to the tokens, neither of this step nor of earlier ones.",
    """
class LatentAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, num_heads: int, latent_dim: int) -> None:
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out must be divisible by num_heads")
        self.h, self.hd = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_latent = nn.Linear(d_in, latent_dim, bias=False)
        self.W_up_key = nn.Linear(latent_dim, d_out, bias=False)
        self.W_up_value = nn.Linear(latent_dim, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(
        self,
        x: torch.Tensor,
        cache: LatentCache | None = None,
    ) -> torch.Tensor:
        b, t, _ = x.shape
        cache = LatentCache() if cache is None else cache
        cache.append(self.W_latent(x).detach())  # otherwise the graph grows in each step
        c = cache.latents
        n = c.shape[1] - t
        q = self.W_query(x).view(b, t, self.h, self.hd)
        k = self.W_up_key(c).view(b, n + t, self.h, self.hd)
        v = self.W_up_value(c).view(b, n + t, self.h, self.hd)
        scores = torch.einsum("bihd,bjhd->bhij", q, k) / self.hd**0.5
        hidden = torch.ones(t, n + t, dtype=torch.bool, device=x.device).triu(1 + n)
        weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
        return self.out_proj(torch.einsum("bhij,bjhd->bihd", weights, v).reshape(b, t, -1))
""",
)

add(
    "LatentAttention",
    "absorbed_module",
    False,
    "Absorbs W_up_key into the queries and applies W_up_value to the mixed latents.",
    """
class LatentAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, num_heads: int, latent_dim: int) -> None:
        super().__init__()
        if num_heads < 1 or d_out % num_heads != 0:
            raise ValueError(f"d_out = {d_out} cannot be split into {num_heads} heads")
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_latent = nn.Linear(d_in, latent_dim, bias=False)
        self.W_up_key = nn.Linear(latent_dim, d_out, bias=False)
        self.W_up_value = nn.Linear(latent_dim, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out, bias=True)

    def forward(
        self,
        x: torch.Tensor,
        cache: LatentCache | None = None,
    ) -> torch.Tensor:
        new = self.W_latent(x)
        if cache is None:
            latents = new
        else:
            cache.append(new)
            latents = cache.latents
        t, total = x.shape[1], latents.shape[1]
        per_head = lambda weight: weight.unflatten(0, (self.num_heads, self.head_dim))
        queries = self.W_query(x).unflatten(-1, (self.num_heads, self.head_dim))
        absorbed = torch.einsum("bthd,hdr->bhtr", queries, per_head(self.W_up_key.weight))
        scores = torch.einsum("bhtr,bjr->bhtj", absorbed, latents) / math.sqrt(self.head_dim)
        query_at = torch.arange(total - t, total, device=x.device)
        key_at = torch.arange(total, device=x.device)
        scores = scores.masked_fill(key_at > query_at[:, None], -math.inf)
        mixed = torch.einsum("bhtj,bjr->bhtr", scores.softmax(-1), latents)
        context = torch.einsum("bhtr,hdr->bthd", mixed, per_head(self.W_up_value.weight))
        return self.out_proj(context.flatten(2))
""",
)

# --------------------------------------------------------------------- paged_attention
add(
    "paged_attention",
    "unique_pages",
    True,
    "torch.unique(needed) sorts the pages and drops repeated ones, so a page that is twice in the table counts once, "
    "and if the last page does not have the largest number, the wrong slots are cut off as empty.",
    """
def paged_attention(
    query: torch.Tensor,
    key_pages: torch.Tensor,
    value_pages: torch.Tensor,
    block_table: torch.Tensor,
    length: int,
) -> torch.Tensor:
    page = key_pages.size(1)
    count = math.ceil(length / page)
    # attention does not depend on the order of keys: read memory in order
    needed = torch.unique(block_table[:count])
    keys = key_pages.index_select(0, needed).reshape(-1, *key_pages.shape[2:])[:length]
    values = value_pages.index_select(0, needed).reshape(-1, *value_pages.shape[2:])[:length]
    scores = (keys * query).sum(-1) * query.size(-1) ** -0.5  # (T, h)
    weights = scores.softmax(dim=0)
    return (weights.unsqueeze(-1) * values).sum(dim=0)
""",
)

add(
    "paged_attention",
    "token_by_token_lookup",
    False,
    "Looks up page and slot of each token by integer division.",
    """
def paged_attention(
    query: torch.Tensor,
    key_pages: torch.Tensor,
    value_pages: torch.Tensor,
    block_table: torch.Tensor,
    length: int,
) -> torch.Tensor:
    page = key_pages.shape[1]
    token = torch.arange(length, device=block_table.device)
    where = block_table[token // page].long(), token % page
    keys, values = key_pages[where], value_pages[where]  # (length, h, hd)
    attended = F.softmax(
        torch.einsum("thd,hd->ht", keys, query) / math.sqrt(query.shape[1]),
        dim=1,
    )
    return torch.bmm(attended.unsqueeze(1), values.transpose(0, 1)).squeeze(1)
""",
)

# ------------------------------------------------------------------------ accept_draft
add(
    "accept_draft",
    "argmax_of_no_refusal",
    True,
    "The first refusal is found by refused.int().argmax(), which is 0 if no token is refused, so a fully accepted "
    "draft returns 0 accepted tokens and a distribution for token 0.",
    """
def accept_draft(
    draft_probs: torch.Tensor,
    target_probs: torch.Tensor,
    tokens: torch.Tensor,
    uniforms: torch.Tensor,
) -> tuple[int, torch.Tensor]:
    n = tokens.shape[0]
    rows = torch.arange(n, device=tokens.device)
    ratio = target_probs[rows, tokens] / draft_probs[rows, tokens]
    refused = uniforms >= ratio
    accepted = int(refused.int().argmax())
    if accepted == n:
        return n, target_probs[n]
    residual = (target_probs[accepted] - draft_probs[accepted]).clamp(min=0)
    return accepted, residual / residual.sum()
""",
)

add(
    "accept_draft",
    "counts_all_and_not_normalised",
    True,
    "Two: all accepted tokens are counted ((u < ratio).sum()), also those after the first refusal; and the positive "
    "part of target minus draft is returned without being divided by its sum.",
    """
def accept_draft(
    draft_probs: torch.Tensor,
    target_probs: torch.Tensor,
    tokens: torch.Tensor,
    uniforms: torch.Tensor,
) -> tuple[int, torch.Tensor]:
    q = draft_probs.gather(1, tokens[:, None]).squeeze(1)
    p = target_probs[:-1].gather(1, tokens[:, None]).squeeze(1)
    accepted = (uniforms < p / q).sum().item()
    if accepted < len(tokens):
        next_probs = F.relu(target_probs[accepted] - draft_probs[accepted])
    else:
        next_probs = target_probs[-1]
    return accepted, next_probs
""",
)
