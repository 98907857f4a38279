"""Unit 8's solutions against formulas in plain loops, and against what PyTorch has for the same."""

import math

import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from solutions import tiny_language_model as unit8

from .drawing import batches, draws, sizes
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
