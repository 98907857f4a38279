"""Unit 8's solutions against formulas in plain loops, and against what PyTorch has for the same."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from solutions import tiny_language_model as unit8

from .drawing import assert_close, batches, draws, precise, sizes
from .library import hidden_keys
from .test_formulas import unchanged
from .test_library import assert_same


@given(st.integers(1, 60), st.integers(1, 8))
def test_sinusoidal_positions(num_tokens, pairs):
    d = 2 * pairs
    found = unit8.sinusoidal_positions(num_tokens, d)
    assert found.shape == (num_tokens, d)
    assert found.dtype == torch.float32
    for p in range(num_tokens):
        for i in range(pairs):
            angle = p / 10000 ** (2 * i / d)
            assert math.isclose(found[p, 2 * i], math.sin(angle), abs_tol=1e-5)
            assert math.isclose(found[p, 2 * i + 1], math.cos(angle), abs_tol=1e-5)


@given(draws, batches, st.integers(2, 6), sizes)
def test_next_token_loss(draw, b, num_tokens, words):
    n = draw.numbers()
    tokens = torch.randint(words, (b, num_tokens), generator=n.generator)
    assert_same(
        draw,
        lambda logits: unchanged(unit8.next_token_loss, logits, tokens)[None],
        lambda logits: F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())[None],
        n.randn(b, num_tokens, words),
    )


@given(st.integers(0, 2**32 - 1), batches, sizes, st.integers(0, 6), sizes)
def test_generate(seed, b, num_tokens, n, context_length):
    """Against a loop over sentences that knows nothing of batches."""
    generator = torch.Generator().manual_seed(seed)
    table = torch.randn(7, 7, generator=generator, dtype=torch.float64)

    def model(tokens):
        assert tokens.shape[1] <= context_length
        return table[tokens].cumsum(dim=1)  # (b, T, 7)

    prompts = torch.randint(7, (b, num_tokens), generator=generator)
    expected = prompts.tolist()
    for sentence in expected:
        for _ in range(n):
            sums = [sum(table[token, word].item() for token in sentence[-context_length:]) for word in range(7)]
            sentence.append(sums.index(max(sums)))
    assert unchanged(unit8.generate, model, prompts, n, context_length).tolist() == expected


@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(1, 8), st.floats(0.4, 3.0))
def test_sample_next(seed, words, top_k, temperature):
    """Each word comes as often as the formula says, within six standard deviations."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(words, generator=generator, dtype=torch.float64)
    kept = sorted(logits.tolist(), reverse=True)[:top_k]
    weights = [math.exp(logit / temperature) if logit in kept else 0.0 for logit in logits.tolist()]
    draws = 2000
    torch.manual_seed(seed)
    drawn = unchanged(unit8.sample_next, logits.expand(draws, -1), temperature, top_k)
    assert drawn.shape == (draws,)
    assert drawn.dtype == torch.int64
    for word, weight in enumerate(weights):
        share = weight / sum(weights)
        room = 6 * math.sqrt(draws * share * (1 - share)) + 1
        assert abs(int((drawn == word).sum()) - draws * share) <= (room if weight else 0)
    assert unit8.sample_next(logits[None], 0.0, top_k) == logits.argmax()
    assert unit8.sample_next(logits[None], temperature, 1) == logits.argmax()


HEADS = {
    "itself": lambda words, i: [i],
    "first": lambda words, i: [0],
    "previous": lambda words, i: [max(0, i - 1)],
    "average": lambda words, i: list(range(i + 1)),
    "same word": lambda words, i: [j for j in range(i + 1) if words[j] == words[i]],
}


@given(st.sampled_from(sorted(HEADS)), st.lists(st.integers(0, 5), min_size=1, max_size=20), st.integers(0, 4))
def test_heads_by_hand(head, words, room):
    """Through PyTorch's own attention each token gets the mixture of words that it should."""
    num_places = len(words) + room
    matrices = unit8.heads_by_hand(head, 6, num_places)
    x = torch.cat([torch.eye(6)[words], torch.eye(num_places)[: len(words)]], dim=-1)
    found = F.scaled_dot_product_attention(*(x @ one for one in matrices), is_causal=True)
    for i in range(len(words)):
        wanted = HEADS[head](words, i)
        right = torch.stack([torch.eye(6)[words[j]] for j in wanted]).mean(dim=0)
        assert torch.allclose(found[i], right, atol=1e-4)


def librarys(block: unit8.TransformerBlock) -> nn.TransformerEncoderLayer:
    """PyTorch's own block, with copies of this one's weights."""
    d = block.norm1.weight.shape[0]
    theirs = nn.TransformerEncoderLayer(
        d, block.num_heads, 4 * d, dropout=0, activation="gelu", batch_first=True, norm_first=True
    ).to(block.norm1.weight.dtype)
    asking = [block.W_query, block.W_key, block.W_value]
    theirs.self_attn.in_proj_weight.data = torch.cat([layer.weight.detach() for layer in asking])
    theirs.self_attn.in_proj_bias.data = torch.cat([layer.bias.detach() for layer in asking])
    theirs.self_attn.out_proj.load_state_dict(block.out_proj.state_dict())
    for name in ("norm1", "norm2", "linear1", "linear2"):
        getattr(theirs, name).load_state_dict(getattr(block, name).state_dict())
    return theirs


@given(precise, batches, sizes, st.integers(1, 3), st.integers(2, 4), st.integers(0, 3), st.booleans())
def test_TransformerBlock(draw, b, num_tokens, num_heads, head_dim, room, training):
    torch.manual_seed(draw.seed)
    d = num_heads * head_dim
    block = unit8.TransformerBlock(d, num_heads, num_tokens + room).to(draw.dtype).train(training)
    n = draw.numbers()
    for parameter in block.parameters():
        parameter.data += n.randn(*parameter.shape, scale=0.3)
    theirs = librarys(block).train(training)
    x = n.randn(b, num_tokens, d).requires_grad_()
    mask = hidden_keys(num_tokens)
    ours, right = unchanged(block, x), theirs(x, src_mask=mask)
    size = 1 + float(right.detach().abs().max())
    scale = 1000 * d * size**2
    assert_close(ours, right.detach().double(), draw.dtype, scale=scale)
    cotangent = n.randn(*ours.shape)
    (one,), (other,) = (torch.autograd.grad(result, [x], cotangent) for result in (ours, right))
    assert_close(one, other.double(), draw.dtype, scale=scale * (1 + float(other.abs().max())))
    if num_heads > 1:
        with pytest.raises(ValueError, match="divisible"):
            unit8.TransformerBlock(d + 1, num_heads, 4)
