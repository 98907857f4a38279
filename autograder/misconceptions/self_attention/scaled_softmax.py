"""What goes wrong in `scaled_softmax`."""

import torch

from ...catalogue import misconception


@misconception("scaled_softmax", kind="value", caught_by="test_divided_by_the_root_of_d_k")
def divided_by_d_k(scores, d_k):
    """The scores are divided by d_k; divide by its square root, so that their variance stays near 1."""
    return torch.softmax(scores / d_k, dim=-1)


@misconception("scaled_softmax", kind="value", caught_by="test_divided_by_the_root_of_d_k")
def not_scaled(scores, d_k):
    """The scores are not scaled: divide them by the square root of d_k before the softmax."""
    return torch.softmax(scores, dim=-1)


@misconception("scaled_softmax", kind="value", caught_by="test_divided_by_the_root_of_d_k")
def multiplied_by_the_root(scores, d_k):
    """The scores are multiplied by the square root of d_k; divide by it."""
    return torch.softmax(scores * d_k**0.5, dim=-1)


@misconception("scaled_softmax", kind="value", caught_by="test_divided_by_the_root_of_d_k")
def scaled_by_the_number_of_tokens(scores, d_k):
    """The scores are scaled by the number of tokens, their last dimension; scale by d_k, the width of a key."""
    return torch.softmax(scores / scores.shape[-1] ** 0.5, dim=-1)


@misconception("scaled_softmax", kind="value", caught_by="test_divided_by_the_root_of_d_k")
def scaled_after_softmax(scores, d_k):
    """The weights are scaled after the softmax, so they no longer sum to 1; scale the scores before it."""
    return torch.softmax(scores, dim=-1) / d_k**0.5


@misconception("scaled_softmax", kind="value", caught_by="test_softmax_runs_over_the_keys")
def softmax_over_the_queries(scores, d_k):
    """The softmax runs over the queries (dim=-2), so the columns sum to 1; over the keys, dim=-1, the rows do."""
    return torch.softmax(scores / d_k**0.5, dim=-2)


@misconception("scaled_softmax", kind="value", caught_by="test_softmax_runs_over_the_keys")
def softmax_over_dim_0(scores, d_k):
    """The softmax runs over dim=0, the first dimension; the keys are the last one, dim=-1."""
    return torch.softmax(scores / d_k**0.5, dim=0)


@misconception("scaled_softmax", kind="edge", caught_by="test_softmax_runs_over_the_keys")
def softmax_over_dim_1(scores, d_k):
    """The softmax runs over dim=1, which is the keys in 2-D only; dim=-1 is the last dimension for every shape."""
    return torch.softmax(scores / d_k**0.5, dim=1)


@misconception("scaled_softmax", kind="value", caught_by="test_softmax_runs_over_the_keys")
def softmax_over_everything(scores, d_k):
    """The softmax runs over the whole tensor; each row should sum to 1 on its own, so use dim=-1."""
    return torch.softmax((scores / d_k**0.5).flatten(), dim=0).view_as(scores)


@misconception("scaled_softmax", kind="edge", caught_by="test_large_scores_do_not_overflow")
def exponentials_overflow(scores, d_k):
    """exp overflows for large scores: subtract each row's maximum first (the weights stay the same), or use softmax."""
    exponentials = torch.exp(scores / d_k**0.5)
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


@misconception("scaled_softmax", kind="value", caught_by="test_divided_by_the_root_of_d_k")
def sum_without_exponentials(scores, d_k):
    """The scores are divided by their sum without exponentials; softmax takes exp of every score first."""
    scaled = scores / d_k**0.5
    return scaled / scaled.sum(dim=-1, keepdim=True)


@misconception("scaled_softmax", kind="value", caught_by="test_divided_by_the_root_of_d_k")
def log_weights(scores, d_k):
    """This is the logarithm of the weights (log_softmax); attention needs the weights themselves."""
    return torch.log_softmax(scores / d_k**0.5, dim=-1)


@misconception("scaled_softmax", kind="side effect", caught_by="test_inputs_are_unchanged")
def scores_changed_in_place(scores, d_k):
    """The caller's scores are changed in place (`/=`, `-=`, a method ending in `_`); compute a new tensor instead."""
    scores /= d_k**0.5
    return torch.softmax(scores, dim=-1)


