# %% [markdown]
# # A tiny language model
#
# All of it together. A language model reads some tokens and says, for each position, which token comes next. In this
# notebook you write its parts; their assembly and the training are given:
#
# 1. **positions**, so that the model knows which token comes first;
# 2. **the loss**, which says how surprised the model is by the token that really came;
# 3. **a block**: attention, and an MLP of two layers for each token;
# 4. **heads by hand**, to see what one head can do;
# 5. **writing**, one token after another;
# 6. **sampling**, so that it does not always write the same.
#
# At the end it learns from English that comes with Python itself, in less than a minute on a CPU.
#
# Write your code where it says `YOUR CODE HERE`, then run the check below it. The hidden tests, which decide the
# points, ask the same with other numbers. Pictures and numbers come from *your* functions: once you have written one,
# run the cells below it again. *Run All* works from the start. If you are stuck, `hint("next_token_loss")` asks you a
# question that helps; call it again for more. Letters in shapes: $b$ sentences, $T$ tokens, $V$ tokens in the
# vocabulary, $d$ elements of an embedding.

# %% [markdown]
# <details><summary>What is tested in every exercise</summary>
#
# - The output has its inputs' dtype and device (`float32` and `float64` are tested, half precision is not).
# - Inputs are not modified.
#
# </details>

# %% locked="setup"
import ast
import functools
import math
import re
import sysconfig
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

from attention_check import buggy, check, draw, example, explain, guess, hint, show

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
# One layer of attention without positions knows no order (unit 5). The first Transformer ([Vaswani and others,
# 2017](https://arxiv.org/abs/1706.03762), section 3.5) adds waves to the embeddings. Position $p$ has in its columns
# $2i$ and $2i + 1$
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
# The dot product of two positions depends only on their distance, and is largest at distance 0. And for each distance,
# 3 for instance, one matrix takes every position to the one three tokens earlier: it rotates each pair by three times
# the pair's angle. A head whose `W_query` is that matrix, and whose `W_key` changes nothing, has its largest score
# three tokens back, from anywhere. (The model of section 7 uses the same sines and cosines in another way, as angles.)

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
# **A bug hunt.** Here is a `next_token_loss` that somebody else wrote. You can call it, not read it. Its loss is never
# infinite. For logits drawn by `torch.randn` it is right, and also in this example:

# %%
wrong = buggy("next_token_loss")
wrong(surprise, torch.tensor([[0, 1, 2]]))

# %% [markdown]
# Find an input that gives it away: `logits` `(b, T, V)`, `float32` and finite, and `tokens` `(b, T)`, `int64` and from
# 0 to $V - 1$, with at most twelve elements in both **together**, for which `wrong(logits, tokens)` and the right
# result differ by more than 0.001.

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
# You may begin with a copy of your `MultiHeadAttention` (unit 4), or call `F.scaled_dot_product_attention`. With the
# same weights and a causal mask, `nn.TransformerEncoderLayer(d, num_heads, 4 * d, dropout=0, activation="gelu",
# batch_first=True, norm_first=True)` gives the same result.
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
# The rest is causal attention: $\operatorname{softmax}(Q K^\top / \sqrt{d_k})\, V$, later tokens hidden. The larger
# $d_k$ is, the larger $Q K^\top$ must be for the same weights. `head` says which tokens each token attends to. The
# weights must be right to within 0.01:
#
# | `head` | what gets the weight |
# |---|---|
# | `"itself"` | the token itself |
# | `"first"` | the first token |
# | `"previous"` | the token before it; the first token has none and attends to itself |
# | `"average"` | itself and all before it, equally |
# | `"same word"` | all tokens up to itself that are the same word as it, equally |
#
# (In the pictures below, 0 is exactly 0, as for a hidden key, and 0.00 is a small weight, rounded.)
#
# Heads like these are found in trained models ([Elhage and others,
# 2021](https://transformer-circuits.pub/2021/framework/index.html)). A *previous* head in one layer and a *same word*
# head in the next can find the word that followed this word the last time.
#
# **Guess first**: four tokens may be seen. One has the score $s$ after the division by $\sqrt{d_k}$, the others 0. From
# which whole number $s$ on does it get more than 0.99 of the weight?

