"""Alternative solutions of `qk_norm_scores`."""

import math

import torch
import torch.nn.functional as F

from autograder.catalogue import right_answer


@right_answer("qk_norm_scores")
def by_einsum(queries, keys, query_weight, key_weight, eps=1e-6):
    """the library's norm and einsum"""
    hd = queries.shape[-1]
    q = F.rms_norm(queries, (hd,), query_weight, eps)
    k = F.rms_norm(keys, (hd,), key_weight, eps)
    return torch.einsum("...qd,...kd->...qk", q, k) / math.sqrt(hd)


@right_answer("qk_norm_scores")
def by_lengths(queries, keys, query_weight, key_weight, eps=1e-6):
    """norms written out, and the scale on the queries"""
    q = queries / (queries.pow(2).mean(-1, keepdim=True) + eps).sqrt() * query_weight
    k = keys / (keys.pow(2).mean(-1, keepdim=True) + eps).sqrt() * key_weight
    return (q * keys.shape[-1] ** -0.5) @ k.transpose(-2, -1)


@right_answer("qk_norm_scores")
def both_weights_on_the_queries(queries, keys, query_weight, key_weight, eps=1e-6):
    """both weights multiplied into the queries, and the norms divided out of the product"""
    q_size = torch.sqrt(queries.square().mean(-1, keepdim=True) + eps)
    k_size = torch.sqrt(keys.square().mean(-1) + eps)
    products = (queries / q_size * query_weight * key_weight) @ (keys / k_size.unsqueeze(-1)).mT
    return products / math.sqrt(keys.size(-1))
