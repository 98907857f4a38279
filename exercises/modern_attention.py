# %% [markdown]
# # Attention since 2019
#
# Since 2017 the transformer block has changed in small steps. Most of them answer a question that training raised: why
# do scores explode? Where does the weight go if no key fits? How do two documents share a sequence? In sections 1 to 6
# you write answers of the years 2019 to 2025, which many models use. Sections 7 and 8 leave the block as it is: they
# show how a server runs a trained model for many texts, and how it writes more than one token in a step. Linear
# attention, which some models have in most layers, is in unit 7.
#
# 1. **RMSNorm**, which divides each vector by its size;
# 2. **scores that stay small**, by normalized queries and keys or by a soft cap, and attention in half precision;
# 3. **sinks**, which let a head attend to nothing;
# 4. **document masks**, which keep packed documents apart;
# 5. **a gated MLP**, SwiGLU;
# 6. **latent attention**, whose cache has one short vector for each token;
# 7. **a cache in pages**, which a server shares among many texts;
# 8. **speculative decoding**, in which a small model drafts and a large one decides.
#
# At the end your functions of sections 1, 2, 4 and 5 go into a block like that of unit 8, one change at a time. It
# learns to count, and you see what each change does to its loss, its largest score and its memory.
#
# Write your code where it says `YOUR CODE HERE`, then run the check below it. The hidden tests, which decide the
# points, ask the same with other numbers. Pictures and numbers come from *your* functions: once you have written one,
# run the cells below it again. *Run All* works from the start. If you are stuck, `hint("rms_norm")` asks you a question
# that helps; call it again for more. A leading `...` in a shape stands for any number of dimensions.

# %% [markdown]
# <details><summary>What is tested in every exercise</summary>
#
# - The output has its inputs' dtype and device: `float32` and `float64`, and for `rms_norm` and
#   `half_precision_attention` half precision as well.
# - Inputs are not modified. Correct gradients flow back to every tensor that can have one, except in `accept_draft`,
#   which needs none.
# - Large values, in the thousands, give no NaN, neither in results nor in gradients.
# - The library's own attention (`F.scaled_dot_product_attention`, `nn.MultiheadAttention`) may not be called, except in
#   `LatentAttention`. Everything else may, also your own functions of earlier exercises.
#
# </details>

# %% locked="setup"
import math

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from attention_check import buggy, check, draw, example, explain, guess, hint, show

# %% [markdown]
# What happens to numbers that grow? Half precision, in which large models compute, has a largest one:

# %%
print("largest float16:", torch.finfo(torch.float16).max)
print("300 squared in float16:", torch.tensor(300.0, dtype=torch.float16) ** 2)
print("300 squared in bfloat16:", torch.tensor(300.0, dtype=torch.bfloat16) ** 2)

# %% [markdown]
# **Tools of this unit**
#
# | tool | what it does | example |
# |---|---|---|
# | `x.pow(2).mean(dim=-1, keepdim=True)` | the mean square of each vector | `(b, T, d)` to `(b, T, 1)` |
# | `torch.rsqrt(x)` | 1 divided by the square root | the same shape |
# | `x.float()`, `x.to(dtype)` | another precision | the same shape |
# | `torch.promote_types(x.dtype, torch.float32)` | `float64` for `float64`, else `float32` | a dtype |
# | `torch.cat([a, b], dim=-1)` | columns of `b` at the right of `a` | `(T, T)` and `(T, 1)` to `(T, T + 1)` |
# | `ids[:, :, None] != ids[:, None, :]` | compares every pair | `(b, T)` to `(b, T, T)` |
# | `F.silu(x)` | $x \cdot \sigma(x)$: near 0 below zero, near $x$ above | the same shape |
#
# ## 1. RMSNorm
#
# LayerNorm subtracts the mean of a vector and divides by its standard deviation. RMSNorm does not subtract the mean. It
# divides by the **root mean square** only:
#
# $$y_i = \frac{x_i}{r} \, w_i, \qquad r = \sqrt{\frac1d \sum_{k=1}^{d} x_k^2 + \varepsilon}$$
#
# For `1 2 3 4` the mean square is 30 / 4 = 7.5, its root 2.7386, and the result, with weights of one, `0.3651 0.7303
# 1.0954 1.4606`. The `weight` is trained; $\varepsilon$ keeps the division finite if all elements are 0.
#
# In `float16` the square of 256 is infinite already, and `bfloat16` keeps only two or three digits. So half precision
# is converted to `float32` first, and the result back; `float64` stays `float64`. The weight has the dtype of `x`;
# multiply by it before or after converting back.
#
# **Guess first**: what does RMSNorm with weights of one make of the vector `5 5 5 5`? Say its first element:
# write it instead of `...`. Guesses are not graded.

# %%
guess("same_elements", ...)

# %% exercise="rms_norm" points=4

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Any number of leading dimensions, and `eps` with other values than 1e-6.
# - A vector of zeros gives zeros and finite gradients.
# - Elements in the hundreds in `float16` and `bfloat16`.
#
# </details>

# %%
show(lambda: rms_norm(torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.ones(4)))

# %% [markdown]
# **A bug hunt.** Somebody else wrote this `rms_norm`. You can call it, not read it. On vectors drawn by `torch.randn`
# it was right, as on these two:

# %%
wrong = buggy("rms_norm")
wrong(torch.tensor([[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 0.0]]), torch.ones(4))

# %% [markdown]
# Find an input on which `wrong(x, weight, 1e-12)` and the right result for the same $\varepsilon$ differ by more than
# 0.001: `x` of shape `(R, d)` and `weight` of shape `(d,)`, `float32` and finite, with at most twelve elements in both
# together. For which vectors does $\varepsilon$ change the result?

