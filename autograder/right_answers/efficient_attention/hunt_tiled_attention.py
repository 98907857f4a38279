"""Right answers to `hunt_tiled_attention`: a largest score that comes late, in other ways."""

import torch

from autograder.catalogue import right_answer


@right_answer("hunt_tiled_attention")
def grows_from_token_to_token():
    """scores that grow, four tokens"""
    steps = torch.arange(4.0).unsqueeze(-1)
    return steps, steps, steps


@right_answer("hunt_tiled_attention")
def the_first_block_is_larger():
    """the largest score in the first block, which a sum without rescaling gets wrong too"""
    keys = torch.tensor([[4.0], [3.0], [-2.0]])
    return torch.ones(3, 1), keys, torch.tensor([[1.0], [2.0], [9.0]])


@right_answer("hunt_tiled_attention")
def wide_and_negative():
    """a single wide token is too little, so one query of the block sees a late key"""
    return (
        torch.tensor([[0.0], [0.0], [-3.0]]),
        torch.tensor([[1.0], [2.0], [-1.0]]),
        torch.tensor([[0.5], [7.0], [-2.0]]),
    )
