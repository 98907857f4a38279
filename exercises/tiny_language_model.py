# %% [markdown]
# # A tiny language model
#
# All of it together. A language model reads some tokens and says, for each place, which token comes next. In this
# notebook you write its parts:
#
# 1. **positions**, so that the model knows which token comes first;
# 2. **the loss**, which says how surprised it is by the token that really came;
# 3. **a block**: attention, and two layers for each token;
# 4. **heads by hand**, to see what one head can do;
# 5. **writing**, one token after another;
# 6. **chance**, so that it does not always write the same.
#
# At the end it learns a text that comes with Python itself, in some seconds on a CPU.
#
# Write your code where it says `YOUR CODE HERE`, then run the check below it. Pictures and numbers in this notebook are
# made by *your* functions: run their cells again once you have written them. *Run All* reaches the end of this notebook
# from the first minute on. Where you are stuck, `hint("next_token_loss")` gives you a question; call it again for more.
#
# What holds for every exercise here: the output has its inputs' dtype and device (`float32` and `float64` are tried,
# half precision is not), and inputs are left unchanged.
# Letters in shapes: $b$ sentences, $T$ tokens, $V$ words in the vocabulary, $d$ numbers in an embedding.

# %% locked="setup"
import codecs
import contextlib
import io
import math
from collections.abc import Callable

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
# | `x[..., 0::2]` | every other number, from the first on | `(T, d)` to `(T, d / 2)` |
# | `torch.arange(0, d, 2)` | 0, 2, 4, ... below $d$ | `(d / 2,)` |
# | `F.log_softmax(x, dim=-1)` | the logarithm of a softmax, safe for large numbers | the same shape |
# | `x.gather(-1, index)` | from each row the number at its index | `(b, T, V)`, `(b, T, 1)` to `(b, T, 1)` |
# | `x.argmax(dim=-1)` | where the largest number of each row is | `(b, V)` to `(b,)` |
# | `tokens[:, -n:]` | the last `n` tokens, or all if there are fewer | `(b, T)` to `(b, n)` |
# | `x.topk(k, dim=-1)` | the $k$ largest numbers of each row, and where they are | `.values`, `.indices` |
# | `torch.multinomial(p, 1)` | draws a place in each row with these probabilities | `(b, V)` to `(b, 1)` |
# | `torch.cat([a, b], dim=1)` | side by side | `(b, T)`, `(b, 1)` to `(b, T + 1)` |

# %% [markdown]
# ## 1. Positions
#
# Attention alone knows no order (unit 5), so something must be added to each embedding that says where it stands. The
# first Transformer ([Vaswani and others, 2017](https://arxiv.org/abs/1706.03762), section 3.5) adds waves. Position $p$
# has in its columns $2i$ and $2i + 1$
#
# $$\sin\!\left(\frac{p}{10000^{2i/d}}\right), \qquad \cos\!\left(\frac{p}{10000^{2i/d}}\right), \qquad
# i = 0, 1, \ldots, \frac{d}{2} - 1$$
#
# So neighbouring columns share an angle, like the hands of a clock: the first pair turns fast and the last one hardly
# at all. Positions count from 0, whose row is `0 1 0 1 ...`; for $d = 4$ position 1 has `.8415 .5403 .0100 .99995`.
# $d$ is even, and the result is `float32`.
#
# **Guess first**: $d = 6$. What is the dot product of a row with itself?

# %%
guess("row_with_itself", ...)

# %% exercise="sinusoidal_positions" points=3

# %% drawing=true
try:
    with_positions = sinusoidal_positions(64, 32)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 2.6))
    left.imshow(with_positions.T, aspect="auto", cmap="RdBu")
    left.set(title="positions", xlabel="position", ylabel="column")
    right.plot(with_positions @ with_positions[20])
    right.set(title="dot product with position 20", xlabel="position")
    plt.show()
except NotImplementedError:
    print("A picture comes here once sinusoidal_positions is written.")

# %% [markdown]
# The dot product of two positions depends on how far they are apart and on nothing else. So a head can learn to look
# three tokens back, wherever it stands.

