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
# Write your code where it says `YOUR CODE HERE`, then run the check below it. Pictures and numbers in this notebook are
# made by *your* functions: run their cells again once you have written them. *Run All* reaches the end of this notebook
# from the first minute on. Where you are stuck, `hint("causal_mask")` gives you a question; call it again for more.
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

from attention_check import buggy, check, draw, example, guess, hint, show

# %% [markdown]
# **Tools of this unit**
#
# | tool | what it does | example |
# |---|---|---|
# | `torch.ones(T, T)` | a matrix of ones | `dtype=` and `device=` say of which kind and where |
# | `x.tril()` | keeps the diagonal and what is below it, the rest becomes 0 | |
# | `x.triu(diagonal=1)` | keeps what is above the diagonal, the rest becomes 0 | |
# | `x.masked_fill(mask, number)` | the number wherever the mask is `True` | a `(T, T)` mask fits `(b, h, T, T)` |
# | `mask.to(x.device)` | the same tensor where `x` is | a mask made on the CPU does not fit scores on a GPU |
# | `torch.rand_like(x)` | numbers between 0 and 1, of the same shape, dtype and device | |
# | `torch.cat([a, b], dim=-1)` | tensors side by side | `(b, T, 2)` twice is `(b, T, 4)` |
# | `nn.Dropout(p)(x)` | drops in training, and leaves `x` as it is after `eval()` | the same shape |
# | `self.register_buffer("name", x)` | a tensor that is not trained and moves with the module | `self.name` |
# | `nn.ModuleList([a, b])` | modules in a list, whose parameters are found and trained | `for a in self.list:` |
#
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

# **Guess first**: how many of the 36 places are hidden for six tokens?

# %%
guess("hidden_places", ...)

# %% exercise="causal_mask" points=2

# %%
draw({"causal mask: 1 is hidden": lambda: causal_mask(6)}, words)

# %% [markdown]
# Other code reaches the same mask by one of two ways: it keeps the lower triangle of a matrix of ones, and hidden is
# where a 0 was left; or it keeps what is above the diagonal, and hidden is what was kept.
#
# Read a mask's documentation before you pass it on. Here, and in `nn.MultiheadAttention`, `True` means *hidden*. In
# `F.scaled_dot_product_attention` `True` means *takes part*, just the opposite.

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

# The weights to begin with, a row for each query:

# %% locked="weights"
weights = torch.tensor(
    [
        [0.1921, 0.1646, 0.1652, 0.1550, 0.1721, 0.1510],
        [0.2041, 0.1659, 0.1662, 0.1496, 0.1665, 0.1477],
        [0.2036, 0.1659, 0.1662, 0.1498, 0.1664, 0.1480],
        [0.1869, 0.1667, 0.1668, 0.1571, 0.1661, 0.1564],
        [0.1830, 0.1669, 0.1670, 0.1588, 0.1658, 0.1585],
        [0.1935, 0.1663, 0.1666, 0.1542, 0.1666, 0.1529],
    ]
)

# %% [markdown]
# **Guess first**: which weight does *Your*, the first word, give itself afterwards?

# %%
guess("first_row", ...)

# %% exercise="renormalized_causal_weights" points=3

# %%
draw(
    {
        "every key is seen": lambda: weights,
        "future removed, rows sum to 1": lambda: renormalized_causal_weights(weights),
    },
    words,
)

# %% [markdown]
# ## 3. Masking before the softmax
#
# Shorter, and safer with large scores: make the hidden *scores* $-\infty$. Softmax turns them into $e^{-\infty} = 0$,
# and the rest of the row sums to 1 by itself.
#
# First the masking alone. `scores` is `(..., T, T)`, `mask` is a bool tensor `(T, T)`, `True` where hidden; one mask
# serves every sequence and head. It need not be the causal one. The scores that come in are left as they are: an
# operation that ends in `_` would change them for everyone who holds them.

# **Guess first**: what if 0 were written in place of $-\infty$: would a hidden key get the weight 0? Guess `"yes"` or
# `"no"`.

# %%
guess("zero_score", ...)

# %% exercise="masked_scores" points=3

# %% [markdown]
# Then all of it: causal mask, division by $\sqrt{d_k}$, softmax over the keys. `scores` is `(..., T, T)`. The scores of
# the six words give the same weights as in part 2:
#
# | | Your | journey | starts | with | one | step |
# |---|---|---|---|---|---|---|
# | **Your** | 1 | 0 | 0 | 0 | 0 | 0 |
# | **journey** | 0.5517 | 0.4483 | 0 | 0 | 0 | 0 |
# | **starts** | 0.3800 | 0.3097 | 0.3103 | 0 | 0 | 0 |
# | **with** | 0.2758 | 0.2460 | 0.2462 | 0.2319 | 0 | 0 |
# | **one** | 0.2175 | 0.1983 | 0.1984 | 0.1888 | 0.1971 | 0 |
# | **step** | 0.1935 | 0.1663 | 0.1666 | 0.1542 | 0.1666 | 0.1529 |
#
# A tensor that you make on the way, such as a mask, must be on the scores' device.

