# %% [markdown]
# # Attention with several heads
#
# One head of attention gives each token one mixture of the values. But a word may need several things at once: its
# verb, the adjective before it, the name that *she* refers to. **Several heads** make several mixtures side by side,
# each with its own queries, keys and values.
#
# In this notebook you build them twice, first in a way that is easy to understand, then in the way that models use:
#
# 1. **stacked heads**: one set of weight matrices for each head;
# 2. **split heads**: one wide projection, cut into pieces; scores head by head; the pieces put together again;
# 3. **the module**: causal attention with several heads, as language models use it;
# 4. **fewer parameters**: what happens if the input itself is the value, or key and value;
# 5. **a small language model** around your module, trained in a minute or two.
#
# Write your code where it says `YOUR CODE HERE`, then run the check below it. The hidden tests, which decide the
# points, ask the same with other numbers. Pictures and numbers come from *your* functions: once you have written one,
# run the cells below it again. *Run All* works from the start. If you are stuck, `hint("split_heads")` asks you a
# question that helps; call it again for more.

# %% [markdown]
# <details><summary>What is tested in every exercise</summary>
#
# - The output has the dtype and the device of the inputs, and the inputs are not modified.
# - Gradients flow to every input and parameter.
# - Scores in the thousands give no NaN.
# - Float64 inputs give results with float64 precision.
# - The functions may not call the library's attention (`F.scaled_dot_product_attention`, `nn.MultiheadAttention`): you
#   are writing it yourself. The three classes may.
#
# </details>

# %% locked="setup"
import codecs
import contextlib
import io
import math
from functools import partial

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from attention_check import buggy, check, draw, example, explain, guess, hint, show

# %% [markdown]
# What one mixture loses, in numbers: three words have the values 2, 10 and 6, and a fourth word needs the first two.

# %%
values = torch.tensor([2.0, 10.0, 6.0])
one_head = torch.tensor([0.5, 0.5, 0.0])
two_heads = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
print("one head takes half from each:", (one_head @ values).item())
print("two heads take one value each:", (two_heads @ values).tolist())

# %% [markdown]
# From the mixture 6 nobody can tell that it was 2 and 10: it could as well be the third value. Two heads keep both.
#
# **Tools of this unit**
#
# | tool | what it does | shapes |
# |---|---|---|
# | `a @ b` | matrix product; leading dimensions are a batch, and broadcast | `(6, 3) @ (2, 3, 4)` is `(2, 6, 4)` |
# | `x.transpose(1, 2)` | swaps two dimensions | `(b, T, h, hd)` becomes `(b, h, T, hd)` |
# | `x.reshape(b, T, h, hd)` | the same numbers in the same order | `(b, 3, 6)` becomes `(b, 3, 2, 3)` |
# | `x.view(...)` | the same, but raises an error if numbers would have to be copied | |
# | `x.contiguous()` | copies the numbers so that they lie in memory in the order of the dimensions | the same shape |
#
# In shapes, `b` is the batch, `T` the number of tokens, `h` the number of heads and `hd` the width of one head. The six
# words once more:

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
# ## 1. Stacked heads
#
# The weight matrices of a head decide what it attends to, so two heads have two sets of them. The simplest way is to
# stack the matrices of all heads along a new first dimension. Each matrix is stored as in `nn.Linear`, one row for each
# output:
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
# Each head computes what you know: scores divided by $\sqrt{d_k}$, softmax over the keys, weighted sum of the values.
# There is no mask yet. Matrix products treat leading dimensions as a batch, so you need no loop over the heads. With 3
# heads, keys of width 24 and values of width 28, six tokens of width 16 become `(3, 6, 28)`.
#
# **Guess first**: two heads have identical matrices. Do they give more information than one head? Guess `"yes"` or
# `"no"`.

# %%
guess("equal_heads", ...)

# %% exercise="stacked_heads_attention" points=4

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Values wider or narrower than keys, and equal widths. One head, and as many heads as tokens.
# - A loop over the heads is right, too.
#
# </details>

# %% [markdown]
# Here are the weights of two of your heads for one sentence. The matrices are drawn at random, so the patterns mean
# nothing yet. But they differ, and training can change each of them separately. (The code uses one-hot values: then the
# context vectors are the weights.)

