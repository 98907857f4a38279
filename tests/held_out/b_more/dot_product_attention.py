"""More blind answers to dot_product_attention: (exercise, name, is_wrong, comment, source)."""

ANSWERS = []


def add(exercise, name, is_wrong, comment, source):
    ANSWERS.append((exercise, name, is_wrong, comment, source.strip("\n") + "\n"))


# -------------------------------------------------------------------- normalize_by_sum
add(
    "normalize_by_sum",
    "sum_keeps_no_dimension",
    True,
    "The sum has no keepdim, so it is broadcast along the rows: for a square matrix column j is divided by the sum "
    "of row j, and other shapes raise an error; a single row is right.",
    """
def normalize_by_sum(scores: torch.Tensor) -> torch.Tensor:
    total = torch.einsum("...t->...", scores)
    return scores / total
""",
)

# ----------------------------------------------------------------------------- softmax
add(
    "softmax",
    "moved_axis_and_one_maximum",
    True,
    "Two: the maximum of the whole tensor is subtracted, so a row far below the largest score becomes 0 / 0 = NaN; "
    "and the axis that was swapped to the end is not swapped back, so for any other dim than the last the result is "
    "transposed.",
    """
def softmax(scores: torch.Tensor, dim: int = -1) -> torch.Tensor:
    x = scores.transpose(dim, -1)
    x = x - x.max()
    e = torch.exp(x)
    return e / e.sum(dim=-1, keepdim=True)
""",
)

# --------------------------------------------------------------------- pairwise_scores
add(
    "pairwise_scores",
    "sum_of_products",
    False,
    "All products by broadcasting, summed over the width.",
    """
def pairwise_scores(inputs: torch.Tensor) -> torch.Tensor:
    queries = inputs.unsqueeze(1)  # (T, 1, d)
    tokens = inputs.unsqueeze(0)  # (1, T, d)
    return torch.sum(queries * tokens, dim=2)
""",
)
