"""Alternative solutions of `paged_attention`."""

import math

import torch

from autograder.catalogue import right_answer


@right_answer("paged_attention")
def pages_joined_and_cut(query, key_pages, value_pages, block_table, length):
    """whole pages side by side, cut to the length"""
    needed = math.ceil(length / key_pages.shape[1])
    used = block_table[:needed]
    keys, values = key_pages[used].flatten(0, 1)[:length], value_pages[used].flatten(0, 1)[:length]
    scores = torch.einsum("hd,thd->ht", query, keys) / math.sqrt(query.shape[-1])
    return torch.einsum("ht,thd->hd", scores.softmax(-1), values)


@right_answer("paged_attention")
def page_by_page(query, key_pages, value_pages, block_table, length):
    """page by page with a running maximum and sum"""
    page, hd = key_pages.shape[1], query.shape[1]
    most = query.new_full((len(query), 1), -torch.inf)
    total, result = torch.zeros_like(most), torch.zeros_like(query)
    for number, start in enumerate(range(0, length, page)):
        used = min(page, length - start)
        keys = key_pages[block_table[number], :used]
        values = value_pages[block_table[number], :used]
        scores = (keys * query).sum(-1).T / hd**0.5
        new = torch.maximum(most, scores.amax(-1, keepdim=True).detach())
        powers, rescale = torch.exp(scores - new), torch.exp(most - new)
        total = total * rescale + powers.sum(-1, keepdim=True)
        result = result * rescale + torch.einsum("ht,thd->hd", powers, values)
        most = new
    return result / total


@right_answer("paged_attention")
def cached_token_by_token(query, key_pages, value_pages, block_table, length):
    """Python numbers of the pages, a list of tokens, stacked"""
    page, hd = key_pages.size(1), query.size(-1)
    table = block_table.tolist()
    places = [(table[t // page], t % page) for t in range(length)]
    keys = torch.stack([key_pages[place] for place in places], dim=1)
    values = torch.stack([value_pages[place] for place in places], dim=1)
    weights = torch.softmax((query[:, None] * keys).sum(dim=-1) * hd**-0.5, dim=1)
    return (weights[..., None] * values).sum(dim=1)


@right_answer("paged_attention")
def one_row_of_slots(query, key_pages, value_pages, block_table, length):
    """the pages as one row of slots, and an index into it"""
    _, page, h, hd = key_pages.shape
    slots = (block_table[:, None] * page + torch.arange(page, device=block_table.device)).flatten()[:length]
    keys = key_pages.reshape(-1, h, hd).index_select(0, slots)
    values = value_pages.reshape(-1, h, hd).index_select(0, slots)
    scores = torch.matmul(keys.transpose(0, 1), query[..., None]).squeeze(-1) / hd**0.5
    return torch.matmul(scores.softmax(dim=-1)[:, None], values.transpose(0, 1)).squeeze(1)


@right_answer("paged_attention")
def positions_on_the_cpu(query, key_pages, value_pages, block_table, length):
    """positions on the CPU, which may index tensors on any device"""
    tokens = torch.arange(length)
    pages, slots = block_table[tokens // key_pages.shape[1]], tokens % key_pages.shape[1]
    scores = torch.einsum("thd,hd->th", key_pages[pages, slots], query) / math.sqrt(query.shape[-1])
    return torch.einsum("th,thd->hd", scores.softmax(0), value_pages[pages, slots])


@right_answer("paged_attention")
def empty_slots_replaced_and_hidden(query, key_pages, value_pages, block_table, length):
    """the whole table read, what is not the text's replaced by zeros, and its scores by -inf"""
    page, h, hd = key_pages.shape[1:]
    hidden = torch.arange(len(block_table) * page, device=query.device) >= length
    keys, values = (
        torch.where(hidden[:, None, None], 0, pages[block_table.clamp(min=0)].view(-1, h, hd))
        for pages in (key_pages, value_pages)
    )
    scores = torch.einsum("hd,thd->ht", query * hd**-0.5, keys).masked_fill(hidden, -torch.inf)
    return torch.einsum("ht,thd->hd", scores.softmax(dim=-1), values)