# %% exercise="hunt_rms_norm" points=2

# %% [markdown]
# ## 2. Scores that stay small
#
# A score is a dot product, so it grows with the length of query and key. Training does not bound that. In
# large models scores grew until each softmax gave all weight to one key ([Dehghani and others,
# 2023](https://arxiv.org/abs/2302.05442)); then its gradient is nearly 0, and training fails. One answer is to
# normalize queries and keys before the product, each with weights of its own (**QK-norm**; there by LayerNorm, in most
# models since by RMSNorm):
#
# $$s_{ij} = \frac{\operatorname{RMSNorm}(q_i) \cdot \operatorname{RMSNorm}(k_j)}{\sqrt{\text{hd}}}$$
#
# `queries` are `(..., Tq, hd)`, `keys` `(..., Tk, hd)`, and both weights `(hd,)`. With weights of one,
# a query `(3, 4)` has the score `1.4142` with every key in its direction, however long.
#
# **Guess first**: with weights of one and `hd = 64`, what is the largest score that two vectors can have?

# %%
guess("largest_score", ...)

# %% exercise="qk_norm_scores" points=4

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Queries and keys of different numbers, any leading dimensions, `eps` with other values.
# - Inputs a million times as large give the same scores, with the usual `eps`.
#
# </details>

# %% [markdown]
# Another answer bends the scores themselves: a **soft cap** lets small scores pass and presses large ones below the
# cap.
#
# $$\operatorname{softcap}(s) = c \cdot \tanh\left(\frac{s}{c}\right)$$
#
# With $c = 2$ the scores 0, 1 and 4 become `0.0000 0.9242 1.9281`. It comes before the mask: $-\infty$ would become
# $-c$, and a hidden key could get weight.
#
# **Guess first**: `softcap(1000, 50)` is nearly which number?

# %%
guess("capped", ...)

# %% exercise="softcap" points=2

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Any shape, any cap above 0, whole numbers as caps, too.
#
# </details>

# %%
show(lambda: softcap(torch.tensor([0.0, 1.0, 4.0]), 2.0))

# %% [markdown]
# How the largest of 64 scores grows when queries and keys grow, plain and with each answer:


# %% drawing=true
def largest_scores() -> None:
    """Draw the largest score over the scale of queries and keys, three ways."""
    generator = torch.Generator().manual_seed(0)
    queries, keys = torch.randn(2, 8, 16, generator=generator).unbind()
    scales = [2.0**power for power in range(-2, 5)]
    ones = torch.ones(16)
    ways = {
        "plain": lambda q, k: q @ k.T / 4,
        "QK-norm": lambda q, k: qk_norm_scores(q, k, ones, ones),
        "soft cap of 5": lambda q, k: softcap(q @ k.T / 4, 5.0),
    }
    _, axes = plt.subplots(figsize=(5, 3), layout="constrained")
    for (name, way), style in zip(ways.items(), ("o-", "s-", "^-"), strict=True):
        try:
            largest = [float(way(s * queries, s * keys).max()) for s in scales]
            axes.plot(scales, largest, style, label=name)
        except Exception:
            print(f"The line of {name} comes once its function works.")
    axes.set(xscale="log", yscale="log", ylabel="largest score")
    axes.set(xlabel="scale of queries and keys")
    axes.legend()
    plt.show()


show(largest_scores)

# %% [markdown]
# ### Half precision in attention
#
# Large models compute mostly in 16-bit numbers, and more and more in 8-bit ones (DeepSeek-V3 was trained with both).
# Range and digits share the bits. `float16` has 11 binary digits and ends at 65504. `bfloat16` has the range of
# `float32`, and 8 binary digits: two or three decimal ones. How far is it from 24 to the next number?

# %%
for dtype in (torch.float16, torch.bfloat16, torch.float32):
    number, above = torch.tensor([24.0, 32.0], dtype=dtype)
    step = (torch.nextafter(number, above) - number).item()
    print(f"{dtype}: largest {torch.finfo(dtype).max:.5g}, step at 24: {step:.3g}")

# %% [markdown]
# Attention loses digits in three places. **The softmax**: rounding moves a score near 24 by up to half a step. In
# `float16` that is 0.0078: the exponential of the score changes by up to 0.8 %, and a weight by up to 1.6 %, if
# the sum of the exponentials changes in the other direction. In `bfloat16` it is eight times as much.

# %%
scores = torch.tensor([25.055, 24.057, 24.945])
in_float32 = torch.softmax(scores, dim=-1)
print("weights in float32:", [round(weight, 4) for weight in in_float32.tolist()])
for dtype in (torch.float16, torch.bfloat16):
    rounded = scores.to(dtype)
    percent = 100 * (torch.softmax(rounded, dim=-1).float() / in_float32 - 1)
    errors = [round(error, 2) for error in percent.tolist()]
    print(f"{dtype}: scores {rounded.tolist()}, weights off by {errors} %")

# %% [markdown]
# **The product**: a query and a key of 128 elements, all 30, have the product 115,200, and with $1 / \sqrt{128}$ the
# score 10182.3. If the product stays in half precision, the scaling must come first, which rounds each query once more.
# In `float32` the order does not matter. `bfloat16` has the range, but not the digits:

# %%
vector = torch.full((128,), 30.0)
for dtype in (torch.float16, torch.bfloat16, torch.float32):
    x, root = vector.to(dtype), math.sqrt(128)
    last, first = x @ x / root, x / root @ x
    print(f"{dtype}: scaled last {last.item():.1f}, scaled first {first.item():.1f}")

