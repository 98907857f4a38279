"""What goes wrong in `score_variance`."""

import torch

from ...catalogue import misconception


@misconception("score_variance", kind="value", caught_by="test_worked_example")
def biased_variance(queries, keys):
    """This is the biased variance (divided by n); `Tensor.var()` as it is divides by n - 1."""
    scores = queries @ keys.transpose(-2, -1)
    return scores.var(unbiased=False), (scores / keys.shape[-1] ** 0.5).var(unbiased=False)


@misconception("score_variance", kind="value", caught_by="test_worked_example")
def standard_deviations(queries, keys):
    """These are standard deviations; the variance is their square: `Tensor.var()`."""
    scores = queries @ keys.transpose(-2, -1)
    return scores.std(), (scores / keys.shape[-1] ** 0.5).std()


@misconception("score_variance", kind="value", caught_by="test_worked_example")
def variance_of_scores_over_d_k(queries, keys):
    """The scores are divided by d_k, or queries and keys both by its root; divide the scores by the root of d_k,
    once.
    """
    scores = queries @ keys.transpose(-2, -1)
    return scores.var(), (scores / keys.shape[-1]).var()


@misconception("score_variance", kind="value", caught_by="test_worked_example")
def variance_divided_by_the_root(queries, keys):
    """The variance is divided by sqrt(d_k); dividing the scores by it divides their variance by d_k."""
    scores = queries @ keys.transpose(-2, -1)
    return scores.var(), scores.var() / keys.shape[-1] ** 0.5


@misconception("score_variance", kind="value", caught_by="test_worked_example")
def variance_a_row(queries, keys):
    """The variance is taken along the last dimension; take it over all scores together."""
    scores = queries @ keys.transpose(-2, -1)
    return scores.var(dim=-1), (scores / keys.shape[-1] ** 0.5).var(dim=-1)


@misconception("score_variance", kind="value", caught_by="test_worked_example")
def scaled_variance_first(queries, keys):
    """The two results are exchanged; return the raw variance first, then the scaled one."""
    scores = queries @ keys.transpose(-2, -1)
    return (scores / keys.shape[-1] ** 0.5).var(), scores.var()


@misconception("score_variance", kind="contract", caught_by="test_worked_example")
def variance_as_numbers(queries, keys):
    """The results are Python numbers (`.item()`); return the 0-d tensors."""
    scores = queries @ keys.transpose(-2, -1)
    return scores.var().item(), (scores / keys.shape[-1] ** 0.5).var().item()


@misconception("score_variance", kind="value", caught_by="test_worked_example")
def variance_of_the_weights(queries, keys):
    """A softmax is applied; it is the scores whose variance is asked for."""
    scores = queries @ keys.transpose(-2, -1)
    return scores.var(), torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1).var()


@misconception("score_variance", kind="value", caught_by="test_worked_example")
def variance_not_scaled(queries, keys):
    """Both results are the variance of the raw scores; the second is of the scores divided by sqrt(d_k)."""
    scores = queries @ keys.transpose(-2, -1)
    return scores.var(), scores.var()


@misconception("score_variance", kind="value", caught_by="test_worked_example")
def variance_of_multiplied_scores(queries, keys):
    """The scores are multiplied by the square root of d_k; divide by it."""
    scores = queries @ keys.transpose(-2, -1)
    return scores.var(), (scores * keys.shape[-1] ** 0.5).var()


@misconception("score_variance", kind="value", caught_by="test_worked_example")
def variance_scaled_by_the_tokens(queries, keys):
    """The scores are scaled by the root of the number of tokens; scale by that of the keys' width, d_k."""
    scores = queries @ keys.transpose(-2, -1)
    return scores.var(), (scores / keys.shape[-2] ** 0.5).var()


@misconception("score_variance", kind="value", caught_by="test_other_shapes")
def variance_with_a_rounded_root(queries, keys):
    """The square root of d_k is rounded to an integer; divide by `d_k ** 0.5` as it is."""
    scores = queries @ keys.transpose(-2, -1)
    return scores.var(), (scores / int(keys.shape[-1] ** 0.5)).var()


