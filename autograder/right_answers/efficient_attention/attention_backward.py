"""Right answers to `attention_backward`, as different students write them."""

import math

import torch

from autograder.catalogue import right_answer


@right_answer("attention_backward")
def gradients_by_einsum(queries, keys, values, grad_output):
    """einsum throughout, and the row sums by the weights"""
    d = queries.size(-1)
    P = torch.einsum("...qd,...kd->...qk", queries, keys).div(math.sqrt(d)).softmax(-1)
    dP = torch.einsum("...qv,...kv->...qk", grad_output, values)
    dS = P * (dP - torch.einsum("...qk,...qk->...q", P, dP).unsqueeze(-1))
    dQ = torch.einsum("...qk,...kd->...qd", dS, keys) / math.sqrt(d)
    dK = torch.einsum("...qk,...qd->...kd", dS, queries) / math.sqrt(d)
    return dQ, dK, torch.einsum("...qk,...qv->...kv", P, grad_output)


@right_answer("attention_backward")
def weights_by_hand(queries, keys, values, grad_output):
    """softmax by hand, all scaled once, in a list"""
    q = queries * queries.shape[-1] ** -0.5
    scores = q @ keys.mT
    exponentials = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
    weights = exponentials / exponentials.sum(dim=-1, keepdim=True)
    mean = (grad_output * (weights @ values)).sum(-1)[..., None]
    ds = weights * (grad_output @ values.mT - mean)
    return [ds @ keys * queries.shape[-1] ** -0.5, ds.mT @ q, weights.mT @ grad_output]


@right_answer("attention_backward")
def gradients_by_jacobians(queries, keys, values, grad_output):
    """the Jacobian of each row's softmax, diag(p) - p p^T"""
    root = math.sqrt(keys.shape[-1])
    P = torch.softmax(torch.matmul(queries, keys.transpose(-1, -2)) / root, -1)  # (..., Tq, Tk)
    jacobians = torch.diag_embed(P) - P.unsqueeze(-1) * P.unsqueeze(-2)  # (..., Tq, Tk, Tk)
    dP = torch.matmul(grad_output, values.transpose(-1, -2))
    dS = torch.matmul(jacobians, dP.unsqueeze(-1)).squeeze(-1)
    dQ, dK = torch.matmul(dS, keys) / root, torch.matmul(dS.transpose(-1, -2), queries) / root
    return dQ, dK, torch.matmul(P.transpose(-1, -2), grad_output)


@right_answer("attention_backward")
def one_query_at_a_time(queries, keys, values, grad_output):
    """a loop over the queries, whose parts of dK and dV add up"""
    root = keys.shape[-1] ** 0.5
    rows, dK, dV = [], torch.zeros_like(keys), torch.zeros_like(values)
    for i in range(queries.shape[-2]):
        q, do = queries[..., i : i + 1, :], grad_output[..., i : i + 1, :]
        p = torch.softmax(q @ keys.transpose(-2, -1) / root, dim=-1)  # (..., 1, Tk)
        ds = p * (do @ values.transpose(-2, -1) - (do * (p @ values)).sum(dim=-1, keepdim=True)) / root
        rows.append(ds @ keys)
        dK = dK + ds.transpose(-2, -1) @ q
        dV = dV + p.transpose(-2, -1) @ do
    return torch.cat(rows, dim=-2), dK, dV


@right_answer("attention_backward")
def tile_by_tile(queries, keys, values, grad_output):
    """blocks of two keys, with the logarithm of each row's sum, as FlashAttention computes it"""
    q = queries / queries.shape[-1] ** 0.5
    logarithm, output = None, None
    blocks = list(zip(keys.split(2, dim=-2), values.split(2, dim=-2), strict=True))
    for k, v in blocks:
        scores = q @ k.mT
        top = scores.amax(-1, keepdim=True)
        total = (scores - top).exp().sum(-1, keepdim=True)
        here, out = top + total.log(), (scores - top).exp() @ v / total
        if logarithm is None:
            logarithm, output = here, out
            continue
        both = torch.logaddexp(logarithm, here)
        output = output * torch.exp(logarithm - both) + out * torch.exp(here - both)
        logarithm = both
    D = (grad_output * output).sum(-1, keepdim=True)
    dQ, dK, dV = torch.zeros_like(queries), [], []
    for k, v in blocks:
        p = torch.exp(q @ k.mT - logarithm)
        ds = p * (grad_output @ v.mT - D)
        dV.append(p.mT @ grad_output)
        dK.append(ds.mT @ q)
        dQ += ds @ k / queries.shape[-1] ** 0.5
    return dQ, torch.cat(dK, dim=-2), torch.cat(dV, dim=-2)


@right_answer("attention_backward")
def gradients_without_a_graph(queries, keys, values, grad_output):
    """torch.no_grad, and a helper for both products"""

    def product(dC, A, B):
        """Gradients of A and B for C = A B."""
        return dC @ B.mT, A.mT @ dC

    root = queries.shape[-1] ** 0.5
    with torch.no_grad():
        P = (queries @ keys.mT / root).softmax(dim=-1)
        dP, dV = product(grad_output, P, values)
        dS = P * dP
        dS = dS - P * dS.sum(dim=-1, keepdim=True)
        dQ, dK_transposed = product(dS / root, queries, keys.mT)
        return dQ, dK_transposed.mT, dV
