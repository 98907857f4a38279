# %% [markdown]
# # Batches, order, other sentences
#
# So far attention had one sentence at a time, or several of one length. Real data are not like that: sentences are
# short and long, some texts are far too long for every token to look at every other one, and words come in an order,
# of which attention by itself knows nothing.
#
# In this notebook you build what is needed for that:
#
# 1. **batches** of sentences of different lengths: what fills them up is hidden;
# 2. **windows**: each token sees the few before it, and still hears of the rest;
# 3. **order**: you see that attention does not know it, and give it two ways to: ALiBi and rotary embeddings;
# 4. **other sentences**: attention from one sentence to another, and a small translator that learns with it.
#
# Write your code where it says `YOUR CODE HERE`, then run the check below it. Pictures and numbers in this notebook are
# made by *your* functions: run their cells again once you have written them. *Run All* reaches the end of this notebook
# from the first minute on. Where you are stuck, `hint("padding_mask")` gives you a question; call it again for more.
#
# What holds for every exercise here: a mask is a bool tensor, and **`True` means hidden**. The output has its inputs'
# dtype and device (`float32` and `float64` are tried, half precision is not), inputs are left unchanged, and gradients
# can flow to every input and parameter. A leading `...` in a shape stands for any number of dimensions. The functions
# may not call the library's attention (`F.scaled_dot_product_attention`, `nn.MultiheadAttention`): it is what you are
# writing. The class may.

# %% locked="setup"
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
# | tool | what it does | shapes |
# |---|---|---|
# | `torch.arange(n)` | 0, 1, 2, ... n - 1; `device=` says where | `(n,)` |
# | `a[:, None]` | a new dimension of size 1, which broadcasts | `(b,)` becomes `(b, 1)` |
# | `a >= b`, `a \| b`, `a & b`, `~a` | compared; of bool tensors or, and, not | `(b, 1) >= (n,)` is `(b, n)` |
# | `x.masked_fill(mask, number)` | the number wherever the mask is `True` | a mask that broadcasts to `x` |
# | `mask.all(dim=-1, keepdim=True)` | whether a whole row is `True` | `(T, T)` becomes `(T, 1)` |
# | `x[..., 0::2]`, `x[..., 1::2]` | every second number, from the first or second on | `(T, 6)` becomes `(T, 3)` |
# | `torch.stack([a, b], dim=-1)` | tensors side by side in a new dimension | `(T, 3)` twice is `(T, 3, 2)` |
# | `x.flatten(-2)` | the last two dimensions as one | `(T, 3, 2)` becomes `(T, 6)` |
#
# The six words once more:

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
# ## 1. Sentences of different lengths
#
# A batch is one tensor, so its sentences must be equally long. Short ones are made as long with a *padding* token,
# which has an embedding like any other. Here are three sentences of six, three and two words in a batch of shape
# `(3, 6, 3)`:

# %% locked="batch"
lengths = torch.tensor([6, 3, 2])
pad = torch.tensor([0.9, 0.9, 0.9])
batch = pad.repeat(3, 6, 1)
batch[0] = X
batch[1, :3] = X[:3]  # Your journey starts
batch[2, :2] = X[4:]  # one step
batch[1]

# %% [markdown]
# `padding_mask` says which places are padding, by the lengths: `True` at place $p$ of a sentence of length $n$ where
# $p \ge n$. Its width is `max_len`, which is at least the longest length.
#
# **Guess first**: how many of the 18 places of the batch are padding?

# %%
guess("padding_places", ...)

# %% exercise="padding_mask" points=3

# %%
show(lambda: padding_mask(lengths, 6))