# %%
torch.manual_seed(7)
with_places = torch.cat([X - X.mean(0), torch.eye(6)], dim=1)  # (6, 3 + 6)
to_query, to_key = torch.zeros(2, 3, 9), torch.zeros(2, 3, 9)
to_query[:, :, :3], to_key[:, :, :3] = 6 * torch.randn(2, 3, 3), torch.randn(2, 3, 3)
to_place = torch.eye(9)[3:].expand(2, 6, 9)


def weights_of(head: int) -> torch.Tensor:
    """Return the weights of one head, a row for each query."""
    return stacked_heads_attention(with_places, to_query, to_key, to_place)[head]


draw({"head 0": lambda: weights_of(0), "head 1": lambda: weights_of(1)}, words)

# %% [markdown]
# ## 2. Split heads
#
# In practice all heads share **one** projection of width `d_out`, and each head gets a piece of its result: with
# `d_out = 6` and 2 heads, head 0 gets elements 0 to 2 of each token's vector, head 1 elements 3 to 5. One large product
# is usually faster than several small ones.
#
# In the picture, each cell is a number, written *token.element*, and each colour is a head. On the left is the result
# of the projection, `(T, d)`. In the middle each row is cut into one piece for each head, `(T, h, hd)`; the pieces of a
# token are still together. On the right each head has its own sequence of tokens, `(h, T, hd)`: the dimensions T and h
# are swapped.


# %% drawing=true
def draw_cells(ax: plt.Axes, left: float, top: float, rows: list[list[str]]) -> None:
    """Draw rows of cells with these labels; elements 0 to 2 blue, 3 to 5 orange."""
    for i, row in enumerate(rows):
        for j, label in enumerate(row):
            colour = "#9ecae1" if label[-1] in "012" else "#fdae6b"
            x, y = left + j, top - i
            box = plt.Rectangle((x, y), 1, 1, facecolor=colour, edgecolor="white")
            ax.add_patch(box)
            ax.text(x + 0.5, y + 0.5, label, ha="center", va="center", fontsize=8)


labels = [[f"{token}.{element}" for element in range(6)] for token in range(3)]
fig, ax = plt.subplots(figsize=(11, 3.4))
draw_cells(ax, 0, 3, labels)
for i, row in enumerate(labels):
    draw_cells(ax, 10.7, 5.4 - 2.4 * i, [row[:3], row[3:]])
    ax.text(10.5, 5.4 - 2.4 * i, f"token {i}", ha="right", va="center", fontsize=8)
draw_cells(ax, 18, 5, [row[:3] for row in labels])
draw_cells(ax, 18, 1, [row[3:] for row in labels])
ax.text(3, 4.3, "(T, d) = (3, 6)", ha="center")
ax.text(12.2, 6.7, "(T, h, hd) = (3, 2, 3)", ha="center")
ax.text(19.5, 6.3, "(h, T, hd) = (2, 3, 3)", ha="center")
for start, end, name in [(6.2, 8.3, "cut"), (14.2, 16.8, "swap T and h")]:
    ax.annotate("", (end, 2.5), (start, 2.5), arrowprops={"arrowstyle": "->"})
    ax.text((start + end) / 2, 2.7, name, ha="center", fontsize=8)
ax.text(17.8, 4.5, "head 0", ha="right", va="center", fontsize=8)
ax.text(17.8, 0.5, "head 1", ha="right", va="center", fontsize=8)
ax.set_xlim(-0.2, 21.2)
ax.set_ylim(-1.3, 7.3)
ax.set_aspect("equal")
ax.axis("off")
plt.show()

# %% [markdown]
# `split_heads` does both steps for a batch: `(b, T, d)` becomes `(b, h, T, hd)` with `hd = d / h`. A single reshape to
# `(b, h, T, hd)` gives the right shape with the wrong numbers, because it fills them in in the order in which they lie
# in memory. In the picture its "head 0" would get all six numbers of token 0 and the first three of token 1.
#
# If `d` is not divisible by `num_heads`, raise a `ValueError`.
#
# **Guess first**: GPT-2 small splits a width of 768 into 12 heads. How wide is one head?

# %%
guess("width_of_a_head", ...)

# %% exercise="split_heads" points=3

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Batch, tokens and heads of equal sizes or of size 1, where a mixed-up order does not change the shape.
# - If `d` is not divisible by `num_heads`, a `ValueError`; an `assert` is accepted, too.
#
# </details>

