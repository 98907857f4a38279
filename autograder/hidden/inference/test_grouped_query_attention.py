"""The hidden graders of attention whose heads share keys and values."""

from autograder.core.comparison import assert_close, golden
from autograder.graders import contracts, statements
from autograder.graders.statements import assert_refuses, in_each
from solutions.six_words import SIX_WORDS, twice

from .worked_examples import GROUPED_SEED_123


@contracts.exercise("GroupedQueryAttention", forbids=[])
class TestGroupedQueryAttention(contracts.Graders):
    def callee(self, face, d_in=7, d_out=30, context_length=8, num_heads=6, num_kv_groups=2):
        return face.GroupedQueryAttention(d_in, d_out, context_length, num_heads, num_kv_groups)

    def draw(self, rng, b=2, tokens=5, d_in=7, scale=1.0):
        return (rng.randn(b, tokens, d_in, scale=scale),)

    def assert_right_for(self, student, reference, rng, sizes):
        """Both give the same for each of these: b, T, d_in, d_out, heads and groups."""
        cases = [(self.draw(rng, *one[:3], scale=2.0), one) for one in sizes]

        def agree(case):
            (x,), (_, tokens, d_in, d_out, h, groups) = case
            built = {"d_in": d_in, "d_out": d_out, "context_length": tokens, "num_heads": h, "num_kv_groups": groups}
            self.assert_agree(student, reference, x, **built)

        in_each(cases, agree)

    @contracts.points(2, public=True)
    def test_seed_123(self, student):
        """Built under seed 123 with four heads in two groups, the module gives the worked example's vectors for the
        six words."""
        student.manual_seed(123)
        attention = student.GroupedQueryAttention(3, 8, 6, 4, 2)
        assert_close(attention(twice(SIX_WORDS)), golden([GROUPED_SEED_123] * 2))

    @contracts.points(4)
    def test_groups(self, student, reference, rng):
        """Neighbouring heads share a group: with 6 heads and 2 groups, the first three use group 0."""
        sizes = [(2, 6, 5, 30, 6, 2), (3, 5, 7, 30, 6, 3), (1, 7, 6, 12, 4, 2), (2, 5, 5, 40, 8, 4)]
        self.assert_right_for(student, reference, rng, sizes)

    @contracts.points(2)
    def test_one_group_or_as_many_as_heads(self, student, reference, rng):
        """With as many groups as heads the result is multi-head attention; with one, all heads share its keys
        and values."""
        sizes = [(2, 6, 5, 15, 3, 3), (2, 5, 7, 30, 6, 6), (3, 5, 7, 30, 6, 1), (2, 6, 5, 5, 1, 1)]
        self.assert_right_for(student, reference, rng, sizes)

    test_nothing_is_added = contracts.nothing_added(
        "The input is not added to the result, even if both have the same width.", d_in=30, built={"d_in": 30}
    )

    @contracts.points(2)
    def test_shorter_sequences(self, student, reference, rng):
        """A sequence may have fewer tokens than context_length, and no call depends on an earlier one."""
        attention, right = self.pair(student, reference)
        for training, b, T in [(True, 2, 5), (True, 2, 5), (True, 3, 1), (False, 1, 8), (False, 2, 5)]:
            (x,) = self.draw(rng, b, T, scale=2.0)
            assert_close(attention.train(training)(x), right(x))

    test_long_sequences = contracts.long_sequences(
        "context_length may be more than a thousand.",
        of=(1, 1100, 3),
        built={"context_length": 1100, "d_in": 3, "d_out": 4, "num_heads": 2, "num_kv_groups": 1},
    )

    @contracts.points(0.5)
    def test_scores_of_zero(self, student, reference, rng):
        """A token of zeros has score 0 with every key, so all keys that it sees get equal weight."""
        (x,) = self.draw(rng, 2, 6, scale=2.0)
        x[:, 3] = 0.0
        self.assert_agree(student, reference, x)

    @contracts.points(1)
    def test_large_scores(self, student, reference, rng):
        """Large scores give no NaN, and later tokens get no weight."""
        own, right = self.callee(student), self.callee(reference)
        parameters = right.named_parameters()
        right.load_parameters({**parameters, "W_query.weight": parameters["W_query.weight"] * 2_000_000})
        statements.transplant(right, own)
        statements.assert_right_where_large(student, own, right, *self.draw(rng))

    test_gradients_reach_every_weight = contracts.gradients(
        "Gradients flow back to the input and to every layer.", weight=2, scale=2.0
    )
    test_float64_stays_exact = contracts.float64(
        "After `.to(torch.float64)` the result has float64 precision.",
        built={"d_out": 96},  # heads of width 16, whose root is exact
    )

    @contracts.points(1, property=True)
    def test_refuses_what_cannot_be_split(self, student):
        """If d_out is not divisible by num_heads, building the module raises ValueError or AssertionError."""
        for d_out, h, groups in [(8, 6, 2), (9, 2, 1), (2, 4, 2)]:
            assert_refuses(student, self.callee, student, 7, d_out, 8, h, groups)

    @contracts.points(1, property=True)
    def test_refuses_uneven_groups(self, student):
        """If num_heads is not divisible by num_kv_groups, building the module raises ValueError or AssertionError."""
        for d_out, h, groups in [(30, 6, 4), (30, 5, 2), (12, 2, 4)]:
            assert_refuses(student, self.callee, student, 7, d_out, 8, h, groups)

    test_parameters = contracts.parameters(
        "The parameters are those of the layers: W_key and W_value as wide as all groups together, out_proj with a "
        "bias.",
        {"W_query.weight": (30, 7), "W_key.weight": (10, 7), "W_value.weight": (10, 7),
         "out_proj.weight": (30, 30), "out_proj.bias": (30,)},
        weight=1,
    )  # fmt: skip

    test_inputs_are_unchanged = contracts.unchanged("The input is not modified.", weight=0.5)
    test_follows_device = contracts.device(
        "Moved to another device, the module works there, and its mask is there too."
    )
    test_dtype_is_kept = contracts.dtype("The result has the dtype of the input.")
    test_seeds_matter = contracts.seeds("Two instances built under different seeds have different weights.")