# %%
guess("score_for_a_sure_head", ...)

# %% exercise="heads_by_hand" points=5

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Many matrices are right: the tests compare the attention weights that they give, and the values.
# - The matrices are `float32`. Only the five heads of the table are tested.
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
# - The prompts are `int64`. No gradients are needed; `torch.no_grad()` is allowed.
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
#   limit: the token with the largest logit (if several tie, any of them).
# - **Top $k$** ([Fan and others, 2018](https://arxiv.org/abs/1805.04833)): only the $k$ tokens with the largest logits
#   can be drawn, and the softmax is over these. Without it, the many unlikely tokens together would be drawn often. $k$
#   is at least 1; if it is larger than $V$, all tokens can be drawn.
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
# Your functions become parts of a model with rotary embeddings, grouped queries and a KV cache. It learns from 200,000
# characters of English that come with Python: paragraphs from the docstrings of 25 modules of its standard library.
# Nothing is downloaded. Each character is a token, and from here on text and code call it a letter, even if it is a
# space or a comma.
#
# A tenth of the paragraphs, those whose length ends in 9, is set aside as the **validation text**, on which the model
# does not train. A model can lower its loss on the training text by memorising that text. To lower its loss on the
# validation text, it must learn what both texts share: words, their order, punctuation.

# %% training="library_text"
MODULES = """
_pydecimal _pyio bdb codecs concurrent/futures/_base difflib email/_header_value_parser
email/_policybase email/headerregistry email/message fileinput http/cookiejar lzma os
pickle socketserver subprocess turtle unittest/case unittest/mock uuid
xml/etree/ElementTree xml/sax/handler xml/sax/xmlreader xmlrpc/server
"""
ENGLISH = re.compile(r"[A-Z][\w ,.;:'\"()/*<=`-]{40,}[.:!?]", re.ASCII)


def paragraphs_of(module: str) -> list[str]:
    """Return the paragraphs of English in the docstrings of a module's source."""
    try:
        file = Path(sysconfig.get_path("stdlib"), f"{module}.py")
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except OSError:  # this Python has no source of the module
        return []
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = [node for node in ast.walk(tree) if isinstance(node, documented)]
    docstrings = "\n\n".join(ast.get_docstring(node) or "" for node in nodes)
    blocks = [" ".join(block.split()) for block in re.split(r"\n\s*\n", docstrings)]
    return [block for block in blocks if ENGLISH.fullmatch(block)]


def library_text() -> tuple[str, str]:
    """Return the training text and the validation text, both empty without sources."""
    found = [one for module in MODULES.split() for one in paragraphs_of(module)]
    paragraphs = list(dict.fromkeys(found))  # each once
    if len(paragraphs) < 500:
        print("There is no text: this Python came without the sources of its standard")
        print("library. Run this notebook with Python from python.org or conda.")
        return "", ""
    training = [one for one in paragraphs if len(one) % 10 != 9]
    validation = [one for one in paragraphs if len(one) % 10 == 9]
    return "\n".join(training), "\n".join(validation)


training_text, validation_text = library_text()
letters = sorted(set(training_text + validation_text))
print(f"{len(training_text):,} letters to train on,", end=" ")
print(f"{len(validation_text):,} to validate,")
print(f"{len(letters)} of them different. The text begins:\n{training_text[:85]}")


def as_tokens(text: str) -> torch.Tensor:
    """Return the tokens of a text, (T,)."""
    return torch.tensor([letters.index(letter) for letter in text], dtype=torch.long)


def as_text(tokens: torch.Tensor) -> str:
    """Return the letters of a row of tokens."""
    return "".join(letters[token] for token in tokens.tolist())


