"""What goes wrong in `softmax`."""

import torch

from ...catalogue import FORBIDDEN, misconception


@misconception("softmax", kind="edge", caught_by="test_large_scores_do_not_overflow")
def naive_exponentials(scores, dim=-1):
    """exp overflows for large scores: subtract the maximum along dim first, which leaves the weights as they are."""
    exponentials = torch.exp(scores)
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="edge", caught_by="test_any_dimension")
def always_the_last_dimension(scores, dim=-1):
    """The argument dim is ignored: maximum and sum always run over the last dimension."""
    exponentials = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


@misconception("softmax", kind="value", caught_by="test_any_dimension")
def sum_over_everything(scores, dim=-1):
    """The sum runs over the whole tensor; along dim alone, with keepdim=True, each slice sums to 1."""
    exponentials = torch.exp(scores - scores.max())
    return exponentials / exponentials.sum()


@misconception("softmax", kind="value", caught_by="test_any_dimension")
def softmax_without_keepdim(scores, dim=-1):
    """The sum loses its dimension, so it meets the wrong numbers in a matrix; pass keepdim=True."""
    exponentials = torch.exp(scores - scores.max())
    return exponentials / exponentials.sum(dim=dim)


@misconception("softmax", kind="edge", caught_by="test_rows_far_apart")
def maximum_of_everything(scores, dim=-1):
    """The maximum of the whole tensor is subtracted: rows far below it underflow to 0/0. Take it along dim."""
    exponentials = torch.exp(scores - scores.max())
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="edge", caught_by="test_large_scores_do_not_overflow")
def scores_clamped(scores, dim=-1):
    """Large scores, positive and negative, are cut off (clamp), which changes their weights; subtract the maximum,
    which does not.
    """
    exponentials = torch.exp(scores.clamp(-50, 50))
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="value", caught_by="test_six_words")
def powers_of_two(scores, dim=-1):
    """Powers of 2 are taken; softmax takes powers of e: torch.exp."""
    exponentials = torch.pow(2, scores - scores.amax(dim=dim, keepdim=True))
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="value", caught_by="test_six_words")
def no_exponentials(scores, dim=-1):
    """The scores are divided by their sum without exponentials; softmax takes exp of each score first."""
    return scores / scores.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="contract", caught_by=FORBIDDEN)
def library_softmax(scores, dim=-1):
    """This calls a library softmax; the exercise is to write it from exp and a sum."""
    return torch.softmax(scores, dim=dim)


@misconception("softmax", kind="dtype", caught_by="test_dtypes")
def softmax_always_in_float32(scores, dim=-1):
    """The result is always float32; a softmax keeps its input's dtype."""
    exponentials = torch.exp(scores.float() - scores.float().amax(dim=dim, keepdim=True))
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="side effect", caught_by="test_inputs_are_unchanged")
def maximum_subtracted_in_place(scores, dim=-1):
    """The caller's scores are overwritten (`-=`, `sub_`); make a new tensor with `scores - ...`."""
    scores -= scores.amax(dim=dim, keepdim=True).clone()
    return scores.exp() / scores.exp().sum(dim=dim, keepdim=True)


@misconception("softmax", kind="value", caught_by="test_any_dimension")
def naive_and_over_dim_0(scores, dim=-1):
    """The sum runs over dim=0 whatever dim is, and exp overflows for large scores: use dim, and subtract the maximum
    first.
    """
    return torch.exp(scores) / torch.exp(scores).sum(dim=0)


@misconception("softmax", kind="value", caught_by="test_any_dimension")
def naive_sum_over_everything(scores, dim=-1):
    """The exponentials are divided by the sum of the whole tensor, and large ones overflow: sum along dim, subtract
    the maximum.
    """
    return torch.exp(scores) / torch.exp(scores).sum()


@misconception("softmax", kind="value", caught_by="test_any_dimension")
def naive_over_the_last_dimension(scores, dim=-1):
    """The argument dim is ignored, and exp overflows for large scores: sum along dim, and subtract the maximum
    first.
    """
    return torch.exp(scores) / torch.exp(scores).sum(dim=-1, keepdim=True)


