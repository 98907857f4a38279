# %% [markdown]
# # Self-attention with trainable weights
#
# The meaning of a word depends on its neighbours: a *bank* next to *river* is not the *bank* next to *loan*. With
# self-attention every token of a sequence collects information from all tokens. With trainable weights it can learn
# what to look for.
#
# In this notebook you build it from words to a module:
#
# 1. **tokens**: words become numbers, and numbers become embeddings;
# 2. **projections**: each token's query, key and value;
# 3. **scores and weights**: how well each query fits each key, as shares that sum to 1;
# 4. **context vectors**: for each token, the weighted sum of the values;
# 5. **modules** with trainable weights that do all of it;
# 6. **a task**: your attention learns to reverse a row of digits.
#
# Write your code where it says `YOUR CODE HERE`, then run the check below it. The hidden tests, which decide the
# points, ask the same with other numbers. Pictures and numbers come from *your* functions: once you have written one,
# run the cells below it again. *Run All* works from the start. If you are stuck, `hint("scaled_softmax")` asks you a
# question that helps; call it again for more.

# %% [markdown]
# <details><summary>What is tested in every exercise</summary>
#
# - The output has the dtype and the device of the inputs, and the inputs are not modified.
# - Gradients flow to every input and parameter.
# - Scores in the thousands give no NaN.
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
# Here is what self-attention is for, in numbers. The first number of a vector says how much the word has to do with
# water, the second how much with money. *Bank* has to do with both. Now 40 % of a neighbour's vector is mixed into it:

# %%
river, bank, loan = torch.tensor([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])
print("bank next to river:", 0.6 * bank + 0.4 * river)
print("bank next to loan: ", 0.6 * bank + 0.4 * loan)

# %% [markdown]
# The same word gets two different vectors. In attention, shares such as 0.6 and 0.4 are not given: they are computed
# from the words, with weights that are trained.
#
# **Tools of this unit**
#
# | tool | what it does | shapes |
# |---|---|---|
# | `text.replace(a, b)`, `text.split()`, `sorted(set(words))` | Python's own, for words | |
# | `table[tokens]` | rows of a table, one for each index | `(V, d)` by `(T,)` is `(T, d)` |
# | `a @ b` | matrix product; leading dimensions are a batch | `(b, 5, 4) @ (b, 4, 7)` is `(b, 5, 7)` |
# | `x.transpose(-2, -1)` | swaps the last two dimensions | `(b, 7, 4)` becomes `(b, 4, 7)` |
# | `torch.softmax(x, dim=-1)` | weights that sum to 1 along a dimension | the same shape |
# | `x ** 0.5` | the square root | the same shape |
# | `nn.Parameter(x)` | a tensor that an optimizer trains | the same shape |
# | `with torch.no_grad():` | no gradients are computed for the indented lines | |
#
# A leading `...` in a shape stands for any number of dimensions.
#
# A **module** is a class that stores its parameters, and whose method `forward` defines what a call does. This one has
# a single trainable number:
#
# ```python
# class Scale(nn.Module):
#     def __init__(self) -> None:
#         super().__init__()
#         self.factor = nn.Parameter(torch.tensor(2.0))
#
#     def forward(self, x):
#         return self.factor * x  # Scale()(x) calls it
# ```

# %% [markdown]
# ## 1. From words to embeddings
#
# A model computes with numbers. A **vocabulary** gives each distinct word a number: for *"Life is short, eat dessert
# first"* it is `{"Life": 0, "dessert": 1, "eat": 2, "first": 3, "is": 4, "short": 5}`. Words are sorted as Python sorts
# them, capitals first. Commas are removed before the sentence is split at white space.

# %% exercise="build_vocab" points=1

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - A word that appears twice gets one number, and no number is skipped.
# - Only commas are removed, and not replaced by a space: `Yes,no` becomes `Yesno`, and `end.` keeps its full stop.
# - Any white space separates words: several spaces, tabs, line ends.
#
# </details>

# %% [markdown]
# With a vocabulary, a sentence becomes a tensor of **tokens**. The sentence above becomes `0 4 5 2 1 3`: *Life* is 0,
# *is* is 4, and so on. The tensor has dtype int64, which an embedding layer needs. A word that is not in the vocabulary
# raises a `KeyError`.

