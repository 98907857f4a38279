"""Self-attention, beyond the catalogue."""

import torch

from . import rewritten, right, unlisted


@rewritten("divided_by_d_k")
def _(scores, d_k):
    return (scores / d_k).softmax(-1)


@unlisted("scaled_softmax")
def _(scores, d_k):
    """Two mistakes: divided by d_k, and a softmax over the queries."""
    return torch.softmax(scores / d_k, dim=-2)


@right("scaled_softmax")
def _(scores, d_k):
    return torch.exp(torch.log_softmax(scores * d_k**-0.5, -1))
