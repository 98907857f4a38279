"""What goes wrong in `merge_heads`."""

import torch

from ...catalogue import misconception


@misconception("merge_heads", kind="value", caught_by="test_worked_example")
def merged_without_swapping(x):
    """Numbers of different tokens end up in one row: swap heads and tokens back, transpose(1, 2), once, then merge."""
    b, h, num_tokens, head_dim = x.shape
    return x.reshape(b, num_tokens, h * head_dim)


@misconception("merge_heads", kind="contract", caught_by="test_worked_example")
def viewed_out_of_order(x):
    """`view` refuses a tensor whose dimensions were swapped; call `.contiguous()` after transpose, or use `reshape`."""
    b, h, num_tokens, head_dim = x.shape
    return x.transpose(1, 2).view(b, num_tokens, h * head_dim)


@misconception("merge_heads", kind="value", caught_by="test_worked_example")
def heads_interleaved(x):
    """The heads' numbers take turns within a token; each head's numbers stay together, head 0's first."""
    return x.permute(0, 2, 3, 1).flatten(2)


@misconception("merge_heads", kind="value", caught_by="test_worked_example")
def heads_behind_each_other(x):
    """The heads are put behind each other along the tokens, (b, h * T, hd); put them side by side: (b, T, h * hd)."""
    return x.flatten(1, 2)


@misconception("merge_heads", kind="value", caught_by="test_worked_example")
def swapped_but_not_merged(x):
    """The result is (b, T, h, hd): the last two dimensions still have to become one of width h * hd."""
    return x.transpose(1, 2)


@misconception("merge_heads", kind="value", caught_by="test_worked_example")
def merged_by_average(x):
    """The heads are averaged; they are put side by side, so that out_proj can mix them: (b, T, h * hd)."""
    return x.mean(dim=1)


@misconception("merge_heads", kind="value", caught_by="test_worked_example")
def merged_by_sum(x):
    """The heads are summed; they are put side by side, so that out_proj can mix them: (b, T, h * hd)."""
    return x.sum(dim=1)


@misconception("merge_heads", kind="value", caught_by="test_other_shapes")
def batch_mixed_into_tokens(x):
    """Tokens of different sequences are mixed: the batch stays the first dimension, only heads and tokens swap."""
    b, h, num_tokens, head_dim = x.shape
    return x.permute(2, 0, 1, 3).reshape(b, num_tokens, h * head_dim)


@misconception("merge_heads", kind="value", caught_by="test_worked_example")
def tokens_before_the_batch(x):
    """The tokens come before the batch, (T, b, h * hd); the batch comes first: (b, T, h * hd)."""
    return x.permute(2, 0, 1, 3).flatten(2)


@misconception("merge_heads", kind="value", caught_by="test_worked_example")
def swapped_tokens_and_widths(x):
    """transpose(2, 3) swaps tokens and widths; it is heads and tokens, transpose(1, 2), that change places."""
    b, h, num_tokens, head_dim = x.shape
    return x.transpose(2, 3).reshape(b, num_tokens, h * head_dim)


@misconception("merge_heads", kind="value", caught_by="test_worked_example")
def heads_in_reverse(x):
    """The heads stand in reverse order; head 0's numbers come first in every token."""
    return x.flip(1).transpose(1, 2).flatten(2)


@misconception("merge_heads", kind="value", caught_by="test_worked_example")
def head_0_repeated(x):
    """Head 0's numbers are repeated in the places of the other heads; take x[:, i] for head i."""
    return torch.cat([x[:, 0]] * x.shape[1], dim=-1)


@misconception("merge_heads", kind="edge", caught_by="test_worked_example")
def first_sequence_merged(x):
    """Only the first sequence of the batch is merged; keep the batch as the first dimension."""
    return x[:1].transpose(1, 2).flatten(2)


@misconception("merge_heads", kind="edge", caught_by="test_one_head_or_one_token")
def merged_and_squeezed(x):
    """`squeeze()` drops every dimension of size 1, also a batch or a token of one; leave it out."""
    return x.transpose(1, 2).flatten(2).squeeze()


@misconception("merge_heads", kind="gradient", caught_by="test_gradients")
def merged_detached(x):
    """The result is taken out of the graph (`.detach()`, `.data`, `torch.tensor`), so no head can learn."""
    return x.detach().transpose(1, 2).flatten(2)


@misconception("merge_heads", kind="dtype", caught_by="test_float64_stays_exact")
def merged_in_float32(x):
    """The result is float32 whatever the input is, so float64 loses digits; keep the input's dtype."""
    return x.float().transpose(1, 2).flatten(2)


