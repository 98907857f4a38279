"""The hidden graders of copying the weights of one module into the other.

Both modules are made here, with parameters as the two classes have them, so that neither of a student's need be right.
Called, they give the queries, keys and values that the classes would go on with.
"""

import torch

from autograder.core.comparison import assert_close
from autograder.graders import contracts
from autograder.graders.statements import assert_parameter_shapes, assert_same_gradients, in_each, in_float64

MATRICES = ("W_query", "W_key", "W_value")


def weights(d_in, d_out):
    """The shapes of v1's parameters, by name."""
    return dict.fromkeys(MATRICES, (d_in, d_out))


def layers(d_in, d_out, bias):
    """Return the shapes of the parameters of SelfAttention_v2's layers."""
    shapes = {"weight": (d_out, d_in), "bias": (d_out,)} if bias else {"weight": (d_out, d_in)}
    return {f"{name}.{part}": shape for name in MATRICES for part, shape in shapes.items()}


@contracts.exercise("copy_weights", forbids=[])
class TestCopyWeights(contracts.Graders):
    def copied(self, student, reference, rng, d_in=5, d_out=3, bias=False, of=torch.float32):
        """The student's v1 and v2, and the right ones, after the weights were copied."""
        shapes = weights(d_in, d_out), layers(d_in, d_out, bias)
        drawn = [{name: rng.of(of).randn(*shape) for name, shape in one.items()} for one in shapes]
        pairs = [[face.assemble(one) for one in shapes] for face in (student, reference)]
        if of is torch.float64:
            pairs[0] = [in_float64(one) for one in pairs[0]]
        for face, pair in zip((student, reference), pairs, strict=True):
            for module, values in zip(pair, drawn, strict=True):
                module.load_parameters(values, exactly=True)
            face.copy_weights(*pair)
        return pairs

    def check(self, student, reference, rng, d_in, d_out, bias=False):
        (_, v2), (_, right) = self.copied(student, reference, rng, d_in, d_out, bias)
        x = rng.randn(4, d_in)
        assert_close(v2(x), right(x))

    @contracts.points(2, public=True)
    def test_same_results(self, student, reference, rng):
        """After copying, v2 makes the same queries, keys and values as v1 if d_in and d_out differ."""
        in_each([(3, 2), (2, 5)], lambda widths: self.check(student, reference, rng, *widths))

    @contracts.points(2, public=True, essential=True)
    def test_square_weights(self, student, reference, rng):
        """If d_in and d_out are equal, the weights are transposed, too."""
        in_each([(4, 4), (2, 2)], lambda widths: self.check(student, reference, rng, *widths))

    @contracts.points(3)
    def test_other_widths(self, student, reference, rng):
        """The copy is right for any widths, 1 included."""
        in_each([(7, 3), (1, 4), (6, 1)], lambda widths: self.check(student, reference, rng, *widths))

    @contracts.points(1, public=True)
    def test_bias_becomes_zero(self, student, reference, rng):
        """Biases of v2's layers become zero, because v1 has none."""
        in_each([(3, 2), (3, 3)], lambda widths: self.check(student, reference, rng, *widths, True))

    @contracts.points(1, public=True, essential=True)
    def test_copies(self, student, reference, rng):
        """v2 gets copies: if v1 changes later, v2 does not."""
        (v1, v2), (_, right) = self.copied(student, reference, rng, 3, 2)
        v1.load_parameters({name: rng.randn(*shape) for name, shape in weights(3, 2).items()}, exactly=True)
        x = rng.randn(4, 3)
        assert_close(v2(x), right(x))

    @contracts.points(1)
    def test_both_can_learn(self, student, reference, rng):
        """After copying, gradients still reach every parameter of v1 and of v2."""
        own, right = self.copied(student, reference, rng, bias=True)
        x, cotangent = rng.randn(4, 5), tuple(rng.randn(4, 3) for _ in MATRICES)
        for mine, other in reversed(list(zip(own, right, strict=True))):
            assert_same_gradients(mine, other, x, cotangent=cotangent)

    @contracts.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """Weights in float64 are copied with float64 precision."""
        (_, v2), (_, right) = self.copied(student, reference, rng, of=torch.float64)
        x = rng.of(torch.float64).randn(4, 5)
        assert_close(v2(x), right(x))

    @contracts.points(0.5, property=True)
    def test_parameters_stay(self, student, reference, rng):
        """v2 has the same parameters as before, by name and shape."""
        (_, v2), _ = self.copied(student, reference, rng, bias=True)
        assert_parameter_shapes(v2, layers(5, 3, True))

    @contracts.points(0.5, property=True)
    def test_v1_is_unchanged(self, student, reference, rng):
        """v1 is not modified."""
        (v1, _), (right, _) = self.copied(student, reference, rng)
        x = rng.randn(4, 5)
        assert_close(v1(x), right(x))