# %% [markdown]
# **The sums** over the keys: the softmax's denominator and the weighted values. `float16` has no number between 2048
# and 2050. So 2048 + 1 is rounded to 2048, and a sum of ones, added one after another, stops there. For this reason
# `softmax`, `@` and `sum` add half precision up in `float32` on a CPU and round the total. (On a GPU, `@` may round
# partial sums, too.) A loop of your own rounds each sum.
#
# **Guess first**: `bfloat16` has 8 binary digits. At which number does its sum of ones stop?

# %%
guess("sum_of_ones", ...)

# %%
for dtype in (torch.float16, torch.bfloat16, torch.float32):
    total = torch.zeros((), dtype=dtype)
    for _ in range(4096):
        total = total + 1
    by_sum = torch.ones(4096, dtype=dtype).sum().item()
    print(f"{dtype}: 4096 ones in a loop {total.item():.0f}, by sum {by_sum:.0f}")

# %% [markdown]
# Write attention that loses nothing on the way: `queries` `(..., Tq, d)`, `keys` `(..., Tk, d)` and `values`
# `(..., Tk, dv)` of one dtype give $\operatorname{softmax}(Q K^T / \sqrt d)\, V$, `(..., Tq, dv)`, in that dtype. Half
# precision may cost no more than the rounding of the inputs and of the result: convert the inputs to `float32`, compute
# everything in it, and convert the result back. `float64` stays `float64`. There is no mask.

# %% exercise="half_precision_attention" points=4

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Any leading dimensions. There may be more or fewer queries than keys, and values may be wider or narrower than keys.
# - `float16` and `bfloat16`, compared with attention in `float64` of the same inputs. A result $r$ may be off
#   by 0.07 % of $1 + |r|$ in `float16` and by 0.6 % in `bfloat16`: one and a half times what rounding a number of that
#   size can cost. In some cases values in the hundreds nearly cancel, in others their sum is large.
# - Products beyond 65504, 600 keys, and gradients in half precision.
#
# </details>

# %% [markdown]
# Two keys of width 100 with the scores 8970 and 8969: their products are beyond 65504. The weights are those of the
# scores 1 and 0, `0.7311 0.2689`, up to the rounding of `float16`.


# %%
def beyond_float16() -> torch.Tensor:
    """Weights of two keys, read off by values that are the identity, (1, 2)."""
    queries = torch.full((1, 100), 30.0, dtype=torch.float16)
    keys = torch.full((2, 100), 30.0, dtype=torch.float16)
    queries[0, 0], keys[1, 0] = 20.0, 29.5
    return half_precision_attention(queries, keys, torch.eye(2, dtype=torch.float16))


show(beyond_float16)

# %% [markdown]
# Fast kernels go a middle way. [FlashAttention](https://github.com/Dao-AILab/flash-attention) keeps scores and sums in
# `float32`, but rounds the weights to half precision for the product with the values, because GPUs multiply half
# precision faster.

# %% [markdown]
# ## 3. Sinks: attending to nothing
#
# The weights of a softmax sum to 1. A head that finds no key worth attending to must still give its weight away, and
# trained models give it to the first token, whatever that token is: it has become a **sink**. When a sliding window
# drops that token, the model's text falls apart ([Xiao and others, 2023](https://arxiv.org/abs/2309.17453)). `gpt-oss`
# gives each head a sink of its own: one more score in each row of the softmax, trained like a weight, **without a
# value**.
#
# $$\alpha_{ij} = \frac{e^{s_{ij}}}{e^{z} + \sum_{k \le i} e^{s_{ik}}} \quad \text{for } j \le i$$
#
# $z$ is the head's sink. A row with the scores 0 and 1 and a sink of 1 has the weights `0.1554 0.4223`; the rest,
# 0.4223, goes to the sink and is lost. Scores are divided by $\sqrt{\text{hd}}$, sinks are not. Attention is causal,
# with queries, keys and values of shape `(b, h, T, hd)` and `sinks` of shape `(h,)`.
#
# **Guess first**: the first token of a text sees only itself. Its score is 0, and so is the sink. What is its weight?

# %%
guess("first_token", ...)

# %% exercise="attention_with_sinks" points=5

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Any numbers of sequences, heads and tokens; each head has its own sink.
# - A sink of $-\infty$ takes nothing. Scores and sinks in the thousands give no NaN.
# - Sinks get gradients.
#
# </details>

# %% [markdown]
# The weights of six tokens with equal scores, under sinks of $-\infty$, 0 and 2. The larger the sink, the less each
# row sums to:


# %%
def weights_with_sink(sink: float) -> torch.Tensor:
    """Read the weights off the result, by values that are the identity, (6, 6)."""
    nothing = torch.zeros(1, 1, 6, 6)
    identity = torch.eye(6)[None, None]
    return attention_with_sinks(nothing, nothing, identity, torch.tensor([sink]))[0, 0]


draw(
    {
        "no sink": lambda: weights_with_sink(-math.inf),
        "sink of 0": lambda: weights_with_sink(0.0),
        "sink of 2": lambda: weights_with_sink(2.0),
    },
    [str(number) for number in range(6)],
)

# %% [markdown] written="why_sinks" points=3
# **In your own words** (a few sentences, read by a person): if there is no sink, where does a query that matches no key
# put its weight? What does a sink change about the head's output then, and why does it help when a sliding window
# drops the first tokens?

# %% [markdown]
# ## 4. Many documents in one sequence
#
# Training sequences have a fixed length, and documents do not. So several documents are packed into one sequence. With
# a document mask no token sees another document, which has nothing to do with it. Llama 3's authors found that this
# changes little in ordinary training, but matters on very long sequences. Rotary embeddings need no new start in each
# document, because scores depend on distances only. `documents` has a number for each token, `(b, T)`; equal numbers
# are one document. Hide every later token and every token with another number.
#
# For `1 1 2 2` the mask is, with 1 for hidden:
#
#     0 1 1 1
#     0 0 1 1
#     1 1 0 1
#     1 1 0 0
#
# **Guess first**: three documents of 4 tokens each are packed into one sequence. How many of the 144 positions are
# *not* hidden?

