"""What goes wrong in `normalize_by_sum`."""

import torch
import torch.nn.functional as F

from ...catalogue import misconception


@misconception("normalize_by_sum", kind="edge", caught_by="test_leading_dimensions")
def divided_by_the_sum_of_everything(scores):
    """Everything is divided by the sum of the whole tensor; each row should sum to 1: sum over dim=-1, keepdim=True."""
    return scores / scores.sum()


@misconception("normalize_by_sum", kind="edge", caught_by="test_leading_dimensions")
def sum_without_keepdim(scores):
    """The sum loses its dimension, so it meets the wrong numbers in a matrix; pass keepdim=True."""
    return scores / scores.sum(dim=-1)


@misconception("normalize_by_sum", kind="edge", caught_by="test_leading_dimensions")
def summed_over_dim_0(scores):
    """The sum runs over dim=0, which is the last dimension of a vector only; use dim=-1."""
    return scores / scores.sum(dim=0, keepdim=True)


@misconception("normalize_by_sum", kind="value", caught_by="test_six_words")
def softmax_instead_of_a_sum(scores):
    """This is a softmax; here the scores are divided by their plain sum, without exponentials."""
    return torch.softmax(scores, dim=-1)


@misconception("normalize_by_sum", kind="value", caught_by="test_six_words")
def divided_by_the_norm(scores):
    """The scores are divided by their length (the root of the sum of squares); divide by their sum."""
    return F.normalize(scores, dim=-1)


@misconception("normalize_by_sum", kind="value", caught_by="test_six_words")
def divided_by_the_maximum(scores):
    """The scores are divided by their maximum; divide by their sum."""
    return scores / scores.max(dim=-1, keepdim=True).values


@misconception("normalize_by_sum", kind="edge", caught_by="test_negative_scores")
def divided_by_absolute_values(scores):
    """The scores are divided by the sum of their absolute values; divide by the plain sum."""
    return scores / scores.abs().sum(dim=-1, keepdim=True)


@misconception("normalize_by_sum", kind="side effect", caught_by="test_inputs_are_unchanged")
def normalised_in_place(scores):
    """The weights are written into the caller's scores (`/=`, `div_`); make a new tensor with `scores / ...`."""
    scores /= scores.sum(dim=-1, keepdim=True)
    return scores


@misconception("normalize_by_sum", kind="value", caught_by="test_leading_dimensions")
def summed_over_dim_1(scores):
    """The sum runs over dim=1, the last dimension of a matrix only; use dim=-1."""
    return scores / scores.sum(dim=1, keepdim=True)


@misconception("normalize_by_sum", kind="value", caught_by="test_leading_dimensions")
def summed_over_dim_1_of_a_matrix(scores):
    """With three dimensions the sum runs over the second; it is the last one everywhere: dim=-1."""
    return scores / scores.sum(dim=min(1, scores.dim() - 1), keepdim=True)


@misconception("normalize_by_sum", kind="value", caught_by="test_leading_dimensions")
def summed_over_the_rows_of_a_matrix(scores):
    """With more than one dimension the sum runs over the last but one; it is the last one everywhere: dim=-1."""
    return scores / scores.sum(dim=max(-2, -scores.dim()), keepdim=True)


@misconception("normalize_by_sum", kind="value", caught_by="test_leading_dimensions")
def each_matrix_sums_to_1(scores):
    """The leading dimension alone is kept apart: where there are three, each matrix sums to 1, and each row should."""
    return scores / (
        scores.sum() if scores.dim() == 1 else scores.flatten(1).sum(dim=1).view(-1, *[1] * (scores.dim() - 1))
    )


@misconception("normalize_by_sum", kind="value", caught_by="test_leading_dimensions")
def rows_turned_with_T(scores):
    """`.T` is used to line up sums and rows, which fits a matrix only; sum(dim=-1, keepdim=True) fits any shape."""
    return (scores.T / scores.sum(dim=-1)).T


@misconception("normalize_by_sum", kind="value", caught_by="test_float64_stays_exact")
def small_number_added_to_the_sum(scores):
    """A small number is added to the sum, so the weights no longer sum to 1 exactly; divide by the plain sum."""
    return scores / (scores.sum(dim=-1, keepdim=True) + 1e-6)


@misconception("normalize_by_sum", kind="value", caught_by="test_float64_stays_exact")
def tiny_number_added_to_the_sum(scores):
    """In float64 the weights are off in the ninth digit: is a small number such as 1e-8 added to the sum? The plain
    sum is wanted.
    """
    return scores / (scores.sum(dim=-1, keepdim=True) + 1e-8)


@misconception("normalize_by_sum", kind="edge", caught_by="test_negative_scores")
def sum_kept_above_a_small_number(scores):
    """A sum below zero is replaced by a small positive number (clamp); divide by the sum as it is."""
    return scores / scores.sum(dim=-1, keepdim=True).clamp(min=1e-6)


@misconception("normalize_by_sum", kind="edge", caught_by="test_negative_scores")
def negative_scores_become_zero(scores):
    """Negative scores are set to 0 before the division; they count with their sign."""
    scores = scores.clamp(min=0)
    return scores / scores.sum(dim=-1, keepdim=True)


@misconception("normalize_by_sum", kind="contract", caught_by="test_negative_scores")
def negative_scores_refused(scores):
    """Negative scores raise an error; they are to be divided by the sum like the others."""
    if (scores < 0).any():
        raise ValueError("negative scores")
    return scores / scores.sum(dim=-1, keepdim=True)


