"""PyTorch's own attention, arranged to compute what a solution computes."""

import torch
from torch.nn.functional import scaled_dot_product_attention

sdpa = scaled_dot_product_attention


def hidden_keys(num_tokens: int) -> torch.Tensor:
    """The causal attn_mask of nn.MultiheadAttention: True where a key is hidden."""
    return torch.arange(num_tokens)[None, :] > torch.arange(num_tokens)[:, None]
