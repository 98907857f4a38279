"""Right answers to `project_qkv`, as different students write them."""

import torch
import torch.nn.functional as F

from autograder.catalogue import right_answer


@right_answer("project_qkv")
def projected_by_matmul(inputs, W_query, W_key, W_value):
    """torch.matmul in a list"""
    return [torch.matmul(inputs, W) for W in (W_query, W_key, W_value)]


@right_answer("project_qkv")
def fused_and_split(inputs, W_query, W_key, W_value):
    """one fused product, split by width"""
    fused = inputs @ torch.cat((W_query, W_key, W_value), dim=1)
    return fused.split([W_query.shape[1], W_key.shape[1], W_value.shape[1]], dim=1)


@right_answer("project_qkv")
def projected_by_linear(inputs, W_query, W_key, W_value):
    """F.linear with transposed weights"""
    return F.linear(inputs, W_query.T), F.linear(inputs, W_key.T), F.linear(inputs, W_value.T)