# %% [markdown]
# Now attention that keeps to any mask. Query $i$ takes from the keys that it sees, and from no other:
#
# $$\alpha_{ij} = \frac{e^{s_{ij}}}{\sum_{k \text{ seen by } i} e^{s_{ik}}} \quad \text{if } i \text{ sees } j, \qquad
# \alpha_{ij} = 0 \quad \text{if not}, \qquad s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d_k}}$$
#
# As in *Attention Is All You Need* (Vaswani et al., 2017), hidden scores become $-\infty$ before the softmax. Two
# things are new here.
#
# - **Masks broadcast.** A mask need not be as large as the scores, `(..., Tq, Tk)`. `(b, 1, Tk)` hides the same keys
#   from all queries of a sentence, `(Tq, Tk)` is one for all sentences, `(b, 1, 1, Tk)` serves several heads.
# - **A query may see no key at all**, in an empty sentence for instance. It has nothing to take, so its result is
#   **zeros**. And gradients must be numbers there too: what is NaN on the way is often NaN on the way back, even where
#   the result looks mended.
#
# **Guess first**: what does softmax make of a row of $-\infty$ alone: `"zeros"`, `"equal weights"` or `"nan"`?

# %%
guess("row_of_minus_infinity", ...)

# %% exercise="masked_attention" points=7

# %% [markdown]
# What the words of *Your journey starts* take from each other in the batch, first with a mask that hides nothing, then
# with yours. (Each key's value is one-hot, so that the result *is* the weights.)

# %%
nothing_hidden = torch.zeros(1, 6, dtype=torch.bool)


def weights_in_batch(mask: torch.Tensor) -> torch.Tensor:
    """What each place of the second sentence takes from each, (6, 6)."""
    return masked_attention(batch[1], batch[1], torch.eye(6), mask)


draw(
    {
        "padding takes part": lambda: weights_in_batch(nothing_hidden),
        "padding hidden": lambda: weights_in_batch(padding_mask(lengths, 6)[1:2]),
    },
    [*words[:3], "pad", "pad", "pad"],
)

# %% [markdown]
# The rows of the padding are there too: as queries they may ask what they like, as long as nobody listens to them.
# Their results are thrown away.
#
# A sentence must give the same alone and in a batch, whoever its neighbours are. This is how far the results of *Your
# journey starts* are from what it gives alone, the more padding there is:


# %% drawing=true
def draw_leak() -> None:
    """How far a sentence moves when it is padded, with the padding seen and hidden."""
    sentence = X[:3]
    alone = masked_attention(sentence, sentence, sentence, nothing_hidden[:, :3])
    moved: dict[str, list[float]] = {"padding takes part": [], "padding hidden": []}
    for more in range(13):
        padded = torch.cat([sentence, pad.expand(more, 3)])
        hidden = padding_mask(torch.tensor([3]), 3 + more)
        for title, mask in zip(moved, (torch.zeros_like(hidden), hidden), strict=True):
            result = masked_attention(padded, padded, padded, mask)[:3]
            moved[title].append(float((result - alone).abs().max()))
    _, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
    for (title, distances), style in zip(moved.items(), ("o-", "s-"), strict=True):
        ax.plot(distances, style, label=title)
    ax.set_xlabel("places of padding")
    ax.set_ylabel("largest difference")
    ax.legend()
    plt.show()


show(draw_leak)

# %% [markdown]
# A test like this one belongs into every project that pads: nothing fails when padding leaks. The loss only gets a
# little worse, and results depend on who else is in the batch.
#
# PyTorch's fast `F.scaled_dot_product_attention` takes a bool mask too, with the opposite meaning: `True` where a key
# **takes part**. (`nn.MultiheadAttention` says `True` for hidden, as we do.) `to_sdpa_mask` turns one into the other.
#
# **Guess first**: if you forget it, which keys do the words of a padded sentence attend to, `"words"` or `"padding"`?

# %%
guess("forgotten_to_turn", ...)

# %% exercise="to_sdpa_mask" points=2


# %%
def difference_to_the_library() -> float:
    """Between your attention and PyTorch's, for the whole batch."""
    hidden = padding_mask(lengths, 6)[:, None]  # (3, 1, 6)
    own = masked_attention(batch, batch, batch, hidden)
    theirs = F.scaled_dot_product_attention(batch, batch, batch, to_sdpa_mask(hidden))
    return float((own - theirs).abs().max())


