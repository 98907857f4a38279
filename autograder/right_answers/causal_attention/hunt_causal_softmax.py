"""Right answers to `hunt_causal_softmax`: scores that fall below what hides, in other places."""

import torch

from autograder.catalogue import right_answer


@right_answer("hunt_causal_softmax")
def the_first_score_alone():
    """a single score far below the others"""
    scores = torch.zeros(3, 3)
    scores[0, 0] = -1e5
    return scores


@right_answer("hunt_causal_softmax")
def exactly_as_low():
    """visible scores that are as low as hidden ones become"""
    return torch.full((2, 2), -1e4)


@right_answer("hunt_causal_softmax")
def a_little_above():
    """a visible score a little above hidden ones, which still get a share"""
    return torch.tensor([[-9995.0, 3.0], [1.0, 2.0]])


@right_answer("hunt_causal_softmax")
def a_row_in_the_middle():
    """the second row of three, with numbers of its own in each place"""
    return torch.tensor([[1.0, 2.0, 3.0], [-3e4, -4e4, 5.0], [7.0, 8.0, 9.0]])


@right_answer("hunt_causal_softmax")
def the_lowest_there_is():
    """the lowest numbers of float32"""
    return torch.full((3, 3), torch.finfo(torch.float32).min)