# %% [markdown]
# Your two heads of the picture, each number *token.element*:

# %%
numbered = torch.arange(3)[:, None] + torch.arange(6) / 10  # (3, 6)
show({"heads 0 and 1": lambda: split_heads(numbered[None], 2)})

# %% [markdown]
# Now each head scores its own queries against its own keys: `(b, h, T, hd)` twice gives `(b, h, T, T)`. These are plain
# dot products; the scaling comes later.

# %% exercise="multi_head_scores" points=2

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - The numbers of sequences, heads and tokens may be equal, and each may be 1. The scores are not scaled.
#
# </details>

# %% [markdown]
# Each head makes context vectors of width `hd`; all heads together, `(b, h, T, hd)`. Then a token needs its pieces side
# by side again: `(b, T, h * hd)`, head 0's first. `merge_heads` is the inverse of `split_heads`: it takes the steps of
# the picture from right to left. After a swap of two dimensions that are both larger than 1, the numbers no longer lie
# in memory in the order of the dimensions. Then `view` can raise an error; `reshape` copies the numbers instead.
#
# If the first token's context vectors are `[-0.1674, -0.5873, -0.3776]` and `[-0.2045, 0.2991, 0.2583]`, its merged
# vector is `[-0.1674, -0.5873, -0.3776, -0.2045, 0.2991, 0.2583]`.

# %% exercise="merge_heads" points=3

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - The numbers of sequences, heads and tokens may be equal, and each may be 1, as may the width of a head.
#
# </details>

# %% [markdown]
# **A bug hunt.** Somebody else wrote this `merge_heads`. You can call it, but not read it. Its results always have the
# right shape. For inputs such as `torch.randn(1, 2, 3, 2)` the numbers are right, too, as for this one:

# %%
wrong = buggy("merge_heads")
show({"the wrong merge_heads": lambda: wrong(torch.arange(12.0).reshape(1, 2, 3, 2))})

# %% [markdown]
# Find an input for which its result is wrong: a tensor `x` of shape `(b, h, T, hd)`. Code that mixes up two dimensions
# usually gives a result of another shape. For which sizes does it not?

# %% exercise="hunt_merge_heads" points=2

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - The input has at most twelve numbers, all finite, dtype float32.
# - `wrong(x)` and the right result differ by more than 0.001 in at least one element.
#
# </details>

# %% [markdown]
# Two heads without trained values, step by step: three tokens of width 6 are split into two heads, and the pieces are
# mixed with the weights below. The first token becomes `0.6308 0.4696 0.7076 0.6730 0.7558 0.4224`.

# %%
tokens = torch.tensor(
    [
        [0.2745, 0.6584, 0.2775, 0.8573, 0.6584, 0.2775],
        [0.8993, 0.0390, 0.9268, 0.7388, 0.8993, 0.0390],
        [0.7179, 0.7058, 0.9156, 0.4340, 0.7179, 0.9156],
    ]
)
weights = torch.tensor(
    [
        [[0.3317, 0.3307, 0.3376], [0.3403, 0.3126, 0.3472], [0.3334, 0.3169, 0.3497]],
        [[0.3350, 0.3188, 0.3462], [0.3336, 0.3147, 0.3517], [0.3208, 0.3241, 0.3551]],
    ]
)
show(
    {
        "by head": lambda: weights @ split_heads(tokens[None], 2),  # (1, h, T, hd)
        "merged": lambda: merge_heads(weights @ split_heads(tokens[None], 2)),
    }
)

