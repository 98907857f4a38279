"""Right answers to `sample_next`, as different students write them."""

import torch
import torch.nn.functional as F

from autograder.catalogue import right_answer


@right_answer("sample_next")
def among_the_kept_alone(logits, temperature, top_k):
    """topk, a draw among its k, and back to the vocabulary by gather"""
    values, words = torch.topk(logits, min(top_k, logits.size(-1)), dim=-1)
    if temperature == 0:
        return words[:, 0]
    drawn = torch.multinomial(F.softmax(values / temperature, dim=-1), num_samples=1)
    return words.gather(-1, drawn).squeeze(-1)


@right_answer("sample_next")
def by_gumbel_noise(logits, temperature, top_k):
    """the largest of logits with Gumbel noise"""
    least = logits.sort(dim=-1, descending=True).values[:, min(top_k, logits.shape[-1]) - 1]
    kept = torch.where(logits >= least[:, None], logits, -torch.inf)
    noise = -torch.log(-torch.log(torch.rand_like(logits).clamp(min=1e-20, max=1 - 1e-7)))
    return (kept + temperature * noise).argmax(dim=-1)


@right_answer("sample_next")
def by_cumulative_sums(logits, temperature, top_k):
    """a number between 0 and 1, looked up in the cumulative sum of the probabilities"""
    if temperature == 0:
        return torch.argmax(logits, dim=1)
    values, words = logits.topk(min(top_k, logits.shape[1]))
    reached = torch.softmax(values / temperature, dim=1).cumsum(dim=1)
    level = torch.rand(len(logits), 1, dtype=logits.dtype, device=logits.device)
    place = (reached < level).sum(dim=1, keepdim=True).clamp(max=values.shape[1] - 1)
    return torch.gather(words, 1, place).squeeze(1)


@right_answer("sample_next")
def by_a_distribution(logits, temperature, top_k):
    """torch.distributions.Categorical"""
    temperature = max(temperature, 1e-6)
    ranks = logits.argsort(dim=-1, descending=True).argsort(dim=-1)
    scores = (logits / temperature).masked_fill(ranks >= top_k, -1e30)
    return torch.distributions.Categorical(logits=scores - scores.amax(-1, keepdim=True)).sample()


@right_answer("sample_next")
def row_by_row(logits, temperature, top_k):
    """a loop, and Python's own random"""
    import random  # where a student has it, who needs it for this alone

    chosen = []
    for row in logits:
        words = row.argsort(descending=True)[:top_k].tolist()
        if temperature == 0:
            chosen.append(words[0])
            continue
        weights = torch.softmax(row[words] / temperature, dim=0).tolist()
        chosen.append(random.choices(words, weights)[0])
    return torch.tensor(chosen, device=logits.device)


@right_answer("sample_next")
def hidden_below_the_last(logits, temperature, top_k):
    """as small GPTs are written: the logits, divided, are hidden where they are below the last of topk"""
    if temperature == 0:
        return logits.argmax(dim=-1)
    logits = logits / temperature
    v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
    logits[logits < v[:, [-1]]] = -float("Inf")
    probs = F.softmax(logits, dim=-1)
    return torch.multinomial(probs, num_samples=1)[:, 0]