# %% exercise="encode" points=1

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Any vocabulary, also one whose numbers have gaps. Commas and white space are treated as in `build_vocab`.
# - A sentence of one word gives a tensor of shape `(1,)`.
#
# </details>

# %% [markdown]
# Each token is then looked up in a table with one row for each word of the vocabulary. That row is its **embedding**.
# The numbers in the table are trained like all other weights.
#
# | tensor | shape |
# |---|---|
# | `tokens` | `(T,)`, int64 |
# | `table` | `(V, d)`, a row for each of the `V` words |
# | embeddings | `(T, d)` |
#
# With the table that seed 123 draws for six words of width 16, the row of *Life* begins
# `0.3374 -0.1778 -0.3035 -0.5880`.
#
# **Guess first**: a word appears twice in the sentence. How many different embeddings does it have there?

# %%
guess("same_word_twice", ...)

# %% exercise="embed" points=1

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Any numbers of tokens, rows and columns; a token may appear several times, and then its row gets the sum of the
#   gradients.
# - A token of `V` or more raises an `IndexError`, as looking up a row does by itself. A `RuntimeError` is right, too:
#   `F.one_hot`, another way to write this, raises it. Negative tokens are not tested.
#
# </details>

# %% [markdown]
# `nn.Embedding` is a module with a table like this one. Your function, applied to its table, should give the same rows:

# %%
torch.manual_seed(123)
embedding = nn.Embedding(6, 16)
tokens = torch.tensor([0, 4, 5, 2, 1, 3])
show(
    {
        "first columns": lambda: embed(tokens, embedding.weight)[:, :4],
        "all equal to nn.Embedding's": lambda: torch.equal(
            embed(tokens, embedding.weight),
            embedding(tokens),
        ),
    }
)

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
# Three matrices of trainable weights turn the embedding of each token into three vectors. Its **query** says what the
# token looks for, its **key** says what it can be found by, and its **value** is what other tokens get from it.
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
# These are the weights that seed 123 draws:

# %%
torch.manual_seed(123)
W_query, W_key, W_value = (torch.rand(3, 2) for _ in range(3))
print("W_query", W_query, "W_key", W_key, "W_value", W_value, sep="\n")

# %% [markdown]
# With them the query of *journey* is `[0.4306, 1.4551]`, its key `[0.4433, 1.1419]`, its value `[0.3951, 1.0037]`.

# %% exercise="project_qkv" points=2

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Values may be wider or narrower than queries and keys. Square weights are not transposed.
#
# </details>

# %% [markdown]
# Your results for all six words:

# %%
show(
    {
        "queries": lambda: project_qkv(X, W_query, W_key, W_value)[0],
        "keys": lambda: project_qkv(X, W_query, W_key, W_value)[1],
        "values": lambda: project_qkv(X, W_query, W_key, W_value)[2],
    }
)

# %% [markdown]
# `nn.Linear` stores its weight transposed, with shape `(d_out, d_in)`: one row for each output. The product then needs
# the transpose of the weight. Six tokens of width 16 become `(6, 24)` with a `(24, 16)` weight, and `(6, 28)` with a
# `(28, 16)` weight.

# %% exercise="linear_projection" points=1

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - The inputs may have any number of leading dimensions, or none. A square weight is transposed like any other.
#
# </details>

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
# `Tq` is the number of queries and `Tk` the number of keys. Here both are 6. They differ if the queries come from one
# sequence and the keys from another, for example from a translation and its original.
#
# For *journey* as query and key, the score is 0.4306 · 0.4433 + 1.4551 · 1.1419, or 1.8524 if all digits are kept.
#
# A batch of sequences has shape `(b, T, d_k)`; a query is only scored against the keys of its own sequence.
#
# **Guess first**: is the score of the query *journey* with the key *Your* the same as that of the query *Your* with the
# key *journey*? Guess `"yes"` or `"no"`.

# %%
guess("symmetric", ...)

# %% exercise="attention_scores" points=3

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - More keys than queries, and fewer. Any number of leading dimensions, also of equal sizes or of size 1.
#
# </details>

