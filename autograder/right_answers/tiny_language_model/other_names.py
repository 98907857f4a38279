"""Right answers whose arguments have other names than the text's: graders pass what has no default by position."""

import torch
import torch.nn.functional as F

from autograder.catalogue import right_answer


@right_answer("sinusoidal_positions")
def positions_in_other_names(length, width):
    """other names for all arguments"""
    waves = torch.arange(length)[:, None] / 10000 ** (torch.arange(width // 2) * 2 / width)
    return torch.cat([waves.sin()[..., None], waves.cos()[..., None]], dim=-1).view(length, width)


@right_answer("next_token_loss")
def loss_in_other_names(scores, ids):
    """other names for all arguments"""
    return F.cross_entropy(scores[:, :-1].mT, ids[:, 1:])


@right_answer("generate")
def written_in_other_names(net, prompt, steps, window):
    """other names for all arguments"""
    for _ in range(steps):
        prompt = torch.cat([prompt, net(prompt[:, -window:])[:, -1].argmax(1).unsqueeze(1)], 1)
    return prompt


@right_answer("sample_next")
def drawn_in_other_names(scores, t, k):
    """other names for all arguments"""
    if not t:
        return scores.max(-1).indices
    values, words = scores.sort(descending=True, dim=-1)
    return words[:, :k].gather(1, (values[:, :k] / t).softmax(1).multinomial(1))[:, 0]
