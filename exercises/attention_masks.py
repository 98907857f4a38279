# %% [markdown]
# # Batches, order, other sentences
#
# So far attention had one sentence at a time, or several of equal length. Real data are different: sentences have
# different lengths, some texts are too long for every token to see every other one, and words have an order, which
# attention by itself ignores. In this notebook you build
#
# 1. **batches** of sentences of different lengths, with masks that hide the padding;
# 2. **windows**: each token sees only a few tokens before it, but more of them through several layers;
# 3. **order**: you see that attention ignores it, and add it in two ways, with ALiBi and with rotary embeddings;
# 4. **other sentences**: attention from one sentence to another, and a small translator that learns with it.
#
# Write your code where it says `YOUR CODE HERE`, then run the check below it. The hidden tests, which decide the
# points, ask the same with other numbers. Pictures and numbers come from *your* functions: once you have written one,
# run the cells below it again. *Run All* works from the start. If you are stuck, `hint("padding_mask")` asks you a
# question that helps; call it again for more. In this notebook a mask is a bool tensor, and **`True` means hidden**. A
# leading `...` in a shape stands for any number of dimensions.

# %% [markdown]
# <details><summary>What is tested in every exercise</summary>
#
# - A result that is computed from float tensors has their dtype (`float32` and `float64` are tested, half precision is
#   not). A mask is a bool tensor. Every result is on its inputs' device.
# - Inputs are not modified, and gradients flow back to every input and parameter.
# - The functions may not call the library's attention (`F.scaled_dot_product_attention`, `nn.MultiheadAttention`),
#   because you are writing it. The class `CrossAttention` may.
#
# </details>

# %% locked="setup"
import math
from collections.abc import Callable

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from attention_check import buggy, check, draw, example, explain, guess, hint, show

# %% [markdown]
# The six words once more:

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
# Why masks? *Your journey starts* alone, and filled up to six tokens. The result of *Your*, without a mask:


# %%
def first_result(sentence: torch.Tensor) -> torch.Tensor:
    """Self-attention without a mask: the result of the first word, (3,)."""
    weights = torch.softmax(sentence @ sentence.T / math.sqrt(3), dim=-1)
    return weights[0] @ sentence


print("alone:                    ", first_result(X[:3]))
filled_up = torch.cat([X[:3], torch.full((3, 3), 0.9)])
print("with three padding tokens:", first_result(filled_up))

# %% [markdown]
# Padding has changed the result. A mask prevents that.
#
# **Tools of this unit**
#
# | tool | what it does | shapes |
# |---|---|---|
# | `torch.arange(n)` | 0, 1, 2, ... n - 1; `device=` places it | `(n,)` |
# | `a[:, None]` | a new dimension of size 1, which broadcasts | `(b,)` becomes `(b, 1)` |
# | `a >= b`, `a \| b`, `a & b`, `~a` | comparison; or, and, not of bool tensors | `(b, 1) >= (n,)` is `(b, n)` |
# | `x.masked_fill(mask, number)` | the number wherever the mask is `True` | a mask that broadcasts to `x` |
# | `mask.all(dim=-1, keepdim=True)` | `True` if a whole row is `True` | `(T, T)` becomes `(T, 1)` |
# | `x[..., 0::2]`, `x[..., 1::2]` | every second element, from the first or second on | `(T, 6)` becomes `(T, 3)` |
# | `torch.stack([a, b], dim=-1)` | tensors side by side in a new dimension | `(T, 3)` twice is `(T, 3, 2)` |
# | `x.flatten(-2)` | the last two dimensions as one | `(T, 3, 2)` becomes `(T, 6)` |

# %% [markdown]
# ## 1. Sentences of different lengths
#
# A batch is one tensor, so its sentences must have one length. Short sentences are filled up with a *padding* token,
# which has an embedding like any other. Here are three sentences of six, three and two words in a batch of shape `(3,
# 6, 3)`, and the second of them:

# %% locked="batch"
lengths = torch.tensor([6, 3, 2])
pad = torch.tensor([0.9, 0.9, 0.9])
batch = pad.repeat(3, 6, 1)
batch[0] = X
batch[1, :3] = X[:3]  # Your journey starts
batch[2, :2] = X[4:]  # one step
batch[1]