@misconception("score_variance", kind="hard-coded output", caught_by="test_other_shapes")
def variance_for_width_16(queries, keys):
    """The scaling is fixed to the root of 16; take the width from the keys, keys.shape[-1]."""
    scores = queries @ keys.transpose(-2, -1)
    return scores.var(), (scores / 16**0.5).var()


@misconception("score_variance", kind="hard-coded output", caught_by="test_other_shapes")
def variances_typed_in(queries, keys):
    """The worked example's variances are typed in; compute them from the scores."""
    return torch.tensor(17.4690), torch.tensor(1.0918)


@misconception("score_variance", kind="value", caught_by="test_worked_example")
def variance_of_queries_and_keys(queries, keys):
    """The variances of queries and keys are returned; it is the scores whose variance is asked for."""
    return queries.var(), keys.var()


@misconception("score_variance", kind="value", caught_by="test_worked_example")
def variance_of_all_weights(queries, keys):
    """A softmax is applied to both; it is the scores whose variance is asked for."""
    scores = queries @ keys.transpose(-2, -1)
    return torch.softmax(scores, dim=-1).var(), torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1).var()


@misconception("score_variance", kind="value", caught_by="test_worked_example")
def mean_of_row_variances(queries, keys):
    """The variance is taken for each row and averaged; take it over all scores together."""
    scores = queries @ keys.transpose(-2, -1)
    return scores.var(dim=-1).mean(), (scores / keys.shape[-1] ** 0.5).var(dim=-1).mean()


@misconception("score_variance", kind="value", caught_by="test_worked_example")
def mean_squares(queries, keys):
    """These are mean squares; the variance is taken around the mean: `Tensor.var()`."""
    scores = queries @ keys.transpose(-2, -1)
    return (scores**2).mean(), ((scores / keys.shape[-1] ** 0.5) ** 2).mean()


@misconception("score_variance", kind="value", caught_by="test_worked_example")
def variance_of_the_first_sequence(queries, keys):
    """Only the first sequence is measured; take the variance over all scores together."""
    scores = (queries @ keys.transpose(-2, -1))[0]
    return scores.var(), (scores / keys.shape[-1] ** 0.5).var()


@misconception("score_variance", kind="value", caught_by="test_worked_example")
def scores_scaled_in_place_before_measuring(queries, keys):
    """The scores are scaled in place before the raw variance is taken (`/=`), so both results are of the scaled
    ones.
    """
    scores = queries @ keys.transpose(-2, -1)
    scaled = scores
    scaled /= keys.shape[-1] ** 0.5
    return scores.var(), scaled.var()


@misconception("score_variance", kind="value", caught_by="test_worked_example")
def variance_of_products(queries, keys):
    """Queries and keys are multiplied place by place; scores are a matrix product, of queries and transposed keys."""
    scores = queries * keys
    return scores.var(), (scores / keys.shape[-1] ** 0.5).var()


@misconception("score_variance", kind="edge", caught_by="test_other_shapes")
def variance_with_keys_dims_1_and_2_swapped(queries, keys):
    """transpose(1, 2) is right for three dimensions only; transpose(-2, -1) swaps the last two of any number."""
    scores = queries @ keys.transpose(1, 2)
    return scores.var(), (scores / keys.shape[-1] ** 0.5).var()


@misconception("score_variance", kind="value", caught_by="test_worked_example")
def variance_with_keys_reversed(queries, keys):
    """`.T` reverses all dimensions of the keys, right in 2-D only; swap the last two with transpose(-2, -1)."""
    scores = queries @ keys.permute(*range(keys.dim() - 1, -1, -1))
    return scores.var(), (scores / keys.shape[-1] ** 0.5).var()


@misconception("score_variance", kind="contract", caught_by="test_worked_example")
def variance_and_mean(queries, keys):
    """torch.var_mean gives the raw variance and the mean; the second result is the variance of the scaled scores."""
    return torch.var_mean(queries @ keys.transpose(-2, -1))


@misconception("score_variance", kind="contract", caught_by="test_worked_example")
def scaled_variance_alone(queries, keys):
    """Only the scaled variance is returned; return two: the raw one, then the scaled one."""
    return (queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5).var()


