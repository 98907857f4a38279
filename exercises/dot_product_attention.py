# %% [markdown]
# # Attention from dot products
#
# Attention lets every word of a sentence look at the others and take from each as much as it needs. Before there are
# any weights to train, the idea is three lines of arithmetic. In this notebook you write each of them yourself:
#
# 1. **scores**: how well do two words fit? Their dot product says so.
# 2. **weights**: scores turned into shares that sum to 1.
# 3. **context vector**: all words blended, each by its share.
#
# Write your code where it says `YOUR CODE HERE`, then run the check below it. Pictures and numbers in this notebook are
# made by *your* functions: run their cells again once you have written them. *Run All* reaches the end of this notebook
# from the first minute on. Where you are stuck, `hint("softmax")` gives you a question; call it again for more.
#
# What holds for every exercise here: the output has its inputs' dtype and device, inputs are left unchanged, and
# gradients can flow to every input. Large scores, in the thousands, give no NaN. A leading `...` in a shape stands for
# any number of dimensions. The library's attention (`F.scaled_dot_product_attention`, `nn.MultiheadAttention`) is what
# you are writing, so it may not be called.

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
# | `a @ b` | matrix product | `(6, 3) @ (3,)` is `(6,)`; `(6,) @ (6, 3)` is `(3,)`; `(6, 3) @ (3, 6)` is `(6, 6)` |
# | `x.T` | swaps rows and columns of a matrix | `(6, 3)` becomes `(3, 6)` |
# | `x.sum(dim=-1, keepdim=True)` | sums along the last dimension, and keeps it | `(4, 6)` becomes `(4, 1)` |
# | `x.amax(dim, keepdim=True)` | the same with the largest number | `(4, 6)` becomes `(4, 1)` |
# | `x.exp()` | the exponential of each number | the same shape |
#
# A `(4, 1)` tensor fits a `(4, 6)` one: its single column serves all six. That is **broadcasting**.
#
# Our sentence is *"Your journey starts with one step"*. A model reads it in pieces, the **tokens**; here each word is
# one. Each token is given as a vector, its **embedding**, here of three numbers. A row is a word: `X` has shape
# `(T, d)` with `T = 6` tokens of width `d = 3`.

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
# ## 1. Scores: how well do two words fit?
#
# The word that looks is the **query**. Its score with another word is the dot product of the two:
#
# $$\omega_j = \mathbf{q} \cdot \mathbf{x}_j = \sum_{m=1}^{d} q_m \, x_{jm}$$
#
# It is large where the two point the same way, and where they are long: both count.
#
# For the query *journey*, its score with *Your* is 0.55 · 0.43 + 0.87 · 0.15 + 0.66 · 0.89 = 0.9544. Shapes: `query`
# is `(d,)`, `inputs` is `(T, d)`, the scores are `(T,)`. The query need not be one of the inputs.
#
# **Guess first**: the query becomes twice as long and keeps its direction. By which number is each score multiplied?
# Put your guess in place of `...`. Guesses are not marked.

# %%
guess("longer_query", ...)

# %% exercise="dot_product_scores" points=2

# %% [markdown]
# What yours gives for *journey*; it should be `0.9544 1.4950 1.4754 0.8434 0.7070 1.0865`:

# %%
show(lambda: dot_product_scores(X[1], X))

# %% [markdown]
# ## 2. Weights: shares that sum to 1
#
# The plain way to make shares of scores is to divide them by their sum:
#
# $$\alpha_j = \frac{\omega_j}{\sum_k \omega_k}$$
#
# The scores of *journey* sum to 6.5617, so *Your* gets 0.9544 / 6.5617 = 0.1455. Scores may come with leading
# dimensions, `(..., T)`: each row sums to 1 on its own.
#
# **Guess first**: a word has the scores `[2, -1]`. What share does the division give the first?

# %%
guess("negative_score", ...)

# %% exercise="normalize_by_sum" points=2

# %%
show(lambda: normalize_by_sum(torch.tensor([2.0, -1.0])))