@misconception("scaled_softmax", kind="gradient", caught_by="test_gradients_reach_the_scores")
def weights_detached(scores, d_k):
    """The weights are detached from the graph (`.detach()`, `.data` or `torch.no_grad()`), so nothing can learn."""
    return torch.softmax(scores / d_k**0.5, dim=-1).detach()


@misconception("scaled_softmax", kind="dtype", caught_by="test_float64_stays_exact")
def weights_in_float32(scores, d_k):
    """The scores are turned to float32 on the way, so float64 inputs lose digits; keep the inputs' dtype."""
    return torch.softmax(scores.float() / d_k**0.5, dim=-1)


@misconception("scaled_softmax", kind="dtype", caught_by="test_dtype_is_kept")
def weights_in_float64(scores, d_k):
    """The weights are float64 whatever the scores are; keep the scores' dtype."""
    return torch.softmax(scores / d_k**0.5, dim=-1, dtype=torch.float64)


@misconception("scaled_softmax", kind="value", caught_by="test_divided_by_the_root_of_d_k")
def root_rounded_down(scores, d_k):
    """The square root of d_k is rounded to an integer; divide by `d_k ** 0.5` as it is."""
    return torch.softmax(scores / int(d_k**0.5), dim=-1)


@misconception("scaled_softmax", kind="value", caught_by="test_divided_by_the_root_of_d_k")
def root_rounded_to_the_nearest(scores, d_k):
    """The square root of d_k is rounded (round); divide by `d_k ** 0.5` as it is."""
    return torch.softmax(scores / round(d_k**0.5), dim=-1)


