"""What goes wrong in `pairwise_scores`."""

import torch
import torch.nn.functional as F

from ...catalogue import misconception
from ...six_words import SIX_WORDS as X


@misconception("pairwise_scores", kind="value", caught_by="test_other_tokens")
def features_against_features(inputs):
    """The columns meet each other (inputs.T @ inputs, a (d, d) matrix); tokens are rows, so transpose the second
    factor.
    """
    return inputs.T @ inputs


@misconception("pairwise_scores", kind="value", caught_by="test_other_tokens")
def pairwise_already_weights(inputs):
    """A softmax is applied already; pairwise scores are the plain dot products."""
    return torch.softmax(inputs @ inputs.T, dim=-1)


@misconception("pairwise_scores", kind="mask", caught_by="test_other_tokens")
def no_score_with_itself(inputs):
    """A token's score with itself is left out (0 on the diagonal); every token meets every token, itself included."""
    scores = inputs @ inputs.T
    return scores - torch.diag(scores.diagonal())


@misconception("pairwise_scores", kind="mask", caught_by="test_other_tokens")
def upper_half_only(inputs):
    """Only one half of the matrix is filled; every token meets every token, in both orders."""
    return torch.triu(inputs @ inputs.T)


@misconception("pairwise_scores", kind="value", caught_by="test_other_tokens")
def pairwise_cosines(inputs):
    """The tokens are normalised first, which gives cosine similarities; a score is the plain dot product."""
    unit = F.normalize(inputs, dim=-1)
    return unit @ unit.T


@misconception("pairwise_scores", kind="dtype", caught_by="test_float64_stays_exact")
def pairwise_in_float32(inputs):
    """The scores are float32 whatever the inputs are, so float64 loses digits; keep the inputs' dtype."""
    return inputs.float() @ inputs.float().T


@misconception("pairwise_scores", kind="value", caught_by="test_other_tokens")
def tokens_not_transposed(inputs):
    """The second factor is not transposed, which fails unless T = d; rows should meet rows."""
    return inputs @ inputs


@misconception("pairwise_scores", kind="value", caught_by="test_other_tokens")
def products_of_equal_places(inputs):
    """Numbers at the same place are multiplied (inputs * inputs); a score is the dot product of two rows, a matrix
    product.
    """
    return inputs * inputs


@misconception("pairwise_scores", kind="value", caught_by="test_other_tokens")
def scores_with_themselves_only(inputs):
    """Each token is scored with itself alone; every token meets every token."""
    return (inputs * inputs).sum(dim=-1)


@misconception("pairwise_scores", kind="value", caught_by="test_other_tokens")
def reshaped_not_transposed(inputs):
    """The inputs are reshaped to (d, T), which mixes the tokens' numbers; `.T` swaps rows and columns."""
    return inputs @ inputs.reshape(inputs.shape[1], inputs.shape[0])


@misconception("pairwise_scores", kind="value", caught_by="test_other_tokens")
def pairwise_scaled(inputs):
    """The scores are divided by the square root of the width; here a score is the plain dot product."""
    return inputs @ inputs.T / inputs.shape[-1] ** 0.5


@misconception("pairwise_scores", kind="value", caught_by="test_other_tokens")
def pairwise_averaged(inputs):
    """The products are averaged over the width; a dot product is their sum."""
    return inputs @ inputs.T / inputs.shape[-1]


@misconception("pairwise_scores", kind="value", caught_by="test_other_tokens")
def pairwise_divided_by_the_tokens(inputs):
    """The scores are divided by the number of tokens; a score is the plain dot product."""
    return inputs @ inputs.T / inputs.shape[0]


@misconception("pairwise_scores", kind="mask", caught_by="test_other_tokens")
def lower_half_only(inputs):
    """Scores above the diagonal are 0 (tril); every token meets every token, later ones too."""
    return torch.tril(inputs @ inputs.T)


@misconception("pairwise_scores", kind="mask", caught_by="test_other_tokens")
def causal_pairs_only(inputs):
    """Scores with later tokens are -inf, a causal mask; nothing is hidden here."""
    scores = inputs @ inputs.T
    return scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf)


