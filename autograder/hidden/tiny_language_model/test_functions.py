"""The hidden graders of positions, of the loss, and of choosing and writing tokens."""

import torch

from autograder.core import random_results
from autograder.core.comparison import Mismatch, assert_close, golden, identical
from autograder.graders import contracts
from autograder.graders.statements import (
    assert_dtype,
    assert_follows_device,
    assert_gives_dtype,
    assert_proven,
    assert_unchanged,
    in_dtype,
    in_each,
)

from . import drawing
from .drawing import whole


@contracts.exercise("sinusoidal_positions", forbids=())
class TestSinusoidalPositions(contracts.Graders):
    test_three_positions = contracts.gives(
        "For three positions and d = 4 the result is what the formula gives by hand.",
        (3, 4),
        golden([[0, 1, 0, 1], [0.8415, 0.5403, 0.0100, 0.99995], [0.9093, -0.4161, 0.0200, 0.9998]]),
    )

    @contracts.points(1, public=True)
    def test_six_columns(self, student):
        """For d = 6 the exponents are 0, 1/3 and 2/3; each angle has a sine and, in the next column, a cosine."""
        right = [[0, 1, 0, 1, 0, 1], [0.8415, 0.5403, 0.0464, 0.9989, 0.0022, 1.0]]
        assert_close(student.sinusoidal_positions(2, 6), golden(right))

    @contracts.points(4)
    def test_other_sizes(self, student, reference, rng):
        """The result has shape (T, d) for any number of positions and any even d; each pair of columns has its own
        angle."""
        drawn = [(whole(rng, 8, 12), 6), (whole(rng, 5, 7), 10), (whole(rng, 25, 40), 2), (14, 14), (6, 30)]
        in_each(drawn, lambda sizes: self.assert_agree(student, reference, *sizes))

    @contracts.points(1)
    def test_one_position(self, student, reference, rng):
        """A single row is that of position 0, 0 1 0 1 and so on, for any d."""
        drawn = [2 * whole(rng, 5, 9), 2]
        in_each(drawn, lambda d: self.assert_agree(student, reference, 1, d))

    @contracts.points(1, property=True)
    def test_float32(self, student, reference):
        """The result is a float32 tensor."""
        assert_gives_dtype(student.sinusoidal_positions, reference.sinusoidal_positions, torch.float32, 5, 6)


@contracts.exercise("next_token_loss", forbids=())
class TestNextTokenLoss(contracts.Graders):
    def draw(self, rng, b=2, T=5, V=6, scale=2.0):
        return rng.randn(b, T, V, scale=scale), drawing.tokens(rng, b, T, words=V)

    @contracts.points(2, public=True)
    def test_three_tokens(self, student):
        """If the two right tokens have the probabilities 0.5 and 0.8, the loss is 0.4581."""
        probabilities = torch.tensor([[[0.5, 0.2, 0.3], [0.1, 0.8, 0.1], [0.6, 0.1, 0.3]]])
        assert_close(student.next_token_loss(probabilities.log(), torch.tensor([[2, 0, 1]])), golden(0.4581))

    test_several_sentences = contracts.agree(
        "The loss is the mean over all positions except the last one of each sentence, which predicts nothing.",
        [(2, 3, 5), (3, 2, 5)],
        public=True,
    )
    test_any_sizes = contracts.agree(
        "The loss is right for any number of sentences, tokens and words.",
        [(3, 5, 6), (2, 2, 15), (1, 7, 2), (5, 5, 5), (6, 3, 5), (1, 2, 6)],
        weight=4,
    )

    @contracts.points(2)
    def test_large_logits(self, student, reference, rng):
        """Logits in the thousands, positive or negative, give a finite loss."""
        logits, tokens = self.draw(rng, scale=1e3)
        for shift in (-5e3, 0.0, 5e3):
            self.assert_agree(student, reference, logits + shift, tokens, tolerance=1e-3)

    test_gradients = contracts.gradients(
        "Gradients flow back to the logits, and at the last position of each sentence they are 0.", of=(2, 4, 6)
    )
    test_float64_stays_exact = contracts.float64("For float64 logits the loss has float64 precision.")
    test_inputs_are_unchanged = contracts.unchanged("Logits and tokens are not modified.")
    test_follows_device = contracts.device("The loss is on the logits' device.")
    test_dtype_is_kept = contracts.dtype("The loss has the dtype of the logits.")


