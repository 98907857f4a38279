# %% [markdown]
# # Causal attention
#
# A language model learns to say what comes next. While it learns, the whole text lies before it: if a token could look
# at the ones after it, it would copy the answer and learn nothing. *Causal* attention hides the future: each token
# attends to itself and to what came before it.
#
# In this notebook you build it step by step:
#
# 1. **the mask** that says what is hidden;
# 2. **masking after the softmax**, which needs a repair;
# 3. **masking before the softmax**, which needs none;
# 4. **dropout** on the attention weights, so that training does not lean on a few of them;
# 5. **modules**: one head, and several side by side.
#
# Write your code where it says `YOUR CODE HERE`, then run the check below it. The pictures show what *your* code makes:
# run their cells again once it is written. *Run All* reaches the end of this notebook from the first minute on.
#
# What holds for every exercise here: the output has its inputs' dtype and device, inputs are left unchanged, and
# gradients can flow to every input and parameter. Large scores, in the thousands, give no NaN. A leading `...` in a
# shape stands for any number of dimensions. The functions may not call the library's attention
# (`F.scaled_dot_product_attention`, `nn.MultiheadAttention`): it is what you are writing. The two classes may.

# %% locked="setup"
import math
from collections.abc import Callable

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from attention_check import check

# %% [markdown]
# The six words again, each an embedding with three numbers, and their attention scores under weights that seed 789
# draws: row $i$ holds the scores of query $i$ with every key, $d_k = 2$.

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
scores = torch.tensor(
    [
        [0.2899, 0.0716, 0.0760, -0.0138, 0.1344, -0.0511],
        [0.4656, 0.1723, 0.1751, 0.0259, 0.1771, 0.0085],
        [0.4594, 0.1703, 0.1731, 0.0259, 0.1745, 0.0090],
        [0.2642, 0.1024, 0.1036, 0.0186, 0.0973, 0.0122],
        [0.2183, 0.0874, 0.0882, 0.0177, 0.0786, 0.0144],
        [0.3408, 0.1270, 0.1290, 0.0198, 0.1290, 0.0078],
    ]
)


# %% locked="picture" drawing=true
def picture(ax: plt.Axes, title: str, make: Callable[[], torch.Tensor]) -> None:
    """Draw the (6, 6) matrix that `make` returns, with the words at its sides."""
    ax.set_title(title, fontsize=10)
    ax.set_xticks(range(6), words, rotation=45)
    ax.set_yticks(range(6), words)
    ax.set_xlabel("key")
    ax.set_ylabel("query")
    try:
        matrix = make().detach().double().reshape(6, 6)
    except Exception as error:
        missing = isinstance(error, NotImplementedError)
        said = "not written yet" if missing else type(error).__name__
        ax.text(2.5, 2.5, said, ha="center", va="center")
        ax.set_xlim(-0.5, 5.5)
        ax.set_ylim(5.5, -0.5)
        return
    finite = matrix.nan_to_num(posinf=0.0, neginf=0.0)
    top = max(1.0, finite.max().item())
    ax.imshow(finite, cmap="Blues", vmin=0, vmax=top)
    for query in range(6):
        for key in range(6):
            number = matrix[query, key].item()
            color = "white" if number > 0.6 * top else "black"
            place = {"ha": "center", "va": "center", "fontsize": 7, "color": color}
            ax.text(key, query, f"{number:.2g}", **place)


# %% [markdown]
# ## 1. What is hidden
#
# A **causal mask** for $T$ tokens is a bool tensor of shape `(T, T)`. Row $i$ is query $i$, column $j$ is key $j$, and
# `True` means *hidden*: key $j$ comes after query $i$. No token is hidden from itself, so the diagonal is `False`. For
# three tokens:
#
# | | key 0 | key 1 | key 2 |
# |---|---|---|---|
# | query 0 | `False` | `True` | `True` |
# | query 1 | `False` | `False` | `True` |
# | query 2 | `False` | `False` | `False` |

# %% exercise="causal_mask" points=2

# %%
fig, ax = plt.subplots(figsize=(3.6, 3.6))
picture(ax, "causal mask: 1 is hidden", lambda: causal_mask(6))
fig.tight_layout()
plt.show()

# %% [markdown]
# ## 2. Masking after the softmax
#
# The plain way: take the attention weights, set those of the future to zero. But then a row no longer sums to 1; the
# first query keeps only what it gave to itself. So each row is divided by the sum of what is left in it:
#
# $$\alpha'_{ij} = \frac{\alpha_{ij}}{\sum_{k \le i} \alpha_{ik}} \quad \text{for } j \le i, \qquad \alpha'_{ij} = 0
# \quad \text{for } j > i$$
#
# `weights` is `(T, T)`, each row a softmax. For the six words the second row, *journey*, becomes
# `0.5517 0.4483 0 0 0 0`.

# %% exercise="renormalized_causal_weights" points=3

# %%
shares = torch.softmax(scores / math.sqrt(2), dim=-1)
fig, axes = plt.subplots(1, 2, figsize=(7.6, 3.8))
picture(axes[0], "every key is seen", lambda: shares)
picture(
    axes[1],
    "the future removed, rows sum to 1",
    lambda: renormalized_causal_weights(shares),
)
fig.tight_layout()
plt.show()

