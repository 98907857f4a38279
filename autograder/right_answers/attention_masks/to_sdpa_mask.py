"""Right answers to `to_sdpa_mask`, as different students write them."""

import torch

from autograder.catalogue import right_answer


@right_answer("to_sdpa_mask")
def by_name(mask):
    """logical_not"""
    return torch.logical_not(mask)


@right_answer("to_sdpa_mask")
def compared_with_false(mask):
    """mask == False"""
    return mask == False  # noqa: E712


@right_answer("to_sdpa_mask")
def compared_with_zero(mask):
    """a comparison with 0"""
    return mask == 0


@right_answer("to_sdpa_mask")
def chosen(mask):
    """torch.where"""
    return torch.where(mask, False, True)


@right_answer("to_sdpa_mask")
def zeros_filled_where_seen(mask):
    """ones, with False where hidden"""
    return torch.ones_like(mask).masked_fill(mask, False)


@right_answer("to_sdpa_mask")
def exclusive_or(mask):
    """xor with True"""
    return mask ^ True


@right_answer("to_sdpa_mask")
def subtracted_as_numbers(mask):
    """1 - mask in whole numbers, made bool again"""
    return (1 - mask.long()).bool()
