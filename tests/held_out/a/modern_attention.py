"""Blind answers to modern_attention: (exercise, name, is_wrong, comment, source)."""

ANSWERS = []


def add(exercise, name, is_wrong, comment, source):
    ANSWERS.append((exercise, name, is_wrong, comment, source.strip("\n") + "\n"))


add(
    "rms_norm",
    "w_eps_outside_root",
    True,
    "Adds eps to the root and not to the mean square under it: it shows with a larger eps or small vectors, and the "
    "gradient of a vector of zeros is NaN or inf.",
    """
def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    dtype = torch.promote_types(x.dtype, torch.float32)
    h = x.to(dtype)
    rms = torch.sqrt(h.pow(2).mean(dim=-1, keepdim=True))
    return (h / (rms + eps) * weight.to(dtype)).to(x.dtype)
""",
)

add(
    "rms_norm",
    "r_inner_product",
    False,
    "Mean square by einsum, in the promoted dtype.",
    """
def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    work = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    mean_square = torch.einsum("...d,...d->...", work, work) / work.shape[-1]
    size = (mean_square + eps) ** 0.5
    scaled = work / size[..., None] * weight.to(work.dtype)
    return scaled.to(x.dtype)
""",
)

add(
    "hunt_rms_norm",
    "w_sixteen",
    True,
    "x has twelve elements and weight four more: sixteen together, but at most twelve are allowed in both.",
    """
def hunt_rms_norm() -> tuple[torch.Tensor, torch.Tensor]:
    # rows with a mean that is not 0
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 5.0, 5.0, 5.0], [0.0, 0.0, 0.0, 9.0]])
    return x, torch.tensor([1.0, 2.0, 3.0, 4.0])
""",
)

add(
    "qk_norm_scores",
    "w_unit_length",
    True,
    "F.normalize divides by the Euclidean length and not by the root mean square, so each vector is too short by a factor "
    "of sqrt(hd), and the scores are too small by hd.",
    """
def qk_norm_scores(
    queries: torch.Tensor,
    keys: torch.Tensor,
    query_weight: torch.Tensor,
    key_weight: torch.Tensor,
    eps: float = 1e-6,
) -> torch.Tensor:
    hd = queries.shape[-1]
    q = F.normalize(queries, p=2, dim=-1, eps=eps) * query_weight
    k = F.normalize(keys, p=2, dim=-1, eps=eps) * key_weight
    return q @ k.transpose(-2, -1) / math.sqrt(hd)
""",
)

add(
    "softcap",
    "w_inplace",
    True,
    "`scores /= cap` divides the caller's scores in place (and raises an error for a leaf that requires gradients).",
    """
def softcap(scores: torch.Tensor, cap: float) -> torch.Tensor:
    scores /= cap
    return torch.tanh(scores) * cap
""",
)

add(
    "half_precision_attention",
    "w_weights_rounded",
    True,
    "The weights are converted back to the inputs' dtype before the product with the values, so half precision rounds them "
    "and loses digits, most where large values nearly cancel.",
    """
def half_precision_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
) -> torch.Tensor:
    dtype = queries.dtype
    work = torch.promote_types(dtype, torch.float32)
    scores = queries.to(work) @ keys.to(work).transpose(-2, -1)
    scores = scores / math.sqrt(queries.shape[-1])
    weights = torch.softmax(scores, dim=-1).to(dtype)
    return weights @ values
""",
)

add(
    "attention_with_sinks",
    "w_sink_scaled",
    True,
    "The sink is added as a column before the division by sqrt(hd), so it is divided, too.",
    """
def attention_with_sinks(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    sinks: torch.Tensor,
) -> torch.Tensor:
    b, h, T, hd = queries.shape
    scores = queries @ keys.transpose(-2, -1)
    later = torch.ones(T, T, dtype=torch.bool, device=queries.device).triu(1)
    scores = scores.masked_fill(later, -torch.inf)
    column = sinks.view(1, h, 1, 1).expand(b, h, T, 1)
    logits = torch.cat([scores, column], dim=-1) / math.sqrt(hd)
    weights = torch.softmax(logits, dim=-1)[..., :-1]
    return weights @ values
""",
)

