"""What goes wrong in `causal_mask`."""

import torch

from ...catalogue import misconception


@misconception("causal_mask", kind="mask", caught_by="test_four_tokens")
def diagonal_hidden_too(num_tokens):
    """The diagonal is hidden too, so that no token sees itself; start one above it: triu(..., diagonal=1)."""
    return torch.triu(torch.ones(num_tokens, num_tokens, dtype=torch.bool))


@misconception("causal_mask", kind="mask", caught_by="test_four_tokens")
def next_token_left_visible(num_tokens):
    """Each token still sees the one right after it; the mask starts one above the diagonal: triu(..., diagonal=1)."""
    return torch.triu(torch.ones(num_tokens, num_tokens, dtype=torch.bool), diagonal=2)


@misconception("causal_mask", kind="mask", caught_by="test_four_tokens")
def past_hidden(num_tokens):
    """The past is hidden instead of the future; True belongs above the diagonal, where the key is the later one."""
    return torch.tril(torch.ones(num_tokens, num_tokens, dtype=torch.bool), diagonal=-1)


@misconception("causal_mask", kind="mask", caught_by="test_four_tokens")
def true_means_visible(num_tokens):
    """The mask is the other way round: True stands where a key is visible; here True means hidden."""
    return torch.tril(torch.ones(num_tokens, num_tokens, dtype=torch.bool))


@misconception("causal_mask", kind="mask", caught_by="test_four_tokens")
def one_diagonal_hidden(num_tokens):
    """Only the token right after each one is hidden; all that come after it are, the whole triangle."""
    return torch.ones(num_tokens, num_tokens).triu(diagonal=1).tril(diagonal=1).bool()


@misconception("causal_mask", kind="dtype", caught_by="test_bool")
def mask_of_floats(num_tokens):
    """The mask is made of floats, 0. and 1.; make it bool: dtype=torch.bool, or .bool()."""
    return torch.triu(torch.ones(num_tokens, num_tokens), diagonal=1)


@misconception("causal_mask", kind="dtype", caught_by="test_bool")
def mask_of_integers(num_tokens):
    """The mask is made of integers, 0 and 1; make it bool: dtype=torch.bool, or .bool()."""
    return torch.triu(torch.ones(num_tokens, num_tokens, dtype=torch.int64), diagonal=1)


@misconception("causal_mask", kind="mask", caught_by="test_four_tokens")
def mask_of_minus_infinity(num_tokens):
    """This is a mask to be added to scores, 0 and -inf; asked for is a bool mask, True where hidden."""
    return torch.full((num_tokens, num_tokens), float("-inf")).triu(diagonal=1)


@misconception("causal_mask", kind="contract", caught_by="test_four_tokens")
def mask_as_a_list(num_tokens):
    """The mask is a list of lists; make a tensor of it: torch.tensor."""
    return [[key > query for key in range(num_tokens)] for query in range(num_tokens)]


@misconception("causal_mask", kind="hard-coded output", caught_by="test_other_sizes")
def mask_for_four_tokens(num_tokens):
    """The mask always has four tokens; its size is num_tokens."""
    return torch.triu(torch.ones(4, 4, dtype=torch.bool), diagonal=1)


@misconception("causal_mask", kind="contract", caught_by="test_four_tokens")
def mask_with_a_batch_dimension(num_tokens):
    """The mask has a dimension too many, (1, T, T); its shape is (T, T)."""
    return torch.triu(torch.ones(1, num_tokens, num_tokens, dtype=torch.bool), diagonal=1)


@misconception("causal_mask", kind="dtype", caught_by="test_bool")
def mask_of_bytes(num_tokens):
    """The mask is made of bytes (uint8), 0 and 1; make it bool: dtype=torch.bool, or .bool()."""
    return torch.triu(torch.ones(num_tokens, num_tokens, dtype=torch.uint8), diagonal=1)


@misconception("causal_mask", kind="dtype", caught_by="test_bool")
def mask_of_short_integers(num_tokens):
    """The mask is made of 32-bit integers, 0 and 1; make it bool: dtype=torch.bool, or .bool()."""
    return torch.triu(torch.ones(num_tokens, num_tokens), diagonal=1).int()


@misconception("causal_mask", kind="mask", caught_by="test_four_tokens")
def lower_triangle_of_floats(num_tokens):
    """The mask has 1. where a key is visible; asked for is a bool mask, True where a key is hidden."""
    return torch.tril(torch.ones(num_tokens, num_tokens))


@misconception("causal_mask", kind="contract", caught_by="test_four_tokens")
def mask_with_batch_and_head_dimensions(num_tokens):
    """The mask has two dimensions too many, (1, 1, T, T); its shape is (T, T)."""
    return torch.triu(torch.ones(1, 1, num_tokens, num_tokens, dtype=torch.bool), diagonal=1)


@misconception("causal_mask", kind="edge", caught_by="test_other_sizes")
def mask_squeezed(num_tokens):
    """`squeeze()` drops the dimensions of a single token's mask; its shape is (1, 1)."""
    return torch.triu(torch.ones(num_tokens, num_tokens, dtype=torch.bool), diagonal=1).squeeze()


@misconception("causal_mask", kind="hard-coded output", caught_by="test_four_tokens")
def mask_for_six_tokens(num_tokens):
    """The mask always has six tokens; make it of num_tokens, however many."""
    return torch.triu(torch.ones(6, 6, dtype=torch.bool), diagonal=1)


@misconception("causal_mask", kind="mask", caught_by="test_four_tokens")
def everything_but_itself_hidden(num_tokens):
    """The past is hidden too, so that a token sees itself alone; hide what is above the diagonal only."""
    return ~torch.eye(num_tokens, dtype=torch.bool)


@misconception("causal_mask", kind="mask", caught_by="test_four_tokens")
def nothing_hidden(num_tokens):
    """Nothing is hidden; set True above the diagonal."""
    return torch.zeros(num_tokens, num_tokens, dtype=torch.bool)


@misconception("causal_mask", kind="mask", caught_by="test_four_tokens")
def everything_hidden(num_tokens):
    """Everything is hidden, a token from itself too; only what is above the diagonal is True: torch.triu."""
    return torch.ones(num_tokens, num_tokens, dtype=torch.bool)


@misconception("causal_mask", kind="mask", caught_by="test_four_tokens")
def last_token_left_visible(num_tokens):
    """The last token is visible to all; the last column is hidden too, but for its lowest entry."""
    mask = torch.triu(torch.ones(num_tokens, num_tokens, dtype=torch.bool), diagonal=1)
    mask[:, -1] = False
    return mask


@misconception("causal_mask", kind="mask", caught_by="test_four_tokens")
def mask_mirrored(num_tokens):
    """The mask is mirrored, left for right; column j is key j, counted from the left."""
    return torch.triu(torch.ones(num_tokens, num_tokens, dtype=torch.bool), diagonal=1).flip(-1)


@misconception("causal_mask", kind="contract", caught_by="test_four_tokens")
def no_mask_returned(num_tokens):
    """Nothing is returned (None); end the function with `return` and the mask."""
    torch.triu(torch.ones(num_tokens, num_tokens, dtype=torch.bool), diagonal=1)
