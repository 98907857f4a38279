"""What goes wrong in `dot_product_scores`."""

import torch
import torch.nn.functional as F

from ...catalogue import misconception
from ...six_words import SIX_WORDS as X


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


@misconception("dot_product_scores", kind="contract", caught_by="test_other_queries")
def second_token_is_always_the_query(query, inputs):
    """The second token is always used as the query; use the query that is passed in."""
    return inputs @ inputs[1]


@misconception("dot_product_scores", kind="value", caught_by="test_other_queries")
def scores_already_weights(query, inputs):
    """A softmax is applied already; scores are the plain dot products."""
    return torch.softmax(inputs @ query, dim=-1)


@misconception("dot_product_scores", kind="dtype", caught_by="test_float64_stays_exact")
def scores_filled_into_float32(query, inputs):
    """The scores are float32 whatever the inputs are, so float64 loses digits; keep the inputs' dtype."""
    scores = torch.zeros(inputs.shape[0], device=inputs.device)
    for i, token in enumerate(inputs):
        scores[i] = torch.dot(token, query)
    return scores


@misconception("dot_product_scores", kind="gradient", caught_by="test_gradients")
def scores_taken_out_of_the_graph(query, inputs):
    """The scores are rebuilt from numbers (`.item()`, torch.tensor of numbers, NumPy), so that no gradient flows
    back.
    """
    return torch.tensor([torch.dot(token, query).item() for token in inputs], dtype=inputs.dtype)


@misconception("dot_product_scores", kind="edge", caught_by="test_other_queries")
def scores_of_the_first_coordinates(query, inputs):
    """Only the first three coordinates are multiplied; a dot product runs over all of them, however many there are."""
    return query[0] * inputs[:, 0] + query[1] * inputs[:, 1] + query[2] * inputs[:, 2]


@misconception("dot_product_scores", kind="value", caught_by="test_other_queries")
def score_divided_by_the_root(query, inputs):
    """The scores are divided by the square root of the width; here a score is the plain dot product."""
    return inputs @ query / query.shape[-1] ** 0.5


@misconception("dot_product_scores", kind="value", caught_by="test_other_queries")
def one_score_for_all_tokens(query, inputs):
    """All products are summed into one number; there is one score for each token, so sum over the width only,
    dim=-1.
    """
    return (inputs * query).sum()


@misconception("dot_product_scores", kind="contract", caught_by="test_other_queries")
def scores_as_a_column(query, inputs):
    """The scores come as a column of shape (T, 1); they should have shape (T,): no keepdim, and squeeze(-1) after a
    matrix product.
    """
    return inputs @ query.unsqueeze(-1)


@misconception("dot_product_scores", kind="contract", caught_by="test_other_queries")
def scores_as_a_row(query, inputs):
    """The scores come as a row of shape (1, T); they should have shape (T,): take row 0, or inputs @ query."""
    return query.unsqueeze(0) @ inputs.T


@misconception("dot_product_scores", kind="contract", caught_by="test_other_queries")
def scores_as_a_list(query, inputs):
    """The scores come as a Python list of tensors; torch.stack makes one tensor of shape (T,) of them."""
    return [torch.dot(token, query) for token in inputs]


@misconception("dot_product_scores", kind="contract", caught_by="test_other_queries")
def scores_not_returned(query, inputs):
    """Nothing is returned (None): end the function with `return`, a print does not hand the scores on."""
    inputs @ query


@misconception("dot_product_scores", kind="contract", caught_by="test_other_queries")
def all_pairs_of_tokens(query, inputs):
    """Every token is scored against every token, (T, T); here only the query is scored against the tokens, (T,)."""
    return inputs @ inputs.T


@misconception("dot_product_scores", kind="value", caught_by="test_other_queries")
def query_times_the_columns(query, inputs):
    """The query meets the columns of the inputs (query @ inputs, inputs.T @ query); tokens are rows, so it is
    inputs @ query.
    """
    return query @ inputs


@misconception("dot_product_scores", kind="edge", caught_by="test_other_queries")
def last_token_not_scored(query, inputs):
    """The last token gets no score: there are T scores, one for each row of the inputs."""
    return inputs[:-1] @ query


@misconception("dot_product_scores", kind="edge", caught_by="test_other_queries")
def six_tokens_always(query, inputs):
    """The number of tokens is fixed at 6; take it from the inputs, inputs.shape[0]."""
    scores = torch.empty(6, dtype=inputs.dtype)
    for i in range(6):
        scores[i] = torch.dot(inputs[i], query)
    return scores


@misconception("dot_product_scores", kind="contract", caught_by="test_other_queries")
def scores_of_the_six_words(query, inputs):
    """It scores the notebook's X, not the inputs that are passed in."""
    return X @ query