# %%
guess("packed", ...)

# %% exercise="document_mask" points=3

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - A document's number that comes back later: `7 3 7` has two documents, 7 and 3. Nobody packs like that; it tests that
#   you compare numbers.
# - Any whole numbers, negative and large ones included. The result is a bool tensor, True where hidden.
#
# </details>

# %%
packed = torch.tensor([[1, 1, 1, 2, 2, 3]])
draw({"1 is seen": lambda: ~document_mask(packed)[0]}, list("aaabbc"))

# %% [markdown]
# ## 5. A gated MLP
#
# The MLP of a block was two projections with an activation between them: ReLU, later GELU. **SwiGLU** has three. One
# projection is a gate: its SiLU scales another projection, element by element, and the third projects back. At the same
# number of parameters models with it reach a lower loss; [Shazeer, 2020](https://arxiv.org/abs/2002.05202), who found
# that, offers no explanation.
#
# $$\operatorname{SwiGLU}(x) = \left(\operatorname{SiLU}(x W_{gate}^T) \odot x W_{up}^T\right) W_{down}^T$$
#
# As in `nn.Linear`, weights have shape `(out, in)`: `W_gate` and `W_up` are `(f, d)`, `W_down` is `(d, f)`.
#
# **Guess first**: three matrices instead of two. Two matrices with `f = 4 d` have $8 d^2$
# parameters. Which multiple of `d` must `f` be for three matrices to have as many? Give it to two decimals.

# %%
guess("gated_width", ...)

# %% exercise="swiglu" points=3

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Any leading dimensions; `f` larger than `d`, smaller or equal.
#
# </details>

# %% [markdown]
# ## 6. Latent attention
#
# A cache of keys and values (unit 6) stores two vectors of width `hd` in each head, for each token and layer. **Latent
# attention** ([DeepSeek-AI, 2024](https://arxiv.org/abs/2405.04434)) stores one vector for all heads: the token's
# **latent** $c$, of width $r$. Each head has a matrix $U$, `(hd, r)`, that turns a latent into its key, $k = U c$.
#
# Must every step then make the keys of all tokens again? No, because a score needs no key:
#
# $$q \cdot k = q \cdot (U c) = (U^\top q) \cdot c$$
#
# The matrix moves to the query, which **absorbs** it. A step has one new query, but thousands of tokens. So it is
# cheaper to change the query than to make keys.
#
# `queries` are `(b, h, Tq, hd)`, `latents` are `(b, T, r)`, the same for all heads, and `up_key` is `(h, hd, r)`, a
# matrix for each head. Return the scores, `(b, h, Tq, T)`, not divided by anything. With
#
#     U = 1 0 1
#         0 1 1
#
# the query `(1, 2)` becomes `(1, 2, 3)`, and has the scores `3` and `6` with the latents `(1, 1, 0)` and `(0, 0, 2)`.
#
# **Guess first**: there are one query and 4096 tokens, `hd = 128` and `r = 512`. In one head, there are two ways to the
# scores: by making the keys, and by absorbing the matrix. About how many times as many multiplications does the first
# way take as the second: 1, 10 or 100? Count all of them, those of the scores included, in both ways.

# %%
guess("without_keys", ...)

# %% exercise="absorbed_scores" points=4

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Any numbers of sequences, heads, queries and tokens, and any widths.
# - With one query no keys are made, neither of all heads nor head by head. With several queries you may make them.
#   A copy of the latents for each head is fine.
# - The check counts operations. Grading also measures the time for one query in each of 16 heads, `hd = 128`, `r = 64`
#   and 4096 tokens. You need not measure it: code that makes no keys is fast enough.
#
# </details>

