"""What holds for all three classes."""

import pytest
import torch

from autograder.compare import LARGE_LOGITS, Mismatch, any_identical, assert_close
from autograder.hidden.dropout import LONE, assert_lone_weights_fall, lone_weights_fall
from autograder.hidden.shown_weights import (
    assert_dropped_in_heads,
    assert_nothing_dropped_in_heads,
    dropped_in_heads,
    identities,
    parameters_that_show_weights,
)
from autograder.hidden.statements import (
    assert_dtype,
    assert_follows_device,
    assert_inputs_unchanged,
    assert_parameter_shapes,
    assert_refuses,
    assert_same_gradients,
    assert_seeds_matter,
    transplant,
)

TOKENS = 20
"""Where dropout is looked at: 1260 weights, of which six standard deviations are 8%."""


class CausalHeads:
    """What holds for all three classes."""

    name: str
    projections: tuple[str, ...]
    wider = 0
    """How much wider an input vector is than d_out."""

    def build(self, face, d_out, context_length, num_heads, dropout=0.0, **named):
        return getattr(face, self.name)(d_out + self.wider, d_out, context_length, dropout, num_heads, **named)

    def pair(self, student, reference, *sizes, **named):
        """The student's instance and the reference's, with the same parameters."""
        attention = self.build(student, *sizes, **named)
        return attention, transplant(self.build(reference, *sizes, **named), attention)

    def pair_that_shows_weights(self, student, reference, num_tokens, num_heads, dropout):
        """Two instances whose output is their weights, and the input that they need."""
        x = identities(num_tokens, num_heads)
        sizes = (x.shape[-1], x.shape[-1], num_tokens, dropout, num_heads)
        attention, right = getattr(student, self.name)(*sizes), getattr(reference, self.name)(*sizes).eval()
        right.load_parameters(parameters_that_show_weights(right.named_parameters()))
        return attention, transplant(right, attention), x

    @pytest.mark.points(3)
    def test_context_vectors(self, student, reference, rng):
        """With given weights, each token attends to itself and the tokens before it, head by head."""
        sizes = [(2, 6, 4, 1), (1, 1, 6, 3), (2, 5, 12, 3), (3, 4, 6, 2), (4, 4, 16, 4), (1, 70, 4, 2)]
        for b, num_tokens, d_out, h in sizes:
            attention, right = self.pair(student, reference, d_out, num_tokens, h)
            x = rng.randn(b, num_tokens, d_out + self.wider, scale=2.0)
            assert_close(attention(x), right(x))

    @pytest.mark.points(2)
    def test_shorter_sequences(self, student, reference, rng):
        """A sequence may have fewer tokens than context_length, and is forgotten when the next one comes."""
        attention, right = self.pair(student, reference, 12, 7, 3)
        for training, b, num_tokens in [
            (True, 2, 5),
            (True, 2, 5),
            (True, 3, 1),
            (True, 1, 6),
            (False, 2, 5),
            (False, 2, 5),
        ]:
            x = rng.randn(b, num_tokens, 12 + self.wider, scale=2.0)
            assert_close(attention.train(training)(x), right(x))

    @pytest.mark.points(0.5)
    def test_scores_of_zero(self, student, reference, rng):
        """A token of zeros, as padding is, scores zero with every key, and attends to all that it may see alike."""
        attention, right = self.pair(student, reference, 12, 7, 3)
        x = rng.randn(2, 6, 12 + self.wider, scale=2.0)
        x[:, 3] = 0.0
        assert_close(attention(x), right(x))

    @pytest.mark.points(1)
    def test_large_scores_do_not_overflow(self, student, reference, rng):
        """However large the scores are, there is no NaN, and no weight on later tokens."""
        attention, right = self.build(student, 12, 5, 3), self.build(reference, 12, 5, 3)
        parameters = right.named_parameters()
        right.load_parameters({**parameters, "W_query.weight": parameters["W_query.weight"] * 200_000})
        transplant(right, attention)
        x = rng.randn(2, 5, 12 + self.wider)
        assert_close(attention(x), right(x), tolerance=LARGE_LOGITS)

    @pytest.mark.points(1)
    def test_bias(self, student, reference, rng):
        """With qkv_bias=True the projections have a bias, and use it."""
        attention, right = self.pair(student, reference, 12, 5, 3, qkv_bias=True)
        x = rng.randn(2, 5, 12 + self.wider, scale=2.0)
        assert_close(attention(x), right(x))

    @pytest.mark.points(2)
    def test_gradients_reach_every_weight(self, student, reference, rng):
        """Gradients flow back to the input and to every layer."""
        attention, right = self.pair(student, reference, 12, 5, 3)
        x = rng.randn(2, 5, 12 + self.wider, scale=2.0)
        assert_same_gradients(attention, right, x, cotangent=rng.randn(2, 5, 12))

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """After `.to(torch.float64)` the result is as exact as float64 is."""
        attention = self.build(student, 12, 5, 3).to(torch.float64)
        right = transplant(self.build(reference, 12, 5, 3), attention)
        x = rng.randn(2, 5, 12 + self.wider, dtype=torch.float64)
        assert_close(attention(x), right(x))

    @pytest.mark.points(2)
    def test_dropout_in_training(self, student, reference):
        """In training each attention weight is dropped with the given probability, and the kept ones are divided by
        one minus it."""
        attention, right, x = self.pair_that_shows_weights(student, reference, TOKENS, 3, 0.3)
        attention.train()
        with student.by_chance() as note:
            seen = dropped_in_heads(attention(x), right(x).value, 3, 0.3)
            note(seen)
        assert_dropped_in_heads(seen)
        alone = x[:1, :1].expand(LONE, -1, -1)
        with student.by_chance() as note:
            fall = lone_weights_fall(attention(alone), alone.shape)
            note(fall)
        assert_lone_weights_fall(fall)

    @pytest.mark.points(1)
    def test_no_dropout_in_evaluation(self, student, reference):
        """In evaluation mode nothing is dropped, and the mask stays."""
        attention, right, x = self.pair_that_shows_weights(student, reference, TOKENS, 3, 0.3)
        attention.eval()
        with student.by_chance() as note:
            result, expected = attention(x), right(x)
            seen = dropped_in_heads(result, expected.value, 3, 0.3)
            note(seen)
        assert_nothing_dropped_in_heads(seen)
        assert_close(result, expected)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_each_call_drops_anew(self, student, reference):
        """Two calls in training drop different weights."""
        attention, _, x = self.pair_that_shows_weights(student, reference, TOKENS, 3, 0.3)
        attention.train()
        with student.by_chance() as note:
            note(alike := any_identical([attention(x) for _ in range(3)]))
        if alike:
            raise Mismatch("Two calls drop the same weights, or none: is a seed set in forward?")

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_refuses_what_cannot_be_split(self, student):
        """Where d_out is not divisible by num_heads it raises ValueError or AssertionError when it is built."""
        for d_out, h in [(6, 4), (9, 2), (2, 4)]:
            assert_refuses(student, self.build, student, d_out, 8, h)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_parameters(self, student):
        """Its parameters are those of its layers, which have the names and shapes given in the exercise."""
        right = {f"{projection}.weight": (12, 12 + self.wider) for projection in self.projections}
        right |= {"out_proj.weight": (12, 12), "out_proj.bias": (12,)}
        assert_parameter_shapes(self.build(student, 12, 5, 3), right)

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """The input is left as it was."""
        assert_inputs_unchanged(self.build(student, 12, 5, 3), rng.randn(2, 5, 12 + self.wider))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """It works on another device once it is moved there: its mask moves with it."""
        assert_follows_device(self.build(student, 12, 5, 3, dropout=0.5), rng.randn(2, 5, 12 + self.wider))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the input."""
        assert_dtype(self.build(student, 12, 5, 3)(rng.randn(2, 5, 12 + self.wider)), torch.float32)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_seeds_matter(self, student):
        """Two instances built under different seeds have different weights."""
        assert_seeds_matter(student, self.name, 12 + self.wider, 12, 5, 0.0, 3)