# %% [markdown]
# ## 3. The module
#
# Now all of it in one module, and *causal*: a language model predicts the next token, so no token may attend to a later
# one. Before the softmax, the scores of later keys are set to $-\infty$, which softmax turns into a weight of 0.
#
# | step | shape |
# |---|---|
# | `x` | `(b, T, d_in)` |
# | queries, keys, values, by the layers `W_query`, `W_key`, `W_value`, split into heads | `(b, h, T, hd)` |
# | scores, those of later keys set to $-\infty$ | `(b, h, T, T)` |
# | weights: scores divided by $\sqrt{\text{hd}}$, softmax over the keys, then dropout | `(b, h, T, T)` |
# | context vectors: weights times values | `(b, h, T, hd)` |
# | heads merged | `(b, T, d_out)` |
# | the layer `out_proj`, which combines the heads' results | `(b, T, d_out)` |
#
# - `hd = d_out / num_heads`. If that is not a whole number, building the module raises a `ValueError`.
# - `W_query`, `W_key`, `W_value` and `out_proj` are `nn.Linear` layers, created in this order, so that one seed gives
#   everybody the same weights. `qkv_bias` says whether the first three have a bias; `out_proj` always has one.
# - A sequence may be shorter than `context_length`, never longer.
# - Store a mask as a buffer (`register_buffer`), so that it moves to a GPU with the module. Or make it in `forward`, on
#   the device of `x`.
# - **Dropout**: in training, each weight becomes 0 with probability $p$, and the others are divided by $1 - p$. In
#   evaluation (`module.eval()`) nothing is dropped. `nn.Dropout` does both.
#
# Built under seed 123 for the six words (`d_in = 3`, `d_out = 2`, two heads), the vectors are
#
# | Your | journey | starts | with | one | step |
# |---|---|---|---|---|---|
# | .3190 .4858 | .2943 .3897 | .2856 .3593 | .2693 .3873 | .2639 .3928 | .2575 .4028 |
#
# You may call your own functions from above, or write it all again here.
#
# **Guess first**: `d_in`, `d_out` and the number of heads are all doubled. By which factor does the number of
# parameters grow, not counting biases?

# %%
guess("twice_the_width", ...)

# %% exercise="MultiHeadAttention" points=8

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - The parameters have these names and shapes, and different seeds give different weights.
# - With given weights, the right results: for any number of heads, for one token, for `T` below `context_length`, for
#   `d_in` and `d_out` that differ or are equal, and for several calls. A token of zeros gives all keys equal weight.
# - With `qkv_bias=True`, the result uses the biases, and gradients reach them.
# - In training, weights are dropped after the softmax, each independently, and different ones in each call. In
#   evaluation, none are.
# - If `d_out` is not divisible by `num_heads`, a `ValueError`; an `assert` is accepted, too.
# - After `.to(torch.float64)` the result has float64 precision, and the module, with its mask, works on another device.
#
# </details>

# %%
torch.manual_seed(123)
show({"results": lambda: MultiHeadAttention(3, 2, 6, 0.0, num_heads=2)(X[None])})

# %% [markdown]
# The weights of two causal heads of your module, with the matrices from above:


# %%
def causal_weights_of(head: int) -> torch.Tensor:
    """Return the weights of one head of your module, a row for each query."""
    module = MultiHeadAttention(9, 12, 6, 0.0, num_heads=2)
    with torch.no_grad():
        module.W_query.weight.zero_()
        module.W_key.weight.zero_()
        for layer, matrices in [(module.W_query, to_query), (module.W_key, to_key)]:
            layer.weight[0:3], layer.weight[6:9] = matrices
        module.W_value.weight.copy_(to_place.flatten(0, 1))
        module.out_proj.weight.copy_(torch.eye(12))
        module.out_proj.bias.zero_()
        seen = module(with_places[None])[0]  # (6, 12)
    return seen[:, 6 * head : 6 * head + 6]


draw({f"head {head}": partial(causal_weights_of, head) for head in (0, 1)}, words)

# %% [markdown]
# ## 4. Fewer parameters
#
# `out_proj` multiplies the values by a matrix after they are mixed. Does `W_value` have to multiply them before?
# `OptimizedMultiHeadAttention` is the same module **without `W_value`**: the input itself, split into heads, is the
# value. This needs `d_in = d_out`. Everything else stays: queries and keys, mask, dropout, `out_proj`, the arguments.
# So copy your class, and change only the lines with `W_value`.
#
# Built under seed 123 with two heads, it turns the first of the three tokens above into
# `[-0.0395, 0.2886, 0.5358, 0.1082, 0.6340, -0.1723]`.

# %% exercise="OptimizedMultiHeadAttention" points=3

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - The same as for `MultiHeadAttention`, always with `d_in = d_out`, and no parameter named `W_value`.
#
# </details>