@misconception("pairwise_scores", kind="mask", caught_by="test_other_tokens")
def causal_pairs_with_a_cpu_mask(inputs):
    """Scores with later tokens are -inf; nothing is hidden here (and the mask is made on the CPU)."""
    mask = torch.triu(torch.ones(inputs.shape[0], inputs.shape[0]), diagonal=1).bool()
    return (inputs @ inputs.T).masked_fill(mask, -torch.inf)


@misconception("pairwise_scores", kind="value", caught_by="test_other_tokens")
def distances_between_tokens(inputs):
    """The distances between tokens are returned; a score is the dot product."""
    return torch.cdist(inputs, inputs)


@misconception("pairwise_scores", kind="value", caught_by="test_other_tokens")
def pairwise_centred(inputs):
    """The mean is subtracted from the tokens first; a score is the dot product of the tokens as they are."""
    centred = inputs - inputs.mean(dim=0)
    return centred @ centred.T


@misconception("pairwise_scores", kind="value", caught_by="test_other_tokens")
def pairwise_squared(inputs):
    """The scores are squared; a score is the plain dot product."""
    return (inputs @ inputs.T) ** 2


@misconception("pairwise_scores", kind="value", caught_by="test_other_tokens")
def pairwise_products_not_summed(inputs):
    """The products are not summed: (T, T, d) is left. Sum over the width, dim=-1."""
    return inputs.unsqueeze(1) * inputs.unsqueeze(0)


@misconception("pairwise_scores", kind="value", caught_by="test_other_tokens")
def pairs_summed_over_the_tokens(inputs):
    """The products are summed over the tokens, not over the width: sum over dim=-1."""
    return (inputs.unsqueeze(1) * inputs.unsqueeze(0)).sum(dim=0)


@misconception("pairwise_scores", kind="contract", caught_by="test_other_tokens")
def scores_of_the_first_token(inputs):
    """Only the first token is a query, which gives (T,); every token is one: (T, T)."""
    return inputs @ inputs[0]


@misconception("pairwise_scores", kind="contract", caught_by="test_other_tokens")
def pairs_in_a_row(inputs):
    """All scores stand in one row of T*T numbers; the shape should be (T, T)."""
    return (inputs @ inputs.T).flatten()


@misconception("pairwise_scores", kind="contract", caught_by="test_other_tokens")
def pairs_in_a_batch(inputs):
    """The result has a batch dimension, (1, T, T); without one it is (T, T)."""
    return (inputs @ inputs.T).unsqueeze(0)


@misconception("pairwise_scores", kind="contract", caught_by="test_other_tokens")
def pairs_as_a_list(inputs):
    """The result is a list with a tensor for each row; torch.stack makes one (T, T) tensor of them."""
    return [inputs @ token for token in inputs]


@misconception("pairwise_scores", kind="contract", caught_by="test_other_tokens")
def pairs_as_lists(inputs):
    """The result is a list of lists; put the scores into one (T, T) tensor."""
    return [[torch.dot(one, other) for other in inputs] for one in inputs]


@misconception("pairwise_scores", kind="edge", caught_by="test_other_tokens")
def single_pair_squeezed(inputs):
    """squeeze() takes away the dimensions of a single token: with T = 1 the shape should be (1, 1)."""
    return (inputs @ inputs.T).squeeze()


@misconception("pairwise_scores", kind="edge", caught_by="test_other_tokens")
def first_six_pairs_only(inputs):
    """Only the first six tokens are scored; there may be more."""
    return (inputs @ inputs.T)[:6, :6]


@misconception("pairwise_scores", kind="edge", caught_by="test_other_tokens")
def six_by_six_always(inputs):
    """The scores are filled into a 6 x 6 tensor of float32; it should be (T, T) with T = inputs.shape[0], in the
    inputs' dtype.
    """
    scores = torch.zeros(6, 6)
    for i, one in enumerate(inputs):
        for j, other in enumerate(inputs):
            scores[i, j] = torch.dot(one, other)
    return scores


