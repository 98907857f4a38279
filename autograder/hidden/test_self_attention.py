"""Unit 2: the hidden graders of self-attention with trainable weights."""

import pytest
import torch

from autograder.compare import LARGE_LOGITS, assert_close, assert_equal, golden, row, rows
from autograder.hidden.cases import SIX_WORDS
from autograder.hidden.statements import (
    assert_dtype,
    assert_dtype_kept,
    assert_follows_device,
    assert_inputs_unchanged,
    assert_parameter_shapes,
    assert_raises,
    assert_same_gradients,
    assert_seeds_matter,
    transplant,
)
from autograder.sandbox.inside.library_calls import LIBRARY_ATTENTION

# The whole context vector that the source document prints for the second word of "Life is short, eat dessert first".
LIFE_IS_SHORT_CONTEXT = [
    *(
        -1.5993,
        0.0156,
        1.2670,
        0.0032,
        -0.6460,
        -1.1407,
        -0.4908,
        -1.4632,
        0.4747,
        1.1926,
        0.4506,
        -0.7110,
        0.0602,
        0.7125,
    ),
    *(
        -0.1628,
        -2.0184,
        0.3838,
        -2.1188,
        -0.8136,
        -1.5694,
        0.7934,
        -0.2911,
        -1.3640,
        -0.2366,
        -0.9564,
        -0.5265,
        0.0624,
        1.7084,
    ),
]


def seed_123_weights() -> list[torch.Tensor]:
    """The (3, 2) weights for queries, keys and values of the worked example with six words."""
    generator = torch.Generator().manual_seed(123)
    return [torch.rand(3, 2, generator=generator) for _ in range(3)]


def projections() -> tuple[torch.Tensor, ...]:
    """Queries, keys and values of the six words."""
    # In float64, so that the last digit is the same on every CPU.
    return tuple((SIX_WORDS.double() @ W.double()).float() for W in seed_123_weights())  # (6, 3) @ (3, 2) -> (6, 2)


def life_is_short() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The query of the second word, and all keys and values, of the worked example with d_k = 24 and d_v = 28."""
    embeddings = torch.randn(6, 16, generator=torch.Generator().manual_seed(123)).double()
    inputs = embeddings[[0, 4, 5, 2, 1, 3]]
    generator = torch.Generator().manual_seed(123)
    W_query, W_key, W_value = (torch.rand(width, 16, generator=generator).double() for width in (24, 24, 28))
    projected = inputs[1] @ W_query.T, inputs @ W_key.T, inputs @ W_value.T
    return tuple(tensor.round(decimals=5).float() for tensor in projected)


def unit_gaussians() -> tuple[torch.Tensor, torch.Tensor]:
    """Queries and keys of the worked example on variance, of shape (4, 8, 16)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1337)
        torch.randn(4, 8, 32)
        for _ in range(3):
            torch.nn.Linear(32, 16, bias=False)
        keys, queries = torch.randn(4, 8, 16), torch.randn(4, 8, 16)
    return queries.double().round(decimals=4).float(), keys.double().round(decimals=4).float()


@pytest.mark.exercise("build_vocab", forbids=[])
class TestBuildVocab:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_worked_example(self, student):
        """The six words of the worked example get the numbers 0 to 5 in alphabetical order."""
        vocab = student.build_vocab("Life is short, eat dessert first")
        assert_equal(vocab, {"Life": 0, "dessert": 1, "eat": 2, "first": 3, "is": 4, "short": 5})

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_repeated_words(self, student):
        """A word that stands twice gets one number, and no number is left out."""
        vocab = student.build_vocab("the cat saw the dog, the dog saw the cat")
        assert_equal(vocab, {"cat": 0, "dog": 1, "saw": 2, "the": 3})

    @pytest.mark.points(1)
    def test_commas_and_spaces(self, student):
        """Commas alone are dropped, any white space separates words, and capitals stay capitals."""
        vocab = student.build_vocab("  Yes,no , maybe\tB b, don't end.  ")
        assert_equal(vocab, {"B": 0, "Yesno": 1, "b": 2, "don't": 3, "end.": 4, "maybe": 5})


