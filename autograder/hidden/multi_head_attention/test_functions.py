"""The hidden graders of the unit's functions."""

from autograder.core.comparison import golden
from autograder.graders import contracts
from autograder.graders.statements import assert_refuses
from solutions.six_words import twice

from .worked_examples import CONTEXT_BY_HEAD, KEYS_BY_HEAD, MERGED_CONTEXT, QUERIES, QUERIES_BY_HEAD, SCORES_BY_HEAD


@contracts.exercise("stacked_heads_attention")
class TestStackedHeadsAttention(contracts.Graders):
    def draw(self, rng, h=3, num_tokens=5, d_in=4, d_k=2, d_v=6, scale=1.0):
        x, keys = rng.randn(num_tokens, d_in), (h, d_k, d_in)
        return x, rng.randn(*keys, scale=scale), rng.randn(*keys, scale=scale), rng.randn(h, d_v, d_in, scale=0.5)

    test_shapes_of_the_worked_example = contracts.agree_in_turn(
        "Three heads with keys of width 24 and values of width 28 turn (6, 16) into (3, 6, 28).",
        [(3, 6, 16, 24, 28)],
        scale=0.25,
    )
    test_other_widths = contracts.agree_in_turn(
        "Each head attends with its own weights; values may be wider or narrower than keys.",
        [(2, 5, 4, 3, 6), (4, 3, 5, 2, 1)],
        public=True,
    )
    test_equal_widths = contracts.agree_in_turn(
        "Weights are transposed and heads are computed separately, even if all widths are equal.",
        [(4, 4, 4, 4, 4), (3, 5, 3, 3, 3), (1, 4, 2, 2, 2)],
        essential=True,
    )
    test_large_scores_do_not_overflow = contracts.large_scores(
        "Scores in the thousands give context vectors, not NaN.", of=(3, 5, 4, 2, 3), scale=30.0
    )
    test_gradients = contracts.gradients("Gradients flow back to the inputs and to all three weights.")
    test_float64_stays_exact = contracts.float64(
        "For float64 inputs the result has float64 precision.", of=(3, 5, 2, contracts.EXACT_ROOT, 6)
    )
    test_inputs_are_unchanged = contracts.unchanged("The inputs and the weights are not modified.")
    test_follows_device = contracts.device("The result is computed on the inputs' device.")
    test_dtype_is_kept = contracts.dtype("The result has the dtype of the inputs.")


@contracts.exercise("split_heads")
class TestSplitHeads(contracts.Graders):
    def draw(self, rng, b=2, num_tokens=5, d=12, h=3):
        return rng.randn(b, num_tokens, d), h

    test_worked_example = contracts.gives(
        "Three queries of width 6 become two heads of width 3, as in the worked example.",
        (twice(QUERIES), 2),
        golden(twice(QUERIES_BY_HEAD)),
    )
    test_other_shapes = contracts.agree_in_turn(
        "Head 0 gets the first piece of every token, head 1 the second, and so on.",
        [(2, 5, 12, 3), (3, 4, 10, 5)],
        public=True,
    )
    test_equal_sizes = contracts.agree_in_turn(
        "Batch, tokens and heads are not mixed up, even if their sizes are equal or 1.",
        [(4, 4, 16, 4), (3, 3, 6, 3), (3, 1, 6, 2), (2, 5, 4, 1), (1, 5, 3, 3)],
    )
    test_gradients = contracts.gradients("Gradients flow back to the input.")
    test_float64_stays_exact = contracts.float64("float64 inputs keep their precision.")

    @contracts.points(1, property=True)
    def test_refuses_what_cannot_be_split(self, student, rng):
        """If the width is not divisible by the number of heads, split_heads raises ValueError or AssertionError."""
        for d, h in [(6, 4), (3, 2), (2, 4)]:
            assert_refuses(student, student.split_heads, rng.randn(2, 8, d), h)

    test_input_is_unchanged = contracts.unchanged("The input is not modified.")
    test_follows_device = contracts.device("The result is on the input's device.")
    test_dtype_is_kept = contracts.dtype("The result has the dtype of the input.")


@contracts.exercise("multi_head_scores")
class TestMultiHeadScores(contracts.Graders):
    def draw(self, rng, b=2, h=3, num_tokens=5, head_dim=4):
        return tuple(rng.randn(b, h, num_tokens, head_dim) for _ in range(2))

    test_worked_example = contracts.gives(
        "The scores of the two heads are those of the worked example.",
        (twice(QUERIES_BY_HEAD), twice(KEYS_BY_HEAD)),
        golden([SCORES_BY_HEAD] * 2),
    )
    test_other_shapes = contracts.agree_in_turn(
        "Every query is scored against every key of the same head, and the scores are not scaled.",
        [(2, 3, 5, 4), (3, 2, 4, 6)],
        public=True,
    )
    test_equal_sizes = contracts.agree_in_turn(
        "Sequences and heads are computed separately, even if sizes are equal or 1.",
        [(4, 4, 4, 4), (3, 3, 5, 3), (1, 4, 3, 2), (3, 1, 5, 4), (2, 3, 1, 4), (2, 3, 5, 1)],
    )
    test_gradients = contracts.gradients("Gradients flow back to the queries and to the keys.")
    test_float64_stays_exact = contracts.float64("For float64 inputs the scores have float64 precision.")
    test_inputs_are_unchanged = contracts.unchanged("The queries and the keys are not modified.")
    test_follows_device = contracts.device("The scores are computed on the inputs' device.")
    test_dtype_is_kept = contracts.dtype("The scores have the dtype of the inputs.")


@contracts.exercise("merge_heads")
class TestMergeHeads(contracts.Graders):
    def draw(self, rng, b=2, h=3, num_tokens=5, head_dim=4):
        return (rng.randn(b, h, num_tokens, head_dim),)

    test_worked_example = contracts.gives(
        "Each token of the worked example gets its piece from head 0, then its piece from head 1.",
        (twice(CONTEXT_BY_HEAD),),
        golden([MERGED_CONTEXT] * 2),
    )
    test_other_shapes = contracts.agree_in_turn(
        "(b, h, T, hd) becomes (b, T, h * hd), each token's numbers together.",
        [(2, 3, 5, 4), (3, 5, 4, 2)],
        public=True,
    )
    test_equal_sizes = contracts.agree_in_turn(
        "Batch, heads and tokens are not mixed up, even if their sizes are equal.",
        [(4, 4, 4, 4), (3, 3, 3, 2), (2, 3, 2, 3)],
    )
    test_one_head_or_one_token = contracts.agree_in_turn(
        "merge_heads works for one head, one token, a batch of one and heads of width 1.",
        [(2, 1, 5, 4), (2, 3, 1, 4), (1, 1, 1, 4), (2, 1, 4, 1)],
        weight=1,
    )
    test_gradients = contracts.gradients("Gradients flow back to the input.")
    test_float64_stays_exact = contracts.float64("float64 inputs keep their precision.")
    test_input_is_unchanged = contracts.unchanged("The input is not modified.")
    test_follows_device = contracts.device("The result is on the input's device.")
    test_dtype_is_kept = contracts.dtype("The result has the dtype of the input.")