# %% [markdown]
# Your scores of the six words. The first row, of *Your*, should be `0.9231 1.3545 1.3241 0.7910 0.4032 1.1330`:


# %%
def scores_of_words() -> torch.Tensor:
    """Your scores of the six words."""
    queries, keys, _ = project_qkv(X, W_query, W_key, W_value)
    return attention_scores(queries, keys)


show({"scores, a row for each query": scores_of_words})

# %% [markdown]
# Softmax turns scores into **weights**: every weight is positive, and each query's weights sum to 1.
#
# But the size of the scores matters. Here is the softmax of five scores, of 8 times these scores, and of 32 times. The
# *sensitivity* below each picture is the norm of the matrix of derivatives of the weights by the scores: how much the
# weights change if the scores change a little.

# %% drawing=true
numbers = [0.1, -0.2, 0.3, -0.2, 0.5]
fig, axes = plt.subplots(1, 3, figsize=(11, 3), sharey=True)
for ax, factor in zip(axes, (1, 8, 32)):
    sizes = [math.exp(factor * number) for number in numbers]
    shares = torch.tensor([size / sum(sizes) for size in sizes])
    gradient = (shares.diag() - shares.outer(shares)).norm()
    bars = ax.bar(range(5), shares.tolist())
    ax.bar_label(bars, fmt="%.4f", fontsize=8)
    ax.set_title(f"scores times {factor}")
    ax.set_xticks(range(5), [f"{number * factor:.1f}" for number in numbers])
    ax.set_xlabel(f"score\nsensitivity {gradient:.3f}")
axes[0].set_ylim(0, 1.12)
axes[0].set_ylabel("weight")
fig.tight_layout()
plt.show()

# %% [markdown]
# Times 8, four fifths of the weight are on one score. Times 32, nearly all of it is, and hardly any gradient flows back
# through the softmax: training is slow. At the start of training, weights should be **diffuse**. A token that takes
# everything from one other token only copies it, and before training it is chance which one it copies.
#
# Dot products grow with the width. If the entries of queries and keys are independent, with mean 0 and variance 1, then
# each product of two entries has variance 1. A score is a sum of $d_k$ such products.
#
# **Guess first**: what is the variance of a score for $d_k = 64$?

# %%
guess("variance_of_a_score", ...)

# %% [markdown]
# So attention divides by $\sqrt{d_k}$ first (in Python `d_k ** 0.5`). For such entries the variance is then 1 at every
# width:
#
# $$\alpha_{ij} = \operatorname{softmax}_j\!\left(\frac{\omega_{ij}}{\sqrt{d_k}}\right)$$
#
# The softmax runs over the keys $j$, the *last* dimension. For *journey* ($d_k = 2$) the weights are
# `0.1500 0.2264 0.2199 0.1311 0.0906 0.1820`.

# %% exercise="scaled_softmax" points=4

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Several values of `d_k`, which need not be the number of tokens, and any number of leading dimensions.
#
# </details>

# %% [markdown]
# Your weights of the six words. The last row, of *step*, should be `0.1557 0.2092 0.2048 0.1419 0.1089 0.1794`:

# %%
show({"weights, a row for each query": lambda: scaled_softmax(scores_of_words(), 2)})

# %% [markdown]
# ## 4. Context vectors
#
# Each query's context vector is the sum of all values, each multiplied by its weight:
#
# $$\mathbf{z}_i = \sum_j \alpha_{ij} \, \mathbf{v}_j$$
#
# `weights` is `(..., Tq, Tk)`, `values` is `(..., Tk, d_v)`, the context vectors are `(..., Tq, d_v)`. The context
# vector of *Your* is `[0.2996, 0.8053]`.

# %% exercise="context_vectors" points=2

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - More keys than queries, and fewer. Any number of leading dimensions. Weights need not sum to 1.
#
# </details>

