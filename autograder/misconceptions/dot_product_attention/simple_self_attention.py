"""What goes wrong in `simple_self_attention`."""

import torch

from ...catalogue import misconception
from ...six_words import SIX_WORDS as X


@misconception("simple_self_attention", kind="value", caught_by="test_other_tokens")
def softmax_over_columns(inputs):
    """The columns of the weights sum to 1, not the rows: the softmax runs over dim=0, or the weights are transposed."""
    return torch.softmax(inputs @ inputs.T, dim=0) @ inputs


@misconception("simple_self_attention", kind="value", caught_by="test_other_tokens")
def attention_scaled(inputs):
    """The scores are divided by the square root of the width; simple attention does not scale yet, unit 2 does."""
    return torch.softmax(inputs @ inputs.T / inputs.shape[-1] ** 0.5, dim=-1) @ inputs


@misconception("simple_self_attention", kind="value", caught_by="test_other_tokens")
def attention_without_softmax(inputs):
    """The softmax is missing: the scores themselves are used as weights."""
    return inputs @ inputs.T @ inputs


@misconception("simple_self_attention", kind="value", caught_by="test_other_tokens")
def attention_by_plain_sums(inputs):
    """The scores are divided by their sum; take a softmax over each row."""
    scores = inputs @ inputs.T
    return scores / scores.sum(dim=-1, keepdim=True) @ inputs


@misconception("simple_self_attention", kind="contract", caught_by="test_other_tokens")
def attention_weights_returned(inputs):
    """The attention weights are returned; multiply them with the inputs to get the context vectors."""
    return torch.softmax(inputs @ inputs.T, dim=-1)


@misconception("simple_self_attention", kind="value", caught_by="test_other_tokens")
def softmax_of_everything(inputs):
    """The softmax runs over the whole matrix; each row should sum to 1 on its own, so use dim=-1."""
    scores = inputs @ inputs.T
    return torch.softmax(scores.flatten(), dim=0).view_as(scores) @ inputs


@misconception("simple_self_attention", kind="value", caught_by="test_other_tokens")
def attention_of_the_second_token(inputs):
    """Every row is the second token's context vector; each token is the query of its own row."""
    return (torch.softmax(inputs @ inputs[1], dim=-1) @ inputs).expand_as(inputs)


@misconception("simple_self_attention", kind="gradient", caught_by="test_gradients")
def attention_detached(inputs):
    """The weights are detached from the graph (`.detach()` or torch.no_grad()); gradients flow through them too."""
    return torch.softmax(inputs @ inputs.T, dim=-1).detach() @ inputs


@misconception("simple_self_attention", kind="value", caught_by="test_other_tokens")
def attention_divided_by_the_width(inputs):
    """The scores are divided by the width; simple attention does not scale them."""
    return torch.softmax(inputs @ inputs.T / inputs.shape[-1], dim=-1) @ inputs


@misconception("simple_self_attention", kind="value", caught_by="test_other_tokens")
def attention_scaled_by_the_tokens(inputs):
    """The scores are divided by the square root of the number of tokens; simple attention does not scale them."""
    return torch.softmax(inputs @ inputs.T / inputs.shape[0] ** 0.5, dim=-1) @ inputs


@misconception("simple_self_attention", kind="value", caught_by="test_other_tokens")
def weights_divided_by_the_root(inputs):
    """The weights are divided by the square root of the width after the softmax, so rows no longer sum to 1."""
    return torch.softmax(inputs @ inputs.T, dim=-1) / inputs.shape[-1] ** 0.5 @ inputs


@misconception("simple_self_attention", kind="value", caught_by="test_other_tokens")
def attention_averaged(inputs):
    """The context vectors are divided by the number of tokens; the weights sum to 1 already."""
    return torch.softmax(inputs @ inputs.T, dim=-1) @ inputs / inputs.shape[0]


@misconception("simple_self_attention", kind="contract", caught_by="test_other_tokens")
def attention_with_weights(inputs):
    """It returns a pair, context vectors and weights; only the context vectors are asked for."""
    weights = torch.softmax(inputs @ inputs.T, dim=-1)
    return weights @ inputs, weights


@misconception("simple_self_attention", kind="mask", caught_by="test_other_tokens")
def attention_is_causal(inputs):
    """Later tokens are hidden by a causal mask; here every token attends to all of them."""
    scores = inputs @ inputs.T
    mask = torch.triu(torch.ones_like(scores), diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, -torch.inf), dim=-1) @ inputs