@misconception("softmax", kind="value", caught_by="test_any_dimension")
def naive_without_keepdim(scores, dim=-1):
    """The sum loses its dimension (pass keepdim=True), and exp overflows for large scores: subtract the maximum
    first.
    """
    return torch.exp(scores) / torch.exp(scores).sum(dim=dim)


@misconception("softmax", kind="value", caught_by="test_any_dimension")
def shifted_then_summed_over_everything(scores, dim=-1):
    """Each maximum is taken along dim, but the sum over the whole tensor; along dim with keepdim=True each slice sums
    to 1.
    """
    exponentials = torch.exp(scores - scores.amax(dim=dim, keepdim=True))
    return exponentials / exponentials.sum()


@misconception("softmax", kind="value", caught_by="test_any_dimension")
def maximum_without_keepdim(scores, dim=-1):
    """The maximum loses its dimension, so it meets the wrong scores or none; pass keepdim=True to it as well."""
    exponentials = torch.exp(scores - scores.max(dim=dim).values)
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="value", caught_by="test_any_dimension")
def maximum_and_sum_without_keepdim(scores, dim=-1):
    """Maximum and sum lose their dimension, so they meet the wrong numbers in a matrix; pass keepdim=True to both."""
    exponentials = torch.exp(scores - scores.amax(dim=dim))
    return exponentials / exponentials.sum(dim=dim)


@misconception("softmax", kind="value", caught_by="test_any_dimension")
def only_the_sum_without_keepdim(scores, dim=-1):
    """The maximum keeps its dimension and the sum does not: pass keepdim=True to the sum as well."""
    exponentials = torch.exp(scores - scores.amax(dim=dim, keepdim=True))
    return exponentials / exponentials.sum(dim=dim)


@misconception("softmax", kind="contract", caught_by="test_six_words")
def maximum_is_a_pair(scores, dim=-1):
    """`max(dim=...)` gives values and indices, and a tensor minus that pair fails: take `.values`, or use amax."""
    exponentials = torch.exp(scores - scores.max(dim=dim, keepdim=True))
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="edge", caught_by="test_any_dimension")
def maximum_of_the_last_dimension(scores, dim=-1):
    """The maximum is always taken over the last dimension and no longer cancels when dim is another one; take it along
    dim.
    """
    exponentials = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="contract", caught_by="test_any_dimension")
def default_is_dim_0(scores, dim=0):
    """Without dim the softmax should run over the last dimension; the default here is dim=0."""
    exponentials = torch.exp(scores - scores.amax(dim=dim, keepdim=True))
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="contract", caught_by="test_any_dimension")
def default_is_dim_1(scores, dim=1):
    """Without dim the softmax should run over the last dimension; the default here is dim=1."""
    exponentials = torch.exp(scores - scores.amax(dim=dim, keepdim=True))
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="contract", caught_by="test_any_dimension")
def dim_not_taken(scores):
    """It cannot be called with dim=...: the signature is softmax(scores, dim=-1)."""
    exponentials = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