show(difference_to_the_library)

# %% [markdown]
# ## 2. A window
#
# $T$ tokens have $T^2$ scores: a text ten times as long costs a hundred times as much. Longformer (Beltagy et al.,
# 2020) lets a token see only a **window** around it. Mistral 7B (Jiang et al., 2023), which writes from left to right,
# lets it see itself and the `window - 1` tokens before it, and so do you: key $j$ is hidden from query $i$ where it
# comes later, $j > i$, or is too far back, $i - j \ge$ `window`.
#
# **Guess first**: six tokens and a window of 3. How many of the 36 places are *seen*?

# %%
guess("window_places", ...)

# %% exercise="sliding_window_mask" points=3

# %% [markdown]
# In a second layer a token hears from those in its window what *they* heard in the first: the reach grows with the
# depth. On the left what a window of 3 lets a token see, on the right what reaches it through two such layers.
#
# **Guess first**: through two layers with a window of 3, from how many tokens back does a token hear?

# %%
guess("reach", ...)


# %%
def seen_through_two_layers() -> torch.Tensor:
    """Where a way leads from a key to a query through two layers, (6, 6)."""
    seen = (~sliding_window_mask(6, 3)).float()
    return (seen @ seen).clamp(max=1)


draw(
    {
        "window of 3: 1 is seen": lambda: ~sliding_window_mask(6, 3),
        "two layers of it": seen_through_two_layers,
    },
    words,
)

# %% [markdown]
# ## 3. Order
#
# *The dog bit the man* and *the man bit the dog* have the same words. Does attention tell them apart? Each context
# vector is a weighted **sum**, and a sum does not know in which order things were added.
#
# `permuted_outputs` finds out. It shuffles a sequence `x`, `(b, T, d_in)`, so that token `order[i]` comes $i$-th, lets
# `attention` turn that into `(b, T, d_out)`, and puts the outputs back, so that each stands at the place that its token
# had in `x`. `order` holds every number from 0 to $T - 1$ once. What `attention` does is its own business: call it
# once, with all sentences of the shuffled sequence. The check brings attentions of its own.
#
# **Guess first**: without a mask, is what a token gets another one once the sentence is shuffled? Guess `"yes"` or
# `"no"`.

# %%
guess("shuffled_sentence", ...)

# %% exercise="permuted_outputs" points=4

# %% [markdown]
# How far each word's context vector moves when the words are shuffled, without a mask and with a causal one (a window
# over all of the text):


# %% drawing=true
def without_a_mask(x: torch.Tensor) -> torch.Tensor:
    """Every token sees every other one."""
    return masked_attention(x, x, x, torch.zeros(1, 1, dtype=torch.bool))


def causal(x: torch.Tensor) -> torch.Tensor:
    """Every token sees itself and those before it."""
    num_tokens = x.shape[-2]
    return masked_attention(x, x, x, sliding_window_mask(num_tokens, num_tokens))


def draw_shuffled() -> None:
    """How far each word's result moves when the sentence is shuffled."""
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    moved = {}
    for title, attention in [("no mask", without_a_mask), ("causal mask", causal)]:
        put_back = permuted_outputs(attention, X[None], order)[0]
        moved[title] = (put_back - attention(X[None])[0]).norm(dim=-1)
    _, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
    for (title, distances), shift in zip(moved.items(), (-0.2, 0.2), strict=True):
        bars = ax.bar(torch.arange(6) + shift, distances, width=0.4, label=title)
        ax.bar_label(bars, fmt="%.2f", fontsize=8)
    ax.set_xticks(range(6), words)
    ax.set_ylabel("moved by")
    ax.legend()
    plt.show()


show(draw_shuffled)

# %% [markdown]
# Without a mask nothing moves: to attention a sentence is a bag of words. A causal mask tells a token how many are
# before it, but not which of them is near.

# %% [markdown] written="why_order" points=3
# **In your own words** (a few sentences, read by a person): why does attention without a mask give each token the same,
# however its sentence is shuffled? Why is that different with a causal mask, and what does a model with a causal mask
# still not know without embeddings of positions?

