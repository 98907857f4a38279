# %% [markdown]
# # The same attention in less memory
#
# Attention over $T$ tokens has $T^2$ scores for each head. The idea of this unit: a query does not need all its scores
# at the same time. It can read the keys block by block and keep three things: the largest score so far, a sum, and a
# weighted sum of values. In this notebook you write
#
# 1. **maximum and sum of a softmax in one pass**, over scores that come block by block;
# 2. **states** that stand for the attention to some of the keys, and can be merged;
# 3. **tiled attention**: exactly the usual result, and never a matrix of all scores. FlashAttention works like this;
# 4. **its backward pass**, which computes the weights again, so that none are kept;
# 5. **linear attention**, which is another attention: it needs no scores at all.
#
# Write your code where it says `YOUR CODE HERE`, then run the check below it. The hidden tests, which decide the
# points, ask the same with other numbers. Pictures and numbers come from *your* functions: once you have written one,
# run the cells below it again. *Run All* works from the start. If you are stuck, `hint("online_softmax")` asks you a
# question that helps; call it again for more. A leading `...` in a shape stands for any number of dimensions.

# %% [markdown]
# <details><summary>What is tested in every exercise</summary>
#
# - The output has its inputs' dtype and device (`float32` and `float64` are tested, half precision is not). Inputs are
#   not modified.
# - `tiled_attention` may not call the library's attention (`F.scaled_dot_product_attention`, `nn.MultiheadAttention`),
#   and `attention_backward` no autograd either. The other functions may call anything.
# - Gradients flow back to every tensor that a function takes, and where nothing is seen they are 0 (not tested for
#   `attention_backward`). `torch.where` can hide a NaN in the result while a gradient is still NaN: avoid producing it
#   in the first place.
# - Write `state = ...`, not `state[...] = ...`. If a tensor that autograd has saved is changed in place, `backward()`
#   raises an error that says `modified by an inplace operation`. Without that error, gradients are right.
# - Some points are for what your code costs. The check counts the elements of the largest tensor, the elements of all
#   tensors that are held at one moment, and the operations, so the result is the same on every machine. It counts under
#   `torch.no_grad()`, because autograd would keep every tile for the backward pass. The arguments do not count, the
#   result does. If a count is too large, the check prints it with its limit.
# - Grading also calls your code with large inputs ($T = 7680$, or 33 million scores in blocks) and no more than 24 to
#   48 MB of memory for your tensors, and compares the result.
# - In `merge_states` and `attention_backward` no costs are counted, and there are no large inputs.
# - Stay within PyTorch: operations in NumPy or in another thread cannot be counted, and earn no points.
#
# </details>

# %% locked="setup"
import math
from collections.abc import Callable, Iterable
from typing import Any

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from attention_check import buggy, check, draw, example, explain, guess, hint, show

# %% [markdown]
# How large are the scores? A text of 32,000 tokens, 32 heads of width 128, half precision:

# %%
elements = {"queries, keys, values": 3 * 32 * 32_000 * 128, "scores": 32 * 32_000**2}
for name, number in elements.items():
    print(f"{name} of one layer: {2 * number / 1e9:.1f} GB")

