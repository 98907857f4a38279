# %% [markdown]
# # One token at a time
#
# A language model writes a text token by token: each new token goes back in, and the next one comes out. Only one token
# is new in a step, and the keys and values of all others have not changed. The idea of this unit: keep them. In this
# notebook you write attention as models use it when they answer:
#
# 1. **operations**: what a pass over $T$ tokens costs, and which part of it repeats in every step;
# 2. **a cache of keys and values**, to which each step appends its own;
# 3. **attention with a cache**, where each step projects only the new tokens, and the result stays the same;
# 4. **the bytes** that a cache takes, which limit the length of texts;
# 5. **grouped queries**: several heads share one key and one value, and the cache shrinks.
#
# Write your code where it says `YOUR CODE HERE`, then run the check below it. The hidden tests, which decide the
# points, ask the same with other numbers. Pictures and numbers come from *your* functions: once you have written one,
# run the cells below it again. *Run All* works from the start. If you are stuck, `hint("attention_flops")` asks you a
# question that helps; call it again for more. Symbols: `b` sequences, `T` tokens, `h` heads of width `hd`.

# %% [markdown]
# <details><summary>What is tested in every exercise</summary>
#
# - The output has its input's dtype and device (half precision is tested for `KVCache` only), and the input is not
#   modified.
# - Gradients flow back to the input and to every layer.
# - You may call PyTorch's attention.
#
# </details>

# %% locked="setup"
import math
from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from attention_check import buggy, check, draw, example, explain, guess, hint, show

# %% [markdown]
# The six words again, each an embedding with three elements:

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
# The text *Your journey starts with one* gets a sixth word. Its keys before and after:

# %%
to_keys = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
print("keys of five words:", X[:5] @ to_keys, sep="\n")
print("keys of six words:", X @ to_keys, sep="\n")

# %% [markdown]
# Five of six rows are the same. In a long text nearly all work of a step would be repetition.
#
# **Tools of this unit**
#
# | tool | what it does | shapes |
# |---|---|---|
# | `torch.cat([a, b], dim=-2)` | rows below each other | `(b, h, 5, hd)` and `(b, h, 1, hd)` to `(b, h, 6, hd)` |
# | `x.unflatten(-1, (h, hd))` | splits the last dimension | `(b, T, h * hd)` to `(b, T, h, hd)` |
# | `x.flatten(2)` | the inverse | `(b, T, h, hd)` to `(b, T, h * hd)` |
# | `x.repeat_interleave(2, dim=1)` | each entry twice; in which order? | `(b, 2, T, hd)` to `(b, 4, T, hd)` |
# | `x.repeat(1, 2, 1, 1)` | the same in another order; try both | the same |
# | `mask.triu(diagonal=1 + n)` | `True` from `n + 1` positions right of the diagonal on | `(T, n + T)` |

# %% [markdown]
# ## 1. What a pass costs
#
# A product of an $(n, m)$ and an $(m, k)$ matrix has $n k$ elements, and each takes $m$ multiplications and about as
# many additions: $2 n m k$ operations ([Kaplan and others, 2020](https://arxiv.org/abs/2001.08361), count in the same
# way). Attention over $b$ sequences of $T$ tokens of width $d$, with $h$ heads of width $d / h$, has these products:
#
# | product | how many |
# |---|---|
# | `W_query`, `W_key`, `W_value`, `out_proj`: each $(T, d)$ times $(d, d)$ | four, for each sequence |
# | scores: $(T, \text{hd})$ times $(\text{hd}, T)$ | one for each sequence and head |
# | context: the weights, $(T, T)$, times the values, $(T, \text{hd})$ | one for each sequence and head |
#
# Count only these products: ignore biases, softmax and the mask (masked scores are computed all the same). Three tokens
# of width 4 with two heads take `528` operations. The attention of one layer of GPT-2 small ($d = 768$, $h = 12$),
# without its MLP, takes `8,053,063,680` for 1024 tokens. Return an `int`. $d$ is divisible by $h$.
#
# **Guess first**: the same width, but twice as many heads. By which factor do the operations grow?

# %%
guess("twice_the_heads", ...)

# %% exercise="attention_flops" points=3

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Counts are right to the last digit, even if they have more than the sixteen digits that a float keeps.
# - One head, one token and several sequences are tested, too.
#
# </details>

