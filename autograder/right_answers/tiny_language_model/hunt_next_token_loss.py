"""Right answers to `hunt_next_token_loss`: a token that the model finds all but impossible, in other ways."""

import torch

from autograder.catalogue import right_answer


@right_answer("hunt_next_token_loss")
def just_unlikely_enough():
    """a probability a little below the smallest that is kept"""
    return torch.tensor([[[0.0, 70.0], [0.0, 0.0]]]), torch.tensor([[1, 0]])


@right_answer("hunt_next_token_loss")
def two_sentences():
    """two sentences, of which the second alone has a surprise"""
    logits = torch.zeros(2, 2, 2)
    logits[1, 0, 0] = 1000.0
    return logits, torch.ones(2, 2, dtype=torch.int64)


@right_answer("hunt_next_token_loss")
def far_below_zero():
    """no large logit, and one far below the others"""
    return torch.tensor([[[0.0, 0.0, -5000.0], [1.0, 2.0, 3.0]]]), torch.tensor([[1, 2]])


@right_answer("hunt_next_token_loss")
def drawn_and_stretched():
    """drawn logits, of which the largest is raised above all others"""
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(1, 3, 3, generator=generator)
    logits[..., 2] += 200
    return logits, torch.tensor([[0, 1, 0]])
