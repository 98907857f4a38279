# %% [markdown]
# # Attention from dot products
#
# With attention, each word of a sentence collects information from all words, from some more than from others. Without
# trained weights this takes three steps of arithmetic. In this notebook you write each of them yourself:
#
# 1. **scores**: how well do two words fit? Their dot product answers that.
# 2. **weights**: scores turned into shares that sum to 1.
# 3. **context vector**: the sum of all words' vectors, each multiplied by its weight.
#
# Write your code where it says `YOUR CODE HERE`, then run the check below it. The hidden tests, which decide the
# points, ask the same with other numbers. Pictures and numbers come from *your* functions: once you have written one,
# run the cells below it again. *Run All* works from the start. If you are stuck, `hint("softmax")` asks you a question
# that helps; call it again for more.

# %% [markdown]
# <details><summary>What is tested in every exercise</summary>
#
# - The output has the dtype and the device of the inputs, and the inputs are not modified.
# - Gradients flow to every input.
# - Float64 inputs give results with float64 precision.
# - The library's attention (`F.scaled_dot_product_attention`, `nn.MultiheadAttention`) is not allowed: you are writing
#   it yourself.
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
# Our sentence is *"Your journey starts with one step"*. A model reads text in pieces, the **tokens**; here each word is
# one token. Each token is a vector, its **embedding**, here of three numbers. `X` has shape `(T, d)`, one token a row:
# `T = 6` tokens of width `d = 3`.

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
# The **dot product** of two vectors is the sum of the products of their numbers. Here is the dot product of each word
# with each word, by plain loops:

# %%
table = torch.zeros(6, 6)
for i in range(6):
    for j in range(6):
        table[i, j] = sum(X[i, m] * X[j, m] for m in range(3))

print("dot products", *(f"{word:>7}" for word in words))
for word, row in zip(words, table.tolist()):
    print(f"{word:12}", *(f"{score:7.4f}" for score in row))

# %% [markdown]
# **Tools of this unit**
#
# | tool | what it does | shapes |
# |---|---|---|
# | `a @ b` | matrix product | `(6, 3) @ (3,)` is `(6,)`; `(6,) @ (6, 3)` is `(3,)`; `(6, 3) @ (3, 6)` is `(6, 6)` |
# | `x.T` | swaps rows and columns of a matrix | `(6, 3)` becomes `(3, 6)` |
# | `x.sum(dim=-1, keepdim=True)` | sums along the last dimension, which keeps size 1 | `(4, 6)` becomes `(4, 1)` |
# | `x.amax(dim, keepdim=True)` | the same with the largest number | `(4, 6)` becomes `(4, 1)` |
# | `x.exp()` | the exponential of each number | the same shape |
#
# A `(4, 1)` tensor fits a `(4, 6)` one: its single column is used for all six. That is **broadcasting**. A leading
# `...` in a shape stands for any number of dimensions.
#
# ## 1. Scores: how well do two words fit?
#
# Choose one word as the **query**. Its score with another word is the dot product of the two:
#
# $$\omega_j = \mathbf{q} \cdot \mathbf{x}_j = \sum_{m=1}^{d} q_m \, x_{jm}$$
#
# The score is large if the two vectors point the same way, and if they are long: both count.
#
# For the query *journey*, the score with *Your* is 0.55 · 0.43 + 0.87 · 0.15 + 0.66 · 0.89 = 0.9544. Shapes: `query`
# is `(d,)`, `inputs` is `(T, d)`, the scores are `(T,)`.
#
# **Guess first**: the query becomes twice as long and keeps its direction. By which number is each score multiplied?
# Replace `...` by your guess. Guesses are not graded.

# %%
guess("longer_query", ...)

# %% exercise="dot_product_scores" points=2

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - The query need not be one of the inputs, and the vectors may have any width.
#
# </details>

# %% [markdown]
# What yours gives for *journey*; it should be `0.9544 1.4950 1.4754 0.8434 0.7070 1.0865`:

# %%
show({"scores of journey": lambda: dot_product_scores(X[1], X)})

