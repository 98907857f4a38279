# %% [markdown]
# # Self-attention with trainable weights
#
# A word means little on its own. *Bank* beside *river* is one thing, beside *loan* another.
# Self-attention lets every token of a sequence look at every other one and take from each as much as it needs. With
# trainable weights it can learn what to look for.
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
# Write your code where it says `YOUR CODE HERE`, then run the check below it. Pictures and numbers in this notebook are
# made by *your* functions: run their cells again once you have written them. *Run All* reaches the end of this notebook
# from the first minute on. Where you are stuck, `hint("scaled_softmax")` gives you a question; call it again for more.
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
# | tool | what it does | shapes |
# |---|---|---|
# | `text.replace(a, b)`, `text.split()`, `sorted(set(words))` | Python's own, for words | |
# | `table[tokens]` | rows of a table, one for each index | `(V, d)` by `(T,)` is `(T, d)` |
# | `a @ b` | matrix product; leading dimensions are a batch | `(b, 5, 4) @ (b, 4, 7)` is `(b, 5, 7)` |
# | `x.transpose(-2, -1)` | swaps the last two dimensions, whatever comes before | `(b, 7, 4)` becomes `(b, 4, 7)` |
# | `torch.softmax(x, dim=-1)` | weights that sum to 1 along a dimension | the same shape |
# | `x ** 0.5` | the square root | the same shape |
# | `nn.Parameter(x)` | a tensor that an optimizer trains | the same shape |
# | `with torch.no_grad():` | what is done below it leaves no trace for gradients | |
#
# A **module** is a class that keeps its parameters, and says in `forward` what a call does. This one has a single
# number to learn:
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
# A model sees numbers. A **vocabulary** gives each distinct word one: for *"Life is short, eat dessert first"* it is
# `{"Life": 0, "dessert": 1, "eat": 2, "first": 3, "is": 4, "short": 5}`. Words are sorted as Python sorts them,
# capitals first. Commas are dropped (not replaced by a space), and `split()` cuts at any white space. A word that
# appears twice gets one number, and there are no gaps between the numbers.

# %% exercise="build_vocab" points=1

# %% [markdown]
# With a vocabulary a sentence becomes a tensor of **tokens**. The sentence above becomes `0 4 5 2 1 3`: *Life* is 0,
# *is* is 4, and so on. The tensor has dtype int64, which is what an embedding layer looks up. A word that the
# vocabulary does not know raises a `KeyError`: better now than a wrong word later.

# %% exercise="encode" points=1

# %% [markdown]
# Each token is then looked up in a table with one row for each word of the vocabulary: its **embedding**. The numbers
# in the table are weights, and are trained like all others.
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
# **Guess first**: a word stands twice in the sentence. How many different embeddings does it have there?

# %%
guess("same_word_twice", ...)

# %% exercise="embed" points=1

# %% [markdown]
# `nn.Embedding` is such a table in a module. Yours, on its table:

# %%
torch.manual_seed(123)
embedding = nn.Embedding(6, 16)
tokens = torch.tensor([0, 4, 5, 2, 1, 3])
show(lambda: embed(tokens, embedding.weight)[:, :4])
show(lambda: torch.equal(embed(tokens, embedding.weight), embedding(tokens)))

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
# Every token plays three parts, each made from its embedding by a matrix of trainable weights:
# as a **query** it asks, as a **key** it says what it has to offer, as a **value** it gives.
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
print(W_query, W_key, W_value, sep="\n")

# %% [markdown]
# With them the query of *journey* is `[0.4306, 1.4551]`, its key `[0.4433, 1.1419]`, its value `[0.3951, 1.0037]`.

# %% exercise="project_qkv" points=2

# %% [markdown]
# Yours, for all six words:

# %%
show(lambda: project_qkv(X, W_query, W_key, W_value))

# %% [markdown]
# Some code, `nn.Linear` among it, stores its weight the other way round: `(d_out, d_in)`, one row for each output. Then
# the product needs the transposed weight. Six tokens of width 16 become `(6, 24)` with a `(24, 16)` weight, and
# `(6, 28)` with a `(28, 16)` one.

# %% exercise="linear_projection" points=1

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
# `Tq` is the number of queries and `Tk` that of keys. Here both are 6, as every word asks every word. They differ where
# one sequence asks another: a translation its original, or one new word all that came before it.
#
# For *journey* as query and key the score is about 0.4306 · 0.4433 + 1.4551 · 1.1419, which is 1.8524 before rounding.
#
# Mind the leading dimensions: a batch of sequences has shape `(b, T, d_k)`, and tokens of one sequence
# never meet those of another.
#
# **Guess first**: is the score of *journey* asking *Your* the same as that of *Your* asking *journey*? Guess `"yes"` or
# `"no"`.

# %%
guess("symmetric", ...)

