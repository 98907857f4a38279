"""Blind answers to dot_product_attention: (exercise, name, is_wrong, comment, source)."""

ANSWERS = []


def add(exercise, name, is_wrong, comment, source):
    ANSWERS.append((exercise, name, is_wrong, comment, source.strip("\n") + "\n"))


add(
    "dot_product_scores",
    "w_cosine",
    True,
    "Computes the cosine similarity: the last line divides each dot product by the lengths of both vectors, so the "
    "scores are wrong whenever the vectors do not have length 1.",
    """
def dot_product_scores(query: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
    # similarity of the query with every token
    lengths = query.norm() * inputs.norm(dim=-1)
    products = torch.einsum("d,td->t", query, inputs)
    return products / lengths
""",
)

add(
    "normalize_by_sum",
    "w_double_transpose",
    True,
    "Uses .T twice in place of keepdim in the return line: right for one and two dimensions, but with two leading "
    "dimensions .T reverses all three, so the division by the (a, b) sums raises an error or, if a = b, divides by the "
    "sums of the wrong rows.",
    """
def normalize_by_sum(scores: torch.Tensor) -> torch.Tensor:
    row_sums = scores.sum(dim=-1)
    # put the rows last, so that every row is divided by its own sum
    return (scores.T / row_sums).T
""",
)

add(
    "softmax",
    "w_max_last_dim",
    True,
    "The maximum (line `peak = ...`) is always taken along the last dimension and not along dim: with dim=0 or dim=1 of "
    "three dimensions a different number is subtracted from the elements that are normalized together, so the weights "
    "are wrong.",
    """
def softmax(scores: torch.Tensor, dim: int = -1) -> torch.Tensor:
    peak = scores.amax(dim=-1, keepdim=True)   # numerical stability
    numerator = torch.exp(scores - peak)
    denominator = numerator.sum(dim=dim, keepdim=True)
    return numerator / denominator
""",
)

add(
    "softmax",
    "w_inplace_and_float",
    True,
    "Two: `.float()` computes (and returns) float32 also for float64 and half precision, so dtype and precision are lost; "
    "and since .float() of a float32 tensor is the same tensor, `x -= ...` modifies the caller's scores.",
    """
def softmax(scores: torch.Tensor, dim: int = -1) -> torch.Tensor:
    x = scores.float()
    x -= x.max(dim=dim, keepdim=True).values
    e = torch.exp(x)
    return e / torch.sum(e, dim, keepdim=True)
""",
)

add(
    "softmax",
    "r_movedim",
    False,
    "Moves the dimension to the end, detaches the maximum, moves back.",
    """
def _last_axis_softmax(matrix):
    with torch.no_grad():
        shift, _ = matrix.max(dim=-1)
    powers = (matrix - shift[..., None]).exp()
    return powers / powers.sum(dim=-1)[..., None]


def softmax(scores: torch.Tensor, dim: int = -1) -> torch.Tensor:
    moved = torch.movedim(scores, dim, -1)
    return torch.movedim(_last_axis_softmax(moved), -1, dim)
""",
)

add(
    "hunt_softmax",
    "w_integers",
    True,
    "The tensor is made of Python ints, so its dtype is int64 and not the float32 that is asked for.",
    """
def hunt_softmax() -> torch.Tensor:
    # first row huge, second row small: the global maximum kills the second row
    return torch.tensor([[5000, 5001, 5002], [1, 2, 3]])
""",
)

add(
    "context_vector",
    "w_normalizes",
    True,
    "Divides by the sum of the weights (like np.average) on the return line, which shows if the weights do not sum to "
    "1.",
    '''
def context_vector(weights: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
    """Weighted average of the rows."""
    total = torch.zeros_like(inputs[0])
    for w, row in zip(weights, inputs):
        total = total + w * row
    return total / weights.sum()
''',
)

add(
    "pairwise_scores",
    "w_no_diagonal",
    True,
    "The inner loop begins at i + 1 and the result is the triangle plus its transpose, so the diagonal, the score of a "
    "token with itself, stays 0.",
    """
def pairwise_scores(inputs: torch.Tensor) -> torch.Tensor:
    T = inputs.shape[0]
    upper = inputs.new_zeros(T, T)
    # the table is symmetric, so half of the dot products are enough
    for i in range(T):
        for j in range(i + 1, T):
            upper[i, j] = inputs[i] @ inputs[j]
    return upper + upper.T
""",
)

add(
    "simple_self_attention",
    "w_scaled",
    True,
    "Divides the scores by sqrt(d) in the line of `scores`, which this unit does not do, so every result with d > 1 is "
    "off.",
    """
def simple_self_attention(inputs: torch.Tensor) -> torch.Tensor:
    d = inputs.shape[-1]
    scores = inputs @ inputs.T / d ** 0.5
    weights = torch.softmax(scores, dim=-1)
    return weights @ inputs
""",
)

add(
    "simple_self_attention",
    "r_one_query_at_a_time",
    False,
    "Query by query, with a stable softmax in a helper.",
    """
def _attend(query, tokens):
    scores = (tokens * query).sum(dim=1)
    shares = (scores - scores.max()).exp()
    shares = shares / shares.sum()
    return shares @ tokens


def simple_self_attention(inputs: torch.Tensor) -> torch.Tensor:
    return torch.stack([_attend(token, inputs) for token in inputs.unbind(0)])
""",
)