# %% [markdown]
# ## 2. Weights: shares that sum to 1
#
# The simplest way to turn scores into shares is to divide them by their sum:
#
# $$\alpha_j = \frac{\omega_j}{\sum_k \omega_k}$$
#
# The scores of *journey* sum to 6.5617, so *Your* gets 0.9544 / 6.5617 = 0.1455. Scores may have leading dimensions,
# `(..., T)`: then each row sums to 1.
#
# **Guess first**: a word has the scores `[2, -1]`. What share does the first one get from the division?

# %%
guess("negative_score", ...)

# %% exercise="normalize_by_sum" points=2

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Negative scores are divided by the plain sum too, although the shares make no sense then. A sum of 0 is not tested.
# - Scores with up to two leading dimensions, also of equal sizes.
#
# </details>

# %%
two_scores = torch.tensor([2.0, -1.0])
show({"shares of the scores [2, -1]": lambda: normalize_by_sum(two_scores)})

# %% [markdown]
# One share is more than the whole, the other is below 0: the division goes wrong if a score is negative. If the sum is
# 0, it is impossible. **Softmax** takes exponentials first, which are always positive:
#
# $$\operatorname{softmax}(\omega)_j = \frac{e^{\omega_j}}{\sum_k e^{\omega_k}}$$
#
# The six weights of *journey* are now `0.1385 0.2379 0.2333 0.1240 0.1082 0.1581`.
#
# Beware of large scores: in float32 $e^{89}$ is already infinite, and infinity divided by infinity is NaN. The remedy:
# subtract the largest score from all scores first. Then no exponent is above 0. The weights stay the same, because
# subtracting $c$ multiplies numerator and denominator by the same factor $e^{-c}$.
#
# **Guess first**: what does softmax give for six scores that are all 1000? Enter the weight of one of them.

# %%
guess("equal_scores", ...)

# %% [markdown]
# Write `softmax` from `exp` and a sum, along any dimension `dim`.

# %% exercise="softmax" points=4

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Any `dim`, positive or negative, for tensors of two and three dimensions; without `dim`, the last one.
# - Scores as large as 1e4, positive or negative, give no NaN. One row may be a thousand times larger than the next.
# - `torch.softmax`, `log_softmax` and `logsumexp` are not allowed, in this exercise only.
# - `float16` and `bfloat16` are tested, too. A failure there is reported and costs no points.
#
# </details>

# %% [markdown]
# **A bug hunt.** Somebody else wrote this `softmax`. You can call it, but not read it. For large scores, one row at a
# time, its results were right:

# %%
wrong = buggy("softmax")
one_row = torch.tensor([[1000.0, 1001.0, 1002.0]])
show({"the wrong softmax, of one row": lambda: wrong(one_row)})

# %% [markdown]
# Find a matrix for which its result is wrong: `scores` of shape `(R, T)`, R rows of T scores each. What is done to the
# scores before `exp`, and which numbers could be used for it by mistake?

# %% exercise="hunt_softmax" points=2

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - The input has at most twelve numbers, all finite, dtype float32.
# - `wrong(scores)` and the right weights differ by more than 0.001 in at least one element.
#
# </details>

# %% [markdown]
# Your softmax of two scores, one of which is 0. If both scores are multiplied by a factor above 1, the weights come
# closer to 0 and 1:


# %% drawing=true
def sharper() -> None:
    scores = torch.linspace(-3, 3, 100)
    two = torch.stack([scores, torch.zeros(100)])  # (2, 100)
    shares = {factor: softmax(two * factor, 0)[0] for factor in (1, 2, 8)}
    _, ax = plt.subplots(figsize=(5.5, 2.8))
    for factor, share in shares.items():
        ax.plot(scores, share, label=f"both scores times {factor}")
    ax.set_xlabel("first score (the second one is 0)")
    ax.set_ylabel("weight of the first")
    ax.legend()
    plt.show()


show(sharper)

# %% [markdown]
# ## 3. The context vector
#
# A word's context vector is the sum of all words' vectors, each multiplied by its weight:
#
# $$\mathbf{z} = \sum_j \alpha_j \, \mathbf{x}_j$$
#
# `weights` is `(T,)`, `inputs` is `(T, d)`, the context vector is `(d,)`. For *journey* it is
# `[0.4419, 0.6515, 0.5683]`.
#
# **Guess first**: all of the weight is on *one*, whose embedding is `[0.77, 0.25, 0.10]`. What is the context vector?
# Enter a list.

