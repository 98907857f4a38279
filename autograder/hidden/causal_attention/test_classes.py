"""The hidden graders of the unit's classes."""

import torch

from autograder.core import random_results
from autograder.core.comparison import (
    TOLERANCE,
    Expected,
    Mismatch,
    any_identical,
    assert_close,
    assert_real,
    describe,
    golden,
)
from autograder.graders import contracts
from autograder.graders.statements import assert_gradients_arrive
from solutions.six_words import SIX_WORDS, twice

from .. import dropped_attention
from ..by_chance import LONE, assert_lone_weights_fall, complain, noted
from ..causality import assert_blind_to_the_future
from ..dropped_attention import BATCH, LAYERS, TOKENS, X, structure, weights_of_one_head
from .worked_examples import ROOM, TWO_HEADS, P


@contracts.exercise("CausalAttention", forbids=[])
class TestCausalAttention(contracts.Graders):
    def callee(self, face, d_in=5, d_out=6, context_length=7, dropout=0.0, bias=()):
        return face.CausalAttention(d_in, d_out, context_length, dropout, *bias)

    def draw(self, rng, b=2, num_tokens=6, d_in=5, scale=1.0):
        return (rng.randn(b, num_tokens, d_in, scale=scale),)

    @contracts.points(2, public=True)
    def test_seed_123(self, student):
        """Built under seed 123, the module gives the worked example's context vectors for the six words, twice in a
        batch."""
        student.manual_seed(123)
        right = golden([[vector[:2] for vector in TWO_HEADS]] * 2)
        assert_close(student.CausalAttention(3, 2, 6, 0.0)(twice(SIX_WORDS)), right)

    @contracts.points(3)
    def test_context_vectors(self, student, reference, rng):
        """With given weights, each token's context vector is the weighted sum of the values up to its own."""
        sizes = [(4, 4, 4, 4), (2, 7, 5, 3), (3, 5, 3, 8), (1, 6, 3, 2), (3, 1, 4, 2), (1, 70, 3, 2)]
        for b, num_tokens, d_in, d_out in sizes:
            x = rng.randn(b, num_tokens, d_in, scale=3.0)
            self.assert_agree(student, reference, x, d_in=d_in, d_out=d_out, context_length=num_tokens)

    @contracts.points(2)
    def test_fewer_tokens_than_context_length(self, student, reference, rng):
        """Sequences may be shorter than context_length, and no call depends on an earlier one."""
        attention, right = self.pair(student, reference, context_length=9)
        for training, num_tokens in [(True, 4), (True, 9), (True, 1), (True, 8), (True, 8), (False, 8), (False, 8)]:
            x = rng.randn(3, num_tokens, 5, scale=3.0)
            assert_close(attention.train(training)(x), right(x))

    test_nothing_is_added = contracts.nothing_added(
        "The input is not added to the result, even if both have the same width.", of=(2, 7, 5), built={"d_out": 5}
    )
    test_bias = contracts.biased(
        "With qkv_bias=True all three layers have a bias, the result uses it, and gradients reach it.",
        scale=3.0,
        weight=2,
    )

    @contracts.points(3)
    def test_dropout_in_training(self, student, rng):
        """In training, weights are dropped after the softmax, each independently, and kept ones are divided by 1 -
        p."""
        attention = student.CausalAttention(TOKENS, 2 * TOKENS, TOKENS + ROOM, P)
        attention.load_parameters(layers := weights_of_one_head(rng))
        seen = noted(student, lambda: structure(attention(X), layers, P))
        self.complain(student, layers, lambda: random_results.assert_weights_dropped(seen))
        alone = X[:1, :1].expand(LONE, -1, -1)
        assert_lone_weights_fall(student, lambda: attention(alone), (LONE, 1, 2 * TOKENS))

    @contracts.points(1, property=True)
    def test_drawn_anew(self, student, rng):
        """Each call in training drops different weights."""
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

    @contracts.points(2, essential=True)
    def test_after_eval(self, student, rng):
        """After eval() nothing is dropped, and the attention is still causal."""
        attention = student.CausalAttention(TOKENS, 2 * TOKENS, TOKENS + ROOM, P).eval()
        attention.load_parameters(layers := weights_of_one_head(rng))
        seen = noted(student, lambda: structure(attention(X), layers, P))
        self.complain(student, layers, lambda: dropped_attention.assert_weights_whole(seen))

    def complain(self, student, layers, complaint):
        """Raise the complaint about dropout, unless the result is wrong without dropout too."""

        def without():
            attention = student.CausalAttention(TOKENS, 2 * TOKENS, TOKENS + ROOM, 0.0)
            attention.load_parameters(layers)
            return attention

        def right(result):
            dropped_attention.assert_weights_whole(structure(result, layers, P))

        complain(student, without, X, right, complaint)

    test_large_scores = contracts.large_scores(
        "Large scores, many of them negative, give no NaN, and later tokens get no weight.", of=(8, 7, 5), scale=2000.0
    )

    @contracts.points(0.5)
    def test_scores_of_zero(self, student, reference, rng):
        """A token of zeros has score 0 with every key, so all keys that it sees get equal weight."""
        x = rng.randn(2, 6, 5, scale=2.0)
        x[:, 3] = 0.0
        self.assert_agree(student, reference, x)

    test_gradients_reach_every_weight = contracts.gradients(
        "Gradients flow back to the input and to all three layers.", weight=2, scale=2.0
    )

    @contracts.points(1, property=True)
    def test_gradients_with_dropout(self, student, rng):
        """With dropout in training, too, gradients flow back to the input and to all three layers."""
        attention = self.callee(student, dropout=0.5)
        attention.load_parameters({name: rng.randn(6, 5) for name in LAYERS})
        layers = ("W_query", "W_key", "W_value")
        assert_gradients_arrive(student, attention, rng.randn(4, 7, 5), layers=layers, width=6)

    test_float64_stays_exact = contracts.float64(
        "After `.to(torch.float64)` the result has float64 precision.",
        of=(2, 7, 5),
        built={"d_out": contracts.EXACT_ROOT},
    )

    @contracts.points(1, property=True)
    def test_blind_to_the_future(self, student, rng):
        """A token's context vector does not change if later tokens change."""
        attention, x = self.callee(student), rng.randn(2, 6, 5, scale=2.0)
        attention.load_parameters({name: rng.randn(6, 5) for name in LAYERS})
        assert_blind_to_the_future(attention, x, width=6)

    test_parameters = contracts.parameters(
        "The parameters are the weights of the layers W_query, W_key and W_value, each of shape (d_out, d_in).",
        dict.fromkeys(LAYERS, (6, 5)),
        weight=1,
    )
    test_follows_device = contracts.device(
        "Moved to another device, the module works there, and its mask is there too.", weight=1, built={"dropout": 0.5}
    )
    test_inputs_are_unchanged = contracts.unchanged("The input is not modified.", weight=0.5)
    test_dtype_is_kept = contracts.dtype("The context vectors have the dtype of the input.")
    test_seeds_matter = contracts.seeds("Two instances built under different seeds have different weights.")