@misconception("softmax", kind="edge", caught_by="test_large_scores_do_not_overflow")
def large_scores_cut_off_above(scores, dim=-1):
    """Scores above a limit are cut off, so that different ones get the same weight; subtract the maximum in place of
    that.
    """
    exponentials = torch.exp(scores.clamp(max=80))
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="edge", caught_by="test_large_scores_do_not_overflow")
def mean_subtracted(scores, dim=-1):
    """The mean is subtracted, and what lies far above it still overflows; subtract the maximum."""
    exponentials = torch.exp(scores - scores.mean(dim=dim, keepdim=True))
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="edge", caught_by="test_large_scores_do_not_overflow")
def minimum_subtracted(scores, dim=-1):
    """The minimum is subtracted, which makes the exponents larger; subtract the maximum, so that none is above 0."""
    exponentials = torch.exp(scores - scores.amin(dim=dim, keepdim=True))
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="edge", caught_by="test_large_scores_do_not_overflow")
def largest_absolute_value_subtracted(scores, dim=-1):
    """The largest absolute value is subtracted: where it belongs to a negative score all exponentials underflow. Take
    the maximum.
    """
    exponentials = torch.exp(scores - scores.abs().amax(dim=dim, keepdim=True))
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="edge", caught_by="test_large_scores_do_not_overflow")
def maximum_added(scores, dim=-1):
    """The maximum is added; subtract it, so that no exponent is above 0."""
    exponentials = torch.exp(scores + scores.amax(dim=dim, keepdim=True))
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="edge", caught_by="test_large_scores_do_not_overflow")
def maximum_of_everything_when_large(scores, dim=-1):
    """The maximum of the whole tensor is subtracted where scores are large: rows far below it become NaN. Take it
    along dim.
    """
    if scores.max() > 80:
        scores = scores - scores.max()
    exponentials = torch.exp(scores)
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="edge", caught_by="test_large_scores_do_not_overflow")
def overflow_set_to_zero(scores, dim=-1):
    """The overflow is hidden (nan_to_num): the largest scores get no weight. Subtract the maximum before exp."""
    exponentials = torch.exp(scores)
    return torch.nan_to_num(exponentials / exponentials.sum(dim=dim, keepdim=True))


@misconception("softmax", kind="edge", caught_by="test_large_scores_do_not_overflow")
def overflow_in_float64(scores, dim=-1):
    """float64 overflows too, only later (above 709); subtract the maximum before exp."""
    exponentials = torch.exp(scores.double())
    return (exponentials / exponentials.sum(dim=dim, keepdim=True)).to(scores.dtype)


@misconception("softmax", kind="value", caught_by="test_six_words")
def sign_reversed(scores, dim=-1):
    """The sign is reversed: the smallest score gets the largest weight. It is exp(scores - maximum)."""
    exponentials = torch.exp(scores.amin(dim=dim, keepdim=True) - scores)
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="value", caught_by="test_six_words")
def maximum_minus_scores(scores, dim=-1):
    """It is the maximum minus the scores, which reverses the sign: exp(scores - maximum) is right."""
    exponentials = torch.exp(scores.amax(dim=dim, keepdim=True) - scores)
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="value", caught_by="test_six_words")
def divided_by_the_largest_score(scores, dim=-1):
    """The scores are divided by their maximum before exp, which changes the weights; subtract the maximum."""
    exponentials = torch.exp(scores / scores.amax(dim=dim, keepdim=True))
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="value", caught_by="test_any_dimension")
def approximate_e(scores, dim=-1):
    """Powers of a rounded e (2.718) are taken; torch.exp is exact."""
    exponentials = 2.718 ** (scores - scores.amax(dim=dim, keepdim=True))
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="value", caught_by="test_six_words")
def logarithm_of_the_weights(scores, dim=-1):
    """The logarithms of the weights are returned; take exp of them."""
    shifted = scores - scores.amax(dim=dim, keepdim=True)
    return shifted - shifted.exp().sum(dim=dim, keepdim=True).log()


@misconception("softmax", kind="value", caught_by="test_six_words")
def exponentials_not_normalised(scores, dim=-1):
    """The exponentials are not divided by their sum along dim, so the weights do not sum to 1."""
    return torch.exp(scores - scores.amax(dim=dim, keepdim=True))


@misconception("softmax", kind="value", caught_by="test_six_words")
def plain_exponentials(scores, dim=-1):
    """exp alone is taken: subtract the maximum first, and divide by the sum along dim."""
    return torch.exp(scores)


@misconception("softmax", kind="value", caught_by="test_six_words")
def sum_of_other_exponentials(scores, dim=-1):
    """The maximum is subtracted above and not below: numerator and sum need the same exponentials."""
    return torch.exp(scores - scores.amax(dim=dim, keepdim=True)) / torch.exp(scores).sum(dim=dim, keepdim=True)