@misconception("simple_self_attention", kind="mask", caught_by="test_other_tokens")
def attention_is_causal_by_a_cpu_mask(inputs):
    """Later tokens are hidden; here every token attends to all (and the mask is made on the CPU)."""
    scores = inputs @ inputs.T
    mask = torch.triu(torch.ones(inputs.shape[0], inputs.shape[0]), diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, -torch.inf), dim=-1) @ inputs


@misconception("simple_self_attention", kind="mask", caught_by="test_other_tokens")
def attention_not_to_itself(inputs):
    """A token's score with itself is hidden; every token attends to itself as well."""
    scores = inputs @ inputs.T
    return torch.softmax(scores.fill_diagonal_(-torch.inf), dim=-1) @ inputs


@misconception("simple_self_attention", kind="edge", caught_by="test_large_inputs_do_not_overflow")
def attention_overflows(inputs):
    """exp of large scores overflows: subtract each row's maximum first, or use torch.softmax."""
    weights = torch.exp(inputs @ inputs.T)
    return weights / weights.sum(dim=-1, keepdim=True) @ inputs


@misconception("simple_self_attention", kind="value", caught_by="test_other_tokens")
def attention_overflows_without_keepdim(inputs):
    """The sum lacks keepdim=True, so columns and not rows are normalised; and exp overflows. Or use torch.softmax(...,
    dim=-1).
    """
    weights = torch.exp(inputs @ inputs.T)
    return weights / weights.sum(dim=-1) @ inputs


@misconception("simple_self_attention", kind="edge", caught_by="test_large_inputs_do_not_overflow")
def attention_scores_clamped(inputs):
    """Large scores are cut off (clamp), which makes their weights equal; softmax copes with large scores itself."""
    return torch.softmax((inputs @ inputs.T).clamp(max=50), dim=-1) @ inputs


@misconception("simple_self_attention", kind="contract", caught_by="test_other_tokens")
def attention_of_the_first_token(inputs):
    """Only the first token's context vector is returned, (d,); every token gets one: (T, d)."""
    return torch.softmax(inputs @ inputs[0], dim=-1) @ inputs


@misconception("simple_self_attention", kind="value", caught_by="test_other_tokens")
def first_token_is_every_query(inputs):
    """Every row is the first token's context vector; each token is the query of its own row."""
    return (torch.softmax(inputs @ inputs[0], dim=-1) @ inputs).repeat(inputs.shape[0], 1)


@misconception("simple_self_attention", kind="value", caught_by="test_other_tokens")
def attention_added_to_the_inputs(inputs):
    """The inputs are added to the result (a residual connection); only the context vectors are asked for."""
    return inputs + torch.softmax(inputs @ inputs.T, dim=-1) @ inputs


@misconception("simple_self_attention", kind="value", caught_by="test_other_tokens")
def attention_between_features(inputs):
    """The columns attend to each other (inputs.T @ inputs, a (d, d) matrix); tokens are rows, so transpose the second
    factor.
    """
    return inputs @ torch.softmax(inputs.T @ inputs, dim=-1)


@misconception("simple_self_attention", kind="value", caught_by="test_other_tokens")
def attention_by_cosines(inputs):
    """The tokens are normalised before they are scored (cosines); a score is the plain dot product."""
    unit = inputs / inputs.norm(dim=-1, keepdim=True)
    return torch.softmax(unit @ unit.T, dim=-1) @ inputs


@misconception("simple_self_attention", kind="value", caught_by="test_other_tokens")
def attention_by_distances(inputs):
    """The weights come from distances; a score is the dot product."""
    return torch.softmax(-torch.cdist(inputs, inputs), dim=-1) @ inputs


@misconception("simple_self_attention", kind="value", caught_by="test_other_tokens")
def attention_with_the_sign_reversed(inputs):
    """The sign of the scores is reversed, so the least alike get the most weight."""
    return torch.softmax(-(inputs @ inputs.T), dim=-1) @ inputs


@misconception("simple_self_attention", kind="value", caught_by="test_other_tokens")
def softmax_applied_twice(inputs):
    """The softmax is applied twice, which flattens the weights; once is right."""
    weights = torch.softmax(inputs @ inputs.T, dim=-1)
    return torch.softmax(weights, dim=-1) @ inputs


@misconception("simple_self_attention", kind="value", caught_by="test_other_tokens")
def nearest_token_only(inputs):
    """Only the token with the largest score is returned for each; every token contributes by its weight."""
    return inputs[(inputs @ inputs.T).argmax(dim=-1)]


@misconception("simple_self_attention", kind="gradient", caught_by="test_gradients")
def attention_values_detached(inputs):
    """The inputs are detached where they are summed; gradients flow through them there as well."""
    return torch.softmax(inputs @ inputs.T, dim=-1) @ inputs.detach()


