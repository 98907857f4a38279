"""Alternative solutions of `absorbed_scores`."""

import torch

from autograder.catalogue import right_answer


@right_answer("absorbed_scores")
def by_two_einsums(queries, latents, up_key):
    """two einsums, the first of which absorbs the matrix"""
    absorbed = torch.einsum("bhqd,hdr->bhqr", queries, up_key)
    return torch.einsum("bhqr,btr->bhqt", absorbed, latents)


@right_answer("absorbed_scores")
def absorbed_head_by_head(queries, latents, up_key):
    """a loop over the heads"""
    heads = [(queries[:, i] @ matrix) @ latents.transpose(1, 2) for i, matrix in enumerate(up_key)]
    return torch.stack(heads, dim=1)


@right_answer("absorbed_scores")
def heads_as_rows(queries, latents, up_key):
    """all heads' queries in the rows of one product"""
    b, h, Tq, _ = queries.shape
    absorbed = torch.matmul(queries, up_key).reshape(b, h * Tq, -1)
    return torch.bmm(absorbed, latents.transpose(1, 2)).reshape(b, h, Tq, latents.shape[1])


@right_answer("absorbed_scores")
def latents_as_columns(queries, latents, up_key):
    """the latents first: the scores are computed transposed, (b, h, T, Tq)"""
    absorbed = up_key.mT @ queries.mT
    return torch.matmul(latents.unsqueeze(1), absorbed).mT


@right_answer("absorbed_scores")
def element_by_element(queries, latents, up_key):
    """products of elements and sums"""
    absorbed = (queries.unsqueeze(-1) * up_key.unsqueeze(1)).sum(dim=-2)
    return (absorbed.unsqueeze(-2) * latents[:, None, None]).sum(dim=-1)