# %% [markdown]
# PyTorch has a counter that sees each product as it runs. For 1024 tokens in one layer of GPT-2 small:


# %%
def counted(b: int, T: int, d: int, h: int) -> int:
    """Count with PyTorch; tensors on `meta` have shapes and no values."""
    x = torch.empty(b, T, d, device="meta")
    attention = nn.MultiheadAttention(d, h, batch_first=True, device="meta")
    with FlopCounterMode(display=False) as counter:
        attention(x, x, x)
    return counter.get_total_flops()


show(
    {
        "your count": lambda: attention_flops(1, 1024, 768, 12),
        "PyTorch's count": lambda: counted(1, 1024, 768, 12),
    }
)

# %% [markdown]
# **Guess first**: for long texts scores and context together cost more than the four projections together (`W_query`,
# `W_key`, `W_value` and `out_proj`). At how many tokens do they cost as much, if $d = 768$?

# %%
guess("as_much_as_layers", ...)

# %% drawing=true
try:
    lengths = [2**power for power in range(6, 16)]
    projections = [4 * 2 * T * 768**2 for T in lengths]
    in_all = [attention_flops(1, T, 768, 12) for T in lengths]
    rest = [a - b for a, b in zip(in_all, projections, strict=True)]
    figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
    axes.plot(lengths, [2 * T for T in projections], "o-", color="0.7", label="MLP")
    axes.plot(lengths, projections, "o-", label="four projections")
    axes.plot(lengths, rest, "o-", label="scores and context")
    axes.axvline(1024, color="0.5", linestyle="--", label="longest text of GPT-2")
    axes.set(xscale="log", yscale="log", xlabel="tokens", ylabel="operations")
    axes.set(title="one layer of GPT-2 small")
    axes.set_xticks(lengths[::2], lengths[::2])
    axes.minorticks_off()
    axes.legend(fontsize=8)
    plt.show()
except NotImplementedError:
    print("A picture comes here once attention_flops is written.")

# %% [markdown]
# GPT-2 small reads at most 1024 tokens, so the projections alone cost it more than scores and context at any length.
# The MLP, which your count leaves out, costs twice as much as the projections.

# %% [markdown]
# ## 2. A cache of keys and values
#
# With a causal mask a token sees what came before it, and nothing that comes later changes its keys and values. So they
# are computed once and kept, in a **cache**, and each step appends its own.
#
# `KVCache` is a plain class, no `nn.Module`, because it has no parameters:
#
# | | |
# |---|---|
# | `cache = KVCache()` | an empty cache: `cache.keys` and `cache.values` are `None` |
# | `cache.append(keys, values)` | appends keys `(..., t, hd)` and values `(..., t, hv)` of the next `t` tokens |
# | `cache.keys`, `cache.values` | all tokens so far, in their order: `(..., T, hd)` and `(..., T, hv)` |
#
# `t` may differ between calls, because generation has two phases. In **prefill** the model reads the whole question at
# once, say 500 tokens, and fills the cache; in **decode** it writes the answer token by token, and each step appends
# the keys and values of one token. The `...` stand for any dimensions, mostly `(b, h)`, which are the same in each
# call.
#
# **Guess first**: a model reads a text of 100 tokens token by token without a cache, and every step projects all tokens
# so far. How many tokens does `W_key` project in total?

# %%
guess("projected_without_a_cache", ...)

# %% exercise="KVCache" points=3

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Two caches are independent.
# - A text may have thousands of tokens, in as many steps. One `torch.cat` in each step is fast enough.
# - You may preallocate a buffer and write into it: only the final `keys` and `values` must be differentiable, and their
#   gradients must reach everything that was appended.
# - `append` may return anything.
#
# </details>

# %% [markdown]
# The six words come one by one. Their embeddings serve as keys, and ten times these as values:


# %%
def cached_words() -> tuple[torch.Tensor, torch.Tensor]:
    """Return keys and values of a cache after six steps."""
    cache = KVCache()
    for word in X:
        cache.append(word[None], 10 * word[None])
    return cache.keys, cache.values


show(
    {
        "cache.keys": lambda: cached_words()[0],
        "cache.values": lambda: cached_words()[1],
    }
)