# %% [markdown]
# `padding_mask(lengths, max_len)` gives the mask: `True` at position $p$ of a sentence of length $n$ if $p \ge n$. Its
# width is `max_len`, which is at least the longest length.
#
# **Guess first**: how many of the 18 positions of the batch are padding?

# %%
guess("padding_places", ...)

# %% exercise="padding_mask" points=3

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - The mask is always `max_len` wide, even if every sentence is shorter. A sentence may be empty.
#
# </details>

# %%
show({"mask of the batch": lambda: padding_mask(lengths, 6)})

# %% [markdown]
# Now attention with any mask. Query $i$ attends to the keys that it sees, and to no other:
#
# $$\alpha_{ij} = \frac{e^{s_{ij}}}{\sum_{k \text{ seen by } i} e^{s_{ik}}} \quad \text{if } i \text{ sees } j, \qquad
# \alpha_{ij} = 0 \quad \text{if not}, \qquad s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_k}}$$
#
# As in *Attention Is All You Need* (Vaswani et al., 2017), hidden scores become $-\infty$ before the softmax. Two
# things are new here.
#
# - **Masks broadcast.** A mask may be smaller than the scores, `(..., Tq, Tk)`. `(b, 1, Tk)` hides the same keys from
#   all queries of a sentence, `(Tq, Tk)` is one for all sentences, `(b, 1, 1, Tk)` serves several heads.
# - **A query may see no key at all**, in an empty sentence for instance. Then its result is **zeros**, and no gradient
#   may be NaN. Replacing a NaN in the result is too late: the gradient of the values is NaN then, because $0 \cdot
#   \text{NaN}$ is NaN. After *adding* a mask of $-\infty$ to the scores, replacing the NaN in the weights is too late,
#   too. So produce none: give blind rows finite scores, and set their weights to 0 afterwards.
#
# **Guess first**: what does softmax give for a row of only $-\infty$: `"zeros"`, `"equal weights"` or `"nan"`?

# %%
guess("row_of_minus_infinity", ...)

# %% exercise="masked_attention" points=7

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - One query, several queries, or all queries of a sentence may see no key.
# - Scores may be in the thousands, and hidden keys may have by far the largest.
#
# </details>

# %% [markdown]
# The weights of *Your journey starts* in the batch, with a mask that hides nothing, and with yours. (Each key's value
# is one-hot, so the result *is* the weights.)

# %%
nothing_hidden = torch.zeros(1, 6, dtype=torch.bool)


def weights_in_batch(mask: torch.Tensor) -> torch.Tensor:
    """Return the weights of the second sentence, (6, 6)."""
    return masked_attention(batch[1], batch[1], torch.eye(6), mask)


draw(
    {
        "padding takes part": lambda: weights_in_batch(nothing_hidden),
        "padding hidden": lambda: weights_in_batch(padding_mask(lengths, 6)[1:2]),
    },
    [*words[:3], "pad", "pad", "pad"],
)

# %% [markdown]
# The rows of the padding are there too. They do no harm: no word attends to them, and their results are thrown away.
#
# A sentence must give the same result alone and in any batch. The largest difference between the results of *Your
# journey starts* alone and with more and more padding:


# %% drawing=true
def draw_leak() -> None:
    """Draw how padding changes a sentence's results, if it is seen and if hidden."""
    sentence = X[:3]
    alone = masked_attention(sentence, sentence, sentence, nothing_hidden[:, :3])
    moved: dict[str, list[float]] = {"padding takes part": [], "padding hidden": []}
    for more in range(13):
        padded = torch.cat([sentence, pad.expand(more, 3)])
        hidden = padding_mask(torch.tensor([3]), 3 + more)
        for title, mask in zip(moved, (torch.zeros_like(hidden), hidden), strict=True):
            result = masked_attention(padded, padded, padded, mask)[:3]
            moved[title].append(float((result - alone).abs().max()))
    _, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
    for (title, distances), style in zip(moved.items(), ("o-", "s-"), strict=True):
        ax.plot(distances, style, label=title)
    ax.set_xlabel("padding tokens")
    ax.set_ylabel("largest difference")
    ax.legend()
    plt.show()


show(draw_leak)