@misconception("merge_heads", kind="device", caught_by="test_follows_device")
def merged_on_the_cpu(x):
    """The result is on the CPU wherever the input is (`.cpu()`, torch.zeros without a device); keep to x's device."""
    b, h, num_tokens, head_dim = x.shape
    merged = torch.zeros(b, num_tokens, h * head_dim, dtype=x.dtype)
    for head in range(h):
        merged[..., head * head_dim : (head + 1) * head_dim] = x[:, head]
    return merged


@misconception("merge_heads", kind="side effect", caught_by="test_input_is_unchanged")
def swapped_in_place(x):
    """The input is transposed in place (`transpose_`), which changes the caller's tensor; use `transpose`."""
    return x.transpose_(1, 2).flatten(2)


@misconception("merge_heads", kind="hard-coded output", caught_by="test_other_shapes")
def worked_example_pasted(x):
    """The worked example's numbers are returned whatever the input is; compute the result from x."""
    rows = [
        [-0.1674, -0.5873, -0.3776, -0.2045, 0.2991, 0.2583],
        [-0.1674, -0.5863, -0.3775, -0.2103, 0.3089, 0.2634],
        [-0.1673, -0.5880, -0.3772, -0.2006, 0.2925, 0.2540],
    ]
    return torch.tensor([rows, rows])


@misconception("merge_heads", kind="dtype", caught_by="test_dtype_is_kept")
def merged_in_float64(x):
    """The result is float64 whatever the input is; keep the input's dtype."""
    return x.double().transpose(1, 2).flatten(2)


@misconception("merge_heads", kind="gradient", caught_by="test_gradients")
def merged_through_numpy(x):
    """The numbers go through NumPy or Python, which takes them out of the graph; work on the tensor itself."""
    b, h, num_tokens, head_dim = x.shape
    merged = x.detach().numpy().swapaxes(1, 2).reshape(b, num_tokens, h * head_dim)
    return torch.from_numpy(merged)


@misconception("merge_heads", kind="dtype", caught_by="test_float64_stays_exact")
def merged_into_plain_zeros(x):
    """The heads are copied into torch.zeros without dtype and device, float32 on the CPU; torch.cat keeps both."""
    b, h, num_tokens, head_dim = x.shape
    merged = torch.zeros(b, num_tokens, h * head_dim)
    for head in range(h):
        merged[..., head * head_dim : (head + 1) * head_dim] = x[:, head]
    return merged


@misconception("merge_heads", kind="hard-coded output", caught_by="test_other_shapes")
def two_heads_merged(x):
    """Only heads 0 and 1 are merged, as in the example; x.shape[1] says how many there are."""
    return torch.cat([x[:, 0], x[:, min(1, x.shape[1] - 1)]], dim=-1)


@misconception("merge_heads", kind="edge", caught_by="test_one_head_or_one_token")
def batch_of_one_squeezed(x):
    """`squeeze(0)` drops the batch where it holds one sequence; leave it out."""
    return x.transpose(1, 2).flatten(2).squeeze(0)


@misconception("merge_heads", kind="value", caught_by="test_worked_example")
def tokens_merged_too(x):
    """The tokens are merged too, (b, T * h * hd): flatten(2) in place of flatten(1), so that each token keeps a row."""
    return x.transpose(1, 2).flatten(1)


@misconception("merge_heads", kind="value", caught_by="test_worked_example")
def batch_merged_too(x):
    """Sequences and tokens are one dimension, (b * T, h * hd); keep them apart: (b, T, h * hd)."""
    return x.transpose(1, 2).flatten(2).flatten(0, 1)


@misconception("merge_heads", kind="value", caught_by="test_worked_example")
def batch_and_heads_swapped(x):
    """transpose(0, 1) swaps batch and heads; it is heads and tokens, transpose(1, 2), that change places."""
    b, h, num_tokens, head_dim = x.shape
    return x.transpose(0, 1).reshape(b, num_tokens, h * head_dim)


@misconception("merge_heads", kind="value", caught_by="test_worked_example")
def heads_and_widths_swapped(x):
    """transpose(1, 3) swaps heads and widths; it is heads and tokens, transpose(1, 2), that change places."""
    b, h, num_tokens, head_dim = x.shape
    return x.transpose(1, 3).reshape(b, num_tokens, h * head_dim)


@misconception("merge_heads", kind="value", caught_by="test_worked_example")
def merged_by_maximum(x):
    """The largest number of all heads is taken; put the heads side by side: (b, T, h * hd)."""
    return x.amax(dim=1)


@misconception("merge_heads", kind="contract", caught_by="test_other_shapes")
def merge_not_returned(x):
    """Nothing is returned (None); end with `return` and the merged tensor."""
    x.transpose(1, 2).flatten(2)


@misconception("merge_heads", kind="contract", caught_by="test_other_shapes")
def still_by_head(x):
    """x is returned as it is, (b, h, T, hd); swap heads and tokens, then merge: (b, T, h * hd)."""
    return x
