# %% [markdown]
# # Causal attention
#
# A language model learns to predict the next token. In training it is given the whole text: if a token could see later
# tokens, it would copy the answer and learn nothing. *Causal* attention hides the future: each token attends only to
# itself and to earlier tokens.
#
# In this notebook you build it step by step:
#
# 1. **the mask** that says what is hidden;
# 2. **masking after the softmax**, which needs a repair;
# 3. **masking before the softmax**, which needs none;
# 4. **dropout** on the attention weights, so that training does not rely on a few of them;
# 5. **modules**: one head, and several side by side.
#
# Write your code where it says `YOUR CODE HERE`, then run the check below it. The hidden tests, which decide the
# points, ask the same with other numbers. Pictures and numbers come from *your* functions: once you have written one,
# run the cells below it again. *Run All* works from the start. If you are stuck, `hint("causal_mask")` asks you a
# question that helps; call it again for more.

# %% [markdown]
# <details><summary>What is tested in every exercise</summary>
#
# - The output has the dtype and the device of the inputs, and the inputs are not modified. A tensor that you make, such
#   as a mask, must be on the device of the inputs, too.
# - Gradients flow to every input and parameter.
# - Large scores give no NaN, and later tokens get no weight, even if all other scores are far below zero.
# - Float64 inputs give results with float64 precision.
# - The functions may not call the library's attention (`F.scaled_dot_product_attention`, `nn.MultiheadAttention`): you
#   are writing it yourself. The two classes may.
#
# </details>

# %% locked="setup"
import math

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from attention_check import buggy, check, draw, example, explain, guess, hint, show

# %% [markdown]
# The six words again, each an embedding with three numbers, and their attention scores, computed with weights that seed
# 789 draws: row $i$ holds the scores of query $i$ with every key, $d_k = 2$.

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
# Without a mask, attention looks into the future. Here is the context vector of the first word, by the three steps of
# unit 1, before and after the *last* word is replaced:

# %%
changed = X.clone()
changed[5] = torch.tensor([0.9, 0.0, 0.0])  # instead of "step"
for name, sentence in [("with step:", X), ("with another word:", changed)]:
    shares = torch.softmax(sentence @ sentence.T, dim=-1)
    print(f"{name:19}{(shares @ sentence)[0]}")

# %% [markdown]
# *Your* comes first and should not depend on what follows, but its vector has changed. The causal mask prevents that.
#
# **Tools of this unit**
#
# | tool | what it does | example |
# |---|---|---|
# | `torch.ones(T, T)` | a matrix of ones | `dtype=` and `device=` set its dtype and device |
# | `x.tril()` | keeps the diagonal and what is below it, the rest becomes 0 | |
# | `x.triu(diagonal=1)` | keeps what is above the diagonal, the rest becomes 0 | |
# | `x.masked_fill(mask, number)` | the number wherever the mask is `True` | a `(T, T)` mask fits `(b, h, T, T)` |
# | `mask.to(x.device)` | the same tensor on the device of `x` | a mask on the CPU does not fit scores on a GPU |
# | `torch.rand_like(x)` | random numbers from 0 to 1, with the shape, dtype and device of `x` | |
# | `torch.cat([a, b], dim=-1)` | tensors side by side | `(b, T, 2)` twice is `(b, T, 4)` |
# | `nn.Dropout(p)(x)` | drops in training, and returns `x` unchanged after `eval()` | the same shape |
# | `self.register_buffer("name", x)` | a tensor that is not trained and moves with the module | `self.name` |
# | `nn.ModuleList([a, b])` | modules in a list, whose parameters are found and trained | `for a in self.list:` |
#
# A leading `...` in a shape stands for any number of dimensions.

# %% [markdown]
# ## 1. What is hidden
#
# A **causal mask** for $T$ tokens is a bool tensor of shape `(T, T)`. Row $i$ is query $i$, column $j$ is key $j$, and
# `True` means *hidden*: key $j$ comes after query $i$. Each token sees itself, so the diagonal is `False`. For three
# tokens:
#
# | | key 0 | key 1 | key 2 |
# |---|---|---|---|
# | query 0 | `False` | `True` | `True` |
# | query 1 | `False` | `False` | `True` |
# | query 2 | `False` | `False` | `False` |
#
# **Guess first**: for six tokens, how many of the 36 elements are `True`?

# %%
guess("hidden_places", ...)

# %% exercise="causal_mask" points=2

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Any number of tokens, one included. The mask has dtype bool.
#
# </details>

# %%
draw({"causal mask: 1 is hidden": lambda: causal_mask(6)}, words)