# %% [markdown]
# Every project that pads should have this test, because no error is raised when padding leaks. The loss only gets a
# little worse, and results depend on the other sentences of the batch.
#
# PyTorch's fast `F.scaled_dot_product_attention` takes a bool mask too, with the opposite meaning: `True` means that a
# key **takes part**. (In `nn.MultiheadAttention`, `True` means hidden, as here.) `to_sdpa_mask` turns one into the
# other.
#
# **Guess first**: if you forget it, which keys do the words of a padded sentence attend to, `"words"` or `"padding"`?

# %%
guess("forgotten_to_turn", ...)

# %% exercise="to_sdpa_mask" points=2


# %%
def difference_to_the_library() -> float:
    """Compare your attention with PyTorch's, for the whole batch."""
    hidden = padding_mask(lengths, 6)[:, None]  # (3, 1, 6)
    own = masked_attention(batch, batch, batch, hidden)
    theirs = F.scaled_dot_product_attention(batch, batch, batch, to_sdpa_mask(hidden))
    return float((own - theirs).abs().max())


show({"largest difference to PyTorch": difference_to_the_library})

# %% [markdown]
# ## 2. A window
#
# $T$ tokens have $T^2$ scores: a text ten times as long has a hundred times as many. A **window** limits them. Mistral
# 7B (Jiang et al., 2023), which writes from left to right, lets a token see itself and the `window - 1` tokens before
# it, and so does your mask: key $j$ is hidden from query $i$ if it comes later, $j > i$, or is too far back, $i - j
# \ge$ `window`. (A mask alone saves nothing: fast code skips the scores that it hides.)
#
# **Guess first**: six tokens and a window of 3. How many of the 36 elements of the mask are *seen*?

# %%
guess("window_places", ...)

# %% exercise="sliding_window_mask" points=3

# %% [markdown]
# In a second layer a token reads tokens of its window that have already read *their* windows in the first: the reach
# grows with the depth. Other models have a window in some layers only: gpt-oss ([OpenAI,
# 2025](https://arxiv.org/abs/2508.10925)) one of 128 tokens in every second layer. On the left what a window of 3 lets
# a token see, on the right what reaches it through two layers.
#
# **Guess first**: through two layers with a window of 3, how many tokens back can a token reach?

# %%
guess("reach", ...)


# %%
def seen_through_two_layers() -> torch.Tensor:
    """Return 1 if two layers lead from a key to a query, (6, 6)."""
    seen = (~sliding_window_mask(6, 3)).float()
    return (seen @ seen).clamp(max=1)


draw(
    {
        "one layer, window of 3": lambda: ~sliding_window_mask(6, 3),
        "two layers": seen_through_two_layers,
    },
    words,
)

# %% [markdown]
# ## 3. Order
#
# *The dog bit the man* and *the man bit the dog* have the same words. Does attention tell them apart? Each context
# vector is a weighted **sum**, and a sum does not depend on the order of its terms.
#
# `permuted_outputs(attention, x, order)` finds out. It shuffles a sequence `x`, `(b, T, d_in)`, so that token
# `order[i]` comes $i$-th, lets `attention` turn that into `(b, T, d_out)`, and puts the outputs back, so that each is
# at its token's position in `x`. `order` is a permutation of 0 to $T - 1$. `attention` is any function: call it only
# once, with all sentences of the batch, shuffled.
#
# **Guess first**: without a mask, does shuffling the sentence change a token's result? Guess `"yes"` or `"no"`.

# %%
guess("shuffled_sentence", ...)

# %% exercise="permuted_outputs" points=4

# %% [markdown]
# How far each word's result moves when the words are shuffled, without a mask and with a causal one (a window over the
# whole text):


# %% drawing=true
def without_a_mask(x: torch.Tensor) -> torch.Tensor:
    """Every token sees every other one."""
    return masked_attention(x, x, x, torch.zeros(1, 1, dtype=torch.bool))


def causal(x: torch.Tensor) -> torch.Tensor:
    """Every token sees itself and those before it."""
    num_tokens = x.shape[-2]
    return masked_attention(x, x, x, sliding_window_mask(num_tokens, num_tokens))