# %% exercise="attention_scores" points=3

# %% [markdown]
# The six words' scores should be
#
# | | Your | journey | starts | with | one | step |
# |---|---|---|---|---|---|---|
# | **Your** | 0.9231 | 1.3545 | 1.3241 | 0.7910 | 0.4032 | 1.1330 |
# | **journey** | 1.2705 | 1.8524 | 1.8111 | 1.0795 | 0.5577 | 1.5440 |
# | **starts** | 1.2544 | 1.8284 | 1.7877 | 1.0654 | 0.5508 | 1.5238 |
# | **with** | 0.6973 | 1.0167 | 0.9941 | 0.5925 | 0.3061 | 0.8475 |
# | **one** | 0.6114 | 0.8819 | 0.8626 | 0.5121 | 0.2707 | 0.7307 |
# | **step** | 0.8995 | 1.3165 | 1.2871 | 0.7682 | 0.3937 | 1.0996 |
#
# and yours are


# %%
def scores_of_words() -> torch.Tensor:
    """Your scores of the six words."""
    queries, keys, _ = project_qkv(X, W_query, W_key, W_value)
    return attention_scores(queries, keys)


show(scores_of_words)

# %% [markdown]
# Scores become **weights** by softmax: every weight is positive, and each query's weights sum to 1.
#
# But softmax is sensitive to the size of what goes in. Here are the same five numbers as they are, times 8, and times
# 32. Below each picture is how strongly its weights still answer to a change of what goes into the softmax (the norm of
# its matrix of derivatives).

# %% drawing=true
numbers = [0.1, -0.2, 0.3, -0.2, 0.5]
fig, axes = plt.subplots(1, 3, figsize=(11, 3), sharey=True)
for ax, factor in zip(axes, (1, 8, 32)):
    sizes = [math.exp(factor * number) for number in numbers]
    shares = torch.tensor([size / sum(sizes) for size in sizes])
    gradient = (shares.diag() - shares.outer(shares)).norm()
    bars = ax.bar(range(5), shares.tolist())
    ax.bar_label(bars, fmt="%.4f", fontsize=8)
    ax.set_title(f"softmax of the numbers times {factor}")
    ax.set_xticks(range(5), [f"{number * factor:.1f}" for number in numbers])
    ax.set_xlabel(f"answers by {gradient:.3f}")
axes[0].set_ylim(0, 1.12)
axes[0].set_ylabel("weight")
fig.tight_layout()
plt.show()

# %% [markdown]
# Times 8, four fifths of the weight are on one number; times 32 nearly all of it is, and next to no gradient is left to
# learn from. At the start of training weights should be **diffuse**: a token that takes everything from one other is a
# copy of it, and which one it copies was decided by chance.
#
# And dot products grow by themselves. Where the entries of queries and keys are independent, with mean 0 and
# variance 1, each product of two of them has variance 1, and a score is a sum of $d_k$ of those.
#
# **Guess first**: what is the variance of a score for $d_k = 64$?

# %%
guess("variance_of_a_score", ...)

# %% [markdown]
# So attention divides by $\sqrt{d_k}$ first (in Python `d_k ** 0.5`), which keeps the variance near 1 for every width:
#
# $$\alpha_{ij} = \operatorname{softmax}_j\!\left(\frac{\omega_{ij}}{\sqrt{d_k}}\right)$$
#
# The softmax runs over the keys $j$, the *last* dimension. For *journey* ($d_k = 2$) the weights are
# `0.1500 0.2264 0.2199 0.1311 0.0906 0.1820`.

# %% exercise="scaled_softmax" points=4

# %% [markdown]
# All rows, as they should be, and yours:
#
# | | Your | journey | starts | with | one | step |
# |---|---|---|---|---|---|---|
# | **Your** | 0.1551 | 0.2104 | 0.2059 | 0.1413 | 0.1074 | 0.1799 |
# | **journey** | 0.1500 | 0.2264 | 0.2199 | 0.1311 | 0.0906 | 0.1820 |
# | **starts** | 0.1503 | 0.2256 | 0.2192 | 0.1315 | 0.0914 | 0.1819 |
# | **with** | 0.1591 | 0.1994 | 0.1962 | 0.1477 | 0.1206 | 0.1769 |
# | **one** | 0.1610 | 0.1949 | 0.1923 | 0.1501 | 0.1265 | 0.1752 |
# | **step** | 0.1557 | 0.2092 | 0.2048 | 0.1419 | 0.1089 | 0.1794 |

# %%
show(lambda: scaled_softmax(scores_of_words(), 2))

# %% [markdown]
# ## 4. Context vectors
#
# Each query's context vector is the sum of the values, each times its weight:
#
# $$\mathbf{z}_i = \sum_j \alpha_{ij} \, \mathbf{v}_j$$
#
# `weights` is `(..., Tq, Tk)`, `values` is `(..., Tk, d_v)`, the context vectors are `(..., Tq, d_v)`. The context
# vector of *Your* is `[0.2996, 0.8053]`.

