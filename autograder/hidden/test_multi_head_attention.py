"""Unit 4: the hidden graders of attention with several heads."""

import pytest
import torch

from autograder.compare import LARGE_LOGITS, Mismatch, assert_close, golden
from autograder.hidden.cases import SIX_WORDS
from autograder.hidden.shown_weights import (
    assert_dropped_in_heads,
    assert_nothing_dropped_in_heads,
    dropped_in_heads,
    identities,
    parameters_that_show_weights,
)
from autograder.hidden.statements import (
    assert_dtype,
    assert_dtype_kept,
    assert_follows_device,
    assert_inputs_unchanged,
    assert_parameter_shapes,
    assert_refuses,
    assert_same_gradients,
    assert_seeds_matter,
    transplant,
)
from autograder.sandbox.inside.library_calls import LIBRARY_ATTENTION


def twice(sequence: torch.Tensor) -> torch.Tensor:
    """A batch of the same sequence twice, as the source document's worked examples have it."""
    return torch.stack((sequence, sequence))


# The queries, keys and context vectors that the source document prints: three tokens, two heads of width 3.
QUERIES = torch.tensor(
    [
        [-0.2077, 0.0027, 0.3938, 0.3667, -0.3282, 0.4679],
        [-0.0103, 0.0498, 0.2366, 0.4801, -0.8703, 0.1963],
        [-0.3723, -0.0854, 0.3992, 0.4328, -0.6178, 0.7257],
    ]
)
QUERIES_BY_HEAD = torch.tensor(
    [
        [[-0.2077, 0.0027, 0.3938], [-0.0103, 0.0498, 0.2366], [-0.3723, -0.0854, 0.3992]],
        [[0.3667, -0.3282, 0.4679], [0.4801, -0.8703, 0.1963], [0.4328, -0.6178, 0.7257]],
    ]
)
KEYS_BY_HEAD = torch.tensor(
    [
        [[0.3515, 0.2409, -0.1456], [-0.1191, 0.5451, 0.1034], [-0.1510, 0.5555, -0.0889]],
        [[0.4784, 0.1651, 0.4541], [0.3757, 0.0823, 0.0383], [0.6659, 0.0394, -0.1219]],
    ]
)
CONTEXT_BY_HEAD = torch.tensor(
    [
        [[-0.1674, -0.5873, -0.3776], [-0.1674, -0.5863, -0.3775], [-0.1673, -0.5880, -0.3772]],
        [[-0.2045, 0.2991, 0.2583], [-0.2103, 0.3089, 0.2634], [-0.2006, 0.2925, 0.2540]],
    ]
)
THREE_TOKENS = torch.tensor(
    [
        [0.2745, 0.6584, 0.2775, 0.8573, 0.6584, 0.2775],
        [0.8993, 0.0390, 0.9268, 0.7388, 0.8993, 0.0390],
        [0.7179, 0.7058, 0.9156, 0.4340, 0.7179, 0.9156],
    ]
)


