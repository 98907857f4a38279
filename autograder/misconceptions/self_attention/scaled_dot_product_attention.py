"""What goes wrong in `scaled_dot_product_attention`."""

import torch
import torch.nn.functional as F

from ...catalogue import FORBIDDEN, misconception


@misconception("scaled_dot_product_attention", kind="contract", caught_by=FORBIDDEN)
def library_attention(queries, keys, values):
    """This calls the library's attention; the exercise is to write it yourself."""
    return F.scaled_dot_product_attention(queries, keys, values)


@misconception("scaled_dot_product_attention", kind="value", caught_by="test_other_widths")
def attention_not_scaled(queries, keys, values):
    """The scores are not scaled: divide them by the square root of d_k before the softmax."""
    return torch.softmax(queries @ keys.transpose(-2, -1), dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="value", caught_by="test_other_widths")
def attention_divided_by_d_k(queries, keys, values):
    """The scores are divided by d_k; divide by its square root."""
    return torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[-1], dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="value", caught_by="test_other_widths")
def attention_scaled_by_d_v(queries, keys, values):
    """The scores are scaled by the width of the values; scale by that of the keys, d_k."""
    return torch.softmax(queries @ keys.transpose(-2, -1) / values.shape[-1] ** 0.5, dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="value", caught_by="test_other_widths")
def attention_over_the_queries(queries, keys, values):
    """The softmax runs over the queries (dim=-2); each query's weights are a row: dim=-1."""
    return torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5, dim=-2) @ values


@misconception("scaled_dot_product_attention", kind="edge", caught_by="test_any_leading_dimensions")
def attention_over_dim_1(queries, keys, values):
    """The softmax runs over dim=1, which is the keys in 2-D only; dim=-1 is the last dimension for every shape."""
    return torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5, dim=1) @ values


@misconception("scaled_dot_product_attention", kind="edge", caught_by="test_any_leading_dimensions")
def attention_keys_reversed(queries, keys, values):
    """`.T` reverses all dimensions of the keys, right in 2-D only; swap the last two with transpose(-2, -1)."""
    reversed_keys = keys.permute(*range(keys.dim() - 1, -1, -1))
    return torch.softmax(queries @ reversed_keys / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="value", caught_by="test_other_widths")
def scaled_after_the_softmax(queries, keys, values):
    """The weights are scaled after the softmax, so they no longer sum to 1; scale the scores before it."""
    return torch.softmax(queries @ keys.transpose(-2, -1), dim=-1) / keys.shape[-1] ** 0.5 @ values


@misconception("scaled_dot_product_attention", kind="value", caught_by="test_other_widths")
def attention_without_softmax(queries, keys, values):
    """The softmax is missing: the scaled scores themselves are used as weights."""
    return queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5 @ values


@misconception("scaled_dot_product_attention", kind="edge", caught_by="test_large_scores_do_not_overflow")
def attention_overflows(queries, keys, values):
    """exp overflows for large scores: subtract each row's maximum first, or use torch.softmax."""
    exponentials = torch.exp(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5)
    return exponentials / exponentials.sum(dim=-1, keepdim=True) @ values


@misconception("scaled_dot_product_attention", kind="gradient", caught_by="test_gradients")
def attention_detached(queries, keys, values):
    """The weights are taken out of the graph (`.detach()`, `.data`), so queries and keys can not learn."""
    return torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5, dim=-1).detach() @ values


@misconception("scaled_dot_product_attention", kind="side effect", caught_by="test_inputs_are_unchanged")
def queries_scaled_in_place(queries, keys, values):
    """`/=` scales the caller's queries in place; make a new tensor with `queries / ...`."""
    queries /= keys.shape[-1] ** 0.5
    return torch.softmax(queries @ keys.transpose(-2, -1), dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="value", caught_by="test_six_words")
def attention_scaled_by_tokens(queries, keys, values):
    """The scores are scaled by the root of the number of tokens; scale by that of the keys' width, d_k."""
    return torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[-2] ** 0.5, dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="value", caught_by="test_other_widths")
def attention_scaled_by_queries(queries, keys, values):
    """The scores are scaled by the root of the number of queries; scale by that of the keys' width, d_k."""
    return torch.softmax(queries @ keys.transpose(-2, -1) / queries.shape[-2] ** 0.5, dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="value", caught_by="test_six_words")