def draw_shuffled() -> None:
    """Draw how far each word's result moves when the sentence is shuffled."""
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    moved = {}
    for title, attention in [("no mask", without_a_mask), ("causal mask", causal)]:
        put_back = permuted_outputs(attention, X[None], order)[0]
        moved[title] = (put_back - attention(X[None])[0]).norm(dim=-1)
    _, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
    for (title, distances), shift in zip(moved.items(), (-0.2, 0.2), strict=True):
        bars = ax.bar(torch.arange(6) + shift, distances, width=0.4, label=title)
        ax.bar_label(bars, fmt="%.2f", fontsize=8)
    ax.set_xticks(range(6), words)
    ax.set_ylabel("distance moved")
    ax.set_ylim(0, 0.5)
    ax.legend(ncols=2, loc="upper left")
    plt.show()


show(draw_shuffled)

# %% [markdown]
# Without a mask nothing moves: attention treats a sentence as a bag of words. In one layer with a causal mask a token's
# result depends on which tokens come before it, but not on which of them are near. Two layers can tell more: if the
# first two words swap, both get another result in the first layer, and so the last word does in the second.

# %% [markdown] written="why_order" points=3
# **In your own words** (a few sentences, read by a person): why does attention without a mask give each token the same
# result, however its sentence is shuffled? Why is that different with a causal mask, and what does one layer of causal
# attention still not know without embeddings of positions?

# %% [markdown]
# ### ALiBi: distance lowers the score
#
# The simplest way to tell near from far is to lower the score with the distance. ALiBi (*Train Short, Test Long*, Press
# et al., 2021) adds a bias to the scores before the softmax, which is never trained:
#
# $$b^{(n)}_{ij} = -2^{-8n/h}\,(i - j) \quad \text{for } j \le i, \qquad n = 1, \dots, h$$
#
# It is for head $n$, query $i$ and key $j$. Each of the $h$ heads has its own slope. For eight heads they are $\frac12,
# \frac14, \frac18, \dots, \frac1{256}$: the first head prefers near tokens most, the last one hardly. $h$ is a power of
# two. Above the diagonal, where a causal mask hides the scores anyway, the bias is 0. The result is `(h, T, T)`,
# `float32`.
#
# **Guess first**: in the third of eight heads, what is the bias of a key four tokens back?

# %%
guess("third_head", ...)

# %% exercise="alibi_bias" points=5

# %% [markdown]
# Of eight heads: the bias of the first and of the fourth, and the causal weights of the first and of the last, if all
# scores are equal:


# %%
def alibi_weights(head: int) -> torch.Tensor:
    """Return the weights of a head whose scores are all 0, (6, 6)."""
    hidden = sliding_window_mask(6, 6)
    return torch.softmax(alibi_bias(8, 6)[head].masked_fill(hidden, -torch.inf), -1)


draw(
    {
        "bias, head 1": lambda: alibi_bias(8, 6)[0],
        "bias, head 4": lambda: alibi_bias(8, 6)[3],
    },
    words,
)
draw(
    {
        "weights, head 1": lambda: alibi_weights(0),
        "weights, head 8": lambda: alibi_weights(7),
    },
    words,
)

# %% [markdown]
# ALiBi's bias makes far tokens count little, so texts longer than those of the training change little. In the paper a
# model with 1.3 billion parameters, trained on 1024 tokens, is as good on 2048 as a model with sinusoidal positions
# (unit 8) that was trained on 2048.

# %% [markdown]
# <details><summary>FlexAttention takes masks and biases as functions</summary>
#
# Your masks and biases are tensors with an element for each pair of tokens. PyTorch's *FlexAttention* takes two
# functions of the positions instead. `mask_mod` says whether query `q_idx` sees key `kv_idx`; as in the result of
# `to_sdpa_mask`, `True` means that the key **takes part**. `score_mod` changes one score, which is already divided by
# $\sqrt{d}$. Here are both for causal attention with ALiBi:
#
# ```python
# from torch.nn.attention.flex_attention import create_block_mask, flex_attention
#
# slopes = -alibi_bias(num_heads, 2)[:, 1, 0]  # where the distance is 1
#
#
# def causal(b, h, q_idx, kv_idx):
#     return q_idx >= kv_idx
#
#
# def alibi(score, b, h, q_idx, kv_idx):
#     return score - slopes[h] * (q_idx - kv_idx)
#
#
# block_mask = create_block_mask(causal, None, None, T, T, device="cpu")
# output = flex_attention(queries, keys, values, score_mod=alibi, block_mask=block_mask)
# ```
#
# The result is that of `queries @ keys.mT / math.sqrt(d) + alibi_bias(num_heads, T)`, masked, with softmax and values.
# For your window, `causal` returns `(q_idx >= kv_idx) & (q_idx - kv_idx < window)`.
#
# With PyTorch 2.13 this code runs on a CPU, and makes the whole matrix of scores. `torch.compile(flex_attention)`
# makes one kernel of it instead, which can skip blocks that are hidden completely. That needs a compiler, so this
# notebook runs neither.
#
# </details>