# %% [markdown]
# ### ALiBi: far is worth less
#
# The plainest way to tell near from far is to take something off the score for distance. ALiBi (*Train Short, Test
# Long*, Press et al., 2021) adds a bias to the scores before the softmax, which is never trained:
#
# $$b^{(i)}_{qk} = -2^{-8i/h}\,(q - k) \quad \text{for } k \le q, \qquad i = 1, \dots, h$$
#
# Each of the $h$ heads has its own slope. For eight heads they are $\frac12, \frac14, \frac18, \dots, \frac1{256}$: the
# first head is near-sighted, the last sees far. $h$ is a power of two. Above the diagonal, where a causal mask hides
# the scores anyway, the bias is 0. The result is `(h, T, T)`, `float32`.
#
# **Guess first**: in the third of eight heads, what is the bias of a key four tokens back?

# %%
guess("third_head", ...)

# %% exercise="alibi_bias" points=5

# %% [markdown]
# The bias of the first of eight heads, and the causal weights of the first and of the last head where all scores are
# equal:


# %%
def alibi_weights(head: int) -> torch.Tensor:
    """The weights of a head whose scores are all 0, (6, 6)."""
    hidden = sliding_window_mask(6, 6)
    return torch.softmax(alibi_bias(8, 6)[head].masked_fill(hidden, -torch.inf), -1)


draw(
    {
        "bias, head 1": lambda: alibi_bias(8, 6)[0],
        "weights, head 1": lambda: alibi_weights(0),
        "head 8": lambda: alibi_weights(7),
    },
    words,
)

# %% [markdown]
# Nothing in it depends on how long the texts of the training were. So such a model goes on to work on longer ones,
# which is what the paper is about.
#
# ### Rotary embeddings: angles
#
# RoFormer (Su et al., 2021) **turns** queries and keys. The numbers of a head are taken in pairs of neighbours, 0 and
# 1, 2 and 3, and so on. Each pair is a point in the plane, and at position $p$ pair $m$ is turned by the angle
# $p\,\theta_m$:
#
# $$\begin{pmatrix} x'_{2m} \\ x'_{2m+1} \end{pmatrix} =
# \begin{pmatrix} \cos p\theta_m & -\sin p\theta_m \\ \sin p\theta_m & \cos p\theta_m \end{pmatrix}
# \begin{pmatrix} x_{2m} \\ x_{2m+1} \end{pmatrix}, \qquad \theta_m = \text{base}^{-2m/d}, \quad
# m = 0, \dots, \tfrac d2 - 1$$
#
# where $d$ is the width of a head. The first pair turns by a whole radian at each position, the last by hardly
# anything. At position 1 the vector `[1, 0, 1, 0]` becomes `[.5403, .8415, .9999, .0100]`.
#
# `rotary_embedding(x, positions)` does this for `x` of shape `(..., T, head_dim)`; `positions`, `(T,)`, says where each
# token stands. It need not begin at 0: a model that writes turns one new token at a time, at position 6, 7, 8, and
# keeps the keys of the others as they are. Compute the angles in the dtype of `x`, or in `float64`; the result has the
# dtype of `x`.
#
# **Guess first**: `head_dim` is 4. By what angle is the second pair turned at position 100?

# %%
guess("second_pair", ...)

# %% exercise="rotary_embedding" points=6

# %% [markdown]
# The two pairs of `[1, 0, 1, 0]` at positions 0 to 6, and the scores of a query and a key that are the same at all
# six places of a sentence: each depends on the **distance** alone, as turning both by the same angle changes no dot
# product.


