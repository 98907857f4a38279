# %% [markdown]
# # Normalisation
#
# A deep network keeps its numbers in bounds by normalising each token, and its gradients alive by adding what came in.

# %% locked="setup"
import torch
from torch import nn

from layers_check import check


# %% [markdown]
# ## Layer norm
#
# Each row of `x` gets mean 0 and variance 1: subtract the row's mean and divide by the root of its variance plus `eps`.

# %% exercise="layer_norm" points=3

# %% [markdown]
# ## A residual block
#
# The block adds to its input what one linear layer makes of the normalised input.

# %% exercise="ResidualBlock" points=2

# %% [markdown] written="why_residual" points=1
# Why does a gradient that flows back through many such blocks not vanish?