# %% exercise="causal_softmax" points=4

# %% [markdown]
# **A bug hunt.** Here is a `causal_softmax` that somebody else wrote. You can call it, not read it. It gave the right
# weights for every sentence that it was tried on, and it still does not do what it should:

# %%
wrong = buggy("causal_softmax")
wrong(torch.tensor([[1.0, 2.0, 3.0], [-3.0, -2.0, -1.0], [0.0, 5.0, 0.0]]), 4)

# %% [markdown]
# Find scores that give it away: `scores` of shape `(T, T)` with at most twelve numbers, `float32` and finite, on which
# `wrong(scores, 4)` and the right weights differ by more than 0.001 somewhere. It hides the right places. But is
# everything hidden that is in them, whatever the other scores are?
#
# The check compares `wrong` with your own `causal_softmax`, so write that first.

# %% exercise="hunt_causal_softmax" points=2

# %%
draw(
    {
        "masked scores": lambda: masked_scores(scores, causal_mask(6)),
        "causal weights": lambda: causal_softmax(scores, 2),
    },
    words,
)

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

# **Guess first**: $p = 0.2$, and a weight of 0.4 is kept. What is it afterwards?

# %%
guess("kept_weight", ...)

# %% exercise="attention_dropout" points=4

# %% [markdown]
# A matrix of ones, twice with $p = 0.5$, and the causal weights with $p = 0.2$. Run the cell again for other draws.

# %%
draw(
    {
        "ones, p = 0.5": lambda: attention_dropout(torch.ones(6, 6), 0.5),
        "once more": lambda: attention_dropout(torch.ones(6, 6), 0.5),
        "causal, p = 0.2": lambda: attention_dropout(causal_softmax(scores, 2), 0.2),
    },
    words,
)

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
#
# **Guess first**: and if dropout hits its one weight? The value of *Your* is `[0.1855, 0.8812]`. Say its context
# vector.

# %%
guess("only_weight_dropped", ...)

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
# - A module knows whether it is being trained: `train()` and `eval()` tell it, and every `nn.Module` in it.
# - A mask that the module keeps is a *buffer* (`self.register_buffer`). A buffer is not trained, but it moves to the
#   GPU with the module. A mask made in `forward`, on the device of `x`, is right too.
#
# Built under seed 123 with `d_in = 3`, `d_out = 2` and no dropout, the context vectors are
#
# | Your | journey | starts | with | one | step |
# |---|---|---|---|---|---|
# | -.4519 .2216 | -.5874 .0058 | -.6300 -.0632 | -.5675 -.0843 | -.5526 -.0981 | -.5299 -.1081 |

# %% exercise="CausalAttention" points=6

# %%
torch.manual_seed(123)
show(lambda: CausalAttention(3, 2, 6, 0.0)(X[None]))

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
# Built under seed 123 with two heads of `d_out = 2`, the result is, a row for each word,
#
# | | head 0 | head 0 | head 1 | head 1 |
# |---|---|---|---|---|
# | **Your** | -0.4519 | 0.2216 | 0.4772 | 0.1063 |
# | **journey** | -0.5874 | 0.0058 | 0.5891 | 0.3257 |
# | **starts** | -0.6300 | -0.0632 | 0.6202 | 0.3860 |
# | **with** | -0.5675 | -0.0843 | 0.5478 | 0.3589 |
# | **one** | -0.5526 | -0.0981 | 0.5321 | 0.3428 |
# | **step** | -0.5299 | -0.1081 | 0.5077 | 0.3493 |
#
# **Guess first**: 12 heads of `d_out = 64`. How wide is the result?

# %%
guess("twelve_heads", ...)

# %% exercise="MultiHeadAttentionWrapper" points=3

# %%
torch.manual_seed(123)
show(lambda: MultiHeadAttentionWrapper(3, 2, 6, 0.0, num_heads=2)(X[None]))

# %% [markdown]
# **In real models.** GPT-2 small has a context of 1024 tokens and 12 heads of width 64 in each of its 12 layers, all of
# them causal. Of the $T^2$ scores the mask throws nearly half away; fast implementations do not compute these.

# %% [markdown]
# ## How far you are
#
# Every check of this notebook in one table, with the points that the public examples would give:

# %%
check()