@pytest.mark.exercise("stacked_heads_attention", forbids=[LIBRARY_ATTENTION])
class TestStackedHeadsAttention:
    @staticmethod
    def arguments(rng, h, num_tokens, d_in, d_k, d_v, dtype=torch.float32, scale=1.0):
        return (
            rng.randn(num_tokens, d_in, dtype=dtype),
            rng.randn(h, d_k, d_in, scale=scale, dtype=dtype),
            rng.randn(h, d_k, d_in, scale=scale, dtype=dtype),
            rng.randn(h, d_v, d_in, scale=0.5, dtype=dtype),
        )

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_shapes_of_the_worked_example(self, student, reference, rng):
        """Three heads with keys of width 24 and values of width 28 turn (6, 16) into (3, 6, 28)."""
        arguments = self.arguments(rng, 3, 6, 16, 24, 28, scale=0.25)
        right = reference.stacked_heads_attention(*arguments)
        assert tuple(right.value.shape) == (3, 6, 28)
        assert_close(student.stacked_heads_attention(*arguments), right)

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_other_widths(self, student, reference, rng):
        """Each head attends with its own weights; values may be wider or narrower than keys."""
        for h, num_tokens, d_in, d_k, d_v in [(2, 5, 4, 3, 6), (4, 3, 5, 2, 1)]:
            arguments = self.arguments(rng, h, num_tokens, d_in, d_k, d_v)
            assert_close(student.stacked_heads_attention(*arguments), reference.stacked_heads_attention(*arguments))

    @pytest.mark.points(2)
    def test_equal_widths(self, student, reference, rng):
        """Weights are transposed, and heads kept apart, also where all widths are equal."""
        for h, num_tokens, width in [(4, 4, 4), (3, 5, 3), (1, 4, 2)]:
            arguments = self.arguments(rng, h, num_tokens, width, width, width)
            assert_close(student.stacked_heads_attention(*arguments), reference.stacked_heads_attention(*arguments))

    @pytest.mark.points(1)
    def test_large_scores_do_not_overflow(self, student, reference, rng):
        """Scores in the thousands give context vectors, not NaN."""
        arguments = self.arguments(rng, 3, 5, 4, 2, 3, scale=30.0)
        right = reference.stacked_heads_attention(*arguments)
        assert_close(student.stacked_heads_attention(*arguments), right, tolerance=LARGE_LOGITS)

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the inputs and to all three weights."""
        arguments, cotangent = self.arguments(rng, 3, 5, 4, 2, 6), rng.randn(3, 5, 6)
        assert_same_gradients(
            student.stacked_heads_attention, reference.stacked_heads_attention, *arguments, cotangent=cotangent
        )

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """The result for float64 inputs is as exact as float64 is."""
        arguments = self.arguments(rng, 3, 5, 4, 2, 6, dtype=torch.float64)
        assert_close(student.stacked_heads_attention(*arguments), reference.stacked_heads_attention(*arguments))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """Inputs and weights are left as they were."""
        assert_inputs_unchanged(student.stacked_heads_attention, *self.arguments(rng, 3, 5, 4, 2, 6))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The result is computed on the inputs' device."""
        assert_follows_device(student.stacked_heads_attention, *self.arguments(rng, 3, 5, 4, 2, 6))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the inputs."""
        assert_dtype_kept(student.stacked_heads_attention, *self.arguments(rng, 3, 5, 4, 2, 6, dtype=torch.float64))


@pytest.mark.exercise("split_heads", forbids=[LIBRARY_ATTENTION])
class TestSplitHeads:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_worked_example(self, student):
        """Three queries of width 6 become two heads of width 3, as in the worked example."""
        assert_close(student.split_heads(twice(QUERIES), 2), golden(twice(QUERIES_BY_HEAD)))

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_other_shapes(self, student, reference, rng):
        """Head 0 gets the first piece of every token, head 1 the second, and so on."""
        for b, num_tokens, d, h in [(2, 5, 12, 3), (3, 4, 10, 5)]:
            x = rng.randn(b, num_tokens, d)
            assert_close(student.split_heads(x, h), reference.split_heads(x, h))

    @pytest.mark.points(2)
    def test_equal_sizes(self, student, reference, rng):
        """Batch, tokens and heads keep their places where their sizes are equal, or 1."""
        for b, num_tokens, d, h in [(4, 4, 16, 4), (3, 3, 6, 3), (3, 1, 6, 2), (2, 5, 4, 1), (1, 5, 3, 3)]:
            x = rng.randn(b, num_tokens, d)
            assert_close(student.split_heads(x, h), reference.split_heads(x, h))

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the input."""
        x, cotangent = rng.randn(2, 5, 12), rng.randn(2, 3, 5, 4)
        assert_same_gradients(student.split_heads, reference.split_heads, x, 3, cotangent=cotangent)

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """float64 numbers come out as they went in."""
        x = rng.randn(2, 5, 12, dtype=torch.float64)
        assert_close(student.split_heads(x, 3), reference.split_heads(x, 3))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_refuses_what_cannot_be_split(self, student, rng):
        """Where the width is not divisible by the number of heads it raises ValueError or AssertionError."""
        for d, h in [(6, 4), (3, 2), (2, 4)]:
            assert_refuses(student.split_heads, rng.randn(2, 8, d), h)

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_input_is_unchanged(self, student, rng):
        """The input is left as it was."""
        assert_inputs_unchanged(student.split_heads, rng.randn(2, 5, 12), 3)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The result is on the input's device."""
        assert_follows_device(student.split_heads, rng.randn(2, 5, 12), 3)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the input."""
        assert_dtype_kept(student.split_heads, rng.randn(2, 5, 12, dtype=torch.float64), 3)


@pytest.mark.exercise("multi_head_scores", forbids=[LIBRARY_ATTENTION])
class TestMultiHeadScores:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_worked_example(self, student):
        """The scores of the two heads are those of the worked example."""
        right = [
            [[-0.1297, 0.0669, -0.0021], [-0.0261, 0.0528, 0.0082], [-0.2096, 0.0390, -0.0267]],
            [[0.3337, 0.1287, 0.1743], [0.1751, 0.1163, 0.2615], [0.4345, 0.1396, 0.1754]],
        ]
        scores = student.multi_head_scores(twice(QUERIES_BY_HEAD), twice(KEYS_BY_HEAD))
        assert_close(scores, golden([right, right]))

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_other_shapes(self, student, reference, rng):
        """Every query of a head meets every key of the same head, and the scores are not scaled yet."""
        for shape in [(2, 3, 5, 4), (3, 2, 4, 6)]:
            queries, keys = rng.randn(*shape), rng.randn(*shape)
            assert_close(student.multi_head_scores(queries, keys), reference.multi_head_scores(queries, keys))

    @pytest.mark.points(2)
    def test_equal_sizes(self, student, reference, rng):
        """Batch and heads stay apart also where sizes are equal, or 1."""
        for shape in [(4, 4, 4, 4), (3, 3, 5, 3), (1, 4, 3, 2), (3, 1, 5, 4), (2, 3, 1, 4), (2, 3, 5, 1)]:
            queries, keys = rng.randn(*shape), rng.randn(*shape)
            assert_close(student.multi_head_scores(queries, keys), reference.multi_head_scores(queries, keys))

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the queries and to the keys."""
        queries, keys, cotangent = rng.randn(2, 3, 5, 4), rng.randn(2, 3, 5, 4), rng.randn(2, 3, 5, 5)
        assert_same_gradients(
            student.multi_head_scores, reference.multi_head_scores, queries, keys, cotangent=cotangent
        )

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """Scores of float64 inputs are as exact as float64 is."""
        queries, keys = (rng.randn(2, 3, 5, 4, dtype=torch.float64) for _ in range(2))
        assert_close(student.multi_head_scores(queries, keys), reference.multi_head_scores(queries, keys))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """Queries and keys are left as they were."""
        assert_inputs_unchanged(student.multi_head_scores, rng.randn(2, 3, 5, 4), rng.randn(2, 3, 5, 4))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The scores are computed on the inputs' device."""
        assert_follows_device(student.multi_head_scores, rng.randn(2, 3, 5, 4), rng.randn(2, 3, 5, 4))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The scores have the dtype of the inputs."""
        assert_dtype_kept(student.multi_head_scores, *(rng.randn(2, 3, 5, 4, dtype=torch.float64) for _ in range(2)))


@pytest.mark.exercise("merge_heads", forbids=[LIBRARY_ATTENTION])
class TestMergeHeads:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_worked_example(self, student):
        """Each token of the worked example gets its piece from head 0, then its piece from head 1."""
        right = [
            [-0.1674, -0.5873, -0.3776, -0.2045, 0.2991, 0.2583],
            [-0.1674, -0.5863, -0.3775, -0.2103, 0.3089, 0.2634],
            [-0.1673, -0.5880, -0.3772, -0.2006, 0.2925, 0.2540],
        ]
        assert_close(student.merge_heads(twice(CONTEXT_BY_HEAD)), golden([right, right]))

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_other_shapes(self, student, reference, rng):
        """(b, h, T, hd) becomes (b, T, h * hd), each token's numbers together."""
        for shape in [(2, 3, 5, 4), (3, 5, 4, 2)]:
            x = rng.randn(*shape)
            assert_close(student.merge_heads(x), reference.merge_heads(x))

    @pytest.mark.points(2)
    def test_equal_sizes(self, student, reference, rng):
        """Batch, heads and tokens keep their places where their sizes are equal."""
        for shape in [(4, 4, 4, 4), (3, 3, 3, 2), (2, 3, 2, 3)]:
            x = rng.randn(*shape)
            assert_close(student.merge_heads(x), reference.merge_heads(x))

    @pytest.mark.points(1)
    def test_one_head_or_one_token(self, student, reference, rng):
        """It works for one head, one token, a batch of one and heads of width 1."""
        for shape in [(2, 1, 5, 4), (2, 3, 1, 4), (1, 1, 1, 4), (2, 1, 4, 1)]:
            x = rng.randn(*shape)
            assert_close(student.merge_heads(x), reference.merge_heads(x))

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the input."""
        x, cotangent = rng.randn(2, 3, 5, 4), rng.randn(2, 5, 12)
        assert_same_gradients(student.merge_heads, reference.merge_heads, x, cotangent=cotangent)

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """float64 numbers come out as they went in."""
        x = rng.randn(2, 3, 5, 4, dtype=torch.float64)
        assert_close(student.merge_heads(x), reference.merge_heads(x))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_input_is_unchanged(self, student, rng):
        """The input is left as it was."""
        assert_inputs_unchanged(student.merge_heads, rng.randn(2, 3, 5, 4))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The result is on the input's device."""
        assert_follows_device(student.merge_heads, rng.randn(2, 3, 5, 4))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the input."""
        assert_dtype_kept(student.merge_heads, rng.randn(2, 3, 5, 4, dtype=torch.float64))


class CausalHeads:
    """What holds for all three classes."""

    name: str
    projections: tuple[str, ...]
    wider = 0
    """How much wider an input vector is than d_out."""

    def build(self, face, d_out, context_length, num_heads, dropout=0.0, **named):
        return getattr(face, self.name)(d_out + self.wider, d_out, context_length, dropout, num_heads, **named)

    def pair(self, student, reference, *sizes, **named):
        """The student's instance and the reference's, with the same parameters."""
        attention = self.build(student, *sizes, **named)
        return attention, transplant(self.build(reference, *sizes, **named), attention)

    def pair_that_shows_weights(self, student, reference, num_tokens, num_heads, dropout):
        """Two instances whose output is their weights, and the input that they need."""
        x = identities(num_tokens, num_heads)
        sizes = (x.shape[-1], x.shape[-1], num_tokens, dropout, num_heads)
        attention, right = getattr(student, self.name)(*sizes), getattr(reference, self.name)(*sizes).eval()
        right.load_parameters(parameters_that_show_weights(right.named_parameters()))
        return attention, transplant(right, attention), x

    @pytest.mark.points(3)
    def test_context_vectors(self, student, reference, rng):
        """With given weights, each token attends to itself and the tokens before it, head by head."""
        for b, num_tokens, d_out, h in [(2, 5, 12, 3), (3, 4, 6, 2), (4, 4, 16, 4), (2, 6, 4, 1), (1, 1, 6, 3)]:
            attention, right = self.pair(student, reference, d_out, num_tokens, h)
            x = rng.randn(b, num_tokens, d_out + self.wider, scale=2.0)
            assert_close(attention(x), right(x))

    @pytest.mark.points(2)
    def test_shorter_sequences(self, student, reference, rng):
        """A sequence may have fewer tokens than context_length."""
        attention, right = self.pair(student, reference, 12, 7, 3)
        for b, num_tokens in [(2, 5), (3, 1), (1, 6)]:
            x = rng.randn(b, num_tokens, 12 + self.wider, scale=2.0)
            assert_close(attention(x), right(x))

    @pytest.mark.points(1)
    def test_large_scores_do_not_overflow(self, student, reference, rng):
        """With scores in the thousands there is no NaN, and no weight on later tokens."""
        attention, right = self.build(student, 12, 5, 3), self.build(reference, 12, 5, 3)
        parameters = right.named_parameters()
        right.load_parameters({**parameters, "W_query.weight": parameters["W_query.weight"] * 3000})
        transplant(right, attention)
        x = rng.randn(2, 5, 12 + self.wider)
        assert_close(attention(x), right(x), tolerance=LARGE_LOGITS)

    @pytest.mark.points(1)
    def test_bias(self, student, reference, rng):
        """With qkv_bias=True the projections have a bias, and use it."""
        attention, right = self.pair(student, reference, 12, 5, 3, qkv_bias=True)
        x = rng.randn(2, 5, 12 + self.wider, scale=2.0)
        assert_close(attention(x), right(x))

    @pytest.mark.points(2)
    def test_gradients_reach_every_weight(self, student, reference, rng):
        """Gradients flow back to the input and to every layer."""
        attention, right = self.pair(student, reference, 12, 5, 3)
        x = rng.randn(2, 5, 12 + self.wider, scale=2.0)
        assert_same_gradients(attention, right, x, cotangent=rng.randn(2, 5, 12))

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """After `.to(torch.float64)` the result is as exact as float64 is."""
        attention = self.build(student, 12, 5, 3).to(torch.float64)
        right = transplant(self.build(reference, 12, 5, 3), attention)
        x = rng.randn(2, 5, 12 + self.wider, dtype=torch.float64)
        assert_close(attention(x), right(x))

    @pytest.mark.points(2)
    def test_dropout_in_training(self, student, reference):
        """In training each attention weight is dropped with the given probability, and the kept ones are divided by
        one minus it."""
        attention, right, x = self.pair_that_shows_weights(student, reference, 32, 3, 0.3)
        attention.train()
        with student.by_chance() as note:
            seen = dropped_in_heads(attention(x), right(x).value, 3, 0.3)
            note(seen)
        assert_dropped_in_heads(seen)

    @pytest.mark.points(1)
    def test_no_dropout_in_evaluation(self, student, reference):
        """In evaluation mode nothing is dropped, and the mask stays."""
        attention, right, x = self.pair_that_shows_weights(student, reference, 32, 3, 0.3)
        attention.eval()
        with student.by_chance() as note:
            result, expected = attention(x), right(x)
            seen = dropped_in_heads(result, expected.value, 3, 0.3)
            note(seen)
        assert_nothing_dropped_in_heads(seen)
        assert_close(result, expected)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_each_call_drops_anew(self, student, reference):
        """Two calls in training drop different weights."""
        attention, _, x = self.pair_that_shows_weights(student, reference, 32, 3, 0.3)
        attention.train()
        with student.by_chance() as note:
            first, second = attention(x), attention(x)
            note(alike := all(isinstance(one, torch.Tensor) for one in (first, second)) and torch.equal(first, second))
        if alike:
            raise Mismatch("Two calls drop the same weights, or none: is a seed set in forward?")

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_refuses_what_cannot_be_split(self, student):
        """Where d_out is not divisible by num_heads it raises ValueError or AssertionError when it is built."""
        for d_out, h in [(6, 4), (9, 2), (2, 4)]:
            assert_refuses(self.build, student, d_out, 8, h)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_parameters(self, student):
        """Its parameters are those of its layers, which have the names and shapes given in the exercise."""
        right = {f"{projection}.weight": (12, 12 + self.wider) for projection in self.projections}
        right |= {"out_proj.weight": (12, 12), "out_proj.bias": (12,)}
        assert_parameter_shapes(self.build(student, 12, 5, 3), right)

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """The input is left as it was."""
        assert_inputs_unchanged(self.build(student, 12, 5, 3), rng.randn(2, 5, 12 + self.wider))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """It works on another device once it is moved there: its mask moves with it."""
        assert_follows_device(self.build(student, 12, 5, 3), rng.randn(2, 5, 12 + self.wider))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the input."""
        assert_dtype(self.build(student, 12, 5, 3)(rng.randn(2, 5, 12 + self.wider)), torch.float32)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_seeds_matter(self, student):
        """Two instances built under different seeds have different weights."""
        assert_seeds_matter(student, self.name, 12 + self.wider, 12, 5, 0.0, 3)


