# %% [markdown]
# # Attention with several heads
#
# One head of attention gives each token one mixture of the others. But a word may need several things at once: the verb
# that it belongs to, the adjective before it, the name that *she* stands for. **Several heads** look for several things
# side by side, each with queries, keys and values of its own.
#
# In this notebook you build them twice, first so that it is easy to see, then so that it is fast:
#
# 1. **stacked heads**: one set of weight matrices for each head;
# 2. **split heads**: one wide projection, cut into pieces; scores head by head; the pieces put together again;
# 3. **the module**: causal attention with several heads, as language models use it;
# 4. **fewer parameters**: what happens when the input itself is the value, or key and value.
#
# Write your code where it says `YOUR CODE HERE`, then run the check below it. Everything else works as it is:
# *Run All* reaches the end of this notebook from the first minute on.
#
# What holds for every exercise here: the output has its inputs' dtype and device, inputs are left unchanged, and
# gradients can flow to every input and parameter. Large scores, in the thousands, give no NaN. The functions may not
# call the library's attention (`F.scaled_dot_product_attention`, `nn.MultiheadAttention`): it is what you are writing.
# The three classes may. In shapes, `b` is the batch, `T` the number of tokens, `h` the number of heads and `hd` the
# width of one head.

# %% locked="setup"
import math

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from attention_check import check

# %% [markdown]
# ## 1. Stacked heads
#
# What a head looks for is set by its weight matrices. Here is one sentence seen by two heads. Each row is a query;
# where it is dark, the query takes much from that key. The weight matrices are random here, so the patterns mean
# nothing yet, but there are two of them, and training can shape each on its own.

# %%
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


# %% drawing=true
def show_heads(weights: torch.Tensor) -> None:
    """Draw the weights (h, T, T) of each head beside each other."""
    layout = {"figsize": (4.4 * len(weights), 3.8), "layout": "constrained"}
    fig, axes = plt.subplots(1, len(weights), sharey=True, **layout)
    for head, ax in enumerate(axes):
        image = ax.imshow(weights[head], cmap="Blues", vmin=0, vmax=1)
        ax.set_title(f"head {head}")
        ax.set_xticks(range(len(words)), words, rotation=45)
        ax.set_yticks(range(len(words)), words)
        ax.set_xlabel("key")
    axes[0].set_ylabel("query")
    fig.colorbar(image, ax=axes, label="weight")
    plt.show()


# %%
generator = torch.Generator().manual_seed(7)
centred = X - X.mean(0)
Q = torch.einsum("ti,hki->htk", centred, 6 * torch.randn(2, 3, 3, generator=generator))
K = torch.einsum("ti,hki->htk", centred, torch.randn(2, 3, 3, generator=generator))
head_scores = torch.einsum("hqk,htk->hqt", Q, K) / math.sqrt(3)
show_heads(torch.softmax(head_scores, dim=-1))

# %% [markdown]
# The plainest way to several heads is to stack their weight matrices along a new first dimension. Each matrix is stored
# as `nn.Linear` stores it, one row for each output:
#
# | tensor | shape |
# |---|---|
# | `inputs` | `(T, d_in)` |
# | `W_query`, `W_key` | `(h, d_k, d_in)` |
# | `W_value` | `(h, d_v, d_in)` |
# | queries, keys, values of all heads | `(h, T, d_k)`, `(h, T, d_k)`, `(h, T, d_v)` |
# | scores, and weights | `(h, T, T)` |
# | context vectors | `(h, T, d_v)` |
#
# Each head does what you know: scores divided by $\sqrt{d_k}$, softmax over the keys, weighted sum of the values.
# Nothing is hidden from any token yet. Matrix products treat leading dimensions as a batch, so no loop over the heads
# is needed, though one is right too. With 3 heads, keys of width 24 and values of width 28, six tokens of width 16
# become `(3, 6, 28)`.

# %% exercise="stacked_heads_attention" points=4

