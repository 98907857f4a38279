"""Right answers to `attention_dropout`, as different students write them."""

import torch
import torch.nn.functional as F
from torch import nn

from autograder.catalogue import right_answer


@right_answer("attention_dropout")
def functional_dropout(weights, p, training=True):
    """F.dropout"""
    return F.dropout(weights, p=p, training=training)


@right_answer("attention_dropout")
def dropout_module(weights, p, training=True):
    """an nn.Dropout in the right mode"""
    return nn.Dropout(p).train(training)(weights)


@right_answer("attention_dropout")
def bernoulli_by_hand(weights, p, training=True):
    """bernoulli on the weights' device"""
    if not training or p == 0:
        return weights
    kept = torch.bernoulli(torch.full_like(weights, 1 - p))
    return weights * kept / (1 - p)


@right_answer("attention_dropout")
def dropped_by_masked_fill(weights, p, training=True):
    """rand_like, masked_fill, a copy outside of training"""
    if training:
        return weights.masked_fill(torch.rand_like(weights) < p, 0.0) / (1.0 - p)
    return weights.clone()


@right_answer("attention_dropout")
def scale_drawn_with_the_mask(weights, p, training=True):
    """where, with the scale in the mask"""
    if not training:
        return weights
    noise = torch.rand(weights.shape, device=weights.device)
    return weights * torch.where(noise < p, 0.0, 1 / (1 - p)).to(weights.dtype)


@right_answer("attention_dropout")
def in_one_expression(weights, p, training=True):
    """one conditional expression"""
    return weights * (torch.rand_like(weights) >= p) / (1 - p) if training else weights
