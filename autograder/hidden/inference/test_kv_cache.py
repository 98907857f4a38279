"""The hidden graders of the cache of keys and values."""

import torch

from autograder.core.comparison import Mismatch, assert_close, describe, golden
from autograder.core.complaints import Part
from autograder.graders import contracts
from autograder.graders.statements import NO_ROOM, assert_dtype, assert_gradient, assert_proven, in_each

PARTS = ("keys", "values")

TWO_STEPS = (
    "(cache.append(x[..., :2, :6], x[..., :2, 6:]), cache.append(x[..., 2:, :6], x[..., 2:, 6:]), "
    "torch.cat([cache.keys, cache.values], dim=-1))[2]"
)
"""Keys and values, concatenated, after x was appended in two steps; x: (..., 5, 12)."""

ONE_BY_ONE = (
    "(list(map(cache.append, *(x[..., part].split(1, dim=-2) for part in (slice(0, 2), slice(2, 5))))), "
    "torch.cat([cache.keys[..., ::170, :], cache.values[..., ::170, :]], dim=-1))[1]"
)
"""A few of the keys and values, concatenated, after x was appended token by token; x: (..., T, 5)."""


def filled(face, chunks):
    """A cache to which these keys and values were appended, one after the other."""
    cache = face.plain("KVCache")
    for keys, values in chunks:
        cache.method("append")(keys, values)
    return cache


@contracts.exercise("KVCache", forbids=())
class TestKVCache(contracts.Graders):
    def draw(self, rng, lengths=(3, 1, 2), before=(2, 5), hd=6, hv=0):
        """Return pairs of keys and values with these lengths, in tokens."""
        return [(rng.randn(*before, t, hd), rng.randn(*before, t, hv or hd)) for t in lengths]

    def assert_holds(self, student, reference, chunks):
        """Assert that both parts of the cache, keys and values, are those of the reference."""
        own, right = filled(student, chunks), filled(reference, chunks)
        in_each(PARTS, lambda part: assert_close(own.read(part), right.read(part), what=f"`cache.{part}`"))

    @contracts.points(2, public=True)
    def test_two_steps(self, student):
        """After a step of two tokens and a step of one, the keys [1, 2], [3, 4] and [5, 6] are three rows, and so are
        the values."""
        first = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        then = torch.tensor([[5.0, 6.0]])
        cache = filled(student, [(first, 10 * first), (then, 10 * then)])
        right = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        assert_close(cache.read("keys"), golden(right), what="`cache.keys`")
        assert_close(cache.read("values"), golden(10 * right), what="`cache.values`")

    @contracts.points(3, essential=True)
    def test_any_lengths(self, student, reference, rng):
        """A step may append any number of tokens, and there may be any number of steps."""
        cases = [self.draw(rng, lengths) for lengths in ((3, 1, 2), (1, 1, 1, 1, 1), (7,), (1, 5), (4, 2, 1), (1,))]
        in_each(cases, lambda chunks: self.assert_holds(student, reference, chunks))

    @contracts.points(2, public=True)
    def test_any_leading_dimensions(self, student, reference, rng):
        """Tokens are appended along dimension -2, however many dimensions come before it."""
        cases = [self.draw(rng, before=before) for before in ((), (2,), (2, 5), (1, 1), (2, 1, 3))]
        in_each(cases, lambda chunks: self.assert_holds(student, reference, chunks))

    @contracts.points(1)
    def test_width_of_values(self, student, reference, rng):
        """Values may be wider, or narrower, than keys."""
        cases = [self.draw(rng, hv=hv) for hv in (7, 5)]
        in_each(cases, lambda chunks: self.assert_holds(student, reference, chunks))

    @contracts.points(1)
    def test_each_step_shows(self, student, reference, rng):
        """After each step the cache holds all tokens so far."""
        chunks = self.draw(rng, (2, 1, 1, 3))
        own, right = student.plain("KVCache"), reference.plain("KVCache")
        for keys, values in chunks:
            for cache in (own, right):
                cache.method("append")(keys, values)
            for part in PARTS:
                assert_close(own.read(part), right.read(part), what=f"`cache.{part}`")

    @contracts.points(1)
    def test_two_caches(self, student, reference, rng):
        """Two caches are independent, even if their steps alternate."""
        chunks = [self.draw(rng, lengths, before=(b, 5)) for lengths, b in (((2, 1), 2), ((1, 3), 3))]
        own, right = ([face.plain("KVCache") for _ in chunks] for face in (student, reference))
        for step in range(2):
            for number, of_one in enumerate(chunks):
                own[number].method("append")(*of_one[step])
                right[number].method("append")(*of_one[step])
        for one, other in zip(own, right, strict=True):
            for part in PARTS:
                assert_close(one.read(part), other.read(part), what=f"`cache.{part}`")

    @contracts.points(1)
    def test_long_texts(self, student, reference, rng):
        """A text may have thousands of tokens; the cache keeps all of them."""
        chunks = self.draw(rng, (500, 1, 4600), before=(), hd=2)
        right = filled(reference, chunks)
        with student.refusing(NO_ROOM):
            own = filled(student, chunks)
        for part in PARTS:  # of which a few are looked at
            shown = f"cache.{part}[..., ::x, :]"
            found, expected = (
                face.assemble({}, computes=shown, others=("cache",))(170, cache)
                for face, cache in ((student, own), (reference, right))
            )
            assert_close(found, expected, what=f"`cache.{part}[..., ::170, :]`")

    @contracts.points(1)
    def test_many_steps(self, student, reference, rng):
        """There may be more than a thousand steps, as when a long answer is written token by token."""
        x = rng.randn(1201, 5)
        own, right = (
            face.assemble({}, computes=ONE_BY_ONE, others=("cache",))(x, face.plain("KVCache"))
            for face in (student, reference)
        )
        assert_close(own, right, what="Every 170th of the keys and values")

    @contracts.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back through the cache to all appended keys and values."""
        x, cotangent = rng.randn(2, 3, 5, 12), rng.randn(2, 3, 5, 12)
        seen, right = (
            face.assemble({}, computes=TWO_STEPS, others=("cache",)).observe(
                x, face.plain("KVCache"), cotangent=cotangent
            )
            for face in (student, reference)
        )
        assert_close(seen.value, right.value, what="What the cache holds")
        assert_gradient(seen.gradients[0], right.gradients[0], Part("what was appended"))

    @contracts.points(1, property=True)
    def test_empty(self, student):
        """Before the first step keys and values are None."""
        cache = student.plain("KVCache")
        for part in PARTS:
            if (found := cache.read(part)) is not None:
                raise Mismatch(f"`cache.{part}` is {describe(found)}; None is expected before the first step.")

    @contracts.points(1, property=True)
    def test_dtype_is_kept(self, student, reference, rng):
        """Keys and values keep their dtype."""
        for dtype in (torch.float64, torch.float32, torch.float16):
            chunks = self.draw(rng.of(dtype))
            own, right = filled(student, chunks), filled(reference, chunks)
            for part in PARTS:
                assert_dtype(found := own.read(part), dtype)
                assert_proven(found, right.read(part))

    @contracts.points(0.5, property=True)
    def test_inputs_are_unchanged(self, student, rng):
        """The appended keys and values are not modified."""
        cache = student.plain("KVCache")
        for keys, values in self.draw(rng):
            if changed := cache.method("append").observe(keys, values).changed:
                raise Mismatch(f"The {['keys', 'values'][changed[0]]} that were appended are written into.")
