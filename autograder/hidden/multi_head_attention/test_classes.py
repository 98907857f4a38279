"""The hidden graders of the unit's classes: what holds for all three, and what each gives for a worked example."""

from autograder.core import random_results
from autograder.core.comparison import Mismatch, any_identical, assert_close, golden
from autograder.graders import contracts, statements
from autograder.graders.statements import assert_parameter_shapes, assert_refuses, transplant
from solutions.six_words import SIX_WORDS, twice

from .. import shown_weights
from ..by_chance import LONE, assert_lone_weights_fall, complain, noted
from .worked_examples import THREE_TOKENS

TOKENS = 20
"""Sequence length in the dropout tests: six standard deviations of the dropped share of 1260 weights are 8%."""


class CausalHeads(contracts.Graders):
    """Tests of what must hold for all three classes."""

    projections: tuple[str, ...]
    wider = 0
    """Difference between d_in and d_out."""

    def callee(self, face, d_out=15, context_length=5, num_heads=3, dropout=0.0, d_in=None, bias=()):
        d_in = d_in or d_out + self.wider
        return getattr(face, self.exercise)(d_in, d_out, context_length, dropout, num_heads, *bias)

    def draw(self, rng, b=2, num_tokens=5, d_out=15, scale=1.0, d_in=None):
        return (rng.randn(b, num_tokens, d_in or d_out + self.wider, scale=scale),)

    def one_that_shows_weights(self, face, p=0.3):
        """One of three heads, before it is given weights with which its output is them."""
        width = 3 * 2 * TOKENS
        return self.callee(face, d_in=width, d_out=width, context_length=TOKENS, dropout=p)

    def pair_that_shows_weights(self, student, reference):
        """Two instances whose output is their weights, of three heads, and the input that they need; p is 0.3."""
        x = shown_weights.identities(TOKENS, 3)
        attention, right = self.one_that_shows_weights(student), self.one_that_shows_weights(reference).eval()
        right.load_parameters(shown_weights.parameters_that_show_weights(right.named_parameters()))
        return attention, transplant(right, attention), x

    def complain(self, student, right, x, complaint):
        """Raise the complaint about dropout, unless the result is wrong without dropout too."""

        def without():
            attention = self.one_that_shows_weights(student, p=0.0)
            transplant(right, attention)
            return attention

        complain(student, without, x, lambda result: assert_close(result, right(x)), complaint)

    @contracts.points(3, essential=True)
    def test_context_vectors(self, student, reference, rng):
        """With given weights, each token attends to itself and the tokens before it, head by head."""
        sizes = [(2, 6, 4, 1), (1, 1, 6, 3), (2, 5, 15, 3), (3, 4, 6, 2), (4, 4, 16, 4), (1, 70, 4, 2)]
        for b, num_tokens, d_out, h in sizes:
            (x,) = self.draw(rng, b, num_tokens, d_out, scale=2.0)
            self.assert_agree(student, reference, x, d_out=d_out, context_length=num_tokens, num_heads=h)

    test_nothing_is_added = contracts.nothing_added(
        "The input is not added to the result, even if both have the same width.", d_in=15, built={"d_in": 15}
    )

    @contracts.points(2, essential=True)
    def test_shorter_sequences(self, student, reference, rng):
        """A sequence may be shorter than context_length, and no call depends on an earlier one."""
        attention, right = self.pair(student, reference, context_length=7)
        for training, b, T in [(True, 2, 5), (True, 2, 5), (True, 3, 1), (True, 1, 6), (False, 2, 5), (False, 2, 5)]:
            (x,) = self.draw(rng, b, T, scale=2.0)
            assert_close(attention.train(training)(x), right(x))

    @contracts.points(0.5)
    def test_scores_of_zero(self, student, reference, rng):
        """A token of zeros has score 0 with every key, so all keys that it sees get equal weight."""
        (x,) = self.draw(rng, 2, 6, scale=2.0)
        x[:, 3] = 0.0
        self.assert_agree(student, reference, x, context_length=7)

    @contracts.points(1)
    def test_large_scores_do_not_overflow(self, student, reference, rng):
        """Large scores give no NaN, and later tokens get no weight."""
        attention, right = self.callee(student), self.callee(reference)
        parameters = right.named_parameters()
        right.load_parameters({**parameters, "W_query.weight": parameters["W_query.weight"] * 2_000_000})
        transplant(right, attention)
        statements.assert_right_where_large(student, attention, right, *self.draw(rng))

    test_bias = contracts.biased(
        "With qkv_bias=True the projections have a bias, the result uses it, and gradients reach it.", scale=2.0
    )
    test_gradients_reach_every_weight = contracts.gradients(
        "Gradients flow back to the input and to every layer.", weight=2, scale=2.0
    )
    test_float64_stays_exact = contracts.float64(
        "After `.to(torch.float64)` the result has float64 precision.",
        of=(2, 5, 48),
        built={"d_out": 48},  # heads of width 16, whose root is exact: wider ones would see a mask of -100
    )

    @contracts.points(2)
    def test_dropout_in_training(self, student, reference):
        """In training, each attention weight is dropped with probability p, and the kept ones are divided by 1 - p."""
        attention, right, x = self.pair_that_shows_weights(student, reference)
        attention.train()
        seen = noted(student, lambda: shown_weights.structure(attention(x), right(x).value, 3, 0.3))
        self.complain(student, right, x, lambda: random_results.assert_weights_dropped(seen))
        alone = x[:1, :1].expand(LONE, -1, -1)
        assert_lone_weights_fall(student, lambda: attention(alone), alone.shape, num_heads=3)

    @contracts.points(1, essential=True)
    def test_no_dropout_in_evaluation(self, student, reference):
        """In evaluation nothing is dropped, and the attention is still causal."""
        attention, right, x = self.pair_that_shows_weights(student, reference)
        attention.eval()
        with student.by_chance() as note:
            result, expected = attention(x), right(x)
            seen = shown_weights.structure(result, expected.value, 3, 0.3)
            note(seen)
        self.complain(student, right, x, lambda: shown_weights.assert_weights_whole(seen))
        assert_close(result, expected)

    @contracts.points(1, property=True)
    def test_gradients_with_dropout(self, student, rng):
        """With dropout in training, too, gradients flow back to the input and to every layer."""
        attention, (x,) = self.callee(student, dropout=0.5), self.draw(rng)
        statements.assert_gradients_arrive(student, attention, x, layers=self.projections, width=15)

    @contracts.points(0.5, property=True)
    def test_each_call_drops_anew(self, student, reference):
        """Two calls in training drop different weights."""
        attention, _, x = self.pair_that_shows_weights(student, reference)
        attention.train()
        if noted(student, lambda: any_identical([attention(x) for _ in range(3)])):
            raise Mismatch("Two calls drop the same weights, or none: is a seed set in forward?")

    @contracts.points(1, property=True)
    def test_refuses_what_cannot_be_split(self, student):
        """If d_out is not divisible by num_heads, building the module raises ValueError or AssertionError."""
        for d_out, h in [(6, 4), (9, 2), (2, 4)]:
            assert_refuses(student, self.callee, student, d_out, 8, h)

    @contracts.points(0.5, property=True)
    def test_parameters(self, student):
        """The parameters are those of the layers, with the names and shapes given in the exercise."""
        right = {f"{projection}.weight": (15, 15 + self.wider) for projection in self.projections}
        right |= {"out_proj.weight": (15, 15), "out_proj.bias": (15,)}
        assert_parameter_shapes(self.callee(student), right)

    test_inputs_are_unchanged = contracts.unchanged("The input is not modified.")
    test_follows_device = contracts.device(
        "Moved to another device, the module works there, and its mask is there too.", built={"dropout": 0.5}
    )
    test_dtype_is_kept = contracts.dtype("The result has the dtype of the input.")
    test_seeds_matter = contracts.seeds("Two instances built under different seeds have different weights.")