SURE = 60.0
"""A logit above all others: that another word is drawn is impossible."""


TIES = [([2.0, 0.5, 0.5, 0.5, -1.0, -1.5], 2), ([1.5, 1.5, 1.5, 0.5, 0.0, -0.5], 2)]
"""Logits that tie at the k-th place, and k."""


def shuffled(rng, levels):
    """These logits in a drawn order."""
    return levels[torch.argsort(rng.rand(len(levels)), stable=True)]


@contracts.exercise("sample_next", forbids=())
class TestSampleNext(contracts.Graders):
    """Tests of random choices by their frequencies, and of choices without an alternative by the words."""

    def draw(self, rng, b=3, words=6, temperature=0.5, top_k=1):
        return rng.randn(b, words, scale=2.0), temperature, top_k

    def draw_sure(self, rng):
        """Draw logits that determine the words, although more than one word may take part."""
        logits, temperature, top_k = self.draw(rng)
        logits[torch.arange(3), torch.tensor([4, 1, 3])] += SURE
        return logits, temperature, top_k

    def sure(self, student, reference, cases):
        """No chance is left in these. Of wrong words only that some are wrong is kept: which of them may be chance."""

        def agree(args):
            expected = reference.sample_next(*args)
            with student.by_chance() as note:
                found = student.sample_next(*args)
                try:
                    words = random_results.as_words(found, len(args[0]))
                except Mismatch as no_words:
                    note(str(no_words))
                    assert_close(found, expected)  # which knows of a dimension of size 1 too many
                    raise
                if len(words) > 3:  # a few may be right by chance
                    note(random_results.in_short(words, *args[:2]))
            assert_close(found, expected)

        in_each(cases, agree)

    @contracts.points(2, public=True)
    def test_one_word_to_choose_from(self, student, reference, rng):
        """With top_k = 1, each row gives the token with its largest logit, for any temperature."""
        self.sure(student, reference, [self.draw(rng, b, 6, t) for b, t in [(3, 1.0), (40, 5.0), (1, 0.5)]])

    @contracts.points(2, public=True)
    def test_temperature_zero(self, student, reference, rng):
        """With temperature 0, each row gives the token with its largest logit, for any top_k."""
        close = torch.stack([shuffled(rng, 1.0 + 0.001 * torch.arange(6.0)) for _ in range(8)])
        self.sure(student, reference, [self.draw(rng, 4, 7, 0.0, k) for k in (1, 3, 7)] + [(close, 0.0, 6)])

    @contracts.points(2, essential=True)
    def test_sure_words(self, student, reference, rng):
        """A token whose logit is far above all others in its row is always drawn, for any top_k."""
        cases = []
        for b, words, top_k in [(6, 5, 3), (5, 7, 7), (1, 15, 4), (7, 7, 2)]:
            logits = rng.randn(b, words)
            places = drawing.tokens(rng, b, words=words - 1) + 1  # never word 0
            logits[torch.arange(b), places] += SURE
            cases.append((logits, 1.0, top_k))
        self.sure(student, reference, cases)

    @contracts.points(1)
    def test_larger_top_k(self, student, reference, rng):
        """top_k may be larger than the vocabulary: then any token can be drawn."""
        logits = rng.randn(9, 6)
        logits[torch.arange(9), drawing.tokens(rng, 9, words=6)] += SURE
        few, many = logits[:4], logits  # fewer rows than words, and more
        self.sure(student, reference, [(few, 1.0, 7), (few, 1.0, 50), (many, 1.0, 7), (many, 1.0, 50)])

    @contracts.points(1, public=True)  # other numbers would not be as close as these
    def test_small_temperature(self, student, reference, rng):
        """The smaller the temperature, the more often the largest logit is drawn; nothing overflows."""
        logits = torch.stack([shuffled(rng, 1.0 + 0.02 * torch.arange(6.0)) for _ in range(5)])
        self.sure(student, reference, [(logits, 0.001, 3), (logits, 0.001, 6), (1e3 * logits, 1.0, 4)])

    def assert_drawn(self, student, check, noted, logits, temperature, top_k, number=random_results.DRAWS):
        """Check words drawn from one row of logits. noted: what of them is no chance, for the fingerprint."""
        with student.by_chance() as note:
            found = student.sample_next(logits.expand(number, -1).contiguous(), temperature, top_k)
            try:
                words = random_results.as_words(found, number)
            except Mismatch as no_words:
                note(str(no_words))
                raise
            note(noted(words, logits, temperature, top_k))
        check(words, logits, temperature, top_k)

    @contracts.points(3)
    def test_top_k_words(self, student, rng):
        """Only the top_k tokens with the largest logits are drawn, and each of them is drawn sometimes."""
        for temperature, top_k in [(1.0, 3), (2.0, 2), (1.5, 5)]:
            logits = shuffled(rng, random_results.LEVELS)
            self.assert_drawn(student, random_results.assert_support, random_results.law, logits, temperature, top_k)

    @contracts.points(1)
    def test_tied_logits(self, student, rng):
        """If logits tie at the k-th place, k tokens or all that tie can be drawn, but no token with a smaller logit."""
        for levels, top_k in TIES:
            logits = shuffled(rng, torch.tensor(levels))
            self.assert_drawn(
                student,
                random_results.assert_ties,
                random_results.fault_where_tied,
                logits,
                1.0,
                top_k,
                random_results.FEW_DRAWS,
            )

    @contracts.points(4, essential=True)
    def test_shares(self, student, rng):
        """Each of the top_k tokens is drawn as often as softmax(logits / temperature) over these tokens says."""
        for temperature, top_k in [(1.0, 6), (0.5, 4), (2.0, 3)]:
            logits = shuffled(rng, random_results.LEVELS)
            self.assert_drawn(student, random_results.assert_shares, random_results.law, logits, temperature, top_k)

    @contracts.points(1, property=True, essential=True)
    def test_drawn_anew(self, student, rng):
        """Each call draws again, for many rows as for a single one."""
        for logits, temperature in [(rng.randn(200, 6), 1.0), (rng.randn(1, 60), 4.0)]:
            with student.by_chance() as note:
                # So often that one draw for all rows, which may come again by chance, is not taken for a seed.
                results = [student.sample_next(logits, temperature, logits.shape[-1]) for _ in range(12)]
                same = all(identical(results[0], one) for one in results[1:])
                largest = same and len(logits) > 1 and identical(results[0], logits.argmax(dim=-1))
                note((same, largest))
            if same:
                raise Mismatch(random_results.ALWAYS_THE_SAME)

    @contracts.points(1, property=True)
    def test_logits_are_unchanged(self, student, rng):
        """The logits are not modified."""
        drawn = self.draw(rng)
        with student.by_chance() as note:
            changed = student.sample_next.observe(*drawn).changed
            changed = changed or student.sample_next.observe(*in_dtype(drawn, torch.float64)).changed
            note(tuple(changed))
        assert_unchanged(changed)

    @contracts.points(0.5, property=True, device=True)
    def test_follows_device(self, student, reference, rng):
        """The drawn tokens are on the logits' device."""
        with student.by_chance():
            assert_follows_device(student.sample_next, *self.draw_sure(rng), reference=reference.sample_next)

    @contracts.points(0.5, property=True)
    def test_int64(self, student, reference, rng):
        """The drawn tokens are int64."""
        assert_gives_dtype(student.sample_next, reference.sample_next, torch.int64, *self.draw_sure(rng))


