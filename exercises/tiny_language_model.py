# %% [markdown]
# # A tiny language model
#
# All of it together. A language model reads some tokens and says, for each position, which token comes next. In this
# notebook you write its parts:
#
# 1. **positions**, so that the model knows which token comes first;
# 2. **the loss**, which says how surprised the model is by the token that really came;
# 3. **a block**: attention, and an MLP of two layers for each token;
# 4. **heads by hand**, to see what one head can do;
# 5. **writing**, one token after another;
# 6. **sampling**, so that it does not always write the same.
#
# At the end it learns a text that comes with Python itself, in some seconds on a CPU.
#
# Write your code where it says `YOUR CODE HERE`, then run the check below it. Pictures and numbers in this notebook are
# made by *your* functions: run their cells again once you have written them. *Run All* reaches the end of this notebook
# from the first minute on. Where you are stuck, `hint("next_token_loss")` gives you a question; call it again for more.
# Letters in shapes: $b$ sentences, $T$ tokens, $V$ tokens in the vocabulary, $d$ elements of an embedding.

# %% [markdown]
# <details><summary>What is tested in every exercise</summary>
#
# - The output has its inputs' dtype and device (`float32` and `float64` are tested, half precision is not).
# - Inputs are not modified.
#
# </details>

# %% locked="setup"
import codecs
import contextlib
import io
import math
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from attention_check import buggy, check, draw, example, guess, hint, show

# %% [markdown]
# The smallest language model counts which letter follows which:

# %%
rhyme = "the cat sat on the mat, the rat sat on the cat"
after_t = Counter(after for one, after in pairwise(rhyme) if one == "t")
print("after `t` comes:", dict(after_t))

# %% [markdown]
# This model reads one letter. Yours will read all letters before.
#
# **Tools of this unit**
#
# | tool | what it does | example |
# |---|---|---|
# | `x[..., 0::2]` | every other element, from the first on | `(T, d)` to `(T, d / 2)` |
# | `torch.arange(0, d, 2)` | 0, 2, 4, ... below $d$ | `(d / 2,)` |
# | `F.log_softmax(x, dim=-1)` | the logarithm of a softmax, safe for large elements | the same shape |
# | `x.gather(-1, index)` | from each row the element at its index | `(b, T, V)`, `(b, T, 1)` to `(b, T, 1)` |
# | `x.argmax(dim=-1)` | the index of each row's largest element | `(b, V)` to `(b,)` |
# | `tokens[:, -n:]` | the last `n` tokens, or all if there are fewer | `(b, T)` to `(b, n)` |
# | `x.topk(k, dim=-1)` | the $k$ largest elements of each row, and their indices | `.values`, `.indices` |
# | `torch.multinomial(p, 1)` | draws an index for each row with these probabilities | `(b, V)` to `(b, 1)` |
# | `torch.cat([a, b], dim=1)` | side by side | `(b, T)`, `(b, 1)` to `(b, T + 1)` |

# %% [markdown]
# ## 1. Positions
#
# Attention without positions knows no order (unit 5), so something must be added to each embedding that depends on its
# position. The first Transformer ([Vaswani and others, 2017](https://arxiv.org/abs/1706.03762), section 3.5) adds
# waves. Position $p$ has in its columns $2i$ and $2i + 1$
#
# $$\sin\!\left(\frac{p}{10000^{2i/d}}\right), \qquad \cos\!\left(\frac{p}{10000^{2i/d}}\right), \qquad
# i = 0, 1, \ldots, \frac{d}{2} - 1$$
#
# So neighbouring columns share an angle, like the hands of a clock: the first pair rotates fast, the last one slowly.
# Positions count from 0, whose row is `0 1 0 1 ...`; for $d = 4$ position 1 has `.8415 .5403 .0100 .99995`. $d$ is
# even, and the result is `float32`.
#
# **Guess first**: $d = 6$. What is the dot product of a row with itself?

# %%
guess("row_with_itself", ...)

# %% exercise="sinusoidal_positions" points=3

# %% drawing=true
try:
    with_positions = sinusoidal_positions(64, 32)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained")
    image = left.imshow(with_positions.T, aspect="auto", cmap="RdBu", vmin=-1, vmax=1)
    figure.colorbar(image, ax=left)
    left.set(title="the 32 columns of each position", xlabel="position")
    left.set_ylabel("column")
    right.plot(with_positions @ with_positions[20])
    right.set(title="dot product with position 20", xlabel="position")
    plt.show()