@misconception("normalize_by_sum", kind="value", caught_by="test_six_words")
def divided_by_the_mean(scores):
    """The scores are divided by their mean, so rows sum to T; divide by the sum."""
    return scores / scores.mean(dim=-1, keepdim=True)


@misconception("normalize_by_sum", kind="value", caught_by="test_six_words")
def divided_by_the_number_of_scores(scores):
    """The scores are divided by how many there are; divide by their sum."""
    return scores / scores.shape[-1]


@misconception("normalize_by_sum", kind="value", caught_by="test_six_words")
def scaled_between_0_and_1(scores):
    """The scores are moved to the range 0 to 1 by minimum and maximum; divide by the sum."""
    low, high = scores.amin(dim=-1, keepdim=True), scores.amax(dim=-1, keepdim=True)
    return (scores - low) / (high - low)


@misconception("normalize_by_sum", kind="value", caught_by="test_six_words")
def standardised(scores):
    """The mean is subtracted and the deviation divided out (standard scores); here the scores are divided by their
    sum.
    """
    return (scores - scores.mean(dim=-1, keepdim=True)) / scores.std(dim=-1, keepdim=True)


@misconception("normalize_by_sum", kind="value", caught_by="test_six_words")
def minimum_subtracted_first(scores):
    """The minimum is subtracted before the division, so the smallest score gets 0; divide the scores as they are."""
    scores = scores - scores.amin(dim=-1, keepdim=True)
    return scores / scores.sum(dim=-1, keepdim=True)


@misconception("normalize_by_sum", kind="value", caught_by="test_six_words")
def sum_divided_by_the_scores(scores):
    """The division is the wrong way round: it is each score by the sum."""
    return scores.sum(dim=-1, keepdim=True) / scores


@misconception("normalize_by_sum", kind="contract", caught_by="test_six_words")
def shares_not_returned(scores):
    """Nothing is returned (None): end the function with `return`."""
    scores / scores.sum(dim=-1, keepdim=True)


@misconception("normalize_by_sum", kind="hard-coded output", caught_by="test_leading_dimensions")
def shares_typed_in(scores):
    """The worked example's six weights are typed in; compute them from the scores."""
    return torch.tensor([0.1455, 0.2278, 0.2249, 0.1285, 0.1077, 0.1656])


@misconception("normalize_by_sum", kind="hard-coded output", caught_by="test_leading_dimensions")
def sum_of_the_example_typed_in(scores):
    """The worked example's sum, 6.5617, is typed in; take the sum of the scores that come in."""
    return scores / 6.5617


@misconception("normalize_by_sum", kind="value", caught_by="test_leading_dimensions")
def rounded_to_four_digits(scores):
    """The weights are rounded to four digits; return them as they are."""
    return (scores / scores.sum(dim=-1, keepdim=True)).round(decimals=4)


@misconception("normalize_by_sum", kind="gradient", caught_by="test_gradients")
def sum_detached(scores):
    """The sum is detached, so half of the gradient is missing; the sum depends on the scores too."""
    return scores / scores.sum(dim=-1, keepdim=True).detach()


@misconception("normalize_by_sum", kind="gradient", caught_by="test_leading_dimensions")
def sum_of_everything_as_a_number(scores):
    """The sum of the whole tensor is taken, as a Python number (.item()); it should be each row's sum, as a tensor."""
    return scores / scores.sum().item()


@misconception("normalize_by_sum", kind="gradient", caught_by="test_gradients")
def shares_without_gradients(scores):
    """The weights carry no gradient (`.detach()`, `.data` or torch.no_grad())."""
    return (scores / scores.sum(dim=-1, keepdim=True)).detach()


@misconception("normalize_by_sum", kind="gradient", caught_by="test_gradients")
def shares_through_numpy(scores):
    """The scores leave torch on the way (NumPy or `.item()`), so that no gradient flows back."""
    scores = scores.detach().numpy()
    return torch.from_numpy(scores / scores.sum(axis=-1, keepdims=True))


@misconception("normalize_by_sum", kind="gradient", caught_by="test_gradients")
def shares_refuse_gradients(scores):
    """It fails for scores that need gradients, as `.numpy()` does; stay with torch's operations."""
    scores = scores.numpy()
    return torch.from_numpy(scores / scores.sum(axis=-1, keepdims=True))


@misconception("normalize_by_sum", kind="dtype", caught_by="test_float64_stays_exact")
def shares_in_float32(scores):
    """The weights are float32 whatever the scores are; keep the scores' dtype."""
    scores = scores.float()
    return scores / scores.sum(dim=-1, keepdim=True)


@misconception("normalize_by_sum", kind="dtype", caught_by="test_dtype_is_kept")
def shares_in_float64(scores):
    """The weights are float64 even for float32 scores; convert them back to the scores' dtype."""
    scores = scores.double()
    return scores / scores.sum(dim=-1, keepdim=True)


@misconception("normalize_by_sum", kind="device", caught_by="test_follows_device")
def shares_filled_into_a_new_tensor(scores):
    """The weights are filled into torch.zeros or torch.empty: float32 on the CPU. torch.empty_like(scores) follows the
    scores.
    """
    weights = torch.zeros(scores.shape)
    weights[...] = scores / scores.sum(dim=-1, keepdim=True)
    return weights


@misconception("normalize_by_sum", kind="device", caught_by="test_follows_device")
def shares_left_on_the_cpu(scores):
    """The weights end on the CPU, whatever device the scores are on."""
    return (scores / scores.sum(dim=-1, keepdim=True)).cpu()
