# %% [markdown]
# # Attention from dot products
#
# Attention lets every word of a sentence look at the others and take from each as much as it needs. Before there are
# any weights to train, the idea is three lines of arithmetic. In this notebook you write each of them yourself:
#
# 1. **scores**: how alike are two words? Their dot product says so.
# 2. **weights**: scores turned into shares that sum to 1.
# 3. **context vector**: all words blended, each by its share.
#
# Write your code where it says `YOUR CODE HERE`, then run the check below it. Everything else works as it is:
# *Run All* reaches the end of this notebook from the first minute on.
#
# What holds for every exercise here: the output has its inputs' dtype and device, inputs are left unchanged, and
# gradients can flow to every input. Large scores, in the thousands, give no NaN. A leading `...` in a shape stands for
# any number of dimensions. The library's attention (`F.scaled_dot_product_attention`, `nn.MultiheadAttention`) is what
# you are writing, so it may not be called.

# %% locked="setup"
import math

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from attention_check import check

# %% [markdown]
# Our sentence is *"Your journey starts with one step"*, each word an embedding with three numbers. A row is a word:
# `X` has shape `(T, d)` with `T = 6` tokens of width `d = 3`.

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
# ## 1. Scores: how alike are two words?
#
# The word that looks is the **query**. Its score with another word is the dot product of the two: large where they
# point the same way.
#
# $$\omega_j = \mathbf{q} \cdot \mathbf{x}_j = \sum_{m=1}^{d} q_m \, x_{jm}$$
#
# For the query *journey*, its score with *Your* is 0.55 · 0.43 + 0.87 · 0.15 + 0.66 · 0.89 = 0.9544. Shapes: `query`
# is `(d,)`, `inputs` is `(T, d)`, the scores are `(T,)`. The query need not be one of the inputs.

# %% exercise="dot_product_scores" points=2

# %% [markdown]
# ## 2. Weights: shares that sum to 1
#
# The plain way to make shares of scores is to divide them by their sum:
#
# $$\alpha_j = \frac{\omega_j}{\sum_k \omega_k}$$
#
# The scores of *journey* sum to 6.5617, so *Your* gets 0.9544 / 6.5617 = 0.1455. Scores may come with leading
# dimensions, `(..., T)`: each row sums to 1 on its own. (`keepdim=True` keeps a sum's dimension, so that shapes fit.)

# %% exercise="normalize_by_sum" points=2

# %% [markdown]
# That goes wrong as soon as scores are negative: shares below zero, or a sum of zero. **Softmax** takes exponentials
# first, which are always positive:
#
# $$\operatorname{softmax}(\omega)_j = \frac{e^{\omega_j}}{\sum_k e^{\omega_k}}$$
#
# The six weights of *journey* are now `0.1385 0.2379 0.2333 0.1240 0.1082 0.1581`.
#
# Mind large scores: in float32 $e^{89}$ is already infinite, and infinity divided by infinity is NaN. Adding the same
# number to all scores changes no weight ($e^{c}$ cancels), so subtract the maximum first. Then no exponent is above 0.

# %% drawing=true
scores = torch.linspace(-3, 3, 100)
fig, ax = plt.subplots(figsize=(5.5, 2.8))
for factor in (1, 2, 8):
    shares = torch.softmax(torch.stack([scores, torch.zeros(100)]) * factor, dim=0)[0]
    ax.plot(scores, shares, label=f"scores times {factor}")
ax.set_xlabel("a score, against another one of 0")
ax.set_ylabel("its weight")
ax.legend()
plt.show()

# %% [markdown]
# The curve above is a softmax of two scores: the larger the scores, the nearer it comes to all or nothing.
#
# Write `softmax` from `exp` and a sum, along any dimension `dim`. The library's own (`torch.softmax`, `log_softmax`,
# `logsumexp`) are not allowed in this one exercise.

# %% exercise="softmax" points=4

# %% [markdown]
# ## 3. The context vector
#
# A word's context vector blends all words, each by its weight:
#
# $$\mathbf{z} = \sum_j \alpha_j \, \mathbf{x}_j$$
#
# `weights` is `(T,)`, `inputs` is `(T, d)`, the context vector is `(d,)`. For *journey* it is
# `[0.4419, 0.6515, 0.5683]`.

# %% exercise="context_vector" points=2

# %% [markdown]
# ## 4. All words at once
#
# So far one word looked. Now let each one look at all of them: `(T, T)` scores, row $i$ for query $i$. Two loops would
# do, and one matrix product does the same. The first row, of *Your*, is `0.9995 0.9544 0.9422 0.4753 0.4576 0.6310`.

# %% exercise="pairwise_scores" points=2

# %% [markdown]
# Put together, this is **self-attention**: pairwise scores, a softmax over each row (here the library's is welcome, or
# your own), and for every token the weighted sum of the inputs.
#
# | step | shape |
# |---|---|
# | inputs | `(T, d)` |
# | scores | `(T, T)` |
# | weights, each row sums to 1 | `(T, T)` |
# | context vectors | `(T, d)` |
#
# The first context vector, of *Your*, is `[0.4421, 0.5931, 0.5790]`.

# %% exercise="simple_self_attention" points=4

# %% [markdown]
# ## What attention looks like
#
# The weights of the six words: row *journey* says how much *journey* takes from each word. *journey* and *starts* have
# nearly the same embedding, and so nearly the same row.

# %%
weights = torch.softmax(X @ X.T, dim=-1)  # (6, 6)

# %% drawing=true
fig, ax = plt.subplots(figsize=(4.6, 3.8))
image = ax.imshow(weights, cmap="Blues", vmin=0)
for i in range(6):
    for j in range(6):
        ax.text(j, i, f"{weights[i, j]:.2f}", ha="center", va="center", fontsize=8)
ax.set_xticks(range(6), words, rotation=45)
ax.set_yticks(range(6), words)
ax.set_xlabel("looked at")
ax.set_ylabel("query")
fig.colorbar(image, label="weight")
plt.show()

# %% [markdown] written="why_softmax" points=3
# **In your own words** (a few sentences, read by a person): why is softmax used to turn scores into weights, and not a
# division by the sum? Give one list of scores for which the division fails, and say what softmax makes of it.

# %% [markdown]
# ## How far you are
#
# Every check of this notebook in one table, with the points that the public examples would give:

# %%
check()