@misconception("simple_self_attention", kind="gradient", caught_by="test_gradients")
def attention_without_gradients(inputs):
    """The result carries no gradient (`.detach()`, `.data` or torch.no_grad())."""
    return (torch.softmax(inputs @ inputs.T, dim=-1) @ inputs).detach()


@misconception("simple_self_attention", kind="gradient", caught_by="test_gradients")
def attention_through_numpy(inputs):
    """The result is rebuilt from numbers (NumPy or `.item()`), so that no gradient flows back."""
    tokens = torch.from_numpy(inputs.detach().numpy())
    return torch.softmax(tokens @ tokens.T, dim=-1) @ tokens


@misconception("simple_self_attention", kind="dtype", caught_by="test_float64_stays_exact")
def attention_in_float32(inputs):
    """The result is float32 whatever the inputs are; keep their dtype."""
    tokens = inputs.float()
    return torch.softmax(tokens @ tokens.T, dim=-1) @ tokens


@misconception("simple_self_attention", kind="dtype", caught_by="test_float64_stays_exact")
def weights_in_float32(inputs):
    """The weights pass through float32, so float64 inputs lose digits; keep the inputs' dtype all along."""
    return torch.softmax(inputs @ inputs.T, dim=-1, dtype=torch.float32).to(inputs.dtype) @ inputs


@misconception("simple_self_attention", kind="dtype", caught_by="test_dtype_is_kept")
def attention_in_float64(inputs):
    """The result is float64 even for float32 inputs; convert it back."""
    tokens = inputs.double()
    return torch.softmax(tokens @ tokens.T, dim=-1) @ tokens


@misconception("simple_self_attention", kind="device", caught_by="test_follows_device")
def attention_filled_into_float32_zeros(inputs):
    """The result is filled into torch.zeros or torch.empty, float32 on the CPU; torch.zeros_like(inputs) follows the
    inputs.
    """
    context = torch.zeros(inputs.shape[0], inputs.shape[1])
    for i, token in enumerate(inputs):
        context[i] = torch.softmax(inputs @ token, dim=0) @ inputs
    return context


@misconception("simple_self_attention", kind="device", caught_by="test_follows_device")
def attention_left_on_the_cpu(inputs):
    """The result ends on the CPU, whatever device the inputs are on."""
    return (torch.softmax(inputs @ inputs.T, dim=-1) @ inputs).cpu()


@misconception("simple_self_attention", kind="edge", caught_by="test_other_tokens")
def attention_of_six_tokens(inputs):
    """The number of tokens is fixed at 6; take it from the inputs, inputs.shape[0]."""
    return torch.stack([torch.softmax(inputs @ inputs[i], dim=0) @ inputs for i in range(6)])


@misconception("simple_self_attention", kind="contract", caught_by="test_other_tokens")
def six_words_weights(inputs):
    """The weights are those of the notebook's X, not of the inputs that are passed in."""
    return torch.softmax(X @ X.T, dim=-1) @ inputs


@misconception("simple_self_attention", kind="contract", caught_by="test_other_tokens")
def six_words_attention(inputs):
    """It computes with the notebook's X, not with the inputs that are passed in."""
    return torch.softmax(X @ X.T, dim=-1) @ X


@misconception("simple_self_attention", kind="contract", caught_by="test_other_tokens")
def attention_not_returned(inputs):
    """Nothing is returned (None): end the function with `return`."""
    torch.softmax(inputs @ inputs.T, dim=-1) @ inputs


@misconception("simple_self_attention", kind="hard-coded output", caught_by="test_other_tokens")
def attention_typed_in(inputs):
    """The worked example's context vector is typed in; compute each from the inputs."""
    return torch.tensor([[0.4421, 0.5931, 0.5790]]).repeat(6, 1)


@misconception("simple_self_attention", kind="side effect", caught_by="test_inputs_are_unchanged")
def inputs_overwritten(inputs):
    """The inputs are overwritten with the result; return a new tensor and leave them as they were."""
    inputs[:] = torch.softmax(inputs @ inputs.T, dim=-1) @ inputs
    return inputs


@misconception("simple_self_attention", kind="side effect", caught_by="test_other_tokens")
def attention_one_after_the_other(inputs):
    """Each context vector replaces its token before the next is computed; all are made from the inputs as they were."""
    tokens = inputs.clone()
    for i in range(len(tokens)):
        tokens[i] = torch.softmax(tokens @ tokens[i], dim=0) @ tokens
    return tokens
