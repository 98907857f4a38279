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


@right_answer("kv_cache_bytes")
def by_way_of_gib(layers, kv_heads, head_dim, tokens, bytes_per_number):
    """GiB in a float, which lose nothing: only its exponent changes"""
    gib = 2 * layers * kv_heads * head_dim * tokens * bytes_per_number / 2**30
    return int(gib * 2**30)


@right_answer("kv_cache_bytes")
def rounded_by_way_of_mb(layers, kv_heads, head_dim, tokens, bytes_per_number):
    """MB in a float, rounded to whole bytes and not cut off"""
    mb_of_a_token = 2 * layers * kv_heads * head_dim * bytes_per_number / 1000 / 1000
    return round(mb_of_a_token * tokens * 1000 * 1000)
