"""Right answers to `kv_cache_bytes`, as different students write them."""

import math

import torch

from autograder.catalogue import right_answer


@right_answer("kv_cache_bytes")
def two_tensors_of_each_layer(layers, kv_heads, head_dim, tokens, bytes_per_number):
    """keys and values by themselves"""
    keys = layers * kv_heads * head_dim * tokens
    values = layers * kv_heads * head_dim * tokens
    return (keys + values) * bytes_per_number


@right_answer("kv_cache_bytes")
def by_prod(layers, kv_heads, head_dim, tokens, bytes_per_number):
    """math.prod"""
    return math.prod((2, layers, kv_heads, head_dim, tokens, bytes_per_number))


@right_answer("kv_cache_bytes")
def token_by_token(layers, kv_heads, head_dim, tokens, bytes_per_number):
    """what one token takes in one layer, added up"""
    width = kv_heads * head_dim
    in_a_layer = 2 * width * bytes_per_number
    total = 0
    for _ in range(layers):
        total += in_a_layer
    return total * tokens


@right_answer("kv_cache_bytes")
def of_a_shape(layers, kv_heads, head_dim, tokens, bytes_per_number):
    """the numbers of a tensor of this shape, which is not made"""
    return torch.Size((layers, 2, kv_heads, tokens, head_dim)).numel() * bytes_per_number
