"""What goes wrong in `split_heads`."""

import torch

from ...catalogue import misconception


@misconception("split_heads", kind="value", caught_by="test_other_shapes")
def cut_without_swapping(x, num_heads):
    """The numbers are counted off in memory order (reshape alone); cut into (b, T, h, hd), then transpose(1, 2)."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x.reshape(b, num_heads, num_tokens, d // num_heads)


@misconception("split_heads", kind="value", caught_by="test_other_shapes")
def every_hth_number(x, num_heads):
    """A head gets every h-th number of a token; it gets a piece of neighbours: (b, T, h, hd), not (b, T, hd, h)."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x.reshape(b, num_tokens, d // num_heads, num_heads).permute(0, 3, 1, 2)


@misconception("split_heads", kind="value", caught_by="test_other_shapes")
def heads_not_moved(x, num_heads):
    """The result is (b, T, h, hd): the vectors are cut, but tokens and heads still have to change places."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x.reshape(b, num_tokens, num_heads, d // num_heads)


@misconception("split_heads", kind="value", caught_by="test_other_shapes")
def heads_before_the_batch(x, num_heads):
    """The heads come before the batch, (h, b, T, hd); the batch comes first: (b, h, T, hd)."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x.reshape(b, num_tokens, num_heads, d // num_heads).permute(2, 0, 1, 3)


@misconception("split_heads", kind="value", caught_by="test_other_shapes")
def widths_before_tokens(x, num_heads):
    """Tokens and widths are swapped, (b, h, hd, T); a row is a token: (b, h, T, hd)."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x.reshape(b, num_tokens, num_heads, d // num_heads).permute(0, 2, 3, 1)


@misconception("split_heads", kind="value", caught_by="test_other_shapes")
def heads_folded_into_the_batch(x, num_heads):
    """Heads and batch are one dimension, (b * h, T, hd); they stay apart: (b, h, T, hd)."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x.reshape(b, num_tokens, num_heads, d // num_heads).transpose(1, 2).flatten(0, 1)


@misconception("split_heads", kind="contract", caught_by="test_other_shapes")
def heads_in_a_tuple(x, num_heads):
    """The heads are in a tuple (chunk, split); stack them along dimension 1 into one tensor (b, h, T, hd)."""
    assert x.shape[-1] % num_heads == 0
    return x.chunk(num_heads, dim=-1)


@misconception("split_heads", kind="value", caught_by="test_other_shapes")
def cut_between_tokens(x, num_heads):
    """The heads are cut between tokens, not within each token's vector: cut the last dimension, (b, T, h, hd)."""
    assert x.shape[-1] % num_heads == 0
    return torch.stack(x.chunk(num_heads, dim=1), dim=1)


@misconception("split_heads", kind="value", caught_by="test_other_shapes")
def num_heads_taken_for_the_width(x, num_heads):
    """The pieces are num_heads wide; num_heads says how many there are, and each is d / num_heads wide."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x.reshape(b, num_tokens, d // num_heads, num_heads).transpose(1, 2)


@misconception("split_heads", kind="hard-coded output", caught_by="test_other_shapes")
def always_two_heads(x, num_heads):
    """The vectors are always cut in two, as in the example; cut them into num_heads pieces."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x.reshape(b, num_tokens, 2, d // 2).transpose(1, 2)


@misconception("split_heads", kind="value", caught_by="test_other_shapes")
def swapped_before_cutting(x, num_heads):
    """Dimensions are swapped before the vectors are cut, which mixes tokens; cut first, (b, T, h, hd), then swap."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x.transpose(1, 2).reshape(b, num_heads, num_tokens, d // num_heads)


@misconception("split_heads", kind="edge", caught_by="test_other_shapes")
def first_sequence_split(x, num_heads):
    """Only the first sequence of the batch is split; keep the batch as the first dimension."""
    _, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x[:1].reshape(1, num_tokens, num_heads, d // num_heads).transpose(1, 2)


@misconception("split_heads", kind="edge", caught_by="test_equal_sizes")
def split_and_squeezed(x, num_heads):
    """`squeeze()` drops every dimension of size 1, also a batch or a head of one; leave it out."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x.reshape(b, num_tokens, num_heads, d // num_heads).transpose(1, 2).squeeze()