# %% [markdown]
# A share of more than everything, and one below zero: dividing goes wrong as soon as a score is negative. Where the sum
# is 0 it does not work at all. **Softmax** takes exponentials first, which are always positive:
#
# $$\operatorname{softmax}(\omega)_j = \frac{e^{\omega_j}}{\sum_k e^{\omega_k}}$$
#
# The six weights of *journey* are now `0.1385 0.2379 0.2333 0.1240 0.1082 0.1581`.
#
# Mind large scores: in float32 $e^{89}$ is already infinite, and infinity divided by infinity is NaN. What helps is
# that adding the same number to all scores changes no weight: $e^{c}$ is a factor above and below the line, and
# cancels. So subtract the maximum first. Then no exponent is above 0.
#
# **Guess first**: what does softmax make of six scores that are all 1000? Say the weight of one.

# %%
guess("equal_scores", ...)

# %% [markdown]
# Write `softmax` from `exp` and a sum, along any dimension `dim`. The library's own (`torch.softmax`, `log_softmax`,
# `logsumexp`) are not allowed in this one exercise.

# %% exercise="softmax" points=4

# %% [markdown]
# **A bug hunt.** Here is a `softmax` that somebody else wrote. You can call it, not read it. Tried on large
# scores, one row at a time, it was right:

# %%
wrong = buggy("softmax")
wrong(torch.tensor([[1000.0, 1001.0, 1002.0]]))

# %% [markdown]
# Find a matrix that gives it away: `scores` of shape `(R, T)`, R rows of T scores each, with at most twelve numbers,
# `float32` and finite, on which `wrong(scores)` and the right weights differ by more than 0.001, be it in one row only.
# Before you try matrices, think of what is done to the scores before `exp`, and of the numbers that it could be done
# with.
#
# The check compares `wrong` with your own `softmax`, so write that first.

# %% exercise="hunt_softmax" points=2

# %% [markdown]
# Your softmax of two scores, one of which is 0: the larger the scores, the nearer it comes to all or nothing.


# %% drawing=true
def sharper() -> None:
    scores = torch.linspace(-3, 3, 100)
    two = torch.stack([scores, torch.zeros(100)])  # (2, 100)
    shares = {factor: softmax(two * factor, 0)[0] for factor in (1, 2, 8)}
    _, ax = plt.subplots(figsize=(5.5, 2.8))
    for factor, share in shares.items():
        ax.plot(scores, share, label=f"scores times {factor}")
    ax.set_xlabel("a score, against another one of 0")
    ax.set_ylabel("its weight")
    ax.legend()
    plt.show()


show(sharper)

# %% [markdown]
# ## 3. The context vector
#
# A word's context vector blends all words, each by its weight:
#
# $$\mathbf{z} = \sum_j \alpha_j \, \mathbf{x}_j$$
#
# `weights` is `(T,)`, `inputs` is `(T, d)`, the context vector is `(d,)`. For *journey* it is
# `[0.4419, 0.6515, 0.5683]`.
#
# **Guess first**: all of the weight is on *one*, whose embedding is `[0.77, 0.25, 0.10]`. What is the context vector?
# A guess can be a list.

# %%
guess("all_on_one", ...)

# %% exercise="context_vector" points=2

# %% [markdown]
# From scores to context vector, all by your functions:

# %%
show(
    lambda: softmax(dot_product_scores(X[1], X)),
    lambda: context_vector(softmax(dot_product_scores(X[1], X)), X),
)

# %% [markdown]
# ## 4. All words at once
#
# So far one word looked. Now let each one look at all of them: `(T, T)` scores, row $i$ for query $i$.
#
# As loops it reads: *for each query i, for each token j: score (i, j) is the sum over m of x (i, m) times x (j, m)*.
# That is the definition of a matrix product, of the inputs with their transpose. One product does the work of both
# loops, and a processor does it a hundred times faster.
#
# **Guess first**: how many of the six words have their largest score with *another* word, and not with themselves?

# %%
guess("most_alike", ...)

# %% exercise="pairwise_scores" points=2

