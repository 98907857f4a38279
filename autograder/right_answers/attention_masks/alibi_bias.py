"""Right answers to `alibi_bias`, as different students write them."""

import torch

from autograder.catalogue import right_answer


@right_answer("alibi_bias")
def three_loops(num_heads, num_tokens):
    """a loop over heads, queries and keys"""
    bias = torch.zeros(num_heads, num_tokens, num_tokens)
    for head in range(num_heads):
        slope = 2 ** (-8 * (head + 1) / num_heads)
        for i in range(num_tokens):
            for j in range(i + 1):
                bias[head, i, j] = -slope * (i - j)
    return bias


@right_answer("alibi_bias")
def slopes_by_multiplying(num_heads, num_tokens):
    """each slope the ratio times the one before, heads stacked"""
    ratio = slope = 2 ** (-8 / num_heads)
    places = torch.arange(num_tokens, dtype=torch.float32)
    distances = torch.tril(places.unsqueeze(1) - places.unsqueeze(0))
    heads = []
    for _ in range(num_heads):
        heads.append(-slope * distances)
        slope *= ratio
    return torch.stack(heads)


@right_answer("alibi_bias")
def bias_by_einsum(num_heads, num_tokens):
    """pow, einsum, where"""
    slopes = torch.pow(2, -8 / num_heads * torch.arange(1, num_heads + 1, dtype=torch.float32))
    i, j = torch.meshgrid(torch.arange(num_tokens), torch.arange(num_tokens), indexing="ij")
    distance = torch.where(j <= i, i - j, 0).float()
    return -torch.einsum("h,qk->hqk", slopes, distance)


@right_answer("alibi_bias")
def ones_summed(num_heads, num_tokens):
    """distances as running sums of a triangle"""
    below = torch.ones(num_tokens, num_tokens).tril(-1)
    distance = below.flip(-1).cumsum(-1).flip(-1)
    slopes = torch.tensor([2.0 ** (-8 * i / num_heads) for i in range(1, num_heads + 1)])
    return -(slopes.view(-1, 1, 1) * distance.tril())


@right_answer("alibi_bias")
def exact_powers(num_heads, num_tokens):
    """exp2 in float64, rounded to float32 at the end"""
    exponents = torch.linspace(-8 / num_heads, -8, num_heads, dtype=torch.float64)
    place = torch.arange(num_tokens, dtype=torch.float64)
    behind = torch.minimum(place[None, :] - place[:, None], torch.zeros(()))
    return (torch.exp2(exponents)[:, None, None] * behind[None]).to(torch.float32)