# %% [markdown]
# ### Rotary embeddings: angles
#
# RoFormer (Su et al., 2021) **rotates** queries and keys. The elements of a head are taken in pairs of neighbours, 0
# and 1, 2 and 3, and so on. Each pair is a point in the plane, and at position $p$ pair $m$ is rotated by the angle
# $p\,\theta_m$:
#
# $$\begin{pmatrix} x'_{2m} \\ x'_{2m+1} \end{pmatrix} =
# \begin{pmatrix} \cos p\theta_m & -\sin p\theta_m \\ \sin p\theta_m & \cos p\theta_m \end{pmatrix}
# \begin{pmatrix} x_{2m} \\ x_{2m+1} \end{pmatrix}, \qquad \theta_m = \text{base}^{-2m/d}, \quad
# m = 0, \dots, \tfrac d2 - 1$$
#
# where $d$ is the width of a head. The first pair rotates by one radian per position, the last by a tiny angle. At
# position 1 the vector `[1, 0, 1, 0]` becomes `[.5403, .8415, .99995, .0100]`.
#
# `rotary_embedding(x, positions)` does this for `x` of shape `(..., T, head_dim)`; `positions`, `(T,)`, has the
# position of each token. It need not begin at 0: when a model writes text, it rotates one new token at a time, at
# position 6, then 7, then 8, and keeps the keys of the others as they are. The result has the dtype of `x`.
#
# **Guess first**: `head_dim` is 4. By what angle is the second pair rotated at position 100?

# %%
guess("second_pair", ...)

# %% exercise="rotary_embedding" points=6

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Positions may be in any order. Another `base` is tested, too.
# - Compute the angles in `float32`, or in `float64` if `x` is `float64`: results in `float64` must be exact, even at
#   position 4000. (Half precision is not tested here, but too coarse for angles: `bfloat16` rounds 4001 to 4000.)
#
# </details>

# %% [markdown]
# The two pairs of `[1, 0, 1, 0]` at positions 0 to 6. Below, the scores of six equal queries with six equal keys, at
# positions $p$ to $p + 5$: each depends only on the **distance**, because rotating both by the same angle changes no
# dot product.


# %% drawing=true
def draw_turned() -> None:
    """Draw the two pairs of [1, 0, 1, 0] at positions 0 to 6."""
    positions = torch.arange(7)
    x = torch.tensor([1.0, 0.0, 1.0, 0.0]).repeat(7, 1)
    turned = rotary_embedding(x, positions)
    _, axes = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained")
    for pair, ax in enumerate(axes):
        across, up = turned[:, 2 * pair].tolist(), turned[:, 2 * pair + 1].tolist()
        ax.add_patch(plt.Circle((0, 0), 1, fill=False, edgecolor="lightgrey"))
        ax.scatter(across, up, c=range(7), cmap="viridis")
        labels = ["0 to 6"] if pair else list(map(str, range(7)))
        for position, label in enumerate(labels):
            far = 0.7 if pair else 1.15
            spot = far * across[position], far * up[position]
            ax.text(*spot, label, ha="center", va="center")
        ax.set_title(f"pair {pair}: elements {2 * pair}, {2 * pair + 1}", fontsize=10)
        ax.set_xlim(-1.4, 1.4)
        ax.set_ylim(-1.4, 1.4)
        ax.set_aspect("equal")
    plt.show()


show(draw_turned)