# %% [markdown]
# ## 2. Split heads
#
# In practice all heads share **one** projection of width `d_out`, and each head gets a piece of its result: with
# `d_out = 6` and 2 heads, head 0 has the numbers 0 to 2 of each token, head 1 the numbers 3 to 5. One large product is
# faster than several small ones.
#
# Below, each cell is a number, written *token.position*, and each colour is a head. On the left is what the projection
# gives, `(T, d)`. In the middle every row is cut into its heads' pieces, `(T, h, hd)`. On the right each head has its
# own sequence of tokens, `(h, T, hd)`: the dimensions of tokens and heads have changed places.


# %% drawing=true
def draw_cells(ax: plt.Axes, left: float, top: float, rows: list[list[str]]) -> None:
    """Draw rows of cells with these labels; positions 0 to 2 blue, 3 to 5 orange."""
    for i, row in enumerate(rows):
        for j, label in enumerate(row):
            colour = "#9ecae1" if label[-1] in "012" else "#fdae6b"
            x, y = left + j, top - i
            box = plt.Rectangle((x, y), 1, 1, facecolor=colour, edgecolor="white")
            ax.add_patch(box)
            ax.text(x + 0.5, y + 0.5, label, ha="center", va="center", fontsize=8)


labels = [[f"{token}.{position}" for position in range(6)] for token in range(3)]
fig, ax = plt.subplots(figsize=(11, 3.4))
draw_cells(ax, 0, 3, labels)
draw_cells(ax, 8.5, 3, [row[:3] for row in labels])
draw_cells(ax, 12, 3, [row[3:] for row in labels])
draw_cells(ax, 18, 5, [row[:3] for row in labels])
draw_cells(ax, 18, 1, [row[3:] for row in labels])
ax.text(3, 4.3, "(T, d) = (3, 6)", ha="center")
ax.text(11.75, 4.3, "(T, h, hd) = (3, 2, 3)", ha="center")
ax.text(19.5, 6.3, "(h, T, hd) = (2, 3, 3)", ha="center")
for start, end, name in [(6.2, 8.3, "cut"), (15.2, 17.8, "swap T and h")]:
    ax.annotate("", (end, 2.5), (start, 2.5), arrowprops={"arrowstyle": "->"})
    ax.text((start + end) / 2, 2.7, name, ha="center", fontsize=8)
ax.text(17.8, 4.5, "head 0", ha="right", va="center", fontsize=8)
ax.text(17.8, 0.5, "head 1", ha="right", va="center", fontsize=8)
ax.set_xlim(-0.2, 21.2)
ax.set_ylim(-1.3, 7)
ax.set_aspect("equal")
ax.axis("off")
plt.show()

# %% [markdown]
# `split_heads` does both steps for a batch: `(b, T, d)` becomes `(b, h, T, hd)` with `hd = d / h`. A reshape alone
# gives that shape too, but it only counts numbers off in the order in which they lie in memory: its "head 0" would have
# the first tokens whole, not the first piece of every token.
#
# Where `d` is not divisible by `num_heads`, raise a `ValueError` (an `assert` is right too).

# %% exercise="split_heads" points=3

# %% [markdown]
# Now every head scores its own queries against its own keys: `(b, h, T, hd)` twice gives `(b, h, T, T)`. These are the
# plain dot products; the scaling comes later.

# %% exercise="multi_head_scores" points=2

# %% [markdown]
# Each head makes context vectors of width `hd`, `(b, h, T, hd)` together. To go on, a token needs its pieces side by
# side again: `(b, T, h * hd)`, head 0's first. `merge_heads` is the inverse of `split_heads`, so it takes the steps of
# the picture from right to left. A tensor whose dimensions have been swapped no longer lies in memory in its own order;
# `view` refuses such a tensor, `reshape` copies where it must.
#
# In the check, the first token's context vectors are `[-0.1674, -0.5873, -0.3776]` and `[-0.2045, 0.2991, 0.2583]`, and
# so its merged vector is `[-0.1674, -0.5873, -0.3776, -0.2045, 0.2991, 0.2583]`.

# %% exercise="merge_heads" points=3

# %% [markdown]
# ## 3. The module
#
# Now all of it in one module, and *causal*: a language model predicts the next word, so no token may look at a later
# one. Before the softmax the scores of later keys are replaced by $-\infty$, which softmax turns into a weight of 0.
# This is what the two heads are left with:

# %%
later = torch.arange(6)[None, :] > torch.arange(6)[:, None]
show_heads(torch.softmax(head_scores.where(~later, -math.inf), dim=-1))

# %% [markdown]
# | step | shape |
# |---|---|
# | `x` | `(b, T, d_in)` |
# | queries, keys, values, by the layers `W_query`, `W_key`, `W_value`, split into heads | `(b, h, T, hd)` |
# | scores, those of later keys replaced by $-\infty$ | `(b, h, T, T)` |
# | weights: scores divided by $\sqrt{hd}$, softmax over the keys, then dropout | `(b, h, T, T)` |
# | context vectors: weights times values | `(b, h, T, hd)` |
# | heads merged | `(b, T, d_out)` |
# | the layer `out_proj`, which mixes what the heads found | `(b, T, d_out)` |
#
# - `hd = d_out / num_heads`. Where that is no whole number, building the module raises a `ValueError` (an `assert` is
#   right too).
# - `W_query`, `W_key`, `W_value` and `out_proj` are `nn.Linear` layers, created in this order, so that a seed means the
#   same to all of us. `qkv_bias` says whether the first three have a bias; `out_proj` has one.
# - A sequence may be shorter than `context_length`, never longer.
# - A mask that the module keeps should be a buffer (`register_buffer`), so that it moves with the module to a GPU. One
#   made in `forward`, on the input's device, is right too.
# - **Dropout**: in training, each weight becomes 0 with the given probability $p$, and the others are divided by
#   $1 - p$. In evaluation (`module.eval()`) nothing is dropped. `nn.Dropout` does both.
#
# Built under seed 123 for the six words (`d_in = 3`, `d_out = 2`, two heads), the vector of *Your* is
# `[0.3190, 0.4858]`. You may call your own functions from above, or write it all again here.

# %% exercise="MultiHeadAttention" points=8

# %% [markdown]
# ## 4. Fewer parameters
#
# `out_proj` multiplies the values by a matrix after they have been mixed. Does `W_value` need to multiply them before?
# `OptimizedMultiHeadAttention` is the same module **without `W_value`**: the input itself, split into heads, is the
# value. This needs `d_in = d_out`. All else stays: queries and keys, mask, dropout, `out_proj`, the arguments.
#
# Built under seed 123 with two heads, it turns the check's first token into
# `[-0.0395, 0.2886, 0.5358, 0.1082, 0.6340, -0.1723]`.

# %% exercise="OptimizedMultiHeadAttention" points=4

# %% [markdown]
# `EfficientMultiHeadAttention` goes further: the input, split into heads, is **key and value**. Of the projections only
# `W_query` is left, and `out_proj`; again `d_in = d_out`.
#
# Built under seed 123 for the six words with three heads, the vector of *Your* is `[0.1366, -0.2666, 0.6299]`.

# %% exercise="EfficientMultiHeadAttention" points=4

# %% [markdown]
# What this saves at the width of a small language model, `d_in = d_out = 768`. It has its price: heads whose keys and
# values are fixed pieces of the input cannot learn what to offer.

# %%
width = 768
layers = {"MultiHeadAttention": 4, "Optimized": 3, "Efficient": 2}
parameters = [count * width * width + width for count in layers.values()]
dict(zip(layers, parameters))

# %% drawing=true
fig, ax = plt.subplots(figsize=(5.5, 2.4))
bars = ax.barh(list(layers), [count / 1e6 for count in parameters])
ax.bar_label(bars, fmt="%.2f", fontsize=8)
ax.invert_yaxis()
ax.set_xlabel("million parameters")
ax.margins(x=0.12)
plt.show()

# %% [markdown] written="why_heads" points=3
# **In your own words** (a few sentences, read by a person): what can several heads of width `d_out / h` do that one
# head of width `d_out` cannot? What does it cost, in parameters and in what a single head sees? And what would be
# missing without `out_proj`?

# %% [markdown]
# ## How far you are
#
# Every check of this notebook in one table, with the points that the public examples would give:

# %%
check()