@pytest.mark.exercise("encode", forbids=[])
class TestEncode:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_worked_example(self, student):
        """The sentence of the worked example becomes 0 4 5 2 1 3."""
        vocab = {"Life": 0, "dessert": 1, "eat": 2, "first": 3, "is": 4, "short": 5}
        tokens = student.encode("Life is short, eat dessert first", vocab)
        assert_close(tokens, golden([0, 4, 5, 2, 1, 3]))

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_given_vocabulary(self, student):
        """The numbers are those of the vocabulary passed in, for any sentence made of its words."""
        tokens = student.encode("b a, c a", {"a": 7, "c": 3, "b": 11, "unused": 0})
        assert_close(tokens, golden([11, 7, 3, 7]))

    @pytest.mark.points(1)
    def test_commas_and_spaces(self, student):
        """Commas alone are dropped, and any white space separates words."""
        tokens = student.encode(" Yes,no  don't,\tend. ", {"Yesno": 4, "don't": 2, "end.": 3})
        assert_close(tokens, golden([4, 2, 3]))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_int64(self, student):
        """The result is an int64 tensor, as an embedding layer wants it."""
        assert_dtype(student.encode("b a", {"a": 0, "b": 1}), torch.int64)

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_unknown_word(self, student):
        """A word that is not in the vocabulary raises KeyError."""
        assert_raises("KeyError", student.encode, "a b", {"a": 0})