# %% [markdown]
# And yet models read such texts. They never write all scores down.
#
# **Tools of this unit**
#
# | tool | what it does | example |
# |---|---|---|
# | `x.amax(dim=-1, keepdim=True)` | the largest element of each row | `(b, T, B)` to `(b, T, 1)` |
# | `torch.maximum(a, b)` | the larger element at each position | shapes must broadcast |
# | `x.masked_fill(x == -torch.inf, 0.0)` | another value where a condition holds | |
# | `range(0, T, B)` | where blocks of `B` begin | 0, 4, 8 for $T = 10$, $B = 4$ |
# | `x[..., 8:12, :]` | rows 8 to 11, or as many as there are | 2 rows if $T = 10$ |
# | `torch.cat(blocks, dim=-2)` | blocks of rows below each other | |
# | `(x * y).sum(dim=-1, keepdim=True)` | the dot product of each row of `x` with that of `y` | `(b, T, 1)` |
# | `F.elu(x) + 1` | $x + 1$ above zero, $e^x$ below | the same shape |
#
# The six words again, each an embedding with three elements:

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
# ## 1. Maximum and sum in one pass
#
# A softmax that is safe for large scores subtracts the largest score $m$ first, and divides by the sum $\ell$:
#
# $$\operatorname{softmax}(s)_j = \frac{e^{s_j - m}}{\ell}, \qquad m = \max_j s_j, \quad \ell = \sum_j e^{s_j - m}$$
#
# This reads all scores three times: for $m$, for $\ell$, and to divide. But $m$ and $\ell$ can be found in **one pass**
# ([Milakov and Gimelshein, 2018](https://arxiv.org/abs/1805.02867)). Keep the maximum of the scores so far, and the
# sum of their exponentials relative to it. When a block brings a larger score, the old sum is relative to the wrong
# maximum, and one factor corrects it:
#
# $$m' = \max(m, \max_j s_j), \qquad \ell' = \ell \, e^{m - m'} + \sum_j e^{s_j - m'}$$
#
# where $j$ runs over the new block only. For the blocks `[1, 2]` and `[3]` the first gives $m = 2$ and $\ell = e^{-1} +
# 1 = 1.3679$; with the second $m = 3$, and $\ell$ is 1.3679 times $e^{-1}$, plus 1: `1.5032`.
#
# Blocks may have different lengths. A hidden score is $-\infty$; a block with only such scores changes nothing, even if
# it comes first. Take care: $-\infty - (-\infty)$ is NaN.
#
# `blocks` may be a generator, so you can loop over it only once. Do not collect the blocks: then all scores would be
# held at once.
#
# **Guess first**: three blocks, `[0, 0]`, `[0]` and `[0, 0, 0]`. Enter a list: maximum and sum.

# %%
guess("six_zeros", ...)

# %% exercise="online_softmax" points=5

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - There is at least one block. If all scores are $-\infty$, the result is $-\infty$ and 0.
# - Scores may be in the thousands, positive or negative.
# - No intermediate tensor is as large as two blocks, and blocks are not stored.
# - The tested gradients are those of $m + \ln \ell$, which are the same if you detach the maximum, the returned one
#   included.
#
# </details>

# %%
torch.manual_seed(3)
row = 5 * torch.randn(64) + torch.linspace(-8, 8, 64)
show({"maximum and sum of 64 scores": lambda: online_softmax(row.split(8))})

# %% drawing=true
try:
    seen = range(8, 65, 8)
    states = [online_softmax(row[:end].split(8)) for end in seen]
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 2.6), layout="constrained")
    left.plot(range(1, 65), row, ".", color="0.6", label="score")
    left.step(seen, [float(m) for m, _ in states], "o-", where="post", label="maximum")
    left.set(title="maximum after each block of 8", xlabel="scores read")
    left.legend(fontsize=8, loc="lower right")
    right.step(seen, [float(total) for _, total in states], "o-", where="post")
    right.set(title="sum after each block of 8", xlabel="scores read", ylim=(0, None))
    plt.show()
except NotImplementedError:
    print("A picture comes here once online_softmax is written.")

# %% [markdown]
# ## 2. States that can be merged
#
# Now the values. Attention to *some* of the keys gives a **state** of three tensors for each query (hv is the width of
# a value):
#
# | part | shape | what it is |
# |---|---|---|
# | `maximum` | `(..., T, 1)` | the largest score $m$ of the query among these keys |
# | `total` | `(..., T, 1)` | $\ell = \sum_j e^{s_j - m}$ |
# | `output` | `(..., T, hv)` | $o = \sum_j e^{s_j - m} v_j$, **not divided by** $\ell$ yet |
#
# Divided, $o / \ell$ is the attention to these keys only. Two states, for different keys, make one for all of them:
# rescale each to the larger maximum, then add them. If a query sees none of the keys, its state is $(-\infty, 0, 0)$,
# and merging it changes nothing. Two such states make a third one, without NaN.
#
# Merging is associative and commutative: up to rounding, neither the grouping nor the order of the parts makes a
# difference. So blocks can be computed in parallel, on several processors or GPUs.
#
# **Guess first**: a state has $m = 1$, $\ell = 1$ and $o = [2, 4]$. It is merged with itself, as if its keys were there
# twice. What is $\ell$ of the result?

# %%
guess("merged_with_itself", ...)