def attention_scaled_by_dim_0(queries, keys, values):
    """The scores are scaled by the root of keys.shape[0], tokens or a batch; the keys' width is keys.shape[-1]."""
    return torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[0] ** 0.5, dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="edge", caught_by="test_any_leading_dimensions")
def attention_scaled_by_dim_1(queries, keys, values):
    """The scores are scaled by the root of keys.shape[1], the width in 2-D only; the keys' width is keys.shape[-1]."""
    return torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[1] ** 0.5, dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="value", caught_by="test_six_words")
def attention_multiplied_by_the_root(queries, keys, values):
    """The scores are multiplied by the square root of d_k; divide by it."""
    return torch.softmax(queries @ keys.transpose(-2, -1) * keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="value", caught_by="test_six_words")
def attention_root_rounded(queries, keys, values):
    """The square root of d_k is rounded to an integer; divide by `d_k ** 0.5` as it is."""
    return torch.softmax(queries @ keys.transpose(-2, -1) / int(keys.shape[-1] ** 0.5), dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="hard-coded output", caught_by="test_other_widths")
def attention_scaled_for_width_2(queries, keys, values):
    """The scaling is fixed to the root of 2; take the width from the keys, keys.shape[-1]."""
    return torch.softmax(queries @ keys.transpose(-2, -1) / 2**0.5, dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="value", caught_by="test_six_words")
def attention_over_dim_0(queries, keys, values):
    """The softmax runs over dim=0, the queries or a batch; each query's weights are a row: dim=-1."""
    return torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5, dim=0) @ values


@misconception("scaled_dot_product_attention", kind="value", caught_by="test_six_words")
def attention_over_everything(queries, keys, values):
    """The softmax runs over all scores of a sequence; each query's weights sum to 1 on their own: dim=-1."""
    scores = queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5
    return torch.softmax(scores.flatten(-2), dim=-1).view_as(scores) @ values


@misconception("scaled_dot_product_attention", kind="edge", caught_by="test_any_leading_dimensions")
def attention_by_the_librarys_default_dim(queries, keys, values):
    """Without dim, F.softmax and nn.Softmax take dim 0 or 1 by the number of dimensions; give dim=-1."""
    scores = queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5
    return torch.softmax(scores, dim=0 if scores.dim() in (0, 1, 3) else 1) @ values


@misconception("scaled_dot_product_attention", kind="edge", caught_by="test_any_leading_dimensions")
def attention_keys_first_two_swapped(queries, keys, values):
    """transpose(0, 1) swaps the first two dimensions of the keys, right in 2-D only; swap the last two, (-2, -1)."""
    return torch.softmax(queries @ keys.transpose(0, 1) / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="edge", caught_by="test_six_words")
def attention_of_batches_only(queries, keys, values):
    """transpose(1, 2) and bmm want three dimensions; transpose(-2, -1) and @ take any number."""
    return torch.bmm(torch.softmax(torch.bmm(queries, keys.transpose(1, 2)) / keys.shape[-1] ** 0.5, dim=-1), values)


@misconception("scaled_dot_product_attention", kind="edge", caught_by="test_six_words")
def attention_keys_dims_1_and_2_swapped(queries, keys, values):
    """transpose(1, 2) is right for three dimensions only; transpose(-2, -1) swaps the last two of any number."""
    return torch.softmax(queries @ keys.transpose(1, 2) / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="edge", caught_by="test_any_leading_dimensions")
def attention_of_matrices_and_batches_only(queries, keys, values):
    """It is right for two dimensions or three alone; transpose(-2, -1) swaps the last two of any number."""
    turned = keys.T if keys.dim() == 2 else keys.transpose(1, 2)
    return torch.softmax(queries @ turned / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="edge", caught_by="test_any_leading_dimensions")
def attention_of_matrices_only(queries, keys, values):
    """It works for two dimensions only (mm, `.t()`, an einsum with fixed letters); there may be leading ones."""
    return torch.softmax(queries.mm(keys.t()) / keys.shape[-1] ** 0.5, dim=-1).mm(values)