# %% exercise="context_vectors" points=2

# %% [markdown]
# Eight down. **Have a rest**: you now have every piece of attention. What follows puts the pieces together.
#
# First from end to end for **one query**: its scores with all keys, scaled; their softmax; the weighted sum of the
# values. `query` is `(d_k,)`, `keys` is `(T, d_k)`, `values` is `(T, d_v)`, and the result `(d_v,)`. Values may have
# another width than keys. The check takes *"Life is short, eat dessert first"* with keys of width 24 and values of
# width 28; there the query *is* has the scores `8.5808 -7.6597 3.2558 1.0395 11.1466 -0.4800` and gives the six words
# the weights `0.2912 0.0106 0.0982 0.0625 0.4917 0.0458`. The context vector begins `-1.5993 0.0156 1.2670`.
#
# **Guess first**: all keys are the same. What is the context vector: `"the mean"` of the values, `"the first"` of them,
# or `"zero"`?

# %%
guess("equal_keys", ...)

# %% exercise="single_query_attention" points=3

# %% [markdown]
# Then for **all queries**, with any leading dimensions. This is the formula that everything else is built on:
#
# $$\operatorname{Attention}(Q, K, V) = \operatorname{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V$$
#
# PyTorch has a function of the same name; here you write it, without the library's attention.

# %% exercise="scaled_dot_product_attention" points=3

# %% [markdown]
# **A bug hunt.** Here is a `scaled_dot_product_attention` that somebody else wrote. You can call it, not read it. It
# takes `(Tq, d_k)`, `(Tk, d_k)` and `(Tk, d_v)` to `(Tq, d_v)`, as it should, and here it is right:

# %%
wrong = buggy("scaled_dot_product_attention")
wrong(X[:1], X[:2], X[:2])

# %% [markdown]
# Find an input that gives it away: `queries`, `keys` and `values`, two dimensions each, `float32` and finite, with at
# most twelve numbers in all three **together**, on which `wrong(queries, keys, values)` and the right result differ by
# more than 0.001 somewhere. Before you try inputs, read the formula again: what in it could be taken from the wrong
# tensor, and which inputs would not show that?
#
# The check compares `wrong` with your own `scaled_dot_product_attention`, so write that first.

# %% exercise="hunt_scaled_dot_product_attention" points=2

# %% [markdown]
# Measure what the scaling does. `score_variance` returns two 0-d tensors: the variance (`Tensor.var()`) of all raw
# scores, and of all scores divided by $\sqrt{d_k}$. For the check's queries and keys with $d_k = 16$ these are 17.469
# and 1.092.

# %% exercise="score_variance" points=2

# %% [markdown]
# What your function measures, for widths from 1 to 128:


# %% drawing=true
def variances_by_width() -> None:
    widths = [1, 2, 4, 8, 16, 32, 64, 128]
    generator = torch.Generator().manual_seed(0)
    measured = []
    for d_k in widths:
        queries, keys = (torch.randn(64, d_k, generator=generator) for _ in range(2))
        raw, scaled = score_variance(queries, keys)
        measured.append((raw.item(), scaled.item()))
        print(f"d_k = {d_k:3}: {raw:6.2f} raw, {scaled:.2f} scaled")
    _, ax = plt.subplots(figsize=(5.5, 3))
    lines = ax.plot(widths, measured, "o-")
    ax.legend(lines, ["scores", "scores divided by sqrt(d_k)"])
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    ax.set_xlabel("d_k")
    ax.set_ylabel("variance")
    plt.show()


show(variances_by_width)

# %% [markdown]
# ## 5. Modules with trainable weights
#
# Now all of it in one `nn.Module`. The three weight matrices are parameters, drawn with `torch.rand` and so between
# 0 and 1; create `W_query`, `W_key`, `W_value` in this order, so that a seed means the same to all of us.
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

# %%
torch.manual_seed(123)
show(lambda: SelfAttention_v1(3, 2)(X))

# %% [markdown]
# In practice the projections are `nn.Linear` layers. Why not plain parameters?
#
# | | `nn.Parameter` | `nn.Linear` |
# |---|---|---|
# | what it is | a tensor that is trained | a layer: such a tensor, and what to do with it |
# | the product | you write it | `layer(x)` |
# | storage | as you like, here `(d_in, d_out)` | `(d_out, d_in)`, transposed for you |
# | a bias | a second parameter, added by you | `bias=True` |
# | first values | yours; `torch.rand` makes all of them positive | small, of both signs, fit for the width |
# | `print(module)` | does not show it | shows its widths |
# | speed | as fast as what you write | the library's own fast path, bias and all |
# | saved models | under the name you gave it | as `name.weight` and `name.bias`, which other code expects |
#
# `SelfAttention_v2` is the same module with layers `W_query`, `W_key` and `W_value`, created in this order; `qkv_bias`
# says whether they have a bias. Built under seed 789, the context vectors are
#
# | Your | journey | starts | with | one | step |
# |---|---|---|---|---|---|
# | -.0739 .0713 | -.0748 .0703 | -.0749 .0702 | -.0760 .0685 | -.0763 .0679 | -.0754 .0693 |