@misconception("scaled_softmax", kind="value", caught_by="test_six_words")
def scores_rounded_down(scores, d_k):
    """`//` divides and rounds the scores down; `/` keeps their digits."""
    return torch.softmax(scores // d_k**0.5, dim=-1)


@misconception("scaled_softmax", kind="value", caught_by="test_softmax_runs_over_the_keys")
def scaled_by_the_number_of_queries(scores, d_k):
    """The scores are scaled by the number of queries; scale by d_k, the width of a key."""
    return torch.softmax(scores / scores.shape[-2] ** 0.5, dim=-1)


@misconception("scaled_softmax", kind="value", caught_by="test_six_words")
def divided_by_the_number_of_tokens(scores, d_k):
    """The scores are divided by the number of tokens; divide by the square root of d_k."""
    return torch.softmax(scores / scores.shape[-1], dim=-1)


@misconception("scaled_softmax", kind="value", caught_by="test_six_words")
def multiplied_by_d_k(scores, d_k):
    """The scores are multiplied by d_k; divide by its square root."""
    return torch.softmax(scores * d_k, dim=-1)


@misconception("scaled_softmax", kind="value", caught_by="test_six_words")
def divided_by_the_square_of_d_k(scores, d_k):
    """The scores are divided by d_k squared; divide by its square root, d_k ** 0.5."""
    return torch.softmax(scores / d_k**2, dim=-1)


@misconception("scaled_softmax", kind="value", caught_by="test_six_words")
def divided_by_d_k_and_by_two(scores, d_k):
    """`d_k ** 1 / 2` is d_k, and then a division by 2; the square root is d_k ** 0.5 or d_k ** (1 / 2)."""
    return torch.softmax(scores / d_k**1 / 2, dim=-1)


@misconception("scaled_softmax", kind="value", caught_by="test_keys_of_width_24")
def divided_by_half_of_d_k(scores, d_k):
    """`(d_k ** 1 / 2)` is half of d_k; the square root is d_k ** 0.5 or d_k ** (1 / 2)."""
    return torch.softmax(scores / (d_k**1 / 2), dim=-1)


@misconception("scaled_softmax", kind="value", caught_by="test_six_words")
def divided_by_the_fourth_root(scores, d_k):
    """The scores are divided by the fourth root of d_k; divide by its square root, d_k ** 0.5."""
    return torch.softmax(scores / d_k**0.25, dim=-1)


@misconception("scaled_softmax", kind="value", caught_by="test_six_words")
def weights_divided_by_d_k(scores, d_k):
    """The weights are divided by d_k after the softmax; divide the scores by its square root, before it."""
    return torch.softmax(scores, dim=-1) / d_k


@misconception("scaled_softmax", kind="value", caught_by="test_six_words")
def root_of_the_scaled_scores(scores, d_k):
    """The root of the scores is taken, which is NaN for negative ones; only d_k is under the root."""
    return torch.softmax((scores / d_k) ** 0.5, dim=-1)


@misconception("scaled_softmax", kind="hard-coded output", caught_by="test_keys_of_width_24")
def always_scaled_for_width_2(scores, d_k):
    """The scaling is fixed to the root of 2; d_k is an argument."""
    return torch.softmax(scores / 2**0.5, dim=-1)


@misconception("scaled_softmax", kind="hard-coded output", caught_by="test_six_words")
def always_scaled_for_width_24(scores, d_k):
    """The scaling is fixed to the root of 24; d_k is an argument."""
    return torch.softmax(scores / 24**0.5, dim=-1)


@misconception("scaled_softmax", kind="value", caught_by="test_six_words")
def sign_of_the_scores_reversed(scores, d_k):
    """The sign of the scores is reversed, so the worst fit gets the most weight."""
    return torch.softmax(-scores / d_k**0.5, dim=-1)


@misconception("scaled_softmax", kind="value", caught_by="test_six_words")
def softmaxed_twice(scores, d_k):
    """The softmax is applied twice, which flattens the weights; once is right."""
    return torch.softmax(torch.softmax(scores / d_k**0.5, dim=-1), dim=-1)


@misconception("scaled_softmax", kind="value", caught_by="test_six_words")
def only_scaled(scores, d_k):
    """The scores are scaled, and the softmax is missing."""
    return scores / d_k**0.5


@misconception("scaled_softmax", kind="value", caught_by="test_six_words")
def sigmoid_weights(scores, d_k):
    """A sigmoid is taken of each score; softmax makes the weights of a row sum to 1."""
    return torch.sigmoid(scores / d_k**0.5)


@misconception("scaled_softmax", kind="value", caught_by="test_six_words")
def scaled_by_their_own_deviation(scores, d_k):
    """The scores are divided by their own standard deviation; divide by the square root of d_k."""
    return torch.softmax(scores / scores.std(), dim=-1)


@misconception("scaled_softmax", kind="edge", caught_by="test_softmax_runs_over_the_keys")
def default_dimension_of_the_library(scores, d_k):
    """Without dim, F.softmax and nn.Softmax take dim 0 or 1 by the number of dimensions; give dim=-1."""
    return torch.softmax(scores / d_k**0.5, dim=0 if scores.dim() in (0, 1, 3) else 1)


@misconception("scaled_softmax", kind="value", caught_by="test_six_words")
def softmax_of_transposed_scores(scores, d_k):
    """The scores are transposed before the softmax and stay so; they are used as they are."""
    return torch.softmax(scores.transpose(-2, -1) / d_k**0.5, dim=-1)


@misconception("scaled_softmax", kind="mask", caught_by="test_six_words")
def later_keys_without_weight(scores, d_k):
    """Later keys are hidden by a causal mask; here every query sees every key."""
    mask = torch.ones_like(scores).triu(1).bool()
    return torch.softmax(scores.masked_fill(mask, -torch.inf) / d_k**0.5, dim=-1)


@misconception("scaled_softmax", kind="mask", caught_by="test_six_words")
def later_keys_without_weight_by_a_cpu_mask(scores, d_k):
    """Later keys are hidden; here every query sees every key (and the mask is made on the CPU)."""
    mask = torch.triu(torch.ones(scores.shape[-2], scores.shape[-1]), diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, -torch.inf) / d_k**0.5, dim=-1)


@misconception("scaled_softmax", kind="value", caught_by="test_six_words")
def overflow_and_no_keepdim(scores, d_k):
    """The sum loses its dimension (pass keepdim=True), and exp overflows for large scores: subtract each row's
    maximum.
    """
    exponentials = torch.exp(scores / d_k**0.5)
    return exponentials / exponentials.sum(dim=-1)