# %% exercise="merge_states" points=6

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Maxima may be in the thousands, far apart, equal, or $-\infty$ in one state or in both.
# - The tested gradients are those of $o / \ell$, which do not depend on the maximum taken. Simplest: call `detach`
#   nowhere. If you detach a maximum that you compute, return the detached one as part of the state, and never detach
#   the maxima that are passed in: otherwise several merges in a row have wrong gradients.
#
# </details>

# %% [markdown]
# Attention of *journey* to the first three words, to the last three, and both merged. Divided, each is a context
# vector; the last two must agree:


# %%
def state_of(keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, ...]:
    scores = X[1:2] @ keys.T / math.sqrt(3)  # (1, number of keys)
    maximum = scores.amax(dim=-1, keepdim=True)
    weights = torch.exp(scores - maximum)
    return maximum, weights.sum(dim=-1, keepdim=True), weights @ values


def divided(state: tuple[torch.Tensor, ...]) -> torch.Tensor:
    return state[2] / state[1]


first, second = state_of(X[:3], X[:3]), state_of(X[3:], X[3:])
show(
    {
        "first three words": lambda: divided(first),
        "last three words": lambda: divided(second),
        "both states merged": lambda: divided(merge_states(first, second)),
        "all six words": lambda: divided(state_of(X, X)),
    }
)

# %% [markdown] written="why_states_merge" points=3
# **In your own words** (a few sentences, read by a person): why can attention be computed block by block, though a
# softmax needs the sum over *all* keys? Say what is kept for each query, and what happens to it when a later block has
# a larger score.

# %% [markdown]
# ## 3. Tiled attention
#
# Everything is there. `queries` and `keys` are `(..., T, hd)`, `values` are `(..., T, hv)`; they are cut into blocks of
# `block_size` rows, of which the last one may be shorter. For a block of queries, loop over the blocks of keys and
# values: compute the scores of this tile, scaled by $1/\sqrt{\text{hd}}$, then its state, then merge. At the end
# divide. The result is exactly that of
#
# $$\operatorname{softmax}\!\left(\frac{Q K^\top}{\sqrt{\text{hd}}}\right) V$$
#
# but no tensor is $T \times T$, and not all tiles are held at once. A loop over the blocks of keys only, with all
# queries at once, is right too.
#
# With `causal=True` later tokens are hidden, as in unit 3: token $i$ sees the keys up to $i$. A tile that is hidden
# **completely** is not computed at all, and every other tile is computed once. That saves nearly half of the
# operations.
#
# ```
#           keys        # computed, nothing hidden
#  queries  / . . .     / on the diagonal: hidden in part
#           # / . .     . skipped
#           # # / .
#           # # # /
# ```
#
# **Guess first**: $T = 8$ and a block size of 2, causal. How many of the 16 tiles are computed?

# %%
guess("tiles_computed", ...)