# %% [markdown]
# ## 3. Attention with a cache
#
# `CachedMultiHeadAttention` is causal attention with several heads that can continue where it stopped. `forward(x,
# cache=None)` takes the **next** `t` tokens, and the cache has the `n` tokens before them:
#
# | | shape |
# |---|---|
# | `x`, only the new tokens | `(b, t, d_in)` |
# | their queries, keys and values, split into heads | `(b, h, t, hd)` |
# | keys and values after `cache.append(keys, values)`: cached and new | `(b, h, n + t, hd)` |
# | scores, divided by $\sqrt{\text{hd}}$, and their mask | `(b, h, t, n + t)` |
# | the result, only for the new tokens | `(b, t, d_out)` |
#
# New token $i$ has position $n + i$ in the text, and sees the keys $j \le n + i$: all cached ones, and the new ones up
# to itself. Without a cache, $n = 0$ and `x` is the whole text. However a text is cut into steps, the results together
# are **those of one causal pass** over the whole text.
#
# - A step **projects only its own tokens**.
# - Each cache belongs to one text. The module keeps nothing from one call to the next.
# - The docstring below names the `nn.Linear` layers. Create them in its order. `hd = d_out / num_heads`. An `assert` is
#   accepted instead of the `ValueError`.
#
# You may begin with a copy of your `MultiHeadAttention` (unit 4). `F.scaled_dot_product_attention` is allowed. Take
# care with `is_causal=True`: if there are more keys than queries, its mask begins at the first key, as if nothing were
# cached.
#
# Built under seed 123 with `d_in = 3`, `d_out = 4` and two heads, *step* gets `-0.0132 0.2990 -0.0689 -0.3490`, in one
# pass and word by word.
#
# **Guess first**: 5 tokens are cached and 3 new ones come at once. How many of the 24 elements of the mask hide a key?

# %%
guess("hidden_in_a_step", ...)

# %% exercise="CachedMultiHeadAttention" points=9

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - The check counts the rows that each layer is multiplied with. Grading also measures how long a step takes
#   when the cache already has 768 tokens. Both give points; a `KVCache` with `torch.cat` is fast enough.
# - Texts may be thousands of tokens long, and steps of two texts may alternate.
# - Gradients flow from a step through the cache to the tokens of earlier steps.
#
# </details>

# %% [markdown]
# One pass over the six words, and the same words in steps of three, one and two:


# %%
def in_steps(*lengths: int) -> torch.Tensor:
    """Return the results of steps of these lengths, joined."""
    torch.manual_seed(123)
    attention, cache = CachedMultiHeadAttention(3, 4, num_heads=2), KVCache()
    found = [attention(x, cache) for x in X[None].split(lengths, dim=1)]
    return torch.cat(found, dim=1)


show(
    {
        "one pass": lambda: in_steps(6),
        "steps of three, one and two": lambda: in_steps(3, 1, 2),
    }
)

# %% [markdown]
# The cache saves operations. This is how many each step takes while 64 tokens are read one by one; the gap between the
# two lines is repeated work:

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
    figure, axes = plt.subplots(figsize=(5.5, 3), layout="constrained")
    for way, operations in spent.items():
        axes.plot(range(1, 65), operations, label=way)
    axes.set(xlabel="tokens in the text", ylabel="operations", yscale="log")
    axes.set(title="operations of a step")
    axes.legend()
    plt.show()
except NotImplementedError:
    print("A picture comes here once KVCache and CachedMultiHeadAttention are written.")

# %% [markdown]
# **Waiting.** With a cache a step has few operations, but it reads all weights from memory: 16 GB for a model of 8
# billion parameters in 16 bits. An A100 of 80 GB reads 2 trillion bytes a second, so that takes 8 ms. The 16 billion
# operations for one token take 0.05 ms at 312 trillion a second. So servers decode many texts in one step, which reads
# the weights only once. But it reads the cache of each text, so small caches make steps faster, too (sections 4 and 5).
#
# **Positions.** Attention itself does not know that its query is token 500. Rotary embeddings (unit 5) rotate queries
# and keys by their position, so positions must continue: with $n$ tokens in the cache, the new ones have positions $n$,
# $n + 1$, and so on. Keys usually go into the cache **after** rotation: rotated once, they are right for every later
# query. If each step starts at position 0 again, the model loses the order of what it has read. The scores of *step*
# with all six words:


