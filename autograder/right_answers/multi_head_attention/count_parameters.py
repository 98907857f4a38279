"""Right answers to `count_parameters`, as different students write them."""

import math

import torch

from autograder.catalogue import right_answer


@right_answer("count_parameters")
def products_of_shapes(module):
    """a loop over shapes, with math.prod"""
    total = 0
    for parameter in module.parameters():
        if parameter.requires_grad:
            total += math.prod(parameter.shape)
    return total


@right_answer("count_parameters")
def recursion(module):
    """recursion over children, with a set of ids"""
    seen = set()

    def count(part):
        total = 0
        for parameter in part.parameters(recurse=False):
            if parameter.requires_grad and id(parameter) not in seen:
                seen.add(id(parameter))
                total += parameter.nelement()
        return total + sum(count(child) for child in part.children())

    return count(module)


@right_answer("count_parameters")
def one_long_vector(module):
    """all of them in one vector"""
    learning = [parameter.detach().flatten() for parameter in module.parameters() if parameter.requires_grad]
    return torch.cat([torch.empty(0), *learning]).numel()


@right_answer("count_parameters")
def by_name(module):
    """named_parameters and size()"""
    counts = {name: one.size().numel() for name, one in module.named_parameters() if one.requires_grad}
    return sum(counts.values())


@right_answer("count_parameters")
def ones_summed(module):
    """a tensor of sizes, summed, with .item()"""
    return torch.tensor([p.numel() for p in module.parameters() if p.requires_grad] + [0]).sum().item()
