"""The hidden graders of attention that goes on from a cache."""

import torch

from autograder.core.comparison import assert_close, golden
from autograder.core.complaints import INPUT
from autograder.graders import contracts, statements
from autograder.graders.statements import assert_arrived, assert_gradient, assert_refuses, in_each
from solutions.six_words import SIX_WORDS, twice

from .long_text import LongText
from .worked_examples import CACHED_SEED_123

_LONG = []
"""The long text, whose right results are the same for every student."""


@contracts.exercise("CachedMultiHeadAttention", forbids=[])
class TestCachedMultiHeadAttention(contracts.Graders):
    def callee(self, face, d_in=7, d_out=15, num_heads=3):
        return face.CachedMultiHeadAttention(d_in, d_out, num_heads)

    def draw(self, rng, b=2, tokens=6, d_in=7, scale=1.0):
        return (rng.randn(b, tokens, d_in, scale=scale),)

    def assert_step(self, pair, caches, x):
        """Both give the same for the next tokens, each with its own cache."""
        own, right = (one(x, cache) for one, cache in zip(pair, caches, strict=True))
        assert_close(own, right)

    @contracts.points(2, public=True)
    def test_seed_123(self, student):
        """Built under seed 123 with two heads, the module gives the worked example's vectors for the six words."""
        student.manual_seed(123)
        attention = student.CachedMultiHeadAttention(3, 4, 2)
        assert_close(attention(twice(SIX_WORDS)), golden([CACHED_SEED_123] * 2))

    @contracts.points(2, public=True)
    def test_word_by_word(self, student):
        """Given one by one with a cache, the six words get the worked example's vectors."""
        student.manual_seed(123)
        attention = student.CachedMultiHeadAttention(3, 4, 2)
        cache = student.plain("KVCache")
        for number, right in enumerate(CACHED_SEED_123):
            assert_close(attention(twice(SIX_WORDS)[:, number : number + 1], cache), golden([[right]] * 2))

    @contracts.points(3)
    def test_context_vectors(self, student, reference, rng):
        """Without a cache, the module computes causal attention, head by head."""
        sizes = [(2, 6, 5, 6, 2), (3, 5, 7, 15, 3), (1, 7, 6, 5, 1), (2, 5, 5, 30, 6)]
        cases = [(self.draw(rng, *one[:3], scale=2.0), one[2:]) for one in sizes]

        def agree(case):
            args, (d_in, d_out, num_heads) = case
            self.assert_agree(student, reference, *args, d_in=d_in, d_out=d_out, num_heads=num_heads)

        in_each(cases, agree)

    @contracts.points(5, essential=True)
    def test_any_cut(self, student, reference, rng):
        """However a text is cut into steps, the result is that of one pass: token by token, several at once, or a long
        question first."""
        pair = self.pair(student, reference)
        (x,) = self.draw(rng, tokens=7, scale=2.0)

        def in_steps(lengths):
            caches = [face.plain("KVCache") for face in (student, reference)]
            for part in x.split(lengths, dim=1):
                self.assert_step(pair, caches, part)

        in_each([[1] * 7, [3, 1, 1, 2], [5, 2], [1, 4, 2], [7]], in_steps)

    @contracts.points(2)
    def test_two_texts(self, student, reference, rng):
        """Each cache belongs to one text: steps of two texts may alternate, and a call without a cache changes
        neither."""
        pair = self.pair(student, reference)
        texts = [self.draw(rng, b, 5)[0] for b in (2, 2, 3)]
        caches = [[face.plain("KVCache") for face in (student, reference)] for _ in texts]
        for first, last in [(0, 2), (2, 3), (3, 5)]:
            for x, of_one in zip(texts, caches, strict=True):
                self.assert_step(pair, of_one, x[:, first:last])
            assert_close(pair[0](texts[0]), pair[1](texts[0]))

    @contracts.points(1)
    def test_long_texts(self, student, reference, rng):
        """A text may have thousands of tokens, many or few at a time."""
        pair = self.pair(student, reference, d_in=3, d_out=3, num_heads=1)
        (x,) = self.draw(rng, b=1, tokens=2101, d_in=3)
        caches = [face.plain("KVCache") for face in (student, reference)]
        named = {"computes": "attention(x, cache)[:, -3:]", "others": ("attention", "cache")}
        ends = [face.assemble({}, **named) for face in (student, reference)]  # a few vectors are looked at
        for part in x.split([1300, 1, 800], dim=1):
            with student.refusing(statements.NO_ROOM):
                own = ends[0](part, pair[0], caches[0])
            assert_close(own, ends[1](part, pair[1], caches[1]))

    @contracts.points(1)
    def test_in_evaluation(self, student, reference, rng):
        """After eval() the module continues from a cache in the same way."""
        own, right = self.pair(student, reference)
        caches = [face.plain("KVCache") for face in (student, reference)]
        (x,) = self.draw(rng, scale=2.0)
        for part in x.split([3, 1, 2], dim=1):
            self.assert_step((own.eval(), right.eval()), caches, part)

    @contracts.points(4, essential=True)
    def test_projects_new_tokens_only(self, student, reference, rng):
        """A step projects only its own tokens; keys and values of earlier tokens come from the cache."""
        own, right = self.pair(student, reference)
        caches = [face.plain("KVCache") for face in (student, reference)]
        (x,) = self.draw(rng, tokens=21)
        for part in x[:, :19].split([18, 1], dim=1):
            self.assert_step((own, right), caches, part)
        expected = right(x[:, 19:], caches[1])
        statements.assert_costs_no_more(own, {"rows": 2 * 2}, expected, x[:, 19:], caches[0], is_counted=False)
        if (apart := student.apart()) is not None:
            self.assert_steps_are_cheap(apart, reference, rng)

    def assert_steps_are_cheap(self, apart, reference, rng):
        """With a long cache, a step takes about as much time as the reference needs in this process."""
        if not _LONG:
            _LONG.append(LongText(reference, rng))
        _LONG[0].assert_steps_are_cheap(apart)

    test_nothing_is_added = contracts.nothing_added(
        "The input is not added to the result, even if both have the same width.", d_in=15, built={"d_in": 15}
    )

    @contracts.points(0.5)
    def test_scores_of_zero(self, student, reference, rng):
        """A token of zeros has score 0 with every key, so all keys that it sees get equal weight."""
        (x,) = self.draw(rng, scale=2.0)
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
        "Gradients flow back to the input and to every layer.", weight=1, scale=2.0
    )

    @contracts.points(1)
    def test_gradients_with_a_cache(self, student, reference, rng):
        """With a cache, too, gradients flow back to the input and to every layer."""
        (x,) = self.draw(rng, scale=2.0)
        cotangent = rng.randn(*x.shape[:2], 15)
        seen, right = (
            one.observe(x, face.plain("KVCache"), cotangent=cotangent)
            for one, face in zip(self.pair(student, reference), (student, reference), strict=True)
        )
        statements.assert_gradients_of(seen, right)

    @contracts.points(1, property=True)
    def test_gradients_of_what_is_cached(self, student, rng):
        """Gradients flow back from the cached keys and values to the tokens of all steps."""
        own = self.callee(student)
        (x,) = self.draw(rng)
        for part in ("keys", "values"):  # not the step's result: a cache may write in place into what that needs
            computes = f"(module(x[:, :4], cache), module(x[:, 4:], cache), cache.{part}.square().sum())[2]"
            looked_at = student.assemble({}, computes=computes, others=("module", "cache"))
            seen = looked_at.observe(x, own, student.plain("KVCache"), cotangent=torch.ones(()))
            assert_arrived({INPUT: seen.gradients[0]})

    @contracts.points(1)
    def test_gradients_of_a_later_step(self, student, reference, rng):
        """Gradients flow back from a later step's result to its own tokens and to those of earlier steps."""
        # A cache that writes into free room may overwrite what the step before it needs for gradients. The second
        # step is longer than the first, so that the cache has no free room for it.
        (x,) = self.draw(rng, tokens=7, scale=2.0)
        cotangent = rng.randn(2, 5, 15)
        computes = "(module(x[:, :2], cache), module(x[:, 2:], cache))[1]"
        seen, right = (
            face.assemble({}, computes=computes, others=("module", "cache")).observe(
                x, one, face.plain("KVCache"), cotangent=cotangent
            )
            for one, face in zip(self.pair(student, reference), (student, reference), strict=True)
        )
        assert_close(seen.value, right.value)
        assert_gradient(seen.gradients[0], right.gradients[0], INPUT)

    test_float64_stays_exact = contracts.float64(
        "After `.to(torch.float64)` the result has float64 precision.",
        built={"d_out": 48},  # heads of width 16, whose root is exact
    )

    @contracts.points(1, property=True)
    def test_refuses_what_cannot_be_split(self, student):
        """If d_out is not divisible by num_heads, building the module raises ValueError or AssertionError."""
        for d_out, h in [(6, 4), (9, 2), (2, 4)]:
            assert_refuses(student, self.callee, student, 7, d_out, h)

    test_parameters = contracts.parameters(
        "The parameters are those of the layers: W_query, W_key and W_value without a bias, out_proj with one.",
        {"W_query.weight": (15, 7), "W_key.weight": (15, 7), "W_value.weight": (15, 7),
         "out_proj.weight": (15, 15), "out_proj.bias": (15,)},
        weight=1,
    )  # fmt: skip

    test_inputs_are_unchanged = contracts.unchanged("The input is not modified.", weight=0.5)
    test_follows_device = contracts.device(
        "Moved to another device, the module works there, and its mask is there too."
    )
    test_dtype_is_kept = contracts.dtype("The result has the dtype of the input.")
    test_seeds_matter = contracts.seeds("Two instances built under different seeds have different weights.")