@pytest.mark.exercise("project_qkv", forbids=[LIBRARY_ATTENTION])
class TestProjectQKV:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_second_word(self, student):
        """Query, key and value of journey are those of the worked example."""
        results = student.project_qkv(SIX_WORDS, *seed_123_weights())
        right = golden([0.4306, 1.4551]), golden([0.4433, 1.1419]), golden([0.3951, 1.0037])
        assert_close(rows(results, 1), right)

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_other_widths(self, student, reference, rng):
        """Values may be wider or narrower than queries and keys."""
        arguments = rng.randn(5, 3), rng.randn(3, 4), rng.randn(3, 4), rng.randn(3, 2)
        assert_close(student.project_qkv(*arguments), reference.project_qkv(*arguments))

    @pytest.mark.points(1)
    def test_square_weights(self, student, reference, rng):
        """Square weights are used as they are, not transposed."""
        arguments = rng.randn(5, 3), rng.randn(3, 3), rng.randn(3, 3), rng.randn(3, 3)
        assert_close(student.project_qkv(*arguments), reference.project_qkv(*arguments))

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the inputs and to all three weights."""
        arguments = rng.randn(5, 3), rng.randn(3, 4), rng.randn(3, 4), rng.randn(3, 2)
        cotangents = rng.randn(5, 4), rng.randn(5, 4), rng.randn(5, 2)
        assert_same_gradients(student.project_qkv, reference.project_qkv, *arguments, cotangent=cotangents)

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """The projections of float64 inputs are as exact as float64 is."""
        arguments = [rng.randn(*shape, dtype=torch.float64) for shape in [(5, 3), (3, 4), (3, 4), (3, 2)]]
        assert_close(student.project_qkv(*arguments), reference.project_qkv(*arguments))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """Inputs and weights are left as they were."""
        assert_inputs_unchanged(student.project_qkv, rng.randn(5, 3), rng.randn(3, 4), rng.randn(3, 4), rng.randn(3, 2))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The projections are computed on the inputs' device."""
        assert_follows_device(student.project_qkv, rng.randn(5, 3), rng.randn(3, 4), rng.randn(3, 4), rng.randn(3, 2))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The results have the dtype of the inputs."""
        assert_dtype_kept(
            student.project_qkv, *[rng.randn(*s, dtype=torch.float64) for s in [(5, 3), (3, 4), (3, 4), (3, 2)]]
        )


@pytest.mark.exercise("linear_projection", forbids=[LIBRARY_ATTENTION])
class TestLinearProjection:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_shapes_of_the_worked_example(self, student, reference, rng):
        """Six tokens of width 16 become width 24 with a (24, 16) weight, width 28 with a (28, 16) one."""
        inputs = rng.randn(6, 16)
        for d_out in (24, 28):
            weight = rng.randn(d_out, 16)
            assert_close(student.linear_projection(inputs, weight), reference.linear_projection(inputs, weight))

    @pytest.mark.points(1)
    def test_square_weight(self, student, reference, rng):
        """A square weight is transposed like any other."""
        inputs, weight = rng.randn(5, 4), rng.randn(4, 4)
        assert_close(student.linear_projection(inputs, weight), reference.linear_projection(inputs, weight))

    @pytest.mark.points(2)
    def test_any_leading_dimensions(self, student, reference, rng):
        """One token, a sequence or a batch of sequences: only the last dimension changes."""
        weight = rng.randn(3, 4)
        for leading in [(), (5,), (2, 5), (2, 3, 5), (4, 3, 4)]:
            inputs = rng.randn(*leading, 4)
            assert_close(student.linear_projection(inputs, weight), reference.linear_projection(inputs, weight))

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the inputs and to the weight."""
        inputs, weight, cotangent = rng.randn(2, 5, 4), rng.randn(3, 4), rng.randn(2, 5, 3)
        assert_same_gradients(
            student.linear_projection, reference.linear_projection, inputs, weight, cotangent=cotangent
        )

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """The projection of float64 inputs is as exact as float64 is."""
        inputs, weight = rng.randn(5, 4, dtype=torch.float64), rng.randn(3, 4, dtype=torch.float64)
        assert_close(student.linear_projection(inputs, weight), reference.linear_projection(inputs, weight))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """Inputs and weight are left as they were."""
        assert_inputs_unchanged(student.linear_projection, rng.randn(5, 4), rng.randn(3, 4))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The projection is computed on the inputs' device."""
        assert_follows_device(student.linear_projection, rng.randn(5, 4), rng.randn(3, 4))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the inputs."""
        assert_dtype_kept(
            student.linear_projection, rng.randn(5, 4, dtype=torch.float64), rng.randn(3, 4, dtype=torch.float64)
        )


@pytest.mark.exercise("attention_scores", forbids=[LIBRARY_ATTENTION])
class TestAttentionScores:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_six_words(self, student):
        """The first word's scores are those of the worked example."""
        queries, keys, _ = projections()
        scores = student.attention_scores(queries, keys)
        assert_close(row(scores, 0), golden([0.9231, 1.3545, 1.3241, 0.7910, 0.4032, 1.1330]))

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_every_query_meets_every_key(self, student, reference, rng):
        """Every query is scored against every key, also where there are more keys than queries."""
        queries, keys = rng.randn(5, 4), rng.randn(7, 4)
        assert_close(student.attention_scores(queries, keys), reference.attention_scores(queries, keys))

    @pytest.mark.points(2)
    def test_any_leading_dimensions(self, student, reference, rng):
        """Leading dimensions, such as batch and heads, stay apart."""
        for *leading, Tq, Tk, d_k in [(4, 4, 4, 4), (3, 5, 7, 4), (2, 3, 5, 7, 4), (1, 1, 7, 4), (2, 1, 2, 1, 3, 2)]:
            queries, keys = rng.randn(*leading, Tq, d_k), rng.randn(*leading, Tk, d_k)
            assert_close(student.attention_scores(queries, keys), reference.attention_scores(queries, keys))

    @pytest.mark.points(1)
    def test_gradients_reach_queries_and_keys(self, student, reference, rng):
        """Gradients flow back to the queries and to the keys."""
        queries, keys = rng.randn(2, 5, 4), rng.randn(2, 7, 4)
        cotangent = rng.randn(2, 5, 7)
        assert_same_gradients(student.attention_scores, reference.attention_scores, queries, keys, cotangent=cotangent)

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """Scores of float64 inputs are as exact as float64 is."""
        queries, keys = rng.randn(5, 4, dtype=torch.float64), rng.randn(7, 4, dtype=torch.float64)
        assert_close(student.attention_scores(queries, keys), reference.attention_scores(queries, keys))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The scores have the dtype of the queries."""
        assert_dtype_kept(
            student.attention_scores,
            rng.randn(5, 4, dtype=torch.float64),
            rng.randn(7, 4, dtype=torch.float64),
        )

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """Queries and keys are left as they were."""
        assert_inputs_unchanged(student.attention_scores, rng.randn(5, 4), rng.randn(7, 4))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The scores are computed on the inputs' device."""
        assert_follows_device(student.attention_scores, rng.randn(5, 4), rng.randn(7, 4))


