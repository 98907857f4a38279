"""Right answers to `generate`, as different students write them."""

import torch

from autograder.catalogue import right_answer


@right_answer("generate")
def without_gradients(model, tokens, n, context_length):
    """no_grad, topk, hstack"""
    with torch.no_grad():
        for _ in range(n):
            window = tokens if tokens.size(1) <= context_length else tokens[:, -context_length:]
            _, best = torch.topk(model(window)[:, -1, :], k=1, dim=-1)
            tokens = torch.hstack([tokens, best])
    return tokens


@right_answer("generate")
def filled_in(model, tokens, n, context_length):
    """a result of the full size, filled place by place"""
    b, T = tokens.shape
    result = torch.zeros(b, T + n, dtype=torch.long, device=tokens.device)
    result[:, :T] = tokens
    for t in range(T, T + n):
        start = max(0, t - context_length)
        result[:, t] = model(result[:, start:t])[:, -1].softmax(dim=-1).max(dim=-1).indices
    return result


@right_answer("generate")
def in_a_list(model, tokens, n, context_length):
    """a list of columns"""
    columns = list(tokens.unbind(dim=1))
    for _ in range(n):
        seen = torch.stack(columns[-context_length:], dim=1)
        columns.append(torch.argmax(model(seen), dim=-1)[:, -1])
    return torch.stack(columns, dim=1)


@right_answer("generate")
def in_evaluation(model, tokens, n, context_length):
    """in evaluation, and then in the mode of before; inference_mode"""
    mode = model.training
    model.eval()
    with torch.inference_mode():
        for _ in range(n):
            logits = model(tokens[:, max(0, tokens.shape[1] - context_length) :])
            tokens = torch.cat((tokens, logits[:, -1].argmax(1).unsqueeze(1)), 1)
    model.train(mode)
    return tokens


@right_answer("generate")
def calling_itself(model, tokens, n, context_length):
    """a recursion"""

    def go_on(text, left):
        if left == 0:
            return text
        following = model(text[..., -context_length:])[:, -1:].argmax(-1)
        return go_on(torch.cat((text, following), -1), left - 1)

    return go_on(tokens, n)
