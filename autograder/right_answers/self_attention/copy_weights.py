"""Right answers to `copy_weights`, as different students write them."""

import torch
from torch import nn

from autograder.catalogue import right_answer


@right_answer("copy_weights")
def data_copied(v1, v2):
    """copy_ on .data, each layer by itself"""
    v2.W_query.weight.data.copy_(v1.W_query.data.T)
    v2.W_key.weight.data.copy_(v1.W_key.data.T)
    v2.W_value.weight.data.copy_(v1.W_value.data.T)
    for layer in (v2.W_query, v2.W_key, v2.W_value):
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)


@right_answer("copy_weights")
def data_replaced(v1, v2):
    """.data of a clone"""
    for name in ("W_query", "W_key", "W_value"):
        layer = getattr(v2, name)
        layer.weight.data = getattr(v1, name).data.T.clone()
        if layer.bias is not None:
            layer.bias.data = torch.zeros_like(layer.bias.data)


@right_answer("copy_weights")
def parameters_replaced(v1, v2):
    """new parameters"""
    for name, matrix in v1.named_parameters():
        layer = getattr(v2, name)
        layer.weight = nn.Parameter(matrix.detach().T.clone())
        if layer.bias is not None:
            layer.bias = nn.Parameter(torch.zeros_like(layer.bias))


@right_answer("copy_weights")
def state_dict_loaded(v1, v2):
    """a state_dict with the right names"""
    state = {name: torch.zeros_like(one) for name, one in v2.state_dict().items()}
    state |= {f"{name}.weight": matrix.T for name, matrix in v1.state_dict().items()}
    v2.load_state_dict(state)


@right_answer("copy_weights")
def filled_in(v1, v2):
    """slices filled in place, and v2 returned"""
    with torch.no_grad():
        for parameter in v2.parameters():
            parameter[:] = 0
        v2.W_query.weight += v1.W_query.t()
        v2.W_key.weight += v1.W_key.t()
        v2.W_value.weight += v1.W_value.t()
    return v2
