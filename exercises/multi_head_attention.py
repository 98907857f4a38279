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
# 4. **fewer parameters**: what happens when the input itself is the value, or key and value;
# 5. **a small language model** around your module, trained in seconds.
#
# Write your code where it says `YOUR CODE HERE`, then run the check below it. Pictures and numbers in this notebook are
# made by *your* functions: run their cells again once you have written them. *Run All* reaches the end of this notebook
# from the first minute on. Where you are stuck, `hint("split_heads")` gives you a question; call it again for more.
#
# What holds for every exercise here: the output has its inputs' dtype and device, inputs are left unchanged, and
# gradients can flow to every input and parameter. Large scores, in the thousands, give no NaN. The functions may not
# call the library's attention (`F.scaled_dot_product_attention`, `nn.MultiheadAttention`): it is what you are writing.
# The three classes may. In shapes, `b` is the batch, `T` the number of tokens, `h` the number of heads and `hd` the
# width of one head.

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

from attention_check import buggy, check, draw, example, guess, hint, show

# %% [markdown]
# **Tools of this unit**
#
# | tool | what it does | shapes |
# |---|---|---|
# | `a @ b` | matrix product; leading dimensions are a batch, and broadcast | `(6, 3) @ (2, 3, 4)` is `(2, 6, 4)` |
# | `x.transpose(1, 2)` | swaps two dimensions | `(b, T, h, hd)` becomes `(b, h, T, hd)` |
# | `x.reshape(b, T, h, hd)` | reads the numbers in order, under another shape | `(b, 3, 6)` becomes `(b, 3, 2, 3)` |
# | `x.view(...)` | the same, but only where nothing has to be copied | |
# | `x.contiguous()` | copies the numbers into the order of their dimensions | the same shape |
#
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
# ## 1. Stacked heads
#
# What a head looks for is set by its weight matrices, so two heads are two sets of them.
#
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

# **Guess first**: the two heads have the very same matrices. Do they then find more than one head would? Guess
# `"yes"` or `"no"`.

# %%
guess("equal_heads", ...)

# %% exercise="stacked_heads_attention" points=4

# %% [markdown]
# Here is one sentence seen by two of your heads. Each row is a query; where it is dark, the query takes much from that
# key. The weight matrices are drawn at random, so the patterns mean nothing yet, but there are two of them, and
# training can shape each on its own. (To make the weights visible each word's value is one-hot: a sum of those *is* the
# weights.)

# %%
torch.manual_seed(7)
with_places = torch.cat([X - X.mean(0), torch.eye(6)], dim=1)  # (6, 3 + 6)
to_query, to_key = torch.zeros(2, 3, 9), torch.zeros(2, 3, 9)
to_query[:, :, :3], to_key[:, :, :3] = 6 * torch.randn(2, 3, 3), torch.randn(2, 3, 3)
to_place = torch.eye(9)[3:].expand(2, 6, 9)


def weights_of(head: int) -> torch.Tensor:
    """What each word takes from each, in one head."""
    return stacked_heads_attention(with_places, to_query, to_key, to_place)[head]


draw({"head 0": lambda: weights_of(0), "head 1": lambda: weights_of(1)}, words)

# %% [markdown]
# ## 2. Split heads
#
# In practice all heads share **one** projection of width `d_out`, and each head gets a piece of its result: with
# `d_out = 6` and 2 heads, head 0 has the numbers 0 to 2 of each token, head 1 the numbers 3 to 5. One large product is
# faster than several small ones.
#
# Below, each cell is a number, written *token.position*, and each colour is a head. On the left is what the projection
# gives, `(T, d)`. In the middle every row is cut into its heads' pieces, `(T, h, hd)`, and the pieces of a token still
# lie together. On the right each head has its own sequence of tokens, `(h, T, hd)`: the dimensions of tokens and heads
# have changed places.


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
# `split_heads` does both steps for a batch: `(b, T, d)` becomes `(b, h, T, hd)` with `hd = d / h`. A reshape alone
# gives that shape too, but it only counts numbers off in the order in which they lie in memory. Of the nine numbers of
# its "head 0" the first six would be all of token 0, and the other three the first half of token 1: one and a half
# tokens, and not the first half of every token.
#
# Where `d` is not divisible by `num_heads`, raise a `ValueError` (an `assert` is right too).
#
# **Guess first**: GPT-2 small splits a width of 768 into 12 heads. How wide is one?

# %%
guess("width_of_a_head", ...)

# %% exercise="split_heads" points=3

# %% [markdown]
# Your two heads of the drawing, each number *token.position*:

# %%
numbered = torch.arange(3)[:, None] + torch.arange(6) / 10  # (3, 6)
show(lambda: split_heads(numbered[None], 2))

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
# **A bug hunt.** Here is a `merge_heads` that somebody else wrote. You can call it, not read it, and its results have
# the right shape whatever you give it. On many inputs they are right altogether:

# %%
wrong = buggy("merge_heads")
wrong(torch.arange(4.0).reshape(1, 1, 2, 2))

# %% [markdown]
# Find an input that gives it away: a tensor `x` of shape `(b, h, T, hd)` with at most twelve numbers, `float32` and
# finite, on which `wrong(x)` and the right result differ by more than 0.001 somewhere. Before you try inputs, think of
# the step that is easily forgotten in merging, and of the sizes at which forgetting it does no harm.
#
# The check compares `wrong` with your own `merge_heads`, so write that first.

# %% exercise="hunt_merge_heads" points=2

# %% [markdown]
# Heads without trained values, step by step: three tokens of width 6 are split into two heads, and the pieces
# themselves are mixed with these weights. The first token becomes `0.6308 0.4696 0.7076 0.6730 0.7558 0.4224`.

# %%
tokens = torch.tensor(
    [
        [0.2745, 0.6584, 0.2775, 0.8573, 0.6584, 0.2775],
        [0.8993, 0.0390, 0.9268, 0.7388, 0.8993, 0.0390],
        [0.7179, 0.7058, 0.9156, 0.4340, 0.7179, 0.9156],
    ]
)
two_heads = torch.tensor(
    [
        [[0.3317, 0.3307, 0.3376], [0.3403, 0.3126, 0.3472], [0.3334, 0.3169, 0.3497]],
        [[0.3350, 0.3188, 0.3462], [0.3336, 0.3147, 0.3517], [0.3208, 0.3241, 0.3551]],
    ]
)
show(lambda: two_heads @ split_heads(tokens[None], 2))  # (1, h, T, hd)
show(lambda: merge_heads(two_heads @ split_heads(tokens[None], 2)))

# %% [markdown]
# ## 3. The module
#
# Now all of it in one module, and *causal*: a language model predicts the next word, so no token may look at a later
# one. Before the softmax the scores of later keys are replaced by $-\infty$, which softmax turns into a weight of 0.
#
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
# Built under seed 123 for the six words (`d_in = 3`, `d_out = 2`, two heads), the vectors are
#
# | Your | journey | starts | with | one | step |
# |---|---|---|---|---|---|
# | .3190 .4858 | .2943 .3897 | .2856 .3593 | .2693 .3873 | .2639 .3928 | .2575 .4028 |
#
# You may call your own functions from above, or write it all again here.
#
# **Guess first**: `d_in` and `d_out` become twice as large, and so does the number of heads. How many times as many
# parameters are there, biases aside?

# %%
guess("twice_the_width", ...)

# %% exercise="MultiHeadAttention" points=8

# %%
torch.manual_seed(123)
show(lambda: MultiHeadAttention(3, 2, 6, 0.0, num_heads=2)(X[None]))

# %% [markdown]
# What two causal heads of your module see, with the matrices from above:


# %%
def causal_weights_of(head: int) -> torch.Tensor:
    """What each word takes from each, in one head of your module."""
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
# `out_proj` multiplies the values by a matrix after they have been mixed. Does `W_value` need to multiply them before?
# `OptimizedMultiHeadAttention` is the same module **without `W_value`**: the input itself, split into heads, is the
# value. This needs `d_in = d_out`. All else stays: queries and keys, mask, dropout, `out_proj`, the arguments.
#
# Built under seed 123 with two heads, it turns the check's first token into
# `[-0.0395, 0.2886, 0.5358, 0.1082, 0.6340, -0.1723]`.

# %% exercise="OptimizedMultiHeadAttention" points=3

# %% [markdown]
# `EfficientMultiHeadAttention` goes further: the input, split into heads, is **key and value**. Of the projections only
# `W_query` is left, and `out_proj`; again `d_in = d_out`.
#
# Built under seed 123 for the six words with three heads, the vectors are
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

# %%
torch.manual_seed(123)
show(lambda: EfficientMultiHeadAttention(3, 3, 6, 0.0, num_heads=3)(X[None]))

# %% [markdown]
# What does this save? `count_parameters(module)` counts the trained numbers of a module, as an `int`. Each parameter
# counts once, even if it is used in two places; what is frozen (`requires_grad` is `False`) and buffers do not count. A
# `MultiHeadAttention` of width 768 with 12 heads has `2360064`.
#
# **Guess first**: where does that number come from? It is 768 for the bias of `out_proj`, and 768 · 768 how many times?

