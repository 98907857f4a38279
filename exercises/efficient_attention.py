# %% [markdown]
# # The same attention in less memory
#
# Attention over $T$ tokens has $T^2$ scores for each head. For 32,000 tokens and 32 heads these are 33 billion numbers:
# 66 GB in half precision, in each layer. And yet models read such texts. They never write all scores down. In this
# notebook you do the same:
#
# 1. **softmax in one pass**, over scores that come block by block;
# 2. **states** that stand for the attention to some of the keys, and can be merged;
# 3. **tiled attention**: exactly the usual result, and never a matrix of all scores. This is what FlashAttention does;
# 4. **linear attention**, which is another attention: it needs neither the scores nor the time that they take.
#
# Write your code where it says `YOUR CODE HERE`, then run the check below it. Pictures and numbers in this notebook are
# made by *your* functions: run their cells again once you have written them. *Run All* reaches the end of this notebook
# from the first minute on. Where you are stuck, `hint("online_softmax")` gives you a question; call it again for more.
#
# What holds for every exercise here: the output has its inputs' dtype and device (`float32` and `float64` are tried,
# half precision is not), and inputs are left unchanged. A leading `...` in a shape stands for any number of dimensions.
# None may call the library's attention or its softmax (`logsumexp` is a part of one).
#
# Gradients must flow back through every function here that takes tensors. What autograd needs for that is not to be
# written into in place: make a new state in each step, `state = ...`, and do not write into the old one,
# `state[...] = ...`. A maximum that you take may be detached, as it drops out of $o / \ell$; those of the states that
# `merge_states` is given may not. Where nothing is seen gradients are 0. A NaN or an infinity that is replaced
# afterwards, as by `torch.where`, is gone from the result and not from the gradients: keep it from coming up.
#
# **Some points are for what your code costs.** The elements of the largest tensor, those of all tensors held at one
# moment, and the operations are counted, so the result is the same on every machine. Costs are measured without
# gradients, because autograd would keep every tile for the backward pass. Real kernels compute the tiles again in the
# backward pass. Grading also calls your code with large inputs ($T = 7680$, or 33 million scores in blocks) and
# 48 MB of memory to spare, and compares the result. Stay within PyTorch: what is computed elsewhere, as by NumPy or in
# another thread, cannot be counted and earns no points for operations.

# %% locked="setup"
import math
from collections.abc import Callable, Iterable
from typing import Any

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
# | `x.amax(dim=-1, keepdim=True)` | the largest number of each row | `(b, T, B)` to `(b, T, 1)` |
# | `torch.maximum(a, b)` | the larger one in each place | shapes must fit |
# | `x.masked_fill(x == -torch.inf, 0.0)` | other numbers where a condition holds | |
# | `range(0, T, B)` | where blocks of `B` begin | 0, 4, 8 for $T = 10$, $B = 4$ |
# | `x[..., 8:12, :]` | rows 8 to 11, or as many as there are | 2 rows if $T = 10$ |
# | `torch.cat(blocks, dim=-2)` | blocks of rows below each other | |
# | `F.elu(x) + 1` | $x + 1$ above zero, $e^x$ below | the same shape |
#
# The six words again, each an embedding with three numbers:

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
# ## 1. Softmax in one pass
#
# A softmax that is safe for large scores takes the largest score $m$ off first, and divides by the sum $\ell$:
#
# $$\operatorname{softmax}(s)_j = \frac{e^{s_j - m}}{\ell}, \qquad m = \max_j s_j, \quad \ell = \sum_j e^{s_j - m}$$
#
# This needs all scores twice: once for $m$ and once for $\ell$. But both can be found in **one pass** ([Milakov and
# Gimelshein, 2018](https://arxiv.org/abs/1805.02867)). Keep the maximum and the sum of what came so far. When a block
# brings a larger score, the old sum is relative to the wrong maximum, and one factor puts that right:
#
# $$m' = \max(m, \max_j s_j), \qquad \ell' = \ell \, e^{m - m'} + \sum_j e^{s_j - m'}$$
#
# where $j$ goes through the new block alone. For the blocks `[1, 2]` and `[3]` the first gives $m = 2$ and $\ell =
# e^{-1} + 1 = 1.3679$; with the second $m = 3$, and $\ell$ is 1.3679 times $e^{-1}$, plus 1: `1.5032`.
#
# Blocks may have different lengths, and a score may be $-\infty$, because it is hidden. A block of such scores alone
# changes nothing, also where it comes first. Take care: $-\infty - (-\infty)$ is NaN.
#
# There is at least one block. `blocks` may be a generator: all that can be done with one is to loop over it, once.
# Joining all blocks first, or keeping them in a list, is not one pass: then all scores are held at once.

# **Guess first**: three blocks, `[0, 0]`, `[0]` and `[0, 0, 0]`. Say maximum and sum.

# %%
guess("six_zeros", ...)

