"""The hidden graders of a language model's block."""

import torch

from autograder.core.comparison import assert_close, golden
from autograder.graders import contracts, statements
from autograder.graders.statements import assert_refuses, in_each, transplant
from solutions.six_words import SIX_WORDS, twice

from ..causality import assert_blind_to_the_future

SEED_123 = [
    [0.0683, 0.3886, 1.0181, 0.8764, 0.1017, 1.7008],
    [-0.0416, 1.3368, 0.9244, 0.7184, 0.9748, 0.9209],
    [-0.0118, 1.3091, 0.8875, 0.6389, 0.9334, 0.7824],
    [-0.3602, 1.0333, 0.5558, 0.2590, 0.6510, 0.4032],
    [0.3216, 0.3851, 0.3184, 0.8307, 0.1580, 0.2549],
    [-0.5293, 1.2628, 0.7486, 0.1522, 0.8322, 0.5607],
]
"""Result of `TransformerBlock(6, 2, 6)`, built under this seed, for the six words, each concatenated with itself."""
LINEAR = ("W_query", "W_key", "W_value", "out_proj")


@contracts.exercise("TransformerBlock", forbids=[])
class TestTransformerBlock(contracts.Graders):
    def callee(self, face, d=10, num_heads=2, context_length=6):
        return face.TransformerBlock(d, num_heads, context_length)

    def draw(self, rng, b=2, num_tokens=5, d=10, scale=1.0):
        return (rng.randn(b, num_tokens, d, scale=scale),)

    def pair(self, student, reference, *, exactly=False, **built):
        """With weights in which no LayerNorm is as it begins, or it would not show which is which."""
        own, right = self.callee(student, **built), self.callee(reference, **built)
        values = right.named_parameters()
        for number, (name, value) in enumerate(values.items()):
            waves = torch.sin(torch.arange(float(value.numel())) * 0.7 + number).view(value.shape)
            values[name] = value + (0.1 if value.dim() == 2 else 0.5) * waves
        right.load_parameters(values)
        return own, transplant(right, own, exactly=exactly)

    @contracts.points(2, public=True)
    def test_seed_123(self, student):
        """Built under seed 123 with two heads, the block gives the worked example's rows for the six words."""
        student.manual_seed(123)
        block = student.TransformerBlock(6, 2, 6)
        x = torch.cat([SIX_WORDS, SIX_WORDS], dim=-1)
        assert_close(block(twice(x)), golden([SEED_123] * 2))

    @contracts.points(5)
    def test_given_weights(self, student, reference, rng):
        """With given weights, the result is y + linear2(GELU(linear1(norm2(y)))), where y is x +
        attention(norm1(x))."""
        sizes = [(2, 4, 15, 3), (3, 5, 6, 2), (1, 1, 6, 3), (2, 6, 10, 1), (5, 5, 10, 5), (1, 40, 6, 2)]
        cases = [(self.draw(rng, *one[:3], scale=2.0), one[2:]) for one in sizes]

        def agree(case):
            (x,), (d, h) = case
            self.assert_agree(student, reference, x, d=d, num_heads=h, context_length=x.shape[1])

        in_each(cases, agree)

    @contracts.points(1, essential=True)
    def test_shorter_sequences(self, student, reference, rng):
        """A sequence may be shorter than context_length; training and evaluation give the same, whatever the calls
        before."""
        own, right = self.pair(student, reference, context_length=9)
        for training, b, T in [(True, 2, 5), (True, 2, 5), (True, 3, 1), (False, 1, 8), (False, 2, 5)]:
            (x,) = self.draw(rng, b, T, scale=2.0)
            assert_close(own.train(training)(x), right(x))

    test_long_sequences = contracts.long_sequences(
        "context_length may be more than a thousand.",
        of=(1, 1100, 6),
        built={"context_length": 1100, "d": 6, "num_heads": 2},
    )

    @contracts.points(2, property=True)
    def test_blind_to_the_future(self, student, rng):
        """Later tokens do not change a token's result."""
        assert_blind_to_the_future(self.callee(student), *self.draw(rng, 2, 6, scale=2.0), width=10)

    @contracts.points(1)
    def test_small_and_large_numbers(self, student, reference, rng):
        """x may be tiny or large: the norms bring it to one scale, and x itself is added as it is."""
        own, right = self.pair(student, reference)
        (x,) = self.draw(rng)
        in_each([x / 100, 50 * x, x + 30.0], lambda one: assert_close(own(one), right(one), tolerance=1e-4))

    @contracts.points(1)
    def test_large_scores(self, student, reference, rng):
        """Large scores give no NaN, and later tokens get no weight."""
        own, right = self.callee(student), self.callee(reference)
        parameters = right.named_parameters()
        right.load_parameters({**parameters, "W_query.weight": parameters["W_query.weight"] * 2_000_000})
        transplant(right, own)
        statements.assert_right_where_large(student, own, right, *self.draw(rng))

    test_gradients_reach_every_weight = contracts.gradients(
        "Gradients flow back to x and to every layer.", weight=2, scale=2.0
    )
    test_float64_stays_exact = contracts.float64(
        "After `.to(torch.float64)` the result has float64 precision.",
        of=(2, 5, 16),
        built={"d": 16, "num_heads": 1},  # a head of width 16, whose root is exact
    )

    @contracts.points(1, property=True)
    def test_refuses_what_cannot_be_split(self, student):
        """If d is not divisible by num_heads, building the block raises ValueError or AssertionError."""
        for d, h in [(6, 4), (9, 2), (2, 4)]:
            assert_refuses(student, self.callee, student, d, h)

    test_parameters = contracts.parameters(
        "The parameters are those of the layers, which have the names, shapes and biases given in the exercise.",
        {f"{norm}.{one}": (10,) for norm in ("norm1", "norm2") for one in ("weight", "bias")}
        | {f"{layer}.weight": (10, 10) for layer in LINEAR}
        | {f"{layer}.bias": (10,) for layer in LINEAR}
        | {"linear1.weight": (40, 10), "linear1.bias": (40,), "linear2.weight": (10, 40), "linear2.bias": (10,)},
        weight=1,
    )
    test_inputs_are_unchanged = contracts.unchanged("x is not modified.")
    test_follows_device = contracts.device("Moved to another device, the block works there, and its mask is there too.")
    test_dtype_is_kept = contracts.dtype("The result has the dtype of x.")
    test_seeds_matter = contracts.seeds("Two instances built under different seeds have different weights.")
