"""The hidden graders of `MultiHeadAttentionWrapper`."""

import pytest
import torch

from autograder.compare import TOLERANCE, Expected, Mismatch, assert_close, assert_real, golden, identical
from autograder.hidden.causal_attention.worked_examples import ROOM, TWICE_SIX_WORDS, TWO_HEADS, P
from autograder.hidden.dropped_attention import (
    LAYERS,
    TOKENS,
    X,
    assert_weights_dropped,
    assert_weights_whole,
    structure,
    weights_of_one_head,
)
from autograder.hidden.statements import (
    assert_follows_device,
    assert_inputs_unchanged,
    assert_parameter_shapes,
    assert_same_gradients,
    assert_seeds_matter,
    transplant,
)


@pytest.mark.exercise("MultiHeadAttentionWrapper", forbids=[])
class TestMultiHeadAttentionWrapper:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_seed_123(self, student):
        """Built under seed 123 with two heads, it gives the six words the context vectors of the worked example."""
        student.manual_seed(123)
        attention = student.MultiHeadAttentionWrapper(3, 2, 6, 0.0, 2)
        assert_close(attention(TWICE_SIX_WORDS), golden([TWO_HEADS] * 2))

    @pytest.mark.points(3)
    def test_heads_side_by_side(self, student, reference, rng):
        """With given weights, the heads' results stand side by side in the last dimension, in the heads' order."""
        for b, num_tokens, d_in, d_out, num_heads in [
            (3, 3, 4, 4, 2),
            (2, 6, 5, 4, 3),
            (1, 5, 3, 4, 4),
            (2, 4, 6, 3, 1),
            (2, 4, 6, 3, 2),
        ]:
            arguments = d_in, d_out, num_tokens, 0.0, num_heads
            attention = student.MultiHeadAttentionWrapper(*arguments)
            right = transplant(reference.MultiHeadAttentionWrapper(*arguments), attention)
            x = rng.randn(b, num_tokens, d_in, scale=3.0)
            assert_close(attention(x), right(x))

    @pytest.mark.points(1)
    def test_own_heads_side_by_side(self, student, rng):
        """The result is what your CausalAttention gives with each head's weights, side by side."""
        attention, x = student.MultiHeadAttentionWrapper(5, 4, 6, 0.0, 3), rng.randn(2, 6, 5, scale=3.0)
        heads = [{name: rng.randn(4, 5) for name in LAYERS} for _ in range(3)]
        attention.load_parameters({f"heads.{i}.{name}": w for i, head in enumerate(heads) for name, w in head.items()})
        results = []
        for head in heads:
            own = student.CausalAttention(5, 4, 6, 0.0)
            own.load_parameters(head)
            results.append(own(x))
        if not all(isinstance(result, torch.Tensor) and result.shape == (2, 6, 4) for result in results):
            raise Mismatch("Your CausalAttention does not give tensors of shape (b, T, d_out) yet.")
        if identical(results[0], results[1]):
            raise Mismatch("Your CausalAttention gives the same with other weights.")
        for result in results:
            assert_real(result)
        side_by_side = torch.cat([result.double() for result in results], dim=-1)
        assert_close(attention(x), Expected(side_by_side, TOLERANCE[torch.float32]))

    @pytest.mark.points(1)
    def test_fewer_tokens_than_context_length(self, student, reference, rng):
        """Sequences may be shorter than context_length, and none is kept for the next."""
        attention = student.MultiHeadAttentionWrapper(5, 3, 9, 0.0, 3)
        right = transplant(reference.MultiHeadAttentionWrapper(5, 3, 9, 0.0, 3), attention)
        for training, num_tokens in [(True, 9), (True, 4), (True, 4), (False, 4), (False, 4)]:
            x = rng.randn(2, num_tokens, 5, scale=3.0)
            assert_close(attention.train(training)(x), right(x))

    @pytest.mark.points(1)
    def test_bias(self, student, reference, rng):
        """With qkv_bias=True the layers of every head have a bias."""
        attention = student.MultiHeadAttentionWrapper(5, 3, 7, 0.0, 3, qkv_bias=True)
        right = transplant(reference.MultiHeadAttentionWrapper(5, 3, 7, 0.0, 3, qkv_bias=True), attention)
        x = rng.randn(2, 6, 5, scale=3.0)
        assert_close(attention(x), right(x))

    @pytest.mark.points(1)
    def test_dropout_in_training(self, student, rng):
        """In training every head drops weights of its own."""
        attention = student.MultiHeadAttentionWrapper(TOKENS, 2 * TOKENS, TOKENS + ROOM, P, 2)
        heads = [weights_of_one_head(rng) for _ in range(2)]
        named = {f"heads.{i}.{name}": layer for i, head in enumerate(heads) for name, layer in head.items()}
        attention.load_parameters(named)
        with student.by_chance() as note:
            result = attention(X)
            halves = result.chunk(2, dim=-1) if isinstance(result, torch.Tensor) and result.dim() else [result] * 2
            seen = [structure(half, head, P) for half, head in zip(halves, heads, strict=False)]
            same = torch.equal(*((half == 0) for half in halves))
            note((tuple(seen), same))
        for one in seen:
            assert_weights_dropped(one)
        if same:
            raise Mismatch("Both heads drop exactly the same; each head draws on its own.")

    @pytest.mark.points(1)
    def test_after_eval(self, student, rng):
        """After eval() no head drops anything."""
        attention = student.MultiHeadAttentionWrapper(TOKENS, 2 * TOKENS, TOKENS, P, 1).eval()
        layers = weights_of_one_head(rng)
        attention.load_parameters({f"heads.0.{name}": layer for name, layer in layers.items()})
        with student.by_chance() as note:
            seen = structure(attention(X), layers, P)
            note(seen)
        assert_weights_whole(seen)

    @pytest.mark.points(1)
    def test_gradients_reach_every_head(self, student, reference, rng):
        """Gradients flow back to the input and to every layer of every head."""
        attention, x = student.MultiHeadAttentionWrapper(5, 3, 7, 0.0, 3), rng.randn(2, 6, 5, scale=2.0)
        right = transplant(reference.MultiHeadAttentionWrapper(5, 3, 7, 0.0, 3), attention)
        assert_same_gradients(attention, right, x, cotangent=rng.randn(2, 6, 9))

    @pytest.mark.points(0.5)
    def test_float64_stays_exact(self, student, reference, rng):
        """After `.to(torch.float64)` the result is as exact as float64 is."""
        attention = student.MultiHeadAttentionWrapper(5, 4, 7, 0.0, 3)  # 4: the root is exact, however it is taken
        right = transplant(reference.MultiHeadAttentionWrapper(5, 4, 7, 0.0, 3), attention.to(torch.float64))
        x = rng.randn(2, 7, 5, dtype=torch.float64)
        assert_close(attention(x), right(x))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_parameters(self, student):
        """Its parameters are those of the heads: heads.0.W_query.weight and so on, each of shape (d_out, d_in)."""
        layers = [f"heads.{i}.W_{name}.weight" for i in range(3) for name in ("query", "key", "value")]
        assert_parameter_shapes(student.MultiHeadAttentionWrapper(5, 3, 7, 0.0, 3), dict.fromkeys(layers, (3, 5)))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """Once it is moved to another device all heads work there."""
        assert_follows_device(student.MultiHeadAttentionWrapper(5, 3, 7, 0.5, 3), rng.randn(2, 6, 5))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_inputs_are_unchanged(self, student, rng):
        """The input is left as it was."""
        assert_inputs_unchanged(student.MultiHeadAttentionWrapper(5, 3, 7, 0.5, 3), rng.randn(2, 6, 5))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_seeds_matter(self, student):
        """Two instances built under different seeds have different weights."""
        assert_seeds_matter(student, "MultiHeadAttentionWrapper", 5, 3, 7, 0.0, 3)