# %%
def rotary_scores(first: int) -> torch.Tensor:
    """Scores of equal queries and keys at six positions from `first` on, (6, 6)."""
    positions = torch.arange(first, first + 6)
    same = torch.tensor([1.0, 0.5, -0.5, 1.0]).repeat(6, 1)
    turned = rotary_embedding(same, positions)
    return turned @ turned.T


draw(
    {
        "p = 0": lambda: rotary_scores(0),
        "p = 90": lambda: rotary_scores(90),
    },
    ["p", *(f"p + {distance}" for distance in range(1, 6))],
)

# %% [markdown]
# **A bug hunt.** Here is a `rotary_embedding` that somebody else wrote. It keeps the length of every vector, and for
# `torch.randn(T, head_dim)` at the positions `torch.arange(T)` its results are right. A model that uses it answers
# questions of a few sentences, and writes nonsense about a book. Its result for `[3, 4]` at position 1 is right:

# %%
wrong = buggy("rotary_embedding")
wrong(torch.tensor([[3.0, 4.0]]), torch.tensor([1]))

# %% [markdown]
# Find an input that gives it away: `x`, `(T, head_dim)`, `float32`, and `positions`, `(T,)`, `int64`, with at most
# twelve elements together, for which `wrong(x, positions)` and the right result differ by more than 0.001 somewhere.
# Return both: `return x, positions`.

# %% exercise="hunt_rotary_embedding" points=2

# %% [markdown]
# Both ways of pairing are in use: neighbours, and element $m$ with element $m + d/2$ (*half rotation*). Either is fine,
# if training and use agree. Beyond a full turn the angles of a pair repeat, so a larger base leaves room for longer
# texts.
#
# **In real models**
#
# | what | model | figure | source |
# |---|---|---|---|
# | window | Mistral 7B v0.1 | 4096 tokens | Jiang 2023 |
# | window, and a few tokens that see all | Longformer | 256 tokens on each side | Beltagy 2020 |
# | pairs of neighbours | RoFormer | elements $2m$ and $2m + 1$ | Su 2021 |
# | element $m$ with $m + d/2$ | Llama in the library Transformers | `rotate_half` | its `modeling_llama.py` |
# | base 10,000 | RoFormer | with $d$ = 128, a full turn of the slowest pair takes 54,000 tokens | by the formula |
# | base 500,000 | Llama-3-8B | with $d$ = 128, it takes 2.6 million tokens | Grattafiori 2024 |
#
# [Jiang 2023](https://arxiv.org/abs/2310.06825), [Beltagy 2020](https://arxiv.org/abs/2004.05150),
# [Su 2021](https://arxiv.org/abs/2104.09864), [Grattafiori 2024](https://arxiv.org/abs/2407.21783).

# %% [markdown]
# ## 4. Another sentence
#
# A translator reads one sentence and writes another. For each word that it writes it must look at the words that it
# reads. In **cross-attention** (it came before self-attention: Bahdanau et al., 2014) the queries come from one
# sentence, and keys and values from the other, the *context*:
#
# | step | shape |
# |---|---|
# | `x`, the sentence of the queries | `(b, T, d_query)` |
# | `context`, the sentence of the keys and values | `(b, T_context, d_context)` |
# | queries: `W_query(x)`, split into heads | `(b, h, T, hd)` |
# | keys and values: `W_key(context)`, `W_value(context)`, split into heads | `(b, h, T_context, hd)` |
# | weights: scores divided by $\sqrt{\text{hd}}$, softmax over the context | `(b, h, T, T_context)` |
# | context vectors of the heads, merged | `(b, T, d_out)` |
# | the layer `out_proj` | `(b, T, d_out)` |
#
# - The docstring below names the `nn.Linear` layers. Create them in its order. `hd = d_out / num_heads`. An `assert` is
#   accepted instead of the `ValueError`.
# - `context_mask` is a bool tensor of shape `(b, T_context)`, as `padding_mask` makes it, `True` if a position is
#   hidden; or `None`, which hides nothing. There is no causal mask: the whole context is there from the beginning.
# - If a sentence's whole context is hidden, its heads give zeros, so the result is the bias of `out_proj`.
#
# For the step in the middle, call your `masked_attention` or `F.scaled_dot_product_attention`.
#
# **Guess first**: `x` is `(2, 4, 5)`, `context` `(2, 6, 7)`, and there are 3 heads. Which shape do the scores have?
# Enter a list.

