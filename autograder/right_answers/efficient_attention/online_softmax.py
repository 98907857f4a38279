"""Right answers to `online_softmax`, as different students write them."""

import torch

from autograder.catalogue import right_answer


@right_answer("online_softmax")
def begins_with_the_first_block(blocks):
    """the first block makes the first state"""
    blocks = iter(blocks)
    first = next(blocks)
    m = first.max()
    total = torch.exp(first - torch.where(m == -torch.inf, torch.zeros_like(m), m)).sum()
    for block in blocks:
        new_m = torch.maximum(m, block.max())
        if new_m == -torch.inf:
            continue
        total = total * torch.exp(m - new_m) + torch.exp(block - new_m).sum()
        m = new_m
    return m, total


@right_answer("online_softmax")
def score_by_score(blocks):
    """each score by itself, in two loops"""
    m = total = None
    for block in blocks:
        for score in block:
            if m is None:
                m, total = score, torch.zeros_like(score)
            if score > m:
                total = total * torch.exp(m - score) if m > -torch.inf else total
                m = score
            if score > -torch.inf:
                total = total + torch.exp(score - m)
    return m.clone(), total


@right_answer("online_softmax")
def rescales_only_where_needed(blocks):
    """the old sum is rescaled when a larger score comes, and hidden blocks are passed over"""
    best, total = None, None
    for block in blocks:
        if best is None:
            best, total = torch.full_like(block[0], float("-inf")), torch.zeros_like(block[0])
        top = block.amax()
        if torch.isinf(top) and top < 0:
            continue
        if top > best:
            total = torch.zeros_like(total) if torch.isinf(best) else total * (best - top).exp()
            best = top
        total = total + (block - best).exp().sum(dim=0)
    return best, total


@right_answer("online_softmax")
def with_the_lowest_finite_number(blocks):
    """-inf is clamped before the subtraction"""
    m, total = None, 0.0
    for block in blocks:
        new = block.max() if m is None else torch.max(torch.stack([m, block.max()]))
        safe = new.clamp(min=torch.finfo(block.dtype).min)
        old = 0.0 if m is None else total * torch.exp(m - safe)
        m, total = new, old + torch.exp(block - safe).sum()
    return m, total


@right_answer("online_softmax")
def what_was_kept_before_the_block(blocks):
    """the old maximum is one more score, which counts as often as its sum says"""
    maximum = total = None
    for block in blocks:
        if maximum is None:
            maximum, total = block.new_full((1,), -torch.inf), block.new_zeros(1)
        scores, counts = torch.cat([maximum, block]), torch.cat([total, torch.ones_like(block)])
        maximum = scores.amax(dim=0, keepdim=True)
        total = (torch.exp(scores - torch.nan_to_num(maximum, neginf=0.0)) * counts).sum(dim=0, keepdim=True)
    return maximum.squeeze(0), total.squeeze(0)


@right_answer("online_softmax")
def merged_at_the_end(blocks):
    """two numbers are kept of each block, and all are brought to the largest maximum in the end"""
    maxima, totals = [], []
    for block in blocks:
        m = block.max()
        maxima.append(m)
        totals.append(torch.exp(block - torch.where(m == -torch.inf, 0.0, m)).sum())
    maxima, totals = torch.stack(maxima), torch.stack(totals)
    maximum = maxima.max()
    safe = torch.where(maximum == -torch.inf, 0.0, maximum)
    return maximum, (totals * torch.exp(maxima - safe)).sum()