# %% [markdown]
# ## 2. The loss
#
# At each place the model gives a score for every word of the vocabulary, the **logits** `(b, T, V)`; their softmax is
# the probability that it gives each word to be **next**. Position $t$ is to predict token $t + 1$. So the target of
# each place is the token one to the right, and the last place has none: $b \cdot (T - 1)$ predictions count, alike.
#
# $$L = -\frac{1}{b\,(T-1)} \sum_{s=1}^{b} \sum_{t=0}^{T-2} \ln \operatorname{softmax}(z_{s,t})_{x_{s,t+1}}$$
#
# with logits $z$ and tokens $x$, `(b, T)`. For one sentence `[2, 0, 1]`, if the first place gives the probability 0.5
# to word 0, and the second 0.8 to word 1, the loss is $-(\ln 0.5 + \ln 0.8) / 2$ = `0.4581`.
#
# The result is a 0-d tensor, through which gradients flow. Logits may be in the thousands: $\ln(0)$ is infinite, so let
# no probability be rounded to 0 on the way. $T$ is at least 2. You may call the library.
#
# **Guess first**: a model that knows nothing gives all of $V = 50$ words the same logit. What is its loss?

# %%
guess("knows_nothing", ...)

# %% exercise="next_token_loss" points=4

# %%
surprise = torch.tensor([[[0.0, 3.0, 0.0], [0.0, 0.0, 3.0], [3.0, 0.0, 0.0]]])
show(
    lambda: next_token_loss(surprise, torch.tensor([[0, 1, 2]])),  # as expected
    lambda: next_token_loss(surprise, torch.tensor([[0, 2, 1]])),  # surprised
)

# %% [markdown]
# **A bug hunt.** Here is a `next_token_loss` that somebody else wrote. You can call it, not read it. Here it is right:

# %%
wrong = buggy("next_token_loss")
wrong(surprise, torch.tensor([[0, 1, 2]]))

# %% [markdown]
# Find an input that gives it away: `logits` `(b, T, V)`, `float32` and finite, and `tokens` `(b, T)`, `int64` and from
# 0 to $V - 1$, with at most twelve numbers in both **together**, on which `wrong(logits, tokens)` and the right result
# differ by more than 0.001. Which place has no next token? And what might stand after it, if somebody flattens first?
#
# The check compares `wrong` with your own `next_token_loss`, so write that first.

# %% exercise="hunt_next_token_loss" points=2

# %% [markdown]
# ## 3. A block
#
# A model is a stack of equal **blocks**. Each takes `x`, `(b, T, d)`, and gives the same shape. It has two parts:
# attention, by which tokens learn of each other, and two layers that work on each token by itself. Each part **adds**
# what it finds to what came in, so that gradients reach the first block unhindered; and each reads through a
# **LayerNorm**, which brings a token's numbers to mean 0 and variance 1 ([*pre-norm*](https://arxiv.org/abs/2002.04745),
# Xiong and others, 2020):
#
# $$y = x + \operatorname{attention}(\operatorname{norm1}(x)), \qquad
# \text{result} = y + \operatorname{linear2}(\operatorname{GELU}(\operatorname{linear1}(\operatorname{norm2}(y))))$$
#
# | layer, created in this order | what it is |
# |---|---|
# | `norm1` | `nn.LayerNorm(d)` |
# | `W_query`, `W_key`, `W_value`, `out_proj` | `nn.Linear(d, d)` each: causal attention, as in unit 4 |
# | `norm2` | `nn.LayerNorm(d)` |
# | `linear1`, `linear2` | `nn.Linear(d, 4 * d)` and `nn.Linear(4 * d, d)` |
#
# - **All linear layers have a bias**, as `nn.Linear` makes it. There is no dropout.
# - The heads have the width hd = `d / num_heads`; where that is no whole number, building the block raises a
#   `ValueError` (an `assert` is right too). Scores are divided by $\sqrt{\text{hd}}$, and those of later keys are
#   $-\infty$. `F.scaled_dot_product_attention` may be called.
# - GELU is the exact one, `F.gelu(x)`: $x$ times the probability that a normal number is below $x$.
# - A sequence may be shorter than `context_length`. A mask that the block keeps is a buffer; one made in `forward` on
#   x's device is right too.
#
# With the same weights `nn.TransformerEncoderLayer(d, num_heads, 4 * d, dropout=0, activation="gelu",
# norm_first=True)` gives the same, if it is called with a causal mask.
#
# **Guess first**: without biases and norms, how many times $d^2$ numbers has a block?

# %%
guess("weights_of_a_block", ...)

# %% exercise="TransformerBlock" points=8

# %% [markdown]
# Built under seed 123, with two heads, for the six words of unit 1, their numbers twice side by side. The first row is
# `.0683 .3886 1.0181 .8764 .1017 1.7008`:

# %%
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
torch.manual_seed(123)
show(lambda: TransformerBlock(6, 2, 6)(torch.cat([X, X], dim=-1)[None]))