# %% exercise="online_softmax" points=5

# %%
torch.manual_seed(3)
row = 5 * torch.randn(64) + torch.linspace(-8, 8, 64)
show(lambda: online_softmax(row.split(8)))

# %% drawing=true
try:
    seen = range(8, 65, 8)
    states = [online_softmax(row[:end].split(8)) for end in seen]
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 2.4))
    left.plot(range(64), row, ".", color="0.6")
    left.step(seen, [float(m) for m, _ in states], where="mid")
    left.set(title="scores, and the maximum so far", xlabel="scores seen")
    right.step(seen, [float(total) for _, total in states], where="mid")
    right.set(title="the sum so far", xlabel="scores seen", ylim=(0, None))
    plt.show()
except NotImplementedError:
    print("A picture comes here once online_softmax is written.")

# %% [markdown]
# ## 2. States that can be merged
#
# Now the values. What attention to *some* of the keys gave is a **state** of three tensors for each query:
#
# | part | shape | what it is |
# |---|---|---|
# | `maximum` | `(..., T, 1)` | the largest score $m$ of the query among these keys |
# | `total` | `(..., T, 1)` | $\ell = \sum_j e^{s_j - m}$ |
# | `output` | `(..., T, hd)` | $o = \sum_j e^{s_j - m} v_j$, **not divided by** $\ell$ yet |
#
# Divided, $o / \ell$ is the attention to these keys alone. Two states, for different keys, make one for all of them:
# each is brought to the larger maximum, and then they add up. Where a query sees none of the keys, its state is
# $(-\infty, 0, 0)$, and merging it changes nothing; two such states make a third one, without NaN.
#
# Merging is associative: in which order the parts come, and how they are grouped, makes no difference. So blocks can be
# worked on side by side, on several processors or GPUs.

# **Guess first**: a state has $m = 1$, $\ell = 1$ and $o = [2, 4]$. It is merged with itself, as if its keys were there
# twice. Say $\ell$ of the result.

# %%
guess("merged_with_itself", ...)

# %% exercise="merge_states" points=6

# %% [markdown]
# Attention of *journey* to the first three words, to the last three, and both merged; divided, each is a context
# vector. The last row has all six words:


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
    lambda: divided(first),
    lambda: divided(second),
    lambda: divided(merge_states(first, second)),
    lambda: divided(state_of(X, X)),
)

# %% [markdown] written="why_states_merge" points=3
# **In your own words** (a few sentences, read by a person): why can attention be computed block by block, though a
# softmax needs the sum over *all* keys? Say what is kept for each query, and what happens to it when a later block has
# a larger score.

# %% [markdown]
# ## 3. Tiled attention
#
# Everything is there. `queries` and `keys` are `(..., T, hd)`, `values` are `(..., T, hv)`; they are cut into blocks
# of `block_size` rows, of which the last one may be shorter. For a block of queries, go through the blocks of keys and
# values: scores of this tile, scaled by $1/\sqrt{\text{hd}}$, its state, merge. At the end divide. The result is
# exactly that of
#
# $$\operatorname{softmax}\!\left(\frac{Q K^\top}{\sqrt{\text{hd}}}\right) V$$
#
# but no tensor has more than $b \cdot h \cdot T \cdot \max(\text{block size}, \text{hd})$ numbers (hv = hd): so much
# is a column of tiles. A loop over the blocks of keys alone, with all queries at once, stays within that too. And all
# that is made and held at one moment is together less than $T^2 / 2$ numbers a head ($T$ is 96, the block size 5).
#
# With `causal=True` the future is hidden, as in unit 3: token $i$ sees the keys up to $i$. A tile that lies in the
# future **whole** is not computed at all, and every other tile is computed once. That saves nearly half of the
# operations.
#
# ```
#           keys        # computed, nothing hidden
#  queries  / . . .     / on the diagonal: the future is hidden in it
#           # / . .     . skipped
#           # # / .
#           # # # /
# ```

# **Guess first**: $T = 8$ and a block size of 2, causal. How many of the 16 tiles are computed?

# %%
guess("tiles_computed", ...)

# %% exercise="tiled_attention" points=9

# %% [markdown]
# A trick to look inside: where the values are the identity, the result *is* the weights, though no matrix of them was
# ever made.


# %%
def weights_of(attention: Callable[..., torch.Tensor]) -> Callable[[], torch.Tensor]:
    return lambda: attention(X, X, torch.eye(6))


draw(
    {
        "tiled, blocks of 4": weights_of(lambda q, k, v: tiled_attention(q, k, v, 4)),
        "tiled, causal": weights_of(lambda q, k, v: tiled_attention(q, k, v, 4, True)),
    },
    words,
)

# %% [markdown]
# **A bug hunt.** Here is a `tiled_attention` that somebody else wrote. You can call it, not read it. It takes
# `(T, hd)` three times, and here it is right, in blocks of 2 (keys 2 and 3 are keys 0 and 1 again):