@pytest.mark.exercise("scaled_softmax", forbids=[LIBRARY_ATTENTION])
class TestScaledSoftmax:
    @pytest.mark.public
    @pytest.mark.points(1)
    def test_six_words(self, student):
        """The second word's weights are those of the worked example."""
        queries, keys, _ = projections()
        scores = (queries.double() @ keys.double().T).float()  # (6, 6)
        weights = student.scaled_softmax(scores, 2)
        assert_close(row(weights, 1), golden([0.1500, 0.2264, 0.2199, 0.1311, 0.0906, 0.1820]))

    @pytest.mark.public
    @pytest.mark.points(1)
    def test_keys_of_width_24(self, student):
        """Scores of keys of width 24 are divided by the square root of 24."""
        scores = torch.tensor([[8.5808, -7.6597, 3.2558, 1.0395, 11.1466, -0.4800]])
        weights = student.scaled_softmax(scores, 24)  # (1, 6)
        assert_close(row(weights, 0), golden([0.2912, 0.0106, 0.0982, 0.0625, 0.4917, 0.0458]))

    @pytest.mark.points(2)
    def test_divided_by_the_root_of_d_k(self, student, reference, rng):
        """The scores are divided by the square root of d_k, whatever the number of tokens."""
        scores = rng.randn(5, 5, scale=3.0)
        for d_k in (3, 64):
            assert_close(student.scaled_softmax(scores, d_k), reference.scaled_softmax(scores, d_k))

    @pytest.mark.points(2)
    def test_softmax_runs_over_the_keys(self, student, reference, rng):
        """Each query's weights sum to 1 over the keys, the last dimension, for any leading dimensions."""
        for shape in [(5, 7), (3, 5, 7), (2, 3, 5, 7), (1, 1, 7), (2, 1, 2, 1, 3)]:
            scores = rng.randn(*shape, scale=2.0)
            assert_close(student.scaled_softmax(scores, 4), reference.scaled_softmax(scores, 4))

    @pytest.mark.points(1)
    def test_large_scores_do_not_overflow(self, student, reference, rng):
        """Scores in the thousands give weights, not NaN."""
        scores = rng.randn(5, 7, scale=1e4)
        right = reference.scaled_softmax(scores, 4)
        assert_close(student.scaled_softmax(scores, 4), right, tolerance=LARGE_LOGITS)

    @pytest.mark.points(1)
    def test_gradients_reach_the_scores(self, student, reference, rng):
        """Gradients flow back to the scores."""
        scores, cotangent = rng.randn(2, 5, 7), rng.randn(2, 5, 7)
        assert_same_gradients(student.scaled_softmax, reference.scaled_softmax, scores, 4, cotangent=cotangent)

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """Weights of float64 scores are as exact as float64 is."""
        scores = rng.randn(5, 7, dtype=torch.float64)
        assert_close(student.scaled_softmax(scores, 4), reference.scaled_softmax(scores, 4))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The weights have the dtype of the scores."""
        assert_dtype_kept(student.scaled_softmax, rng.randn(5, 7, dtype=torch.float64), 4)

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """The scores are left as they were."""
        assert_inputs_unchanged(student.scaled_softmax, rng.randn(5, 7), 4)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The weights are computed on the scores' device."""
        assert_follows_device(student.scaled_softmax, rng.randn(5, 7), 4)


