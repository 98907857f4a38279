# %% [markdown]
# # Self-attention with trainable weights
#
# A word means little on its own. *Bank* beside *river* is one thing, beside *loan* another.
# Self-attention lets every token of a sequence look at every other one and take from each as much as it needs.
#
# In this notebook you build it in three steps:
#
# 1. **scores**: how well does each query fit each key?
# 2. **weights**: the scores, scaled and turned into shares that sum to 1;
# 3. **context vectors**: for each token, the weighted sum of the values, inside a module with trainable weights.
#
# Write your code where it says `YOUR CODE HERE`, then run the check below it. Everything else works as it is:
# *Run All* reaches the end of this notebook from the first minute on.
#
# What holds for every exercise here: the output has its inputs' dtype and device, inputs are left unchanged, and
# gradients can flow to every input and parameter. A leading `...` in a shape stands for any number of dimensions.

# %% locked="setup"
import math

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from attention_check import check

# %% [markdown]
# Our sentence is *"Your journey starts with one step"*, each word an embedding with three numbers.

# %% locked="six_words"
words = ["Your", "journey", "starts", "with", "one", "step"]
X = torch.tensor(
    [
        [0.43, 0.15, 0.89],  # Your
        [0.55, 0.87, 0.66],  # journey
        [0.57, 0.85, 0.64],  # starts
        [0.22, 0.58, 0.33],  # with
        [0.77, 0.25, 0.10],  # one
        [0.05, 0.80, 0.55],  # step
    ]
)

# %% [markdown]
# ## 1. Attention scores
#
# Every token plays three parts, each made from its embedding by a matrix of trainable weights:
# as a **query** it asks, as a **key** it says what it has to offer, as a **value** it gives.
# How well query $i$ fits key $j$ is their dot product, the *score*
#
# $$\omega_{ij} = \mathbf{q}_i \cdot \mathbf{k}_j .$$
#
# All the scores at once are one matrix product. Row $i$ belongs to query $i$:
#
# | tensor | shape |
# |---|---|
# | `queries` | `(..., Tq, d_k)` |
# | `keys` | `(..., Tk, d_k)` |
# | scores | `(..., Tq, Tk)` |
#
# With the weights that seed 123 draws, the query of *journey* is `[0.4306, 1.4551]`, its own key is
# `[0.4433, 1.1419]`, and the score of the two is 0.4306 · 0.4433 + 1.4551 · 1.1419 = 1.8524.
#
# Mind the leading dimensions: a batch of sequences has shape `(b, T, d_k)`, and tokens of one sequence
# never meet those of another.

# %% exercise="attention_scores" points=3

# %% [markdown]
# ## 2. Scaled softmax
#
# Scores become **weights** by softmax: every weight is positive, and each query's weights sum to 1.
#
# But softmax is sensitive to the size of what goes in. The same five numbers, once as they are and once times 8:

# %%
numbers = torch.tensor([0.1, -0.2, 0.3, -0.2, 0.5])
fig, axes = plt.subplots(1, 2, figsize=(8, 2.6), sharey=True)
for ax, factor in zip(axes, (1, 8)):
    shares = torch.softmax(numbers * factor, dim=-1)
    bars = ax.bar(range(5), shares.tolist())
    ax.bar_label(bars, fmt="%.4f", fontsize=8)
    ax.set_title(f"softmax of the numbers times {factor}")
    ax.set_xticks(range(5), [f"{number * factor:.1f}" for number in numbers.tolist()])
axes[0].set_ylim(0, 1)
axes[0].set_ylabel("weight")
plt.show()

# %% [markdown]
# On the right nearly all the weight is on one number: such a softmax looks at one token only, and it has hardly any
# gradient left to learn from.
#
# Dot products grow by themselves: for random queries and keys of width $d_k$ the variance of a score is about $d_k$.
# (In one draw with $d_k = 16$ it is 17.47, and 1.09 once the scores are divided by $\sqrt{16}$.) So attention divides
# by $\sqrt{d_k}$ first:
#
# $$\alpha_{ij} = \operatorname{softmax}_j\!\left(\frac{\omega_{ij}}{\sqrt{d_k}}\right)$$
#
# The softmax runs over the keys $j$, the *last* dimension. For *journey* ($d_k = 2$) the weights are
# `0.1500 0.2264 0.2199 0.1311 0.0906 0.1820`.

# %% exercise="scaled_softmax" points=4

# %% [markdown]
# ## 3. A module with trainable weights
#
# Now all of it in one `nn.Module`. The three weight matrices are parameters, drawn with `torch.rand` and so between
# 0 and 1; create `W_query`, `W_key`, `W_value` in this order, so that a seed means the same to all of us.
#
# | step | shape |
# |---|---|
# | `x` | `(T, d_in)` |
# | queries, keys, values: `x` times each weight matrix | `(T, d_out)` |
# | scores | `(T, T)` |
# | weights: scores divided by $\sqrt{d_\text{out}}$ (the width of a key), softmax over the keys | `(T, T)` |
# | context vectors: weights times values | `(T, d_out)` |
#
# Built under seed 123 for the six words (`d_in = 3`, `d_out = 2`), the context vector of *journey* is
# `[0.3061, 0.8210]`. You may call your own functions from above, or write it all again here.

# %% exercise="SelfAttention_v1" points=5

# %% [markdown]
# ## What attention looks like
#
# The weights of the worked example: row *journey* says how much *journey* takes from each word.
# All rows look alike here, since the weight matrices are random; training is what makes them differ.

# %%
torch.manual_seed(123)
W_query, W_key, W_value = (torch.rand(3, 2) for _ in range(3))
weights = torch.softmax((X @ W_query) @ (X @ W_key).T / math.sqrt(2), dim=-1)  # (6, 6)
fig, ax = plt.subplots(figsize=(4.6, 3.8))
image = ax.imshow(weights, cmap="Blues", vmin=0)
ax.set_xticks(range(6), words, rotation=45)
ax.set_yticks(range(6), words)
ax.set_xlabel("key")
ax.set_ylabel("query")
fig.colorbar(image, label="weight")
plt.show()