# %% locked="places"
def rotated(x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Rotary embeddings of x, (T, 2): position p rotates by p radians."""
    cos, sin = torch.cos(positions), torch.sin(positions)
    x1, x2 = x[:, 0], x[:, 1]
    return torch.stack([x1 * cos - x2 * sin, x1 * sin + x2 * cos], dim=-1)


def scores_of_step(continues: bool) -> torch.Tensor:
    """The words come one by one; return the last one's scores."""
    cache = KVCache()
    for position, word in enumerate(X[:, :2]):
        new = rotated(word[None], torch.tensor([float(position * continues)]))
        cache.append(new, new)
    return new @ cache.keys.mT


in_one_pass = rotated(X[:, :2], torch.arange(6.0))
show(
    {
        "in one pass": lambda: in_one_pass[5:] @ in_one_pass.T,
        "word by word, positions continue": lambda: scores_of_step(True),
        "word by word, each step starts at 0": lambda: scores_of_step(False),
    }
)

# %% [markdown] written="why_keys_and_values" points=3
# **In your own words** (a few sentences, read by a person): why does a cache keep keys and values, and no queries? Why
# may it keep them at all, and what does the causal mask have to do with it? Say what a cache saves and what it costs.

# %% [markdown]
# ## 4. What a cache takes
#
# Each layer of a model has its own keys and values, and so has each head. A cache for `tokens` tokens keeps, in each of
# `layers` layers and for each of `kv_heads` heads, a **key and a value** of `head_dim` elements for every token. Each
# element takes `bytes_per_number` bytes: 2 in float16 and bfloat16, 4 in float32.
#
# | model | layers | heads with keys and values | hd | 4096 tokens in float16 | source |
# |---|---|---|---|---|---|
# | Llama-2-7B | 32 | 32 | 128 | 2 GiB = 2,147,483,648 bytes | [2023](https://arxiv.org/abs/2302.13971) |
# | Llama-3-8B | 32 | 8 | 128 | 512 MiB = 536,870,912 bytes | [2024](https://arxiv.org/abs/2407.21783) |
#
# (Llama 2 keeps the sizes of LLaMA, the source of 2023, table 2.) That is for one text: 40 texts at once take 40 such
# caches. The weights of 8 billion parameters take 16 GB. On a GPU with 80 GB they leave room for 119 such caches of
# Llama-3-8B. Return an `int`.
#
# **Guess first**: how many KiB does one token take in Llama-2-7B? (1 KiB is 1024 bytes.)

# %%
guess("one_token", ...)

# %% exercise="kv_cache_bytes" points=2

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Results are right to the last byte, for large models too. Elements take 1, 2, 4 or 8 bytes.
#
# </details>

# %% [markdown]
# The size of one cache grows with the text. Llama-2-7B was trained for 4096 tokens, Llama-3-8B for 8192; the rest of
# each line is what longer texts would take:

# %% drawing=true
try:
    lengths = [2**power for power in range(10, 18)]
    figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
    for name, kv_heads in {"Llama-2-7B": 32, "Llama-3-8B": 8}.items():
        sizes = [kv_cache_bytes(32, kv_heads, 128, T, 2) / 2**30 for T in lengths]
        axes.plot(lengths, sizes, "o-", label=name)
    free = (80e9 - 16e9) / 2**30
    axes.axhline(free, color="0.6", linestyle="--", label="80 GB, less 16 of weights")
    axes.set(xscale="log", yscale="log", xlabel="tokens", ylabel="GiB")
    axes.set(title="size of one cache in float16")
    axes.set_xticks(lengths, [f"{T // 1024}k" for T in lengths])
    axes.set_yticks([0.1, 1, 10, 100], [0.1, 1, 10, 100])
    axes.minorticks_off()
    axes.legend(fontsize=8)
    plt.show()
except NotImplementedError:
    print("A picture comes here once kv_cache_bytes is written.")

# %% [markdown]
# ## 5. Heads that share
#
# Why does Llama-3-8B need only a quarter? It has 32 heads, but only 8 keys and 8 values for each token: four heads with
# their own queries share one key and one value. That is **grouped-query attention** ([Ainslie and others,
# 2023](https://arxiv.org/abs/2305.13245)). With a single group it is *multi-query attention* ([Shazeer,
# 2019](https://arxiv.org/abs/1911.02150)), and with as many groups as heads it is the attention of unit 4.
#
# Neighbouring heads share. So keys and values are made for the groups, `(b, groups, T, hd)`, and then each head gets
# those of its group, `(b, h, T, hd)`. With $h$ heads, head $i$ belongs to group
#
# $$g(i) = \left\lfloor \frac{i}{h / \text{groups}} \right\rfloor$$
#
# With two groups `0 1`, six heads get `0 0 0 1 1 1`. $h$ is a multiple of the number of groups.
#
# **Guess first**: 32 heads and 8 groups, counted from 0. Which group does head 13 use?

# %%
guess("group_of_head_13", ...)

# %% exercise="share_heads" points=2

# %% [markdown]
# **A bug hunt.** Here is a `share_heads` that somebody else wrote. Its results have the right shape, and all tests that
# came with it passed: tensors drawn by `torch.randn`, with two groups and with four. Here two groups are shared by four
# heads, and the result is right:

# %%
wrong = buggy("share_heads")
wrong(torch.tensor([1.0, 2.0]).reshape(1, 2, 1, 1), 4).flatten()

# %% [markdown]
# Find an input that gives it away: `x`, `(b, groups, T, hd)`, `float32` and finite, with at most twelve elements, for
# which `wrong(x, 4)` and the right result differ by more than 0.001 somewhere.

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
# | weights: causal, scores divided by $\sqrt{\text{hd}}$, softmax | `(b, h, T, T)` |
# | the layer `out_proj`, on the merged heads | `(b, T, d_out)` |
#
# $$o_i = \operatorname{softmax}\!\left(\frac{Q_i K_{g(i)}^\top}{\sqrt{\text{hd}}}\right) V_{g(i)}$$
#
# - The docstring below names the `nn.Linear` layers. Create them in its order. `hd = d_out / num_heads`. An `assert` is
#   accepted instead of the `ValueError`.
# - Token $i$ sees the tokens up to $i$; there are at most `context_length`. There is no dropout.
#
# You may begin with a copy of the class above. `F.scaled_dot_product_attention(..., is_causal=True, enable_gqa=True)`
# gives the same. Built under seed 123 with `d_in = 3`, `d_out = 8`, four heads and two groups, *Your* gets `-0.1750
# 0.0796 0.1065 0.1746 -0.4003 0.0008 -0.3314 0.2663`.

# %% exercise="GroupedQueryAttention" points=8

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Sequences may be shorter than `context_length`, which may be more than a thousand.
# - Large scores give no NaN, and the module works on another device, with its mask.
#
# </details>

# %%
torch.manual_seed(123)
show({"six words": lambda: GroupedQueryAttention(3, 8, 6, 4, 2)(X[None])})

# %% [markdown]
# **In real models**
#
# | what | where | figure | source |
# |---|---|---|---|
# | a single group, multi-query | PaLM 540B | one group for 48 heads | Pope 2022 |
# | grouped queries | Llama-3-8B | 8 groups for 32 heads | Grattafiori 2024 |
# | grouped queries, and windows in half of the layers | gpt-oss | 8 groups for 64 heads; 128 tokens | OpenAI 2025 |
# | one latent for all heads (unit 9) | DeepSeek-V3 | 576 elements a token and layer | DeepSeek-AI 2024 |
#
# [Pope 2022](https://arxiv.org/abs/2211.05102), [Grattafiori 2024](https://arxiv.org/abs/2407.21783), [OpenAI
# 2025](https://arxiv.org/abs/2508.10925), [DeepSeek-AI 2024](https://arxiv.org/abs/2412.19437).
#
# A layer with linear attention (unit 7) needs no such cache: it keeps a state of fixed size.

# %% [markdown]
# ## How far you are
#
# Do you know your own code? If there are questions about your lines, a check that passes ends with a call like
# `explain("GroupedQueryAttention")`. It asks for the shape of a line's result, where an input is used first, or what an
# edit would change. It is not graded.
#
# Every check of this notebook in one table, with the points that the public examples would give:

# %%
check()
