"""Unit 1: the hidden graders of attention without weights."""

import pytest
import torch

from autograder.compare import LARGE_LOGITS, assert_close, golden, row
from autograder.hidden.cases import SIX_WORDS
from autograder.hidden.statements import (
    assert_dtype_kept,
    assert_follows_device,
    assert_inputs_unchanged,
    assert_same_gradients,
)
from autograder.sandbox.inside.library_calls import LIBRARY_ATTENTION, LIBRARY_SOFTMAX

# The second word's scores and weights in the worked example, to four decimals.
SCORES = torch.tensor([0.9544, 1.4950, 1.4754, 0.8434, 0.7070, 1.0865])
WEIGHTS = torch.tensor([0.1385, 0.2379, 0.2333, 0.1240, 0.1082, 0.1581])


@pytest.mark.exercise("dot_product_scores", forbids=[LIBRARY_ATTENTION])
class TestDotProductScores:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_six_words(self, student):
        """The scores of journey are those of the worked example."""
        scores = student.dot_product_scores(SIX_WORDS[1], SIX_WORDS)
        assert_close(scores, golden(SCORES))

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_other_queries(self, student, reference, rng):
        """The query need not be one of the tokens, and tokens may have any width."""
        for T, d in [(7, 4), (4, 7), (1, 3)]:
            query, inputs = rng.randn(d), rng.randn(T, d)
            assert_close(student.dot_product_scores(query, inputs), reference.dot_product_scores(query, inputs))

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the query and to the inputs."""
        query, inputs, cotangent = rng.randn(4), rng.randn(7, 4), rng.randn(7)
        assert_same_gradients(
            student.dot_product_scores, reference.dot_product_scores, query, inputs, cotangent=cotangent
        )

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """Scores of float64 inputs are as exact as float64 is."""
        query, inputs = rng.randn(4, dtype=torch.float64), rng.randn(7, 4, dtype=torch.float64)
        assert_close(student.dot_product_scores(query, inputs), reference.dot_product_scores(query, inputs))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """Query and inputs are left as they were."""
        assert_inputs_unchanged(student.dot_product_scores, rng.randn(4), rng.randn(7, 4))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The scores are computed on the inputs' device."""
        assert_follows_device(student.dot_product_scores, rng.randn(4), rng.randn(7, 4))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the inputs."""
        assert_dtype_kept(
            student.dot_product_scores, rng.randn(4, dtype=torch.float64), rng.randn(7, 4, dtype=torch.float64)
        )


@pytest.mark.exercise("normalize_by_sum", forbids=[LIBRARY_ATTENTION])
class TestNormalizeBySum:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_six_words(self, student):
        """The six scores of journey become the weights of the worked example."""
        weights = student.normalize_by_sum(SCORES)
        assert_close(weights, golden([0.1455, 0.2278, 0.2249, 0.1285, 0.1077, 0.1656]))

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_leading_dimensions(self, student, reference, rng):
        """With more dimensions each row sums to 1 along the last one."""
        for shape in [(4, 4), (3, 5), (2, 3, 5)]:
            scores = rng.rand(*shape)
            assert_close(student.normalize_by_sum(scores), reference.normalize_by_sum(scores))

    @pytest.mark.points(1)
    def test_negative_scores(self, student, reference):
        """It is the plain sum that scores are divided by, also where some are negative."""
        scores = torch.tensor([[2.0, -1.0, 0.5], [-3.0, -1.0, 1.0]])
        assert_close(student.normalize_by_sum(scores), reference.normalize_by_sum(scores))

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the scores."""
        scores, cotangent = rng.rand(3, 5), rng.randn(3, 5)
        assert_same_gradients(student.normalize_by_sum, reference.normalize_by_sum, scores, cotangent=cotangent)

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """Weights of float64 scores are as exact as float64 is."""
        scores = rng.rand(3, 5, dtype=torch.float64)
        assert_close(student.normalize_by_sum(scores), reference.normalize_by_sum(scores))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """The scores are left as they were."""
        assert_inputs_unchanged(student.normalize_by_sum, rng.rand(3, 5))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The weights are computed on the scores' device."""
        assert_follows_device(student.normalize_by_sum, rng.rand(3, 5))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the inputs."""
        assert_dtype_kept(student.normalize_by_sum, rng.rand(3, 5, dtype=torch.float64))


@pytest.mark.exercise("softmax", forbids=[LIBRARY_SOFTMAX, LIBRARY_ATTENTION])
class TestSoftmax:
    @pytest.mark.public
    @pytest.mark.points(1)
    def test_six_words(self, student):
        """The six scores of journey become the weights of the worked example."""
        assert_close(student.softmax(SCORES), golden(WEIGHTS))

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_any_dimension(self, student, reference, rng):
        """The weights sum to 1 along dim, whichever it is; without dim, along the last one."""
        scores = rng.randn(4, 4, scale=2.0)
        assert_close(student.softmax(scores), reference.softmax(scores))
        scores = rng.randn(2, 3, 4, scale=2.0)
        for dim in (0, 1, 2, -1, -2):
            assert_close(student.softmax(scores, dim=dim), reference.softmax(scores, dim=dim))

    @pytest.mark.points(1)
    def test_large_scores_do_not_overflow(self, student, reference, rng):
        """Scores as large as 1e4, positive or negative, give weights, not NaN."""
        scores = rng.randn(5, 7, scale=1e4)
        assert_close(student.softmax(scores), reference.softmax(scores), tolerance=LARGE_LOGITS)

    @pytest.mark.points(1)
    def test_rows_far_apart(self, student, reference, rng):
        """Rows are independent, even when one is a thousand times larger than the next."""
        scores = rng.randn(4, 6) + torch.tensor([[0.0], [1000.0], [-1000.0], [10000.0]])
        assert_close(student.softmax(scores), reference.softmax(scores), tolerance=LARGE_LOGITS)

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the scores."""
        scores, cotangent = rng.randn(3, 5), rng.randn(3, 5)
        assert_same_gradients(student.softmax, reference.softmax, scores, cotangent=cotangent)

    @pytest.mark.points(1)
    def test_dtypes(self, student, reference, rng):
        """float64 stays exact; half precision works and stays half precision."""
        for dtype in (torch.float64, torch.float16, torch.bfloat16):
            scores = rng.randn(3, 5, dtype=dtype)
            assert_close(student.softmax(scores), reference.softmax(scores))
            assert_dtype_kept(student.softmax, scores)

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """The scores are left as they were."""
        assert_inputs_unchanged(student.softmax, rng.randn(3, 5))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The weights are computed on the scores' device."""
        assert_follows_device(student.softmax, rng.randn(3, 5))