# %% drawing=true
def draw_turned() -> None:
    """Where the two pairs of [1, 0, 1, 0] are at positions 0 to 6."""
    positions = torch.arange(7)
    x = torch.tensor([1.0, 0.0, 1.0, 0.0]).repeat(7, 1)
    turned = rotary_embedding(x, positions)
    _, axes = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained")
    for pair, ax in enumerate(axes):
        across, up = turned[:, 2 * pair].tolist(), turned[:, 2 * pair + 1].tolist()
        ax.add_patch(plt.Circle((0, 0), 1, fill=False, edgecolor="lightgrey"))
        ax.scatter(across, up, c=range(7), cmap="viridis")
        labels = ["0 to 6"] if pair else list(map(str, range(7)))
        for position, label in enumerate(labels):
            far = 0.7 if pair else 1.15
            spot = far * across[position], far * up[position]
            ax.text(*spot, label, ha="center", va="center")
        ax.set_title(f"pair {pair}: numbers {2 * pair} and {2 * pair + 1}", fontsize=10)
        ax.set_xlim(-1.4, 1.4)
        ax.set_ylim(-1.4, 1.4)
        ax.set_aspect("equal")
    plt.show()


show(draw_turned)


# %%
def rotary_scores(first: int) -> torch.Tensor:
    """Scores between the same query and key at six places from `first` on, (6, 6)."""
    positions = torch.arange(first, first + 6)
    same = torch.tensor([1.0, 0.5, -0.5, 1.0]).repeat(6, 1)
    turned = rotary_embedding(same, positions)
    return turned @ turned.T


draw(
    {
        "positions 0 to 5": lambda: rotary_scores(0),
        "positions 90 to 95": lambda: rotary_scores(90),
    },
    [str(place) for place in range(6)],
)

# %% [markdown]
# **A bug hunt.** Here is a `rotary_embedding` that somebody else wrote. It keeps the length of every vector, and its
# scores depend on distances alone, just as they should. Whoever trains a model with it from the beginning notices
# nothing. But with the weights of a model that was trained with the right one, it writes nonsense:

# %%
wrong = buggy("rotary_embedding")
wrong(torch.tensor([[3.0, 4.0]]), torch.tensor([1])).norm()

# %% [markdown]
# Find an input that gives it away: `x`, `(T, head_dim)`, `float32`, and `positions`, `(T,)`, `int64`, with at most
# twelve numbers together, on which `wrong(x, positions)` and the right result differ by more than 0.001 somewhere.
# Return both: `return x, positions`. Each pair turns by the right angle. But is it the right pair?
#
# The check compares `wrong` with your own `rotary_embedding`, so write that first.

# %% exercise="hunt_rotary_embedding" points=2

# %% [markdown]
# **In real models.** Both ways of pairing are in use: the paper's neighbours, and number $m$ with number $m + d/2$.
# Either is fine, as long as training and use agree. Llama 3 has a base of 500,000, so that the last pairs do not get
# around even in very long texts.

# %% [markdown]
# ## 4. Another sentence
#
# A translator reads one sentence and writes another one. For each word that it writes it must look at the words that it
# reads. In **cross-attention** (it came before self-attention: Bahdanau et al., 2014) the queries come from one
# sentence, and keys and values from the other, the *context*:
#
# | step | shape |
# |---|---|
# | `x`, the sentence that asks | `(b, T, d_query)` |
# | `context`, the one that is asked | `(b, T_context, d_context)` |
# | queries: `W_query(x)`, split into heads | `(b, h, T, hd)` |
# | keys and values: `W_key(context)`, `W_value(context)`, split into heads | `(b, h, T_context, hd)` |
# | weights: scores divided by $\sqrt{hd}$, softmax over the context | `(b, h, T, T_context)` |
# | context vectors of the heads, merged | `(b, T, d_out)` |
# | the layer `out_proj` | `(b, T, d_out)` |
#
# - `W_query` (`d_query` to `d_out`), `W_key` and `W_value` (`d_context` to `d_out`) have **no bias**, `out_proj`
#   (`d_out` to `d_out`) has one. They are `nn.Linear` layers, created in this order.
# - `hd = d_out / num_heads`. Where that is no whole number, building the module raises a `ValueError` (an `assert` is
#   right too).
# - `context_mask` is a bool tensor of shape `(b, T_context)`, as `padding_mask` makes it, `True` where the context is
#   hidden; or `None`, and nothing is hidden. There is no causal mask: the whole context is there from the beginning.
# - Where all of a sentence's context is hidden, heads find zeros, and the result is the bias of `out_proj`.
#
# Your `masked_attention` can do the middle, or `F.scaled_dot_product_attention`.
#
# Built under seed 123 with `d_query = 3`, `d_context = 2`, `d_out = 4` and two heads, the six words find this in the
# four words below:
#
# | | | | | |
# |---|---|---|---|---|
# | **Your** | -0.1162 | 0.1385 | -0.2401 | -0.0191 |
# | **journey** | -0.1234 | 0.1359 | -0.2381 | -0.0260 |
# | **starts** | -0.1232 | 0.1360 | -0.2382 | -0.0258 |
# | **with** | -0.1160 | 0.1382 | -0.2400 | -0.0191 |
# | **one** | -0.1147 | 0.1388 | -0.2404 | -0.0179 |
# | **step** | -0.1185 | 0.1374 | -0.2393 | -0.0215 |
#
# **Guess first**: `x` is `(2, 4, 5)`, `context` `(2, 6, 7)`, and there are 3 heads. Which shape do the scores have?

