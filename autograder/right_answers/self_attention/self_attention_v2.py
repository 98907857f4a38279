"""Right answers to `SelfAttention_v2`, as different students write them."""

import torch.nn.functional as F
from torch import nn

from autograder.catalogue import right_answer


@right_answer("SelfAttention_v2")
class LibraryAttentionOverLayers(nn.Module):
    """F.scaled_dot_product_attention, which the classes may call"""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(d_in, d_out, qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, qkv_bias)

    def forward(self, x):
        queries, keys, values = (layer(x)[None] for layer in (self.W_query, self.W_key, self.W_value))
        return F.scaled_dot_product_attention(queries, keys, values)[0]


@right_answer("SelfAttention_v2")
class LayersAppliedByHand(nn.Module):
    """F.linear with the layers' weights and biases"""

    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__()
        for name in ("W_query", "W_key", "W_value"):
            self.add_module(name, nn.Linear(d_in, d_out, bias=qkv_bias))
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, x):
        queries, keys, values = (F.linear(x, m.weight, m.bias) for m in (self.W_query, self.W_key, self.W_value))
        return self.softmax(queries.mm(keys.t()).mul(keys.shape[-1] ** -0.5)).mm(values)
