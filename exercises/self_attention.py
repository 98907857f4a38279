# %% [markdown]
# # Self-attention with trainable weights
#
# A word means little on its own. *Bank* beside *river* is one thing, beside *loan* another.
# Self-attention lets every token of a sequence look at every other one and take from each as much as it needs. With
# trainable weights it can learn what to look for.
#
# In this notebook you build it from words to a module:
#
# 1. **tokens**: words become numbers;
# 2. **projections**: each token's query, key and value;
# 3. **scores and weights**: how well each query fits each key, as shares that sum to 1;
# 4. **context vectors**: for each token, the weighted sum of the values;
# 5. **modules** with trainable weights that do all of it.
#
# Write your code where it says `YOUR CODE HERE`, then run the check below it. Everything else works as it is:
# *Run All* reaches the end of this notebook from the first minute on.
#
# What holds for every exercise here: the output has its inputs' dtype and device, inputs are left unchanged, and
# gradients can flow to every input and parameter. Large scores, in the thousands, give no NaN. A leading `...` in a
# shape stands for any number of dimensions. The functions may not call the library's attention
# (`F.scaled_dot_product_attention`, `nn.MultiheadAttention`): it is what you are writing. The two classes may.

# %% locked="setup"
import math

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from attention_check import check

# %% [markdown]
# ## 1. From words to tokens
#
# A model sees numbers. A **vocabulary** gives each distinct word one: for *"Life is short, eat dessert first"* it is
# `{"Life": 0, "dessert": 1, "eat": 2, "first": 3, "is": 4, "short": 5}`. Words are sorted as Python sorts them,
# capitals first. Commas are dropped (not replaced by a space), and `split()` cuts at any white space. A word that
# stands twice gets one number, and the numbers have no gap.

# %% exercise="build_vocab" points=1

# %% [markdown]
# With a vocabulary a sentence becomes a tensor of **tokens**. The sentence above becomes `0 4 5 2 1 3`: *Life* is 0,
# *is* is 4, and so on. The tensor has dtype int64, which is what an embedding layer looks up. A word that the
# vocabulary does not know raises a `KeyError`: better now than a wrong word later.

# %% exercise="encode" points=1

# %% [markdown]
# ## 2. Queries, keys and values
#
# Now another sentence, *"Your journey starts with one step"*, each word an embedding with three numbers.

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
# Every token plays three parts, each made from its embedding by a matrix of trainable weights:
# as a **query** it asks, as a **key** it says what it has to offer, as a **value** it gives.
#
# $$Q = X W_q \qquad K = X W_k \qquad V = X W_v$$
#
# | tensor | shape |
# |---|---|
# | `inputs` | `(T, d_in)` |
# | `W_query`, `W_key` | `(d_in, d_k)` |
# | `W_value` | `(d_in, d_v)` |
# | queries, keys, values | `(T, d_k)`, `(T, d_k)`, `(T, d_v)` |
#
# With the weights that seed 123 draws, the query of *journey* is `[0.4306, 1.4551]`, its key `[0.4433, 1.1419]`, its
# value `[0.3951, 1.0037]`.

# %% exercise="project_qkv" points=2

# %% [markdown]
# Some code, `nn.Linear` among it, stores its weight the other way round: `(d_out, d_in)`, one row for each output. Then
# the product needs the transposed weight. Six tokens of width 16 become `(6, 24)` with a `(24, 16)` weight, and
# `(6, 28)` with a `(28, 16)` one.

# %% exercise="linear_projection" points=1

# %% [markdown]
# ## 3. Scores and weights
#
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
# For *journey* as query and key the score is 0.4306 · 0.4433 + 1.4551 · 1.1419 = 1.8524.
#
# Mind the leading dimensions: a batch of sequences has shape `(b, T, d_k)`, and tokens of one sequence
# never meet those of another.

# %% exercise="attention_scores" points=3

# %% [markdown]
# Scores become **weights** by softmax: every weight is positive, and each query's weights sum to 1.
#
# But softmax is sensitive to the size of what goes in. The same five numbers, once as they are and once times 8:

# %% drawing=true
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
# On the right most of the weight is on one number: such a softmax hardly looks at any other token, and it has little
# gradient left to learn from.
#
# And dot products grow by themselves: where queries and keys of width $d_k$ have independent entries of variance 1,
# the variance of a score is about $d_k$.

# %%
generator = torch.Generator().manual_seed(0)
widths = [1, 2, 4, 8, 16, 32, 64, 128]
variances = []
for d_k in widths:
    queries, keys = (torch.randn(64, d_k, generator=generator) for _ in range(2))
    variances.append((queries @ keys.T).var().item())

