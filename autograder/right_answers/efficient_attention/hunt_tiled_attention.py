"""Right answers to `hunt_tiled_attention`: a far larger score that comes late, in other ways."""

import torch

from autograder.catalogue import right_answer


@right_answer("hunt_tiled_attention")
def grows_from_token_to_token():
    """scores that grow, four tokens"""
    steps = torch.arange(4.0).unsqueeze(-1) * 10
    return steps, steps, steps


@right_answer("hunt_tiled_attention")
def first_block_far_below():
    """no large score in the second block, but very negative ones in the first"""
    keys = torch.tensor([[-300.0], [-200.0], [0.0]])
    return torch.ones(3, 1), keys, torch.tensor([[1.0], [2.0], [9.0]])


@right_answer("hunt_tiled_attention")
def one_query_alone():
    """zeros but for one query, whose late key is negative as it is"""
    return (
        torch.tensor([[0.0], [0.0], [-100.0]]),
        torch.tensor([[1.0], [2.0], [-1.0]]),
        torch.tensor([[0.5], [7.0], [-2.0]]),
    )


@right_answer("hunt_tiled_attention")
def as_large_as_can_be():
    """scores near the largest numbers of float32"""
    return torch.full((4, 1), 1e19), torch.tensor([[0.0], [0.0], [1e19], [0.0]]), torch.arange(4.0).unsqueeze(-1)