@pytest.mark.exercise("context_vector", forbids=[LIBRARY_ATTENTION])
class TestContextVector:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_six_words(self, student):
        """The context vector of journey is that of the worked example."""
        assert_close(student.context_vector(WEIGHTS, SIX_WORDS), golden([0.4419, 0.6515, 0.5683]))

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_other_weights(self, student, reference, rng):
        """Every token contributes by its weight, for any number and width of tokens."""
        for T, d in [(5, 3), (3, 5), (4, 4)]:
            weights, inputs = torch.softmax(rng.randn(T).double(), dim=-1).float(), rng.randn(T, d)
            assert_close(student.context_vector(weights, inputs), reference.context_vector(weights, inputs))

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the weights and to the inputs."""
        weights, inputs, cotangent = rng.rand(5), rng.randn(5, 3), rng.randn(3)
        assert_same_gradients(student.context_vector, reference.context_vector, weights, inputs, cotangent=cotangent)

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """The context vector of float64 inputs is as exact as float64 is."""
        weights, inputs = rng.rand(5, dtype=torch.float64), rng.randn(5, 3, dtype=torch.float64)
        assert_close(student.context_vector(weights, inputs), reference.context_vector(weights, inputs))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """Weights and inputs are left as they were."""
        assert_inputs_unchanged(student.context_vector, rng.rand(5), rng.randn(5, 3))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The context vector is computed on the inputs' device."""
        assert_follows_device(student.context_vector, rng.rand(5), rng.randn(5, 3))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the inputs."""
        assert_dtype_kept(
            student.context_vector, rng.rand(5, dtype=torch.float64), rng.randn(5, 3, dtype=torch.float64)
        )


@pytest.mark.exercise("pairwise_scores", forbids=[LIBRARY_ATTENTION])
class TestPairwiseScores:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_six_words(self, student):
        """The first row of scores is that of the worked example."""
        scores = student.pairwise_scores(SIX_WORDS)
        assert_close(row(scores, 0), golden([0.9995, 0.9544, 0.9422, 0.4753, 0.4576, 0.6310]))

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_other_tokens(self, student, reference, rng):
        """Row i holds token i's score with every token, itself included."""
        for T, d in [(5, 3), (3, 5)]:
            inputs = rng.randn(T, d)
            assert_close(student.pairwise_scores(inputs), reference.pairwise_scores(inputs))

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the inputs, through both of their parts."""
        inputs, cotangent = rng.randn(5, 3), rng.randn(5, 5)
        assert_same_gradients(student.pairwise_scores, reference.pairwise_scores, inputs, cotangent=cotangent)

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """Scores of float64 inputs are as exact as float64 is."""
        inputs = rng.randn(5, 3, dtype=torch.float64)
        assert_close(student.pairwise_scores(inputs), reference.pairwise_scores(inputs))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """The inputs are left as they were."""
        assert_inputs_unchanged(student.pairwise_scores, rng.randn(5, 3))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The scores are computed on the inputs' device."""
        assert_follows_device(student.pairwise_scores, rng.randn(5, 3))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the inputs."""
        assert_dtype_kept(student.pairwise_scores, rng.randn(5, 3, dtype=torch.float64))


@pytest.mark.exercise("simple_self_attention", forbids=[LIBRARY_ATTENTION])
class TestSimpleSelfAttention:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_six_words(self, student):
        """The first word's context vector is that of the worked example."""
        assert_close(row(student.simple_self_attention(SIX_WORDS), 0), golden([0.4421, 0.5931, 0.5790]))

    @pytest.mark.public
    @pytest.mark.points(3)
    def test_other_tokens(self, student, reference, rng):
        """Every token gets the context vector of its own row of weights."""
        for T, d in [(5, 3), (3, 5), (4, 4)]:
            inputs = rng.randn(T, d)
            assert_close(student.simple_self_attention(inputs), reference.simple_self_attention(inputs))

    @pytest.mark.points(1)
    def test_large_inputs_do_not_overflow(self, student, reference, rng):
        """Inputs with scores in the hundreds give context vectors, not NaN."""
        inputs = rng.randn(5, 3, scale=30.0)
        right = reference.simple_self_attention(inputs)
        assert_close(student.simple_self_attention(inputs), right, tolerance=LARGE_LOGITS)

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the inputs, through scores, weights and sum."""
        inputs, cotangent = rng.randn(5, 3), rng.randn(5, 3)
        assert_same_gradients(
            student.simple_self_attention, reference.simple_self_attention, inputs, cotangent=cotangent
        )

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """The result for float64 inputs is as exact as float64 is."""
        inputs = rng.randn(5, 3, dtype=torch.float64)
        assert_close(student.simple_self_attention(inputs), reference.simple_self_attention(inputs))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """The inputs are left as they were."""
        assert_inputs_unchanged(student.simple_self_attention, rng.randn(5, 3))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The result is computed on the inputs' device."""
        assert_follows_device(student.simple_self_attention, rng.randn(5, 3))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the inputs."""
        assert_dtype_kept(student.simple_self_attention, rng.randn(5, 3, dtype=torch.float64))
