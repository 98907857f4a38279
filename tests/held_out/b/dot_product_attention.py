"""Blind answers to dot_product_attention: (exercise, name, is_wrong, comment, source)."""

ANSWERS = []


def add(exercise, name, is_wrong, comment, source):
    ANSWERS.append((exercise, name, is_wrong, comment, source.strip("\n") + "\n"))


# ------------------------------------------------------------------ dot_product_scores
add(
    "dot_product_scores",
    "cosine_similarity",
    True,
    "F.cosine_similarity divides by the lengths of both vectors, so long vectors do not get larger scores; right only "
    "for vectors of length 1.",
    """
def dot_product_scores(query: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
    # how well two embeddings fit, as in a vector data base
    return F.cosine_similarity(inputs, query.unsqueeze(0), dim=-1)
""",
)

# -------------------------------------------------------------------- normalize_by_sum
add(
    "normalize_by_sum",
    "l1_norm",
    True,
    "F.normalize(p=1) divides by the sum of absolute values and not by the plain sum, so rows with negative scores "
    "do not sum to 1.",
    """
def normalize_by_sum(scores: torch.Tensor) -> torch.Tensor:
    return F.normalize(scores, p=1, dim=-1)
""",
)

# ----------------------------------------------------------------------------- softmax
add(
    "softmax",
    "maximum_of_the_last_dimension",
    True,
    "The largest score is taken along the last dimension whatever `dim` is, so for dim=0 different numbers are "
    "subtracted from the scores of one column and its weights are wrong.",
    """
def softmax(scores: torch.Tensor, dim: int = -1) -> torch.Tensor:
    largest = scores.amax(-1, keepdim=True)
    exponentials = torch.exp(scores - largest)
    return exponentials / exponentials.sum(dim=dim, keepdim=True)
""",
)

add(
    "softmax",
    "autocast_habit",
    True,
    "Scores are converted to float32 for the computation and the result is never converted back, so float64 scores "
    "give float32 weights with float32 precision (and half precision float32, too).",
    """
def softmax(scores: torch.Tensor, dim: int = -1) -> torch.Tensor:
    x = scores.to(torch.float32)  # softmax in half precision is not safe
    x = x - torch.max(x, dim=dim, keepdim=True).values
    e = x.exp()
    return e / e.sum(dim, keepdim=True)
""",
)

add(
    "softmax",
    "slices_along_dim",
    False,
    "Handles the slices along dim one by one and adds them up; the maximum is detached.",
    """
def softmax(scores: torch.Tensor, dim: int = -1) -> torch.Tensor:
    slices = torch.unbind(scores, dim=dim)
    highest = slices[0].detach()
    for one in slices[1:]:
        highest = torch.maximum(highest, one.detach())
    exponentials = torch.stack([(one - highest).exp() for one in slices], dim=dim)
    return exponentials / exponentials.sum(dim=dim, keepdim=True)
""",
)

# ------------------------------------------------------------------------ hunt_softmax
add(
    "hunt_softmax",
    "rows_alike",
    True,
    "Both rows are in the same range, so subtracting the maximum of the whole matrix instead of each row's gives the "
    "same weights: no row underflows.",
    """
def hunt_softmax() -> torch.Tensor:
    first = torch.tensor([1000.0, 1001.0, 1002.0])
    return torch.stack([first, first.flip(0)])
""",
)

# ---------------------------------------------------------------------- context_vector
add(
    "context_vector",
    "float32_accumulator",
    True,
    "The sum is collected in torch.zeros(d), which is float32 on the CPU, so float64 inputs give a float32 result "
    "(and inputs on another device an error).",
    """
def context_vector(weights: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
    num_tokens, width = inputs.shape
    context = torch.zeros(width)
    for j in range(num_tokens):
        context += weights[j] * inputs[j]
    return context
""",
)

# --------------------------------------------------------------------- pairwise_scores
add(
    "pairwise_scores",
    "diagonal_forgotten",
    True,
    "Each pair is computed once and mirrored, but the pairs come from combinations, which have no pair (i, i), so the "
    "diagonal, a token's score with itself, stays 0.",
    """
from itertools import combinations


def pairwise_scores(inputs: torch.Tensor) -> torch.Tensor:
    T = inputs.shape[0]
    scores = inputs.new_zeros(T, T)
    for i, j in combinations(range(T), 2):  # symmetric: half of the work
        scores[i, j] = scores[j, i] = inputs[i] @ inputs[j]
    return scores
""",
)

# --------------------------------------------------------------- simple_self_attention
add(
    "simple_self_attention",
    "softmax_over_the_queries",
    True,
    "The softmax runs over dim 0, the queries: the scores are symmetric, so this is the transpose of the right "
    "weights, whose rows do not sum to 1.",
    """
def simple_self_attention(inputs: torch.Tensor) -> torch.Tensor:
    scores = inputs @ inputs.T
    weights = nn.Softmax(dim=0)(scores)
    return weights @ inputs
""",
)

add(
    "simple_self_attention",
    "scaled_and_unsafe",
    True,
    "Two: the scores are divided by the root of the width, which this unit does not do, so all weights are too flat "
    "for d above 1; and exp is taken without subtracting the largest score, so scores in the thousands give NaN.",
    """
def simple_self_attention(inputs: torch.Tensor) -> torch.Tensor:
    T, d = inputs.shape
    raw = torch.einsum("id,jd->ij", inputs, inputs) / math.sqrt(d)
    e = raw.exp()
    attention = torch.einsum("ij,i->ij", e, 1 / e.sum(dim=1))
    return torch.einsum("ij,jd->id", attention, inputs)
""",
)

add(
    "simple_self_attention",
    "query_by_query",
    False,
    "One query after another, weights by torch.softmax.",
    """
def simple_self_attention(inputs: torch.Tensor) -> torch.Tensor:
    contexts = []
    for query in inputs.unbind(0):
        weights = torch.softmax(torch.mv(inputs, query), dim=0)
        contexts.append(torch.mv(inputs.t(), weights))
    return torch.stack(contexts, dim=0)
""",
)