@pytest.mark.exercise("context_vectors", forbids=[LIBRARY_ATTENTION])
class TestContextVectors:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_six_words(self, student):
        """The first word's context vector is that of the worked example."""
        weights = torch.tensor([[0.1551, 0.2104, 0.2059, 0.1413, 0.1074, 0.1799]])
        _, _, values = projections()
        assert_close(row(student.context_vectors(weights, values), 0), golden([0.2996, 0.8053]))

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_other_weights(self, student, reference, rng):
        """Row i blends the values by query i's weights; there may be more keys than queries."""
        for Tq, Tk, d_v in [(5, 7, 3), (4, 4, 4)]:
            weights, values = rng.rand(Tq, Tk), rng.randn(Tk, d_v)
            assert_close(student.context_vectors(weights, values), reference.context_vectors(weights, values))

    @pytest.mark.points(2)
    def test_any_leading_dimensions(self, student, reference, rng):
        """Leading dimensions, such as batch and heads, stay apart."""
        for *leading, Tq, Tk, d_v in [(4, 4, 4, 4), (3, 5, 7, 2), (2, 3, 5, 7, 2), (1, 1, 7, 1), (2, 1, 2, 1, 3, 2)]:
            weights, values = rng.rand(*leading, Tq, Tk), rng.randn(*leading, Tk, d_v)
            assert_close(student.context_vectors(weights, values), reference.context_vectors(weights, values))

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the weights and to the values."""
        weights, values, cotangent = rng.rand(2, 5, 7), rng.randn(2, 7, 3), rng.randn(2, 5, 3)
        assert_same_gradients(student.context_vectors, reference.context_vectors, weights, values, cotangent=cotangent)

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """Context vectors of float64 values are as exact as float64 is."""
        weights, values = rng.rand(5, 7, dtype=torch.float64), rng.randn(7, 3, dtype=torch.float64)
        assert_close(student.context_vectors(weights, values), reference.context_vectors(weights, values))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """Weights and values are left as they were."""
        assert_inputs_unchanged(student.context_vectors, rng.rand(5, 7), rng.randn(7, 3))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """Context vectors are computed on the values' device."""
        assert_follows_device(student.context_vectors, rng.rand(5, 7), rng.randn(7, 3))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the inputs."""
        assert_dtype_kept(
            student.context_vectors, rng.rand(5, 7, dtype=torch.float64), rng.randn(7, 3, dtype=torch.float64)
        )


@pytest.mark.exercise("single_query_attention", forbids=[LIBRARY_ATTENTION])
class TestSingleQueryAttention:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_second_word(self, student):
        """The context vector of "is" in "Life is short, eat dessert first" is that of the worked example."""
        context = student.single_query_attention(*life_is_short())
        assert_close(context, golden(LIFE_IS_SHORT_CONTEXT))

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_other_widths(self, student, reference, rng):
        """Values may be wider or narrower than keys."""
        for T, d_k, d_v in [(7, 5, 3), (3, 8, 9), (5, 5, 5)]:
            query, keys, values = rng.randn(d_k, scale=2.0), rng.randn(T, d_k), rng.randn(T, d_v)
            right = reference.single_query_attention(query, keys, values)
            assert_close(student.single_query_attention(query, keys, values), right)

    @pytest.mark.points(1)
    def test_large_scores_do_not_overflow(self, student, reference, rng):
        """Scores in the thousands give a context vector, not NaN."""
        query, keys, values = rng.randn(4, scale=100.0), rng.randn(7, 4, scale=100.0), rng.randn(7, 3)
        right = reference.single_query_attention(query, keys, values)
        assert_close(student.single_query_attention(query, keys, values), right, tolerance=LARGE_LOGITS)

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the query, the keys and the values."""
        arguments = rng.randn(4), rng.randn(7, 4), rng.randn(7, 3)
        assert_same_gradients(
            student.single_query_attention, reference.single_query_attention, *arguments, cotangent=rng.randn(3)
        )

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """The result for float64 inputs is as exact as float64 is."""
        arguments = [rng.randn(*shape, dtype=torch.float64) for shape in [(4,), (7, 4), (7, 3)]]
        assert_close(student.single_query_attention(*arguments), reference.single_query_attention(*arguments))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """Query, keys and values are left as they were."""
        assert_inputs_unchanged(student.single_query_attention, rng.randn(4), rng.randn(7, 4), rng.randn(7, 3))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The result is computed on the inputs' device."""
        assert_follows_device(student.single_query_attention, rng.randn(4), rng.randn(7, 4), rng.randn(7, 3))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the inputs."""
        assert_dtype_kept(
            student.single_query_attention, *[rng.randn(*s, dtype=torch.float64) for s in [(4,), (7, 4), (7, 3)]]
        )


@pytest.mark.exercise("scaled_dot_product_attention", forbids=[LIBRARY_ATTENTION])
class TestScaledDotProductAttention:
    @pytest.mark.public
    @pytest.mark.points(1)
    def test_six_words(self, student):
        """The first two context vectors are those of the worked example."""
        context = student.scaled_dot_product_attention(*projections())
        assert_close(row(context, 0), golden([0.2996, 0.8053]))
        assert_close(row(context, 1), golden([0.3061, 0.8210]))

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_other_widths(self, student, reference, rng):
        """Queries and keys may differ in number, keys and values in width."""
        for Tq, Tk, d_k, d_v in [(5, 7, 5, 3), (5, 5, 8, 8)]:
            arguments = rng.randn(Tq, d_k, scale=2.0), rng.randn(Tk, d_k), rng.randn(Tk, d_v)
            right = reference.scaled_dot_product_attention(*arguments)
            assert_close(student.scaled_dot_product_attention(*arguments), right)

    @pytest.mark.points(2)
    def test_any_leading_dimensions(self, student, reference, rng):
        """Leading dimensions, such as batch and heads, stay apart."""
        for *leading, Tq, Tk, d_k, d_v in [(4, 4, 4, 4, 4), (3, 5, 7, 3, 2), (2, 3, 5, 7, 5, 2), (2, 1, 2, 1, 3, 5, 1)]:
            arguments = rng.randn(*leading, Tq, d_k), rng.randn(*leading, Tk, d_k), rng.randn(*leading, Tk, d_v)
            right = reference.scaled_dot_product_attention(*arguments)
            assert_close(student.scaled_dot_product_attention(*arguments), right)

    @pytest.mark.points(1)
    def test_large_scores_do_not_overflow(self, student, reference, rng):
        """Scores in the thousands give context vectors, not NaN."""
        arguments = rng.randn(5, 4, scale=100.0), rng.randn(7, 4, scale=100.0), rng.randn(7, 3)
        right = reference.scaled_dot_product_attention(*arguments)
        assert_close(student.scaled_dot_product_attention(*arguments), right, tolerance=LARGE_LOGITS)

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to queries, keys and values."""
        arguments, cotangent = (rng.randn(2, 5, 4), rng.randn(2, 7, 4), rng.randn(2, 7, 3)), rng.randn(2, 5, 3)
        assert_same_gradients(
            student.scaled_dot_product_attention,
            reference.scaled_dot_product_attention,
            *arguments,
            cotangent=cotangent,
        )

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """The result for float64 inputs is as exact as float64 is."""
        arguments = [rng.randn(*shape, dtype=torch.float64) for shape in [(5, 4), (7, 4), (7, 3)]]
        right = reference.scaled_dot_product_attention(*arguments)
        assert_close(student.scaled_dot_product_attention(*arguments), right)

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """Queries, keys and values are left as they were."""
        arguments = rng.randn(5, 4), rng.randn(7, 4), rng.randn(7, 3)
        assert_inputs_unchanged(student.scaled_dot_product_attention, *arguments)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The result is computed on the inputs' device."""
        arguments = rng.randn(5, 4), rng.randn(7, 4), rng.randn(7, 3)
        assert_follows_device(student.scaled_dot_product_attention, *arguments)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the inputs."""
        assert_dtype_kept(
            student.scaled_dot_product_attention,
            *[rng.randn(*s, dtype=torch.float64) for s in [(5, 4), (7, 4), (7, 3)]],
        )


@pytest.mark.exercise("score_variance", forbids=[LIBRARY_ATTENTION])
class TestScoreVariance:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_worked_example(self, student):
        """The variances of the worked example are 17.4690 and, scaled, 1.0918."""
        assert_close(student.score_variance(*unit_gaussians()), (golden(17.4690), golden(1.0918)))

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_other_shapes(self, student, reference, rng):
        """It is the variance of all scores together, for any leading dimensions."""
        for *leading, Tq, Tk, d_k in [(3, 4, 5), (2, 3, 3, 4), (2, 2, 3, 4, 9)]:
            queries, keys = rng.randn(*leading, Tq, d_k), rng.randn(*leading, Tk, d_k)
            assert_close(student.score_variance(queries, keys), reference.score_variance(queries, keys))

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to queries and keys."""
        queries, keys, cotangents = rng.randn(2, 3, 4), rng.randn(2, 5, 4), (rng.randn(), rng.randn())
        assert_same_gradients(student.score_variance, reference.score_variance, queries, keys, cotangent=cotangents)

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """Variances of float64 inputs are as exact as float64 is."""
        queries, keys = rng.randn(2, 3, 4, dtype=torch.float64), rng.randn(2, 5, 4, dtype=torch.float64)
        assert_close(student.score_variance(queries, keys), reference.score_variance(queries, keys))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """Queries and keys are left as they were."""
        assert_inputs_unchanged(student.score_variance, rng.randn(2, 3, 4), rng.randn(2, 5, 4))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The variances are computed on the inputs' device."""
        assert_follows_device(student.score_variance, rng.randn(2, 3, 4), rng.randn(2, 5, 4))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The results have the dtype of the inputs."""
        assert_dtype_kept(
            student.score_variance, rng.randn(2, 3, 4, dtype=torch.float64), rng.randn(2, 5, 4, dtype=torch.float64)
        )


@pytest.mark.exercise("SelfAttention_v1", forbids=[])
class TestSelfAttentionV1:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_seed_123(self, student):
        """Built under seed 123, it gives the six words the context vectors of the worked example."""
        student.manual_seed(123)
        attention = student.SelfAttention_v1(3, 2)
        right = golden(
            [
                [0.2996, 0.8053],
                [0.3061, 0.8210],
                [0.3058, 0.8203],
                [0.2948, 0.7939],
                [0.2927, 0.7891],
                [0.2990, 0.8040],
            ]
        )
        assert_close(attention(SIX_WORDS), right)

    @pytest.mark.points(3)
    def test_context_vectors(self, student, reference, rng):
        """With given weights, each token's context vector is the weighted sum of the values."""
        for d_in, d_out, num_tokens in [(5, 3, 7), (3, 8, 4), (4, 1, 3), (3, 5, 1)]:
            attention, x = student.SelfAttention_v1(d_in, d_out), rng.randn(num_tokens, d_in)
            right = transplant(reference.SelfAttention_v1(d_in, d_out), attention)
            assert_close(attention(x), right(x))

    @pytest.mark.points(2)
    def test_gradients_reach_every_weight(self, student, reference, rng):
        """Gradients flow back to the input and to all three weight matrices."""
        attention, x = student.SelfAttention_v1(5, 4), rng.randn(7, 5)
        right = transplant(reference.SelfAttention_v1(5, 4), attention)
        assert_same_gradients(attention, right, x, cotangent=rng.randn(7, 4))

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """After `.to(torch.float64)` the result is as exact as float64 is."""
        attention, x = student.SelfAttention_v1(5, 4), rng.randn(7, 5, dtype=torch.float64)
        right = transplant(reference.SelfAttention_v1(5, 4), attention.to(torch.float64))
        assert_close(attention(x), right(x))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_parameters(self, student):
        """Its parameters are W_query, W_key and W_value, each of shape (d_in, d_out)."""
        right = dict.fromkeys(["W_query", "W_key", "W_value"], (5, 4))
        assert_parameter_shapes(student.SelfAttention_v1(5, 4), right)

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """The input is left as it was."""
        assert_inputs_unchanged(student.SelfAttention_v1(5, 4), rng.randn(7, 5))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """It works on another device once it is moved there."""
        assert_follows_device(student.SelfAttention_v1(5, 4), rng.randn(7, 5))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The context vectors have the dtype of the input."""
        assert_dtype(student.SelfAttention_v1(5, 4)(rng.randn(7, 5)), torch.float32)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_seeds_matter(self, student):
        """Two instances built under different seeds have different weights."""
        assert_seeds_matter(student, "SelfAttention_v1", 5, 4)


@pytest.mark.exercise("SelfAttention_v2", forbids=[])
class TestSelfAttentionV2:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_seed_789(self, student):
        """Built under seed 789, it gives the six words the context vectors of the worked example."""
        student.manual_seed(789)
        attention = student.SelfAttention_v2(3, 2)
        right = golden(
            [
                [-0.0739, 0.0713],
                [-0.0748, 0.0703],
                [-0.0749, 0.0702],
                [-0.0760, 0.0685],
                [-0.0763, 0.0679],
                [-0.0754, 0.0693],
            ]
        )
        assert_close(attention(SIX_WORDS), right)

    @pytest.mark.points(3)
    def test_context_vectors(self, student, reference, rng):
        """With given weights, each token's context vector is the weighted sum of the values."""
        for d_in, d_out, num_tokens in [(5, 3, 7), (3, 8, 4), (4, 4, 4), (4, 1, 3), (3, 5, 1)]:
            attention, x = student.SelfAttention_v2(d_in, d_out), rng.randn(num_tokens, d_in, scale=3.0)
            right = transplant(reference.SelfAttention_v2(d_in, d_out), attention)
            assert_close(attention(x), right(x))

    @pytest.mark.points(2)
    def test_bias(self, student, reference, rng):
        """With qkv_bias=True all three layers have a bias, and use it."""
        attention, x = student.SelfAttention_v2(5, 4, qkv_bias=True), rng.randn(7, 5, scale=3.0)
        right = transplant(reference.SelfAttention_v2(5, 4, qkv_bias=True), attention)
        assert_close(attention(x), right(x))

    @pytest.mark.points(2)
    def test_gradients_reach_every_weight(self, student, reference, rng):
        """Gradients flow back to the input and to all three layers."""
        attention, x = student.SelfAttention_v2(5, 4), rng.randn(7, 5, scale=3.0)
        right = transplant(reference.SelfAttention_v2(5, 4), attention)
        assert_same_gradients(attention, right, x, cotangent=rng.randn(7, 4))

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """After `.to(torch.float64)` the result is as exact as float64 is."""
        attention, x = student.SelfAttention_v2(5, 4), rng.randn(7, 5, dtype=torch.float64)
        right = transplant(reference.SelfAttention_v2(5, 4), attention.to(torch.float64))
        assert_close(attention(x), right(x))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_parameters(self, student):
        """Its parameters are the weights of the layers W_query, W_key and W_value, each of shape (d_out, d_in)."""
        right = dict.fromkeys(["W_query.weight", "W_key.weight", "W_value.weight"], (4, 5))
        assert_parameter_shapes(student.SelfAttention_v2(5, 4), right)

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """The input is left as it was."""
        assert_inputs_unchanged(student.SelfAttention_v2(5, 4), rng.randn(7, 5))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """It works on another device once it is moved there."""
        assert_follows_device(student.SelfAttention_v2(5, 4), rng.randn(7, 5))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The context vectors have the dtype of the input."""
        assert_dtype(student.SelfAttention_v2(5, 4)(rng.randn(7, 5)), torch.float32)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_seeds_matter(self, student):
        """Two instances built under different seeds have different weights."""
        assert_seeds_matter(student, "SelfAttention_v2", 5, 4)