# %%
guess("shape_of_scores", ...)

# %% exercise="CrossAttention" points=10

# %%
other = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.6, 0.7], [0.1, 0.3]])
torch.manual_seed(123)
show(lambda: CrossAttention(3, 2, 4, num_heads=2)(X[None], other[None]))

# %% [markdown]
# ### A translator
#
# Now let it learn. English sentences are made of a few words, `[today] the [red] cat sleeps [here] .`, and have four to
# seven tokens. In French the adjective comes after the noun: *the red cat sleeps*, *le chat rouge dort*.
#
# Before each French word the model knows the word before it, and nothing else of the French. That is the query; keys
# and values are the English words. So after *le* it must find the noun, and after the noun the adjective, if there is
# one. Nobody tells it which word is which, it only sees pairs of sentences. And it has no embedding of positions at
# all.

# %% locked="small_language"
ENGLISH = {
    "noun": ["cat", "dog", "horse", "wolf", "fox", "rabbit"],
    "adjective": ["red", "sad", "calm", "fast", "strange"],
    "verb": ["sleeps", "runs", "waits", "eats", "sings", "falls"],
}
FRENCH = {
    "noun": ["chat", "chien", "cheval", "loup", "renard", "lapin"],
    "adjective": ["rouge", "triste", "calme", "rapide", "étrange"],
    "verb": ["dort", "court", "attend", "mange", "chante", "tombe"],
}
english_words = ["<pad>", "today", "the", "here", "."]
english_words += [word for kind in ENGLISH.values() for word in kind]
french_words = ["<pad>", "<start>", "aujourd'hui", "le", "ici", "."]
french_words += [word for kind in FRENCH.values() for word in kind]


def sentence_pair(choose: Callable[[int], int]) -> tuple[list[str], list[str]]:
    """A sentence and its translation; choose(n) gives a number from 0 to n - 1."""
    noun, verb, adjective = choose(6), choose(6), choose(5)
    english, french = [ENGLISH["noun"][noun]], [FRENCH["noun"][noun]]
    if choose(2):
        english = [ENGLISH["adjective"][adjective], *english]
        french = [*french, FRENCH["adjective"][adjective]]
    english = ["the", *english, ENGLISH["verb"][verb]]
    french = ["le", *french, FRENCH["verb"][verb]]
    if choose(2):
        english, french = ["today", *english], ["aujourd'hui", *french]
    if choose(2):
        english, french = [*english, "here"], [*french, "ici"]
    return [*english, "."], [*french, "."]


def as_batch(sentences: list[list[str]], known: list[str]) -> torch.Tensor:
    """The numbers of the words, with padding, which is 0: (b, T)."""
    longest = max(map(len, sentences))
    rows = [[*map(known.index, one), *[0] * (longest - len(one))] for one in sentences]
    return torch.tensor(rows)