# %%
guess("shape_of_scores", ...)

# %% exercise="CrossAttention" points=10

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - No call depends on an earlier one, with or without a mask, in training or evaluation.
# - No gradient is NaN, even if a whole context is hidden.
#
# </details>

# %% [markdown]
# Built under seed 123 with `d_query = 3`, `d_context = 2`, `d_out = 4` and two heads, these are the results of the six
# words for the context of four words below:
#
# | | | | | |
# |---|---|---|---|---|
# | **Your** | -0.1162 | 0.1385 | -0.2401 | -0.0191 |
# | **journey** | -0.1234 | 0.1359 | -0.2381 | -0.0260 |
# | **starts** | -0.1232 | 0.1360 | -0.2382 | -0.0258 |
# | **with** | -0.1160 | 0.1382 | -0.2400 | -0.0191 |
# | **one** | -0.1147 | 0.1388 | -0.2404 | -0.0179 |
# | **step** | -0.1185 | 0.1374 | -0.2393 | -0.0215 |

# %%
other = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.6, 0.7], [0.1, 0.3]])
torch.manual_seed(123)
show({"yours": lambda: CrossAttention(3, 2, 4, num_heads=2)(X[None], other[None])})

# %% [markdown]
# ### A translator
#
# Now let it learn. English sentences are made of a few words, `[today] the [red] cat sleeps [here] .`, and have four to
# seven tokens. In French the adjective comes after the noun: *the red cat sleeps*, *le chat rouge dort*.
#
# For each French word the model reads the French word before it, and no other. That is the query; keys and values are
# the English words. So after *le* it must find the noun, and after the noun the adjective, if there is one. The model
# is trained only on pairs of sentences, without any alignment of words, and has no embeddings of positions.

# %% locked="small_language"
ENGLISH = {
    "noun": ["cat", "dog", "horse", "wolf", "fox", "rabbit"],
    "adjective": ["red", "sad", "calm", "fast", "strange"],
    "verb": ["sleeps", "runs", "waits", "eats", "sings", "falls"],
}
FRENCH = {
    "noun": ["chat", "chien", "cheval", "loup", "renard", "lapin"],
    "adjective": ["rouge", "triste", "calme", "rapide", "étrange"],
    "verb": ["dort", "court", "attend", "mange", "chante", "tombe"],
}
english_words = ["<pad>", "today", "the", "here", "."]
english_words += [word for kind in ENGLISH.values() for word in kind]
french_words = ["<pad>", "<start>", "aujourd'hui", "le", "ici", "."]
french_words += [word for kind in FRENCH.values() for word in kind]


def sentence_pair(choose: Callable[[int], int]) -> tuple[list[str], list[str]]:
    """A sentence and its translation; choose(n) gives a number from 0 to n - 1."""
    noun, verb, adjective = choose(6), choose(6), choose(5)
    english, french = [ENGLISH["noun"][noun]], [FRENCH["noun"][noun]]
    if choose(2):
        english = [ENGLISH["adjective"][adjective], *english]
        french = [*french, FRENCH["adjective"][adjective]]
    english = ["the", *english, ENGLISH["verb"][verb]]
    french = ["le", *french, FRENCH["verb"][verb]]
    if choose(2):
        english, french = ["today", *english], ["aujourd'hui", *french]
    if choose(2):
        english, french = [*english, "here"], [*french, "ici"]
    return [*english, "."], [*french, "."]


def as_batch(sentences: list[list[str]], known: list[str]) -> torch.Tensor:
    """Return the indices of the words, with padding, which is 0: (b, T)."""
    longest = max(map(len, sentences))
    rows = [[*map(known.index, one), *[0] * (longest - len(one))] for one in sentences]
    return torch.tensor(rows)