@misconception("scaled_dot_product_attention", kind="edge", caught_by="test_six_words")
def attention_of_named_batches_only(queries, keys, values):
    """The einsum wants exactly three dimensions; with `...` in the place of the batch it takes any number."""
    weights = torch.softmax(torch.einsum("bqd,bkd->bqk", queries, keys) / keys.shape[-1] ** 0.5, dim=-1)
    return torch.einsum("bqk,bkd->bqd", weights, values)


@misconception("scaled_dot_product_attention", kind="value", caught_by="test_six_words")
def attention_keys_reshaped(queries, keys, values):
    """The keys are reshaped to (d_k, Tk), which mixes their numbers; transpose(-2, -1) swaps the dimensions."""
    turned = keys.reshape(*keys.shape[:-2], keys.shape[-1], keys.shape[-2])
    return torch.softmax(queries @ turned / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="value", caught_by="test_six_words")
def attention_keys_not_transposed(queries, keys, values):
    """The keys are not transposed, which mostly fails; exchange their last two dimensions."""
    return torch.softmax(queries @ keys / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="edge", caught_by="test_large_scores_do_not_overflow")
def attention_maximum_of_everything(queries, keys, values):
    """The maximum of the whole tensor is subtracted: rows far below it underflow to 0/0. Take each row's."""
    scores = queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5
    exponentials = torch.exp(scores - scores.max())
    return exponentials / exponentials.sum(dim=-1, keepdim=True) @ values


@misconception("scaled_dot_product_attention", kind="edge", caught_by="test_large_scores_do_not_overflow")
def attention_overflow_hidden(queries, keys, values):
    """The overflow is hidden (nan_to_num), and large scores get no weight; use torch.softmax or subtract the
    maximum.
    """
    exponentials = torch.exp(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5)
    return torch.nan_to_num(exponentials / exponentials.sum(dim=-1, keepdim=True)) @ values


@misconception("scaled_dot_product_attention", kind="mask", caught_by="test_six_words")
def attention_to_earlier_keys_only(queries, keys, values):
    """Later keys are hidden by a causal mask; here every query sees every key."""
    scores = queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5
    return torch.softmax(scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf), dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="mask", caught_by="test_six_words")
def attention_to_earlier_keys_by_a_cpu_mask(queries, keys, values):
    """Later keys are hidden; here every query sees every key (and the mask is made on the CPU)."""
    scores = queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5
    mask = torch.triu(torch.ones(scores.shape[-2:]), diagonal=1).bool()
    return torch.softmax(scores.masked_fill(mask, -torch.inf), dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="contract", caught_by="test_six_words")
def attention_weights_alone(queries, keys, values):
    """The attention weights are returned; multiply them with the values to get the context vectors."""
    return torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5, dim=-1)


@misconception("scaled_dot_product_attention", kind="contract", caught_by="test_six_words")
def attention_and_weights(queries, keys, values):
    """It returns a pair, context vectors and weights; only the context vectors are asked for."""
    weights = torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5, dim=-1)
    return weights @ values, weights


@misconception("scaled_dot_product_attention", kind="value", caught_by="test_six_words")
def attention_keys_as_values(queries, keys, values):
    """The weights are applied to the keys; they belong to the values."""
    return torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5, dim=-1) @ keys


@misconception("scaled_dot_product_attention", kind="value", caught_by="test_six_words")
def attention_weights_transposed(queries, keys, values):
    """The weights are transposed before they meet the values; each row already belongs to one query."""
    return torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5, dim=-1).transpose(-2, -1) @ values


@misconception("scaled_dot_product_attention", kind="value", caught_by="test_six_words")
def attention_queries_and_keys_swapped(queries, keys, values):
    """Queries and keys are swapped in the product: row i of the scores should belong to query i."""
    return torch.softmax(keys @ queries.transpose(-2, -1) / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="value", caught_by="test_six_words")
def attention_sign_reversed(queries, keys, values):
    """The sign of the scores is reversed, so the worst fit gets the most weight."""
    return torch.softmax(-(queries @ keys.transpose(-2, -1)) / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="value", caught_by="test_six_words")
def attention_softmaxed_twice(queries, keys, values):
    """The softmax is applied twice, which flattens the weights; once is right."""
    return (
        torch.softmax(torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5, dim=-1), dim=-1) @ values
    )