# %%
wrong = buggy("tiled_attention")
wrong(X[:4], X[:2].repeat(2, 1), X[:4], 2)

# %% [markdown]
# Find an input that gives it away: `queries`, `keys` and `values` of shape `(T, hd)`, `float32` and finite, with at
# most twelve numbers in all three **together**, on which `wrong(queries, keys, values, 2)` and the right result differ
# by more than 0.001 somewhere. What must happen between two blocks that does not happen inside of one?
#
# The check compares `wrong` with your own `tiled_attention`, so write that first.

# %% exercise="hunt_tiled_attention" points=2

# %% [markdown]
# ## 4. Linear attention
#
# Tiling saves memory and no time: every pair of tokens still meets. *Linear* attention ([Katharopoulos and others,
# 2020](https://arxiv.org/abs/2006.16236)) is **another** attention, with other weights. In place of $e^{q \cdot k}$ it
# has $f(q) \cdot f(k)$, where $f(x) = \operatorname{elu}(x) + 1$ makes each number positive:
#
# $$o_i = \frac{\sum_j \left(f(q_i) \cdot f(k_j)\right) v_j}{\sum_j f(q_i) \cdot f(k_j)}
# = \frac{f(q_i)^\top \sum_j f(k_j)\, v_j^\top}{f(q_i)^\top \sum_j f(k_j)}$$
#
# Read the right-hand side: the sums over $j$ do not know $i$. So they are computed **once**, for all queries. In
# matrices it is the order of a product: $(f(Q) f(K)^\top) V$ makes a $T \times T$ matrix, $f(Q) (f(K)^\top V)$ makes an
# $\text{hd} \times \text{hv}$ one. There is no division by $\sqrt{\text{hd}}$.
#
# On paper every $f$ is positive. In `float32`, $f(x)$ is exactly 0 for $x$ below about $-17.3$, so the denominator can
# be 0, and $0 / 0$ is NaN. Add a small number to the denominator, at most $10^{-6}$, or clamp it: then the result and
# its gradients are finite there, too. Values are compared only where the denominator is at least 1.
#
# `queries` and `keys` are `(..., T, hd)`, `values` is `(..., T, hv)`. With `causal=True` the sums go up to $i$: a
# **state** of fixed size, to which each token adds $f(k_i)\, v_i^\top$ and $f(k_i)$. That is a recurrent network, and
# it writes a text of any length in the same memory. No $T \times T$ tensor is made either way. Each token adds once, so
# the operations of the causal form grow with $T$, and not with $T^2$ ($T$ is 512).

# **Guess first**: $T = 1000$ and hd = hv = 10. How many multiplications does $(f(Q) f(K)^\top) V$ take, in millions?

# %%
guess("left_first", ...)

# %% [markdown]
# The other order takes $2 \cdot 1000 \cdot 10 \cdot 10$: a hundredth.

# %% exercise="linear_attention" points=7

# %% [markdown]
# Its weights, seen by the trick with the identity, beside those of the usual attention. They are flatter: $f(q) \cdot
# f(k)$ grows slowly where $e^{q \cdot k}$ explodes. To point at a single word is what linear attention finds hard.

# %%
draw(
    {
        "usual": lambda: torch.softmax(3 * X @ X.T, dim=-1),
        "linear": weights_of(lambda q, k, v: linear_attention(3 * q, k, v)),
        "causal": weights_of(lambda q, k, v: linear_attention(3 * q, k, v, True)),
    },
    words,
)

# %% [markdown]
# What all this saves: the largest tensor on the way, for the usual attention, for your tiled one with blocks of 16, and
# for the linear one. The cell below looks at every tensor that is made.

# %% locked="largest"
from torch.utils._python_dispatch import TorchDispatchMode


class Largest(TorchDispatchMode):
    """Keeps the size of the largest tensor that is made."""

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
figure, axes = plt.subplots(figsize=(5, 3))
for name, way in ways.items():
    try:
        axes.plot(lengths, [largest(way, T) for T in lengths], "o-", label=name)
    except Exception:
        print(f"The line of {name} attention comes once it works.")
axes.set(xscale="log", yscale="log", xlabel="tokens")
axes.set(title="numbers in the largest tensor")
axes.legend()
plt.show()

# %% [markdown]
# **In real models.** FlashAttention ([Dao and others, 2022](https://arxiv.org/abs/2205.14135)) is tiled attention in
# one GPU kernel, with tiles that fit into the fast memory of a processor; `F.scaled_dot_product_attention` calls it.
# States that merge are also how several GPUs share a long text (ring attention), and how a long cache is read in
# pieces (flash decoding). Linear attention came back in models such as RetNet, and in the state-space models.

# %% [markdown]
# ## How far you are
#
# Every check of this notebook in one table, with the points that the public examples would give:

# %%
check()
