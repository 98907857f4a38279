"""Alternative solutions of `LatentAttention`."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from autograder.catalogue import right_answer


@right_answer("LatentAttention")
class LatentInSteps(nn.Module):
    """keys and values are made of all latents, a method for each step"""

    def __init__(self, d_in, d_out, num_heads, latent_dim):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.num_heads, self.head_dim = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_latent = nn.Linear(d_in, latent_dim, bias=False)
        self.W_up_key = nn.Linear(latent_dim, d_out, bias=False)
        self.W_up_value = nn.Linear(latent_dim, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def split(self, x):
        return x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)

    def hide(self, scores):
        new, seen = scores.shape[-2:]
        mask = torch.ones(new, seen, dtype=torch.bool, device=scores.device).triu(diagonal=1 + seen - new)
        return scores.masked_fill(mask, -torch.inf)

    def weigh(self, scores):
        return torch.softmax(scores / self.head_dim**0.5, dim=-1)

    def merge(self, context):
        return context.transpose(1, 2).flatten(2)

    def forward(self, x, cache=None):
        queries = self.split(self.W_query(x))
        latents = self.W_latent(x)
        if cache is not None:
            cache.append(latents)
            latents = cache.latents
        keys, values = self.split(self.W_up_key(latents)), self.split(self.W_up_value(latents))
        weights = self.weigh(self.hide(queries @ keys.mT))
        return self.out_proj(self.merge(weights @ values))


@right_answer("LatentAttention")
class LatentAbsorbed(nn.Module):
    """neither keys nor values are made: queries and context absorb their matrices"""

    def __init__(self, d_in, d_out, num_heads, latent_dim):
        super().__init__()
        assert d_out % num_heads == 0, "d_out must be divisible by num_heads"
        self.num_heads, self.width = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_latent = nn.Linear(d_in, latent_dim, bias=False)
        self.W_up_key = nn.Linear(latent_dim, d_out, bias=False)
        self.W_up_value = nn.Linear(latent_dim, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, cache=None):
        b, t, _ = x.shape
        latents = self.W_latent(x)
        if cache is not None:
            cache.append(latents)
            latents = cache.latents
        up_key = self.W_up_key.weight.view(self.num_heads, self.width, -1)
        up_value = self.W_up_value.weight.view(self.num_heads, self.width, -1)
        queries = self.W_query(x).view(b, t, self.num_heads, self.width).transpose(1, 2)
        scores = (queries @ up_key) @ latents.unsqueeze(1).mT / math.sqrt(self.width)
        later = torch.ones_like(scores, dtype=torch.bool).triu(latents.shape[1] - t + 1)
        weights = scores.masked_fill(later, float("-inf")).softmax(dim=-1)
        context = (weights @ latents.unsqueeze(1)) @ up_value.mT
        return self.out_proj(context.transpose(1, 2).reshape(b, t, -1))


@right_answer("LatentAttention")
class LatentByTheLibrary(nn.Module):
    """F.scaled_dot_product_attention with a mask of what is seen"""

    def __init__(self, d_in, d_out, num_heads, latent_dim):
        super().__init__()
        assert d_out % num_heads == 0
        self.h = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_latent = nn.Linear(d_in, latent_dim, bias=False)
        self.W_up_key = nn.Linear(latent_dim, d_out, bias=False)
        self.W_up_value = nn.Linear(latent_dim, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, cache=None):
        b, t, _ = x.shape
        c = self.W_latent(x)
        if cache is not None:
            cache.append(c)
            c = cache.latents
        n = c.shape[1]
        q = self.W_query(x).view(b, t, self.h, -1).transpose(1, 2)
        k, v = (layer(c).view(b, n, self.h, -1).transpose(1, 2) for layer in (self.W_up_key, self.W_up_value))
        seen = torch.ones(t, n, dtype=torch.bool, device=x.device).tril(n - t)
        context = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return self.out_proj(context.transpose(1, 2).reshape(b, t, -1))


@right_answer("LatentAttention")
class LatentByPositions(nn.Module):
    """einsum, and a mask by comparing positions, which begin where the cache ends"""

    def __init__(self, d_in, d_out, num_heads, latent_dim):
        super().__init__()
        if d_out % num_heads:
            raise ValueError
        self.h = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_latent = nn.Linear(d_in, latent_dim, bias=False)
        self.W_up_key, self.W_up_value = (nn.Linear(latent_dim, d_out, bias=False) for _ in range(2))
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, cache=None):
        before = 0 if cache is None or cache.latents is None else cache.latents.size(1)
        c = self.W_latent(x)
        if cache is not None:
            cache.append(c)
            c = cache.latents
        q, k, v = (
            layer(one).unflatten(2, (self.h, -1))
            for layer, one in ((self.W_query, x), (self.W_up_key, c), (self.W_up_value, c))
        )
        positions = before + torch.arange(x.size(1), device=x.device)
        later = torch.arange(c.size(1), device=x.device)[None] > positions[:, None]
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.size(-1))
        weights = torch.where(later, torch.full_like(scores, float("-inf")), scores).softmax(-1)
        return self.out_proj(torch.einsum("bhqk,bkhd->bqhd", weights, v).flatten(2))


@right_answer("LatentAttention")
class LatentHeadByHead(nn.Module):
    """a loop over the heads, with each head's rows of the weights, of which only the query's matrix is absorbed"""

    def __init__(self, d_in, d_out, num_heads, latent_dim):
        super().__init__()
        assert d_out % num_heads == 0
        self.width = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_latent = nn.Linear(d_in, latent_dim, bias=False)
        self.W_up_key = nn.Linear(latent_dim, d_out, bias=False)
        self.W_up_value = nn.Linear(latent_dim, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def forward(self, x, cache=None):
        latents = self.W_latent(x)
        if cache is not None:
            cache.append(latents)
            latents = cache.latents
        heads = []
        rows = (self.W_up_key.weight.split(self.width), self.W_up_value.weight.split(self.width))
        for query, up_key, up_value in zip(self.W_query(x).split(self.width, dim=-1), *rows, strict=True):
            scores = torch.bmm(query @ up_key, latents.transpose(1, 2)) * self.width**-0.5
            hidden = torch.full_like(scores, -torch.inf).triu(scores.shape[2] - scores.shape[1] + 1)
            heads.append(F.softmax(scores + hidden, dim=2) @ F.linear(latents, up_value))
        return self.out_proj(torch.cat(heads, dim=2))


@right_answer("LatentAttention")
class LatentTokenByToken(nn.Module):
    """one token at a time sees what is there so far, so that no mask is needed"""

    def __init__(self, d_in, d_out, num_heads, latent_dim):
        super().__init__()
        if d_out % num_heads != 0:
            raise ValueError("d_out must be divisible by num_heads")
        self.heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_latent = nn.Linear(d_in, latent_dim, bias=False)
        self.W_up_key = nn.Linear(latent_dim, d_out, bias=False)
        self.W_up_value = nn.Linear(latent_dim, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)

    def cut(self, one):
        return one.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x, cache=None):
        latents, n = self.W_latent(x), 0
        if cache is not None:
            n = 0 if cache.latents is None else cache.latents.shape[1]
            cache.append(latents)
            latents = cache.latents
        q, k, v = self.cut(self.W_query(x)), self.cut(self.W_up_key(latents)), self.cut(self.W_up_value(latents))
        context = []
        for i in range(x.shape[1]):
            seen = n + i + 1
            scores = q[:, :, i : i + 1] @ k[:, :, :seen].mT / q.shape[-1] ** 0.5
            context.append(scores.softmax(-1) @ v[:, :, :seen])
        return self.out_proj(torch.cat(context, dim=2).transpose(1, 2).flatten(2))