add(
    "attention_with_sinks",
    "r_sigmoid_gate",
    False,
    "Ordinary causal weights times the share that the sink leaves.",
    """
def attention_with_sinks(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    sinks: torch.Tensor,
) -> torch.Tensor:
    T, hd = queries.shape[-2], queries.shape[-1]
    hidden = ~torch.ones(T, T, dtype=torch.bool, device=queries.device).tril()
    scores = (queries @ keys.mT / math.sqrt(hd)).masked_fill(hidden, -math.inf)
    size = torch.logsumexp(scores, dim=-1, keepdim=True)  # (b, h, T, 1)
    share = torch.sigmoid(size - sinks.reshape(1, -1, 1, 1))
    return share * (torch.softmax(scores, dim=-1) @ values)
""",
)

add(
    "document_mask",
    "w_changes",
    True,
    "Numbers the documents anew by counting changes with cumsum, so a document that comes back later, as in 7 3 7, counts "
    "as a new one and its earlier tokens are hidden.",
    """
def document_mask(documents: torch.Tensor) -> torch.Tensor:
    b, T = documents.shape
    starts = torch.zeros_like(documents)
    starts[:, 1:] = (documents[:, 1:] != documents[:, :-1]).to(documents.dtype)
    segment = starts.cumsum(dim=1)  # 0 0 1 1 1 2 ...
    other = segment[:, :, None] != segment[:, None, :]
    later = torch.ones(T, T, dtype=torch.bool, device=documents.device).triu(1)
    return other | later
""",
)

add(
    "swiglu",
    "w_silu_on_up",
    True,
    "SiLU is applied to the up projection and not to the gate, so the roles of both weights are swapped.",
    """
def swiglu(
    x: torch.Tensor,
    W_gate: torch.Tensor,
    W_up: torch.Tensor,
    W_down: torch.Tensor,
) -> torch.Tensor:
    gate = F.linear(x, W_gate)
    up = F.silu(F.linear(x, W_up))
    return F.linear(gate * up, W_down)
""",
)

add(
    "absorbed_scores",
    "w_makes_keys",
    True,
    "Makes the keys of all tokens and heads (first line of the body) also for a single query, which takes many times the "
    "operations of absorbing the matrix into the query.",
    """
def absorbed_scores(
    queries: torch.Tensor,
    latents: torch.Tensor,
    up_key: torch.Tensor,
) -> torch.Tensor:
    keys = torch.einsum("btr,hdr->bhtd", latents, up_key)
    return torch.einsum("bhqd,bhtd->bhqt", queries, keys)
""",
)

add(
    "LatentAttention",
    "w_root_of_latent_dim",
    True,
    "The scores, computed with absorbed queries, are divided by the root of latent_dim (absorbed.shape[-1]) and not by "
    "that of the head's width.",
    """
class LatentAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, num_heads: int, latent_dim: int) -> None:
        super().__init__()
        if d_out % num_heads:
            raise ValueError("d_out is not divisible by num_heads")
        self.h, self.hd = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_latent = nn.Linear(d_in, latent_dim, bias=False)
        self.W_up_key = nn.Linear(latent_dim, d_out, bias=False)
        self.W_up_value = nn.Linear(latent_dim, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x: torch.Tensor, cache: LatentCache | None = None) -> torch.Tensor:
        b, t, _ = x.shape
        q = self.W_query(x).view(b, t, self.h, self.hd).transpose(1, 2)
        c = self.W_latent(x)
        if cache is not None:
            cache.append(c)
            c = cache.latents
        total = c.shape[1]
        absorbed = q @ self.W_up_key.weight.view(self.h, self.hd, -1)  # (b, h, t, r)
        scores = absorbed @ c[:, None].mT / math.sqrt(absorbed.shape[-1])
        mask = torch.ones(t, total, dtype=torch.bool, device=x.device).triu(1 + total - t)
        weights = scores.masked_fill(mask, -torch.inf).softmax(-1)
        values = self.W_up_value(c).view(b, total, self.h, self.hd).transpose(1, 2)
        return self.out_proj((weights @ values).transpose(1, 2).reshape(b, t, -1))
""",
)

