"""More blind answers to inference: (exercise, name, is_wrong, comment, source)."""

ANSWERS = []


def add(exercise, name, is_wrong, comment, source):
    ANSWERS.append((exercise, name, is_wrong, comment, source.strip("\n") + "\n"))


# --------------------------------------------------------------------- attention_flops
add(
    "attention_flops",
    "causal_half_only",
    True,
    "Scores and context are counted for the T * (T + 1) / 2 visible pairs only, as a causal kernel would, but the text "
    "counts masked scores, too; shows for more than one token.",
    """
def matmul_flops(n, m, k):
    return 2 * n * m * k


def attention_flops(b: int, T: int, d: int, h: int) -> int:
    hd = d // h
    per_sequence = 4 * matmul_flops(T, d, d)
    for position in range(1, T + 1):  # a query sees `position` keys
        per_sequence += h * matmul_flops(1, hd, position)
        per_sequence += h * matmul_flops(1, position, hd)
    return b * per_sequence
""",
)

# ------------------------------------------------------------------------- share_heads
add(
    "share_heads",
    "stacked_by_group",
    False,
    "Picks the group of each head and stacks them.",
    """
def share_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    groups = x.shape[1]
    size = num_heads // groups
    return torch.stack([x[:, head // size] for head in range(num_heads)], dim=1)
""",
)
