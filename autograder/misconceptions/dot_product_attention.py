"""Unit 1: what goes wrong in attention without weights."""

import torch
import torch.nn.functional as F

from ..catalogue import FORBIDDEN, misconception

# --- dot_product_scores ---


@misconception("dot_product_scores", caught_by="test_other_queries")
def query_normalised(query, inputs):
    """The vectors are normalised first, which gives cosine similarities; a score is the plain dot product."""
    return F.normalize(inputs, dim=-1) @ F.normalize(query, dim=-1)


@misconception("dot_product_scores", caught_by="test_other_queries")
def products_not_summed(query, inputs):
    """The products are not summed: a dot product adds them up over the embedding's width, which leaves (T,)."""
    return inputs * query


@misconception("dot_product_scores", caught_by="test_other_queries")
def products_averaged(query, inputs):
    """The products are averaged over the embedding's width; a dot product is their sum."""
    return (inputs * query).mean(dim=-1)


@misconception("dot_product_scores", caught_by="test_other_queries")
def summed_over_the_tokens(query, inputs):
    """The products are summed over the tokens (dim=0); sum over the embedding's width, dim=-1."""
    return (inputs * query).sum(dim=0)


@misconception("dot_product_scores", caught_by="test_other_queries")
def second_token_is_always_the_query(query, inputs):
    """The second token is always used as the query; use the query that is passed in."""
    return inputs @ inputs[1]


@misconception("dot_product_scores", caught_by="test_other_queries")
def scores_already_weights(query, inputs):
    """A softmax is applied already; scores are the plain dot products."""
    return torch.softmax(inputs @ query, dim=-1)


@misconception("dot_product_scores", caught_by="test_float64_stays_exact")
def scores_filled_into_float32(query, inputs):
    """The scores are filled into a float32 tensor (torch.empty), so float64 loses digits; give it the inputs' dtype."""
    scores = torch.zeros(inputs.shape[0], device=inputs.device)
    for i, token in enumerate(inputs):
        scores[i] = torch.dot(token, query)
    return scores


@misconception("dot_product_scores", caught_by="test_gradients")
def scores_taken_out_of_the_graph(query, inputs):
    """Each score leaves the graph (`.item()`, `.tolist()` or torch.tensor of numbers), so nothing can learn from it."""
    return torch.tensor([torch.dot(token, query).item() for token in inputs], dtype=inputs.dtype)


# --- normalize_by_sum ---


@misconception("normalize_by_sum", caught_by="test_leading_dimensions")
def divided_by_the_sum_of_everything(scores):
    """Everything is divided by the sum of the whole tensor; each row should sum to 1: sum over dim=-1, keepdim=True."""
    return scores / scores.sum()


@misconception("normalize_by_sum", caught_by="test_leading_dimensions")
def sum_without_keepdim(scores):
    """The sum loses its dimension, so it meets the wrong numbers in a matrix; pass keepdim=True."""
    return scores / scores.sum(dim=-1)


@misconception("normalize_by_sum", caught_by="test_leading_dimensions")
def summed_over_dim_0(scores):
    """The sum runs over dim=0, which is the last dimension of a vector only; use dim=-1."""
    return scores / scores.sum(dim=0, keepdim=True)


@misconception("normalize_by_sum", caught_by="test_six_words")
def softmax_instead_of_a_sum(scores):
    """This is a softmax; here the scores are divided by their plain sum, without exponentials."""
    return torch.softmax(scores, dim=-1)


@misconception("normalize_by_sum", caught_by="test_six_words")
def divided_by_the_norm(scores):
    """The scores are divided by their length (the root of the sum of squares); divide by their sum."""
    return F.normalize(scores, dim=-1)


@misconception("normalize_by_sum", caught_by="test_six_words")
def divided_by_the_maximum(scores):
    """The scores are divided by their maximum; divide by their sum."""
    return scores / scores.max(dim=-1, keepdim=True).values


@misconception("normalize_by_sum", caught_by="test_negative_scores")
def divided_by_absolute_values(scores):
    """The scores are divided by the sum of their absolute values; divide by the plain sum."""
    return scores / scores.abs().sum(dim=-1, keepdim=True)