@misconception("scaled_softmax", kind="value", caught_by="test_six_words")
def overflow_over_dim_0(scores, d_k):
    """The sum runs over dim 0, not over the keys; and exp overflows for large scores: subtract each row's maximum."""
    exponentials = torch.exp(scores / d_k**0.5)
    return exponentials / exponentials.sum(dim=0)


@misconception("scaled_softmax", kind="edge", caught_by="test_large_scores_do_not_overflow")
def maximum_of_the_whole_tensor(scores, d_k):
    """The maximum of the whole tensor is subtracted: rows far below it underflow to 0/0. Take each row's."""
    scaled = scores / d_k**0.5
    exponentials = torch.exp(scaled - scaled.max())
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


@misconception("scaled_softmax", kind="edge", caught_by="test_large_scores_do_not_overflow")
def large_scores_clamped(scores, d_k):
    """Large scores are cut off (clamp), so that different ones get equal weights; softmax copes with them as they
    are.
    """
    return torch.softmax((scores / d_k**0.5).clamp(-50, 50), dim=-1)


@misconception("scaled_softmax", kind="edge", caught_by="test_softmax_runs_over_the_keys")
def weights_squeezed(scores, d_k):
    """squeeze() drops dimensions of size 1; weights have the shape of the scores."""
    return torch.softmax(scores / d_k**0.5, dim=-1).squeeze()


@misconception("scaled_softmax", kind="gradient", caught_by="test_gradients_reach_the_scores")
def weights_through_numpy(scores, d_k):
    """The scores leave torch on the way (NumPy), so that no gradient flows back."""
    return torch.softmax(torch.from_numpy(scores.detach().numpy()) / d_k**0.5, dim=-1)


@misconception("scaled_softmax", kind="gradient", caught_by="test_gradients_reach_the_scores")
def weights_through_a_list(scores, d_k):
    """The weights pass through `.tolist()`, which loses gradients, device, and float64's digits."""
    return torch.tensor(torch.softmax(scores / d_k**0.5, dim=-1).tolist())


@misconception("scaled_softmax", kind="dtype", caught_by="test_float64_stays_exact")
def float32_and_back(scores, d_k):
    """The softmax runs in float32 and its result is converted back: float64 inputs lose digits."""
    return torch.softmax(scores / d_k**0.5, dim=-1, dtype=torch.float32).to(scores.dtype)


@misconception("scaled_softmax", kind="dtype", caught_by="test_divided_by_the_root_of_d_k")
def float16_and_back(scores, d_k):
    """The softmax runs in float16, which keeps three digits; stay in the scores' dtype."""
    return torch.softmax((scores / d_k**0.5).half(), dim=-1).to(scores.dtype)


@misconception("scaled_softmax", kind="dtype", caught_by="test_divided_by_the_root_of_d_k")
def weights_in_float16(scores, d_k):
    """The weights are float16, which keeps three digits; stay in the scores' dtype."""
    return torch.softmax((scores / d_k**0.5).half(), dim=-1)


@misconception("scaled_softmax", kind="device", caught_by="test_follows_device")
def root_kept_on_the_cpu(scores, d_k):
    """The root of d_k is a tensor of shape (1,) on the CPU, which fails beside scores on another device; use a
    number.
    """
    return torch.softmax(scores / torch.tensor([d_k], dtype=scores.dtype).sqrt(), dim=-1)


@misconception("scaled_softmax", kind="device", caught_by="test_follows_device")
def weights_left_on_the_cpu(scores, d_k):
    """The weights end on the CPU, whatever device the scores are on."""
    return torch.softmax(scores / d_k**0.5, dim=-1).cpu()


@misconception("scaled_softmax", kind="contract", caught_by="test_six_words")
def weights_not_returned(scores, d_k):
    """Nothing is returned (None): end the function with `return`."""
    torch.softmax(scores / d_k**0.5, dim=-1)


@misconception("scaled_softmax", kind="hard-coded output", caught_by="test_keys_of_width_24")
def weights_of_the_examples_typed_in(scores, d_k):
    """The worked example's weights are typed in; compute them from the scores."""
    return torch.tensor([[0.1500, 0.2264, 0.2199, 0.1311, 0.0906, 0.1820]]).repeat(6, 1)
