"""The hidden graders of what attention costs, in operations and in bytes."""

import math

from autograder.core.comparison import assert_equal
from autograder.graders import contracts
from autograder.graders.statements import in_each


def sizes(rng, number):
    """Draw a number of integers from 2 to 20."""
    return [2 + int(19 * (one - 0.1)) for one in rng.rand(number).tolist()]


def in_units(layers, heads, width, tokens, size):
    """The bytes, as they come out by way of kB, MB or GB in floats that are cut off: of all tokens, and of each."""
    of_one = 2 * layers * heads * width * size
    for unit in (1e3, 1e6, 1e9):
        yield from (int(of_one * tokens / unit * unit), int(of_one / unit * tokens * unit))


def losing_a_byte(rng, number):
    """Return sizes of large models for which each of these ways loses a byte, at most `number` for each way.

    Most drawn sizes lose none. Each way loses a byte for other sizes, for at least ten of 4000.
    """
    quarters = [iter(sizes(rng, 4000)) for _ in range(4)]
    drawn = [
        (21 + 2 * layers, 11 + 2 * heads, 101 + 2 * width, 1601 + 2 * tokens, (1, 2, 4)[place % 3])
        for place, (layers, heads, width, tokens) in enumerate(zip(*quarters, strict=True))
    ]
    lost = [[], [], [], [], [], []]
    for one in drawn:
        for found, way in zip(lost, in_units(*one), strict=True):
            if way != 2 * math.prod(one) and len(found) < number:
                found.append(one)
    return [one for found in lost for one in found]


@contracts.exercise("attention_flops", forbids=())
class TestAttentionFlops(contracts.Graders):
    def draw(self, rng, b=1, heads=0):
        T, head_dim, h = sizes(rng, 3)
        h = heads or h
        return b, T, head_dim * h, h

    @contracts.points(2, public=True)
    def test_three_tokens(self, student):
        """Three tokens of width 4 and two heads take 528 operations."""
        assert_equal(student.attention_flops(1, 3, 4, 2), 528)

    @contracts.points(1, public=True)
    def test_gpt_2_small(self, student):
        """1024 tokens take 8,053,063,680 operations in the attention of one layer of GPT-2 small (width 768, 12
        heads)."""
        assert_equal(student.attention_flops(1, 1024, 768, 12), 8_053_063_680)

    @contracts.points(4)
    def test_any_sizes(self, student, reference, rng):
        """The count is right for any number of tokens, any width and any number of heads."""
        cases = [self.draw(rng) for _ in range(4)]
        in_each(cases, lambda args: assert_equal(student.attention_flops(*args), reference.attention_flops(*args)))

    @contracts.points(2, essential=True)
    def test_several_sequences(self, student, reference, rng):
        """b sequences take b times as many operations as one: no token attends to another sequence."""
        cases = [self.draw(rng, b) for b in (2, 7)]
        in_each(cases, lambda args: assert_equal(student.attention_flops(*args), reference.attention_flops(*args)))

    @contracts.points(1)
    def test_large_counts(self, student, reference, rng):
        """Large counts are right to the last digit."""
        s, h, odd = sizes(rng, 3)
        cases = [(3, 501 + 2 * s, (101 + 2 * odd) * h, h), (s, 601 + 2 * odd, (301 + 2 * h) * 3, 3)]
        cases.append((3, 2_000_001 + 2 * s, (2_001 + 2 * odd) * 11, 11))  # beyond what a float of 64 bits counts
        in_each(cases, lambda args: assert_equal(student.attention_flops(*args), reference.attention_flops(*args)))

    @contracts.points(1)
    def test_one_head_or_one_token(self, student, reference, rng):
        """The count is right for a single head and for a single token."""
        _, T, d, h = self.draw(rng)
        cases = [(1, T, d, 1), (1, 1, d, h), (3, 1, d, 1), (1, T, d, d)]
        in_each(cases, lambda args: assert_equal(student.attention_flops(*args), reference.attention_flops(*args)))


@contracts.exercise("kv_cache_bytes", forbids=())
class TestKvCacheBytes(contracts.Graders):
    @contracts.points(2, public=True)
    def test_llama_2_7b(self, student):
        """4096 tokens in Llama-2-7B, which has 32 layers with 32 heads of width 128, take 2 GiB in float16."""
        assert_equal(student.kv_cache_bytes(32, 32, 128, 4096, 2), 2_147_483_648)

    @contracts.points(1, public=True)
    def test_llama_3_8b(self, student):
        """4096 tokens in Llama-3-8B, which keeps keys and values of 8 heads in each layer, take 512 MiB in float16."""
        assert_equal(student.kv_cache_bytes(32, 8, 128, 4096, 2), 536_870_912)

    @contracts.points(4)
    def test_any_sizes(self, student, reference, rng):
        """The bytes are right for any number of layers, heads and tokens, and any width."""
        cases = [(*sizes(rng, 4), 2) for _ in range(4)]
        in_each(cases, lambda args: assert_equal(student.kv_cache_bytes(*args), reference.kv_cache_bytes(*args)))

    @contracts.points(2, essential=True)
    def test_other_types(self, student, reference, rng):
        """An element may take 1, 4 or 8 bytes."""
        cases = [(*sizes(rng, 4), size) for size in (1, 4, 8)]
        in_each(cases, lambda args: assert_equal(student.kv_cache_bytes(*args), reference.kv_cache_bytes(*args)))

    @contracts.points(1)
    def test_large_models(self, student, reference, rng):
        """Large numbers of bytes are exact."""
        layers, heads, width, tokens = sizes(rng, 4)
        drawn = (21 + 2 * layers, 11 + 2 * heads, 101 + 2 * width, 1601 + 2 * tokens)
        cases = [(*drawn, size) for size in (2, 4)] + losing_a_byte(rng, 8)
        in_each(cases, lambda args: assert_equal(student.kv_cache_bytes(*args), reference.kv_cache_bytes(*args)))

    @contracts.points(1)
    def test_nothing_cached(self, student, reference, rng):
        """The bytes are right for a single token; no tokens take 0 bytes."""
        layers, heads, width, _ = sizes(rng, 4)
        cases = [(layers, heads, width, 1, 2), (1, 1, width, 1, 1), (layers, heads, width, 0, 2)]
        in_each(cases, lambda args: assert_equal(student.kv_cache_bytes(*args), reference.kv_cache_bytes(*args)))