@misconception("normalize_by_sum", caught_by="test_inputs_are_unchanged")
def normalised_in_place(scores):
    """`/=` writes into the caller's scores; make a new tensor with `scores / ...`."""
    scores /= scores.sum(dim=-1, keepdim=True)
    return scores


# --- softmax ---


@misconception("softmax", caught_by="test_large_scores_do_not_overflow")
def naive_exponentials(scores, dim=-1):
    """exp overflows for large scores: subtract the maximum along dim first, which leaves the weights as they are."""
    exponentials = torch.exp(scores)
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", caught_by="test_any_dimension")
def always_the_last_dimension(scores, dim=-1):
    """The argument dim is ignored: maximum and sum always run over the last dimension."""
    exponentials = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


@misconception("softmax", caught_by="test_any_dimension")
def sum_over_everything(scores, dim=-1):
    """The sum runs over the whole tensor; along dim alone, with keepdim=True, each slice sums to 1."""
    exponentials = torch.exp(scores - scores.max())
    return exponentials / exponentials.sum()


@misconception("softmax", caught_by="test_any_dimension")
def softmax_without_keepdim(scores, dim=-1):
    """The sum loses its dimension, so it meets the wrong numbers in a matrix; pass keepdim=True."""
    exponentials = torch.exp(scores - scores.max())
    return exponentials / exponentials.sum(dim=dim)


@misconception("softmax", caught_by="test_rows_far_apart")
def maximum_of_everything(scores, dim=-1):
    """The maximum of the whole tensor is subtracted: rows far below it underflow to 0/0. Take it along dim."""
    exponentials = torch.exp(scores - scores.max())
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", caught_by="test_large_scores_do_not_overflow")
def scores_clamped(scores, dim=-1):
    """Large scores are cut off (clamp), which changes their weights; subtract the maximum, which does not."""
    exponentials = torch.exp(scores.clamp(-50, 50))
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", caught_by="test_six_words")
def powers_of_two(scores, dim=-1):
    """Powers of 2 are taken; softmax takes powers of e: torch.exp."""
    exponentials = torch.pow(2, scores - scores.amax(dim=dim, keepdim=True))
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", caught_by="test_six_words")
def no_exponentials(scores, dim=-1):
    """The scores are divided by their sum without exponentials; softmax takes exp of each score first."""
    return scores / scores.sum(dim=dim, keepdim=True)


@misconception("softmax", caught_by=FORBIDDEN)
def library_softmax(scores, dim=-1):
    """This calls a library softmax; the exercise is to write it from exp and a sum."""
    return torch.softmax(scores, dim=dim)


@misconception("softmax", caught_by="test_dtypes")
def softmax_always_in_float32(scores, dim=-1):
    """The result is always float32; a softmax keeps its input's dtype."""
    exponentials = torch.exp(scores.float() - scores.float().amax(dim=dim, keepdim=True))
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", caught_by="test_inputs_are_unchanged")
def maximum_subtracted_in_place(scores, dim=-1):
    """`-=` writes into the caller's scores; make a new tensor with `scores - ...`."""
    scores -= scores.amax(dim=dim, keepdim=True).clone()
    return scores.exp() / scores.exp().sum(dim=dim, keepdim=True)


# --- context_vector ---


@misconception("context_vector", caught_by="test_other_weights")
def products_left_apart(weights, inputs):
    """The weighted tokens are not summed: add them up over the tokens (dim=0), which leaves (d,)."""
    return weights.unsqueeze(-1) * inputs


@misconception("context_vector", caught_by="test_other_weights")
def weighted_tokens_averaged(weights, inputs):
    """The weighted tokens are averaged; the weights sum to 1 already, so add the tokens up."""
    return (weights.unsqueeze(-1) * inputs).mean(dim=0)


@misconception("context_vector", caught_by="test_other_weights")
def weights_ignored(weights, inputs):
    """The tokens are averaged without the weights; multiply each token by its weight and add them up."""
    return inputs.mean(dim=0)


@misconception("context_vector", caught_by="test_other_weights")
def heaviest_token_only(weights, inputs):
    """Only the token with the largest weight is returned; every token contributes by its weight."""
    return inputs[weights.argmax()]


