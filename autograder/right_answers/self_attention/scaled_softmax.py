"""Right answers to `scaled_softmax`, as different students write them."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from autograder.catalogue import right_answer


@right_answer("scaled_softmax")
def functional_softmax(scores, d_k):
    """F.softmax and math.sqrt"""
    return F.softmax(scores / math.sqrt(d_k), dim=-1)


@right_answer("scaled_softmax")
def softmax_by_hand(scores, d_k):
    """exp and sum after subtracting each row's maximum"""
    scaled = scores * d_k**-0.5
    exponentials = torch.exp(scaled - scaled.max(dim=-1, keepdim=True).values)
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


@right_answer("scaled_softmax")
def root_as_a_tensor(scores, d_k):
    """torch.sqrt of a 0-d tensor, the tensor's own softmax method"""
    return (scores / torch.sqrt(torch.tensor(d_k))).softmax(-1)


@right_answer("scaled_softmax")
def exp_of_log_softmax(scores, d_k):
    """exp of log_softmax"""
    return torch.exp(F.log_softmax(scores / d_k**0.5, dim=-1))


@right_answer("scaled_softmax")
def minus_logsumexp(scores, d_k):
    """logsumexp over the last dimension, counted from the front"""
    scaled = scores / d_k**0.5
    return torch.exp(scaled - torch.logsumexp(scaled, dim=scaled.dim() - 1, keepdim=True))


@right_answer("scaled_softmax")
def softmax_module(scores, d_k):
    """an nn.Softmax module on a scaled copy"""
    scaled = scores.clone()
    scaled /= d_k**0.5
    return nn.Softmax(dim=-1)(scaled)
