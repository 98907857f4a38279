"""What goes wrong in `dot_product_scores`."""

import torch
import torch.nn.functional as F

from ...catalogue import misconception


@misconception("dot_product_scores", kind="value", caught_by="test_other_queries")
def query_normalised(query, inputs):
    """The vectors are normalised first, which gives cosine similarities; a score is the plain dot product."""
    return F.normalize(inputs, dim=-1) @ F.normalize(query, dim=-1)


@misconception("dot_product_scores", kind="value", caught_by="test_other_queries")
def products_not_summed(query, inputs):
    """The products are not summed: a dot product adds them up over the embedding's width, which leaves (T,)."""
    return inputs * query


@misconception("dot_product_scores", kind="value", caught_by="test_other_queries")
def products_averaged(query, inputs):
    """The products are averaged over the embedding's width; a dot product is their sum."""
    return (inputs * query).mean(dim=-1)


@misconception("dot_product_scores", kind="value", caught_by="test_other_queries")
def summed_over_the_tokens(query, inputs):
    """The products are summed over the tokens (dim=0); sum over the embedding's width, dim=-1."""
    return (inputs * query).sum(dim=0)


@misconception("dot_product_scores", kind="value", caught_by="test_other_queries")
def second_token_is_always_the_query(query, inputs):
    """The second token is always used as the query; use the query that is passed in."""
    return inputs @ inputs[1]


@misconception("dot_product_scores", kind="value", caught_by="test_other_queries")
def scores_already_weights(query, inputs):
    """A softmax is applied already; scores are the plain dot products."""
    return torch.softmax(inputs @ query, dim=-1)


@misconception("dot_product_scores", kind="dtype", caught_by="test_float64_stays_exact")
def scores_filled_into_float32(query, inputs):
    """The scores are filled into a float32 tensor (torch.empty), so float64 loses digits; give it the inputs' dtype."""
    scores = torch.zeros(inputs.shape[0], device=inputs.device)
    for i, token in enumerate(inputs):
        scores[i] = torch.dot(token, query)
    return scores


@misconception("dot_product_scores", kind="gradient", caught_by="test_gradients")
def scores_taken_out_of_the_graph(query, inputs):
    """Each score leaves the graph (`.item()`, `.tolist()` or torch.tensor of numbers), so nothing can learn from it."""
    return torch.tensor([torch.dot(token, query).item() for token in inputs], dtype=inputs.dtype)
