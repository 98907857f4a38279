"""Right answers to `hunt_scaled_dot_product_attention`: other widths and numbers."""

import torch

from autograder.catalogue import right_answer


@right_answer("hunt_scaled_dot_product_attention")
def wider_keys():
    """keys of width 2, values of width 1"""
    queries = torch.ones(1, 2)
    keys = torch.eye(2) * torch.tensor([1.0, 2.0])
    return queries, keys, torch.tensor([[10.0], [-10.0]])


@right_answer("hunt_scaled_dot_product_attention")
def all_twelve():
    """twelve numbers, keys of width 3"""
    numbers = torch.linspace(-1.0, 2.0, 12)
    return numbers[:3].view(1, 3), numbers[3:9].view(2, 3), numbers[9:11].view(2, 1)


@right_answer("hunt_scaled_dot_product_attention")
def many_queries():
    """three queries, of which the last alone is not zero, in a list"""
    return [torch.tensor([[0.0], [0.0], [2.0]]), torch.tensor([[0.5], [-0.5]]), torch.eye(2)]


@right_answer("hunt_scaled_dot_product_attention")
def three_keys():
    """three keys of width 1 and values of width 2, negative and small numbers"""
    return torch.tensor([[-1.5]]), torch.tensor([[0.1], [0.7], [-0.4]]), torch.arange(6.0).view(3, 2) / 10


@right_answer("hunt_scaled_dot_product_attention")
def wide_values():
    """values four times as wide as keys, which are drawn by chance"""
    torch.manual_seed(1)
    values = torch.stack([torch.full((4,), 5.0), torch.full((4,), -5.0)])
    return torch.ones(1, 1), torch.randn(2, 1), values
