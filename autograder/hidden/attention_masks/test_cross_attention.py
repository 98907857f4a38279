"""The hidden graders of attention to another sentence."""

import torch

from autograder.core.comparison import assert_close, golden
from autograder.graders import contracts, statements
from autograder.graders.statements import (
    assert_refuses,
    assert_same_gradients,
    assert_unchanged,
    in_both_modes,
    in_each,
)
from solutions.six_words import SIX_WORDS, twice

from .worked_examples import OTHER_WORDS, SEED_123

LAYERS = ("W_query", "W_key", "W_value")


@contracts.exercise("CrossAttention", forbids=[])
class TestCrossAttention(contracts.Graders):
    def callee(self, face, d_query=5, d_context=7, d_out=15, num_heads=3):
        return face.CrossAttention(d_query, d_context, d_out, num_heads)

    def draw(self, rng, b=2, tokens=4, others=6, d_query=5, d_context=7, hidden=None, scale=1.0):
        """hidden: how many places at the end of each sentence's context are padding; None where no mask is given."""
        x, context = rng.randn(b, tokens, d_query, scale=scale), rng.randn(b, others, d_context, scale=scale)
        return (x, context) if hidden is None else (x, context, padding(others, hidden))

    @contracts.points(2, public=True)
    def test_seed_123(self, student):
        """Built under seed 123 with two heads, the module gives the worked example's vectors for the six words."""
        student.manual_seed(123)
        attention = student.CrossAttention(3, 2, 4, 2)
        assert_close(attention(twice(SIX_WORDS), twice(OTHER_WORDS)), golden([SEED_123] * 2))

    @contracts.points(3)
    def test_context_vectors(self, student, reference, rng):
        """With given weights, each token attends to its own sentence's context, head by head, for any lengths of the
        two."""
        sizes = [(2, 4, 6, 5, 7, 6, 2), (3, 5, 2, 4, 3, 15, 3), (1, 1, 4, 3, 6, 6, 1), (4, 4, 4, 4, 4, 16, 4)]
        cases = [(self.draw(rng, *one[:5], scale=2.0), one[3:]) for one in [*sizes, (2, 3, 1, 3, 5, 6, 3)]]

        def agree(case):
            args, (d_query, d_context, d_out, num_heads) = case
            built = {"d_query": d_query, "d_context": d_context, "d_out": d_out, "num_heads": num_heads}
            self.assert_agree(student, reference, *args, **built)

        in_each(cases, agree)

    @contracts.points(3, essential=True)
    def test_context_mask(self, student, reference, rng):
        """No token takes anything from the hidden positions of its sentence's context."""
        drawn = [self.draw(rng, 2, hidden=[0, 4], scale=2.0), self.draw(rng, 4, 6, 4, hidden=[3, 0, 1, 2], scale=2.0)]
        scattered = (*self.draw(rng, 3, 3, 3, scale=2.0), torch.eye(3) > 0)
        own, right = self.pair(student, reference)
        for _ in in_both_modes(own):
            in_each([*drawn, scattered], lambda args: assert_close(own(*args), right(*args)))

    @contracts.points(1)
    def test_each_call_on_its_own(self, student, reference, rng):
        """No call depends on an earlier one: with a mask, without one, with other lengths, in training or
        evaluation."""
        attention, right = self.pair(student, reference)
        for training, b, tokens, hidden in [(True, 2, 4, [1, 3]), (True, 2, 4, None), (False, 3, 5, None),
                                            (False, 3, 5, [0, 2, 5]), (False, 2, 1, None)]:  # fmt: skip
            args = self.draw(rng, b, tokens, hidden=hidden, scale=2.0)
            assert_close(attention.train(training)(*args), right(*args))

    @contracts.points(1)
    def test_no_context(self, student, reference, rng):
        """If a sentence's whole context is hidden, its tokens get out_proj of zeros, and no gradient is NaN."""
        own, right = self.pair(student, reference)
        args = self.draw(rng, 3, hidden=[6, 0, 2])
        assert_same_gradients(own, right, *args, cotangent=rng.randn(3, 4, 15))

    test_nothing_is_added = contracts.nothing_added(
        "x is not added to the result, even if both have the same width.", d_query=15, built={"d_query": 15}
    )

    @contracts.points(1)
    def test_large_scores(self, student, reference, rng):
        """Large scores give no NaN, and hidden keys get no weight."""
        own, right = self.callee(student), self.callee(reference)
        parameters = right.named_parameters()
        right.load_parameters({**parameters, "W_query.weight": parameters["W_query.weight"] * 2_000_000})
        statements.transplant(right, own)
        statements.assert_right_where_large(student, own, right, *self.draw(rng, hidden=[2, 4]))

    @contracts.points(0.5)
    def test_scores_of_zero(self, student, reference, rng):
        """A token of zeros has score 0 with every key, so all keys that it sees get equal weight."""
        x, context, mask = self.draw(rng, hidden=[3, 1])
        x[:, 1], context[:, 0] = 0.0, 0.0
        self.assert_agree(student, reference, x, context, mask)

    test_gradients_reach_every_weight = contracts.gradients(
        "Gradients flow back to x, to the context and to every layer.", weight=2, hidden=[2, 0], scale=2.0
    )
    test_float64_stays_exact = contracts.float64(
        "After `.to(torch.float64)` the result has float64 precision.",
        hidden=[2, 0],
        built={"d_out": 48},  # heads of width 16, whose root is exact
    )

    @contracts.points(1, property=True)
    def test_refuses_what_cannot_be_split(self, student):
        """If d_out is not divisible by num_heads, building the module raises ValueError or AssertionError."""
        for d_out, h in [(6, 4), (9, 2), (2, 4)]:
            assert_refuses(student, self.callee, student, 5, 7, d_out, h)

    test_parameters = contracts.parameters(
        "The parameters are those of the layers: W_query, W_key and W_value without a bias, out_proj with one.",
        {"W_query.weight": (15, 5), "W_key.weight": (15, 7), "W_value.weight": (15, 7),
         "out_proj.weight": (15, 15), "out_proj.bias": (15,)},
        weight=1,
    )  # fmt: skip

    @contracts.points(0.5, property=True)
    def test_inputs_are_unchanged(self, student, rng):
        """x, the context and the mask are not modified, even if a sentence's whole context is hidden."""
        for _ in in_both_modes(own := self.callee(student)):
            for hidden in ([2, 0], [6, 0], [6, 6], None):
                assert_unchanged(own.observe(*self.draw(rng, hidden=hidden)).changed)

    @contracts.points(0.5, property=True, device=True)
    def test_follows_device(self, student, reference, rng):
        """Moved to another device, the module works there: without a mask, with one, and with one that hides a whole
        context."""
        own, right = self.callee(student), self.callee(reference)
        for hidden in ([2, 0], [6, 0], None):
            statements.assert_follows_device(own, *self.draw(rng, hidden=hidden), reference=right)

    test_dtype_is_kept = contracts.dtype("The result has the dtype of x.")
    test_seeds_matter = contracts.seeds("Two instances built under different seeds have different weights.")


def padding(places, hidden):
    """Return a mask (b, places); row i is True at its last `hidden[i]` places."""
    return torch.arange(places) >= places - torch.tensor(hidden)[:, None]