add(
    "LatentAttention",
    "w_own_cache_no_mask",
    True,
    "Two: without a cache the module uses one of its own, self.cache, which keeps the latents of earlier calls; and there "
    "is no mask if something is cached, so in a step of several tokens they see later ones.",
    """
class LatentAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, num_heads: int, latent_dim: int) -> None:
        super().__init__()
        assert d_out % num_heads == 0
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_latent = nn.Linear(d_in, latent_dim, bias=False)
        self.W_up_key = nn.Linear(latent_dim, d_out, bias=False)
        self.W_up_value = nn.Linear(latent_dim, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.cache = LatentCache()

    def _split(self, t: torch.Tensor) -> torch.Tensor:
        return t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def forward(self, x: torch.Tensor, cache: LatentCache | None = None) -> torch.Tensor:
        if cache is None:
            cache = self.cache
        first = cache.latents is None
        cache.append(self.W_latent(x))
        out = F.scaled_dot_product_attention(
            self._split(self.W_query(x)),
            self._split(self.W_up_key(cache.latents)),
            self._split(self.W_up_value(cache.latents)),
            is_causal=first,
        )
        return self.out_proj(out.transpose(1, 2).flatten(2))
""",
)

add(
    "LatentAttention",
    "r_mix_latents_first",
    False,
    "Absorbs both matrices: mixes the latents with the weights, and makes one value of the mixture.",
    """
class LatentAttention(nn.Module):
    def __init__(self, d_in: int, d_out: int, num_heads: int, latent_dim: int) -> None:
        super().__init__()
        self.hd, rest = divmod(d_out, num_heads)
        if rest:
            raise ValueError("d_out must be divisible by num_heads")
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
        cache = LatentCache() if cache is None else cache
        cache.append(self.W_latent(x))
        latents = cache.latents  # (b, n + t, r)
        t, total = x.shape[1], latents.shape[1]
        position = torch.arange(total, device=x.device)
        hidden = position[None, :] > position[total - t :, None]
        heads = []
        for q, up_key, up_value in zip(
            self.W_query(x).split(self.hd, dim=-1),
            self.W_up_key.weight.split(self.hd),
            self.W_up_value.weight.split(self.hd),
            strict=True,
        ):
            scores = (q @ up_key) @ latents.mT * self.hd**-0.5
            weights = scores.masked_fill(hidden, -math.inf).softmax(dim=-1)
            heads.append((weights @ latents) @ up_value.T)
        return self.out_proj(torch.cat(heads, dim=-1))
""",
)

add(
    "paged_attention",
    "w_masks_after_gather",
    True,
    "Gathers whole pages and hides the empty slots with -inf only in the scores: their weight is 0, but 0 times a NaN "
    "value is NaN, and so is the gradient of the query by a NaN key.",
    """
def paged_attention(
    query: torch.Tensor,
    key_pages: torch.Tensor,
    value_pages: torch.Tensor,
    block_table: torch.Tensor,
    length: int,
) -> torch.Tensor:
    h, hd = query.shape
    table = block_table.clamp(min=0)
    keys = key_pages[table].flatten(0, 1)  # (n * page, h, hd)
    values = value_pages[table].flatten(0, 1)
    scores = torch.einsum("hd,thd->ht", query, keys) / math.sqrt(hd)
    slot = torch.arange(keys.shape[0], device=query.device)
    scores = scores.masked_fill(slot >= length, -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    return torch.einsum("ht,thd->hd", weights, values)
""",
)

