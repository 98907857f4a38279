"""The hidden graders of the unit's functions."""

import torch

from autograder.core.comparison import LARGE_LOGITS, golden
from autograder.core.library_calls import LIBRARY_ATTENTION, LIBRARY_SOFTMAX
from autograder.graders import contracts
from autograder.graders.proxy import Cases
from autograder.graders.statements import in_each
from solutions.six_words import SIX_WORDS

# The second word's scores and weights in the worked example, to four decimals.
SCORES = torch.tensor([0.9544, 1.4950, 1.4754, 0.8434, 0.7070, 1.0865])
WEIGHTS = torch.tensor([0.1385, 0.2379, 0.2333, 0.1240, 0.1082, 0.1581])


@contracts.exercise("dot_product_scores")
class TestDotProductScores(contracts.Graders):
    def draw(self, rng, T=7, d=4):
        return rng.randn(d), rng.randn(T, d)

    test_six_words = contracts.gives(
        "The scores of journey are those of the worked example.", (SIX_WORDS[1], SIX_WORDS), golden(SCORES)
    )

    # A square matrix, and the worked example's width, let mistakes through that other shapes stop with an error.
    test_other_queries = contracts.agree(
        "The scores are right for a query that is not one of the tokens, and for vectors of any width.",
        [(7, 4), (4, 4), (5, 3), (1, 3), (4, 1)],
        public=True,
    )
    test_gradients = contracts.gradients("Gradients flow back to the query and to the inputs.")
    test_float64_stays_exact = contracts.float64("For float64 inputs the scores have float64 precision.")
    test_inputs_are_unchanged = contracts.unchanged("The query and the inputs are not modified.")
    test_follows_device = contracts.device("The scores are computed on the inputs' device.")
    test_dtype_is_kept = contracts.dtype("The result has the dtype of the inputs.")


@contracts.exercise("normalize_by_sum")
class TestNormalizeBySum(contracts.Graders):
    def draw(self, rng, *shape):
        return (rng.rand(*shape or (3, 5)),)

    test_six_words = contracts.gives(
        "The six scores of journey become the weights of the worked example.",
        (SCORES,),
        golden([0.1455, 0.2278, 0.2249, 0.1285, 0.1077, 0.1656]),
    )
    # Where all dimensions are equal a sum over the wrong one raises no error and shows which it was.
    test_leading_dimensions = contracts.agree(
        "With leading dimensions, too, each row sums to 1 along the last dimension.",
        [(3, 5), (4, 4, 4), (2, 3, 5)],
        public=True,
        essential=True,
    )

    @contracts.points(1, essential=True)
    def test_negative_scores(self, student, reference):
        """Negative scores, too, are divided by the plain sum of their row."""
        self.assert_agree(student, reference, torch.tensor([[2.0, -1.0, 0.5], [-3.0, -1.0, 1.0]]))

    test_gradients = contracts.gradients("Gradients flow back to the scores.")
    test_float64_stays_exact = contracts.float64("For float64 scores the weights have float64 precision.")
    test_inputs_are_unchanged = contracts.unchanged("The scores are not modified.")
    test_follows_device = contracts.device("The weights are computed on the scores' device.")
    test_dtype_is_kept = contracts.dtype("The result has the dtype of the inputs.")


@contracts.exercise("softmax", forbids=[LIBRARY_SOFTMAX, LIBRARY_ATTENTION])
class TestSoftmax(contracts.Graders):
    def draw(self, rng, num_rows=3, width=5, scale=1.0):
        return (rng.randn(num_rows, width, scale=scale),)

    test_six_words = contracts.gives(
        "The six scores of journey become the weights of the worked example.", (SCORES,), golden(WEIGHTS), weight=1
    )

    @contracts.points(2, public=True, essential=True)
    def test_any_dimension(self, student, reference, rng):
        """The weights sum to 1 along any dimension dim; without dim, along the last one."""
        cases = [(rng.randn(4, 4, scale=2.0),), (rng.randn(3, 3, 3, scale=2.0),)]
        scores = rng.randn(2, 3, 4, scale=2.0)
        cases += [(scores, dim) for dim in (0, 1, 2, -1, -2)]
        in_each(cases, lambda args: self.assert_agree(student, reference, *args))

    # Square, so that a lost dimension raises no error.
    test_large_scores_do_not_overflow = contracts.large_scores(
        "Scores as large as 1e4, positive or negative, give weights, not NaN.",
        of=(5, 5),
        scale=1e4,
        essential=True,
    )

    @contracts.points(1)
    def test_rows_far_apart(self, student, reference, rng):
        """Each row's weights depend only on its own scores, even if other rows are larger by thousands."""
        scores = rng.randn(4, 6) + torch.tensor([[0.0], [1000.0], [-1000.0], [10000.0]])
        self.assert_agree(student, reference, scores, tolerance=LARGE_LOGITS)

    test_gradients = contracts.gradients("Gradients flow back to the scores.")

    test_float64_stays_exact = contracts.float64("For float64 scores the weights have float64 precision.", scale=8.0)
    test_dtype_is_kept = contracts.dtype("The weights have the dtype of the scores.")
    test_half_precision = contracts.half_precision(
        "For float16 and bfloat16 scores the weights are right and keep the dtype (this costs no points)."
    )
    test_inputs_are_unchanged = contracts.unchanged("The scores are not modified.")
    test_follows_device = contracts.device("The weights are computed on the scores' device.")