# %% [markdown]
# Eight exercises are done. **Take a break**: you have every piece of attention. Now you put the pieces together.
#
# First for **one query**: its scores with all keys, scaled; their softmax; the weighted sum of the values. `query` is
# `(d_k,)`, `keys` is `(T, d_k)`, `values` is `(T, d_v)`, and the result is `(d_v,)`. Values may be wider or
# narrower than keys. Take *"Life is short, eat dessert first"* with keys of width 24 and values of width 28: the query
# *is* has the scores `8.5808 -7.6597 3.2558 1.0395 11.1466 -0.4800`, and the six words get the weights
# `0.2912 0.0106 0.0982 0.0625 0.4917 0.0458`. The context vector begins `-1.5993 0.0156 1.2670`.
#
# **Guess first**: all keys are the same. What is the context vector: `"the mean"` of the values, `"the first"` of them,
# or `"zero"`?

# %%
guess("equal_keys", ...)

# %% exercise="single_query_attention" points=3

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - The context vector of the query word *is* is the one shown above. Other numbers of tokens, with values wider
#   or narrower than keys.
#
# </details>

# %% [markdown]
# Then for **all queries**, with any leading dimensions. All later units build on this formula:
#
# $$\operatorname{Attention}(Q, K, V) = \operatorname{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V$$
#
# PyTorch has a function of the same name. Here you write it yourself.

# %% exercise="scaled_dot_product_attention" points=3

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Numbers of queries and of keys that differ, widths of keys and of values that differ, and equal ones.
# - Any number of leading dimensions, also of equal sizes or of size 1.
#
# </details>

# %% [markdown]
# **A bug hunt.** Somebody else wrote this `scaled_dot_product_attention`. You can call it, but not read it. For this
# input its result is right:

# %%
wrong = buggy("scaled_dot_product_attention")
show({"the wrong attention": lambda: wrong(X[:1, :2], X[:2, :2], X[:2, :2])})

# %% [markdown]
# Find an input for which its result is wrong: `queries` `(Tq, d_k)`, `keys` `(Tk, d_k)` and `values` `(Tk, d_v)`. Read
# the formula again: what in it could be taken from the wrong tensor, and which inputs would not show that?

# %% exercise="hunt_scaled_dot_product_attention" points=2

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - All three tensors **together** have at most twelve numbers, all finite, dtype float32.
# - `wrong(queries, keys, values)` and the right result differ by more than 0.001 in at least one element.
#
# </details>

# %% [markdown]
# Measure what the scaling does. `score_variance` returns two 0-d tensors: the variance (`Tensor.var()`) of all raw
# scores, and of all scores divided by $\sqrt{d_k}$. For the check's queries and keys with $d_k = 16$ these are 17.469
# and 1.092.

# %% exercise="score_variance" points=2

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - The variance is taken over all scores together, for any number of leading dimensions.
# - The results are 0-d tensors with gradients, not Python numbers.
#
# </details>

# %% [markdown]
# What your function measures for widths from 1 to 128, with 500 queries and 500 keys of independent entries:


# %% drawing=true
def variances_by_width() -> None:
    widths = [1, 2, 4, 8, 16, 32, 64, 128]
    generator = torch.Generator().manual_seed(0)
    measured = []
    for d_k in widths:
        queries, keys = (torch.randn(500, d_k, generator=generator) for _ in range(2))
        raw, scaled = score_variance(queries, keys)
        measured.append((raw.item(), scaled.item()))
        print(f"d_k = {d_k:3}: variance {raw:6.2f} raw, {scaled:.2f} scaled")
    _, ax = plt.subplots(figsize=(5.5, 3))
    lines = ax.plot(widths, measured, "o-")
    ax.legend(lines, ["scores", "scores divided by sqrt(d_k)"])
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    ax.set_xticks(widths, widths)
    ax.set_yticks(widths, widths)
    ax.set_xlabel("d_k")
    ax.set_ylabel("variance")
    plt.show()


show(variances_by_width)