@misconception("pairwise_scores", kind="device", caught_by="test_follows_device")
def pairwise_filled_into_a_new_tensor(inputs):
    """The scores are filled into torch.empty or torch.zeros, float32 on the CPU; inputs.new_empty(T, T) follows the
    inputs.
    """
    scores = torch.empty(inputs.shape[0], inputs.shape[0])
    for i, one in enumerate(inputs):
        for j, other in enumerate(inputs):
            scores[i, j] = torch.dot(one, other)
    return scores


@misconception("pairwise_scores", kind="device", caught_by="test_follows_device")
def pairwise_left_on_the_cpu(inputs):
    """The scores end on the CPU, whatever device the inputs are on."""
    return (inputs @ inputs.T).cpu()


@misconception("pairwise_scores", kind="gradient", caught_by="test_gradients")
def pairwise_numbers_in_float32(inputs):
    """Each score becomes a Python number in a float32 tensor: gradients and float64's digits are lost."""
    scores = torch.zeros(inputs.shape[0], inputs.shape[0])
    for i, one in enumerate(inputs):
        for j, other in enumerate(inputs):
            scores[i, j] = torch.dot(one, other).item()
    return scores


@misconception("pairwise_scores", kind="gradient", caught_by="test_gradients")
def pairwise_out_of_the_graph(inputs):
    """The scores are rebuilt from numbers (torch.tensor of them, or NumPy), so that no gradient flows back."""
    return torch.tensor([[torch.dot(one, other) for other in inputs] for one in inputs])


@misconception("pairwise_scores", kind="gradient", caught_by="test_gradients")
def pairwise_refuse_gradients(inputs):
    """It fails for inputs that need gradients, as `.numpy()` does; stay with torch's operations."""
    return torch.from_numpy(inputs.numpy() @ inputs.numpy().T)


@misconception("pairwise_scores", kind="gradient", caught_by="test_gradients")
def pairwise_without_gradients(inputs):
    """The scores carry no gradient (`.detach()`, `.data` or torch.no_grad())."""
    return (inputs @ inputs.T).detach()


@misconception("pairwise_scores", kind="gradient", caught_by="test_gradients")
def pairwise_keys_detached(inputs):
    """The transposed inputs are detached, so half of the gradient is missing; both factors are the inputs."""
    return inputs @ inputs.T.detach()


@misconception("pairwise_scores", kind="gradient", caught_by="test_gradients")
def pairwise_queries_detached(inputs):
    """The first factor is detached, so half of the gradient is missing; both factors are the inputs."""
    return inputs.detach() @ inputs.T


@misconception("pairwise_scores", kind="dtype", caught_by="test_dtype_is_kept")
def pairwise_in_float64(inputs):
    """The scores are float64 even for float32 inputs; convert them back."""
    return inputs.double() @ inputs.double().T


@misconception("pairwise_scores", kind="contract", caught_by="test_other_tokens")
def pairs_of_the_six_words(inputs):
    """It scores the notebook's X, not the inputs that are passed in."""
    return X @ X.T


@misconception("pairwise_scores", kind="contract", caught_by="test_other_tokens")
def inputs_against_the_six_words(inputs):
    """The inputs are scored against the notebook's X; score them against themselves."""
    return inputs @ X.T


@misconception("pairwise_scores", kind="contract", caught_by="test_other_tokens")
def pairs_not_returned(inputs):
    """Nothing is returned (None): end the function with `return`."""
    inputs @ inputs.T


@misconception("pairwise_scores", kind="hard-coded output", caught_by="test_other_tokens")
def pairs_typed_in(inputs):
    """The worked example's first row is typed in; compute the scores from the inputs."""
    return torch.tensor([[0.9995, 0.9544, 0.9422, 0.4753, 0.4576, 0.6310]]).repeat(6, 1)


@misconception("pairwise_scores", kind="side effect", caught_by="test_inputs_are_unchanged")
def inputs_transposed_in_place(inputs):
    """`t_()` transposes the caller's inputs themselves; `.T` gives a transposed view and leaves them alone."""
    turned = inputs.t_()
    return turned.T @ turned
