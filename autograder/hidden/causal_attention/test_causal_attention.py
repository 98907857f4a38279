"""The hidden graders of `CausalAttention`."""

import pytest
import torch

from autograder.compare import LARGE_LOGITS, Mismatch, any_identical, assert_close, golden
from autograder.hidden.causal_attention.worked_examples import ROOM, TWICE_SIX_WORDS, TWO_HEADS, P
from autograder.hidden.causality import assert_blind_to_the_future
from autograder.hidden.dropout import LONE, assert_lone_weights_fall, lone_weights_fall
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
    assert_dtype,
    assert_follows_device,
    assert_inputs_unchanged,
    assert_parameter_shapes,
    assert_same_gradients,
    assert_seeds_matter,
    transplant,
)


@pytest.mark.exercise("CausalAttention", forbids=[])
class TestCausalAttention:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_seed_123(self, student):
        """Built under seed 123, it gives the six words, twice in a batch, the context vectors of the worked example."""
        student.manual_seed(123)
        attention = student.CausalAttention(3, 2, 6, 0.0)
        right = golden([[vector[:2] for vector in TWO_HEADS]] * 2)
        assert_close(attention(TWICE_SIX_WORDS), right)

    @pytest.mark.points(3)
    def test_context_vectors(self, student, reference, rng):
        """With given weights, each token's context vector is the weighted sum of the values up to its own."""
        sizes = [(4, 4, 4, 4), (2, 7, 5, 3), (3, 5, 3, 8), (1, 6, 3, 2), (3, 1, 4, 2), (1, 70, 3, 2)]
        for b, num_tokens, d_in, d_out in sizes:
            attention = student.CausalAttention(d_in, d_out, num_tokens, 0.0)
            right = transplant(reference.CausalAttention(d_in, d_out, num_tokens, 0.0), attention)
            x = rng.randn(b, num_tokens, d_in, scale=3.0)
            assert_close(attention(x), right(x))

    @pytest.mark.points(2)
    def test_fewer_tokens_than_context_length(self, student, reference, rng):
        """Sequences may be shorter than context_length, and none is kept for the next, of whatever length."""
        attention = student.CausalAttention(5, 4, 9, 0.0)
        right = transplant(reference.CausalAttention(5, 4, 9, 0.0), attention)
        for training, num_tokens in [(True, 4), (True, 9), (True, 1), (True, 8), (True, 8), (False, 8), (False, 8)]:
            x = rng.randn(3, num_tokens, 5, scale=3.0)
            assert_close(attention.train(training)(x), right(x))

    @pytest.mark.points(2)
    def test_bias(self, student, reference, rng):
        """With qkv_bias=True all three layers have a bias, and use it."""
        attention, x = student.CausalAttention(5, 4, 7, 0.0, qkv_bias=True), rng.randn(2, 7, 5, scale=3.0)
        right = transplant(reference.CausalAttention(5, 4, 7, 0.0, qkv_bias=True), attention)
        assert_close(attention(x), right(x))

    @pytest.mark.points(3)
    def test_dropout_in_training(self, student, rng):
        """In training, dropout is on the weights after the softmax: each dropped on its own, the kept ones rescaled."""
        attention = student.CausalAttention(TOKENS, 2 * TOKENS, TOKENS + ROOM, P)
        attention.load_parameters(layers := weights_of_one_head(rng))
        with student.by_chance() as note:
            seen = structure(attention(X), layers, P)
            note(seen)
        assert_weights_dropped(seen)
        with student.by_chance() as note:
            fall = lone_weights_fall(attention(X[:1, :1].expand(LONE, -1, -1)), (LONE, 1, 2 * TOKENS))
            note(fall)
        assert_lone_weights_fall(fall)

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_drawn_anew(self, student, rng):
        """Each call in training draws anew."""
        attention = student.CausalAttention(TOKENS, 2 * TOKENS, TOKENS, P)
        attention.load_parameters(layers := weights_of_one_head(rng))
        with student.by_chance() as note:
            results = [attention(X) for _ in range(3)]
            for result in results:
                structure(result, layers, P)
            same = any_identical(results)
            note(same)
        if same:
            raise Mismatch("Two calls in training give exactly the same: nothing is dropped, or a seed is set inside.")

    @pytest.mark.points(2)
    def test_after_eval(self, student, rng):
        """After eval() nothing is dropped, and the attention is causal as ever."""
        attention = student.CausalAttention(TOKENS, 2 * TOKENS, TOKENS + ROOM, P).eval()
        attention.load_parameters(layers := weights_of_one_head(rng))
        with student.by_chance() as note:
            seen = structure(attention(X), layers, P)
            note(seen)
        assert_weights_whole(seen)

    @pytest.mark.points(1)
    def test_large_scores(self, student, reference, rng):
        """Large scores, many of them below zero, give no NaN, and no weight to the future."""
        attention, x = student.CausalAttention(5, 4, 7, 0.0), rng.randn(3, 7, 5, scale=400.0)
        right = transplant(reference.CausalAttention(5, 4, 7, 0.0), attention)
        assert_close(attention(x), right(x), tolerance=LARGE_LOGITS)

    @pytest.mark.points(0.5)
    def test_scores_of_zero(self, student, reference, rng):
        """A token of zeros, as padding is, scores zero with every key, and attends to all that it may see alike."""
        attention, x = student.CausalAttention(5, 4, 7, 0.0), rng.randn(2, 6, 5, scale=2.0)
        right = transplant(reference.CausalAttention(5, 4, 7, 0.0), attention)
        x[:, 3] = 0.0
        assert_close(attention(x), right(x))

    @pytest.mark.points(2)
    def test_gradients_reach_every_weight(self, student, reference, rng):
        """Gradients flow back to the input and to all three layers."""
        attention, x = student.CausalAttention(5, 4, 7, 0.0), rng.randn(2, 6, 5, scale=2.0)
        right = transplant(reference.CausalAttention(5, 4, 7, 0.0), attention)
        assert_same_gradients(attention, right, x, cotangent=rng.randn(2, 6, 4))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_gradients_with_dropout(self, student, rng):
        """In training with dropout, gradients flow back to the input and to all three layers too."""
        attention = student.CausalAttention(5, 4, 7, 0.5)
        attention.load_parameters({name: rng.randn(4, 5) for name in LAYERS})
        with student.by_chance() as note:
            seen = attention.observe(rng.randn(4, 7, 5), cotangent=rng.randn(4, 7, 4))
            arrived = {
                "the input": seen.gradients[0],
                **{f"`{name}`": seen.parameter_gradients.get(name) for name in LAYERS},
            }
            missing = [name for name, gradient in arrived.items() if gradient is None]
            note(missing)
        if missing:
            raise Mismatch(f"No gradient arrives at {missing[0]}: is the result detached from it somewhere?")

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """After `.to(torch.float64)` the result is as exact as float64 is."""
        attention, x = student.CausalAttention(5, 4, 7, 0.0), rng.randn(2, 7, 5, dtype=torch.float64)
        right = transplant(reference.CausalAttention(5, 4, 7, 0.0), attention.to(torch.float64))
        assert_close(attention(x), right(x))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_blind_to_the_future(self, student, rng):
        """A token's context vector does not change when tokens after it do."""
        attention, x = student.CausalAttention(5, 4, 7, 0.0), rng.randn(2, 6, 5, scale=2.0)
        attention.load_parameters({name: rng.randn(4, 5) for name in LAYERS})
        assert_blind_to_the_future(attention, x, width=4)

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_parameters(self, student):
        """Its parameters are the weights of the layers W_query, W_key and W_value, each of shape (d_out, d_in)."""
        right = dict.fromkeys(LAYERS, (4, 5))
        assert_parameter_shapes(student.CausalAttention(5, 4, 7, 0.0), right)

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_follows_device(self, student, rng):
        """Once it is moved to another device it works there, its mask too."""
        assert_follows_device(student.CausalAttention(5, 4, 7, 0.5), rng.randn(2, 6, 5))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_inputs_are_unchanged(self, student, rng):
        """The input is left as it was."""
        assert_inputs_unchanged(student.CausalAttention(5, 4, 7, 0.0), rng.randn(2, 6, 5))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The context vectors have the dtype of the input."""
        assert_dtype(student.CausalAttention(5, 4, 7, 0.0)(rng.randn(2, 6, 5)), torch.float32)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_seeds_matter(self, student):
        """Two instances built under different seeds have different weights."""
        assert_seeds_matter(student, "CausalAttention", 5, 4, 7, 0.0)