# %% [markdown]
# ## 5. Modules with trainable weights
#
# Now all of it in one `nn.Module`. The three weight matrices are parameters, drawn with `torch.rand`. Create `W_query`,
# `W_key`, `W_value` in this order, so that one seed gives everybody the same weights.
#
# | step | shape |
# |---|---|
# | `x` | `(T, d_in)` |
# | queries, keys, values: `x` times each weight matrix | `(T, d_out)` |
# | scores | `(T, T)` |
# | weights: scores divided by $\sqrt{d_\text{out}}$ (the width of a key), softmax over the keys | `(T, T)` |
# | context vectors: weights times values | `(T, d_out)` |
#
# Built under seed 123 for the six words (`d_in = 3`, `d_out = 2`), the context vectors are those of part 4:
#
# | Your | journey | starts | with | one | step |
# |---|---|---|---|---|---|
# | .2996 .8053 | .3061 .8210 | .3058 .8203 | .2948 .7939 | .2927 .7891 | .2990 .8040 |
#
# You may call your own functions from above, or write it all again here.

# %% exercise="SelfAttention_v1" points=5

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - The parameters have these names and shapes, and different seeds give different weights.
# - With given weights, the right context vectors: for `d_in` and `d_out` that differ or are equal, for one token, and
#   for several calls with sequences of different lengths. `x` is one sequence; a batch is not tested.
# - After `.to(torch.float64)` the result has float64 precision, and the module works on another device.
#
# </details>

# %%
torch.manual_seed(123)
show({"context vectors": lambda: SelfAttention_v1(3, 2)(X)})

# %% [markdown]
# In practice the projections are mostly `nn.Linear` layers. Why not plain parameters?
#
# | | `nn.Parameter` | `nn.Linear` |
# |---|---|---|
# | what it is | a trained tensor | a layer: a trained tensor and the operation that uses it |
# | the product | you write it | `layer(x)` |
# | storage | as you like, here `(d_in, d_out)` | `(d_out, d_in)`; the layer transposes it |
# | a bias | a second parameter, which you add | `bias=True` |
# | first values | as you draw them; `torch.rand` makes them positive | of both signs, smaller if `d_in` is large |
# | `print(module)` | does not show it | shows its widths |
# | computation | product and bias are two operations | product and bias are one operation, `F.linear` |
# | saved models | under the name you gave it | as `name.weight` and `name.bias`, which other code expects |
#
# `SelfAttention_v2` is the same module with layers `W_query`, `W_key` and `W_value`, created in this order. They have a
# bias only if `qkv_bias` is true. Built under seed 789, the context vectors are
#
# | Your | journey | starts | with | one | step |
# |---|---|---|---|---|---|
# | -.0739 .0713 | -.0748 .0703 | -.0749 .0702 | -.0760 .0685 | -.0763 .0679 | -.0754 .0693 |

# %% exercise="SelfAttention_v2" points=4

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - The same as for `SelfAttention_v1`, and a bias with `qkv_bias=True`: the result uses it, and gradients reach it.
#
# </details>

# %%
torch.manual_seed(789)
show({"context vectors": lambda: SelfAttention_v2(3, 2)(X)})

# %% [markdown]
# Do the two classes compute the same? Give them the same weights and see. `copy_weights(v1, v2)` copies the weights of
# a `SelfAttention_v1` into a `SelfAttention_v2`, so that both give the same outputs, and returns nothing. They must be
# copies: if `v1` is trained later, `v2` stays as it is. If the layers of `v2` have a bias, it becomes 0.

# %% exercise="copy_weights" points=2

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Any widths, also equal ones and 1. If both modules are in float64, the copies have float64 precision.
# - `v1` is not modified, and `v2` keeps its own parameters, which can still be trained.
#
# </details>


# %%
def largest_difference() -> torch.Tensor:
    """Return how far the outputs differ if both classes have the same weights."""
    v1, v2 = SelfAttention_v1(3, 2), SelfAttention_v2(3, 2)
    copy_weights(v1, v2)
    return (v1(X) - v2(X)).abs().max()


show({"largest difference of the outputs": largest_difference})

# %% [markdown]
# ## What attention looks like
#
# The scores and weights of the worked example, made by your functions. Row *journey* shows how much *journey* takes
# from each word. All rows look alike, because nothing is trained yet: `torch.rand` draws only positive numbers, the
# embeddings are positive too, and so all queries point in similar directions.

# %%
draw({"scores": scores_of_words}, words)

