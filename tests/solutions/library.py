"""PyTorch's own attention, arranged to compute what a solution computes."""

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

sdpa = scaled_dot_product_attention


def library_module(
    queries: nn.Linear | torch.Tensor,
    keys: nn.Linear | torch.Tensor | None,
    values: nn.Linear | torch.Tensor | None,
    out: nn.Linear | None,
    num_heads: int,
) -> nn.MultiheadAttention:
    """nn.MultiheadAttention with copies of these layers; where there is none it leaves its input as it is."""
    layers = [queries, keys, values]
    first = queries.weight if isinstance(queries, nn.Linear) else queries
    width = first.shape[0]
    module = nn.MultiheadAttention(width, num_heads, batch_first=True).to(first.dtype)
    identity, nothing = torch.eye(width, dtype=first.dtype), torch.zeros(width, dtype=first.dtype)

    def weight_and_bias(layer: nn.Linear | torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        if layer is None:
            return identity, nothing
        if isinstance(layer, torch.Tensor):
            return layer.detach(), nothing
        return layer.weight.detach(), nothing if layer.bias is None else layer.bias.detach()

    pairs = [weight_and_bias(layer) for layer in layers]
    module.in_proj_weight.data = torch.cat([weight for weight, _ in pairs])
    module.in_proj_bias.data = torch.cat([bias for _, bias in pairs])
    module.out_proj.weight.data, module.out_proj.bias.data = (one.clone() for one in weight_and_bias(out))
    return module


def hidden_keys(num_tokens: int) -> torch.Tensor:
    """The causal attn_mask of nn.MultiheadAttention: True where a key is hidden."""
    return torch.arange(num_tokens)[None, :] > torch.arange(num_tokens)[:, None]