# %%
guess("all_on_one", ...)

# %% exercise="context_vector" points=2

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Any number of tokens and any width, 1 and `T = d` included. Weights need not sum to 1.
#
# </details>

# %% [markdown]
# From scores to context vector, all by your functions:

# %%
show(
    {
        "weights of journey": lambda: softmax(dot_product_scores(X[1], X)),
        "context vector of journey": lambda: context_vector(
            softmax(dot_product_scores(X[1], X)),
            X,
        ),
    }
)

# %% [markdown]
# ## 4. All words at once
#
# So far there was one query. Now let each word be the query once: that gives `(T, T)` scores, row $i$ for query $i$. It
# is the table of dot products from the beginning.
#
# There, two loops went over the queries $i$ and the tokens $j$, and element $(i, j)$ was the sum over $m$ of
# $x_{im} \, x_{jm}$. That is the definition of a matrix product, of the inputs with their transpose. So one product
# does the work of all the loops.
#
# **Guess first**: how many of the six words have their largest score with *another* word, and not with themselves?

# %%
guess("most_alike", ...)

# %% exercise="pairwise_scores" points=2

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Any number of tokens and any width; row `i` also holds the score of token `i` with itself.
#
# </details>

# %%
show({"scores of all words, as in the table": lambda: pairwise_scores(X)})

# %% [markdown]
# Put together, this is **self-attention**: pairwise scores, a softmax over each row (yours or `torch.softmax`), and for
# every token the weighted sum of the inputs.
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
# *journey* is then: `"the same"`, `"another"`, or `"cannot be known"`?

# %%
guess("shuffled", ...)

# %% exercise="simple_self_attention" points=4

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Any number of tokens and any width.
# - Inputs whose scores are in the thousands give no NaN.
#
# </details>

# %% [markdown]
# All six context vectors. The last one, of *step*, should be `[0.4177, 0.6503, 0.5645]`:

# %%
show({"context vectors": lambda: simple_self_attention(X)})

# %% [markdown]
# Now the words in the other order. The context vectors are put back into the old order to compare them. They are the
# same: this self-attention ignores the order of the words. A model that needs the order gets it by other means, such as
# position embeddings (units 4 and 5).

# %%
order = [5, 4, 3, 2, 1, 0]
show({"shuffled, put back": lambda: simple_self_attention(X[order])[order]})

# %% [markdown]
# ## What attention looks like
#
# Your scores, and the weights that your softmax makes of them. Row *journey* shows how much *journey* takes from each
# word. *journey* and *starts* have nearly the same embedding, and so nearly the same row.

# %%
draw({"scores": lambda: pairwise_scores(X)}, words)

# %%
draw({"weights": lambda: softmax(pairwise_scores(X))}, words)

# %% [markdown]
# **In real models** the vectors are wider and the texts longer. Scores are a $T \times T$ matrix, so twice the text has
# four times as many scores.
#
# | model | width of an embedding | longest text, in tokens | source |
# |---|---|---|---|
# | here | 3 | 6 | |
# | GPT-2 small | 768 | 1024 | Radford et al., *Language Models are Unsupervised Multitask Learners*, 2019 |
# | Llama 3.1 8B | 4096 | 131,072 | Grattafiori et al., *The Llama 3 Herd of Models*, 2024 |
#
# One thing is missing here and comes in unit 2: real models do not compare embeddings directly. Three trained matrices
# turn each embedding into a query, a key and a value.

# %% [markdown] written="why_softmax" points=3
# **In your own words** (a few sentences, read by a person): why is softmax used to turn scores into weights, and not a
# division by the sum? Give one list of scores for which the division fails, and say what softmax makes of it.

# %% [markdown]
# ## How far you are
#
# Do you know your own code? If there are questions about your lines, a check that passes ends with a call like
# `explain("simple_self_attention")`. It asks for the shape of a line's result, where an input is used first, or what an
# edit would change. It is not graded.
#
# Every check of this notebook in one table, with the points that the public examples would give:

# %%
check()