# %% [markdown]
# `EfficientMultiHeadAttention` goes further: the input, split into heads, is **key and value**. Only the layers
# `W_query` and `out_proj` are left; again `d_in = d_out`. Copy the class once more, and change the lines with `W_key`.
#
# Built under seed 123 for the six words with three heads, the results are
#
# | | | | |
# |---|---|---|---|
# | **Your** | 0.1366 | -0.2666 | 0.6299 |
# | **journey** | 0.0486 | -0.3934 | 0.4185 |
# | **starts** | 0.0216 | -0.4372 | 0.3483 |
# | **with** | -0.0181 | -0.3713 | 0.3232 |
# | **one** | -0.0167 | -0.3554 | 0.2943 |
# | **step** | -0.0415 | -0.3257 | 0.2941 |

# %% exercise="EfficientMultiHeadAttention" points=2

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - The same as for `MultiHeadAttention`, always with `d_in = d_out`, and only the layers `W_query` and `out_proj`.
#
# </details>

# %%
torch.manual_seed(123)
show({"results": lambda: EfficientMultiHeadAttention(3, 3, 6, 0.0, 3)(X[None])})

# %% [markdown]
# What does this save? `count_parameters(module)` returns how many numbers of a module are trained, as an `int`. A
# parameter counts once, even if it is used in two places. Frozen parameters (`requires_grad` is `False`) and buffers do
# not count. A `MultiHeadAttention` of width 768 with 12 heads has `2,360,064`.
#
# **Guess first**: where does that number come from? 768 of it are the bias of `out_proj`. The rest is 768 · 768 times
# what?

# %%
guess("matrices", ...)

# %% exercise="count_parameters" points=1

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Any `nn.Module`: modules inside modules, to any depth; parameters of any shape, also of the module itself.
# - Shared and frozen parameters, parameters whose numbers are all 0 (they count), and buffers, also all in one module.
#   A module with nothing to train gives 0.
#
# </details>


# %%
def in_millions(kind: type[nn.Module]) -> str:
    """Return the number of parameters of this module at the width of GPT-2 small."""
    number = count_parameters(kind(768, 768, 1024, 0.0, 12))
    return f"{kind.__name__}: {number / 1e6:.2f} million parameters"


show(
    lambda: in_millions(MultiHeadAttention),
    lambda: in_millions(OptimizedMultiHeadAttention),
    lambda: in_millions(EfficientMultiHeadAttention),
)

# %% [markdown]
# Something is lost. Without `W_value`, the values of a head are its piece of the input and nothing else: at width 768,
# head 0 of 12 can pass on only the first 64 numbers of each token. If the keys are its piece of the input, too, they
# also depend only on these 64 numbers. Both modules are experiments. Large models save in another way: several query
# heads share one key and one value head (unit 6).

# %% [markdown]
# ## 5. A small language model
#
# Now a language model around your `MultiHeadAttention`, built like a small GPT-2. It learns from the *Zen of Python*,
# 856 characters that come with Python, to predict the next character; the code calls them letters. It embeds letters
# and positions, and each block applies attention, then an **MLP**: two layers for each token separately. At the end
# each possible next letter gets a score.
#
# Three things are new. A **position embedding** is added to each letter's embedding: otherwise only the causal mask
# would tell positions apart. Each part of a block **adds** its result to its input, so that gradients have a direct
# path to the first layers. And a **LayerNorm** before each part shifts and scales a token's vector to mean 0 and
# variance 1, then applies a trained scale and shift.

# %% locked="zen"
with contextlib.redirect_stdout(io.StringIO()):
    import this
zen = codecs.decode(this.s, "rot13")
letters = sorted(set(zen))
letter_tokens = torch.tensor([letters.index(letter) for letter in zen])
print(zen[:110])