# %%
show(
    lambda: absorbed_scores(
        torch.tensor([1.0, 2.0]).view(1, 1, 1, 2),
        torch.tensor([[[1.0, 1.0, 0.0], [0.0, 0.0, 2.0]]]),
        torch.tensor([[[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]]),
    )
)

# %% [markdown]
# PyTorch counts the operations of one step, with 16 heads of width 128 and latents of width 512:


# %% drawing=true
def operations_of_a_step() -> None:
    """Draw the operations over the number of tokens, by way of the keys and without."""
    h, hd, r = 16, 128, 512
    lengths = [2**power for power in range(6, 15)]
    ways = "keys are made", "absorbed_scores", "keys are cached"
    spent: dict[str, list[int]] = {way: [] for way in ways}
    for T in lengths:
        shapes = (1, h, 1, hd), (1, T, r), (h, hd, r)  # on `meta` only shapes are known
        q, latents, up_key = (torch.empty(shape, device="meta") for shape in shapes)
        for name, counts in spent.items():
            with FlopCounterMode(display=False) as counter:
                if name == "keys are made":
                    q @ (latents[:, None] @ up_key.mT).mT
                elif name == "keys are cached":  # as in unit 6
                    q @ torch.empty(1, h, hd, T, device="meta")
                else:
                    absorbed_scores(q, latents, up_key)
            counts.append(counter.get_total_flops())
    _, axes = plt.subplots(figsize=(5, 3), layout="constrained")
    for (name, counts), style in zip(spent.items(), ("o--", "s-", "^:"), strict=True):
        axes.plot(lengths, counts, style, label=name)
    axes.set(xscale="log", yscale="log", xlabel="tokens", ylabel="operations")
    axes.legend(loc="lower right", fontsize=8)
    plt.show()


show(operations_of_a_step)

# %% [markdown]
# A cache of keys (unit 6) needs the fewest operations, for long texts a quarter of what `absorbed_scores` needs:
# latents save memory, not operations. With many queries, as in prefill, it is cheaper to make the keys: for the widths
# and the 4096 tokens of the guess, from 164 queries on.
#
# ### The module
#
# Values are made of the same latent, by a second matrix. So the cache needs nothing but latents. This class keeps them;
# it is given:


# %% locked="latent_cache"
class LatentCache:
    """Keep the latents of all tokens so far, for attention to continue.

    latents is a tensor (b, n, latent_dim) of all n appended tokens, in their order;
    before the first call of append it is None.
    """

    def __init__(self) -> None:
        self.latents: torch.Tensor | None = None

    def append(self, latents: torch.Tensor) -> None:
        """Add the latents of the next t tokens, (b, t, latent_dim)."""
        if self.latents is None:
            self.latents = latents
        else:
            self.latents = torch.cat([self.latents, latents], dim=1)


# %% [markdown]
# `LatentAttention` is causal attention that can continue from this cache. `forward(x, cache=None)` takes the **next**
# `t` tokens, and the cache has the latents of the `n` tokens before them:
#
# | | shape |
# |---|---|
# | `x`, only the new tokens | `(b, t, d_in)` |
# | their queries, `W_query(x)`, split into heads | `(b, h, t, hd)` |
# | their latents, `W_latent(x)`, not split | `(b, t, latent_dim)` |
# | `cache.latents` after `cache.append(latents)`: cached and new | `(b, n + t, latent_dim)` |
# | keys and values, `W_up_key` and `W_up_value` of all latents, split into heads | `(b, h, n + t, hd)` |
# | scores, divided by $\sqrt{\text{hd}}$, and their mask | `(b, h, t, n + t)` |
# | `out_proj` of the merged heads, only for the new tokens | `(b, t, d_out)` |
#
# New token $i$ has position $n + i$ in the text, and sees the tokens up to itself. Without a cache, $n = 0$ and `x` is
# the whole text. However a text is cut into steps, the results together are **those of one causal pass**.
#
# - The docstring below names the `nn.Linear` layers. Create them in its order. `hd = d_out / num_heads`. An `assert` is
#   accepted instead of the `ValueError`.
# - Head `i` owns the rows `i * hd` to `(i + 1) * hd - 1` of `W_query.weight`, `W_up_key.weight` and
#   `W_up_value.weight`.
# - You may make the keys, or absorb `W_up_key.weight` as in `absorbed_scores`. You may begin with a copy of your
#   `CachedMultiHeadAttention` (unit 6).
# - The module keeps nothing from one call to the next.
#
# Rotary embeddings (unit 5) are left out. A rotation would stand between query and matrix, and differ from token to
# token, so it could not be absorbed. DeepSeek's models give queries and keys some further elements for it.
#
# Built under seed 123 with `d_in = 3`, `d_out = 4`, two heads and `latent_dim = 2`, the module gives the last row of
# `torch.eye(3)` the vector `0.3426 0.1323 0.0454 0.0268`, in one pass and token by token.
#
# **Guess first**: in DeepSeek-V3 each of 128 heads has keys of width 192 and values of width 128: 40,960 elements for
# each token and layer. Its cache stores a latent of width 512 and 64 elements for positions instead. How many times
# fewer are these?

# %%
guess("smaller_cache", ...)

# %% exercise="LatentAttention" points=8

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Any cut of a text into steps; steps of two texts may alternate, and texts may be thousands of tokens long.
# - After each step `cache.latents` is what `W_latent` gives for all tokens so far.
# - Gradients flow from a step through the cache to the tokens of earlier steps.
# - `latent_dim` may be any width, also larger than `hd`. `F.scaled_dot_product_attention` may be called here.
#
# </details>

# %% [markdown]
# One pass over three tokens, the same tokens one by one, and the shape of what is cached for them:


# %%
def in_steps(*lengths: int) -> tuple[torch.Tensor, LatentCache]:
    """Return the results of steps of these lengths, joined, and the cache."""
    torch.manual_seed(123)
    attention, cache = LatentAttention(3, 4, num_heads=2, latent_dim=2), LatentCache()
    steps = [attention(x, cache) for x in torch.eye(3)[None].split(lengths, dim=1)]
    return torch.cat(steps, dim=1), cache


show(
    {
        "one pass": lambda: in_steps(3)[0],
        "token by token": lambda: in_steps(1, 1, 1)[0],
        "cache.latents": lambda: in_steps(1, 1, 1)[1].latents,
    }
)

# %% [markdown]
# **Take a break** if you like: the block is done.
#
# ## 7. A cache in pages
#
# This section is about decode (unit 6), in which each step has one new token: its single query attends to everything
# cached.
#
# A server decodes many texts at the same time, and nobody knows how long each will be. A cache in one piece must be
# reserved at full length, say for 2048 tokens, and most of it stays empty. [Kwon and others,
# 2023](https://arxiv.org/abs/2309.06180) found that earlier servers used only 20 to 38 % of their cache for tokens.
# Their server, vLLM, cuts the cache into **pages** of a fixed number of tokens, by default 16, and a text gets another
# page only when its last one is full. A page can be anywhere in memory, so each text has a **block table**, which lists
# its pages in order. Three tokens `a b c` in pages of two, with the table `2 0 -1`:
#
#     page 0:  c  .       the text's second page: one slot is still empty
#     page 1:  x  y       belongs to another text
#     page 2:  a  b       the text's first page
#
# Token $t$ is in page `block_table[t // page]`, in slot `t % page`. You write attention for one decoding step, for each
# head on its own:
#
# $$\text{output} = \sum_{t < \text{length}} \alpha_t \, v_t, \qquad
# \alpha = \operatorname{softmax}_t \left(\frac{q \cdot k_t}{\sqrt{\text{hd}}}\right)$$
#
# With the scores 0, 1 and 2 and the values 1, 2 and 4 the result is `3.2405`. An entry of -1 in the table stands for a
# page that the text does not have yet. (As an index, -1 is the last page in PyTorch, without an error.)
#
# Slots that hold no token of this text can hold anything, even NaN. A weight of 0 does not remove a NaN, because
# $0 \cdot \text{NaN}$ is NaN. Gradients have the same problem: the query's gradient is a weighted sum of the keys that
# it was multiplied by, so one NaN key makes it NaN, even with a weight of 0.
#
# **Guess first**: a text of 100 tokens is stored in pages of 16. How many of its slots are empty?

# %%
guess("empty_slots", ...)

# %% exercise="paged_attention" points=5

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - Any numbers of heads and pages, pages of any size, also of one token. The last page may be full or not.
# - Pages in any order. The order of tokens does not change the result, but the table's order says which page is the
#   last one: only the last may have empty slots.
# - A page may be in the tables of two texts, or twice in one table.
# - Entries of the table that are not needed are -1. Slots of no token of this text, in its own last page or in other
#   pages, hold NaN or other numbers. Neither the result nor a gradient has NaN.
#
# </details>

# %%
show(
    lambda: paged_attention(
        torch.tensor([[1.0]]),
        torch.tensor([[2.0, 7.0], [8.0, 9.0], [0.0, 1.0]]).view(3, 2, 1, 1),
        torch.tensor([[4.0, 70.0], [80.0, 90.0], [1.0, 2.0]]).view(3, 2, 1, 1),
        torch.tensor([2, 0, -1]),
        3,
    )
)

# %% [markdown]
# Here the same tokens are stored twice: in one piece, and in pages whose order in memory is reversed. The result of
# attention is the same, and at most 15 slots are empty, however long the text is:


# %%
def pages_and_one_piece(length: int, page: int = 16) -> str:
    """Say how far both results are apart, and how many slots each cache has."""
    generator = torch.Generator().manual_seed(length)
    query = torch.randn(2, 8, generator=generator)
    n = math.ceil(length / page)
    in_pages = torch.randn(2, n, page, 2, 8, generator=generator)  # keys and values
    table = torch.arange(n).flip(0)
    keys, values = in_pages[:, table].flatten(1, 2)[:, :length].transpose(1, 2)
    weights = torch.softmax(query[:, None] @ keys.mT / 8**0.5, dim=-1)  # (2, 1, T)
    right = (weights @ values)[:, 0]
    gap = (paged_attention(query, *in_pages, table, length) - right).abs().max()
    return f"{n * page} slots instead of 2048, largest difference {gap:.4f}"


show(
    {
        "1 token": lambda: pages_and_one_piece(1),
        "100 tokens": lambda: pages_and_one_piece(100),
        "1000 tokens": lambda: pages_and_one_piece(1000),
    }
)

# %% [markdown]
# ## 8. Speculative decoding
#
# A decoding step reads all weights of a large model from memory, for a single token of each text. With few texts this
# takes most of its time. So a pass over a few tokens, like a small prefill, takes hardly longer: in a dense model it
# reads the same weights. (In a mixture of experts other tokens choose other experts, so it reads more.) **Speculative
# decoding** makes use of that ([Leviathan and others, 2023](https://arxiv.org/abs/2211.17192), [Chen and others,
# 2023](https://arxiv.org/abs/2302.01318)): a small **draft** model decodes $n$ tokens, then the large **target** model
# reads all of them in one pass. That gives its distribution at each of the $n$ positions, and at the one after them.
#
# Which of the drafted tokens may stay? Token $x_i$ was drawn from the draft's distribution $q_i$, and the target's is
# $p_i$. With a number $u_i$, drawn evenly between 0 and 1, it is accepted if
#
# $$u_i < \frac{p_i(x_i)}{q_i(x_i)}$$
#
# At the first refusal the rest of the draft is dropped, because it continues a text that is no longer there. One token
# is drawn instead of the refused one, only from those that are more probable in the target than in the draft:
#
# $$\frac{\max(0,\, p_i - q_i)}{\sum_x \max(0,\, p_i(x) - q_i(x))}$$
#
# If all tokens are accepted, one more is drawn from the target's last distribution. So each pass of the target writes
# one token at least and $n + 1$ at most. The draft need not come from a second model: DeepSeek-V3 has a small module
# of its own for it. The rule is the same.
#
# **The text has the target's distribution, exactly.** A token $x$ is drafted with the probability $q(x)$ and then
# accepted with $\min(1, p(x) / q(x))$: together $\min(q(x), p(x))$. A refusal has the probability
# $\sum_x \max(0, q(x) - p(x))$. Because $p$ and $q$ both sum to 1, it equals $\sum_x \max(0, p(x) - q(x))$, the
# formula's denominator. So a refusal and then $x$ have $\max(0, p(x) - q(x))$. These two ways to $x$ add up to $p(x)$.
#
# With the draft `0.5 0.3 0.2`, the target `0.2 0.5 0.3` and token 0 drafted, the ratio is 0.4. For $u = 0.9$ the token
# is refused, and the next one is drawn with the probabilities `0 0.6667 0.3333`.
#
# **Guess first**: the draft gave a token the probability 0.5, the target gives it 0.3. With which probability is it
# accepted?

# %%
guess("accepted", ...)

# %% exercise="accept_draft" points=4

# %% [markdown]
# <details><summary>What is tested</summary>
#
# - One drafted token or more, a vocabulary of any size. A refusal at the first token, at a later one, or at none.
# - The number of accepted tokens is an `int`, not a tensor.
# - Equal distributions of draft and target, and probabilities of 0. The draft's probability of a drafted token is
#   never 0.
# - Draft and target have the same dtype and device, and so have the probabilities that you return. Gradients are not
#   needed, and no $u$ is exactly the ratio.
#
# </details>

# %% [markdown]
# Here a token is drafted, your function decides, and after a refusal another token is drawn from the probabilities that
# it returns, 2000 times. Each token comes as often as the target alone would draw it, up to chance, which is about 0.02
# here. Yet most tokens are the draft's: it is accepted with the probability $\sum_x \min(q(x), p(x)) = 0.7$.


# %%
def tokens_from_drafts(times: int = 2000) -> None:
    """Print how often each of three tokens comes, and how often a draft is accepted."""
    draft = torch.tensor([[0.5, 0.3, 0.2]])
    target = torch.tensor([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0]])
    generator = torch.Generator().manual_seed(3)
    drafted = torch.multinomial(draft[0], times, True, generator=generator)
    uniforms = torch.rand(times, generator=generator)
    counts, accepted = torch.zeros(3), 0
    for token, u in zip(drafted.split(1), uniforms.split(1), strict=True):
        number, next_probs = accept_draft(draft, target, token, u)
        if number == 0:
            token = torch.multinomial(next_probs, 1, generator=generator)
        counts[token] += 1
        accepted += number
    print("token               0      1      2")
    for name, row in (
        ("draft", draft[0]),
        ("target", target[0]),
        ("from drafts", counts / times),
    ):
        print(f"{name:<15}", "  ".join(f"{share:.3f}" for share in row.tolist()))
    print(f"accepted: {accepted / times:.3f}")


