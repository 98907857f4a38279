"""The hidden graders of the unit's functions."""

import torch

from autograder.core.comparison import LARGE_LOGITS, TOLERANCE, Mismatch, assert_close, golden, only
from autograder.core.library_calls import AUTOGRAD, LIBRARY_ATTENTION
from autograder.graders import contracts, memory_limit
from autograder.graders.statements import (
    assert_costs_no_more,
    assert_finite,
    assert_right_where_large,
    assert_same_gradients,
    in_each,
)

NOTHING = -torch.inf
BOTH = ({}, {"causal": True})
ALL_HIDDEN = {"hidden": (0, 1, 2)}
LONG = 64
"""A text of more tokens is long."""


def cut(row, *lengths):
    """A row of scores in blocks of these lengths."""
    return list(row.split(list(lengths)))


@contracts.exercise("online_softmax", forbids=())
class TestOnlineSoftmax(contracts.Graders):
    def draw(self, rng, *sizes, scale=2.0, hidden=()):
        """hidden: blocks that are -inf, and the places of single scores that are."""
        scores = rng.randn(*(sizes or (3, 4)), scale=scale)
        for place in hidden:
            scores[place] = NOTHING
        return (scores,)

    @contracts.points(2, public=True)
    def test_two_blocks(self, student):
        """The blocks [1, 2] and [3] have the maximum 3 and the sum 1.5032."""
        found = student.online_softmax([torch.tensor([1.0, 2.0]), torch.tensor([3.0])])
        assert_close(found, (golden(3.0), golden(1.5032)))

    test_equal_blocks = contracts.agree(
        "The result is the maximum of all scores, and the sum of exp(score - maximum) over all of them.",
        [(4, 3), (1, 5), (5, 1), (1, 1), (2, 7)],
        weight=2,
    )

    @contracts.points(2)
    def test_blocks_of_different_lengths(self, student, reference, rng):
        """Blocks may have different lengths."""
        for lengths in ((2, 5, 1), (1, 1, 6), (8,), (4, 3, 1)):
            blocks = cut(rng.randn(8, scale=2.0), *lengths)
            self.assert_right(student.online_softmax(blocks), reference.online_softmax(blocks))

    @contracts.points(2)
    def test_maximum_anywhere(self, student, reference, rng):
        """It does not matter whether the largest score comes in the first block, in the last, or in between."""
        row = rng.randn(9)
        for place in (0, 4, 8):
            blocks = cut(row + 4.0 * (torch.arange(9) == place), 3, 3, 3)
            self.assert_right(student.online_softmax(blocks), reference.online_softmax(blocks))

    @contracts.points(2)
    def test_hidden_blocks(self, student, reference, rng):
        """A block with only -inf changes nothing, wherever it comes; a single -inf in a block adds 0."""
        hidden = torch.full((3,), NOTHING)
        one, other = rng.randn(3), rng.randn(2).index_fill(0, torch.tensor([1]), NOTHING)
        low = [hidden, one - 9.0, other - 9.0]
        for blocks in ([hidden, one, other], [one, hidden, other], [other, one, hidden], [hidden, hidden, one], low):
            self.assert_right(student.online_softmax(blocks), reference.online_softmax(blocks))

    @contracts.points(1, public=True)
    def test_all_hidden(self, student):
        """If all scores are -inf, the maximum is -inf and the sum 0."""
        for blocks in (torch.full((2, 3), NOTHING), torch.full((1, 1), NOTHING)):
            assert_close(student.online_softmax(blocks), (golden(NOTHING), golden(0.0)))

    @contracts.points(1, essential=True)
    def test_large_scores(self, student, reference, rng):
        """Scores in the thousands, positive or negative, cause no overflow."""
        for shift in (5e3, -5e3, 0.0):
            blocks = rng.randn(4, 3, scale=2e3) + shift
            self.assert_right(student.online_softmax(blocks), reference.online_softmax(blocks), tolerance=1e-3)

    @contracts.points(1)
    def test_blocks_from_a_generator(self, student, reference, rng):
        """The blocks may come from a generator, over which code can loop only once."""
        for lengths in ((3, 5, 2), (4,), (1, 2)):
            blocks = [rng.randn(length, scale=2.0) for length in lengths]
            self.assert_right(student.online_softmax.once(blocks), reference.online_softmax(blocks))

    @contracts.points(1, essential=True)
    def test_keeps_no_blocks(self, student, reference, rng):
        """Blocks are not stored: each can be freed when the next one comes."""
        blocks = list(rng.randn(32, 64, scale=2.0))
        right = reference.online_softmax(blocks)
        assert_costs_no_more(student.online_softmax, {"alive": 700}, right, blocks, once=True, is_counted=False)
        self.assert_fits(student, reference)

    def assert_fits(self, student, reference):
        """Check the result for blocks that come one after another and do not fit into memory together.

        Large blocks leave no holes in memory when they are freed, but take three times as long.
        """
        try:
            self.assert_these_fit(student, reference, 512, 1 << 16)  # 128 MB
        except Mismatch:
            self.assert_these_fit(student, reference, 104, 1 << 18)  # 104 MB

    def assert_these_fit(self, student, reference, number, length):
        def large(confined, _):
            drawn = 1, number, length
            own, right = (lambda face=face: face.online_softmax.of_blocks(*drawn) for face in (confined, reference))
            return memory_limit.LargeCall(own, right, ("online_softmax", *drawn))

        memory_limit.assert_fits(student, large, self.assert_right, may_be_slow=True)

    def assert_gradients(self, student, reference, blocks):
        """Compare the gradients of maximum + log(sum), which is the same for any maximum."""
        _, total = (one.value for one in reference.online_softmax(blocks))
        cotangent = (torch.ones_like(total), 1 / total)
        assert_same_gradients(student.online_softmax, reference.online_softmax, blocks, cotangent=cotangent)

    @contracts.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the scores; the test uses maximum + log(sum), which does not depend on the maximum
        taken."""
        self.assert_gradients(student, reference, *self.draw(rng, 3, 4))

    @contracts.points(1)
    def test_gradients_where_hidden(self, student, reference, rng):
        """The gradients of a block with only -inf are 0, and no gradient is NaN."""
        for hidden in ((0,), (1, (2, 0))):
            self.assert_gradients(student, reference, *self.draw(rng, 3, 4, hidden=hidden))

    @contracts.points(1)
    def test_one_pass(self, student, reference, rng):
        """Blocks are processed one at a time: no intermediate tensor has as many elements as two blocks."""
        (blocks,) = self.draw(rng, 4, 6)
        right = reference.online_softmax(blocks)
        # What was kept may be put before the next block; two blocks may not be put together.
        assert_costs_no_more(student.online_softmax, {"largest": 11}, right, blocks)
        self.assert_fits(student, reference)

    test_float64_stays_exact = contracts.float64("For float64 scores the result has float64 precision.")
    test_inputs_are_unchanged = contracts.unchanged(
        "The blocks are not modified, even if scores are -inf.",
        each=({}, {"hidden": (0, (1, 2))}, ALL_HIDDEN),
    )
    test_follows_device = contracts.device(
        "Maximum and sum are on the scores' device, even if all scores are -inf.", each=({}, ALL_HIDDEN)
    )
    test_dtype_is_kept = contracts.dtype(
        "Maximum and sum have the dtype of the scores, even if all scores are -inf.", each=({}, ALL_HIDDEN)
    )


def state(rng, *shape, hidden=()):
    """The state of drawn scores and values; some queries see nothing."""
    *leading, T, _ = shape
    maximum, total, output = rng.randn(*leading, T, 1, scale=2.0), rng.rand(*leading, T, 1) * 3, rng.randn(*shape)
    for query in hidden:
        maximum[..., query, :], total[..., query, :], output[..., query, :] = NOTHING, 0.0, 0.0
    return maximum, total, output


@contracts.exercise("merge_states", forbids=())
class TestMergeStates(contracts.Graders):
    def draw(self, rng, *sizes, hidden=((), ())):
        shape = sizes or (2, 4, 3)
        return tuple(state(rng, *shape, hidden=queries) for queries in hidden)

    @contracts.points(2, public=True)
    def test_one_query(self, student):
        """The states (1, 1, [2, 4]) and (3, 2, [1, 0]) make (3, 2.1353, [1.2707, 0.5413])."""
        a = torch.tensor([[1.0]]), torch.tensor([[1.0]]), torch.tensor([[2.0, 4.0]])
        b = torch.tensor([[3.0]]), torch.tensor([[2.0]]), torch.tensor([[1.0, 0.0]])
        assert_close(student.merge_states(a, b), (golden([[3.0]]), golden([[2.1353]]), golden([[1.2707, 0.5413]])))

    test_other_states = contracts.agree(
        "Totals and outputs are rescaled to the larger maximum and added, separately for each query.",
        [(4, 3), (1, 5), (5, 1), (3, 3)],
        weight=3,
        essential=True,
    )
    test_any_leading_dimensions = contracts.agree(
        "Each sequence and head has states of its own.", [(2, 4, 3), (2, 3, 4, 2), (1, 2, 1, 1)], weight=2, public=True
    )

    test_hidden_on_one_side = contracts.agree(
        "If a query saw no key in one state, its merged state is the other one.",
        [(4, 3), (2, 4, 3)],
        hidden=((0, 2), (3,)),
    )

    @contracts.points(2)
    def test_hidden_on_both_sides(self, student, reference, rng):
        """If a query saw no key in either state, its merged state is (-inf, 0, 0), without NaN."""
        for hidden in (((0, 2), (0,)), ((1, 3), (1, 3)), (range(4), range(4))):
            self.assert_agree(student, reference, *self.draw(rng, 4, 3, hidden=hidden))

    @contracts.points(1)
    def test_equal_maxima(self, student, reference, rng):
        """If both maxima are equal, both states count, and each of them once."""
        for tied in ([0, 2], [0, 1, 2, 3]):
            (m, total, output), (other, *rest) = self.draw(rng, 4, 3)
            other[tied] = m[tied]
            for shift in (0.0, -4e3):
                self.assert_agree(student, reference, (m + shift, total, output), (other + shift, *rest))

    @contracts.points(1, essential=True)
    def test_far_apart(self, student, reference, rng):
        """Maxima in the thousands, and far apart, cause no overflow."""
        (m, total, output), b = self.draw(rng, 4, 3)
        for shift in (4e3, -4e3):
            self.assert_agree(student, reference, (m + shift, total, output), b, tolerance=1e-3)

    def assert_gradients(self, student, reference, rng, a, b):
        """Compare the gradients of output / total, which is the same for any maximum; they are 0 if no key was seen."""
        maximum, total, output = (one.value for one in reference.merge_states(a, b))
        total = total.masked_fill(total == 0.0, torch.inf)
        of_output = rng.randn(4, 3) / total
        of_total = -(of_output * output).sum(dim=-1, keepdim=True) / total
        cotangent = (torch.zeros_like(maximum), of_total, of_output)
        assert_same_gradients(student.merge_states, reference.merge_states, a, b, cotangent=cotangent)

    @contracts.points(1)
    def test_gradients(self, student, reference, rng):
        """Gradients flow back to the two states; the test uses output / total, which does not depend on the maximum
        taken."""
        self.assert_gradients(student, reference, rng, *self.draw(rng, 4, 3))

    @contracts.points(1)
    def test_gradients_where_nothing_is_seen(self, student, reference, rng):
        """If a query saw no key in a state, its gradients for that state are 0, and no gradient is NaN."""
        self.assert_gradients(student, reference, rng, *self.draw(rng, 4, 3, hidden=((0, 2), (0, 3))))

    @contracts.points(1)
    def test_float64_stays_exact(self, student, reference, rng):
        """States in float64 keep float64 precision."""
        a, b = self.draw(rng.of(torch.float64), 4, 3)
        self.assert_agree(student, reference, a, b)

    test_inputs_are_unchanged = contracts.unchanged(
        "The six tensors of the two states are not modified, even if a query saw no key.",
        each=({}, {"hidden": ((0,), (1, 2))}, {"hidden": ((0, 3), (0, 1))}, {"hidden": (range(4), range(4))}),
    )
    test_follows_device = contracts.device(
        "The merged state is on the device of the states, even if a query saw no key.",
        each=({}, {"hidden": ((1, 3), (1, 2))}),
    )
    test_dtype_is_kept = contracts.dtype(
        "The merged state has the dtype of the states, even if a query saw no key.",
        each=({}, {"hidden": (range(4), range(4))}),
    )


@contracts.exercise("tiled_attention")
class TestTiledAttention(contracts.Graders):
    def draw(self, rng, *sizes, block_size=2, causal=False, scale=1.0, hv=0):
        *leading, T, hd = sizes or (2, 5, 6)
        queries, keys = (rng.randn(*leading, T, hd, scale=scale) for _ in range(2))
        values = rng.randn(*leading, T, hv or hd)
        return (queries, keys, values, block_size, *([True] if causal else []))

    def for_reference(self, args):
        queries, keys, values, _, *causal = args
        return (queries, keys, values, 256, *causal)

    test_two_blocks = contracts.agree(
        "Four tokens in blocks of two give the usual attention.", [(4, 5)], weight=1, public=True
    )
    test_any_number_of_tokens = contracts.agree(
        "The last block may be shorter than the others, and the block size may be larger than T.",
        [(7, 5), (5, 5), (2, 5), (1, 5), (11, 5)],
        block_size=3,
        weight=3,
    )
    test_any_leading_dimensions = contracts.agree(
        "Each sequence and each head is computed on its own.",
        [(2, 5, 6), (2, 3, 5, 2), (3, 1, 4, 15)],
        weight=1,
        public=True,
    )
    test_causal = contracts.agree(
        "With causal=True each token sees the keys up to itself, and no others.",
        [(4, 5), (7, 6), (2, 2, 5, 15), (1, 5)],
        causal=True,
        weight=3,
        essential=True,
    )

    @contracts.points(1)
    def test_any_block_size(self, student, reference, rng):
        """The block size may be 1, or so large that one block holds all tokens."""
        for block_size in (1, 6, 50):
            self.assert_agree(student, reference, *self.draw(rng, 6, 5, block_size=block_size))
            self.assert_agree(student, reference, *self.draw(rng, 6, 5, block_size=block_size, causal=True))

    test_width_of_values = contracts.agree(
        "The values may be wider, or narrower, than the keys.", [(5, 5), (2, 4, 6)], hv=7, weight=1
    )

    @contracts.points(2)
    def test_maximum_in_a_later_block(self, student, reference, rng):
        """The result is right whether the largest scores are in the first blocks or in later ones."""
        for turned in (False, True):
            queries, keys, values, _ = self.draw(rng, 8, 5)
            keys = keys.abs() * torch.arange(1.0, 9.0).unsqueeze(-1)
            args = queries.abs(), keys.flip(-2) if turned else keys, values, 2
            self.assert_agree(student, reference, *args)

    @contracts.points(1, essential=True)
    def test_large_scores(self, student, reference, rng):
        """Scores in the thousands give no NaN, causal or not."""
        queries, keys, values, block_size = self.draw(rng, 6, 5, scale=60.0)
        for more in ((), (True,)):
            args = queries, keys, values, block_size, *more
            assert_right_where_large(student, student.tiled_attention, reference.tiled_attention, *args)

    test_gradients = contracts.gradients("Gradients flow back to queries, keys and values.")
    test_gradients_where_causal = contracts.gradients(
        "With causal=True, too, gradients flow back to queries, keys and values.", of=(5, 6), causal=True, weight=0.5
    )
    test_float64_stays_exact = contracts.float64(
        "For float64 inputs the result has float64 precision, causal or not.", of=(5, 64), each=BOTH
    )

    test_no_matrix_of_scores = contracts.costs_no_more(
        "No intermediate tensor has more elements than T times the block size or the width, and all tensors held at "
        "one moment have together fewer elements than a T x T matrix.",
        of=(70, 3),
        drawn={"block_size": 8},
        weight=4,
        largest=72 * 8,  # rows may be added until the blocks are full
        alive=70 * 70 * 9 // 10,
        many=(7680, 2),
        with_many={"block_size": 96, "causal": True},
        if_slow={"block_size": 256},
        essential=True,
    )
    test_nor_for_several_heads = contracts.costs_no_more(
        "For several sequences and heads, too, no T x T matrices of scores are held.",
        of=(2, 2, 64, 3),
        drawn={"block_size": 8},
        weight=1,
        largest=2 * 2 * 64 * 8,
        alive=2 * 2 * 64 * 64 * 9 // 10,
        many=(1, 2, 5504, 2),
        with_many={"block_size": 96},
        if_slow={"block_size": 160, "causal": True},  # takes half the time, and leaves no room for half a matrix
    )
    # Right answers take 535,000 to 740,000 operations; with one hidden tile for each block of queries it is 927,000.
    test_hidden_blocks_are_skipped = contracts.costs_no_more(
        "With causal=True, tiles that the mask hides completely are not computed, which saves up to half of the "
        "operations, and no T x T mask is made.",
        of=(72, 48),
        drawn={"block_size": 24, "causal": True},
        weight=2,
        largest=72 * 48,
        operations=830_000,
    )
    test_inputs_are_unchanged = contracts.unchanged("Queries, keys and values are not modified.", each=BOTH)
    test_follows_device = contracts.device(
        "The result and all intermediate tensors are on the inputs' device, causal or not.", each=BOTH
    )
    test_dtype_is_kept = contracts.dtype("The result has the dtype of the inputs, causal or not.", each=BOTH)


@contracts.exercise("attention_backward", forbids=[AUTOGRAD, LIBRARY_ATTENTION])
class TestAttentionBackward(contracts.Graders):
    SIZES = ((5, 7, 6, 3), (4, 4, 3, 3), (6, 2, 5, 5), (1, 3, 3, 2), (3, 1, 5, 4), (5, 5, 5, 5))

    def draw(self, rng, *sizes, scale=1.0):
        *leading, Tq, Tk, d, dv = sizes or (2, 5, 7, 6, 3)
        queries, keys = rng.randn(*leading, Tq, d, scale=scale), rng.randn(*leading, Tk, d)
        return queries, keys, rng.randn(*leading, Tk, dv), rng.randn(*leading, Tq, dv)

    def assert_one(self, student, reference, rng, position):
        """Check one of the three gradients for all sizes."""

        def check(args):
            right = reference.attention_backward(*args)
            self.assert_right(student.attention_backward(*args), only(right, position))

        in_each([self.draw(rng, *sizes, scale=1.5) for sizes in self.SIZES], check)

    @contracts.points(2, public=True)
    def test_two_keys(self, student):
        """One query [2, 0], keys [1, 0] and [1, 4], values 3 and 9, gradient 1: dQ is [0, 4.2426]; dK is -2.1213 and
        2.1213 in its first column and 0 in the second; dV is 0.5 twice."""
        queries, keys = torch.tensor([[2.0, 0.0]]), torch.tensor([[1.0, 0.0], [1.0, 4.0]])
        found = student.attention_backward(queries, keys, torch.tensor([[3.0], [9.0]]), torch.tensor([[1.0]]))
        right = [[0.0, 4.2426]], [[-2.1213, 0.0], [2.1213, 0.0]], [[0.5], [0.5]]
        assert_close(found, tuple(map(golden, right)))

    @contracts.points(3, essential=True)
    def test_values(self, student, reference, rng):
        """The third result is dV, the weights transposed times the gradient of the output, for any shapes."""
        self.assert_one(student, reference, rng, 2)

    @contracts.points(3, essential=True)
    def test_queries(self, student, reference, rng):
        """The first result is dQ, the gradient of the scores times the keys, scaled, for any shapes."""
        self.assert_one(student, reference, rng, 0)

    @contracts.points(3, essential=True)
    def test_keys(self, student, reference, rng):
        """The second result is dK, the gradient of the scores transposed times the queries, scaled, for any shapes."""
        self.assert_one(student, reference, rng, 1)

    test_any_leading_dimensions = contracts.agree(
        "Each sequence and each head is computed on its own.",
        [(2, 5, 7, 6, 3), (3, 3, 3, 3, 3), (2, 3, 4, 6, 5, 2), (2, 1, 2, 1, 3, 1)],
        weight=1,
        public=True,
    )

    @contracts.points(1)
    def test_large_scores(self, student, reference, rng):
        """Scores above 100, or below -100, cause no overflow."""
        for root in (12.0, -12.0):
            queries, keys, values, grad_output = self.draw(rng, 5, 7, 6, 3)
            first = torch.arange(6) == 0
            queries = torch.where(first, 12.0, queries)
            keys = torch.where(first, root * 6**0.5, keys)  # adds 144 to all scores, or takes it off
            self.assert_agree(student, reference, queries, keys, values, grad_output, tolerance=LARGE_LOGITS)

    test_float64_stays_exact = contracts.float64(
        "For float64 inputs all three have float64 precision.", of=(5, 7, 64, 3)
    )
    test_inputs_are_unchanged = contracts.unchanged("None of the four inputs is modified.")
    test_follows_device = contracts.device("The results and all intermediate tensors are on the inputs' device.")
    test_dtype_is_kept = contracts.dtype("The results have the dtype of the inputs.")


@contracts.exercise("linear_attention", forbids=())
class TestLinearAttention(contracts.Graders):
    """Values are compared where the denominator is at least 1: a small number may be added to it, or a limit set."""

    @staticmethod
    def assert_right(actual, expected, *, tolerance=None):
        """In float64, too, a result need be no closer than in float32."""
        assert_close(actual, expected, tolerance=tolerance or TOLERANCE[torch.float32])

    def draw(self, rng, *sizes, causal=False, scale=1.0, first=0.0):
        """Queries whose first number is positive, as is the first key's: so each denominator is at least 1.

        first: added to these numbers. All numbers of a long text are positive: a rule writes them into the release.
        """
        *leading, T, hd, hv = sizes or (2, 5, 3, 4)
        if T > LONG:
            queries, keys = (rng.rand(*leading, T, hd) for _ in range(2))
        else:
            queries, keys = (rng.randn(*leading, T, hd, scale=scale) for _ in range(2))
            column, row = torch.arange(hd) == 0, torch.arange(T)[:, None] == 0
            queries = torch.where(column, queries.abs() + first, queries)
            keys = torch.where(column & row, keys.abs() + first, keys)
        return (queries, keys, rng.randn(*leading, T, hv), *([True] if causal else []))

    @contracts.points(2, public=True)
    def test_two_tokens(self, student):
        """Two tokens of width 1, with keys 0 and 1, values 3 and 9, and queries that give weights 1/3 and 2/3."""
        queries, keys = torch.tensor([[0.5], [-1.0]]), torch.tensor([[0.0], [1.0]])
        values = torch.tensor([[3.0], [9.0]])
        assert_close(student.linear_attention(queries, keys, values), golden([[7.0], [7.0]]))

    test_other_shapes = contracts.agree(
        "The weights are the dot products of f(q) and f(k), divided by their sum over the keys, for any shapes.",
        [(6, 3, 4), (1, 3, 2), (5, 1, 3), (4, 4, 4), (9, 5, 1), (20, 1, 1, 3)],  # the last has denominators near 1
        weight=3,
    )
    test_any_leading_dimensions = contracts.agree(
        "Each sequence and each head is computed on its own.",
        [(2, 5, 3, 4), (2, 3, 4, 2, 5), (3, 1, 4, 3, 3)],
        weight=1,
        public=True,
    )
    test_causal = contracts.agree(
        "With causal=True a token's sums include the keys up to itself, and no later ones.",
        [(6, 3, 4), (1, 2, 3), (2, 5, 3, 4), (2, 2, 4, 3, 3)],
        causal=True,
        weight=3,
        essential=True,
    )

    @contracts.points(1)
    def test_negative_numbers(self, student, reference, rng):
        """Below zero, f is small and positive, and a row of weights sums to 1 there, too."""
        queries, keys, values = self.draw(rng, 5, 3, 4)
        for causal in (False, True):
            self.assert_agree(student, reference, queries - 2.0, keys + 40.0, values, causal)
            self.assert_agree(student, reference, queries + 40.0, keys - 2.0, values, causal)

    @contracts.points(1, property=True)
    def test_vanishing_features(self, student, rng):
        """The result and its gradients are finite even if f is 0 in float32, as it is below -17.3."""
        queries, keys, values = self.draw(rng, 5, 3, 4)
        low_queries, low_keys = -queries.abs() - 20.0, -keys.abs() - 20.0
        pairs = [(low_queries, low_keys), (low_queries, keys), (queries, low_keys)]
        pairs += [(3 * low_queries, 3 * low_keys)]  # where exp underflows, too
        cases = [(*pair, values, causal) for pair in pairs for causal in (False, True)]
        cotangent = torch.full_like(values, 1e-3)  # with 1 a gradient may overflow where the limit is the least float
        in_each(cases, lambda args: assert_finite(student, student.linear_attention, *args, cotangent=cotangent))

    test_gradients = contracts.gradients("Gradients flow back to queries, keys and values.")
    test_gradients_where_causal = contracts.gradients(
        "With causal=True, too, gradients flow back to queries, keys and values.", of=(5, 3, 4), causal=True, weight=0.5
    )

    @contracts.points(0.5)
    def test_large_numbers(self, student, reference, rng):
        """Inputs in the hundreds give no NaN, in the result or in the gradients."""
        for causal in (False, True):
            queries, keys, values = self.draw(rng, 5, 3, 4, scale=300.0)
            args = queries.abs(), keys.abs(), values, causal
            self.assert_agree(student, reference, *args)
            cotangent = rng.randn(5, 4)
            assert_same_gradients(student.linear_attention, reference.linear_attention, *args, cotangent=cotangent)

    # In denominators as large a small number shows in no digit: whoever adds one keeps the name of another mistake.
    test_float64_stays_exact = contracts.float64(
        "The result for float64 inputs is right, causal or not.", each=BOTH, first=40.0
    )
    test_no_matrix_of_weights = contracts.costs_no_more(
        "No T x T tensor is made: f(K) and V are multiplied first.",
        of=(256, 3, 5),
        weight=2,
        largest=256 * 256 // 2,
        alive=256 * 256 * 3 // 4,
        operations=300_000,  # right answers take 22,000 to 30,000; weights in pieces, 1,000,000
        many=(7680, 3, 5),
        essential=True,
    )
    test_no_matrix_where_causal = contracts.costs_no_more(
        "The causal form makes no T x T tensor, either: it carries a state from token to token.",
        of=(512, 3, 5),
        drawn={"causal": True},
        weight=2,
        largest=256 * 256 // 2,
        alive=512 * 512 // 4,
        many=(7680, 3, 5),
        with_many={"causal": True},
        essential=True,
    )
    # Right answers take 44,000 to 255,000 operations, in blocks of 128 tokens, the most that fit above, 1,400,000;
    # where each token meets all before it again, it is 2,200,000 and more.
    test_each_token_adds_once = contracts.costs_no_more(
        "In the causal form each token is added to the state once: operations grow with T, not with T * T.",
        of=(512, 3, 5),
        drawn={"causal": True},
        weight=1,
        operations=1_700_000,
    )
    test_inputs_are_unchanged = contracts.unchanged("Queries, keys and values are not modified.", each=BOTH)
    test_follows_device = contracts.device(
        "The result and the state are on the inputs' device, causal or not.", each=BOTH
    )
    test_dtype_is_kept = contracts.dtype("The result has the dtype of the inputs, causal or not.", each=BOTH)