@misconception("dot_product_scores", kind="contract", caught_by="test_other_queries")
def journey_is_always_the_query(query, inputs):
    """The notebook's X[1] is used as the query; use the query that is passed in."""
    return inputs @ X[1]


@misconception("dot_product_scores", kind="hard-coded output", caught_by="test_other_queries")
def scores_typed_in(query, inputs):
    """The worked example's six scores are typed in; compute them from the arguments."""
    return torch.tensor([0.9544, 1.4950, 1.4754, 0.8434, 0.7070, 1.0865])


@misconception("dot_product_scores", kind="value", caught_by="test_other_queries")
def negative_scores_cut_off(query, inputs):
    """Negative scores become 0; a dot product may be negative and stays so."""
    return torch.relu(inputs @ query)


@misconception("dot_product_scores", kind="value", caught_by="test_other_queries")
def distances_as_scores(query, inputs):
    """The scores are distances with a minus; the score is the dot product of query and token."""
    return -(inputs - query).norm(dim=-1)


@misconception("dot_product_scores", kind="edge", caught_by="test_other_queries")
def single_score_squeezed(query, inputs):
    """squeeze() also takes away the dimension of a single token: with T = 1 the shape should be (1,). Use
    squeeze(-1).
    """
    return (inputs @ query.unsqueeze(-1)).squeeze()


@misconception("dot_product_scores", kind="gradient", caught_by="test_gradients")
def query_detached(query, inputs):
    """No gradient reaches the query: it is detached (`.detach()`, `.data` or `.item()`) before it is used."""
    return inputs @ query.detach()


@misconception("dot_product_scores", kind="gradient", caught_by="test_gradients")
def scored_inputs_detached(query, inputs):
    """No gradient reaches the inputs: they are detached (`.detach()`, `.data` or `.item()`) before they are used."""
    return inputs.detach() @ query


@misconception("dot_product_scores", kind="gradient", caught_by="test_gradients")
def scores_without_gradients(query, inputs):
    """The scores carry no gradient (`.detach()`, `.data` or torch.no_grad()), so nothing can learn through them."""
    return (inputs @ query).detach()


@misconception("dot_product_scores", kind="gradient", caught_by="test_gradients")
def scores_refuse_gradients(query, inputs):
    """It fails for tensors that need gradients, as `.numpy()` does; stay with torch's operations."""
    return torch.from_numpy(inputs.numpy() @ query.numpy())


@misconception("dot_product_scores", kind="gradient", caught_by="test_gradients")
def scores_made_of_float32_numbers(query, inputs):
    """Each score becomes a Python number, then float32: gradients are lost, and float64's digits too."""
    return torch.tensor([torch.dot(token, query).item() for token in inputs])


@misconception("dot_product_scores", kind="gradient", caught_by="test_gradients")
def scores_rebuilt_from_a_list(query, inputs):
    """The scores pass through `.tolist()`, which loses the gradients and the device."""
    return torch.tensor((inputs @ query).tolist(), dtype=inputs.dtype)


@misconception("dot_product_scores", kind="device", caught_by="test_follows_device")
def scores_filled_into_a_new_tensor(query, inputs):
    """The scores are filled into torch.empty or torch.zeros, float32 on the CPU; inputs.new_empty(T) has the inputs'
    dtype and device.
    """
    scores = torch.empty(inputs.shape[0])
    for i, token in enumerate(inputs):
        scores[i] = torch.dot(token, query)
    return scores


@misconception("dot_product_scores", kind="device", caught_by="test_follows_device")
def scores_left_on_the_cpu(query, inputs):
    """The scores end on the CPU whatever device the inputs are on: no `.cpu()`, and new tensors with
    device=inputs.device.
    """
    scores = torch.zeros(inputs.shape[0], dtype=inputs.dtype)
    for i, token in enumerate(inputs):
        scores[i] = torch.dot(token, query)
    return scores


@misconception("dot_product_scores", kind="dtype", caught_by="test_dtype_is_kept")
def scores_in_float64(query, inputs):
    """The scores are float64 even for float32 inputs; convert them back to the inputs' dtype."""
    return inputs.double() @ query.double()


@misconception("dot_product_scores", kind="dtype", caught_by="test_other_queries")
def scores_in_half_precision(query, inputs):
    """The products are taken in float16, which keeps three digits; stay in the inputs' dtype."""
    return (inputs.half() @ query.half()).to(inputs.dtype)


@misconception("dot_product_scores", kind="side effect", caught_by="test_inputs_are_unchanged")
def inputs_multiplied_in_place(query, inputs):
    """The inputs are overwritten with the products; make a new tensor: inputs * query."""
    inputs *= query
    return inputs.sum(dim=-1)
