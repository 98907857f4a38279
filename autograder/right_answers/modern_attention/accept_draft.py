"""Alternative solutions of `accept_draft`."""

import torch
import torch.nn.functional as F

from autograder.catalogue import right_answer


@right_answer("accept_draft")
def drafted_token_by_token(draft_probs, target_probs, tokens, uniforms):
    """a loop with a return at the first refusal"""
    for i, token in enumerate(tokens.tolist()):
        if uniforms[i] >= target_probs[i, token] / draft_probs[i, token]:
            rest = torch.relu(target_probs[i] - draft_probs[i])
            return i, rest / rest.sum()
    return len(tokens), target_probs[-1]


@right_answer("accept_draft")
def numbers_of_python(draft_probs, target_probs, tokens, uniforms):
    """probabilities and random numbers as Python floats"""
    n, count = tokens.shape[0], 0
    while count < n:
        token = int(tokens[count])
        p, q = float(target_probs[count][token]), float(draft_probs[count][token])
        if float(uniforms[count]) * q >= p:
            break
        count += 1
    if count == n:
        return n, target_probs[n].clone()
    rest = torch.maximum(target_probs[count] - draft_probs[count], torch.zeros_like(target_probs[count]))
    return count, rest.div(rest.sum())


@right_answer("accept_draft")
def a_draft_of_zeros(draft_probs, target_probs, tokens, uniforms):
    """gathered probabilities, the first refusal by nonzero, and a last draft row of zeros"""
    p = target_probs[:-1].gather(1, tokens[:, None]).squeeze(1)
    q = draft_probs.gather(1, tokens[:, None]).squeeze(1)
    refused = torch.nonzero(uniforms * q >= p)
    accepted = refused[0].item() if len(refused) else tokens.numel()
    rest = (target_probs - F.pad(draft_probs, (0, 0, 0, 1)))[accepted].clamp_min(0)
    return accepted, rest / rest.sum(dim=-1, keepdim=True)


@right_answer("accept_draft")
def by_logarithms(draft_probs, target_probs, tokens, uniforms):
    """logarithms of the ratio, at most 1, and the place of the first False"""
    rows = range(len(tokens))
    ratios = target_probs[rows, tokens].log() - draft_probs[rows, tokens].log()
    refused = (uniforms.log() >= ratios.clamp(max=0.0)).tolist()
    accepted = refused.index(True) if True in refused else len(refused)
    if not any(refused):
        return accepted, target_probs[accepted]
    difference = target_probs[accepted] - draft_probs[accepted]
    positive = torch.where(difference > 0, difference, 0)
    return accepted, F.normalize(positive, p=1, dim=0)