@misconception("split_heads", kind="contract", caught_by="test_refuses_what_cannot_be_split")
def refusal_left_to_reshape(x, num_heads):
    """An indivisible width ends in a RuntimeError (reshape alone gives one); check first, and raise ValueError or use
    assert."""
    b, num_tokens, d = x.shape
    return x.reshape(b, num_tokens, num_heads, d // num_heads).transpose(1, 2)


@misconception("split_heads", kind="contract", caught_by="test_refuses_what_cannot_be_split")
def rest_thrown_away(x, num_heads):
    """Where the width is not divisible the last numbers are thrown away silently; raise ValueError (or use assert)."""
    b, num_tokens, d = x.shape
    head_dim = d // num_heads
    return x[..., : num_heads * head_dim].reshape(b, num_tokens, num_heads, head_dim).transpose(1, 2)


@misconception("split_heads", kind="contract", caught_by="test_refuses_what_cannot_be_split")
def refusal_by_none(x, num_heads):
    """Where the width is not divisible, None is returned; raise ValueError (or use assert), which nobody overlooks."""
    b, num_tokens, d = x.shape
    if d % num_heads:
        return None
    return x.reshape(b, num_tokens, num_heads, d // num_heads).transpose(1, 2)


@misconception("split_heads", kind="contract", caught_by="test_refuses_what_cannot_be_split")
def refusal_by_a_type_error(x, num_heads):
    """A TypeError is raised for an indivisible width; its type is right, its value is not: raise ValueError."""
    b, num_tokens, d = x.shape
    if d % num_heads:
        raise TypeError("d must be divisible by num_heads")
    return x.reshape(b, num_tokens, num_heads, d // num_heads).transpose(1, 2)


@misconception("split_heads", kind="contract", caught_by="test_refuses_what_cannot_be_split")
def refusal_by_a_plain_exception(x, num_heads):
    """A plain Exception is raised for an indivisible width; a ValueError says more, and can be caught on its own."""
    b, num_tokens, d = x.shape
    if d % num_heads:
        raise Exception("d must be divisible by num_heads")
    return x.reshape(b, num_tokens, num_heads, d // num_heads).transpose(1, 2)


@misconception("split_heads", kind="gradient", caught_by="test_gradients")
def split_detached(x, num_heads):
    """The pieces are taken out of the graph (`.detach()`, `.data`, `torch.tensor`), so no layer before can learn."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x.detach().reshape(b, num_tokens, num_heads, d // num_heads).transpose(1, 2)


@misconception("split_heads", kind="dtype", caught_by="test_float64_stays_exact")
def split_in_float32(x, num_heads):
    """The pieces are float32 whatever the input is, so float64 loses digits; keep the input's dtype."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x.float().reshape(b, num_tokens, num_heads, d // num_heads).transpose(1, 2)


@misconception("split_heads", kind="device", caught_by="test_follows_device")
def split_on_the_cpu(x, num_heads):
    """The pieces are on the CPU wherever the input is (`.cpu()`, torch.zeros without a device); reshape the input
    itself."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    pieces = torch.zeros(b, num_heads, num_tokens, d // num_heads, dtype=x.dtype)
    for head, piece in enumerate(x.chunk(num_heads, dim=-1)):
        pieces[:, head] = piece
    return pieces


@misconception("split_heads", kind="contract", caught_by="test_other_shapes")
def heads_in_a_list(x, num_heads):
    """The heads are in a list; torch.stack(heads, dim=1) makes one tensor of them, (b, h, T, hd)."""
    assert x.shape[-1] % num_heads == 0
    return list(x.split(x.shape[-1] // num_heads, dim=-1))


@misconception("split_heads", kind="dtype", caught_by="test_dtype_is_kept")
def split_in_float64(x, num_heads):
    """The pieces are float64 whatever the input is; keep the input's dtype."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x.double().reshape(b, num_tokens, num_heads, d // num_heads).transpose(1, 2)


@misconception("split_heads", kind="gradient", caught_by="test_gradients")
def split_through_numpy(x, num_heads):
    """The numbers go through NumPy or Python, which takes them out of the graph; reshape the tensor itself."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    pieces = x.detach().numpy().reshape(b, num_tokens, num_heads, d // num_heads)
    return torch.from_numpy(pieces.swapaxes(1, 2))


@misconception("split_heads", kind="dtype", caught_by="test_float64_stays_exact")
def split_into_plain_zeros(x, num_heads):
    """The pieces are copied into torch.zeros without dtype and device, float32 on the CPU; reshape the input itself."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    pieces = torch.zeros(b, num_heads, num_tokens, d // num_heads)
    for head, piece in enumerate(x.chunk(num_heads, dim=-1)):
        pieces[:, head] = piece
    return pieces


@misconception("split_heads", kind="value", caught_by="test_other_shapes")
def split_scaled_too(x, num_heads):
    """The pieces are divided by the root of their width too; splitting changes no number, scaling comes later."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x.reshape(b, num_tokens, num_heads, -1).transpose(1, 2) / (d // num_heads) ** 0.5


@misconception("split_heads", kind="value", caught_by="test_other_shapes")
def split_in_reverse(x, num_heads):
    """The heads stand in reverse order; head 0 has the first piece of every token."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x.reshape(b, num_tokens, num_heads, -1).transpose(1, 2).flip(1)


@misconception("split_heads", kind="value", caught_by="test_other_shapes")
def tokens_swapped_with_the_batch(x, num_heads):
    """transpose(0, 1) swaps batch and tokens; it is tokens and heads, transpose(1, 2), that change places."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    return x.reshape(b, num_tokens, num_heads, -1).transpose(0, 1)


@misconception("split_heads", kind="value", caught_by="test_other_shapes")
def heads_behind_each_other_when_split(x, num_heads):
    """The pieces are put behind each other along the tokens (cat), (b, h * T, hd); torch.stack gives heads a
    dimension."""
    assert x.shape[-1] % num_heads == 0
    return torch.cat(x.chunk(num_heads, dim=-1), dim=1)


@misconception("split_heads", kind="value", caught_by="test_other_shapes")
def whole_vectors_for_every_head(x, num_heads):
    """Every head gets the whole vectors, (b, h, T, d); cut each vector into num_heads pieces."""
    assert x.shape[-1] % num_heads == 0
    return x.unsqueeze(1).repeat(1, num_heads, 1, 1)


@misconception("split_heads", kind="contract", caught_by="test_refuses_what_cannot_be_split")
def refusal_left_to_chunk(x, num_heads):
    """Where the width is not divisible fewer or narrower heads come out, and nothing is raised; raise ValueError."""
    heads = x.chunk(num_heads, dim=-1)
    return torch.stack([head for head in heads if head.shape == heads[0].shape], dim=1)


@misconception("split_heads", kind="contract", caught_by="test_other_shapes")
def split_not_returned(x, num_heads):
    """Nothing is returned (None); end with `return` and the split tensor."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    x.reshape(b, num_tokens, num_heads, -1).transpose(1, 2)


@misconception("split_heads", kind="hard-coded output", caught_by="test_other_shapes")
def split_worked_example_typed_in(x, num_heads):
    """The worked example's numbers are returned whatever the input is; cut the input's vectors."""
    assert x.shape[-1] % num_heads == 0
    heads = [
        [[-0.2077, 0.0027, 0.3938], [-0.0103, 0.0498, 0.2366], [-0.3723, -0.0854, 0.3992]],
        [[0.3667, -0.3282, 0.4679], [0.4801, -0.8703, 0.1963], [0.4328, -0.6178, 0.7257]],
    ]
    return torch.tensor([heads, heads])


@misconception("split_heads", kind="side effect", caught_by="test_input_is_unchanged")
def input_overwritten_when_split(x, num_heads):
    """The input is written into (`x.data`, `x[...] =`, a method ending in `_`), which is the caller's; make a new
    tensor."""
    b, num_tokens, d = x.shape
    assert d % num_heads == 0
    pieces = x.reshape(b, num_tokens, num_heads, d // num_heads).transpose(1, 2).clone()
    x.data.zero_()
    return pieces
