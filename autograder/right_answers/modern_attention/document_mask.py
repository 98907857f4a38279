"""Alternative solutions of `document_mask`."""

import torch

from autograder.catalogue import right_answer


@right_answer("document_mask")
def visible_inverted(documents):
    """what is visible, inverted"""
    T = documents.size(1)
    visible = documents.unsqueeze(2) == documents.unsqueeze(1)
    return ~(visible & torch.ones(T, T, device=documents.device).tril().bool())


@right_answer("document_mask")
def by_positions(documents):
    """positions compared, too"""
    positions = torch.arange(documents.shape[1], device=documents.device)
    return (documents[:, None, :] - documents[:, :, None] != 0) | (positions[None, :] > positions[:, None])


@right_answer("document_mask")
def sequence_by_sequence(documents):
    """a loop over the batch, and triu_ of what is left"""
    masks = []
    for row in documents:
        same = row[:, None] == row[None, :]
        masks.append(~torch.tril(same))
    return torch.stack(masks)