# %% locked="tiny_language_model"
class Block(nn.Module):
    """Causal attention, then an MLP: two layers for each token separately."""

    def __init__(self, d: int, sees_the_future: bool) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(d, d, 64, 0.0, num_heads=4)
        self.sees_the_future = sees_the_future
        self.before_attention, self.before_layers = nn.LayerNorm(d), nn.LayerNorm(d)
        self.layers = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x and the result: (b, T, d)."""
        normed = self.before_attention(x)
        context = self.attention(normed)
        if self.sees_the_future:  # causal attention on the reversed text
            context = context + self.attention(normed.flip(1)).flip(1)
        x = x + context
        return x + self.layers(self.before_layers(x))


class TinyLanguageModel(nn.Module):
    """Scores for the next letter, at each position of a text of at most 64 letters."""

    def __init__(self, sees_the_future: bool = False, d: int = 64) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(letters), d)
        self.position = nn.Embedding(64, d)
        blocks = [Block(d, sees_the_future) for _ in range(2)]
        self.blocks = nn.Sequential(*blocks)
        self.scores = nn.Linear(d, len(letters))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """tokens (b, T) -> scores (b, T, number of letters)."""
        x = self.embedding(tokens) + self.position.weight[: tokens.shape[1]]
        return self.scores(self.blocks(x))


def train(model: nn.Module, steps: int = 300) -> None:
    """Train on pieces of the text: predict the next letter at each position."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(steps + 1):
        starts = torch.randint(len(letter_tokens) - 64, (16,)).tolist()
        pieces = torch.stack([letter_tokens[start : start + 65] for start in starts])
        scores = model(pieces[:, :-1])  # (16, 64, number of letters)
        loss = F.cross_entropy(scores.flatten(0, 1), pieces[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step:3}: loss {loss:.3f}")


@torch.no_grad()
def write(model: nn.Module, begun: str, length: int = 120) -> str:
    """Continue a text, always with the letter of the highest score."""
    tokens = [letters.index(letter) for letter in begun]
    for _ in range(length):
        scores = model(torch.tensor([tokens[-64:]]))[0, -1]
        tokens.append(int(scores.argmax()))
    return "".join(letters[token] for token in tokens)


# %% [markdown]
# The model has about 109,000 parameters. Training takes from ten seconds to two minutes:


# %% training="train_causal"
def with_the_mask() -> str:
    """Train the causal model, and let it continue a text."""
    torch.manual_seed(0)
    model = TinyLanguageModel()
    train(model)
    return write(model, "Beautiful")


show(with_the_mask)

# %% [markdown]
# It begins with the Zen nearly word for word, then invents words. Trained twice as long, with `train(model, 600)`, it
# makes fewer mistakes: 109,000 parameters can learn 856 characters by heart. Large models are trained in the
# same way, on far more text than they can store.
#
# Now the same **without the mask**: each block also reads the piece backwards. So each position sees the whole piece,
# even the letter that it has to predict.
#
# **Guess first**: will its loss be `"lower"`, `"higher"` or `"the same"`?

# %%
guess("loss_without_mask", ...)


# %% training="train_without_mask"
def without_the_mask() -> str:
    """Train a model that sees the letters it has to predict, and let it write."""
    torch.manual_seed(0)
    model = TinyLanguageModel(sees_the_future=True)
    train(model)
    return write(model, "Beautiful")


show(without_the_mask)

# %% [markdown]
# Which model is better? The second one has the lower loss, but it only learned to copy the next letter. When it writes,
# there is no next letter to copy yet. So its loss says nothing about how well it writes.
#
# **In real models**, the same parts are wider and more numerous. Since Llama, some of them are different ones:
#
# | | your model | GPT-2 small | Llama 3 8B |
# |---|---|---|---|
# | blocks | 2 | 12 | 32 |
# | width | 64 | 768 | 4096 |
# | query heads | 4 | 12 | 32 |
# | key and value heads | 4 | 12 | 8 |
# | vocabulary | 45 letters | 50,257 tokens | 128,256 tokens |
# | longest text | 64 | 1024 | 8192 |
# | positions | trained embedding | trained embedding | rotary (unit 5) |
# | normalisation | LayerNorm | LayerNorm | RMSNorm |
# | MLP | GELU | GELU | SwiGLU |
# | parameters | 109,000 | 124 million | 8 billion |
#
# Sources: Radford et al., 2019, and the published code of GPT-2; Touvron et al., *LLaMA*, 2023; Grattafiori et al.,
# *The Llama 3 Herd of Models*, 2024, and the published model card (8192 tokens, before version 3.1).

# %% [markdown] written="why_heads" points=3
# **In your own words** (a few sentences, read by a person): what can several heads of width `d_out / h` do that one
# head of width `d_out` cannot? What does it cost in parameters, and how wide are the queries and keys of a single
# head? And what would be missing without `out_proj`?

# %% [markdown]
# ## How far you are
#
# Do you know your own code? If there are questions about your lines, a check that passes ends with a call like
# `explain("MultiHeadAttention")`. It asks for the shape of a line's result, where an input is used first, or what an
# edit would change. It is not graded.
#
# Every check of this notebook in one table, with the points that the public examples would give:

# %%
check()