except NotImplementedError:
    print("A picture comes here once sinusoidal_positions is written.")

# %% [markdown]
# The dot product of two positions depends only on their distance. And one matrix, which rotates each pair, takes every
# position to the one three tokens earlier. So a head can learn to look three tokens back from anywhere.

# %% [markdown]
# ## 2. The loss
#
# At each position the model gives a score for every token of the vocabulary, the **logits** `(b, T, V)`. Their softmax
# is the probability that it gives each token to be **next**. Position $t$ predicts token $t + 1$. So the target of each
# position is the token one to the right, and the last position has none. The loss is the mean over all $b \cdot (T -
# 1)$ predictions:
#
# $$L = -\frac{1}{b\,(T-1)} \sum_{s=1}^{b} \sum_{t=0}^{T-2} \ln \operatorname{softmax}(z_{s,t})_{x_{s,t+1}}$$
#
# with logits $z$ and tokens $x$, `(b, T)`. For one sentence `[2, 0, 1]`, if position 0 gives the probability 0.5 to
# token 0, and position 1 gives 0.8 to token 1, the loss is $-(\ln 0.5 + \ln 0.8) / 2$ = `0.4581`.
#
# The result is a 0-d tensor. Take care with logits in the thousands: softmax can round a probability to 0, and $\ln(0)$
# is infinite. You may call the library.
#
# **Guess first**: a model that knows nothing gives all $V = 50$ tokens the same logit. What is its loss?

# %%
guess("knows_nothing", ...)

# %% exercise="next_token_loss" points=4

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - $T$ is at least 2. Gradients flow back to the logits, and are 0 at the last position of each sentence.
#
# </details>

# %%
surprise = torch.tensor([[[0.0, 3.0, 0.0], [0.0, 0.0, 3.0], [3.0, 0.0, 0.0]]])
expected, others = torch.tensor([[0, 1, 2]]), torch.tensor([[0, 2, 1]])
show(
    {
        "loss, the tokens are as expected": lambda: next_token_loss(surprise, expected),
        "loss, other tokens": lambda: next_token_loss(surprise, others),
    }
)

# %% [markdown]
# **A bug hunt.** Here is a `next_token_loss` that somebody else wrote. You can call it, not read it. Its loss in
# this example is right:

# %%
wrong = buggy("next_token_loss")
wrong(surprise, torch.tensor([[0, 1, 2]]))

# %% [markdown]
# Find an input that gives it away: `logits` `(b, T, V)`, `float32` and finite, and `tokens` `(b, T)`, `int64` and from
# 0 to $V - 1$, with at most twelve elements in both **together**, for which `wrong(logits, tokens)` and the right
# result differ by more than 0.001. Which position has no next token? And which token comes after it, if somebody
# flattens first?
#
# The check compares `wrong` with your own `next_token_loss`, so write that first.

# %% exercise="hunt_next_token_loss" points=2

# %% [markdown]
# ## 3. A block
#
# A model is a stack of equal **blocks**. Each takes `x`, `(b, T, d)`, and gives the same shape. It has two parts:
# attention, by which tokens read from each other, and an MLP of two layers, which works on each token separately. Each
# part **adds** its result to its input, the *residual stream*, so gradients reach the first block without passing
# through the layers between. And each part reads its input through a **LayerNorm**, which brings a token's elements to
# mean 0 and variance 1, and then applies a learned scale and shift ([*pre-norm*](https://arxiv.org/abs/2002.04745),
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
# - The heads have the width hd = `d / num_heads`; if that is no whole number, building the block raises a `ValueError`
#   (an `assert` is right too). Scores are divided by $\sqrt{\text{hd}}$, and those of later keys are $-\infty$.
# - GELU is the exact one, `F.gelu(x)`: $x$ times the probability that a normally distributed number is below $x$.
# - `context_length` is the longest sequence; `x` may be shorter. The block hides later tokens by itself, so `forward`
#   takes no mask.
#
# You may call `F.scaled_dot_product_attention`. With the same weights and a causal mask, `nn.TransformerEncoderLayer(d,
# num_heads, 4 * d, dropout=0, activation="gelu", batch_first=True, norm_first=True)` gives the same result.
#
# **Guess first**: without biases and norms, how many times $d^2$ parameters does a block have?

# %%
guess("weights_of_a_block", ...)

