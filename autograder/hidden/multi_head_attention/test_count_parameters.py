"""The hidden graders of counting what a module can learn, on modules that are made here."""

import torch

from autograder.core.comparison import assert_equal
from autograder.graders import contracts

LAYERS = ("W_query", "W_key", "W_value", "out_proj")


def sizes(rng, number):
    """Draw a number of integers from 2 to 10."""
    return [2 + int(8 * (one - 0.1)) for one in rng.rand(number).tolist()]


@contracts.exercise("count_parameters", forbids=[])
class TestCountParameters(contracts.Graders):
    def counts(self, student, right, parameters, **parts):
        assert_equal(student.count_parameters(student.assemble(parameters, **parts)), right)

    @contracts.points(2, public=True, essential=True)
    def test_multi_head_attention(self, student):
        """A module with the layers of `MultiHeadAttention(768, 768, 1024, 0.0, 12)` has 2,360,064 parameters."""
        parameters = {f"{name}.weight": (768, 768) for name in LAYERS} | {"out_proj.bias": (768,)}
        self.counts(student, 2_360_064, parameters, buffers={"mask": (1024, 1024)})

    @contracts.points(2, public=True, essential=True)
    def test_any_shape(self, student, rng):
        """A parameter may have any shape and may belong to the module itself; all its elements count, zeros too."""
        a, b, c, d = sizes(rng, 4)
        parameters = {"scale": (), "W": (a, b), "kernel": (2, c, d), "layer.weight": (d, a), "layer.bias": (d,)}
        module = student.assemble(parameters)
        module.load_parameters({name: torch.zeros(shape) for name, shape in parameters.items()}, exactly=True)
        assert_equal(student.count_parameters(module), 1 + a * b + 2 * c * d + d * a + d)

    @contracts.points(2, public=True)
    def test_any_depth(self, student, rng):
        """Modules inside modules count, to any depth, and two parameters of the same shape both count."""
        a, b, c = sizes(rng, 3)
        parameters = {"W": (a, b), "first.weight": (a, c), "block.second.weight": (a, c), "block.bias": (b,)}
        parameters |= {"blocks.0.layers.0.weight": (c, b), "blocks.0.layers.0.bias": (c,)}
        self.counts(student, a * b + 2 * a * c + b + c * b + c, parameters)

    @contracts.points(1, public=True)
    def test_frozen(self, student, rng):
        """Parameters that do not require gradients do not count."""
        a, b, c = sizes(rng, 3)
        parameters = {"first.weight": (a, b), "first.bias": (a,), "second.weight": (c, a), "W": (c,)}
        self.counts(student, a + c * a, parameters, frozen=("first.weight", "W"))

    @contracts.points(1, public=True)
    def test_shared(self, student, rng):
        """A parameter that has two names counts once."""
        a, b = sizes(rng, 2)
        parameters = {"embedding.weight": (a, b), "layer.weight": (a, b), "layer.bias": (a,)}
        self.counts(student, 2 * a * b + a, parameters, shared={"head.weight": "embedding.weight"})

    @contracts.points(1, public=True)
    def test_buffers(self, student, rng):
        """Buffers, such as a mask, do not count."""
        a, b = sizes(rng, 2)
        self.counts(student, a * b, {"layer.weight": (a, b)}, buffers={"mask": (b, b), "layer.seen": (a,)})

    @contracts.points(9)
    def test_all_together(self, student, rng):
        """The count is right for a module with layers, matrices, shared and frozen parameters, and buffers."""
        a, b, c, d = sizes(rng, 4)
        parameters = {"W": (a, b), "block.first.weight": (c, b), "block.first.bias": (c,), "block.norm.scale": (c,)}
        parameters |= {"head.layer.weight": (d, c), "head.layer.bias": (d,), "temperature": ()}
        right = a * b + c * b + c + d * c + 1
        frozen, shared = ("block.norm.scale", "head.layer.bias"), {"tail.layer.weight": "block.first.weight"}
        self.counts(student, right, parameters, frozen=frozen, shared=shared, buffers={"head.mask": (b, c)})

    @contracts.points(0.5, property=True, public=True)
    def test_nothing_to_learn(self, student, rng):
        """For a module without trainable parameters the count is the int 0."""
        a, b = sizes(rng, 2)
        self.counts(student, 0, {"layer.weight": (a, b)}, frozen=("layer.weight",), buffers={"mask": (b, b)})
        self.counts(student, 0, {})