@misconception("context_vector", caught_by="test_other_weights")
def weights_normalised_again(weights, inputs):
    """A softmax is applied to the weights; they are weights already and are used as they are."""
    return torch.softmax(weights, dim=-1) @ inputs


@misconception("context_vector", caught_by="test_gradients")
def context_weights_detached(weights, inputs):
    """The weights are detached (`.detach()`, `.item()` or `.tolist()`), so no gradient reaches them."""
    return weights.detach() @ inputs


# --- pairwise_scores ---


@misconception("pairwise_scores", caught_by="test_other_tokens")
def features_against_features(inputs):
    """The columns meet each other (inputs.T @ inputs, a (d, d) matrix); tokens are rows: inputs @ inputs.T."""
    return inputs.T @ inputs


@misconception("pairwise_scores", caught_by="test_other_tokens")
def pairwise_already_weights(inputs):
    """A softmax is applied already; pairwise scores are the plain dot products."""
    return torch.softmax(inputs @ inputs.T, dim=-1)


@misconception("pairwise_scores", caught_by="test_other_tokens")
def no_score_with_itself(inputs):
    """A token's score with itself is left out (0 on the diagonal); every token meets every token, itself included."""
    scores = inputs @ inputs.T
    return scores - torch.diag(scores.diagonal())


@misconception("pairwise_scores", caught_by="test_other_tokens")
def upper_half_only(inputs):
    """Only one half of the matrix is filled; every token meets every token, in both orders."""
    return torch.triu(inputs @ inputs.T)


@misconception("pairwise_scores", caught_by="test_other_tokens")
def pairwise_cosines(inputs):
    """The tokens are normalised first, which gives cosine similarities; a score is the plain dot product."""
    unit = F.normalize(inputs, dim=-1)
    return unit @ unit.T


@misconception("pairwise_scores", caught_by="test_float64_stays_exact")
def pairwise_in_float32(inputs):
    """The scores are float32 whatever the inputs are, so float64 loses digits; keep the inputs' dtype."""
    return inputs.float() @ inputs.float().T


# --- simple_self_attention ---


@misconception("simple_self_attention", caught_by="test_other_tokens")
def softmax_over_columns(inputs):
    """The columns of the weights sum to 1, not the rows: the softmax runs over dim=0, or the weights are transposed."""
    return torch.softmax(inputs @ inputs.T, dim=0) @ inputs


@misconception("simple_self_attention", caught_by="test_other_tokens")
def attention_scaled(inputs):
    """The scores are divided by the square root of the width; simple attention does not scale yet, unit 2 does."""
    return torch.softmax(inputs @ inputs.T / inputs.shape[-1] ** 0.5, dim=-1) @ inputs


@misconception("simple_self_attention", caught_by="test_other_tokens")
def attention_without_softmax(inputs):
    """The softmax is missing: the scores themselves are used as weights."""
    return inputs @ inputs.T @ inputs


@misconception("simple_self_attention", caught_by="test_other_tokens")
def attention_by_plain_sums(inputs):
    """The scores are divided by their sum; take a softmax over each row."""
    scores = inputs @ inputs.T
    return scores / scores.sum(dim=-1, keepdim=True) @ inputs


@misconception("simple_self_attention", caught_by="test_other_tokens")
def attention_weights_returned(inputs):
    """The attention weights are returned; multiply them with the inputs to get the context vectors."""
    return torch.softmax(inputs @ inputs.T, dim=-1)


@misconception("simple_self_attention", caught_by="test_other_tokens")
def softmax_of_everything(inputs):
    """The softmax runs over the whole matrix; each row should sum to 1 on its own, so use dim=-1."""
    scores = inputs @ inputs.T
    return torch.softmax(scores.flatten(), dim=0).view_as(scores) @ inputs


@misconception("simple_self_attention", caught_by="test_other_tokens")
def attention_of_the_second_token(inputs):
    """Every row is the second token's context vector; each token is the query of its own row."""
    return (torch.softmax(inputs @ inputs[1], dim=-1) @ inputs).expand_as(inputs)


@misconception("simple_self_attention", caught_by="test_gradients")
def attention_detached(inputs):
    """The weights are detached from the graph (`.detach()` or torch.no_grad()); gradients flow through them too."""
    return torch.softmax(inputs @ inputs.T, dim=-1).detach() @ inputs