@contracts.exercise("context_vector")
class TestContextVector(contracts.Graders):
    def draw(self, rng, T=5, d=3, weights=Cases.rand):
        return weights(rng, T), rng.randn(T, d)

    test_six_words = contracts.gives(
        "The context vector of journey is that of the worked example.",
        (WEIGHTS, SIX_WORDS),
        golden([0.4419, 0.6515, 0.5683]),
    )
    test_other_weights = contracts.agree(
        "Every token contributes in proportion to its weight, for any number of tokens and any width.",
        [(5, 3), (3, 5), (4, 4), (8, 2), (1, 3), (3, 1)],
        weights=lambda rng, T: torch.softmax(rng.randn(T).double(), dim=-1).float(),
        public=True,
    )
    test_gradients = contracts.gradients("Gradients flow back to the weights and to the inputs.")
    test_float64_stays_exact = contracts.float64(
        "For float64 inputs the context vector has float64 precision.", weights=Cases.randn
    )
    test_inputs_are_unchanged = contracts.unchanged("The weights and the inputs are not modified.")
    test_follows_device = contracts.device("The context vector is computed on the inputs' device.")
    test_dtype_is_kept = contracts.dtype("The result has the dtype of the inputs.")


@contracts.exercise("pairwise_scores")
class TestPairwiseScores(contracts.Graders):
    def draw(self, rng, T=5, d=3):
        return (rng.randn(T, d),)

    test_six_words = contracts.gives(
        "The first row of scores is that of the worked example.",
        (SIX_WORDS,),
        golden([0.9995, 0.9544, 0.9422, 0.4753, 0.4576, 0.6310]),
        row=0,
    )
    test_other_tokens = contracts.agree(
        "Row i holds token i's score with every token, itself included.",
        [(5, 3), (3, 5), (4, 4), (8, 2), (1, 3)],
        public=True,
        essential=True,
    )
    test_gradients = contracts.gradients(
        "Gradients flow back to the inputs in both their roles: as queries and as scored tokens."
    )
    test_float64_stays_exact = contracts.float64("For float64 inputs the scores have float64 precision.")
    test_inputs_are_unchanged = contracts.unchanged("The inputs are not modified.")
    test_follows_device = contracts.device("The scores are computed on the inputs' device.")
    test_dtype_is_kept = contracts.dtype("The result has the dtype of the inputs.")


@contracts.exercise("simple_self_attention")
class TestSimpleSelfAttention(contracts.Graders):
    def draw(self, rng, T=5, d=3, scale=1.0):
        return (rng.randn(T, d, scale=scale),)

    test_six_words = contracts.gives(
        "The first word's context vector is that of the worked example.",
        (SIX_WORDS,),
        golden([0.4421, 0.5931, 0.5790]),
        row=0,
    )
    test_other_tokens = contracts.agree(
        "Each token's context vector is made with that token's row of weights.",
        [(5, 3), (3, 5), (4, 4), (8, 2), (1, 3), (3, 1)],
        weight=3,
        public=True,
    )
    test_large_inputs_do_not_overflow = contracts.large_scores(
        "Inputs whose scores are in the thousands give context vectors, not NaN.", scale=30.0
    )
    test_gradients = contracts.gradients(
        "Gradients flow back to the inputs, through the scores, the weights and the weighted sum."
    )
    test_float64_stays_exact = contracts.float64("For float64 inputs the result has float64 precision.")
    test_inputs_are_unchanged = contracts.unchanged("The inputs are not modified.")
    test_follows_device = contracts.device("The result is computed on the inputs' device.")
    test_dtype_is_kept = contracts.dtype("The result has the dtype of the inputs.")