# %% [markdown]
# Is a loss of 1.5 large? Its exponential is easier to imagine. The **perplexity** $e^L$ is the number of equally likely
# letters that give the loss $L$: 4.5 letters give 1.5. A model that knows nothing has the perplexity $V$. A model that
# is always sure and right has the perplexity 1.
#
# What does a simple model reach? The notebook began with a model that counts pairs of letters, a **bigram model**. One
# is added to each count (*add-one smoothing*), so that no pair has the probability 0:
#
# $$p(\text{after} \mid \text{one}) = \frac{\text{count}(\text{one}, \text{after}) + 1}{\text{count}(\text{one}) + V}$$


# %% training="bigram"
def bigram_loss(counted: str, text: str) -> float:
    """Return the loss on a text of a model that counted the pairs of another one."""
    if not text:
        raise ValueError("there is no text, see the message above")
    pairs, ones = Counter(pairwise(counted)), Counter(counted[:-1])
    loss = 0.0
    for one, after in pairwise(text):
        loss -= math.log((pairs[one, after] + 1) / (ones[one] + len(letters)))
    return loss / (len(text) - 1)


def bigram_perplexity() -> str:
    """Return a sentence on the bigram model and the validation text."""
    loss = bigram_loss(training_text, validation_text)
    return f"bigram model: validation loss {loss:.3f}, perplexity {math.exp(loss):.2f}"


show(bigram_perplexity)

# %% [markdown]
# The model differs from a stack of your blocks in three ways, which earlier units explain. Their code is given:
#
# - **Rotary embeddings** (unit 5) rotate queries and keys by their position. Nothing is added to the embeddings, as it
#   was in section 1. Your `sinusoidal_positions` gives the sines and cosines: the angles are the same.
# - **Grouped queries** (unit 6): four heads share two keys and two values, so the cache is half as large.
# - **A KV cache** (unit 6): when the model writes, it reads only the newest letter. If you have written a `KVCache` in
#   unit 6, paste it over this one.

# %% training="modern_model"
CONTEXT = 128  # letters that the model reads at most