# %% [markdown]
# ## 3. Masking before the softmax
#
# Shorter, and safer with large scores: make the hidden *scores* $-\infty$. Softmax turns them into $e^{-\infty} = 0$,
# and the rest of the row sums to 1 by itself.
#
# First the masking alone. `scores` is `(..., T, T)`, `mask` is a bool tensor `(T, T)`, `True` where hidden; one mask
# serves every sequence and head. It need not be the causal one. The scores that come in are left as they are: an
# operation that ends in `_` would change them for everyone who holds them.

# %% exercise="masked_scores" points=3

# %% [markdown]
# Then all of it: causal mask, division by $\sqrt{d_k}$, softmax over the keys. `scores` is `(..., T, T)`. The scores of
# the six words give the same weights as in part 2; the last row, *step*, sees everything:
# `0.1935 0.1663 0.1666 0.1542 0.1666 0.1529`.
#
# A tensor that you make on the way, such as a mask, must be on the scores' device.

# %% exercise="causal_softmax" points=4

# %%
fig, axes = plt.subplots(1, 2, figsize=(7.6, 3.8))
picture(axes[0], "masked scores", lambda: masked_scores(scores, causal_mask(6)))
picture(axes[1], "causal weights", lambda: causal_softmax(scores, 2))
fig.tight_layout()
plt.show()

# %% [markdown] written="why_mask_before_softmax" points=3
# **In your own words** (a few sentences, read by a person): why are scores masked with $-\infty$ *before* the softmax?
# Say what is wrong with weights that are set to zero after it and then used as they are.

# %% [markdown]
# ## 4. Dropout
#
# In training, **dropout** sets each attention weight to zero with probability $p$, each on its own and anew in each
# call, so that no token can rely on one other token alone. The kept weights are divided by $1 - p$: the expected sum of
# a row stays as it was. Outside of training nothing is dropped and nothing is divided.
#
# `weights` may have any shape, $0 \le p < 1$. PyTorch's own dropout may be used here, and so may `torch.rand`.
# The check below tries `training=False` alone, where nothing is left to chance: that it passes says nothing yet about
# training. The hidden tests look at what is dropped there.

# %% exercise="attention_dropout" points=4

# %% [markdown]
# A matrix of ones, twice with $p = 0.5$, and the causal weights with $p = 0.2$. Run the cell again for other draws.

# %%
fig, axes = plt.subplots(1, 3, figsize=(11, 3.8))
for ax in axes[:2]:
    picture(ax, "ones, p = 0.5", lambda: attention_dropout(torch.ones(6, 6), 0.5))
picture(
    axes[2],
    "causal weights, p = 0.2",
    lambda: attention_dropout(causal_softmax(scores, 2), 0.2),
)
fig.tight_layout()
plt.show()

# %% [markdown]
# ## 5. One head
#
# From queries, keys and values of a batch to context vectors, without dropout: scores, causal mask, scaling, softmax,
# weighted sum of the values.
#
# | tensor | shape |
# |---|---|
# | `queries`, `keys`, `values` | `(b, T, head_dim)` each |
# | scores, weights | `(b, T, T)` |
# | context vectors | `(b, T, head_dim)` |
#
# The first token sees itself alone, so its context vector is its own value.

# %% exercise="causal_head" points=3

# %% [markdown]
# Now as a module with trainable projections and dropout, for batches.
#
# | step | shape |
# |---|---|
# | `x`, with $T \le$ `context_length` | `(b, T, d_in)` |
# | queries, keys, values: `W_query`, `W_key`, `W_value`, `nn.Linear` layers created in this order | `(b, T, d_out)` |
# | scores, the future hidden | `(b, T, T)` |
# | weights: scores divided by $\sqrt{d_\text{out}}$, softmax, then dropout | `(b, T, T)` |
# | context vectors: weights times values | `(b, T, d_out)` |
#
# - `qkv_bias` says whether the three layers have a bias, `dropout` is the probability $p$.
# - A module knows whether it is being trained: `train()` and `eval()` switch it, and the `nn.Module`s in it, over.
# - A mask that the module keeps is a *buffer* (`self.register_buffer`): no parameter, but it moves to the GPU with the
#   rest. A mask made in `forward`, on the device of `x`, is right too.
#
# Built under seed 123 with `d_in = 3`, `d_out = 2` and no dropout, it gives *Your* `[-0.4519, 0.2216]` and *journey*
# `[-0.5874, 0.0058]`.

# %% exercise="CausalAttention" points=6

# %% [markdown]
# ## 6. Several heads
#
# One head can look for one kind of thing. Several heads, each with its own weights, look for several, and their context
# vectors are put **side by side**: the result is `num_heads` times as wide as one head's.
#
# `MultiHeadAttentionWrapper` keeps `num_heads` of *your* `CausalAttention` modules in an `nn.ModuleList` called
# `heads`. Each takes all of `x` and returns `(b, T, d_out)`; together that is `(b, T, num_heads * d_out)`, head 0
# first. It can only be right where your `CausalAttention` is.
#
# Built under seed 123 with two heads of `d_out = 2`, the result for *Your* is `[-0.4519, 0.2216, 0.4772, 0.1063]`.

# %% exercise="MultiHeadAttentionWrapper" points=3

# %% [markdown]
# ## How far you are
#
# Every check of this notebook in one table, with the points that the public examples would give:

# %%
check()
