"""Right answers to `next_token_loss`, as different students write them."""

import torch
import torch.nn.functional as F
from torch import nn

from autograder.catalogue import right_answer


@right_answer("next_token_loss")
def flattened_cross_entropy(logits, tokens):
    """F.cross_entropy of flattened places"""
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


@right_answer("next_token_loss")
def transposed_cross_entropy(logits, tokens):
    """nn.CrossEntropyLoss with the words in dimension 1"""
    return nn.CrossEntropyLoss()(logits[:, :-1, :].transpose(1, 2), tokens[:, 1:])


@right_answer("next_token_loss")
def by_logsumexp(logits, tokens):
    """logsumexp minus the logit of the right token, by indices"""
    b, T, _ = logits.shape
    seen = logits[:, : T - 1]
    right = seen[torch.arange(b)[:, None], torch.arange(T - 1), tokens[:, 1:]]
    return (torch.logsumexp(seen, dim=-1) - right).sum() / (b * (T - 1))


@right_answer("next_token_loss")
def by_one_hot(logits, tokens):
    """one-hot targets, the largest logit taken off by hand"""
    z = logits[:, :-1]
    z = z - z.max(dim=-1, keepdim=True).values
    logs = z - z.exp().sum(-1, keepdim=True).log()
    return -(F.one_hot(tokens[:, 1:], logits.shape[-1]).to(logits.dtype) * logs).sum(-1).mean()


@right_answer("next_token_loss")
def token_by_token(logits, tokens):
    """a loop over sentences and places"""
    losses = []
    for sentence, row in zip(logits, tokens, strict=True):
        for t in range(len(row) - 1):
            losses.append(-sentence[t].log_softmax(0)[row[t + 1]])
    return torch.stack(losses).mean()


@right_answer("next_token_loss")
def by_nll(logits, tokens):
    """F.nll_loss after log_softmax"""
    logs = F.log_softmax(logits, dim=2)
    return F.nll_loss(logs[:, :-1].reshape(-1, logs.size(-1)), tokens[:, 1:].reshape(-1), reduction="mean")