@misconception("scaled_dot_product_attention", kind="value", caught_by="test_six_words")
def attention_by_sums(queries, keys, values):
    """The scores are divided by their sum; take a softmax of them."""
    scores = queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5
    return scores / scores.sum(dim=-1, keepdim=True) @ values


@misconception("scaled_dot_product_attention", kind="edge", caught_by="test_any_leading_dimensions")
def attention_squeezed(queries, keys, values):
    """squeeze() drops dimensions of size 1, a batch or a sequence of one too; leave it out."""
    return (torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5, dim=-1) @ values).squeeze()


@misconception("scaled_dot_product_attention", kind="gradient", caught_by="test_gradients")
def attention_values_detached(queries, keys, values):
    """No gradient reaches the values: they are detached (`.detach()` or `.data`)."""
    return torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5, dim=-1) @ values.detach()


@misconception("scaled_dot_product_attention", kind="gradient", caught_by="test_gradients")
def attention_keys_detached(queries, keys, values):
    """No gradient reaches the keys: they are detached (`.detach()` or `.data`)."""
    return torch.softmax(queries @ keys.detach().transpose(-2, -1) / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="gradient", caught_by="test_gradients")
def attention_queries_detached(queries, keys, values):
    """No gradient reaches the queries: they are detached (`.detach()` or `.data`)."""
    return torch.softmax(queries.detach() @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="gradient", caught_by="test_gradients")
def attention_without_gradients(queries, keys, values):
    """The result carries no gradient (`.detach()`, `.data` or torch.no_grad())."""
    return (torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5, dim=-1) @ values).detach()


@misconception("scaled_dot_product_attention", kind="dtype", caught_by="test_float64_stays_exact")
def attention_in_float32(queries, keys, values):
    """The result is float32 whatever the inputs are; keep their dtype."""
    queries, keys, values = queries.float(), keys.float(), values.float()
    return torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="dtype", caught_by="test_dtype_is_kept")
def attention_in_float64(queries, keys, values):
    """The result is float64 even for float32 inputs; convert it back."""
    queries, keys, values = queries.double(), keys.double(), values.double()
    return torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="dtype", caught_by="test_float64_stays_exact")
def attention_weights_through_float32(queries, keys, values):
    """The weights pass through float32, so float64 inputs lose digits; keep the inputs' dtype all along."""
    return (
        torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5, dim=-1, dtype=torch.float32).to(
            values.dtype
        )
        @ values
    )


@misconception("scaled_dot_product_attention", kind="device", caught_by="test_follows_device")
def attention_root_on_the_cpu(queries, keys, values):
    """The root of d_k is a tensor of shape (1,) on the CPU, which fails on another device; use a number."""
    return (
        torch.softmax(
            queries @ keys.transpose(-2, -1) / torch.tensor([keys.shape[-1]], dtype=keys.dtype).sqrt(), dim=-1
        )
        @ values
    )


@misconception("scaled_dot_product_attention", kind="device", caught_by="test_follows_device")
def attention_left_on_the_cpu(queries, keys, values):
    """The result ends on the CPU, whatever device the inputs are on."""
    return (torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5, dim=-1) @ values).cpu()


@misconception("scaled_dot_product_attention", kind="side effect", caught_by="test_inputs_are_unchanged")
def keys_scaled_in_place(queries, keys, values):
    """The caller's keys are scaled in place (`/=`, `*=`); make a new tensor: keys / ..."""
    keys /= keys.shape[-1] ** 0.5
    return torch.softmax(queries @ keys.transpose(-2, -1), dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="contract", caught_by="test_six_words")
def attention_not_returned(queries, keys, values):
    """Nothing is returned (None): end the function with `return`."""
    torch.softmax(queries @ keys.transpose(-2, -1) / keys.shape[-1] ** 0.5, dim=-1) @ values


@misconception("scaled_dot_product_attention", kind="hard-coded output", caught_by="test_other_widths")
def attention_typed_in(queries, keys, values):
    """The worked example's context vectors are typed in; compute them from the arguments."""
    return torch.tensor([[0.2996, 0.8053], [0.3061, 0.8210]]).repeat(3, 1)