# %% locked="translator"
class Translator(nn.Module):
    """Scores for each next French word, by the one before it and the English words."""

    def __init__(self) -> None:
        super().__init__()
        self.english = nn.Embedding(len(english_words), 16)
        self.french = nn.Embedding(len(french_words), 24)
        self.attention = CrossAttention(24, 16, 32, num_heads=1)
        self.scores = nn.Linear(32, len(french_words))

    def forward(
        self,
        english: torch.Tensor,
        lengths: torch.Tensor,
        before: torch.Tensor,
    ) -> torch.Tensor:
        """english (b, T), lengths (b,), before (b, T_fr) -> (b, T_fr, words)."""
        hidden = padding_mask(lengths, english.shape[1])
        found = self.attention(self.french(before), self.english(english), hidden)
        return self.scores(found)

    @torch.no_grad()
    def weights(self, english: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
        """What each step takes from each English word: (T_french, T)."""
        queries = self.attention.W_query(self.french(before))
        keys = self.attention.W_key(self.english(english))
        seen = torch.zeros(1, len(english), dtype=torch.bool)
        return masked_attention(queries, keys, torch.eye(len(english)), seen)


def train(model: Translator, steps: int = 150) -> None:
    """Train on sentences drawn by chance; padding is left out of the loss."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(steps + 1):
        pairs = [sentence_pair(lambda n: int(torch.randint(n, ()))) for _ in range(32)]
        english = as_batch([one for one, _ in pairs], english_words)
        lengths = torch.tensor([len(one) for one, _ in pairs])
        target = as_batch([other for _, other in pairs], french_words)
        before = target.roll(1, dims=1)
        before[:, 0] = french_words.index("<start>")
        scores = model(english, lengths, before)  # (32, T_french, words)
        loss = F.cross_entropy(scores.flatten(0, 1), target.flatten(), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if not step % 25:
            print(f"step {step:3}: loss {loss:.3f}")


@torch.no_grad()
def translate(model: Translator, sentence: str) -> list[str]:
    """Word by word, always the one of the highest score."""
    english = as_batch([sentence.split()], english_words)
    written = ["<start>"]
    while written[-1] != "." and len(written) < 9:
        before = as_batch([written], french_words)
        scores = model(english, torch.tensor([english.shape[1]]), before)[0, -1]
        written.append(french_words[int(scores.argmax())])
    return written


def draw_alignment(model: Translator, sentence: str) -> None:
    """Which English words the model looks at for each French one."""
    written, asked = translate(model, sentence), sentence.split()
    english = as_batch([asked], english_words)[0]
    weights = model.weights(english, as_batch([written[:-1]], french_words)[0])
    _, ax = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
    ax.imshow(weights.numpy(), cmap="Blues", vmin=0, vmax=1)
    ax.set_xticks(range(len(asked)), asked, rotation=45)
    ax.set_yticks(range(len(written) - 1), written[1:])
    ax.set_xlabel("key: English")
    ax.set_ylabel("written: French")
    plt.show()


# %% [markdown]
# Some 4,400 parameters; training takes a few seconds:


# %% training="train_translator"
def trained() -> None:
    """Train the model, then let it translate."""
    torch.manual_seed(0)
    model = Translator()
    train(model)
    for sentence in ["the fox waits .", "today the calm wolf sings here ."]:
        print(sentence, "->", *translate(model, sentence)[1:])
    draw_alignment(model, "today the red cat sleeps here .")


show(trained)

# %% [markdown]
# The dark places are the alignment of the two sentences. It goes down the diagonal, and crosses where *red cat* becomes
# *chat rouge*. Nobody showed the model which word belongs to which. That picture, in Bahdanau's paper, is where the
# story of attention began.
#
# **In real models.** The decoder of the first Transformer, of T5 and of Whisper asks the encoder's words or sounds by
# cross-attention in every layer. In Stable Diffusion the pieces of a picture ask the words of its description.

# %% [markdown]
# ## How far you are
#
# Every check of this notebook in one table, with the points that the public examples would give:

# %%
check()
