"""Alternative solutions of `attention_with_sinks`."""

import math

import torch

from autograder.catalogue import right_answer


@right_answer("attention_with_sinks")
def denominator_by_hand(queries, keys, values, sinks):
    """exponentials under a common maximum, and the sink in the denominator"""
    T, hd = queries.shape[-2:]
    hidden = torch.triu(torch.ones(T, T, device=queries.device), 1).bool()
    scores = (queries @ keys.transpose(-2, -1) / math.sqrt(hd)).masked_fill(hidden, -torch.inf)
    z = sinks[None, :, None, None]
    most = torch.maximum(scores.amax(-1, keepdim=True), z).detach()
    powers = torch.exp(scores - most)
    return powers / (powers.sum(-1, keepdim=True) + torch.exp(z - most)) @ values


@right_answer("attention_with_sinks")
def scaled_by_the_share(queries, keys, values, sinks):
    """plain attention, scaled by the share that is left: a sigmoid of logsumexp minus the sink"""
    T, hd = queries.shape[-2:]
    hidden = torch.triu(torch.ones(T, T, device=queries.device, dtype=torch.bool), 1)
    scores = (queries @ keys.mT * hd**-0.5).masked_fill(hidden, -torch.inf)
    total = torch.logsumexp(scores, -1, keepdim=True)
    return torch.sigmoid(total - sinks.view(-1, 1, 1)) * (scores.softmax(-1) @ values)


@right_answer("attention_with_sinks")
def a_key_without_a_value(queries, keys, values, sinks):
    """the sink in the first column, with a value of zeros"""
    b, h, T, hd = queries.shape
    rows = torch.arange(T, device=queries.device)
    scores = torch.einsum("bhqd,bhkd->bhqk", queries, keys) / hd**0.5
    scores = torch.where(rows[:, None] >= rows, scores, -torch.inf)
    scores = torch.cat([sinks[None, :, None, None].expand(b, h, T, 1), scores], -1)
    return scores.softmax(-1) @ torch.cat([torch.zeros_like(values[:, :, :1]), values], -2)