# %%
draw({"weights": lambda: scaled_softmax(scores_of_words(), 2)}, words)

# %% [markdown]
# ## 6. Train it and look
#
# Now let attention learn. The task: reverse six digits, so `3 1 4 1 5 9` becomes `9 5 1 4 1 3`. Each of the six
# positions has its own query and key, which are drawn at random and then trained. The digits are the values. Position 0
# should learn to attend to position 5, position 1 to position 4, and so on. With your `scaled_dot_product_attention`,
# the context vector of a position says how much it takes of each digit. The loss is small if the right digit gets most
# of the weight.
#
# **Guess first**: what will the weights look like after training? `"diagonal"`, `"anti-diagonal"` or `"uniform"`?

# %%
guess("reversing", ...)

# %% training="reverse_six_digits"
torch.manual_seed(0)
ask, offer = (nn.Parameter(torch.randn(6, 16)) for _ in range(2))


def reverse_six_digits(
    ask: torch.Tensor,
    offer: torch.Tensor,
    longer: float = 1,
) -> None:
    """Train queries, times `longer`, and keys of six positions to reverse digits."""
    optimizer = torch.optim.Adam([ask, offer], lr=0.1)
    for step in range(61):
        digits = torch.randint(10, (64, 6))
        queries, keys = (rows.expand(64, 6, -1) for rows in (longer * ask, offer))
        values = F.one_hot(digits, 10).float()  # (64, 6, 10)
        shares = scaled_dot_product_attention(queries, keys, values)  # (64, 6, 10)
        of_right = shares.gather(-1, digits.flip(-1)[..., None])
        loss = -(of_right + 1e-9).log().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            right = (shares.argmax(-1) == digits.flip(-1)).float().mean()
            print(f"step {step:2}: loss {abs(loss):.4f}, {right:.0%} of digits right")


show(lambda: reverse_six_digits(ask, offer))


# %%
def trained_weights() -> torch.Tensor:
    """Return the weights: they are the context vectors if the values are one-hot."""
    return scaled_dot_product_attention(ask, offer, torch.eye(6))


draw({"after training": trained_weights}, [f"position {number}" for number in range(6)])

# %% [markdown]
# The loss does not say where to look. It only rewards the right digit, and its gradient, through the softmax, moves
# each query towards the key that it needs.
#
# Does the square root of $d_k$ matter here? Below, queries and keys have width 256. They are trained once as above, and
# once with queries multiplied by 16, which cancels the division by the root of 256:


# %% training="without_the_root"
def wide_positions() -> list[nn.Parameter]:
    """Return queries and keys of six positions, of width 256."""
    torch.manual_seed(0)
    return [nn.Parameter(torch.randn(6, 256)) for _ in range(2)]


print("divided by the root:")
show(lambda: reverse_six_digits(*wide_positions()))
print("not divided:")
show(lambda: reverse_six_digits(*wide_positions(), longer=16))

# %% [markdown]
# Without the division, nearly all of a position's weight is on one position from the start, and chance decides which.
# If it is the wrong one, hardly any gradient is left to change that.
#
# **In real models** attention has several heads (unit 3), each with its own $d_k$:
#
# | model | width of a token | $d_k$ | scores are divided by | source |
# |---|---|---|---|---|
# | here | 3 | 2 | 1.41 | |
# | Transformer (base) | 512 | 64 | 8 | Vaswani et al., *Attention Is All You Need*, 2017 |
# | GPT-2 small | 768 | 64 | 8 | Radford et al., 2019, and its published code |
# | Llama 3 8B | 4096 | 128 | 11.31 | Grattafiori et al., 2024 |

# %% [markdown] written="why_scale" points=3
# **In your own words** (a few sentences, read by a person): why are scores divided by the square root of $d_k$, and not
# left as they are? Say what would happen during training with $d_k = 64$.

# %% [markdown]
# ## How far you are
#
# Do you know your own code? If there are questions about your lines, a check that passes ends with a call like
# `explain("SelfAttention_v2")`. It asks for the shape of a line's result, where an input is used first, or what an edit
# would change. It is not graded.
#
# Every check of this notebook in one table, with the points that the public examples would give:

# %%
check()