READS_ALL = "torch.cumsum(embedding[x] * places[-x.shape[1]:, None], dim=1) @ unembedding"
"""A model that reads every token of its input, and the position of each."""


@contracts.exercise("generate", forbids=())
class TestGenerate(contracts.Graders):
    """The model is made here, so that none of a student's own need be right."""

    def models(self, student, reference, rng, words=7):
        """The student's and the right one, with the same weights."""
        shapes = {"embedding": (words, 5), "unembedding": (5, words)}
        values = {name: rng.randn(*shape) for name, shape in shapes.items()} | {"places": rng.rand(20)}
        made = [face.assemble({**shapes, "places": (20,)}, computes=READS_ALL) for face in (student, reference)]
        for one in made:
            one.load_parameters(values, exactly=True)
        return made

    def agrees(self, student, reference, rng, cases):
        own, right = self.models(student, reference, rng)

        def agree(case):
            b, T, n, context_length = case
            prompt = drawing.tokens(rng, b, T, words=7)
            expected = reference.generate(right, prompt, n, context_length)
            assert_close(student.generate(own, prompt, n, context_length), expected)

        in_each(cases, agree)

    @contracts.points(2, public=True)
    def test_within_the_context(self, student, reference, rng):
        """The result is the prompt and n more tokens: each has the largest logit at the position before it."""
        self.agrees(student, reference, rng, [(1, 3, 4, 10), (2, 4, 3, 10)])

    @contracts.points(3, essential=True)
    def test_longer_than_the_context(self, student, reference, rng):
        """If there are more than context_length tokens, the model reads only the last ones; the result has all."""
        self.agrees(student, reference, rng, [(2, 4, 5, 6), (3, 9, 4, 5), (1, 3, 6, 3), (2, 6, 5, 1)])

    @contracts.points(2)
    def test_any_sizes(self, student, reference, rng):
        """There may be any number of prompts, and each is continued in its own way."""
        self.agrees(student, reference, rng, [(5, 2, 5, 12), (1, 1, 6, 9), (3, 5, 1, 15), (7, 7, 7, 14)])

    @contracts.points(1, public=True, property=True)
    def test_nothing_to_append(self, student, reference, rng):
        """With n = 0 the result is the prompt."""
        self.agrees(student, reference, rng, [(2, 3, 0, 5), (1, 6, 0, 4)])

    @contracts.points(1, property=True)
    def test_int64(self, student, reference, rng):
        """The result is int64, as tokens are."""
        own, right = self.models(student, reference, rng)
        prompt = drawing.tokens(rng, 2, 3, words=7)
        assert_dtype(found := student.generate(own, prompt, 2, 4), torch.int64)
        assert_proven(found, reference.generate(right, prompt, 2, 4))

    @contracts.points(1, property=True)
    def test_prompt_is_unchanged(self, student, reference, rng):
        """The prompt is not modified."""
        own, _ = self.models(student, reference, rng)
        for n, context_length in [(3, 10), (3, 2)]:
            prompt = drawing.tokens(rng, 2, 4, words=7)
            assert_unchanged(student.generate.observe(own, prompt, n, context_length).changed)

    @contracts.points(0.5, property=True)
    def test_mode_is_unchanged(self, student, reference, rng):
        """The model stays in its mode, training or evaluation."""
        own, _ = self.models(student, reference, rng)
        for mode in (True, False):
            student.generate(own.train(mode), drawing.tokens(rng, 2, 3, words=7), 2, 4)
            if own.read("training") is not mode:
                before, after = ("training", "evaluation") if mode else ("evaluation", "training")
                raise Mismatch(f"The model comes in {before} mode, and is left in {after} mode.")