@pytest.mark.exercise("MultiHeadAttention", forbids=[])
class TestMultiHeadAttention(CausalHeads):
    name = "MultiHeadAttention"
    projections = ("W_query", "W_key", "W_value")
    wider = 2

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_seed_123(self, student):
        """Built under seed 123 with two heads and d_out = 2, it gives the six words their vectors of the worked
        example."""
        student.manual_seed(123)
        attention = student.MultiHeadAttention(3, 2, 6, 0.0, num_heads=2)
        right = [
            [0.3190, 0.4858],
            [0.2943, 0.3897],
            [0.2856, 0.3593],
            [0.2693, 0.3873],
            [0.2639, 0.3928],
            [0.2575, 0.4028],
        ]
        assert_close(attention(twice(SIX_WORDS)), golden([right, right]))


@pytest.mark.exercise("OptimizedMultiHeadAttention", forbids=[])
class TestOptimizedMultiHeadAttention(CausalHeads):
    name = "OptimizedMultiHeadAttention"
    projections = ("W_query", "W_key")

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_seed_123(self, student):
        """Built under seed 123 with two heads, it gives three tokens of width 6 the right vectors."""
        student.manual_seed(123)
        attention = student.OptimizedMultiHeadAttention(6, 6, 3, 0.0, num_heads=2)
        right = [
            [-0.0395, 0.2886, 0.5358, 0.1082, 0.6340, -0.1723],
            [0.0924, 0.2635, 0.4175, -0.0971, 0.8621, -0.1494],
            [-0.0216, 0.3041, 0.3614, -0.0687, 0.8802, -0.1010],
        ]
        assert_close(attention(twice(THREE_TOKENS)), golden([right, right]))


@pytest.mark.exercise("EfficientMultiHeadAttention", forbids=[])
class TestEfficientMultiHeadAttention(CausalHeads):
    name = "EfficientMultiHeadAttention"
    projections = ("W_query",)

    @pytest.mark.public
    @pytest.mark.points(2)
    def test_seed_123(self, student):
        """Built under seed 123 with three heads, it gives the six words their vectors of the worked example."""
        student.manual_seed(123)
        attention = student.EfficientMultiHeadAttention(3, 3, 6, 0.0, num_heads=3)
        right = [
            [0.1366, -0.2666, 0.6299],
            [0.0486, -0.3934, 0.4185],
            [0.0216, -0.4372, 0.3483],
            [-0.0181, -0.3713, 0.3232],
            [-0.0167, -0.3554, 0.2943],
            [-0.0415, -0.3257, 0.2941],
        ]
        assert_close(attention(twice(SIX_WORDS)), golden([right, right]))
