"""The hidden graders of what tells places apart: ALiBi, rotary embeddings, and shuffling to see it."""

import torch

from autograder.core.comparison import assert_close, golden
from autograder.core.complaints import Part
from autograder.graders import contracts
from autograder.graders.statements import assert_gives_dtype, assert_gradient, assert_unchanged, in_each, in_float64

from .test_masks import whole

MIXES = "torch.softmax((x @ W_query) @ (x @ W_key).mT, dim=-1) @ (x @ W_value)"
CAUSAL = (
    "torch.softmax((x @ W_query) @ (x @ W_key).mT + x.new_full((x.shape[1], x.shape[1]), -torch.inf).triu(1), "
    "dim=-1) @ (x @ W_value)"
)
COUNTS = f"{CAUSAL} + calls.add_(1)"


@contracts.exercise("permuted_outputs")
class TestPermutedOutputs(contracts.Graders):
    """The attention is made here, so that none of a student's own need be right."""

    def attentions(self, student, reference, rng, computes, d_in=3, d_out=4, **more):
        """The student's and the right one, with the same weights."""
        shapes = {"W_query": (d_in, 2), "W_key": (d_in, 2), "W_value": (d_in, d_out)}
        values = {name: rng.randn(*shape) for name, shape in shapes.items()}
        made = [face.assemble(shapes, computes=computes, **more) for face in (student, reference)]
        for one in made:
            one.load_parameters(values, exactly=True)
        return made

    def order(self, rng, num_tokens):
        """A drawn order that is not its own inverse."""
        order = torch.argsort(rng.rand(num_tokens), stable=True)
        own_inverse = torch.equal(order[order], torch.arange(num_tokens))
        return order.roll(1) if own_inverse else order

    def agrees(self, student, reference, rng, computes, sizes=(2, 5), order=None):
        b, num_tokens = sizes
        own, right = self.attentions(student, reference, rng, computes)
        x = rng.randn(b, num_tokens, 3)
        order = self.order(rng, num_tokens) if order is None else order
        assert_close(student.permuted_outputs(own, x, order), reference.permuted_outputs(right, x, order))

    @contracts.points(3, public=True)
    def test_a_mask_knows_places(self, student, reference, rng):
        """Each output is at its token's position. Shuffling changes no output without a mask, but does with a causal
        mask."""
        drawn = [(computes, torch.tensor([2, 0, 3, 1, 4])) for computes in (MIXES, CAUSAL)]
        in_each(drawn, lambda one: self.agrees(student, reference, rng, one[0], order=one[1]))

    @contracts.points(1, public=True)
    def test_plain_orders(self, student, reference, rng):
        """permuted_outputs works for a rotated, swapped, reversed or unchanged order, and for a single token."""
        turned, swapped = torch.arange(6).roll(2), torch.tensor([0, 3, 2, 1])
        for order in (turned, swapped, torch.arange(5).flip(0), torch.arange(4), torch.tensor([0])):
            self.agrees(student, reference, rng, CAUSAL, (2, len(order)), order)

    @contracts.points(4)
    def test_any_order(self, student, reference, rng):
        """permuted_outputs works for any order, and any number of tokens and sentences."""
        for sizes in [(3, 6), (2, 7), (8, 8), (1, 9)]:
            self.agrees(student, reference, rng, CAUSAL, sizes)

    @contracts.points(0.5)
    def test_called_once(self, student, reference, rng):
        """attention is called exactly once, with all sentences; in this test its result depends on the number of
        calls."""
        own, right = self.attentions(student, reference, rng, COUNTS, buffers={"calls": (1,)})
        x, order = rng.randn(2, 5, 3), self.order(rng, 5)
        assert_close(student.permuted_outputs(own, x, order), reference.permuted_outputs(right, x, order))
        assert_close(own(x), right(x))  # another call, whose result was not used, is counted too

    @contracts.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to each token of the sequence."""
        own, right = self.attentions(student, reference, rng, CAUSAL)
        x, order = rng.randn(2, 7, 3), self.order(rng, 7)
        seen = student.permuted_outputs.observe(own, x, order, cotangent=(cotangent := rng.randn(2, 7, 4)))
        expected = reference.permuted_outputs.observe(right, x, order, cotangent=cotangent)
        assert_close(seen.value, expected.value)
        assert_gradient(seen.gradients[1], expected.gradients[1], Part("x", "1"))

    @contracts.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """For float64 inputs the outputs have float64 precision."""
        own, right = self.attentions(student, reference, rng, CAUSAL)
        x, order = rng.of(torch.float64).randn(2, 7, 3), self.order(rng, 7)
        assert_close(student.permuted_outputs(in_float64(own), x, order), reference.permuted_outputs(right, x, order))

    @contracts.points(0.5, property=True)
    def test_inputs_are_unchanged(self, student, reference, rng):
        """The sequence and the order are not modified."""
        own, _ = self.attentions(student, reference, rng, CAUSAL)
        assert_unchanged(student.permuted_outputs.observe(own, rng.randn(2, 7, 3), self.order(rng, 7)).changed)


@contracts.exercise("alibi_bias")
class TestAlibiBias(contracts.Graders):
    test_two_heads = contracts.gives(
        "For two heads and three tokens, the bias is what the formula gives by hand.",
        (2, 3),
        golden(
            [
                [[0, 0, 0], [-0.0625, 0, 0], [-0.125, -0.0625, 0]],
                [[0, 0, 0], [-0.00390625, 0, 0], [-0.0078125, -0.00390625, 0]],
            ]
        ),
    )

    @contracts.points(2, public=True)
    def test_eight_heads(self, student):
        """The slopes of eight heads are 1/2, 1/4, 1/8 and so on to 1/256."""
        right = [[[0.0, 0.0], [-(2.0**-i), 0.0]] for i in range(1, 9)]
        assert_close(student.alibi_bias(8, 2), golden(right))

    @contracts.points(4)
    def test_other_sizes(self, student, reference, rng):
        """Each head has its own slope and each pair of positions its distance, for any number of heads and tokens."""
        drawn = [(4, whole(rng, 5, 7)), (16, whole(rng, 3, 6)), (8, whole(rng, 9, 12)), (2, whole(rng, 20, 30))]
        in_each(drawn, lambda sizes: self.assert_agree(student, reference, *sizes))

    @contracts.points(1)
    def test_one_head_or_one_token(self, student, reference, rng):
        """A single head has the slope 1/256; a single token has a bias of 0 in each head."""
        in_each([(1, whole(rng, 3, 6)), (4, 1), (1, 1)], lambda sizes: self.assert_agree(student, reference, *sizes))

    @contracts.points(1, property=True)
    def test_float32(self, student, reference):
        """The bias is a float32 tensor."""
        assert_gives_dtype(student.alibi_bias, reference.alibi_bias, torch.float32, 2, 4)


@contracts.exercise("rotary_embedding")
class TestRotaryEmbedding(contracts.Graders):
    def draw(self, rng, leading=(2,), num_tokens=5, head_dim=6, positions=None, base=(), scale=1.0):
        """positions: those of the tokens; drawn, if not said."""
        drawn = (30 * rng.rand(num_tokens)).long() if positions is None else torch.tensor(positions)
        return rng.randn(*leading, num_tokens, head_dim, scale=scale), drawn, *base

    test_worked_example = contracts.gives(
        "At position 1 the vector [1, 0, 1, 0] becomes [.5403, .8415, .99995, .0100]; position 0 rotates nothing.",
        (torch.tensor([[1.0, 0.0, 1.0, 0.0], [1.0, 0.0, 1.0, 0.0]]), torch.tensor([1, 0])),
        golden([[0.5403, 0.8415, 0.99995, 0.0100], [1.0, 0.0, 1.0, 0.0]]),
    )
    test_any_width = contracts.agree_in_turn(
        "Each pair of neighbours is rotated by its own angle, for any even width and any leading dimensions.",
        [((2,), 5, 6), ((), 4, 4), ((2, 3), 3, 10), ((4,), 4, 2), ((1, 2), 1, 8)],
        weight=4,
    )
    test_any_positions = contracts.agree(
        "The angles follow the given positions, which may be in any order and begin anywhere, as with a cache.",
        [((2,), 3, 6, [7, 8, 9]), ((), 4, 4, [5, 0, 2, 2]), ((2, 2), 1, 6, [11]), ((3,), 3, 8, [0, 40, 3])],
    )

    @contracts.points(1)
    def test_another_base(self, student, reference, rng):
        """Another base gives other angles."""
        drawn = [self.draw(rng, base=(base,)) for base in (100.0, 3.0, 500000.0)]
        in_each(drawn, lambda args: self.assert_agree(student, reference, *args))

    test_gradients = contracts.gradients("Gradients flow back to x.")
    test_float64_stays_exact = contracts.float64(
        "For float64 inputs the angles have float64 precision.", of=((2,), 3, 6, [3, 17, 8])
    )

    @contracts.points(1)
    def test_far_positions(self, student, reference, rng):
        """For float64 inputs the result at position 4000 is as exact as at position 0."""
        args = self.draw(rng.of(torch.float64), (2,), 3, 6, [4000, 1023, 2500])
        self.assert_agree(student, reference, *args, tolerance=1e-6)

    test_inputs_are_unchanged = contracts.unchanged("x and the positions are not modified.")
    test_follows_device = contracts.device("The result and the angles are computed on the device of x.")
    test_dtype_is_kept = contracts.dtype("The result has the dtype of x.")
