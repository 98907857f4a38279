"""Right answers to `hunt_softmax`: matrices whose rows lie far apart, in other ways."""

import torch

from autograder.catalogue import right_answer


@right_answer("hunt_softmax")
def a_column():
    """rows of one score each"""
    return torch.tensor([[1.0], [500.0]])


@right_answer("hunt_softmax")
def one_row_of_thousands():
    """three rows of small scores, and one of large ones"""
    scores = torch.rand(4, 3)
    scores[2] += 1e4
    return scores


@right_answer("hunt_softmax")
def just_far_enough():
    """a row so far below that only few digits of its exponentials are left"""
    return torch.tensor([[0.0, -3.0], [-102.0, -101.5]])


@right_answer("hunt_softmax")
def as_large_as_floats_are():
    """the largest numbers of float32, with both signs"""
    return torch.tensor([[-3e38, -3e38, -2e38], [3e38, 2e38, 3e38]])


@right_answer("hunt_softmax")
def one_score_far_above():
    """equal rows, but for one score that lies far above all others"""
    scores = torch.full((3, 4), 7.0)
    scores[0, 0] = 150.0
    return scores


@right_answer("hunt_softmax")
def found_by_spreading():
    """scores that are spread further and further, until exp gives a row of zeros"""
    scores = torch.randn(2, 2)
    while ((scores - scores.max()).exp().sum(dim=-1) > 0).all():
        scores = scores * 2
    return scores