add(
    "paged_attention",
    "w_unique_pages_root_h",
    True,
    "Two: block_table.unique() sorts the pages and leaves out repeated ones, so the wrong page is taken as the last one, or "
    "a page that is twice in the table counts once; and the scores are divided by the root of query.shape[0], the number "
    "of heads.",
    """
def paged_attention(
    query: torch.Tensor,
    key_pages: torch.Tensor,
    value_pages: torch.Tensor,
    block_table: torch.Tensor,
    length: int,
) -> torch.Tensor:
    page_size = key_pages.shape[1]
    used = block_table[: (length + page_size - 1) // page_size].unique()
    keys = torch.cat([key_pages[p] for p in used])[:length]
    values = torch.cat([value_pages[p] for p in used])[:length]
    scale = query.shape[0] ** -0.5
    scores = (query[None] * keys).sum(-1) * scale  # (T, h)
    weights = torch.softmax(scores, dim=0)
    return (weights[..., None] * values).sum(dim=0)
""",
)

add(
    "paged_attention",
    "r_addresses",
    False,
    "The address of each token in the flattened pages.",
    """
def paged_attention(
    query: torch.Tensor,
    key_pages: torch.Tensor,
    value_pages: torch.Tensor,
    block_table: torch.Tensor,
    length: int,
) -> torch.Tensor:
    page = key_pages.shape[1]
    address = [int(block_table[t // page]) * page + t % page for t in range(length)]
    where = torch.tensor(address, device=query.device)
    keys = key_pages.flatten(0, 1).index_select(0, where).transpose(0, 1)  # (h, T, hd)
    values = value_pages.flatten(0, 1).index_select(0, where).transpose(0, 1)
    scores = torch.bmm(keys, query[:, :, None]).squeeze(-1) / query.shape[-1] ** 0.5
    weights = torch.softmax(scores, dim=-1)
    return torch.bmm(weights[:, None], values).squeeze(1)
""",
)

add(
    "accept_draft",
    "w_counts_all_below",
    True,
    "Counts all tokens whose u is below the ratio, also those after the first refusal, so accepted is too large if a token "
    "after a refused one would have been accepted.",
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
    accepted = int((uniforms < ratio).sum())
    if accepted == n:
        return n, target_probs[n]
    rest = (target_probs[accepted] - draft_probs[accepted]).clamp(min=0)
    return accepted, rest / rest.sum()
""",
)

add(
    "accept_draft",
    "w_tensor_count",
    True,
    "The number of accepted tokens is a 0-d tensor (the sum of cumprod) and not an int.",
    """
def accept_draft(
    draft_probs: torch.Tensor,
    target_probs: torch.Tensor,
    tokens: torch.Tensor,
    uniforms: torch.Tensor,
) -> tuple[int, torch.Tensor]:
    p = target_probs[:-1].gather(1, tokens[:, None]).squeeze(1)
    q = draft_probs.gather(1, tokens[:, None]).squeeze(1)
    # 1 1 0 1 -> 1 1 0 0
    accepted = (uniforms < p / q).long().cumprod(dim=0).sum()
    # a draft of zeros after the last token: then the residual is the target itself
    padded = torch.cat([draft_probs, torch.zeros_like(draft_probs[:1])])
    rest = torch.relu(target_probs[accepted] - padded[accepted])
    return accepted, rest / rest.sum()
""",
)

add(
    "accept_draft",
    "r_for_else",
    False,
    "A loop with Python numbers that returns at the first refusal.",
    """
def accept_draft(
    draft_probs: torch.Tensor,
    target_probs: torch.Tensor,
    tokens: torch.Tensor,
    uniforms: torch.Tensor,
) -> tuple[int, torch.Tensor]:
    for i, (token, u) in enumerate(zip(tokens.tolist(), uniforms.tolist())):
        p, q = target_probs[i], draft_probs[i]
        if u * float(q[token]) < float(p[token]):
            continue
        gain = torch.where(p > q, p - q, torch.zeros_like(p))
        return i, gain / gain.sum()
    return len(tokens), target_probs[len(tokens)].clone()
""",
)
