# %% [markdown]
# # One token at a time
#
# A language model writes a text token by token. Each new token goes back in, and the next one comes out. Done as in
# training, every step computes the keys and values of the whole text again, though none of them has changed. In this
# notebook you write attention as it is in a model that answers:
#
# 1. **operations**: what a pass over $T$ tokens costs, and what of it is done again and again;
# 2. **a cache of keys and values**, to which each step adds its own;
# 3. **attention with a cache**, where each step projects the new tokens only, and the result stays the same;
# 4. **the bytes** that such a cache takes, which is what limits long texts;
# 5. **grouped queries**: several heads share one key and one value, and the cache shrinks.
#
# Write your code where it says `YOUR CODE HERE`, then run the check below it. Pictures and numbers in this notebook are
# made by *your* functions: run their cells again once you have written them. *Run All* reaches the end of this notebook
# from the first minute on. Where you are stuck, `hint("attention_flops")` gives you a question; call it again for more.
#
# What holds for every module here: the output has its input's dtype and device (half precision is tried of `KVCache`
# alone), the input is left unchanged, and gradients flow back to it and to every layer. Symbols: `b` sequences, `T`
# tokens, `h` heads of width `hd`. You may use PyTorch's attention.

# %% locked="setup"
import math
from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from attention_check import buggy, check, draw, example, guess, hint, show

# %% [markdown]
# **Tools of this unit**
#
# | tool | what it does | shapes |
# |---|---|---|
# | `torch.cat([a, b], dim=-2)` | rows below each other | `(b, h, 5, hd)` and `(b, h, 1, hd)` to `(b, h, 6, hd)` |
# | `x.unflatten(-1, (h, hd))` | cuts the last dimension | `(b, T, h * hd)` to `(b, T, h, hd)` |
# | `x.flatten(2)` | the inverse | `(b, T, h, hd)` to `(b, T, h * hd)` |
# | `x.repeat_interleave(2, dim=1)` | each entry twice: `0 0 1 1` | `(b, 2, T, hd)` to `(b, 4, T, hd)` |
# | `x.repeat(1, 2, 1, 1)` | the whole twice: `0 1 0 1` | the same |
# | `mask.triu(diagonal=1 + n)` | `True` from `n + 1` places right of the diagonal on | `(T, n + T)` |
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
# ## 1. What a pass costs
#
# A product of an $(n, m)$ and an $(m, k)$ matrix has $n k$ numbers, and each takes $m$ multiplications and about as
# many additions: $2 n m k$ operations (so count [Kaplan and others, 2020](https://arxiv.org/abs/2001.08361), too).
# Attention over $b$ sequences of $T$ tokens of width $d$, with $h$ heads of width $d / h$, is made of such products:
#
# | product | how many |
# |---|---|
# | `W_query`, `W_key`, `W_value`, `out_proj`: each $(T, d)$ times $(d, d)$ | four, for each sequence |
# | scores: $(T, hd)$ times $(hd, T)$ | one for each sequence and head |
# | context: the weights, $(T, T)$, times the values, $(T, hd)$ | one for each sequence and head |
#
# Count these products alone, no biases, no softmax, and no mask: what it hides is computed first. Three tokens of width
# 4 with two heads take `528` operations; a layer of GPT-2 small ($d = 768$, $h = 12$) takes `8053063680` for 1024
# tokens. Return an `int`, right to the last digit, also where it has more than the sixteen that a float keeps.
# $d$ is divisible by $h$.
#
# **Guess first**: the same width, but twice as many heads. By which factor do the operations grow?

# %%
guess("twice_the_heads", ...)

# %% exercise="attention_flops" points=3

# %% [markdown]
# PyTorch has a counter that sees each product as it runs. Yours and its own, for 1024 tokens of GPT-2 small:


# %%
def counted(b: int, T: int, d: int, h: int) -> int:
    """What PyTorch counts; the tensors are on `meta` and hold no numbers."""
    x = torch.empty(b, T, d, device="meta")
    attention = nn.MultiheadAttention(d, h, batch_first=True, device="meta")
    with FlopCounterMode(display=False) as counter:
        attention(x, x, x)
    return counter.get_total_flops()


show(lambda: attention_flops(1, 1024, 768, 12), lambda: counted(1, 1024, 768, 12))

# %% [markdown]
# **Guess first**: from how many tokens on do scores and context of GPT-2 small cost more than its four layers? Say
# where both cost the same.

# %%
guess("as_much_as_layers", ...)