# %% [markdown]
# ## 4. Heads by hand
#
# What can one head do? Set its weights yourself. A token is a row of `num_words + num_places` numbers: first its word
# as a one-hot vector, then its place as another one. With 2 words and 3 places, word 1 at place 0 is `0 1 1 0 0`.
#
# `heads_by_hand(head, num_words, num_places)` returns three matrices for `x`, `(T, num_words + num_places)`:
#
# | matrix | shape | what it makes |
# |---|---|---|
# | `W_query`, `W_key` | `(num_words + num_places, d_k)`, any `d_k` | what a token asks for, and what it is found by |
# | `W_value` | `(num_words + num_places, num_words)` | the one-hot vector of the token's word |
#
# The rest is causal attention as ever: $\operatorname{softmax}(Q K^\top / \sqrt{d_k})\, V$, the future hidden. `head`
# says to what each token is to attend, with weights that are right within 0.01:
#
# | `head` | what gets the weight |
# |---|---|
# | `"itself"` | the token itself |
# | `"first"` | the first token |
# | `"previous"` | the token before it; the first token has none and attends to itself |
# | `"average"` | itself and all before it, equally |
# | `"same word"` | all tokens up to itself that are the same word as it, equally |
#
# Many matrices do, so it is what they make that counts. The check below cannot try that: the pictures after it show you
# what your heads do. Heads like these are found in trained models ([Elhage and others,
# 2021](https://transformer-circuits.pub/2021/framework/index.html)): *previous* and *same word* together say what came
# after this word the last time.
#
# **Guess first**: four tokens may be seen. One has the score $s$, the others 0. From which whole number $s$ on does it
# get more than 0.99 of the weight?

# %%
guess("score_for_a_sure_head", ...)

# %% exercise="heads_by_hand" points=5

# %%
sentence = ["the", "cat", "the", "dog", "cat", "cat"]
vocabulary = sorted(set(sentence))
one_hot = F.one_hot(torch.tensor([vocabulary.index(word) for word in sentence]))
x_by_hand = torch.cat([one_hot, torch.eye(6)], dim=-1)  # (6, 3 + 6)


def weights_by_hand(head: str) -> Callable[[], torch.Tensor]:
    """What each word of the sentence attends to in your head."""

    def weights() -> torch.Tensor:
        W_query, W_key, _ = heads_by_hand(head, 3, 6)
        scores = (x_by_hand @ W_query) @ (x_by_hand @ W_key).T
        future = torch.ones(6, 6, dtype=torch.bool).triu(diagonal=1)
        scores = scores.masked_fill(future, -torch.inf)
        return torch.softmax(scores / math.sqrt(W_query.shape[1]), dim=-1)

    return weights


for some in (["itself", "first", "previous"], ["average", "same word"]):
    draw({head: weights_by_hand(head) for head in some}, sentence)

# %% [markdown]
# ## 5. Writing
#
# To write, the model reads what is there and says at its last place which token comes next. That token is appended,
# and all is read again. `generate(model, tokens, n, context_length)` does so `n` times for `tokens` `(b, T)`,
# **greedily**: always the token with the largest logit. `model(tokens)` gives logits `(b, T, V)`, for at most
# `context_length` tokens; where there are more, it reads the last `context_length` of them. The result is the whole
# prompt, and `n` tokens after it: `(b, T + n)`, `int64`. `model` is an `nn.Module`, and is left in the mode that it was
# in, training or evaluation.
#
# **Guess first**: a prompt of 5 tokens, $n = 3$ and a context of 6. How many tokens does the model read in its third
# call?

# %%
guess("third_call", ...)

# %% exercise="generate" points=4

# %% [markdown]
# ## 6. Chance
#
# Greedy texts go round in circles. So chance has its say, under two conditions. `sample_next(logits, temperature,
# top_k)` draws one token for each row of `logits`, `(b, V)`; the result is `(b,)`, `int64`.
#
# - **Temperature** $\tau$: logits are divided by it, so the probabilities are $\operatorname{softmax}(z / \tau)$. A
#   small one makes the likely likelier, a large one all alike. `0` stands for the limit: the largest logit.
# - **Top $k$** ([Fan and others, 2018](https://arxiv.org/abs/1805.04833)): drawn from are the $k$ tokens with the
#   largest logits alone, and the softmax is over these. The many that are unlikely would together be drawn often. $k$
#   may be larger than $V$: then all take part. If logits tie at the $k$-th place, you may draw from $k$ tokens or from
#   all that tie, but never a token with a smaller logit.
#
# Each row draws on its own, a single one too, and each call anew. How you draw is yours: the grader counts, and leaves
# room for chance.
#
# **Guess first**: the logits are `[2, 1, 0]`, the temperature is 1 and $k = 2$. With which probability is token 0
# drawn?