# %% [markdown]
# The whole of it should be
#
# | | Your | journey | starts | with | one | step |
# |---|---|---|---|---|---|---|
# | **Your** | 0.9995 | 0.9544 | 0.9422 | 0.4753 | 0.4576 | 0.6310 |
# | **journey** | 0.9544 | 1.4950 | 1.4754 | 0.8434 | 0.7070 | 1.0865 |
# | **starts** | 0.9422 | 1.4754 | 1.4570 | 0.8296 | 0.7154 | 1.0605 |
# | **with** | 0.4753 | 0.8434 | 0.8296 | 0.4937 | 0.3474 | 0.6565 |
# | **one** | 0.4576 | 0.7070 | 0.7154 | 0.3474 | 0.6654 | 0.2935 |
# | **step** | 0.6310 | 1.0865 | 1.0605 | 0.6565 | 0.2935 | 0.9450 |
#
# and yours is

# %%
show(lambda: pairwise_scores(X))

# %% [markdown]
# Put together, this is **self-attention**: pairwise scores, a softmax over each row (here the library's is welcome, or
# your own), and for every token the weighted sum of the inputs.
#
# | step | shape |
# |---|---|
# | inputs | `(T, d)` |
# | scores | `(T, T)` |
# | weights, each row sums to 1 | `(T, T)` |
# | context vectors | `(T, d)` |
#
# The first context vector, of *Your*, is `[0.4421, 0.5931, 0.5790]`.
#
# **Guess first**: the words come in another order, *"step one with starts journey Your"*. The context vector of
# *journey* is then: `"the same"`, `"another"`, or `"cannot be told"`?

# %%
guess("shuffled", ...)

# %% exercise="simple_self_attention" points=4

# %% [markdown]
# All six, as they should be and as yours are:
#
# | | | | |
# |---|---|---|---|
# | **Your** | 0.4421 | 0.5931 | 0.5790 |
# | **journey** | 0.4419 | 0.6515 | 0.5683 |
# | **starts** | 0.4431 | 0.6496 | 0.5671 |
# | **with** | 0.4304 | 0.6298 | 0.5510 |
# | **one** | 0.4671 | 0.5910 | 0.5266 |
# | **step** | 0.4177 | 0.6503 | 0.5645 |

# %%
show(lambda: simple_self_attention(X))

# %% [markdown]
# Here are the words in the other order, and their context vectors put back. Attention sees a *set* of words: their
# order makes no difference to it. A model that is to know it must be told, and that is what position embeddings are
# for.

# %%
order = [5, 4, 3, 2, 1, 0]
show(lambda: simple_self_attention(X[order])[order])

# %% [markdown]
# ## What attention looks like
#
# Your scores, and the weights that your softmax makes of them. Row *journey* says how much *journey* takes from each
# word. *journey* and *starts* have nearly the same embedding, and so nearly the same row. The weights should be
#
# | | Your | journey | starts | with | one | step |
# |---|---|---|---|---|---|---|
# | **Your** | 0.2098 | 0.2006 | 0.1981 | 0.1242 | 0.1220 | 0.1452 |
# | **journey** | 0.1385 | 0.2379 | 0.2333 | 0.1240 | 0.1082 | 0.1581 |
# | **starts** | 0.1390 | 0.2369 | 0.2326 | 0.1242 | 0.1108 | 0.1565 |
# | **with** | 0.1435 | 0.2074 | 0.2046 | 0.1462 | 0.1263 | 0.1720 |
# | **one** | 0.1526 | 0.1958 | 0.1975 | 0.1367 | 0.1879 | 0.1295 |
# | **step** | 0.1385 | 0.2184 | 0.2128 | 0.1420 | 0.0988 | 0.1896 |

# %%
draw(
    {
        "scores": lambda: pairwise_scores(X),
        "weights": lambda: softmax(pairwise_scores(X)),
    },
    words,
)

# %% [markdown]
# **In real models.** The embeddings of GPT-2 small have 768 numbers, not three, and it reads up to 1024 tokens. Scores
# are a $T \times T$ matrix: twice the text has four times as many. What is missing here and comes next: real models
# do not compare embeddings as they are, but ask, offer and give with three sets of trained weights.

# %% [markdown] written="why_softmax" points=3
# **In your own words** (a few sentences, read by a person): why is softmax used to turn scores into weights, and not a
# division by the sum? Give one list of scores for which the division fails, and say what softmax makes of it.

# %% [markdown]
# ## How far you are
#
# Every check of this notebook in one table, with the points that the public examples would give:

# %%
check()
