"""The hidden graders of `attention_dropout`."""

import torch

from autograder.core import complaints, random_results
from autograder.core.comparison import Mismatch, any_identical, assert_close, describe, golden
from autograder.graders import contracts
from autograder.graders.statements import assert_dtype, assert_follows_device, assert_unchanged

from ..by_chance import LONE, assert_lone_weights_fall
from ..dropped_attention import dropped_and_repeated, pairs_of
from .worked_examples import P


@contracts.exercise("attention_dropout")
class TestAttentionDropout(contracts.Graders):
    @contracts.points(3)
    def test_dropped_and_rescaled(self, student, rng):
        """In training each weight is dropped with probability p, and the kept ones are divided by 1 - p."""
        for p in (0.25, 0.5, 0.8):
            weights = rng.rand(100, 100)
            with student.by_chance() as note:
                seen, repeated = dropped_and_repeated(student.attention_dropout(weights, p), weights, p)
                note((seen, repeated))
            random_results.assert_dropped(seen)

    @contracts.points(2, essential=True)
    def test_each_on_its_own(self, student, rng):
        """Each weight is dropped independently: sequences, queries and keys do not share a pattern."""
        for weights in (rng.rand(3, 40, 50), rng.rand(2, 40, 40)):
            with student.by_chance() as note:
                result = student.attention_dropout(weights, P)
                seen, repeated = dropped_and_repeated(result, weights, P)
                kept, paired = random_results.rules(result == 0, repeated), pairs_of(result)
                note((seen, repeated, kept, paired))
            random_results.assert_dropped(seen)
            random_results.assert_each_on_its_own(repeated, kept, paired)
        alone = rng.rand(LONE, 1, 1) + 1.0
        assert_lone_weights_fall(student, lambda: student.attention_dropout(alone, P), alone.shape)

    @contracts.points(1, property=True)
    def test_drawn_anew(self, student, rng):
        """Each call drops different weights."""
        weights = rng.rand(60, 60)
        with student.by_chance() as note:
            inputs = (weights, weights, weights.flip(0), weights)
            results = [student.attention_dropout(one, P) for one in inputs]
            for result, one in zip(results, inputs, strict=True):
                random_results.dropped(result, one, P)
            gone = [result == 0 for result in results]
            first, again, flipped, last = gone
            same = any_identical(gone)
            note(
                (any_identical([first, again, last]), torch.equal(first, flipped), torch.equal(first, flipped.flip(0)))
            )
        if same:
            raise Mismatch("Two calls drop exactly the same places: is a seed set, or a draw kept, inside?")

    @contracts.points(1)
    def test_gradients(self, student, rng):
        """Gradients of the kept weights are divided by 1 - p, too; those of the dropped weights are 0."""
        weights = rng.rand(60, 60)
        with student.by_chance() as note:
            seen = student.attention_dropout.observe(weights, P, cotangent=torch.ones(60, 60))
            (gradient, *_) = seen.gradients
            result, _ = dropped_and_repeated(seen.value, weights, P)
            arrives = isinstance(gradient, torch.Tensor)
            fits = arrives and gradient.shape == weights.shape and not gradient.is_complex()
            fits = fits and torch.allclose(gradient.double() * weights, seen.value.double(), rtol=1e-4)
            outside = student.attention_dropout.observe(weights, P, False, cotangent=torch.ones(60, 60))
            if not isinstance(outside.value, torch.Tensor) or outside.value.shape != weights.shape:
                raise Mismatch(complaints.of_another_shape(describe(outside.value), weights.shape))
            arrives_outside = isinstance(outside.gradients[0], torch.Tensor)
            note((result, arrives, fits, arrives_outside))
        if not arrives:
            raise Mismatch(random_results.DETACHED)
        if not arrives_outside:
            raise Mismatch("With training=False no gradient arrives at the weights: is the result detached from them?")
        random_results.assert_dropped(result)
        if not fits:
            raise Mismatch("The gradient of a kept weight is not 1 / (1 - p), or that of a dropped one is not 0.")

    @contracts.points(1, public=True, property=True)
    def test_outside_of_training(self, student, rng):
        """With training=False the weights are returned unchanged."""
        weights = rng.rand(4, 5)
        nearly_all = 1 - 1e-6  # so that dropout, where it does happen, leaves nothing to chance
        assert_close(student.attention_dropout(weights, nearly_all, False), golden(weights))

    @contracts.points(1, property=True, essential=True)
    def test_outside_of_training_for_any_p(self, student, rng):
        """With training=False nothing is dropped or rescaled, regardless of p."""
        weights = rng.rand(30, 30)
        for p in (0.25, 0.5):
            with student.by_chance() as note:
                seen = random_results.dropped(student.attention_dropout(weights, p, False), weights, p)
                note(seen)
            random_results.assert_not_dropped(seen)

    @contracts.points(1, property=True)
    def test_nothing_to_drop(self, student, rng):
        """With p = 0 nothing is dropped."""
        weights = rng.rand(6, 6)
        with student.by_chance() as note:  # what ignores p drops by chance
            result = student.attention_dropout(weights, 0.0, True)
            note(random_results.dropped(result, weights, 0.0))
        assert_close(result, golden(weights))

    @contracts.points(1, property=True)
    def test_inputs_are_unchanged(self, student, rng):
        """The given weights are not modified."""
        weights = rng.rand(5, 7)
        for given, training in [(weights, True), (weights, False), (weights.double(), True)]:
            with student.by_chance() as note:
                changed = student.attention_dropout.observe(given.clone(), 0.5, training).changed
                note(changed)
            assert_unchanged(changed)

    @contracts.points(0.5, property=True, device=True)
    def test_follows_device(self, student, rng):
        """The random numbers are drawn on the weights' device."""
        with student.by_chance():
            assert_follows_device(student.attention_dropout, rng.rand(5, 7), 0.5)

    @contracts.points(0.5, property=True)
    def test_dtype_is_kept(self, student, rng):
        """The result has the dtype of the weights."""
        for dtype in (torch.float64, torch.float32):
            with student.by_chance() as note:
                result = student.attention_dropout(rng.of(dtype).rand(5, 7), 0.5)
                note(str(result.dtype) if isinstance(result, torch.Tensor) else describe(result))
            assert_dtype(result, dtype)