# %% [markdown]
# You will see two ways to write this mask. `torch.tril` of ones keeps the lower triangle: then 0 means *hidden*.
# `torch.triu` of ones with `diagonal=1` keeps what is above the diagonal: then 1 means *hidden*.
#
# Before you pass a mask to a function, read what `True` means there. Here, and in `nn.MultiheadAttention`, it means
# *hidden*. In `F.scaled_dot_product_attention` it means the opposite: *takes part*.

# %% [markdown]
# ## 2. Masking after the softmax
#
# The obvious way is to take the attention weights and set those of later tokens to zero. But then the rows no longer
# sum to 1: the first query keeps only its weight for itself. So each row is divided by the sum of what is left in it:
#
# $$\alpha'_{ij} = \frac{\alpha_{ij}}{\sum_{k \le i} \alpha_{ik}} \quad \text{for } j \le i, \qquad \alpha'_{ij} = 0
# \quad \text{for } j > i$$
#
# `weights` is `(T, T)`, each row a softmax. For the weights below, the second row, *journey*, becomes
# `0.5517 0.4483 0 0 0 0`.

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
# **Guess first**: after that, which weight does *Your*, the first word, have for itself?

# %%
guess("first_row", ...)

# %% exercise="renormalized_causal_weights" points=3

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Any number of tokens, one included. Rows with nearly all of their weight on later tokens sum to 1, too.
#
# </details>

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
# It is shorter, and safer for large scores, to set the hidden *scores* to $-\infty$. Softmax turns them into
# $e^{-\infty} = 0$, and the rest of the row sums to 1 without further steps.
#
# First only the masking. `scores` is `(..., T, T)`, `mask` is a bool tensor `(T, T)`, `True` where hidden. One mask is
# used for every sequence and head. Do not modify the given scores: an operation whose name ends in `_` would.
#
# **Guess first**: suppose hidden scores were set to 0, not to $-\infty$. Would a hidden key get the weight 0? Guess
# `"yes"` or `"no"`.

# %%
guess("zero_score", ...)

# %% exercise="masked_scores" points=3

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Any bool mask, not only the causal one, with one mask for all leading dimensions of the scores.
# - A visible score of 0 stays 0.
#
# </details>

# %% [markdown]
# Then all steps: causal mask, division by $\sqrt{d_k}$, softmax over the keys. `scores` is `(..., T, T)`. The scores of
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

# %% exercise="causal_softmax" points=4

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Several values of `d_k`, and any number of leading dimensions, also of equal sizes or of size 1.
# - A score of 0 is treated like any other score.
#
# </details>

# %%
draw({"masked scores": lambda: masked_scores(scores, causal_mask(6))}, words)

# %%
draw({"causal weights": lambda: causal_softmax(scores, 2)}, words)

# %% [markdown]
# **A bug hunt.** Somebody else wrote this `causal_softmax`. You can call it, but not read it. It gave the right weights
# for every sentence on which it was tried, as for these scores:

# %%
wrong = buggy("causal_softmax")
tried = torch.tensor([[1.0, 2.0, 3.0], [-3.0, -2.0, -1.0], [0.0, 5.0, 0.0]])
show({"the wrong causal_softmax": lambda: wrong(tried, 4)})

# %% [markdown]
# Find scores for which its result is wrong: `scores` of shape `(T, T)`. It masks the right elements. But does a masked
# element always get the weight 0, for any scores in the rest of its row?

# %% exercise="hunt_causal_softmax" points=2

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - The input has at most twelve numbers, all finite, dtype float32.
# - `wrong(scores, 4)` and the right weights differ by more than 0.001 in at least one element.
#
# </details>

# %% [markdown] written="why_mask_before_softmax" points=3
# **In your own words** (a few sentences, read by a person): why are scores masked with $-\infty$ *before* the softmax?
# Say what is wrong with weights that are set to zero after it and then used as they are.

# %% [markdown]
# ## 4. Dropout
#
# In training, **dropout** sets each attention weight to zero with probability $p$, independently of the others. Each
# call draws again. So no token can rely on a single other token. The kept weights are divided by $1 - p$, so that the
# expected sum of a row stays the same. Outside training, nothing is dropped and nothing is divided.
#
# `weights` may have any shape, $0 \le p < 1$. You may use PyTorch's own dropout, or `torch.rand`.
#
# **Guess first**: $p = 0.2$, and a weight of 0.4 is kept. What does it become?

# %%
guess("kept_weight", ...)