@contracts.exercise("MultiHeadAttentionWrapper", forbids=[])
class TestMultiHeadAttentionWrapper(contracts.Graders):
    def callee(self, face, d_in=5, d_out=3, context_length=7, dropout=0.0, num_heads=3, bias=()):
        return face.MultiHeadAttentionWrapper(d_in, d_out, context_length, dropout, num_heads, *bias)

    draw = TestCausalAttention.draw

    @contracts.points(2, public=True)
    def test_seed_123(self, student):
        """Built under seed 123 with two heads, the module gives the worked example's context vectors for the six
        words."""
        student.manual_seed(123)
        attention = student.MultiHeadAttentionWrapper(3, 2, 6, 0.0, 2)
        assert_close(attention(twice(SIX_WORDS)), golden([TWO_HEADS] * 2))

    @contracts.points(3)
    def test_heads_side_by_side(self, student, reference, rng):
        """With given weights, the heads' results are side by side in the last dimension, in the heads' order."""
        sizes = [(3, 3, 4, 4, 2), (2, 6, 5, 4, 3), (1, 5, 3, 4, 4), (2, 4, 6, 3, 1), (2, 4, 6, 3, 2)]
        for b, num_tokens, d_in, d_out, h in sizes:
            x = rng.randn(b, num_tokens, d_in, scale=3.0)
            built = {"d_in": d_in, "d_out": d_out, "context_length": num_tokens, "num_heads": h}
            self.assert_agree(student, reference, x, **built)

    @contracts.points(1)
    def test_own_heads_side_by_side(self, student, rng):
        """The result equals your CausalAttention's results with each head's weights, side by side."""
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
        if any_identical(results[:2]):
            raise Mismatch("Your CausalAttention returns the same result for different weights.")
        for result in results:
            assert_real(result)
        side_by_side = torch.cat([result.double() for result in results], dim=-1)
        assert_close(attention(x), Expected(side_by_side, TOLERANCE[torch.float32]))

    @contracts.points(1)
    def test_fewer_tokens_than_context_length(self, student, reference, rng):
        """Sequences may be shorter than context_length, and no call depends on an earlier one."""
        attention, right = self.pair(student, reference, context_length=9)
        for training, num_tokens in [(True, 9), (True, 4), (True, 4), (False, 4), (False, 4)]:
            x = rng.randn(2, num_tokens, 5, scale=3.0)
            assert_close(attention.train(training)(x), right(x))

    test_nothing_is_added = contracts.nothing_added(
        "The input is not added to the result, even if both have the same width.",
        of=(2, 7, 6),
        built={"d_in": 6, "num_heads": 2},
    )
    test_bias = contracts.biased(
        "With qkv_bias=True the layers of every head have a bias, the result uses it, and gradients reach it.",
        scale=3.0,
    )

    @contracts.points(1)
    def test_dropout_in_training(self, student, rng):
        """In training, every head drops weights independently of the other heads."""
        heads = [weights_of_one_head(rng) for _ in range(2)]
        attention = self.loaded(student, heads, P)
        with student.by_chance() as note:
            halves = self.halves(attention(X))
            seen = [structure(half, head, P) for half, head in zip(halves, heads, strict=False)]
            same = torch.equal(*((half == 0) for half in halves))
            note((tuple(seen), same))

        def right(result):
            for half, head in zip(self.halves(result), heads, strict=False):
                dropped_attention.assert_weights_whole(structure(half, head, P))

        def complaint():
            for one in seen:
                random_results.assert_weights_dropped(one)
            if same:
                raise Mismatch("Both heads drop exactly the same; each head draws on its own.")

        complain(student, lambda: self.loaded(student, heads, 0.0), X, right, complaint)

    def loaded(self, student, heads, p):
        """One with these weights in its heads."""
        attention = student.MultiHeadAttentionWrapper(TOKENS, 2 * TOKENS, TOKENS + ROOM, p, len(heads))
        named = {f"heads.{i}.{name}": layer for i, head in enumerate(heads) for name, layer in head.items()}
        attention.load_parameters(named)
        return attention

    def halves(self, result):
        """Return the results of the two heads; raises Mismatch if the result has another shape."""
        shape = (BATCH, TOKENS, 2 * 2 * TOKENS)
        if not isinstance(result, torch.Tensor) or result.shape != shape:
            raise Mismatch(f"The result is {describe(result)}; the shape {shape} is expected.")
        return result.chunk(2, dim=-1)

    @contracts.points(1, essential=True)
    def test_after_eval(self, student, rng):
        """After eval() no head drops anything."""
        layers = weights_of_one_head(rng)
        attention = self.loaded(student, [layers], P).eval()
        seen = noted(student, lambda: structure(attention(X), layers, P))
        complain(
            student,
            lambda: self.loaded(student, [layers], 0.0),
            X,
            lambda result: dropped_attention.assert_weights_whole(structure(result, layers, P)),
            lambda: dropped_attention.assert_weights_whole(seen),
        )

    test_gradients_reach_every_head = contracts.gradients(
        "Gradients flow back to the input and to every layer of every head.", scale=2.0
    )
    test_float64_stays_exact = contracts.float64(
        "After `.to(torch.float64)` the result has float64 precision.",
        weight=0.5,
        of=(2, 7, 5),
        built={"d_out": contracts.EXACT_ROOT},
    )
    test_parameters = contracts.parameters(
        "The parameters are those of the heads: heads.0.W_query.weight and so on, each of shape (d_out, d_in).",
        {f"heads.{i}.{layer}": (3, 5) for i in range(3) for layer in LAYERS},
        weight=1,
    )
    test_follows_device = contracts.device("Moved to another device, all heads work there.", built={"dropout": 0.5})
    test_inputs_are_unchanged = contracts.unchanged("The input is not modified.", weight=0.5, built={"dropout": 0.5})
    test_seeds_matter = contracts.seeds("Two instances built under different seeds have different weights.")