@misconception("score_variance", kind="contract", caught_by="test_worked_example")
def variances_in_one_tensor(queries, keys):
    """The two variances are in one tensor (stack); return two 0-d tensors."""
    scores = queries @ keys.transpose(-2, -1)
    return torch.stack([scores.var(), (scores / keys.shape[-1] ** 0.5).var()])


@misconception("score_variance", kind="contract", caught_by="test_worked_example")
def variances_with_a_dimension(queries, keys):
    """The variances have shape (1,); 0-d tensors are asked for, as Tensor.var() gives."""
    scores = (queries @ keys.transpose(-2, -1)).flatten()
    return scores.var(dim=0, keepdim=True), (scores / keys.shape[-1] ** 0.5).var(dim=0, keepdim=True)


@misconception("score_variance", kind="contract", caught_by="test_worked_example")
def variances_as_a_dict(queries, keys):
    """The result is a dict; return a tuple of two tensors."""
    scores = queries @ keys.transpose(-2, -1)
    return {"raw": scores.var(), "scaled": (scores / keys.shape[-1] ** 0.5).var()}


@misconception("score_variance", kind="contract", caught_by="test_worked_example")
def variances_not_returned(queries, keys):
    """Nothing is returned (None): end the function with `return`."""
    scores = queries @ keys.transpose(-2, -1)
    scores.var(), (scores / keys.shape[-1] ** 0.5).var()


@misconception("score_variance", kind="gradient", caught_by="test_gradients")
def variances_without_gradients(queries, keys):
    """The variances carry no gradient (`.detach()`, `.data` or torch.no_grad())."""
    scores = (queries @ keys.transpose(-2, -1)).detach()
    return scores.var(), (scores / keys.shape[-1] ** 0.5).var()


@misconception("score_variance", kind="gradient", caught_by="test_gradients")
def variances_rebuilt_from_numbers(queries, keys):
    """The variances become Python numbers and then tensors again, which loses gradients and float64's digits."""
    scores = queries @ keys.transpose(-2, -1)
    return torch.tensor(scores.var().item()), torch.tensor((scores / keys.shape[-1] ** 0.5).var().item())


@misconception("score_variance", kind="gradient", caught_by="test_gradients")
def variances_by_numpy(queries, keys):
    """NumPy computes them, so that no gradient flows back; and its var() divides by n, torch's by n - 1."""
    scores = torch.from_numpy((queries @ keys.transpose(-2, -1)).detach().numpy())
    return scores.var(unbiased=False), (scores / keys.shape[-1] ** 0.5).var(unbiased=False)


@misconception("score_variance", kind="dtype", caught_by="test_float64_stays_exact")
def variances_in_float32(queries, keys):
    """The variances are float32 whatever the inputs are; keep their dtype."""
    scores = queries.float() @ keys.float().transpose(-2, -1)
    return scores.var(), (scores / keys.shape[-1] ** 0.5).var()


@misconception("score_variance", kind="dtype", caught_by="test_dtype_is_kept")
def variances_in_float64(queries, keys):
    """The variances are float64 even for float32 inputs; convert them back."""
    scores = queries.double() @ keys.double().transpose(-2, -1)
    return scores.var(), (scores / keys.shape[-1] ** 0.5).var()


@misconception("score_variance", kind="device", caught_by="test_follows_device")
def variances_left_on_the_cpu(queries, keys):
    """The variances end on the CPU, whatever device the inputs are on."""
    scores = queries @ keys.transpose(-2, -1)
    return scores.var().cpu(), (scores / keys.shape[-1] ** 0.5).var().cpu()


@misconception("score_variance", kind="side effect", caught_by="test_inputs_are_unchanged")
def queries_scaled_in_place_for_the_variance(queries, keys):
    """The caller's queries are scaled in place (`/=`); make a new tensor: queries / ..."""
    raw = (queries @ keys.transpose(-2, -1)).var()
    queries /= keys.shape[-1] ** 0.5
    return raw, (queries @ keys.transpose(-2, -1)).var()