# %% exercise="SelfAttention_v2" points=4

# %%
torch.manual_seed(789)
show(lambda: SelfAttention_v2(3, 2)(X))

# %% [markdown]
# Do the two classes do the same? Give them the same weights and see. `copy_weights(v1, v2)` writes those of a
# `SelfAttention_v1` into a `SelfAttention_v2`, so that both give the same outputs, and returns nothing. Afterwards the
# two have nothing in common: training one leaves the other as it is. A bias that the layers of `v2` have becomes 0.

# %% exercise="copy_weights" points=2


# %%
def largest_difference() -> torch.Tensor:
    """How far the outputs of the two classes are apart, with the same weights."""
    v1, v2 = SelfAttention_v1(3, 2), SelfAttention_v2(3, 2)
    copy_weights(v1, v2)
    return (v1(X) - v2(X)).abs().max()


show(largest_difference)

# %% [markdown]
# ## What attention looks like
#
# The weights of the worked example, as your functions make them: row *journey* says how much *journey* takes from each
# word. All rows look alike. The weights are not trained, and `torch.rand` draws positive numbers only: all embeddings
# are positive too, and so all queries point much the same way.

# %%
draw(
    {
        "scores": scores_of_words,
        "weights": lambda: scaled_softmax(scores_of_words(), 2),
    },
    words,
)

# %% [markdown]
# ## 6. Train it and look
#
# Now let attention learn. The task: reverse six digits, so `3 1 4 1 5 9` becomes `9 5 1 4 1 3`. Each place has a query
# and a key of its own, drawn by chance at first, and the digits are the values. What place 0 should learn is to ask for
# place 5, and so on. Your `scaled_dot_product_attention` does the rest: the context vector of a place is its share of
# each digit, and the loss is small where the right digit's share is large.
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
    """Train queries, made longer, and keys of six places to reverse rows of digits."""
    optimizer = torch.optim.Adam([ask, offer], lr=0.1)
    for step in range(61):
        digits = torch.randint(10, (64, 6))
        queries, keys = (places.expand(64, 6, -1) for places in (longer * ask, offer))
        values = F.one_hot(digits, 10).float()  # (64, 6, 10)
        shares = scaled_dot_product_attention(queries, keys, values)  # (64, 6, 10)
        of_right = shares.gather(-1, digits.flip(-1)[..., None])
        loss = -(of_right + 1e-9).log().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            right = (shares.argmax(-1) == digits.flip(-1)).float().mean()
            print(f"step {step:2}: loss {loss:.4f}, {right:.0%} of digits right")


show(lambda: reverse_six_digits(ask, offer))


# %%
def trained_weights() -> torch.Tensor:
    """What each place takes from each: context vectors of values that are one-hot."""
    return scaled_dot_product_attention(ask, offer, torch.eye(6))


draw({"after training": trained_weights}, [f"place {place}" for place in range(6)])

# %% [markdown]
# Nobody told it where to look: the loss asked for the right digit, and its gradient, through the softmax, moved each
# query towards the key that it needed.
#
# Did the root of $d_k$ have a part in it? Here are queries and keys of width 256, trained once as above and once with
# queries 16 times as long, which undoes the division by the root of 256:


# %% training="without_the_root"
def wide_places() -> list[nn.Parameter]:
    """Queries and keys of six places, of width 256."""
    torch.manual_seed(0)
    return [nn.Parameter(torch.randn(6, 256)) for _ in range(2)]


print("with the root")
show(lambda: reverse_six_digits(*wide_places()))
print("without")
show(lambda: reverse_six_digits(*wide_places(), longer=16))

# %% [markdown]
# Without the root each place begins with nearly all of its weight on one other, decided by chance. Where that is the
# wrong one, hardly any gradient is left to move it away.
#
# **In real models.** GPT-2 small has $d_k = 64$ in each head, so it divides by 8. Its queries, keys and values are made
# by one linear layer of width 3 · 768 and cut apart, which is faster than three layers and otherwise the same.

# %% [markdown] written="why_scale" points=3
# **In your own words** (a few sentences, read by a person): why are scores divided by the square root of $d_k$, and not
# left as they are? Say what would happen during training with $d_k = 64$.

# %% [markdown]
# ## How far you are
#
# Every check of this notebook in one table, with the points that the public examples would give:

# %%
check()