# %% exercise="attention_dropout" points=4

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - The share of dropped weights, for several `p`, with room for chance. Sequences, queries and keys do not share a
#   pattern, and two calls drop different weights.
# - Gradients of the kept weights are divided by $1 - p$, too; those of the dropped weights are 0.
# - With `p = 0` or `training=False` nothing is dropped or divided.
#
# </details>

# %% [markdown]
# A matrix of ones, twice with $p = 0.5$. Run the cell again for other random draws.

# %%
draw(
    {
        "ones, p = 0.5": lambda: attention_dropout(torch.ones(6, 6), 0.5),
        "the same call again": lambda: attention_dropout(torch.ones(6, 6), 0.5),
    },
    words,
)

# %%
draw(
    {
        "causal weights": lambda: causal_softmax(scores, 2),
        "dropped, p = 0.2": lambda: attention_dropout(causal_softmax(scores, 2), 0.2),
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
# The first token sees only itself, so its context vector is its own value.
#
# **Guess first**: what if dropout drops its only weight? The value of *Your* is `[0.1855, 0.8812]`. Enter its context
# vector.

# %%
guess("only_weight_dropped", ...)

# %% exercise="causal_head" points=3

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Any numbers of sequences and tokens and any width, also equal ones and 1.
# - A token's result does not change if later tokens change. A query of zeros gives equal weight to all keys it sees.
#
# </details>

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
# - `train()` and `eval()` switch a module, and every `nn.Module` in it, between training and evaluation.
# - Store a mask as a *buffer* (`self.register_buffer`): a buffer is not trained, but moves to the GPU with the module.
#   Or make the mask in `forward`, on the device of `x`.
#
# Built under seed 123 with `d_in = 3`, `d_out = 2` and no dropout, the context vectors are
#
# | Your | journey | starts | with | one | step |
# |---|---|---|---|---|---|
# | -.4519 .2216 | -.5874 .0058 | -.6300 -.0632 | -.5675 -.0843 | -.5526 -.0981 | -.5299 -.1081 |

# %% exercise="CausalAttention" points=6

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - The parameters have these names and shapes, and different seeds give different weights.
# - With given weights, the right context vectors: for one token, for `T` below `context_length`, for `d_in` and `d_out`
#   that differ or are equal, and for several calls.
# - With `qkv_bias=True`, the result uses the biases, and gradients reach them.
# - In training, weights are dropped after the softmax, each independently, and different ones in each call. After
#   `eval()`, none are.
# - After `.to(torch.float64)` the result has float64 precision, and the module, with its mask, works on another device.
#
# </details>

# %%
torch.manual_seed(123)
show({"context vectors": lambda: CausalAttention(3, 2, 6, 0.0)(X[None])})

# %% [markdown]
# ## 6. Several heads
#
# One head makes one set of weights for each token. Several heads, each with its own projections, can attend to several
# things at once. Their context vectors are put **side by side**: the result is `num_heads` times as wide as one head's.
#
# `MultiHeadAttentionWrapper` stores `num_heads` of *your* `CausalAttention` modules in an `nn.ModuleList` called
# `heads`. Each takes all of `x` and returns `(b, T, d_out)`. Together that is `(b, T, num_heads * d_out)`, with head 0
# first.
#
# Built under seed 123 with two heads of `d_out = 2`, the result is
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

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - The same as for `CausalAttention`, which has to be right for this one to be right. The parameters are named
#   `heads.0.W_query.weight` and so on.
# - In training, each head drops weights independently of the other heads.
#
# </details>

# %%
torch.manual_seed(123)
show({"heads 0 and 1": lambda: MultiHeadAttentionWrapper(3, 2, 6, 0.0, 2)(X[None])})

# %% [markdown]
# **In real models** of this kind every layer has several causal heads. Dropout on the attention weights was common in
# early models; large models are often trained without it.
#
# | model | what | source |
# |---|---|---|
# | GPT (2018) | 12 layers, 12 heads, dropout on attention weights with $p = 0.1$ | Radford et al., 2018 |
# | GPT-2 small | 12 layers, 12 heads of width 64, 1024 tokens | Radford et al., 2019, and its published code |
# | PaLM | trained without dropout | Chowdhery et al., 2022 |
#
# The causal mask discards nearly half of the $T^2$ scores. FlashAttention-2 works on blocks of scores and skips the
# blocks in which all are hidden (Dao, 2023).

# %% [markdown]
# ## How far you are
#
# Do you know your own code? If there are questions about your lines, a check that passes ends with a call like
# `explain("CausalAttention")`. It asks for the shape of a line's result, where an input is used first, or what an edit
# would change. It is not graded.
#
# Every check of this notebook in one table, with the points that the public examples would give:

# %%
check()
