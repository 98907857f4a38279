"""Unit 3: the hidden graders of causal attention, dropout, and heads side by side."""

import pytest
import torch

from autograder.compare import LARGE_LOGITS, Mismatch, assert_close, describe, golden
from autograder.hidden.cases import SIX_WORDS
from autograder.hidden.causality import assert_blind_to_the_future, assert_causal_weights
from autograder.hidden.dropout import assert_dropped, assert_not_dropped, dropped
from autograder.hidden.dropped_attention import (
    LAYERS,
    TOKENS,
    X,
    assert_each_on_its_own,
    assert_weights_dropped,
    assert_weights_whole,
    dropped_and_repeated,
    structure,
    weights_of_one_head,
)
from autograder.hidden.statements import (
    assert_dtype,
    assert_dtype_kept,
    assert_follows_device,
    assert_inputs_unchanged,
    assert_parameter_shapes,
    assert_same_gradients,
    assert_seeds_matter,
    transplant,
)
from autograder.sandbox.inside.library_calls import LIBRARY_ATTENTION

# The causal weights that the source document prints for the six words.
SIX_WORDS_WEIGHTS = [
    [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    [0.5517, 0.4483, 0.0, 0.0, 0.0, 0.0],
    [0.3800, 0.3097, 0.3103, 0.0, 0.0, 0.0],
    [0.2758, 0.2460, 0.2462, 0.2319, 0.0, 0.0],
    [0.2175, 0.1983, 0.1984, 0.1888, 0.1971, 0.0],
    [0.1935, 0.1663, 0.1666, 0.1542, 0.1666, 0.1529],
]
TWO_HEADS = [
    [-0.4519, 0.2216, 0.4772, 0.1063],
    [-0.5874, 0.0058, 0.5891, 0.3257],
    [-0.6300, -0.0632, 0.6202, 0.3860],
    [-0.5675, -0.0843, 0.5478, 0.3589],
    [-0.5526, -0.0981, 0.5321, 0.3428],
    [-0.5299, -0.1081, 0.5077, 0.3493],
]
TWICE_SIX_WORDS = torch.stack([SIX_WORDS, SIX_WORDS])  # (2, 6, 3)
P = 0.25
ROOM = 5
"""How many tokens fewer than context_length the sequences of the dropout graders have."""


def six_words_scores() -> torch.Tensor:
    """The scores of the six words under the layers that seed 789 draws, (6, 6)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(789)
        W_query, W_key = (torch.nn.Linear(3, 2, bias=False).weight.detach().double() for _ in range(2))
    words = SIX_WORDS.double()
    return ((words @ W_query.T) @ (words @ W_key.T).T).round(decimals=5).float()


def six_words_weights() -> torch.Tensor:
    """Their weights while every word may look at every other one, (6, 6)."""
    return torch.softmax(six_words_scores().double() / 2**0.5, dim=-1).round(decimals=6).float()


@pytest.mark.exercise("causal_mask", forbids=[LIBRARY_ATTENTION])
class TestCausalMask:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_four_tokens(self, student):
        """For four tokens exactly the six places above the diagonal are hidden."""
        right = golden([[0, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0]])
        assert_close(student.causal_mask(4), right)

    @pytest.mark.points(2)
    def test_other_sizes(self, student, reference):
        """It has shape (T, T) for every number of tokens, one token included."""
        for num_tokens in (6, 2, 1, 33):
            assert_close(student.causal_mask(num_tokens), golden(reference.causal_mask(num_tokens).value))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_bool(self, student):
        """The mask is a bool tensor, as masked_fill and torch.where want it."""
        assert_dtype(student.causal_mask(4), torch.bool)


@pytest.mark.exercise("renormalized_causal_weights", forbids=[LIBRARY_ATTENTION])
class TestRenormalizedCausalWeights:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_six_words(self, student):
        """The six words' weights become those of the worked example."""
        assert_causal_weights(student.renormalized_causal_weights(six_words_weights()), golden(SIX_WORDS_WEIGHTS))

    @pytest.mark.points(3)
    def test_other_weights(self, student, reference, rng):
        """Nothing is left above the diagonal and each row sums to 1, for any number of tokens."""
        for num_tokens in (5, 2, 1, 9):
            weights = torch.softmax(rng.randn(num_tokens, num_tokens), dim=-1)
            right = reference.renormalized_causal_weights(weights)
            assert_causal_weights(student.renormalized_causal_weights(weights), right)

    @pytest.mark.points(1)
    def test_little_is_kept(self, student, reference, rng):
        """A row whose weight is nearly all in the future sums to 1 as well."""
        weights = torch.softmax(rng.randn(6, 6) + 3.0 * torch.arange(6), dim=-1)
        right = reference.renormalized_causal_weights(weights)
        assert_causal_weights(student.renormalized_causal_weights(weights), right)

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the weights."""
        weights, cotangent = torch.softmax(rng.randn(5, 5), dim=-1), rng.randn(5, 5)
        assert_same_gradients(
            student.renormalized_causal_weights, reference.renormalized_causal_weights, weights, cotangent=cotangent
        )

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """Weights in float64 stay as exact as float64 is."""
        weights = torch.softmax(rng.randn(5, 5, dtype=torch.float64), dim=-1)
        right = reference.renormalized_causal_weights(weights)
        assert_causal_weights(student.renormalized_causal_weights(weights), right)

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """The weights that come in are left as they were."""
        assert_inputs_unchanged(student.renormalized_causal_weights, rng.rand(5, 5))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The result is computed on the weights' device."""
        assert_follows_device(student.renormalized_causal_weights, rng.rand(5, 5))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the weights."""
        assert_dtype_kept(student.renormalized_causal_weights, rng.rand(5, 5, dtype=torch.float64))


@pytest.mark.exercise("masked_scores", forbids=[LIBRARY_ATTENTION])
class TestMaskedScores:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_three_tokens(self, student):
        """With the causal mask of three tokens, three scores become minus infinity and the others stay."""
        scores = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5], [-2.0, 1.0, 0.75]])
        mask = torch.tensor([[False, True, True], [False, False, True], [False, False, False]])
        right = golden([[0.5, -torch.inf, -torch.inf], [1.5, 0.25, -torch.inf], [-2.0, 1.0, 0.75]])
        assert_close(student.masked_scores(scores, mask), right)

    @pytest.mark.points(2)
    def test_any_mask(self, student, reference, rng):
        """The mask that is passed in decides, whatever it hides."""
        for num_tokens in (5, 2, 8):
            scores, mask = rng.randn(num_tokens, num_tokens, scale=3.0), rng.rand(num_tokens, num_tokens) > 0.7
            assert_close(student.masked_scores(scores, mask), reference.masked_scores(scores, mask))

    @pytest.mark.points(2)
    def test_any_leading_dimensions(self, student, reference, rng):
        """One mask serves every sequence of a batch, and every head."""
        for *leading, num_tokens in [(4, 4), (3, 5), (2, 3, 4), (1, 1, 3), (2, 1, 2, 3)]:
            scores = rng.randn(*leading, num_tokens, num_tokens)
            mask = rng.rand(num_tokens, num_tokens) > 0.5
            assert_close(student.masked_scores(scores, mask), reference.masked_scores(scores, mask))

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the scores that stay."""
        scores, mask = rng.randn(2, 4, 4), rng.rand(4, 4) > 0.6
        cotangent = rng.randn(2, 4, 4).masked_fill(mask, 0.0)
        assert_same_gradients(student.masked_scores, reference.masked_scores, scores, mask, cotangent=cotangent)

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """Scores in float64 stay as exact as float64 is."""
        scores, mask = rng.randn(4, 4, dtype=torch.float64) / 3, rng.rand(4, 4) > 0.6
        assert_close(student.masked_scores(scores, mask), reference.masked_scores(scores, mask))

    @pytest.mark.property
    @pytest.mark.points(2)
    def test_inputs_are_unchanged(self, student, rng):
        """The scores and the mask that come in are left as they were."""
        assert_inputs_unchanged(student.masked_scores, rng.randn(4, 4), rng.rand(4, 4) > 0.6)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The result is computed on the scores' device."""
        assert_follows_device(student.masked_scores, rng.randn(4, 4), rng.rand(4, 4) > 0.6)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the scores."""
        assert_dtype_kept(student.masked_scores, rng.randn(4, 4, dtype=torch.float64), rng.rand(4, 4) > 0.6)


@pytest.mark.exercise("causal_softmax", forbids=[LIBRARY_ATTENTION])
class TestCausalSoftmax:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_six_words(self, student):
        """The six words' causal weights are those of the worked example."""
        assert_causal_weights(student.causal_softmax(six_words_scores(), 2), golden(SIX_WORDS_WEIGHTS))

    @pytest.mark.points(2)
    def test_divided_by_the_root_of_d_k(self, student, reference, rng):
        """The scores are divided by the square root of d_k, whatever the number of tokens."""
        scores = rng.randn(5, 5, scale=3.0)
        for d_k in (3, 64):
            assert_causal_weights(student.causal_softmax(scores, d_k), reference.causal_softmax(scores, d_k))

    @pytest.mark.points(2)
    def test_any_leading_dimensions(self, student, reference, rng):
        """Each query's weights sum to 1 over the keys that it may see, for any leading dimensions."""
        for *leading, num_tokens in [(4, 4), (3, 5), (2, 3, 5), (1, 1), (2, 1, 2, 3), (1,)]:
            scores = rng.randn(*leading, num_tokens, num_tokens, scale=2.0)
            assert_causal_weights(student.causal_softmax(scores, 4), reference.causal_softmax(scores, 4))

    @pytest.mark.points(1)
    def test_large_scores(self, student, reference, rng):
        """Scores in the thousands, all below zero, give no NaN and no weight to the future."""
        scores = rng.randn(6, 6, scale=5e3) - 3e4
        right = reference.causal_softmax(scores, 4)
        assert_causal_weights(student.causal_softmax(scores, 4), right, tolerance=LARGE_LOGITS)

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the scores."""
        scores, cotangent = rng.randn(2, 5, 5), rng.randn(2, 5, 5)
        assert_same_gradients(student.causal_softmax, reference.causal_softmax, scores, 4, cotangent=cotangent)

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """Weights of float64 scores are as exact as float64 is."""
        scores = rng.randn(5, 5, dtype=torch.float64)
        assert_causal_weights(student.causal_softmax(scores, 4), reference.causal_softmax(scores, 4))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """The scores are left as they were."""
        assert_inputs_unchanged(student.causal_softmax, rng.randn(5, 5), 4)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The weights, and the mask on the way to them, are made on the scores' device."""
        assert_follows_device(student.causal_softmax, rng.randn(5, 5), 4)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The weights have the dtype of the scores."""
        assert_dtype_kept(student.causal_softmax, rng.randn(5, 5, dtype=torch.float64), 4)


@pytest.mark.exercise("attention_dropout", forbids=[LIBRARY_ATTENTION])
class TestAttentionDropout:
    @pytest.mark.points(3)
    def test_dropped_and_rescaled(self, student, rng):
        """In training each weight is dropped with probability p, and the kept ones are divided by 1 - p."""
        for p in (0.25, 0.5, 0.8):
            weights = rng.rand(100, 100)
            with student.by_chance() as note:
                seen, repeated = dropped_and_repeated(student.attention_dropout(weights, p), weights, p)
                note((seen, repeated))
            assert_dropped(seen)

    @pytest.mark.points(2)
    def test_each_on_its_own(self, student, rng):
        """Each weight is drawn on its own: sequences, queries and keys do not share what is dropped."""
        weights = rng.rand(3, 40, 50)
        with student.by_chance() as note:
            seen, repeated = dropped_and_repeated(student.attention_dropout(weights, P), weights, P)
            note((seen, repeated))
        assert_dropped(seen)
        assert_each_on_its_own(repeated)

    @pytest.mark.points(1)
    def test_drawn_anew(self, student, rng):
        """Each call draws anew."""
        weights = rng.rand(60, 60)
        with student.by_chance() as note:
            results = [student.attention_dropout(weights, P) for _ in range(2)]
            for result in results:
                dropped(result, weights, P)
            same = torch.equal(*((result == 0) for result in results))
            note(same)
        if same:
            raise Mismatch("Two calls drop exactly the same: is a seed set inside?")

    @pytest.mark.points(1)
    def test_gradients(self, student, rng):
        """Gradients flow back to the kept weights, divided by 1 - p too, and none to the dropped ones."""
        weights = rng.rand(60, 60)
        with student.by_chance() as note:
            seen = student.attention_dropout.observe(weights, P, cotangent=torch.ones(60, 60))
            (gradient, *_) = seen.gradients
            result, _ = dropped_and_repeated(seen.value, weights, P)
            arrives = gradient is not None
            fits = arrives and torch.allclose(gradient * weights, seen.value, rtol=1e-4)
            note((result, arrives, fits))
        if not arrives:
            raise Mismatch("No gradient arrives at the weights: is the result detached from them somewhere?")
        assert_dropped(result)
        if not fits:
            raise Mismatch("The gradient of a kept weight is not 1 / (1 - p), or that of a dropped one is not 0.")

    @pytest.mark.property
    @pytest.mark.public
    @pytest.mark.points(1)
    def test_outside_of_training(self, student, rng):
        """With training=False the weights are as they were."""
        weights = rng.rand(4, 5)
        nearly_all = 1 - 1e-6  # so that dropout, where it does happen, leaves nothing to chance
        assert_close(student.attention_dropout(weights, nearly_all, training=False), golden(weights))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_outside_of_training_for_any_p(self, student, rng):
        """With training=False nothing is dropped and nothing rescaled, whatever p is."""
        weights = rng.rand(30, 30)
        for p in (0.25, 0.5):
            with student.by_chance() as note:
                seen = dropped(student.attention_dropout(weights, p, training=False), weights, p)
                note(seen)
            assert_not_dropped(seen)

    @pytest.mark.property
    @pytest.mark.public
    @pytest.mark.points(1)
    def test_nothing_to_drop(self, student, rng):
        """With p = 0 nothing is dropped."""
        weights = rng.rand(4, 5)
        assert_close(student.attention_dropout(weights, 0.0, training=True), golden(weights))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """The weights that come in are left as they were."""
        for training in (True, False):
            with student.by_chance() as note:
                changed = student.attention_dropout.observe(rng.rand(5, 7), 0.5, training=training).changed
                note(changed)
            if changed:
                raise Mismatch("It writes into the first argument. Operations ending in `_` and `*=` work in place.")

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """What is dropped is drawn on the weights' device."""
        with student.by_chance():
            assert_follows_device(student.attention_dropout, rng.rand(5, 7), 0.5)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the weights."""
        for dtype in (torch.float64, torch.float32):
            with student.by_chance() as note:
                result = student.attention_dropout(rng.rand(5, 7, dtype=dtype), 0.5)
                note(str(result.dtype) if isinstance(result, torch.Tensor) else describe(result))
            assert_dtype(result, dtype)


@pytest.mark.exercise("causal_head", forbids=[LIBRARY_ATTENTION])
class TestCausalHead:
    @pytest.mark.public
    @pytest.mark.points(1)
    def test_two_sequences(self, student, reference, rng):
        """Two sequences of three tokens: the first token's result is its own value."""
        arguments = [rng.randn(2, 3, 4) for _ in range(3)]
        assert_close(student.causal_head(*arguments), reference.causal_head(*arguments))

    @pytest.mark.points(2)
    def test_shape_of_the_worked_example(self, student, reference, rng):
        """Four sequences of eight tokens with a head of width 16 give a result of shape (4, 8, 16)."""
        arguments = [rng.randn(4, 8, 16) for _ in range(3)]
        right = reference.causal_head(*arguments)
        assert right.value.shape == (4, 8, 16)
        assert_close(student.causal_head(*arguments), right)

    @pytest.mark.points(2)
    def test_other_shapes(self, student, reference, rng):
        """It is scaled and causal for any numbers of sequences and tokens, and any width."""
        for shape in [(4, 4, 4), (3, 5, 2), (1, 7, 3), (5, 1, 3), (2, 9, 64), (3, 2, 1)]:
            arguments = [rng.randn(*shape, scale=2.0) for _ in range(3)]
            assert_close(student.causal_head(*arguments), reference.causal_head(*arguments))

    @pytest.mark.points(1)
    def test_large_scores(self, student, reference, rng):
        """Scores in the thousands give no NaN, and no weight to the future."""
        queries, keys, values = rng.rand(2, 6, 4) * 100, rng.randn(2, 6, 4) * 30 - 100, rng.randn(2, 6, 4)
        right = reference.causal_head(queries, keys, values)
        assert_close(student.causal_head(queries, keys, values), right, tolerance=LARGE_LOGITS)

    @pytest.mark.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to queries, keys and values."""
        *arguments, cotangent = (rng.randn(2, 5, 4) for _ in range(4))
        assert_same_gradients(student.causal_head, reference.causal_head, *arguments, cotangent=cotangent)

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """The result for float64 inputs is as exact as float64 is."""
        arguments = [rng.randn(2, 5, 4, dtype=torch.float64) for _ in range(3)]
        assert_close(student.causal_head(*arguments), reference.causal_head(*arguments))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_blind_to_the_future(self, student, rng):
        """A token's result does not change when tokens after it do."""
        assert_blind_to_the_future(student.causal_head, *(rng.randn(2, 6, 4) for _ in range(3)))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_inputs_are_unchanged(self, student, rng):
        """Queries, keys and values are left as they were."""
        assert_inputs_unchanged(student.causal_head, *(rng.randn(2, 5, 4) for _ in range(3)))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """The result, and the mask on the way to it, are made on the inputs' device."""
        assert_follows_device(student.causal_head, *(rng.randn(2, 5, 4) for _ in range(3)))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the inputs."""
        assert_dtype_kept(student.causal_head, *(rng.randn(2, 5, 4, dtype=torch.float64) for _ in range(3)))


@pytest.mark.exercise("CausalAttention", forbids=[])
class TestCausalAttention:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_seed_123(self, student):
        """Built under seed 123, it gives the six words, twice in a batch, the context vectors of the worked example."""
        student.manual_seed(123)
        attention = student.CausalAttention(3, 2, 6, 0.0)
        right = golden([[vector[:2] for vector in TWO_HEADS]] * 2)
        assert_close(attention(TWICE_SIX_WORDS), right)

    @pytest.mark.points(3)
    def test_context_vectors(self, student, reference, rng):
        """With given weights, each token's context vector is the weighted sum of the values up to its own."""
        for b, num_tokens, d_in, d_out in [(2, 7, 5, 3), (4, 4, 4, 4), (3, 5, 3, 8), (1, 6, 3, 2), (3, 1, 4, 2)]:
            attention = student.CausalAttention(d_in, d_out, num_tokens, 0.0)
            right = transplant(reference.CausalAttention(d_in, d_out, num_tokens, 0.0), attention)
            x = rng.randn(b, num_tokens, d_in, scale=3.0)
            assert_close(attention(x), right(x))

    @pytest.mark.points(2)
    def test_fewer_tokens_than_context_length(self, student, reference, rng):
        """Sequences may be shorter than context_length, and of another length in each call."""
        attention = student.CausalAttention(5, 4, 9, 0.0)
        right = transplant(reference.CausalAttention(5, 4, 9, 0.0), attention)
        for num_tokens in (4, 9, 1, 8):
            x = rng.randn(3, num_tokens, 5, scale=3.0)
            assert_close(attention(x), right(x))

    @pytest.mark.points(2)
    def test_bias(self, student, reference, rng):
        """With qkv_bias=True all three layers have a bias, and use it."""
        attention, x = student.CausalAttention(5, 4, 7, 0.0, qkv_bias=True), rng.randn(2, 7, 5, scale=3.0)
        right = transplant(reference.CausalAttention(5, 4, 7, 0.0, qkv_bias=True), attention)
        assert_close(attention(x), right(x))

    @pytest.mark.points(3)
    def test_dropout_in_training(self, student, rng):
        """In training, dropout is on the weights after the softmax: each dropped on its own, the kept ones rescaled."""
        attention = student.CausalAttention(TOKENS, 2 * TOKENS, TOKENS + ROOM, P)
        attention.load_parameters(layers := weights_of_one_head(rng))
        with student.by_chance() as note:
            seen = structure(attention(X), layers, P)
            note(seen)
        assert_weights_dropped(seen)

    @pytest.mark.points(1)
    def test_drawn_anew(self, student, rng):
        """Each call in training draws anew."""
        attention = student.CausalAttention(TOKENS, 2 * TOKENS, TOKENS, P)
        attention.load_parameters(layers := weights_of_one_head(rng))
        with student.by_chance() as note:
            results = [attention(X) for _ in range(2)]
            for result in results:
                structure(result, layers, P)
            same = torch.equal(*results)
            note(same)
        if same:
            raise Mismatch("Two calls in training give exactly the same: nothing is dropped, or a seed is set inside.")

    @pytest.mark.points(2)
    def test_after_eval(self, student, rng):
        """After eval() nothing is dropped, and the attention is causal as ever."""
        attention = student.CausalAttention(TOKENS, 2 * TOKENS, TOKENS + ROOM, P).eval()
        attention.load_parameters(layers := weights_of_one_head(rng))
        with student.by_chance() as note:
            seen = structure(attention(X), layers, P)
            note(seen)
        assert_weights_whole(seen)

    @pytest.mark.points(1)
    def test_large_scores(self, student, reference, rng):
        """Large scores, many of them below zero, give no NaN, and no weight to the future."""
        attention, x = student.CausalAttention(5, 4, 7, 0.0), rng.randn(3, 7, 5, scale=40.0)
        right = transplant(reference.CausalAttention(5, 4, 7, 0.0), attention)
        assert_close(attention(x), right(x), tolerance=LARGE_LOGITS)

    @pytest.mark.points(2)
    def test_gradients_reach_every_weight(self, student, reference, rng):
        """Gradients flow back to the input and to all three layers."""
        attention, x = student.CausalAttention(5, 4, 7, 0.0), rng.randn(2, 6, 5, scale=2.0)
        right = transplant(reference.CausalAttention(5, 4, 7, 0.0), attention)
        assert_same_gradients(attention, right, x, cotangent=rng.randn(2, 6, 4))

    @pytest.mark.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """After `.to(torch.float64)` the result is as exact as float64 is."""
        attention, x = student.CausalAttention(5, 4, 7, 0.0), rng.randn(2, 7, 5, dtype=torch.float64)
        right = transplant(reference.CausalAttention(5, 4, 7, 0.0), attention.to(torch.float64))
        assert_close(attention(x), right(x))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_blind_to_the_future(self, student, rng):
        """A token's context vector does not change when tokens after it do."""
        attention, x = student.CausalAttention(5, 4, 7, 0.0), rng.randn(2, 6, 5, scale=2.0)
        attention.load_parameters({name: rng.randn(4, 5) for name in LAYERS})
        assert_blind_to_the_future(attention, x)

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_parameters(self, student):
        """Its parameters are the weights of the layers W_query, W_key and W_value, each of shape (d_out, d_in)."""
        right = dict.fromkeys(LAYERS, (4, 5))
        assert_parameter_shapes(student.CausalAttention(5, 4, 7, 0.0), right)

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_follows_device(self, student, rng):
        """Once it is moved to another device it works there, its mask too."""
        assert_follows_device(student.CausalAttention(5, 4, 7, 0.0), rng.randn(2, 6, 5))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_inputs_are_unchanged(self, student, rng):
        """The input is left as it was."""
        assert_inputs_unchanged(student.CausalAttention(5, 4, 7, 0.0), rng.randn(2, 6, 5))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_dtype_is_kept(self, student, rng):
        """The context vectors have the dtype of the input."""
        assert_dtype(student.CausalAttention(5, 4, 7, 0.0)(rng.randn(2, 6, 5)), torch.float32)

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_seeds_matter(self, student):
        """Two instances built under different seeds have different weights."""
        assert_seeds_matter(student, "CausalAttention", 5, 4, 7, 0.0)


@pytest.mark.exercise("MultiHeadAttentionWrapper", forbids=[])
class TestMultiHeadAttentionWrapper:
    @pytest.mark.public
    @pytest.mark.points(2)
    def test_seed_123(self, student):
        """Built under seed 123 with two heads, it gives the six words the context vectors of the worked example."""
        student.manual_seed(123)
        attention = student.MultiHeadAttentionWrapper(3, 2, 6, 0.0, 2)
        assert_close(attention(TWICE_SIX_WORDS), golden([TWO_HEADS] * 2))

    @pytest.mark.points(3)
    def test_heads_side_by_side(self, student, reference, rng):
        """With given weights, the heads' results stand side by side in the last dimension, in the heads' order."""
        for b, num_tokens, d_in, d_out, num_heads in [
            (2, 6, 5, 4, 3),
            (3, 3, 4, 4, 2),
            (1, 5, 3, 2, 4),
            (2, 4, 6, 3, 1),
        ]:
            arguments = d_in, d_out, num_tokens, 0.0, num_heads
            attention = student.MultiHeadAttentionWrapper(*arguments)
            right = transplant(reference.MultiHeadAttentionWrapper(*arguments), attention)
            x = rng.randn(b, num_tokens, d_in, scale=3.0)
            assert_close(attention(x), right(x))

    @pytest.mark.points(1)
    def test_fewer_tokens_than_context_length(self, student, reference, rng):
        """Sequences may be shorter than context_length."""
        attention = student.MultiHeadAttentionWrapper(5, 2, 9, 0.0, 3)
        right = transplant(reference.MultiHeadAttentionWrapper(5, 2, 9, 0.0, 3), attention)
        for num_tokens in (9, 4):
            x = rng.randn(2, num_tokens, 5, scale=3.0)
            assert_close(attention(x), right(x))

    @pytest.mark.points(1)
    def test_bias(self, student, reference, rng):
        """With qkv_bias=True the layers of every head have a bias."""
        attention = student.MultiHeadAttentionWrapper(5, 2, 7, 0.0, 3, qkv_bias=True)
        right = transplant(reference.MultiHeadAttentionWrapper(5, 2, 7, 0.0, 3, qkv_bias=True), attention)
        x = rng.randn(2, 6, 5, scale=3.0)
        assert_close(attention(x), right(x))

    @pytest.mark.points(1)
    def test_dropout_in_training(self, student, rng):
        """In training every head drops weights of its own."""
        attention = student.MultiHeadAttentionWrapper(TOKENS, 2 * TOKENS, TOKENS + ROOM, P, 2)
        heads = [weights_of_one_head(rng) for _ in range(2)]
        named = {f"heads.{i}.{name}": layer for i, head in enumerate(heads) for name, layer in head.items()}
        attention.load_parameters(named)
        with student.by_chance() as note:
            result = attention(X)
            halves = result.chunk(2, dim=-1) if isinstance(result, torch.Tensor) and result.dim() else [result] * 2
            seen = [structure(half, head, P) for half, head in zip(halves, heads, strict=False)]
            same = torch.equal(*((half == 0) for half in halves))
            note((tuple(seen), same))
        for one in seen:
            assert_weights_dropped(one)
        if same:
            raise Mismatch("Both heads drop exactly the same; each head draws on its own.")

    @pytest.mark.points(1)
    def test_after_eval(self, student, rng):
        """After eval() no head drops anything."""
        attention = student.MultiHeadAttentionWrapper(TOKENS, 2 * TOKENS, TOKENS, P, 1).eval()
        layers = weights_of_one_head(rng)
        attention.load_parameters({f"heads.0.{name}": layer for name, layer in layers.items()})
        with student.by_chance() as note:
            seen = structure(attention(X), layers, P)
            note(seen)
        assert_weights_whole(seen)

    @pytest.mark.points(1)
    def test_gradients_reach_every_head(self, student, reference, rng):
        """Gradients flow back to the input and to every layer of every head."""
        attention, x = student.MultiHeadAttentionWrapper(5, 2, 7, 0.0, 3), rng.randn(2, 6, 5, scale=2.0)
        right = transplant(reference.MultiHeadAttentionWrapper(5, 2, 7, 0.0, 3), attention)
        assert_same_gradients(attention, right, x, cotangent=rng.randn(2, 6, 6))

    @pytest.mark.points(0.5)
    def test_float64_stays_exact(self, student, reference, rng):
        """After `.to(torch.float64)` the result is as exact as float64 is."""
        attention = student.MultiHeadAttentionWrapper(5, 2, 7, 0.0, 3)
        right = transplant(reference.MultiHeadAttentionWrapper(5, 2, 7, 0.0, 3), attention.to(torch.float64))
        x = rng.randn(2, 7, 5, dtype=torch.float64)
        assert_close(attention(x), right(x))

    @pytest.mark.property
    @pytest.mark.points(1)
    def test_parameters(self, student):
        """Its parameters are those of the heads: heads.0.W_query.weight and so on, each of shape (d_out, d_in)."""
        layers = [f"heads.{i}.W_{name}.weight" for i in range(3) for name in ("query", "key", "value")]
        assert_parameter_shapes(student.MultiHeadAttentionWrapper(5, 2, 7, 0.0, 3), dict.fromkeys(layers, (2, 5)))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_follows_device(self, student, rng):
        """Once it is moved to another device all heads work there."""
        assert_follows_device(student.MultiHeadAttentionWrapper(5, 2, 7, 0.0, 3), rng.randn(2, 6, 5))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_inputs_are_unchanged(self, student, rng):
        """The input is left as it was."""
        assert_inputs_unchanged(student.MultiHeadAttentionWrapper(5, 2, 7, 0.0, 3), rng.randn(2, 6, 5))

    @pytest.mark.property
    @pytest.mark.points(0.5)
    def test_seeds_matter(self, student):
        """Two instances built under different seeds have different weights."""
        assert_seeds_matter(student, "MultiHeadAttentionWrapper", 5, 2, 7, 0.0, 3)
