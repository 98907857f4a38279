"""The hidden graders of the unit's classes."""

from autograder.core.comparison import assert_close, golden
from autograder.graders import contracts
from autograder.graders.statements import in_each
from solutions.six_words import SIX_WORDS

from .worked_examples import SEED_123_CONTEXT, SEED_789_CONTEXT


@contracts.exercise("SelfAttention_v1", forbids=[])
class TestSelfAttentionV1(contracts.Graders):
    scale = 1.0
    """Scale of the random inputs on which given weights are tested."""

    def callee(self, face, d_in=5, d_out=6):
        return face.SelfAttention_v1(d_in, d_out)

    def draw(self, rng, T=7, d_in=5, scale=1.0):
        return (rng.randn(T, d_in, scale=scale),)

    @contracts.points(2, public=True)
    def test_seed_123(self, student):
        """Built under seed 123, the module gives the worked example's context vectors for the six words."""
        student.manual_seed(123)
        assert_close(student.SelfAttention_v1(3, 2)(SIX_WORDS), golden(SEED_123_CONTEXT))

    @contracts.points(3)
    def test_context_vectors(self, student, reference, rng):
        """With given weights, each token's context vector is the weighted sum of the values."""

        def check(case):
            d_in, d_out, num_tokens = case
            self.assert_agree(student, reference, rng.randn(num_tokens, d_in, scale=self.scale), d_in=d_in, d_out=d_out)

        in_each([(5, 3, 7), (3, 8, 4), (4, 4, 4), (4, 1, 3), (3, 5, 1)], check)

    @contracts.points(1)
    def test_called_again(self, student, reference, rng):
        """An instance can be called several times, with sequences of different lengths, in training and evaluation."""
        attention, right = self.pair(student, reference)
        in_each([rng.randn(T, 5, scale=self.scale) for T in (7, 7, 3)], lambda x: assert_close(attention(x), right(x)))
        attention.eval()
        in_each([rng.randn(T, 5, scale=self.scale) for T in (7, 7)], lambda x: assert_close(attention(x), right(x)))

    test_nothing_is_added = contracts.nothing_added(
        "The input is not added to the result, even if both have the same width.", of=(7, 5), built={"d_out": 5}
    )
    test_large_scores_do_not_overflow = contracts.large_scores(
        "Scores in the thousands give context vectors, not NaN.", scale=30.0
    )
    test_gradients_reach_every_weight = contracts.gradients(
        "Gradients flow back to the input and to all three weight matrices.",
        weight=2,
        essential=True,
    )
    test_float64_stays_exact = contracts.float64(
        "After `.to(torch.float64)` the result has float64 precision.", built={"d_out": contracts.EXACT_ROOT}
    )
    test_parameters = contracts.parameters(
        "The parameters are W_query, W_key and W_value, each of shape (d_in, d_out).",
        dict.fromkeys(["W_query", "W_key", "W_value"], (5, 6)),
    )
    test_inputs_are_unchanged = contracts.unchanged("The input is not modified.")
    test_follows_device = contracts.device("Moved to another device, the module works there.")
    test_dtype_is_kept = contracts.dtype("The context vectors have the dtype of the input.")
    test_seeds_matter = contracts.seeds("Two instances built under different seeds have different weights.")


@contracts.exercise("SelfAttention_v2", forbids=[])
class TestSelfAttentionV2(contracts.Graders):
    scale = 3.0

    def callee(self, face, d_in=5, d_out=6, bias=()):
        return face.SelfAttention_v2(d_in, d_out, *bias)

    draw = TestSelfAttentionV1.draw

    @contracts.points(2, public=True)
    def test_seed_789(self, student):
        """Built under seed 789, the module gives the worked example's context vectors for the six words."""
        student.manual_seed(789)
        assert_close(student.SelfAttention_v2(3, 2)(SIX_WORDS), golden(SEED_789_CONTEXT))

    test_context_vectors = TestSelfAttentionV1.test_context_vectors
    test_called_again = TestSelfAttentionV1.test_called_again
    test_nothing_is_added = TestSelfAttentionV1.test_nothing_is_added
    test_large_scores_do_not_overflow = contracts.large_scores(
        "Scores in the thousands give context vectors, not NaN.", scale=200.0
    )
    test_bias = contracts.biased(
        "With qkv_bias=True all three layers have a bias, the result uses it, and gradients reach it.",
        scale=3.0,
        weight=2,
    )
    test_gradients_reach_every_weight = contracts.gradients(
        "Gradients flow back to the input and to all three layers.", weight=2, scale=3.0
    )
    test_float64_stays_exact = contracts.float64(
        "After `.to(torch.float64)` the result has float64 precision.", built={"d_out": contracts.EXACT_ROOT}
    )
    test_parameters = contracts.parameters(
        "The parameters are the weights of the layers W_query, W_key and W_value, each of shape (d_out, d_in).",
        dict.fromkeys(["W_query.weight", "W_key.weight", "W_value.weight"], (6, 5)),
    )
    test_inputs_are_unchanged = contracts.unchanged("The input is not modified.")
    test_follows_device = contracts.device("Moved to another device, the module works there.")
    test_dtype_is_kept = contracts.dtype("The context vectors have the dtype of the input.")
    test_seeds_matter = contracts.seeds("Two instances built under different seeds have different weights.")