# %% exercise="TransformerBlock" points=8

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - A mask that the block stores is a buffer; a mask made in `forward` on the device of `x` is right too.
# - `context_length` may be more than a thousand, and scores may be very large.
# - Training and evaluation give the same.
#
# </details>

# %% [markdown]
# Built under seed 123, with two heads, for the six words of unit 1, each embedding twice side by side. The first row is
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
show({"six words": lambda: TransformerBlock(6, 2, 6)(torch.cat([X, X], dim=-1)[None])})

# %% [markdown]
# ## 4. Heads by hand
#
# What can one head do? Set its weights yourself. A token is a row of `num_words + num_places` elements: first its word
# as a one-hot vector, then its position as another one. With 2 words and 3 positions, word 1 at position 0 is `0 1 1 0
# 0`.
#
# `heads_by_hand(head, num_words, num_places)` returns three matrices for `x`, `(T, num_words + num_places)`:
#
# | matrix | shape | what it makes |
# |---|---|---|
# | `W_query`, `W_key` | `(num_words + num_places, d_k)`, any `d_k` | a token's query, and its key |
# | `W_value` | `(num_words + num_places, num_words)` | the one-hot vector of the token's word |
#
# The rest is causal attention: $\operatorname{softmax}(Q K^\top / \sqrt{d_k})\, V$, later tokens hidden. `head` names
# the tokens that get a token's attention. Their weights must be right to within 0.01:
#
# | `head` | what gets the weight |
# |---|---|
# | `"itself"` | the token itself |
# | `"first"` | the first token |
# | `"previous"` | the token before it; the first token has none and attends to itself |
# | `"average"` | itself and all before it, equally |
# | `"same word"` | all tokens up to itself that are the same word as it, equally |
#
# Heads like these are found in trained models ([Elhage and others,
# 2021](https://transformer-circuits.pub/2021/framework/index.html)). A *previous* head in one layer and a *same word*
# head in the next can find the word that followed this word the last time.
#
# **Guess first**: four tokens may be seen. One has the score $s$, the others 0. From which whole number $s$ on does it
# get more than 0.99 of the weight?

# %%
guess("score_for_a_sure_head", ...)

# %% exercise="heads_by_hand" points=5

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Many matrices are right: the tests compare the attention weights that they give, and the values.
# - The matrices are `float32`.
#
# </details>

# %%
sentence = ["the", "cat", "the", "dog", "cat", "cat"]
vocabulary = sorted(set(sentence))
one_hot = F.one_hot(torch.tensor([vocabulary.index(word) for word in sentence]))
x_by_hand = torch.cat([one_hot, torch.eye(6)], dim=-1)  # (6, 3 + 6)


def weights_by_hand(head: str) -> Callable[[], torch.Tensor]:
    """Attention weights of each word of the sentence in your head."""

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
# To write, the model reads the text so far, and its logits at the last position score the next token. That token is
# appended, and the model reads again. `generate(model, tokens, n, context_length)` does so `n` times for `tokens` `(b,
# T)`, **greedily**: it always takes the token with the largest logit. `model(tokens)` gives logits `(b, T, V)`, for at
# most `context_length` tokens; if there are more, it reads the last `context_length` of them. The result is the whole
# prompt and `n` tokens after it: `(b, T + n)`, `int64`.
#
# **Guess first**: a prompt of 5 tokens, $n = 3$ and a context of 6. How many tokens does the model read in its third
# call?

# %%
guess("third_call", ...)

# %% exercise="generate" points=4

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - `model` is an `nn.Module`. It stays in its mode, training or evaluation.
# - `n` may be 0, and the prompt may be longer than `context_length`.
#
# </details>

# %% [markdown]
# ## 6. Sampling
#
# Greedy texts often repeat themselves. So the next token is drawn at random, with two controls. `sample_next(logits,
# temperature, top_k)` draws one token for each row of `logits`, `(b, V)`; the result is `(b,)`, `int64`.
#
# - **Temperature** $\tau$: logits are divided by it, so the probabilities are $\operatorname{softmax}(z / \tau)$. A
#   small $\tau$ makes likely tokens likelier, a large one makes all tokens nearly equally likely. `0` stands for the
#   limit: the token with the largest logit.
# - **Top $k$** ([Fan and others, 2018](https://arxiv.org/abs/1805.04833)): only the $k$ tokens with the largest logits
#   can be drawn, and the softmax is over these. Without it, the many unlikely tokens together would be drawn often. If
#   $k$ is larger than $V$, all tokens can be drawn.
#
# **Guess first**: the logits are `[2, 1, 0]`, the temperature is 1 and $k = 2$. With which probability is token 0
# drawn?