@misconception("softmax", kind="value", caught_by="test_six_words")
def softmax_scaled(scores, dim=-1):
    """The scores are divided by a square root first; a plain softmax has no scaling."""
    scores = scores / scores.shape[dim] ** 0.5
    exponentials = torch.exp(scores - scores.amax(dim=dim, keepdim=True))
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="value", caught_by="test_six_words")
def sigmoid_shares(scores, dim=-1):
    """The sigmoid of each score is divided by the sum; softmax takes exp of each score."""
    exponentials = torch.sigmoid(scores)
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="value", caught_by="test_dtypes")
def small_number_added_below(scores, dim=-1):
    """A small number is added to the sum, so the weights do not sum to 1 exactly; the sum is never 0 and needs no
    help.
    """
    exponentials = torch.exp(scores - scores.amax(dim=dim, keepdim=True))
    return exponentials / (exponentials.sum(dim=dim, keepdim=True) + 1e-6)


@misconception("softmax", kind="gradient", caught_by="test_gradients")
def softmax_without_gradients(scores, dim=-1):
    """No gradient reaches the scores: they are detached, or it runs under torch.no_grad()."""
    scores = scores.detach()
    exponentials = torch.exp(scores - scores.amax(dim=dim, keepdim=True))
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="gradient", caught_by="test_gradients")
def softmax_sum_detached(scores, dim=-1):
    """The sum is detached, so a part of the gradient is missing; it depends on the scores too."""
    exponentials = torch.exp(scores - scores.amax(dim=dim, keepdim=True))
    return exponentials / exponentials.sum(dim=dim, keepdim=True).detach()


@misconception("softmax", kind="gradient", caught_by="test_gradients")
def softmax_through_numpy(scores, dim=-1):
    """The scores pass through NumPy, which carries no gradient and knows no bfloat16; torch.exp does the same here."""
    scores = scores.detach().numpy()
    exponentials = torch.from_numpy(scores - scores.max(axis=dim, keepdims=True)).exp().numpy()
    return torch.from_numpy(exponentials / exponentials.sum(axis=dim, keepdims=True))


@misconception("softmax", kind="dtype", caught_by="test_dtypes")
def softmax_always_in_float64(scores, dim=-1):
    """The result is float64 whatever comes in; convert it back to the scores' dtype."""
    scores = scores.double()
    exponentials = torch.exp(scores - scores.amax(dim=dim, keepdim=True))
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="dtype", caught_by="test_dtypes")
def float32_on_the_way(scores, dim=-1):
    """It is computed in float32 on the way, so float64 loses digits; only half precision gains by that."""
    scores, dtype = scores.float(), scores.dtype
    exponentials = torch.exp(scores - scores.amax(dim=dim, keepdim=True))
    return (exponentials / exponentials.sum(dim=dim, keepdim=True)).to(dtype)


@misconception("softmax", kind="dtype", caught_by="test_any_dimension")
def softmax_in_half_precision(scores, dim=-1):
    """It is computed in float16, which keeps three digits; stay in the scores' dtype."""
    scores, dtype = scores.half(), scores.dtype
    exponentials = torch.exp(scores - scores.amax(dim=dim, keepdim=True))
    return (exponentials / exponentials.sum(dim=dim, keepdim=True)).to(dtype)


@misconception("softmax", kind="device", caught_by="test_follows_device")
def softmax_left_on_the_cpu(scores, dim=-1):
    """The weights end on the CPU, whatever device the scores are on."""
    exponentials = torch.exp(scores - scores.amax(dim=dim, keepdim=True))
    return (exponentials / exponentials.sum(dim=dim, keepdim=True)).cpu()


@misconception("softmax", kind="contract", caught_by="test_six_words")
def softmax_not_returned(scores, dim=-1):
    """Nothing is returned (None): end the function with `return`."""
    exponentials = torch.exp(scores - scores.amax(dim=dim, keepdim=True))
    exponentials / exponentials.sum(dim=dim, keepdim=True)


@misconception("softmax", kind="hard-coded output", caught_by="test_any_dimension")
def softmax_typed_in(scores, dim=-1):
    """The worked example's six weights are typed in; compute them from the scores."""
    return torch.tensor([0.1385, 0.2379, 0.2333, 0.1240, 0.1082, 0.1581])