# %% locked="translator"
class Translator(nn.Module):
    """Scores for each next French word, from the one before and the English words."""

    def __init__(self) -> None:
        super().__init__()
        self.english = nn.Embedding(len(english_words), 16)
        self.french = nn.Embedding(len(french_words), 24)
        self.attention = CrossAttention(24, 16, 32, num_heads=1)
        self.scores = nn.Linear(32, len(french_words))

    def forward(
        self,
        english: torch.Tensor,
        lengths: torch.Tensor,
        before: torch.Tensor,
    ) -> torch.Tensor:
        """english (b, T), lengths (b,), before (b, T_fr) -> (b, T_fr, words)."""
        hidden = padding_mask(lengths, english.shape[1])
        found = self.attention(self.french(before), self.english(english), hidden)
        return self.scores(found)

    @torch.no_grad()
    def weights(self, english: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
        """Return each step's weights over the English words: (T_french, T)."""
        queries = self.attention.W_query(self.french(before))
        keys = self.attention.W_key(self.english(english))
        nothing_hidden = torch.zeros(1, len(english), dtype=torch.bool)
        one_hot = torch.eye(len(english))
        return masked_attention(queries, keys, one_hot, nothing_hidden)


def train(model: Translator, steps: int = 150) -> None:
    """Train on random sentences; padding is left out of the loss."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(steps + 1):
        pairs = [sentence_pair(lambda n: int(torch.randint(n, ()))) for _ in range(32)]
        english = as_batch([one for one, _ in pairs], english_words)
        lengths = torch.tensor([len(one) for one, _ in pairs])
        target = as_batch([other for _, other in pairs], french_words)
        before = target.roll(1, dims=1)
        before[:, 0] = french_words.index("<start>")
        scores = model(english, lengths, before)  # (32, T_french, words)
        loss = F.cross_entropy(scores.flatten(0, 1), target.flatten(), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not step % 25:
            print(f"step {step:3}: loss {loss:.3f}")


@torch.no_grad()
def translate(model: Translator, sentence: str) -> list[str]:
    """Translate word by word, always with the highest score."""
    english = as_batch([sentence.split()], english_words)
    written = ["<start>"]
    while written[-1] != "." and len(written) < 9:
        before = as_batch([written], french_words)
        scores = model(english, torch.tensor([english.shape[1]]), before)[0, -1]
        written.append(french_words[int(scores.argmax())])
    return written


def draw_alignment(model: Translator, sentence: str) -> None:
    """Draw which English words the model attends to for each French one."""
    written, asked = translate(model, sentence), sentence.split()
    english = as_batch([asked], english_words)[0]
    weights = model.weights(english, as_batch([written[:-1]], french_words)[0])
    _, ax = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
    ax.imshow(weights.numpy(), cmap="Blues", vmin=0, vmax=1)
    ax.set_xticks(range(len(asked)), asked, rotation=45)
    ax.set_yticks(range(len(written) - 1), written[1:])
    ax.set_xlabel("key: English")
    ax.set_ylabel("written: French")
    ax.set_title("attention weights, white is 0", fontsize=10)
    plt.show()


# %% [markdown]
# Some 4,500 parameters; training takes a few seconds if a processor core is free:


# %% training="train_translator"
def trained() -> None:
    """Train the model, then let it translate."""
    torch.manual_seed(0)
    model = Translator()
    train(model)
    for sentence in ["the fox waits .", "today the calm wolf sings here ."]:
        print(sentence, "->", *translate(model, sentence)[1:])
    draw_alignment(model, "today the red cat sleeps here .")


show(trained)

# %% [markdown]
# The dark cells are the alignment of the two sentences. It follows the diagonal, and crosses where *red cat* becomes
# *chat rouge*. Nobody showed the model which words belong together. Bahdanau's paper has a similar picture of a real
# translator (its figure 3).
#
# **In real models**
#
# | cross-attention | queries | keys and values | source |
# |---|---|---|---|
# | the first Transformer, each layer of its decoder | words written | words read | Vaswani 2017 |
# | Whisper, each layer of its decoder | words written | sounds | Radford 2022 |
# | Stable Diffusion | parts of a picture | words of its description | Rombach 2022 |
#
# [Vaswani 2017](https://arxiv.org/abs/1706.03762), [Radford 2022](https://arxiv.org/abs/2212.04356), [Rombach
# 2022](https://arxiv.org/abs/2112.10752).

# %% [markdown]
# ## How far you are
#
# Do you know your own code? If there are questions about your lines, a check that passes ends with a call like
# `explain("CrossAttention")`. It asks for the shape of a line's result, where an input is used first, or what an edit
# would change. It is not graded.
#
# Every check of this notebook in one table, with the points that the public examples would give:

# %%
check()