show(tokens_from_drafts)

# %% [markdown]
# ## All changes in one block
#
# Sections 7 and 8 ran a trained model. Now your functions of sections 1, 2, 4 and 5 go into a block like that of unit
# 8, one after another: a document mask, RMSNorm before attention and before the MLP, SwiGLU, and normalized queries and
# keys. What does each of them change? The task: each packed document counts up in steps of its own, as in `3 5 7 9 1 3`
# modulo 10, and the block predicts the next token. The step shows in a document's own tokens only. Read `norm`,
# `attend` and `mlp`: each calls one of your functions if its change is in the list.


# %%
def packed_counting(
    b: int,
    generator: torch.Generator,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Three documents of eight tokens in a sequence: tokens and documents, (b, 24)."""
    start, step = torch.randint(10, (2, b, 3, 1), generator=generator).unbind()
    tokens = (start + step * torch.arange(8)) % 10  # (b, 3, 8)
    return tokens.flatten(1), torch.arange(3).repeat_interleave(8).expand(b, 24)


class Block(nn.Module):
    """A model of one block: like that of unit 8, and the changes that are named."""

    def __init__(self, changes: list[str], d: int = 32, h: int = 4) -> None:
        super().__init__()
        self.changes, self.h = changes, h
        self.embedding, self.positions = nn.Embedding(10, d), nn.Embedding(24, d)
        self.W_qkv = nn.Linear(d, 3 * d, bias=False)
        self.W_out = nn.Linear(d, d, bias=False)
        self.query_weight = nn.Parameter(torch.ones(d // h))
        self.key_weight = nn.Parameter(torch.ones(d // h))
        self.scales = nn.Parameter(torch.ones(3, d))  # of the three norms
        f = 2 * d if "SwiGLU" in changes else 3 * d  # three matrices or two
        self.W_gate = nn.Parameter(torch.randn(f, d) * d**-0.5)  # for SwiGLU only
        self.W_up = nn.Parameter(torch.randn(f, d) * d**-0.5)
        self.W_down = nn.Parameter(torch.randn(d, f) * f**-0.5)
        self.largest = 0.0

    def norm(self, x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        if "RMSNorm" in self.changes:
            return rms_norm(x, scale)
        return F.layer_norm(x, scale.shape, scale)

    def attend(self, x: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        """Attention of h heads, (b, T, d) to (b, T, d)."""
        b, T, d = x.shape
        qkv = self.W_qkv(x).view(b, T, 3, self.h, d // self.h)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # (b, h, T, hd) each
        if "QK-norm" in self.changes:
            scores = qk_norm_scores(q, k, self.query_weight, self.key_weight)
        else:
            scores = q @ k.mT / (d // self.h) ** 0.5
        self.largest = float(scores.detach().abs().max())
        weights = scores.masked_fill(hidden[:, None], -torch.inf).softmax(dim=-1)
        return self.W_out((weights @ v).transpose(1, 2).reshape(b, T, d))

    def mlp(self, x: torch.Tensor) -> torch.Tensor:
        if "SwiGLU" in self.changes:
            return swiglu(x, self.W_gate, self.W_up, self.W_down)
        return F.gelu(x @ self.W_up.T) @ self.W_down.T

    def forward(self, tokens: torch.Tensor, documents: torch.Tensor) -> torch.Tensor:
        if "document mask" not in self.changes:
            documents = torch.zeros_like(documents)  # one document
        first, second, last = self.scales
        x = self.embedding(tokens) + self.positions.weight
        x = x + self.attend(self.norm(x, first), document_mask(documents))
        x = x + self.mlp(self.norm(x, second))
        return self.norm(x, last) @ self.embedding.weight.T * last.shape[0] ** -0.5


# %% [markdown]
# Five blocks train for 150 steps each, in some seconds. The first is like that of unit 8, with LayerNorm, plain scores,
# a causal mask and an MLP with GELU; but its linear layers have no biases, and its MLP has the width $3d$ instead of
# $4d$. Then comes each change on top of the ones before. The matrices that a block uses have the same number of
# elements in total: $6d^2$ in the MLP, two of $3d^2$ or, with SwiGLU, three of $2d^2$. Of a document's seven
# predictions the first is chance, so the loss cannot end far below $\ln 10 / 7 = 0.33$. `stored` is what autograd keeps
# of one step for the backward pass.


# %% training="train_blocks"
def bytes_stored(model: Block, tokens: torch.Tensor, documents: torch.Tensor) -> int:
    """Count the bytes of all tensors that autograd keeps, parameters left out."""
    kept = {one.untyped_storage().data_ptr(): 0 for one in model.parameters()}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        kept.setdefault(storage.data_ptr(), storage.nbytes())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        logits = model(tokens, documents)  # keeps all tensors until it is counted
    assert logits.requires_grad
    return sum(kept.values())


def train_all(steps: int = 150) -> None:
    """Draw the loss and the largest score of five blocks while they train."""
    _, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    changes: list[str] = []
    print(f"{'':<18}{'loss':>7}{'largest score':>15}{'stored':>10}")
    for change in ("as in unit 8", "document mask", "RMSNorm", "SwiGLU", "QK-norm"):
        changes += [change]
        torch.manual_seed(0)
        model = Block(changes)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        generator = torch.Generator().manual_seed(1)
        losses, largest = [], []
        for _ in range(steps):
            tokens, documents = packed_counting(16, generator)
            logits = model(tokens, documents)[:, :-1]
            inside = documents[:, 1:] == documents[:, :-1]  # within a document
            loss = F.cross_entropy(logits[inside], tokens[:, 1:][inside])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            largest.append(model.largest)
        name = change if not changes[1:] else f"+ {change}"
        left.plot(losses, label=name)
        right.plot(largest, label=name)
        stored = bytes_stored(model, tokens, documents) / 1024
        print(f"{name:<18}{losses[-1]:>7.3f}{largest[-1]:>15.1f}{stored:>6.0f} KiB")
    left.set(xlabel="step", ylabel="loss")
    right.set(xlabel="step", ylabel="largest |score|", yscale="log")
    left.legend()
    plt.show()


show(train_all)

# %% [markdown]
# After 150 steps with this seed, the document mask and SwiGLU have lowered the loss most: they make training *faster*.
# Without the mask tokens attend to earlier documents, which count in other steps, and the block must learn to leave
# them out. Train for 400 steps, and all five blocks come close to what chance allows. RMSNorm changes the loss little;
# it is used because it does about as well as LayerNorm and is simpler.
#
# QK-norm leaves the loss as it is here. It bounds the scores: by $\sqrt{8} = 2.83$, the root of the heads' width, times
# the largest product of a trained query weight and its key weight. Plain scores have no bound. In
# the first steps they grow several times here, and in large models such growth ended trainings.
#
# The mask stores nothing for the backward pass. The three other functions do, because yours make a tensor in every
# line, and autograd keeps most of these tensors. On a GPU libraries can join the lines into one kernel, which keeps
# little.

# %% [markdown]
# **In real models**
#
# | what | where | detail | source |
# |---|---|---|---|
# | RMSNorm before each part, SwiGLU | Llama | MLP of width 2/3 · 4 d | Touvron 2023 |
# | QK-norm | Qwen3 | RMSNorm on queries and keys | Yang 2025 |
# | soft caps | Gemma 2 | 50 for scores, 30 for logits | Riviere 2024 |
# | QK-norm | Gemma 3 | instead of Gemma 2's soft caps | Kamath 2025 |
# | the first tokens are sinks | StreamingLLM | 4 tokens are kept | Xiao 2023 |
# | a trained sink for each head | gpt-oss | one number a head | OpenAI 2025 |
# | document masks | Llama 3 | no attention across documents | Grattafiori 2024 |
# | latents in the cache | DeepSeek-V3 | 576 elements a token, layer (8 groups of 128: 2048) | DeepSeek-AI 2024 |
# | each query reads only selected tokens | DeepSeek-V3.2-Exp | 2048 tokens | DeepSeek-AI 2025 |
# | a cache in pages | vLLM | pages of 16 tokens | Kwon 2023 |
# | drafted tokens, by a module of the model | DeepSeek-V3 | 1.8 times as fast | DeepSeek-AI 2024, 5.4.3 |
#
# [Touvron 2023](https://arxiv.org/abs/2302.13971), [Yang 2025](https://arxiv.org/abs/2505.09388), [Riviere
# 2024](https://arxiv.org/abs/2408.00118), [Kamath 2025](https://arxiv.org/abs/2503.19786), [Xiao
# 2023](https://arxiv.org/abs/2309.17453), [OpenAI 2025](https://arxiv.org/abs/2508.10925), [Grattafiori
# 2024](https://arxiv.org/abs/2407.21783), [DeepSeek-AI 2024](https://arxiv.org/abs/2412.19437), [DeepSeek-AI
# 2025](https://github.com/deepseek-ai/DeepSeek-V3.2-Exp), [Kwon 2023](https://arxiv.org/abs/2309.06180). RMSNorm is by
# [Zhang and Sennrich, 2019](https://arxiv.org/abs/1910.07467).

# %% [markdown]
# ## How far you are
#
# Do you know your own code? If there are questions about your lines, a check that passes ends with a call like
# `explain("attention_with_sinks")`. It asks for the shape of a line's result, where an input is used first, or what an
# edit would change. It is not graded.
#
# Every check of this notebook in one table, with the points that the public examples would give:

# %%
check()
