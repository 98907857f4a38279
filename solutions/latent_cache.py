"""The cache that the notebook of unit 9 gives to its students."""

import torch


class LatentCache:
    """Keep the latents of all tokens so far, for attention to continue.

    latents is a tensor (b, n, latent_dim) of all n appended tokens, in their order;
    before the first call of append it is None.
    """

    def __init__(self) -> None:
        self.latents: torch.Tensor | None = None

    def append(self, latents: torch.Tensor) -> None:
        """Add the latents of the next t tokens, (b, t, latent_dim)."""
        if self.latents is None:
            self.latents = latents
        else:
            self.latents = torch.cat([self.latents, latents], dim=1)
