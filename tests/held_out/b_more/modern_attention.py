"""More blind answers to modern_attention: (exercise, name, is_wrong, comment, source)."""

ANSWERS = []


def add(exercise, name, is_wrong, comment, source):
    ANSWERS.append((exercise, name, is_wrong, comment, source.strip("\n") + "\n"))


# ---------------------------------------------------------------------------- rms_norm
add(
    "rms_norm",
    "always_float32",
    True,
    "Everything is computed in x.float(), also float64 inputs, and converted back, so a float64 result has float32 "
    "precision only (off by about 1e-8).",
    """
def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    x_fp32 = x.float()
    variance = x_fp32.square().mean(dim=-1, keepdim=True)
    normed = x_fp32 * torch.rsqrt(variance + eps)
    return (normed * weight.float()).type_as(x)
""",
)

# ---------------------------------------------------------------------- qk_norm_scores
add(
    "qk_norm_scores",
    "cosine_similarity",
    True,
    "F.normalize divides by the Euclidean length and not by the root mean square, so each of q and k is too small by "
    "sqrt(hd) and the scores by the factor hd; shows for every hd above 1.",
    """
def qk_norm_scores(
    queries: torch.Tensor,
    keys: torch.Tensor,
    query_weight: torch.Tensor,
    key_weight: torch.Tensor,
    eps: float = 1e-6,
) -> torch.Tensor:
    hd = queries.shape[-1]
    q = F.normalize(queries, dim=-1, eps=eps) * query_weight
    k = F.normalize(keys, dim=-1, eps=eps) * key_weight
    return torch.einsum("...id,...jd->...ij", q, k) * hd**-0.5
""",
)

# ----------------------------------------------------------- half_precision_attention
add(
    "half_precision_attention",
    "weights_rounded_as_in_flash",
    True,
    "The weights are rounded to the dtype of the values before the last product (as fast kernels do), so where large "
    "values nearly cancel the result is off by more than the rounding of inputs and result.",
    """
def half_precision_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
) -> torch.Tensor:
    dtype = values.dtype
    acc = dtype if dtype == torch.float64 else torch.float32
    q = queries.to(acc) / queries.shape[-1] ** 0.5
    s = torch.einsum("...qd,...kd->...qk", q, keys.to(acc))
    p = (s - s.amax(-1, keepdim=True)).exp()
    p = (p / p.sum(-1, keepdim=True)).to(dtype)
    return p @ values
""",
)

# ----------------------------------------------------------------------- document_mask
add(
    "document_mask",
    "float_distances",
    True,
    "Numbers are compared by torch.cdist of their float32 values, so two different documents whose large numbers "
    "round to the same float32 (above 2 ** 24) count as one.",
    """
def document_mask(documents: torch.Tensor) -> torch.Tensor:
    b, T = documents.shape
    ids = documents.float().unsqueeze(-1)  # (b, T, 1)
    far = (ids - ids.transpose(1, 2)).abs() > 0.5
    position = torch.arange(T, device=documents.device)
    later = position.view(1, 1, T) > position.view(1, T, 1)
    return torch.logical_or(far, later)
""",
)

# --------------------------------------------------------------------- paged_attention
add(
    "paged_attention",
    "masked_after_the_product",
    True,
    "All slots of the needed pages are multiplied and the empty ones are only masked with -inf, but 0 times NaN is "
    "NaN in the weighted sum of values (and in the query's gradient), so a NaN in the last page's empty slots "
    "spoils the result.",
    """
def paged_attention(
    query: torch.Tensor,
    key_pages: torch.Tensor,
    value_pages: torch.Tensor,
    block_table: torch.Tensor,
    length: int,
) -> torch.Tensor:
    page = key_pages.shape[1]
    needed = block_table[: -(-length // page)]
    k = key_pages[needed].flatten(0, 1)  # (slots, h, hd)
    v = value_pages[needed].flatten(0, 1)
    scores = torch.einsum("hd,thd->ht", query, k) / query.shape[-1] ** 0.5
    empty = torch.arange(k.shape[0], device=query.device) >= length
    weights = torch.softmax(scores.masked_fill(empty, -torch.inf), dim=-1)
    return torch.einsum("ht,thd->hd", weights, v)
""",
)