class KVCache:
    """Keys and values of all letters so far; both are None at first."""

    def __init__(self) -> None:
        self.keys, self.values = None, None

    def append(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Append keys and values of the next letters, (b, groups, t, hd)."""
        if self.keys is not None:
            keys = torch.cat([self.keys, keys], dim=-2)
            values = torch.cat([self.values, values], dim=-2)
        self.keys, self.values = keys, values


def rotated(x: torch.Tensor, waves: torch.Tensor) -> torch.Tensor:
    """Rotate each pair of columns of x, (b, h, t, hd), by its angle; waves: (t, hd)."""
    sin, cos = waves[:, 0::2], waves[:, 1::2]  # as in sinusoidal_positions
    x1, x2 = x[..., 0::2], x[..., 1::2]
    pairs = [x1 * cos - x2 * sin, x1 * sin + x2 * cos]
    return torch.stack(pairs, dim=-1).flatten(-2)


class ModernBlock(nn.Module):
    """The layers of your block, with rotary embeddings, grouped queries and a cache."""

    def __init__(self, d: int, num_heads: int, num_groups: int) -> None:
        super().__init__()
        self.hd, self.sharing = d // num_heads, num_heads // num_groups
        self.block = TransformerBlock(d, num_heads, CONTEXT)
        self.block.W_key = nn.Linear(d, num_groups * self.hd)  # narrower than before
        self.block.W_value = nn.Linear(d, num_groups * self.hd)
        self.register_buffer("waves", sinusoidal_positions(CONTEXT, self.hd))

    def split(self, x: torch.Tensor) -> torch.Tensor:
        """(b, t, heads * hd) -> (b, heads, t, hd)."""
        return x.unflatten(-1, (-1, self.hd)).transpose(1, 2)

    def forward(self, x: torch.Tensor, cache: KVCache) -> torch.Tensor:
        """x: (b, t, d), the new letters. Returns the same shape."""
        block, normed, t = self.block, self.block.norm1(x), x.shape[1]
        n = 0 if cache.keys is None else cache.keys.shape[-2]  # letters in the cache
        waves = self.waves[n : n + t]  # positions continue
        queries = rotated(self.split(block.W_query(normed)), waves)  # (b, h, t, hd)
        keys = rotated(self.split(block.W_key(normed)), waves)  # (b, groups, t, hd)
        cache.append(keys, self.split(block.W_value(normed)))
        keys = cache.keys.repeat_interleave(self.sharing, dim=1)  # (b, h, n + t, hd)
        values = cache.values.repeat_interleave(self.sharing, dim=1)
        seen = torch.ones(t, n + t, dtype=torch.bool).tril(diagonal=n)  # True: is seen
        context = F.scaled_dot_product_attention(queries, keys, values, seen)
        x = x + block.out_proj(context.transpose(1, 2).flatten(2))
        return x + block.linear2(F.gelu(block.linear1(block.norm2(x))))


class TinyLanguageModel(nn.Module):
    """Logits of the next letter at each position of a text of at most 128 letters."""

    def __init__(self, d: int = 96) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(letters), d)
        self.blocks = nn.ModuleList(ModernBlock(d, 4, 2) for _ in range(2))
        self.norm = nn.LayerNorm(d)
        self.scores = nn.Linear(d, len(letters))

    def forward(
        self,
        tokens: torch.Tensor,
        caches: list[KVCache] | None = None,
    ) -> torch.Tensor:
        """tokens (b, t), the new ones -> logits (b, t, number of letters)."""
        x = self.embedding(tokens)
        caches = caches or [KVCache() for _ in self.blocks]
        for block, cache in zip(self.blocks, caches, strict=True):
            x = block(x, cache)
        return self.scores(self.norm(x))


# %% [markdown]
# The model has 221,000 parameters, and reads 820,000 letters in training, so each part of the text four or five times.
# This takes about half a minute if a processor core is free. The *validation* loss is that on the text set aside:


# %% training="train_tiny"
@torch.no_grad()
def loss_on(model: nn.Module, text: str) -> float:
    """Return the loss of a model on a text, read in pieces of 128 letters."""
    tokens = as_tokens(text)
    pieces = tokens[: len(tokens) // CONTEXT * CONTEXT].view(-1, CONTEXT)
    return next_token_loss(model(pieces), pieces).item()


@functools.cache
def trained_model(steps: int = 800) -> nn.Module:
    """Train a model once, with a line of progress every few seconds; return it."""
    if not training_text:
        raise ValueError("there is no text, see the message above")
    torch.manual_seed(0)
    torch.set_num_threads(1)  # results do not depend on the number of cores
    model, losses, validation = TinyLanguageModel(), [], {}
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3, betas=(0.9, 0.99))
    slower = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.02, steps)
    tokens = as_tokens(training_text)
    for step in range(1, steps + 1):
        starts = torch.randint(len(tokens) - CONTEXT, (8, 1))
        pieces = tokens[starts + torch.arange(CONTEXT)]  # (8, 128)
        loss = next_token_loss(model(pieces), pieces)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        slower.step()
        losses.append(loss.item())
        if step % 100 == 0 or step == steps:
            validation[step] = loss_on(model, validation_text)
            mean = sum(losses[-100:]) / len(losses[-100:])
            print(f"step {step}: loss {mean:.3f}, validation {validation[step]:.3f}")
    plt.figure(figsize=(5.5, 2.8), layout="constrained")
    plt.plot(range(1, steps + 1), losses, color="0.75", label="training")
    plt.plot(validation.keys(), validation.values(), "o-", label="validation")
    bigram = bigram_loss(training_text, validation_text)
    plt.axhline(bigram, linestyle="--", color="0.3", label="bigram model, validation")
    plt.xlabel("step")
    plt.ylabel("loss")
    plt.legend(fontsize=8)
    plt.show()
    return model


def perplexities() -> None:
    """Print loss and perplexity of the model and of what it is compared with."""
    model, text = trained_model(), validation_text
    beginning = training_text[: len(text)]
    losses = {
        "validation, all equally likely": math.log(len(letters)),
        "validation, bigram model": bigram_loss(training_text, text),
        "validation, your model": loss_on(model, text),
        "training, your model": loss_on(model, beginning),
    }
    print(f"{'text and model':<33}loss  perplexity")
    for what, loss in losses.items():
        print(f"{what:<32}{loss:5.3f}{math.exp(loss):12.2f}")


show(perplexities)

# %% [markdown]
# On the validation text the model is as unsure as among four equally likely letters, the bigram model as among twelve.
# On the training text its perplexity is about 15 % lower, so it memorised something. Both texts come from the same
# modules; a text of other modules would be harder.
#
# **Writing with a cache.** Your `generate` reads the whole text again for each letter. With a cache the first step
# reads the prompt, and each later step one letter. Greedily, both ways write the same, up to the 128 letters of the
# context. Then `generate` drops the oldest letters, but a cache still has them: there the two ways part.


# %% training="write_with_cache"
@torch.no_grad()
def write(
    model: nn.Module,
    prompts: torch.Tensor,
    n: int,
    choose: Callable[[torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    """Append n letters to each prompt, (b, T); the model reads each letter once.

    choose: takes the logits of the next letter, (b, V), and returns its token, (b,).
    """
    caches = [KVCache() for _ in model.blocks]
    text = new = prompts
    for _ in range(n):
        new = choose(model(new, caches)[:, -1])[:, None]  # (b, 1)
        text = torch.cat([text, new], dim=1)
    return text


def both_ways(begun: str = "The ") -> None:
    """Write greedily with a cache and without one, and compare."""
    model, prompt = trained_model(), as_tokens(begun)[None]
    n = CONTEXT - prompt.shape[1]
    cached = write(model, prompt, n, lambda logits: sample_next(logits, 0, 1))
    with torch.no_grad():
        read_again = generate(model, prompt, n, CONTEXT)
    print(as_text(cached[0]))
    print("both ways write the same:", torch.equal(cached, read_again))
    without = sum(range(prompt.shape[1], CONTEXT))
    print(f"letters read: {without} without a cache, {CONTEXT - 1} with it")


show(both_ways)

# %% [markdown]
# **Top $p$.** Your `sample_next` keeps the same number $k$ of letters at each position. But within a word often only
# one letter is possible, and at its beginning many are. *Top $p$*, or nucleus sampling ([Holtzman and others,
# 2020](https://arxiv.org/abs/1904.09751)), keeps the most likely letters until they have the probability $p$ together.
# So it keeps few where the model is sure, and many where it is not. The picture shows how many, for each letter of the
# validation text, given the letters before it:


# %% training="top_p"
def top_p(logits: torch.Tensor, p: float) -> torch.Tensor:
    """Set the logits to -inf, except those of the most likely letters, p together."""
    probabilities, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    likelier = probabilities.cumsum(dim=-1) - probabilities  # all letters before it
    hidden = torch.zeros_like(logits, dtype=torch.bool)
    hidden = hidden.scatter(-1, order, likelier >= p)  # back into the order of letters
    return logits.masked_fill(hidden, -torch.inf)


@torch.no_grad()
def draw_kept(length: int = 60) -> None:
    """Draw how many letters top p keeps at each position of the validation text."""
    model, piece = trained_model(), validation_text[:length]
    logits = model(as_tokens(piece)[None])[0, :-1]  # (length - 1, V)
    kept = top_p(logits, 0.9).isfinite().sum(dim=-1)
    plt.figure(figsize=(8.2, 2.6), layout="constrained")
    plt.bar(range(1, length), kept.tolist(), label="kept by top p = 0.9")
    plt.axhline(5, linestyle="--", color="0.3", label="kept by top k = 5")
    plt.xticks(range(length), piece.replace(" ", "_"), family="monospace")
    plt.xlabel("the text")
    plt.ylabel("letters that can be drawn")
    plt.xlim(-1, length)
    plt.margins(y=0.25)  # leaves room for the legend
    plt.legend(fontsize=8, ncols=2, loc="upper right")
    plt.show()


show(draw_kept)

# %% [markdown]
# Three texts by each way of drawing, at temperature 0.6. Are they copied? The last line shows the longest passage that
# they copied from the training text:


# %% training="samples"
def longest_copy(text: str, known: str) -> str:
    """Return the longest piece of a text that is in the known text, too."""
    longest = ""
    for start in range(len(text)):
        end = start + len(longest) + 1
        while end <= len(text) and text[start:end] in known:
            longest = text[start:end]
            end += 1
    return longest


def top_k_sample(logits: torch.Tensor) -> torch.Tensor:
    """Draw from the 5 most likely letters."""
    return sample_next(logits, 0.6, 5)


def top_p_sample(logits: torch.Tensor) -> torch.Tensor:
    """Draw from the most likely letters that have 90 % together."""
    return sample_next(top_p(logits / 0.6, 0.9), 1.0, len(letters))


def samples(begun: str = "The ", number: int = 3) -> None:
    """Print texts by top k and by top p, and what they copied."""
    model, copies = trained_model(), []
    prompts = as_tokens(begun).expand(number, -1)
    for name, choose in {"top k": top_k_sample, "top p": top_p_sample}.items():
        torch.manual_seed(0)
        print(f"{name}:")
        for row in write(model, prompts, CONTEXT - len(begun), choose):
            text = as_text(row)
            copies.append(longest_copy(text, training_text))
            print("-", text.replace("\n", "\n  "))  # a new paragraph
    longest = max(copies, key=len)
    print(f"longest copy of the training text: {len(longest)} letters, {longest!r}")


show(samples)

# %% [markdown]
# Most words are right, some are invented, and no sentence makes sense. Half a minute is short: GPT-2 small has 560
# times as many parameters. Change the temperature, $k$ and $p$ in the cell above, and the number of steps.
#
# **In real models** the parts are the same, but many models since Llama (2023) use other kinds of them:
#
# | | this notebook | GPT-2 small, 2019 | Qwen3-8B, 2025 |
# |---|---|---|---|
# | blocks, $d$, heads | 2, 96, 4 (2 groups) | 12, 768, 12 | 36, 4096, 32 (8 groups, unit 6) |
# | norm | LayerNorm | LayerNorm | RMSNorm, also of queries and keys (unit 9) |
# | MLP | GELU, width $4d$ | GELU (approximated by tanh), width $4d$ | SwiGLU (unit 9), width $3d$ |
# | positions | rotary, base 10,000 | learned, added | rotary (unit 5), base 1,000,000 |
# | biases of linear layers | yes | yes | no |
# | vocabulary | 81 letters | 50,257 pieces of words | 151,669 pieces of words |
# | longest text in training | 128 | 1024 | 32,768 |
#
# Sources: Radford and others, 2019, and the published code of GPT-2; [Touvron and others,
# 2023](https://arxiv.org/abs/2302.13971); [Yang and others, 2025](https://arxiv.org/abs/2505.09388), and the published
# configuration of Qwen3-8B ($d$ and the width of the MLP).

# %% [markdown] written="why_train_at_once" points=3
# **In your own words** (a few sentences, read by a person): training reads all positions of a text at once, in one
# pass. Writing goes token by token, with a pass for each. Why is the first possible, and why is the second necessary?

# %% [markdown]
# ## How far you are
#
# Do you know your own code? If there are questions about your lines, a check that passes ends with a call like
# `explain("TransformerBlock")`. It asks for the shape of a line's result, where an input is used first, or what an edit
# would change. It is not graded.
#
# Every check of this notebook in one table, with the points that the public examples would give:

# %%
check()