@contracts.exercise("MultiHeadAttention", forbids=[])
class TestMultiHeadAttention(CausalHeads):
    projections = ("W_query", "W_key", "W_value")
    wider = 2

    @contracts.points(2, public=True)
    def test_seed_123(self, student):
        """Built under seed 123 with two heads and d_out = 2, the module gives the worked example's vectors for the six
        words."""
        student.manual_seed(123)
        right = [
            [0.3190, 0.4858], [0.2943, 0.3897], [0.2856, 0.3593], [0.2693, 0.3873], [0.2639, 0.3928], [0.2575, 0.4028],
        ]  # fmt: skip
        assert_close(student.MultiHeadAttention(3, 2, 6, 0.0, 2)(twice(SIX_WORDS)), golden([right, right]))


@contracts.exercise("OptimizedMultiHeadAttention", forbids=[])
class TestOptimizedMultiHeadAttention(CausalHeads):
    projections = ("W_query", "W_key")

    @contracts.points(2, public=True)
    def test_seed_123(self, student):
        """Built under seed 123 with two heads, the module gives the right vectors for three tokens of width 6."""
        student.manual_seed(123)
        right = [
            [-0.0395, 0.2886, 0.5358, 0.1082, 0.6340, -0.1723],
            [0.0924, 0.2635, 0.4175, -0.0971, 0.8621, -0.1494],
            [-0.0216, 0.3041, 0.3614, -0.0687, 0.8802, -0.1010],
        ]
        assert_close(student.OptimizedMultiHeadAttention(6, 6, 3, 0.0, 2)(twice(THREE_TOKENS)), golden([right, right]))


@contracts.exercise("EfficientMultiHeadAttention", forbids=[])
class TestEfficientMultiHeadAttention(CausalHeads):
    projections = ("W_query",)

    @contracts.points(2, public=True)
    def test_seed_123(self, student):
        """Built under seed 123 with three heads, the module gives the worked example's vectors for the six words."""
        student.manual_seed(123)
        right = [
            [0.1366, -0.2666, 0.6299], [0.0486, -0.3934, 0.4185], [0.0216, -0.4372, 0.3483],
            [-0.0181, -0.3713, 0.3232], [-0.0167, -0.3554, 0.2943], [-0.0415, -0.3257, 0.2941],
        ]  # fmt: skip
        assert_close(student.EfficientMultiHeadAttention(3, 3, 6, 0.0, 3)(twice(SIX_WORDS)), golden([right, right]))