# %% drawing=true
scaled = [variance / d_k for variance, d_k in zip(variances, widths)]
fig, ax = plt.subplots(figsize=(5.5, 3))
ax.plot(widths, variances, "o-", label="scores")
ax.plot(widths, scaled, "o-", label="scores divided by sqrt(d_k)")
ax.set_xscale("log", base=2)
ax.set_yscale("log", base=2)
ax.set_xlabel("d_k")
ax.set_ylabel("variance")
ax.legend()
plt.show()

# %% [markdown]
# So attention divides by $\sqrt{d_k}$ first, which keeps the variance near 1 for every width:
#
# $$\alpha_{ij} = \operatorname{softmax}_j\!\left(\frac{\omega_{ij}}{\sqrt{d_k}}\right)$$
#
# The softmax runs over the keys $j$, the *last* dimension. For *journey* ($d_k = 2$) the weights are
# `0.1500 0.2264 0.2199 0.1311 0.0906 0.1820`.

# %% exercise="scaled_softmax" points=4

# %% [markdown]
# ## 4. Context vectors
#
# Each query's context vector is the sum of the values, each times its weight:
#
# $$\mathbf{z}_i = \sum_j \alpha_{ij} \, \mathbf{v}_j$$
#
# `weights` is `(..., Tq, Tk)`, `values` is `(..., Tk, d_v)`, the context vectors are `(..., Tq, d_v)`. The context
# vector of *Your* is `[0.2996, 0.8053]`.

# %% exercise="context_vectors" points=2

# %% [markdown]
# Now from end to end, first for **one query**: its scores with all keys, scaled; their softmax; the weighted sum of the
# values. `query` is `(d_k,)`, `keys` is `(T, d_k)`, `values` is `(T, d_v)`, and the result `(d_v,)`. Values may have
# another width than keys. The check takes *"Life is short, eat dessert first"* with keys of width 24 and values of
# width 28; there the query *is* gives the six words the weights `0.2912 0.0106 0.0982 0.0625 0.4917 0.0458`.

# %% exercise="single_query_attention" points=3

# %% [markdown]
# Then for **all queries**, with any leading dimensions. This is the formula that everything else is built on:
#
# $$\operatorname{Attention}(Q, K, V) = \operatorname{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V$$
#
# PyTorch has a function of the same name; here you write it, without the library's attention.

# %% exercise="scaled_dot_product_attention" points=3

# %% [markdown]
# Measure what the scaling does. `score_variance` returns two 0-d tensors: the variance (`Tensor.var()`) of all raw
# scores, and of all scores divided by $\sqrt{d_k}$. For the check's queries and keys with $d_k = 16$ these are 17.4690
# and 1.0918.

# %% exercise="score_variance" points=2

# %% [markdown]
# ## 5. Modules with trainable weights
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
# In practice the projections are `nn.Linear` layers: they store their weight as `(d_out, d_in)`, start from values that
# suit training better, and can add a bias. `SelfAttention_v2` is the same module with layers `W_query`, `W_key` and
# `W_value`, created in this order; `qkv_bias` says whether they have a bias.
#
# Built under seed 789, the context vector of *journey* is `[-0.0748, 0.0703]`.

# %% exercise="SelfAttention_v2" points=4

# %% [markdown]
# ## What attention looks like
#
# The weights of the worked example: row *journey* says how much *journey* takes from each word.
# All rows look alike here, since the weight matrices are random; training is what makes them differ.

# %%
torch.manual_seed(123)
W_query, W_key, W_value = (torch.rand(3, 2) for _ in range(3))
weights = torch.softmax((X @ W_query) @ (X @ W_key).T / math.sqrt(2), dim=-1)  # (6, 6)

# %% drawing=true
fig, ax = plt.subplots(figsize=(4.6, 3.8))
image = ax.imshow(weights, cmap="Blues", vmin=0)
ax.set_xticks(range(6), words, rotation=45)
ax.set_yticks(range(6), words)
ax.set_xlabel("key")
ax.set_ylabel("query")
fig.colorbar(image, label="weight")
plt.show()

# %% [markdown] written="why_scale" points=3
# **In your own words** (a few sentences, read by a person): why are scores divided by the square root of $d_k$, and not
# left as they are? Say what would happen during training with $d_k = 64$.

# %% [markdown]
# ## How far you are
#
# Every check of this notebook in one table, with the points that the public examples would give:

# %%
check()
