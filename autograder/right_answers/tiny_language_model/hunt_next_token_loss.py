"""Right answers to `hunt_next_token_loss`: two sentences, of which the first ends in a surprise, in other ways."""

import torch

from autograder.catalogue import right_answer


@right_answer("hunt_next_token_loss")
def places_that_count_are_surprised():
    """the end of a sentence is less surprised than the other places"""
    logits = torch.zeros(2, 2, 2)
    logits[:, 0, 0] = 3.0
    return logits, torch.ones(2, 2, dtype=torch.int64)


@right_answer("hunt_next_token_loss")
def twelve_numbers_by_chance():
    """drawn numbers"""
    generator = torch.Generator().manual_seed(1)
    return torch.randn(2, 2, 2, generator=generator), torch.tensor([[0, 1], [0, 0]])


@right_answer("hunt_next_token_loss")
def one_surprise_in_four():
    """a single large logit, at the end of the first sentence"""
    logits = torch.zeros(8)
    logits[2] = 10.0
    return logits.view(2, 2, 2), torch.tensor([[1, 1], [1, 1]])