# %%
guess("token_zero", ...)

# %% exercise="sample_next" points=6

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - The tests count how often each token is drawn, and leave room for chance. How you draw is up to you.
# - Each row is drawn independently, and each call draws again.
# - If logits tie at the $k$-th place, you may draw from $k$ tokens or from all that tie, but never a token with a
#   smaller logit.
#
# </details>

# %%
four_logits = torch.tensor([2.0, 1.0, 0.0, -1.0])


def how_often(temperature: float, top_k: int) -> torch.Tensor:
    """The share of each token in 10,000 draws."""
    drawn = sample_next(four_logits.expand(10_000, -1), temperature, top_k)
    return drawn.bincount(minlength=4) / 10_000


show(
    {
        "shares at temperature 1, all 4 tokens": lambda: how_often(1.0, 4),
        "temperature 1, top 2": lambda: how_often(1.0, 2),
        "temperature 0.5, all 4 tokens": lambda: how_often(0.5, 4),
    }
)

# %% [markdown]
# ## 7. All of it together
#
# The model consists of your parts: embeddings and positions, some blocks, a last norm, and a score for each letter. It
# reads the *Zen of Python*, a text of 856 letters that comes with Python.

# %% locked="zen"
with contextlib.redirect_stdout(io.StringIO()):
    import this
zen = codecs.decode(this.s, "rot13")
letters = sorted(set(zen))
letter_tokens = torch.tensor([letters.index(letter) for letter in zen])
print(f"{len(zen)} letters, {len(letters)} of them different:", zen[:51])


# %% locked="model"
class TinyLanguageModel(nn.Module):
    """Scores for the next letter, at each position of a text of at most 64 letters."""

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
    """Train a model on pieces of the text; return it and its loss at each step."""
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
    """Let the model write letter by letter: greedily, and at random."""
    text, drawn = generate(model, prompt, 120, 64), prompt
    for _ in range(120):
        following = sample_next(model(drawn[:, -64:])[:, -1], 0.8, 5)
        drawn = torch.cat([drawn, following[:, None]], dim=1)
    return f"greedy:\n{as_text(text[0])}\n\nat random:\n{as_text(drawn[0])}"


def learn_and_write() -> str:
    """Train a model, draw its losses, and let it write."""
    model, losses = trained()
    plt.figure(figsize=(5, 2.4))
    plt.plot(losses)
    plt.title("training loss")
    plt.xlabel("step")
    plt.ylim(0, None)
    plt.show()
    return written(model)


show(learn_and_write)

# %% [markdown]
# It has memorised parts of the Zen; here and there it writes a letter too many. Drawing at random can leave the text
# where two passages begin alike. Change the temperature and `top_k` in the cell above, and the number of steps.
#
# **In real models** the parts are the same, but many models since Llama (2023) use other kinds of them:
#
# | | this notebook | GPT-2 small, 2019 | Llama-3-8B, 2024 |
# |---|---|---|---|
# | blocks, $d$, heads | 2, 48, 4 | 12, 768, 12 | 32, 4096, 32 (8 groups, unit 6) |
# | norm | LayerNorm | LayerNorm | RMSNorm |
# | MLP | GELU, width $4d$ | GELU, width $4d$ | SwiGLU, width $3.5d$ |
# | positions | sinusoidal, added | learned, added | rotary (unit 5), base 500,000 |
# | biases of linear layers | yes | yes | no |
# | vocabulary | 45 letters | 50,257 pieces of words | 128,000 pieces of words |
# | longest text | 64 | 1024 | 8192 |
#
# Sources: [Radford and others, 2019](https://openai.com/index/better-language-models/); [Touvron and others,
# 2023](https://arxiv.org/abs/2302.13971); [Grattafiori and others, 2024](https://arxiv.org/abs/2407.21783).

# %% [markdown] written="why_train_at_once" points=3
# **In your own words** (a few sentences, read by a person): training reads all positions of a text at once, in one
# pass. Writing goes token by token, with a pass for each. Why is the first possible, and why is the second necessary?

# %% [markdown]
# ## How far you are
#
# Every check of this notebook in one table, with the points that the public examples would give:

# %%
check()