# %%
guess("matrices", ...)

# %% exercise="count_parameters" points=1


# %%
def in_millions(made: type[nn.Module]) -> str:
    """The parameters of such a module at the width of GPT-2 small."""
    counted = count_parameters(made(768, 768, 1024, 0.0, 12))
    return f"{made.__name__}: {counted / 1e6:.2f} million parameters"


show(
    lambda: in_millions(MultiHeadAttention),
    lambda: in_millions(OptimizedMultiHeadAttention),
    lambda: in_millions(EfficientMultiHeadAttention),
)

# %% [markdown]
# It has its price. Without `W_value` a head gives what its piece of the input holds, and nothing else: head 0 of 12
# knows the first 64 numbers of each token and can never offer the others. Where the key is fixed too, it can only be
# found by these. Both modules are experiments; what large models do to save is to let several heads share one key and
# one value.

# %% [markdown]
# ## 5. A small language model
#
# Time to see it work. Around your `MultiHeadAttention` goes what every language model has: embeddings of letters and of
# positions, normalisation, two small layers after each attention, and at the end a score for each possible next letter.
# It learns from the *Zen of Python*, 856 letters that come with Python, to say which letter is next.
#
# Three things in it are new. A **position embedding** is added to each letter's, as attention alone cannot tell places
# apart. Each part **adds** what it finds to what came in, so that gradients reach the first layers unhindered. And a
# **LayerNorm** before each part brings a token's numbers to mean 0 and variance 1, so that sizes do not run away.

# %% locked="zen"
with contextlib.redirect_stdout(io.StringIO()):
    import this
zen = codecs.decode(this.s, "rot13")
letters = sorted(set(zen))
letter_tokens = torch.tensor([letters.index(letter) for letter in zen])
print(zen[:110])


# %% locked="tiny_language_model"
class Block(nn.Module):
    """Attention over what came before, then two layers for each token on its own."""

    def __init__(self, d: int, sees_the_future: bool) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(d, d, 64, 0.0, num_heads=4)
        self.sees_the_future = sees_the_future
        self.before_attention, self.before_layers = nn.LayerNorm(d), nn.LayerNorm(d)
        self.layers = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x and the result: (b, T, d)."""
        normed = self.before_attention(x)
        found = self.attention(normed)
        if self.sees_the_future:  # causal attention on the reversed text
            found = found + self.attention(normed.flip(1)).flip(1)
        x = x + found
        return x + self.layers(self.before_layers(x))


class TinyLanguageModel(nn.Module):
    """Scores for the next letter, at each place of a text of at most 64 letters."""

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
    """Train on pieces of the text, each place to say the letter after it."""
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
    """Go on with a text, always with the letter of the highest score."""
    tokens = [letters.index(letter) for letter in begun]
    for _ in range(length):
        scores = model(torch.tensor([tokens[-64:]]))[0, -1]
        tokens.append(int(scores.argmax()))
    return "".join(letters[token] for token in tokens)


# %% [markdown]
# Some 110,000 parameters; training takes from ten seconds to a minute or two:


# %% training="train_causal"
def with_the_mask() -> str:
    """Train the model as it should be, and let it write."""
    torch.manual_seed(0)
    model = TinyLanguageModel()
    train(model)
    return write(model, "Beautiful")


show(with_the_mask)

# %% [markdown]
# It begins with the Zen by heart, and goes on in words of its own. Trained twice as long, with `train(model, 600)`, it
# says all of it: 856 letters are few for so many parameters. A large model does the same thing with more text than it
# can keep.
#
# Now once more **without the mask**: each block reads the piece a second time, from its end, and so each place sees all
# of it, the letter that it is asked for included.
#
# **Guess first**: will its loss be `"lower"`, `"higher"` or `"the same"`?

# %%
guess("loss_without_mask", ...)


# %% training="train_without_mask"
def without_the_mask() -> str:
    """Train a model that sees the letters that it is to predict, and let it write."""
    torch.manual_seed(0)
    model = TinyLanguageModel(sees_the_future=True)
    train(model)
    return write(model, "Beautiful")


show(without_the_mask)

# %% [markdown]
# Which model is better, and why does the loss lie? The second one learned to look at the next letter and copy it. Its
# loss is a mark in an exam with the answers on the table. When it writes, there is no next letter to look at yet.
#
# **In real models.** GPT-2 small is much the same: 12 such blocks of width 768 with 12 heads of 64, a context of 1024
# tokens and pieces of words instead of letters: 124 million parameters. Scores are a $T \times T$ matrix in each head,
# so a text twice as long has four times as many.

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