# %% exercise="tiled_attention" points=9

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - No intermediate tensor has more elements than the queries, or than one column of tiles (the scores of all queries
#   with one block of keys), whichever is more; $T$ may be rounded up to whole blocks. Here hv = hd.
# - All tensors that your code holds at one moment have together fewer than $0.9\, T^2$ elements for each index of the
#   leading dimensions; the arguments do not count. The check uses $T = 70$ and blocks of 8.
# - With `causal=True`, skipped tiles are counted by operations, and no $T \times T$ mask is made.
# - $T$ need not be divisible by the block size, which may be 1 or larger than $T$.
#
# </details>

# %% [markdown]
# A trick to look inside: if the values are the identity matrix, the result *is* the weights. Your code, in blocks of 4,
# never made a matrix of them.


# %%
def weights_of(attention: Callable[..., torch.Tensor]) -> Callable[[], torch.Tensor]:
    return lambda: attention(X, X, torch.eye(6))


draw(
    {
        "tiled": weights_of(lambda q, k, v: tiled_attention(q, k, v, 4)),
        "tiled, causal": weights_of(lambda q, k, v: tiled_attention(q, k, v, 4, True)),
    },
    words,
)

# %% [markdown]
# ### Why it is faster, too
#
# Tiling saves no operations: every pair of tokens still meets. It saves **traffic**, if blocks are large. A GPU has a
# large, slow memory (HBM), and a small, fast one on the chip (SRAM). To be used, a number must travel from HBM to SRAM.
# For one head, with 2 bytes an element and blocks of $B$ queries:
#
# | | usual attention | tiled attention |
# |---|---|---|
# | operations of the two products | $4\,T^2\,\text{hd}$ | $4\,T^2\,\text{hd}$ |
# | bytes of queries and output | $4\,T\,\text{hd}$ | $4\,T\,\text{hd}$ |
# | bytes of keys and values | $4\,T\,\text{hd}$: read once | $4\,T\,\text{hd} \cdot T / B$: read for each block |
# | bytes of scores and weights | $8\,T^2$: each is written and read | 0: they stay in SRAM |
# | operations per byte, if $T$ is large | $\text{hd} / 2$ | $B$ |
#
# So tiling saves traffic if $B > \text{hd} / 2$. For $T = 4096$, hd = 64 and $B = 128$ the usual way moves 136 MB, 32
# operations per byte, and the tiled one 35 MB, 124 operations per byte. An A100 with 40 GB computes 312 trillion
# operations a second and reads 1.5 trillion bytes: 208 operations for each byte. Code with fewer operations per byte
# waits for memory. So by this count both wait, the tiled way a quarter as long; with $B = 256$ it does not wait.


# %% drawing=true
def per_byte(T: int, hd: int, B: int | None = None) -> float:
    """Operations per byte of HBM traffic; without B of the usual attention."""
    if B is None:
        return 4 * T * T * hd / (8 * T * hd + 8 * T * T)
    return 4 * T * T * hd / (4 * T * hd * (1 + math.ceil(T / B)))


sizes = [16, 32, 64, 128, 256]
figure, axes = plt.subplots(figsize=(5.5, 3), layout="constrained")
axes.plot(sizes, [per_byte(4096, 64, B) for B in sizes], "o-", label="tiled")
axes.axhline(per_byte(4096, 64), color="C1", label="usual")
axes.axhline(312 / 1.5, color="0.5", linestyle="--", label="no waiting above (A100)")
axes.set(xscale="log", yscale="log", xlabel="queries in a block", ylim=(10, 400))
axes.set(title="operations per byte of HBM traffic (T = 4096, hd = 64)")
axes.set_xticks(sizes, sizes)
axes.set_yticks([10, 30, 100, 300], [10, 30, 100, 300])
axes.minorticks_off()
axes.legend(fontsize=8)
plt.show()

# %% [markdown]
# **A bug hunt.** Here is a `tiled_attention` that somebody else wrote. You can call it, not read it. It takes
# `(T, hd)` three times. For queries, keys and values drawn by `torch.randn` its results are right, and also in this
# example, in blocks of 2:

# %%
wrong = buggy("tiled_attention")
wrong(X[:4, :1], X[:4, :1], X[:4, :1], 2)

# %% [markdown]
# Find an input that gives it away: `queries`, `keys` and `values` of shape `(T, hd)`, `float32` and finite, with at
# most twelve elements in all three **together**, for which `wrong(queries, keys, values, 2)` and the right result
# differ by more than 0.001 somewhere.

# %% exercise="hunt_tiled_attention" points=2

# %% [markdown]
# **Take a break** if you like: the forward pass is done.
#
# ## 4. The backward pass
#
# Training needs gradients too. A loss $L$ depends on the output $O$. Autograd hands attention the gradient of the loss
# with respect to $O$, written $dO$, and wants $dQ$, $dK$ and $dV$. Usually it keeps the weights $P$ of the forward pass
# for that: $T^2$ numbers for each head, in every layer, until the backward pass comes. That is the memory that tiling
# has saved.
#
# FlashAttention keeps no weights. Its backward pass **computes them again**, tile by tile, from $Q$ and $K$. That adds
# operations, and is still faster, because fewer bytes travel to and from HBM. In this exercise you write the backward
# pass for all queries and keys at once; the formulas for a tile are the same.
#
# Queries and keys have the width hd, values and $dO$ the width hv. The forward pass is $S = Q K^\top /
# \sqrt{\text{hd}}$, $P = \operatorname{softmax}(S)$ in each row, $O = P V$. Now backwards:
#
# | step | gradient | shape |
# |---|---|---|
# | $O = P V$ | $dV = P^\top dO$ | `(..., Tk, hv)` |
# | | $dP = dO\, V^\top$ | `(..., Tq, Tk)` |
# | $P = \operatorname{softmax}(S)$ | $D = \operatorname{rowsum}(dO * O)$ | `(..., Tq, 1)` |
# | | $dS = P * (dP - D)$ | `(..., Tq, Tk)` |
# | $S = Q K^\top / \sqrt{\text{hd}}$ | $dQ = dS\, K / \sqrt{\text{hd}}$ | `(..., Tq, hd)` |
# | | $dK$: the rule below gives it | `(..., Tk, hd)` |
#
# Here $*$ multiplies element by element. Each product of matrices has the same rule: for $C = A B$ the
# gradients are $dA = dC\, B^\top$ and $dB = A^\top dC$.
#
# **Why is $D$ subtracted?** If one score rises, its weight rises, and all other weights of the row fall, since they sum
# to 1. So only the difference between $dP$ and the average of its row counts, above the average or below it. That
# average, taken with the weights, is $\sum_j P_{ij}\, dP_{ij}$. Put in $dP = dO\, V^\top$, and it becomes
# $\sum_c dO_{ic}\, O_{ic}$: the sum over row $i$ of $dO * O$. That takes no weights and no scores, so all $D$ are known
# before the first tile.
#
# FlashAttention keeps $O$ for this. $O$ is no argument of your function: compute $P V$ again, or take
# $D = \operatorname{rowsum}(P * dP)$, which is the same.
#
# An example with one query: $q = [2, 0]$, keys $[1, 0]$ and $[1, 4]$, values 3 and 9, $dO = 1$. Both scores are equal,
# so both weights are $\tfrac12$, and $O = 6$.
#
# **Guess first**: what is $dS$, for the two keys? Enter a list.

# %%
guess("gradient_of_two_scores", ...)

# %% exercise="attention_backward" points=6

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - The result is a tuple of three tensors, in this order: $dQ$, $dK$, $dV$. Each is compared with the right one on its
#   own. If one is wrong, the exercise gives at most half of its points.
# - There is no mask. $T_q$ and $T_k$ may differ, and so may hd and hv. Leading dimensions are the same in all four
#   inputs.
# - Scores may be above 100 or below -100.
# - Costs are not counted: tensors of $T_q \times T_k$ elements are allowed.
# - Autograd is forbidden in every form: `.backward()`, `torch.autograd`, `torch.func`. So is the library's attention.
#   `torch.softmax` is allowed. A call of something forbidden costs the points of this exercise.
# - The inputs need not require gradients, and the call may be under `torch.no_grad()`. Gradients *of the result* are
#   not tested.
#
# </details>

# %% [markdown]
# Does autograd agree? The three largest differences, which should be near 0:


# %%
def usual(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1) @ v


def differences() -> torch.Tensor:
    torch.manual_seed(0)
    q, k, v = (torch.randn(T, 4, requires_grad=True) for T in (5, 7, 7))
    grad_output = torch.randn(5, 4)
    by_autograd = torch.autograd.grad(usual(q, k, v), (q, k, v), grad_output)
    with torch.no_grad():
        own = attention_backward(q, k, v, grad_output)
    pairs = zip(own, by_autograd, strict=True)
    return torch.stack([(one - other).abs().max() for one, other in pairs])


show({"dQ, dK, dV": differences})

# %% [markdown]
# Now put your backward pass to work. `Recomputed` is attention whose forward pass keeps only queries, keys and values,
# and whose backward pass is your function. How many elements does each way store from the forward pass until the
# backward pass? The cell below counts the elements of the tensors that autograd stores.


# %%
class Recomputed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(*inputs)
        return usual(*inputs)

    @staticmethod
    def backward(ctx: Any, grad_output: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return attention_backward(*ctx.saved_tensors, grad_output)


def stored(attention: Callable[..., torch.Tensor], T: int, hd: int = 16) -> int:
    """Number of elements that wait for the backward pass."""
    memory: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        memory[tensor.untyped_storage().data_ptr()] = tensor.numel()
        return tensor

    q, k, v = (torch.randn(T, hd, requires_grad=True) for _ in range(3))
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        attention(q, k, v).sum().backward()
    return sum(memory.values())


# %% drawing=true
try:
    lengths = [32, 64, 128, 256, 512]
    each = {"usual": usual, "with your backward pass": Recomputed.apply}
    counts = {name: [stored(way, T) for T in lengths] for name, way in each.items()}
    figure, axes = plt.subplots(figsize=(5.5, 3), layout="constrained")
    for name, numbers in counts.items():
        axes.plot(lengths, numbers, "o-", label=name)
    axes.set(xscale="log", yscale="log", xlabel="tokens", ylabel="elements")
    axes.set(title="elements stored for the backward pass (hd = 16)")
    axes.set_xticks(lengths, lengths)
    axes.minorticks_off()
    axes.legend(fontsize=8)
    plt.show()
except Exception:
    print("A picture comes here once attention_backward works.")

# %% [markdown]
# One line grows with $T^2$, the other with $T$. Your function still makes $T \times T$ tensors, but only for a moment,
# and for one layer at a time. FlashAttention avoids these too: it keeps $O$ and, for each query, the maximum and the
# sum from the forward pass (since FlashAttention-2 only $m + \ln \ell$). With these it computes each tile of $P$ and
# $dS$ again, and adds the tile's part to $dQ$, $dK$ and $dV$.

# %% [markdown]
# ## 5. Linear attention
#
# Tiled attention still computes every score. *Linear* attention ([Katharopoulos and others,
# 2020](https://arxiv.org/abs/2006.16236)) is **another** attention, with other weights. In place of $e^{q \cdot k}$ it
# has $f(q) \cdot f(k)$, where $f(x) = \operatorname{elu}(x) + 1$ makes each element positive:
#
# $$o_i = \frac{\sum_j \left(f(q_i) \cdot f(k_j)\right) v_j}{\sum_j f(q_i) \cdot f(k_j)}
# = \frac{f(q_i)^\top \sum_j f(k_j)\, v_j^\top}{f(q_i)^\top \sum_j f(k_j)}$$
#
# Read the right-hand side: the sums over $j$ do not contain $i$. So they are computed **once**, for all queries. In
# matrices it is the order of a product: $(f(Q) f(K)^\top) V$ makes a $T \times T$ matrix, $f(Q) (f(K)^\top V)$ makes an
# $\text{hd} \times \text{hv}$ one. There is no division by $\sqrt{\text{hd}}$.
#
# On paper every $f$ is positive. In `float32`, $f(x)$ is exactly 0 for $x$ below about $-17.3$, so the denominator can
# be 0, and $0 / 0$ is NaN. Add a small number to the denominator, at most $10^{-6}$, or clamp it from below at that
# number: `clamp(min=1e-6)`.
#
# `queries` and `keys` are `(..., T, hd)`, `values` is `(..., T, hv)`. With `causal=True` the sums go up to $i$: a
# **state** of fixed size, to which each token adds $f(k_i)\, v_i^\top$ and $f(k_i)$. That is a recurrent network: it
# writes a text of any length in the same memory, and its operations grow with $T$, not with $T^2$.
#
# **Guess first**: $T = 1000$ and hd = hv = 10. How many multiplications does $(f(Q) f(K)^\top) V$ take, in millions?

# %%
guess("left_first", ...)

# %% exercise="linear_attention" points=7

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - No $T \times T$ tensor is made, causal or not. With `causal=True` the check uses $T = 512$, hd = 3 and hv = 5. The
#   largest tensor may have 32,768 elements, all tensors at one moment 65,536, and 1.7 million operations are allowed. A
#   loop over tokens fits, and so do chunks of up to 128 tokens, or one `cumsum` over a `(T, hd, hv)` tensor.
# - Result and gradients are finite, even if a denominator is 0.
# - Values are compared only where the denominator is at least 1, to five decimals.
#
# </details>

# %% [markdown]
# Multiplied as $f(Q) (f(K)^\top V)$ takes only $2 \cdot 1000 \cdot 10 \cdot 10$ multiplications for the $T
# = 1000$ of the guess, a hundredth as many.
#
# Its weights, seen by the trick with the identity matrix, next to those of the usual attention; queries are three times
# the words. They are flatter: $f(q) \cdot f(k)$ grows linearly, $e^{q \cdot k}$ exponentially. So linear attention can
# hardly put all its weight on a single word. Nor can the state of the causal form forget: each token stays in both
# sums. Models with linear attention have other forms of it, in which a gate lets the state fade.

# %%
draw(
    {
        "usual": weights_of(lambda q, k, v: usual(3 * q, k, v)),
        "linear": weights_of(lambda q, k, v: linear_attention(3 * q, k, v)),
        "linear, causal": weights_of(
            lambda q, k, v: linear_attention(3 * q, k, v, True),
        ),
    },
    words,
)

# %% [markdown]
# How much memory each way takes: the size of the largest tensor that it makes, for the usual attention, for your tiled
# one with blocks of 16, and for your linear one. The cell below records every tensor; you need not read it.

# %% locked="largest"
from torch.utils._python_dispatch import TorchDispatchMode


class Largest(TorchDispatchMode):
    """Records the size of the largest tensor that is made."""

    numbers = 0

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: Any = (),
        kwargs: Any = None,
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        for one in made if isinstance(made, tuple | list) else [made]:
            if isinstance(one, torch.Tensor):
                size = one.untyped_storage().nbytes() // one.element_size()
                self.numbers = max(self.numbers, size)
        return made


def largest(attention: Callable[..., torch.Tensor], T: int, hd: int = 8) -> int:
    q, k, v = torch.randn(3, T, hd).unbind()
    with torch.no_grad(), Largest() as seen:
        attention(q, k, v)
    return seen.numbers


# %% drawing=true
lengths = [32, 64, 128, 256, 512]
ways = {
    "usual": lambda q, k, v: torch.softmax(q @ k.T / math.sqrt(8), dim=-1) @ v,
    "tiled": lambda q, k, v: tiled_attention(q, k, v, 16),
    "linear": lambda q, k, v: linear_attention(q, k, v),
}
figure, axes = plt.subplots(figsize=(5.5, 3), layout="constrained")
for name, way in ways.items():
    try:
        axes.plot(lengths, [largest(way, T) for T in lengths], "o-", label=name)
    except Exception:
        print(f"The line of {name} attention comes once it works.")
axes.set(xscale="log", yscale="log", xlabel="tokens", ylabel="elements")
axes.set(title="elements of the largest tensor")
axes.set_xticks(lengths, lengths)
axes.minorticks_off()
axes.legend()
plt.show()

# %% [markdown]
# **In real models**
#
# | what | where | figure | source |
# |---|---|---|---|
# | tiled attention in one kernel | GPT-2 medium's, 1024 tokens, A100 | HBM 40.3 to 4.4 GB | Dao 2022, figure 2 |
# | the same, forward and backward | GPT-2 medium's, 1024 tokens, A100 | 41.7 to 7.3 ms | Dao 2022, figure 2 |
# | memories of a GPU | A100 with 40 GB | HBM 1.5 TB/s; SRAM 19 TB/s, 108 times 192 KB | Dao 2022, section 2.1 |
# | operations in half precision | A100 | 312 trillion a second | Dao 2023 |
# | the same, and HBM | H100 SXM | 989 trillion a second; 3.35 TB/s: 295 operations a byte | Shah 2024 |
# | linear attention with gates | Kimi Linear | 3 of 4 layers; every fourth has softmax | Kimi 2025 |
#
# Dao 2022: [FlashAttention](https://arxiv.org/abs/2205.14135). Dao 2023:
# [FlashAttention-2](https://arxiv.org/abs/2307.08691). Shah 2024:
# [FlashAttention-3](https://arxiv.org/abs/2407.08608). Kimi 2025: [Kimi Linear](https://arxiv.org/abs/2510.26692).
#
# On a GPU, and in half precision, `F.scaled_dot_product_attention` can call FlashAttention, forward and backward. It
# waits less for memory than section 3 counts: there the keys and values of a head take 1 MB, and fit into a cache
# between HBM and SRAM, from which blocks read them again.

# %% [markdown]
# ## How far you are
#
# Do you know your own code? If there are questions about your lines, a check that passes ends with a call like
# `explain("tiled_attention")`. It asks for the shape of a line's result, where an input is used first, or what an edit
# would change. It is not graded.
#
# Every check of this notebook in one table, with the points that the public examples would give:

# %%
check()