# %% drawing=true
try:
    lengths = [2**power for power in range(6, 16)]
    layers = [4 * 2 * T * 768**2 for T in lengths]
    figure, axes = plt.subplots(figsize=(5, 3))
    both = [attention_flops(1, T, 768, 12) for T in lengths]
    rest = [a - b for a, b in zip(both, layers, strict=True)]
    axes.plot(lengths, layers, "o-", label="layers")
    axes.plot(lengths, rest, "o-", label="scores and context")
    axes.set(xscale="log", yscale="log", xlabel="tokens", title="operations")
    axes.legend()
    plt.show()
except NotImplementedError:
    print("A picture comes here once attention_flops is written.")

# %% [markdown]
# ## 2. A cache of keys and values
#
# A text is written token by token. With a causal mask a token sees what came before it, and nothing that comes later
# changes its keys and values. So these are computed once and kept, in a **cache**: each step adds its own.
#
# `KVCache` is a plain class, no `nn.Module`: it has nothing to learn.
#
# | | |
# |---|---|
# | `cache = KVCache()` | an empty cache: `cache.keys` and `cache.values` are `None` |
# | `cache.append(keys, values)` | adds the keys `(..., t, hd)` and the values `(..., t, hv)` of the next `t` tokens |
# | `cache.keys`, `cache.values` | all tokens so far, in their order: `(..., T, hd)` and `(..., T, hv)` |
#
# `t` may be another one in each call: a question of 500 tokens comes at once, the answer token by token. The `...`
# stand for any dimensions, mostly `(b, h)`, which are the same in each call. Two caches know nothing of each other. A
# text may become thousands of tokens long, in as many steps, and gradients flow through a cache to what was appended.
# It may have room for more tokens, and write them in there: gradients are asked only of what is read from it last.
# What `append` returns does not matter.
#
# **Guess first**: a text of 100 tokens is written token by token, and every step projects all tokens that are there.
# How many tokens does `W_key` project in all?

# %%
guess("projected_without_a_cache", ...)

# %% exercise="KVCache" points=3

# %% [markdown]
# The six words come one by one. Their embeddings stand for keys, and ten times these for values:


# %%
def cached_words() -> torch.Tensor:
    """What a cache holds after six steps: keys and values side by side."""
    cache = KVCache()
    for word in X:
        cache.append(word[None], 10 * word[None])
    return torch.cat([cache.keys, cache.values], dim=-1)


show(cached_words)

# %% [markdown]
# ## 3. Attention with a cache
#
# `CachedMultiHeadAttention` is causal attention with several heads, which can go on where it stopped. `forward(x,
# cache=None)` takes the **next** `t` tokens, and the cache has the `n` tokens before them:
#
# | | shape |
# |---|---|
# | `x`, the new tokens alone | `(b, t, d_in)` |
# | their queries, keys and values, split into heads | `(b, h, t, hd)` |
# | keys and values after `cache.append(keys, values)`: cached and new | `(b, h, n + t, hd)` |
# | scores, divided by $\sqrt{hd}$, and their mask | `(b, h, t, n + t)` |
# | the result, for the new tokens alone | `(b, t, d_out)` |
#
# New token number $i$ stands at place $n + i$ of the text, and sees the keys $j \le n + i$: all that are cached, and
# the new ones up to itself. Without a cache, $n = 0$ and `x` is the whole text.
#
# - However a text is cut into steps, the results put together are **those of one causal pass** over the whole text,
#   which may be thousands of tokens long.
# - A step **projects its own tokens only**. This gives points: the rows that each layer is multiplied with are counted,
#   and grading measures the time of a step next to a cache of 768 tokens.
# - Each cache is a text of its own. The module keeps nothing from one call to the next.
# - Gradients flow from a step through the cache, to the tokens of the steps before it too.
# - `W_query`, `W_key` and `W_value` (`d_in` to `d_out`) have **no bias**, `out_proj` (`d_out` to `d_out`) has one. They
#   are `nn.Linear` layers, created in this order. `hd = d_out / num_heads`; where that is no whole number, building the
#   module raises a `ValueError` (an `assert` is right too).
#
# `F.scaled_dot_product_attention` is allowed. Mind `is_causal=True`: where there are more keys than queries its mask
# begins at the first key, as if nothing were cached.
#
# Built under seed 123 with `d_in = 3`, `d_out = 4` and two heads, *step* gets `-0.0132 0.2990 -0.0689 -0.3490`, in one
# pass as well as word by word.
#
# **Guess first**: 5 tokens are cached and 3 new ones come at once. How many of the 24 places of the mask hide?

# %%
guess("hidden_in_a_step", ...)

# %% exercise="CachedMultiHeadAttention" points=9

# %% [markdown]
# One pass over the six words, and the same words in steps of three, one and two:


# %%
def in_steps(*lengths: int) -> torch.Tensor:
    """The results of steps of so many tokens, put together."""
    torch.manual_seed(123)
    attention, cache = CachedMultiHeadAttention(3, 4, num_heads=2), KVCache()
    found = [attention(x, cache) for x in X[None].split(lengths, dim=1)]
    return torch.cat(found, dim=1)


show(lambda: in_steps(6), lambda: in_steps(3, 1, 2))

# %% [markdown]
# What it saves: the operations of each step while 64 tokens are written, with the cache and without it. What lies
# between the two lines only repeats what was done before.

# %% drawing=true
try:
    attention, text = CachedMultiHeadAttention(32, 32, 4), torch.randn(1, 64, 32)
    cache, spent = KVCache(), {"without a cache": [], "with a cache": []}
    with torch.no_grad():
        for t in range(64):
            for way, operations in spent.items():
                with FlopCounterMode(display=False) as counter:
                    if way == "with a cache":
                        attention(text[:, t : t + 1], cache)
                    else:
                        attention(text[:, : t + 1])
                operations.append(counter.get_total_flops())
    figure, axes = plt.subplots(figsize=(5, 3))
    for way, operations in spent.items():
        axes.plot(range(1, 65), operations, label=way)
    axes.set(xlabel="step", title="operations of a step", yscale="log")
    axes.legend()
    plt.show()
except NotImplementedError:
    print("A picture comes here once KVCache and CachedMultiHeadAttention are written.")

# %% [markdown]
# **Places.** Attention itself does not know that its query is token 500. Rotary embeddings (unit 5) turn queries and
# keys by their place, so the place has to be counted on: with $n$ tokens in the cache, the new ones stand at $n$, $n +
# 1$, and so on. Keys go into the cache **after** they were turned; turned once, they are right for every later query.
# Who begins at place 0 in each step gets a model that forgets the order of what it has read. Scores of *step* with all
# six words, in one pass, with places counted on, and with each step's places beginning at 0:


# %% locked="places"
def turned(x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Rotary embeddings of x, (T, 2): place p turns by p radians."""
    cos, sin = torch.cos(places), torch.sin(places)
    x1, x2 = x[:, 0], x[:, 1]
    return torch.stack([x1 * cos - x2 * sin, x1 * sin + x2 * cos], dim=-1)


def scores_of_step(count_on: bool) -> torch.Tensor:
    """The words come one by one; the last one's scores."""
    cache = KVCache()
    for place, word in enumerate(X[:, :2]):
        new = turned(word[None], torch.tensor([float(place if count_on else 0)]))
        cache.append(new, new)
    return new @ cache.keys.mT


in_place = turned(X[:, :2], torch.arange(6.0))
show(
    lambda: in_place[5:] @ in_place.T,
    lambda: scores_of_step(True),
    lambda: scores_of_step(False),
)

# %% [markdown] written="why_keys_and_values" points=3
# **In your own words** (a few sentences, read by a person): why does a cache keep keys and values, and no queries? Why
# may they be kept at all, and what has that to do with the causal mask? Say what is saved and what it costs.

# %% [markdown]
# ## 4. What a cache takes
#
# Each layer of a model has its own keys and values, and each head of it. A cache for `tokens` tokens keeps, in each of
# `layers` layers and for each of `kv_heads` heads, a **key and a value** of `head_dim` numbers for every token. Each
# number takes `bytes_per_number` bytes: 2 in fp16 and bfloat16, 4 in float32.
#
# | model | layers | heads with keys and values | hd | 4096 tokens in fp16 |
# |---|---|---|---|---|
# | Llama-2-7B | 32 | 32 | 128 | 2 GiB = 2147483648 bytes |
# | Llama-3-8B | 32 | 8 | 128 | 512 MiB = 536870912 bytes |
#
# That is for one text: who answers 40 people at once needs 40 such caches. Return an `int`, right to the last byte.
#
# **Guess first**: how many KiB does one token take in Llama-2-7B? (1 KiB is 1024 bytes.)

# %%
guess("one_token", ...)

# %% exercise="kv_cache_bytes" points=2

# %% drawing=true
try:
    lengths = [2**power for power in range(10, 18)]
    figure, axes = plt.subplots(figsize=(5, 3))
    for name, kv_heads in {"Llama-2-7B": 32, "Llama-3-8B": 8}.items():
        sizes = [kv_cache_bytes(32, kv_heads, 128, T, 2) / 2**30 for T in lengths]
        axes.plot(lengths, sizes, "o-", label=name)
    axes.axhline(80e9 / 2**30, color="0.6", linestyle="--", label="a GPU with 80 GB")
    axes.set(xscale="log", yscale="log", xlabel="tokens", title="GiB of one cache")
    axes.legend()
    plt.show()
except NotImplementedError:
    print("A picture comes here once kv_cache_bytes is written.")

# %% [markdown]
# ## 5. Heads that share
#
# How did Llama-3-8B come to a quarter? It has 32 heads, but only 8 keys and 8 values for each token: four heads with
# queries of their own share one key and one value. That is **grouped-query attention** ([Ainslie and others,
# 2023](https://arxiv.org/abs/2305.13245)). With a single group it is *multi-query attention* ([Shazeer,
# 2019](https://arxiv.org/abs/1911.02150)), and with as many groups as heads the attention of unit 4.
#
# Heads next to each other share. So keys and values are made for the groups, `(b, groups, T, hd)`, and then each head
# gets those of its group, `(b, h, T, hd)`. With $h$ heads, head $i$ belongs to group
#
# $$g(i) = \left\lfloor \frac{i}{h / \text{groups}} \right\rfloor$$
#
# Of two groups `0 1`, six heads get `0 0 0 1 1 1`. $h$ is a multiple of the number of groups.
#
# **Guess first**: 32 heads and 8 groups, counted from 0. Which group does head 13 use?

# %%
guess("group_of_head_13", ...)

# %% exercise="share_heads" points=2

# %% [markdown]
# **A bug hunt.** Here is a `share_heads` that somebody else wrote. Its results have the right shape, and all tests that
# came with it passed: one group for all heads, and a group for each head. Here is the second of them:

# %%
wrong = buggy("share_heads")
wrong(torch.tensor([1.0, 2.0, 3.0, 4.0]).reshape(1, 4, 1, 1), 4).flatten()

# %% [markdown]
# Find an input that gives it away: `x`, `(b, groups, T, hd)`, `float32` and finite, with at most twelve numbers, on
# which `wrong(x, 4)` and the right result differ by more than 0.001 somewhere. Which question did those tests not ask?
#
# The check compares `wrong` with your own `share_heads`, so write that first.

# %% exercise="hunt_share_heads" points=2

# %% [markdown]
# ### The module
#
# | | shape |
# |---|---|
# | `x` | `(b, T, d_in)` |
# | queries: `W_query(x)`, split into heads | `(b, h, T, hd)` |
# | keys and values: `W_key(x)`, `W_value(x)`, split into groups | `(b, groups, T, hd)` |
# | the same, shared by the heads of each group | `(b, h, T, hd)` |
# | weights: causal, scores divided by $\sqrt{hd}$, softmax | `(b, h, T, T)` |
# | the layer `out_proj`, on the merged heads | `(b, T, d_out)` |
#
# $$o_i = \operatorname{softmax}\!\left(\frac{Q_i K_{g(i)}^\top}{\sqrt{hd}}\right) V_{g(i)}$$
#
# - `W_query` (`d_in` to `d_out`), `W_key` and `W_value` (`d_in` to `num_kv_groups * hd`) have **no bias**, `out_proj`
#   (`d_out` to `d_out`) has one. They are `nn.Linear` layers, created in this order. `hd = d_out / num_heads`.
# - Where `d_out` is not divisible by `num_heads`, or `num_heads` not by `num_kv_groups`, building the module raises a
#   `ValueError` (an `assert` is right too).
# - Token $i$ sees the tokens up to $i$; there are at most `context_length`. There is no dropout.
#
# `F.scaled_dot_product_attention(..., is_causal=True, enable_gqa=True)` gives the same. Built under seed 123 with `d_in
# = 3`, `d_out = 8`, four heads and two groups, *Your* gets `-0.1750 0.0796 0.1065 0.1746 -0.4003 0.0008 -0.3314
# 0.2663`.

# %% exercise="GroupedQueryAttention" points=8

# %%
torch.manual_seed(123)
show(lambda: GroupedQueryAttention(3, 8, 6, num_heads=4, num_kv_groups=2)(X[None]))

# %% [markdown]
# **In real models.** Every model that answers you keeps such a cache ([Pope and others,
# 2022](https://arxiv.org/abs/2211.05102)). Servers cut it into pages, as an operating system does with memory
# ([vLLM, 2023](https://arxiv.org/abs/2309.06180)), keep it in 8 bits, or share the beginning that many texts have in
# common. A long question is read in steps of several tokens, and then the answer comes token by token: the mask of
# section 3, with $t$ in the hundreds first, and then with $t = 1$.

# %% [markdown]
# ## How far you are
#
# Every check of this notebook in one table, with the points that the public examples would give:

# %%
check()