# %%
guess("token_zero", ...)

# %% exercise="sample_next" points=6

# %%
four_logits = torch.tensor([2.0, 1.0, 0.0, -1.0])


def how_often(temperature: float, top_k: int) -> torch.Tensor:
    """The share of each token in 10,000 draws."""
    drawn = sample_next(four_logits.expand(10_000, -1), temperature, top_k)
    return drawn.bincount(minlength=4) / 10_000


show(lambda: how_often(1.0, 4), lambda: how_often(1.0, 2), lambda: how_often(0.5, 4))

# %% [markdown]
# ## 7. All of it together
#
# A model is what you have written: embeddings and positions, some blocks, a last norm, and a score for each letter. It
# reads the *Zen of Python*, 856 letters that come with Python.

# %% locked="zen"
with contextlib.redirect_stdout(io.StringIO()):
    import this
zen = codecs.decode(this.s, "rot13")
letters = sorted(set(zen))
letter_tokens = torch.tensor([letters.index(letter) for letter in zen])
print(f"{len(zen)} letters, {len(letters)} of them different:", zen[:51])


# %% locked="model"
class TinyLanguageModel(nn.Module):
    """Scores for the next letter, at each place of a text of at most 64 letters."""

    def __init__(self, d: int = 48, context_length: int = 64) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(letters), d)
        self.register_buffer("positions", sinusoidal_positions(context_length, d))
        blocks = [TransformerBlock(d, 4, context_length) for _ in range(2)]
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.LayerNorm(d)
        self.scores = nn.Linear(d, len(letters))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """tokens (b, T) -> logits (b, T, number of letters)."""
        x = self.embedding(tokens) + self.positions[: tokens.shape[1]]
        return self.scores(self.norm(self.blocks(x)))


def trained(steps: int = 500) -> tuple[nn.Module, list[float]]:
    """A model that has seen pieces of the text, and its loss at each step."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # for matrices as small as these it is faster
    model, losses = TinyLanguageModel(), []
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    slower = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.02, steps)
    for _ in range(steps):
        starts = torch.randint(len(zen) - 64, (16,)).tolist()
        pieces = torch.stack([letter_tokens[start : start + 64] for start in starts])
        loss = next_token_loss(model(pieces), pieces)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        slower.step()
        losses.append(loss.item())
    return model, losses


def as_text(tokens: torch.Tensor) -> str:
    """The letters of a row of tokens."""
    return "".join(letters[token] for token in tokens.tolist())


# %% [markdown]
# Some 60,000 parameters; training takes from five seconds to half a minute. At first the model knows nothing, and its
# loss is near $\ln 45 = 3.8$:

# %% training="train_tiny"
prompt = torch.tensor([[letters.index(letter) for letter in "Beautiful"]])


@torch.no_grad()
def written(model: nn.Module) -> str:
    """What the model writes, letter by letter: greedily, and by chance."""
    text, drawn = generate(model, prompt, 120, 64), prompt
    for _ in range(120):
        following = sample_next(model(drawn[:, -64:])[:, -1], 0.8, 5)
        drawn = torch.cat([drawn, following[:, None]], dim=1)
    return f"greedy:\n{as_text(text[0])}\n\nby chance:\n{as_text(drawn[0])}"


def learn_and_write() -> str:
    """Train a model, draw its losses, and let it write."""
    model, losses = trained()
    plt.figure(figsize=(5, 2.4))
    plt.plot(losses)
    plt.title("loss")
    plt.xlabel("step")
    plt.show()
    return written(model)


show(learn_and_write)

# %% [markdown]
# It says some of the Zen by heart, now and then with a letter too many. By chance it leaves the text where two places
# begin alike. Change the temperature and `top_k` in the cell above, and the number of steps.
#
# **In real models** little is different. GPT-2 is 12 such blocks, with positions that are learned, tokens that are
# pieces of words, and a context of 1024. Newer ones turn queries and keys instead of adding positions (unit 5), keep
# keys and values while they write, and compute attention tile by tile (unit 7).

# %% [markdown] written="why_train_at_once" points=3
# **In your own words** (a few sentences, read by a person): training looks at all places of a text at once, in one
# pass. Writing goes token by token, with a pass for each. Why is the first possible, and why is the second necessary?

# %% [markdown]
# ## How far you are
#
# Every check of this notebook in one table, with the points that the public examples would give:

# %%
check()
