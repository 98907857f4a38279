"""More blind answers to multi_head_attention: (exercise, name, is_wrong, comment, source)."""

ANSWERS = []


def add(exercise, name, is_wrong, comment, source):
    ANSWERS.append((exercise, name, is_wrong, comment, source.strip("\n") + "\n"))


# ------------------------------------------------------------- stacked_heads_attention
add(
    "stacked_heads_attention",
    "einsum_context_transposed",
    True,
    "The last einsum, 'hts,htv->hsv', sums over the queries instead of over the keys, so the context vectors are "
    "made with the transposed weights; shapes fit because there are as many queries as keys.",
    """
def stacked_heads_attention(
    inputs: torch.Tensor,
    W_query: torch.Tensor,
    W_key: torch.Tensor,
    W_value: torch.Tensor,
) -> torch.Tensor:
    Q = torch.einsum("ti,hki->htk", inputs, W_query)
    K = torch.einsum("ti,hki->htk", inputs, W_key)
    V = torch.einsum("ti,hvi->htv", inputs, W_value)
    logits = torch.einsum("htk,hsk->hts", Q, K) * Q.shape[-1] ** -0.5
    A = logits.softmax(dim=-1)
    return torch.einsum("hts,htv->hsv", A, V)
""",
)

# ------------------------------------------------------------------------- split_heads
add(
    "split_heads",
    "every_hth_element",
    True,
    "The vector is viewed as (hd, h) instead of (h, hd), so head i gets every h-th element of a token from i on and "
    "not the i-th piece of neighbours; shows if there are several heads wider than 1.",
    """
def split_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    b, T, d = x.shape
    if d % num_heads != 0:
        raise ValueError("width must be divisible by the number of heads")
    return x.reshape(b, T, d // num_heads, num_heads).permute(0, 3, 1, 2)
""",
)

# ------------------------------------------------------------------------- merge_heads
add(
    "merge_heads",
    "view_without_contiguous_squeezed",
    True,
    "Two: view after transpose raises a RuntimeError where the swapped numbers do not lie in order (h and T both "
    "above 1); and .squeeze(0) drops the batch dimension if there is one sentence.",
    """
def merge_heads(x: torch.Tensor) -> torch.Tensor:
    b, h, T, hd = x.size()
    swapped = x.transpose(1, 2)
    return swapped.view(b, T, h * hd).squeeze(0)
""",
)

add(
    "merge_heads",
    "concatenates_the_heads",
    False,
    "Takes the heads apart and puts them side by side.",
    """
def merge_heads(x: torch.Tensor) -> torch.Tensor:
    return torch.cat(torch.unbind(x, dim=1), dim=-1)
""",
)
