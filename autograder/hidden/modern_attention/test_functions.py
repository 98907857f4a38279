"""The hidden tests of the ninth unit's functions."""

import torch

from autograder.core.comparison import assert_close, golden
from autograder.graders import contracts
from autograder.graders.statements import (
    assert_costs_no_more,
    assert_dtype,
    assert_gives_dtype,
    assert_right_where_large,
    assert_same_gradients,
    in_each,
)

from .decoding_step import assert_step_is_cheap

HALF = (torch.float16, torch.bfloat16)


@contracts.exercise("rms_norm")
class TestRmsNorm(contracts.Graders):
    def draw(self, rng, *sizes, scale=1.0):
        *leading, d = sizes or (3, 5)
        return rng.randn(*leading, d, scale=scale), rng.rand(d)

    test_four_elements = contracts.gives(
        "The vector 1, 2, 3, 4 with weights of one gives 0.3651, 0.7303, 1.0954, 1.4606.",
        (torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.ones(4)),
        golden([0.3651, 0.7303, 1.0954, 1.4606]),
    )
    test_other_sizes = contracts.agree_in_turn(
        "Each vector is divided by its own root mean square and scaled by the weights, for any leading dimensions.",
        [(4, 4), (3, 5), (2, 3, 6), (7,), (2, 1, 2, 3), (1, 1)],
        scale=2.0,
        weight=3,
        public=True,
        essential=True,
    )

    @contracts.points(1)
    def test_mean_is_kept(self, student, reference, rng):
        """Vectors whose mean is far from zero keep their mean."""
        x, weight = self.draw(rng, 4, 6)
        self.assert_agree(student, reference, x + 5.0, weight)

    @contracts.points(1)
    def test_eps(self, student, reference, rng):
        """`eps` is added to the mean square before the root, with the value that is passed."""
        x, weight = self.draw(rng, 3, 5, scale=0.1)
        for eps in (0.5, 0.03):
            self.assert_agree(student, reference, x, weight, eps)

    @contracts.points(1)
    def test_vector_of_zeros(self, student, reference, rng):
        """A vector of zeros gives zeros, and the gradients stay finite."""
        x, weight = self.draw(rng, 3, 4)
        x[1] = 0.0
        assert_right_where_large(student, student.rms_norm, reference.rms_norm, x, weight, check=self.assert_right)

    @contracts.points(2)
    def test_half_precision(self, student, reference, rng):
        """Elements in the hundreds give no infinity in float16 and bfloat16, and the result has the dtype of x."""
        for dtype in HALF:
            x, weight = self.draw(rng.of(dtype), 3, 6, scale=300.0)
            result = student.rms_norm(x, weight)
            self.assert_right(result, reference.rms_norm(x, weight))
            assert_dtype(result, dtype)

    test_gradients = contracts.gradients("Gradients flow back to the vectors and to the weights.", of=(2, 4, 5))
    test_float64_stays_exact = contracts.float64("The result for float64 vectors is as exact as float64.")
    test_inputs_are_unchanged = contracts.unchanged("The function modifies neither the vectors nor the weights.")
    test_follows_device = contracts.device("The result is on the device of the vectors.")
    test_dtype_is_kept = contracts.dtype("The result has the dtype of the vectors.")


@contracts.exercise("qk_norm_scores")
class TestQkNormScores(contracts.Graders):
    def draw(self, rng, *sizes, scale=1.0):
        *leading, Tq, Tk, hd = sizes or (2, 3, 4, 5)
        queries = rng.randn(*leading, Tq, hd, scale=scale)
        return queries, rng.randn(*leading, Tk, hd, scale=scale), rng.rand(hd), rng.rand(hd)

    test_one_query = contracts.gives(
        "A query (3, 4) has the score 1.4142 with a key in its direction, and 0 with a key at a right angle.",
        (torch.tensor([[3.0, 4.0]]), torch.tensor([[30.0, 40.0], [-4.0, 3.0]]), torch.ones(2), torch.ones(2)),
        golden([[1.4142, 0.0]]),
    )
    test_other_sizes = contracts.agree_in_turn(
        "Queries and keys are normalized, each with its own weights, and the scores are divided by the root of hd.",
        [(4, 4, 4), (2, 3, 5, 3), (2, 2, 3, 4, 6), (1, 6, 15), (5, 2, 7)],
        scale=3.0,
        weight=4,
        essential=True,
    )

    @contracts.points(1)
    def test_large_inputs(self, student, reference, rng):
        """Queries and keys that are a million times as large give the same scores."""
        queries, keys, query_weight, key_weight = self.draw(rng, 2, 3, 4, 5)
        self.assert_agree(student, reference, queries * 1e6, keys * 1e6, query_weight, key_weight)

    @contracts.points(0.5)
    def test_eps(self, student, reference, rng):
        """`eps` is added to the mean squares of queries and keys."""
        self.assert_agree(student, reference, *self.draw(rng, 3, 4, 5, scale=0.3), 0.2)

    test_gradients = contracts.gradients("Gradients flow back to queries, keys and both weights.")
    test_float64_stays_exact = contracts.float64(
        "Scores of float64 inputs are as exact as float64.", of=(2, 3, 4, contracts.EXACT_ROOT)
    )
    test_inputs_are_unchanged = contracts.unchanged("The function modifies none of its arguments.")
    test_follows_device = contracts.device("The scores are on the device of the queries.")
    test_dtype_is_kept = contracts.dtype("The scores have the dtype of the queries.")


@contracts.exercise("softcap")
class TestSoftcap(contracts.Graders):
    def draw(self, rng, *sizes, scale=3.0, cap=2.5):
        return rng.randn(*(sizes or (3, 4)), scale=scale), cap

    test_three_scores = contracts.gives(
        "With a cap of 2 the scores 0, 1 and 4 become 0, 0.9242 and 1.9281.",
        (torch.tensor([0.0, 1.0, 4.0]), 2.0),
        golden([0.0, 0.9242, 1.9281]),
    )

    @contracts.points(2, public=True, essential=True)
    def test_other_caps(self, student, reference, rng):
        """Small scores stay nearly as they are and large scores approach the cap, for any cap and shape."""
        for sizes, cap in (((4, 5), 1.5), ((2, 3, 4), 30.0), ((7,), 0.3), ((2, 1, 2, 3), 5)):
            scores, _ = self.draw(rng, *sizes)
            self.assert_agree(student, reference, scores, cap)

    @contracts.points(1)
    def test_large_scores(self, student, reference, rng):
        """Scores in the thousands, of either sign, give the cap and no NaN."""
        scores, _ = self.draw(rng, 4, 5, scale=3000.0)
        self.assert_agree(student, reference, scores, 50.0)

    test_gradients = contracts.gradients("Gradients flow back to the scores.")
    test_float64_stays_exact = contracts.float64("The result for float64 scores is as exact as float64.")
    test_inputs_are_unchanged = contracts.unchanged("The function does not modify the scores.")
    test_follows_device = contracts.device("The result is on the device of the scores.")
    test_dtype_is_kept = contracts.dtype("The result has the dtype of the scores.")


@contracts.exercise("half_precision_attention")
class TestHalfPrecisionAttention(contracts.Graders):
    def draw(self, rng, *sizes, scale=1.0):
        *leading, Tq, Tk, d, dv = sizes or (2, 3, 4, 5, 6)
        queries, keys = (rng.randn(*leading, T, d, scale=scale) for T in (Tq, Tk))
        return queries, keys, rng.randn(*leading, Tk, dv)

    def cancelling(self, rng, *sizes):
        """Draw keys in pairs that are nearly alike, with opposite large values, so that the results are small.

        In many draws right answers were off by 0.2 of the tolerance at most, and answers that round scores or weights
        by 15 times the tolerance or more.
        """
        queries, keys, values = self.draw(rng, *sizes)
        values = 300.0 * values
        return queries, torch.cat([keys, keys + 0.003 * rng.randn(*keys.shape)], -2), torch.cat([values, -values], -2)

    def different_keys_of_one_score(self, rng, T, d, dv):
        """Draw keys in pairs whose difference is orthogonal to the query, with opposite values: the result is 0.

        Elements are multiples of 1/16, so that scores are exact in float32, scaled first or last.
        """
        query, keys, values = ((16.0 * one).round() / 16.0 for one in self.draw(rng, 1, T, d, dv))
        orthogonal = torch.stack([query[:, 1::2], -query[:, ::2]], dim=-1).flatten(-2)
        values = 256.0 * values
        return query, torch.cat([keys, keys + orthogonal]), torch.cat([values, -values])

    def assert_agree_in_half(self, student, reference, cases):
        """Allow three roundings of each dtype: one is that of the result."""

        def check(args):
            self.assert_agree(student, reference, *args, tolerance=1.5 * torch.finfo(args[0].dtype).eps)

        in_each(cases, check)

    test_two_keys = contracts.gives(
        "Two keys with the scores 0 and 1 and the values 1 and 10 give 7.5795.",
        (torch.tensor([[2.0, 0.0, 0.0, 1.0]]), torch.tensor([[0.0, 3.0, 1.0, 0.0], [1.0, 2.0, 5.0, 0.0]]),
         torch.tensor([[1.0], [10.0]])),
        golden([[7.5795]]),
    )  # fmt: skip
    test_other_sizes = contracts.agree_in_turn(
        "The result is softmax(Q K^T / sqrt(d)) V, for any numbers and widths of queries, keys and values.",
        [(4, 4, 4, 4), (3, 5, 3, 2), (2, 3, 5, 6, 4), (2, 2, 3, 4, 6, 5), (1, 6, 15, 3), (5, 2, 7, 1)],
        scale=1.5,
        weight=3,
        public=True,
        essential=True,
    )

    @contracts.points(4, essential=True)
    def test_half_precision(self, student, reference, rng):
        """float16 and bfloat16 lose no more than the rounding of the result, also where large values cancel."""
        sizes = (3, 4, 3, 3), (2, 2, 6, 5), (2, 3, 2, 3, 2)
        cases = [self.cancelling(rng.of(dtype), *size) for dtype in HALF for size in sizes]
        cases += [self.draw(rng.of(dtype), 2, 3, 5, 6, 4) for dtype in HALF]
        self.assert_agree_in_half(student, reference, cases)

    @contracts.points(1, property=True)
    def test_scaling(self, student, reference, rng):
        """Scaled queries are not rounded to half precision: scores that are equal stay equal."""
        cases = [self.different_keys_of_one_score(rng.of(dtype), 2, 6, 5) for dtype in HALF]
        self.assert_agree_in_half(student, reference, cases)

    @contracts.points(1)
    def test_overflow(self, student, reference, rng):
        """In float16 products beyond 65504 give neither infinity nor NaN."""
        cases = [self.draw(rng.of(dtype), 6, 8, 120, 3, scale=100.0) for dtype in HALF]
        in_each(cases, lambda args: self.assert_agree(student, reference, *args))

    @contracts.points(0.5)
    def test_many_keys(self, student, reference, rng):
        """The result for 600 keys is right in half precision, in which a long sum can stop growing or overflow."""
        drawn = [self.draw(rng.of(dtype), 2, 600, 3, 1, scale=0.3) for dtype in HALF]
        cases = [(queries, keys, rng.of(keys.dtype).rand(600, 2)) for queries, keys, _ in drawn]
        cases += [(queries, keys, 200.0 + 100.0 * values) for queries, keys, values in cases]
        self.assert_agree_in_half(student, reference, cases)

    @contracts.points(1, property=True)
    def test_half_precision_is_kept(self, student, reference, rng):
        """The result of float16 and bfloat16 inputs has their dtype."""
        for dtype in HALF:
            args = self.draw(rng.of(dtype))
            assert_dtype(result := student.half_precision_attention(*args), dtype)
            self.assert_right(result, reference.half_precision_attention(*args))

    @contracts.points(0.5)
    def test_gradients_in_half_precision(self, student, reference, rng):
        """Gradients flow back through the conversion of float16 and bfloat16 inputs."""
        own, right = self.pair(student, reference)
        for dtype in HALF:
            args = self.draw(rng.of(dtype), 3, 4, 5, 2)
            assert_same_gradients(own, right, *args, cotangent=rng.of(dtype).randn(3, 2))

    test_large_scores = contracts.large_scores(
        "Scores in the thousands give no NaN, neither in the result nor in gradients.", of=(2, 3, 4, 5, 6), scale=60.0
    )
    test_gradients = contracts.gradients("Gradients flow back to queries, keys and values.")
    test_float64_stays_exact = contracts.float64(
        "The result for float64 inputs is as exact as float64.", of=(2, 3, 4, contracts.EXACT_ROOT, 5)
    )
    test_inputs_are_unchanged = contracts.unchanged("The function modifies none of its arguments.")
    test_follows_device = contracts.device("The result is on the device of the inputs.")
    test_dtype_is_kept = contracts.dtype("The result has the dtype of the inputs.")


@contracts.exercise("attention_with_sinks")
class TestAttentionWithSinks(contracts.Graders):
    def draw(self, rng, b=2, h=3, T=5, hd=3, scale=1.0):
        inputs = tuple(rng.randn(b, h, T, hd, scale=scale) for _ in range(3))
        return *inputs, rng.randn(h)

    test_two_tokens = contracts.gives(
        "Scores 0 and 1 next to a sink of 1 get the weights 0.1554 and 0.4223.",
        (
            torch.tensor([0.0, 1.0]).view(1, 1, 2, 1),
            torch.tensor([0.0, 1.0]).view(1, 1, 2, 1),
            torch.tensor([1.0, 10.0]).view(1, 1, 2, 1),
            torch.tensor([1.0]),
        ),
        golden(torch.tensor([0.2689, 4.3786]).view(1, 1, 2, 1)),
    )
    test_other_sizes = contracts.agree_in_turn(
        "Each head's sink takes a part of the weight in every row, for any numbers of sequences, heads and tokens.",
        [(4, 4, 4, 4), (2, 3, 5, 3), (1, 5, 7, 6), (3, 2, 1, 5), (2, 1, 6, 2)],
        scale=2.0,
        weight=4,
        essential=True,
    )
    test_three_heads = contracts.agree_in_turn(
        "Each of three heads has its own sink.", [(1, 3, 2, 5)], weight=1, public=True
    )

    @contracts.points(1)
    def test_no_sink(self, student, reference, rng):
        """A sink of minus infinity takes nothing, so that the result is that of causal attention."""
        *inputs, sinks = self.draw(rng, 2, 3, 4, 5)
        self.assert_agree(student, reference, *inputs, torch.full_like(sinks, -torch.inf))

    @contracts.points(1)
    def test_large_scores(self, student, reference, rng):
        """Scores and sinks in the thousands, of either sign, give no NaN."""
        queries, keys, values, sinks = self.draw(rng, 2, 3, 6, 5, scale=100.0)
        far_below_zero = queries.abs() + 50.0, -keys.abs() - 50.0
        for (large_queries, large_keys), factor in (((queries, keys), 2e4), (far_below_zero, -3e4)):
            assert_right_where_large(
                student,
                student.attention_with_sinks,
                reference.attention_with_sinks,
                large_queries,
                large_keys,
                values,
                sinks.abs() * factor,
                check=self.assert_right,
            )

    test_gradients = contracts.gradients("Gradients flow back to queries, keys, values and sinks.")
    test_float64_stays_exact = contracts.float64(
        "The result for float64 inputs is as exact as float64.", of=(2, 3, 5, contracts.EXACT_ROOT)
    )

    test_inputs_are_unchanged = contracts.unchanged("The function modifies none of its arguments.")
    test_follows_device = contracts.device("The result, and the mask on the way to it, are on the inputs' device.")
    test_dtype_is_kept = contracts.dtype("The result has the dtype of the inputs.")


@contracts.exercise("document_mask")
class TestDocumentMask(contracts.Graders):
    def draw(self, rng, b=2, T=6, last=3):
        return ((rng.rand(b, T) * last).floor().long(),)

    test_two_documents = contracts.gives(
        "Two documents of two tokens each: a token sees itself and what comes before it in its own document.",
        (torch.tensor([[1, 1, 2, 2]]),),
        golden([[[0, 1, 1, 1], [0, 0, 1, 1], [1, 1, 0, 1], [1, 1, 0, 0]]]),
    )

    @contracts.points(3, essential=True)
    def test_other_documents(self, student, reference, rng):
        """Tokens with equal numbers see each other, next to each other or not, and no token sees a later one."""
        for b, T, last in ((3, 3, 2), (2, 7, 3), (1, 12, 4), (4, 1, 2), (1, 2, 1)):
            (documents,) = self.draw(rng, b, T, last)
            assert_close(student.document_mask(documents), golden(reference.document_mask(documents).value))

    @contracts.points(1)
    def test_other_numbers(self, student, reference):
        """Any whole numbers can stand for documents: negative ones, large ones, in any order."""
        for documents in ([[-1, -1, 0, 0, -1]], [[2**40, 7, 2**40 + 1, 7, 2**40]], [[5, 4, 4, 3, 5]]):
            numbers = torch.tensor(documents)
            assert_close(student.document_mask(numbers), golden(reference.document_mask(numbers).value))

    @contracts.points(1, property=True)
    def test_bool(self, student, reference, rng):
        """The mask is a bool tensor."""
        assert_gives_dtype(student.document_mask, reference.document_mask, torch.bool, *self.draw(rng))

    test_inputs_are_unchanged = contracts.unchanged("The function does not modify the numbers of the documents.")
    test_follows_device = contracts.device("The mask is on the device of the numbers.")


@contracts.exercise("swiglu")
class TestSwiglu(contracts.Graders):
    def draw(self, rng, *sizes, d=4, f=6, scale=1.0):
        x = rng.randn(*(sizes or (2, 3)), d, scale=scale)
        return x, rng.randn(f, d), rng.randn(f, d), rng.randn(d, f)

    test_one_token = contracts.gives(
        "For a token with gates silu(1) and silu(-1) and projections 2 and 3, W_down makes 1.4621 and -0.0758.",
        (
            torch.tensor([[1.0, 2.0]]),
            torch.tensor([[1.0, 0.0], [1.0, -1.0]]),
            torch.tensor([[0.0, 1.0], [1.0, 1.0]]),
            torch.tensor([[1.0, 0.0], [0.5, 1.0]]),
        ),
        golden([[1.4621, -0.0758]]),
    )
    test_other_sizes = contracts.agree_in_turn(
        "The SiLU of the gate scales the other projection, element by element, for any leading dimensions.",
        [(4,), (2, 3), (2, 2, 3), ()],
        weight=3,
        public=True,
        essential=True,
    )

    @contracts.points(1)
    def test_other_widths(self, student, reference, rng):
        """The width f between the projections may be larger than d, smaller or equal."""
        for d, f in ((3, 8), (5, 2), (4, 4), (1, 3)):
            self.assert_agree(student, reference, *self.draw(rng, 2, 3, d=d, f=f))

    @contracts.points(1)
    def test_large_inputs(self, student, reference, rng):
        """Gates in the thousands, of either sign, give no NaN."""
        args = self.draw(rng, 2, 3, scale=3000.0)
        assert_right_where_large(student, student.swiglu, reference.swiglu, *args, check=self.assert_right)

    test_gradients = contracts.gradients("Gradients flow back to x and to the three weights.")
    test_float64_stays_exact = contracts.float64("The result for float64 inputs is as exact as float64.")
    test_inputs_are_unchanged = contracts.unchanged("The function modifies none of its arguments.")
    test_follows_device = contracts.device("The result is on the device of x.")
    test_dtype_is_kept = contracts.dtype("The result has the dtype of x.")


@contracts.exercise("absorbed_scores")
class TestAbsorbedScores(contracts.Graders):
    def draw(self, rng, b=2, h=3, Tq=4, T=5, hd=6, r=7, scale=1.0):
        queries, latents = rng.randn(b, h, Tq, hd, scale=scale), rng.randn(b, T, r, scale=scale)
        return queries, latents, rng.randn(h, hd, r, scale=scale)

    test_two_tokens = contracts.gives(
        "The query (1, 2) becomes (1, 2, 3), and has the scores 3 and 6 with two latents.",
        (
            torch.tensor([1.0, 2.0]).view(1, 1, 1, 2),
            torch.tensor([[[1.0, 1.0, 0.0], [0.0, 0.0, 2.0]]]),
            torch.tensor([[[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]]),
        ),
        golden(torch.tensor([3.0, 6.0]).view(1, 1, 1, 2)),
    )
    test_other_sizes = contracts.agree_in_turn(
        "The scores are those with keys made of the latents, for any numbers of sequences, heads, queries and tokens.",
        [(3, 3, 3, 3, 3, 3), (2, 3, 4, 5, 6, 7), (1, 4, 1, 6, 5, 2), (3, 1, 5, 2, 3, 6), (2, 2, 1, 1, 1, 3)],
        weight=4,
        essential=True,
    )
    test_each_head = contracts.agree_in_turn(
        "Each head has its own matrix, and each sequence its own latents.",
        [(2, 4, 2, 3, 3, 5)],
        weight=1,
        public=True,
    )

    # Right answers take 6,900 to 8,500 operations here, those that make the keys 258,000 to 277,000.
    @contracts.points(3, essential=True)
    def test_makes_no_keys(self, student, reference, rng):
        """With one query for each head the keys are never made, neither of all heads nor head by head."""
        args = self.draw(rng, 1, 4, 1, 96, 48, 6)
        limits = {"largest": 9_000, "operations": 45_000}  # the keys of one head have 4,608 elements, of all 18,432
        assert_costs_no_more(student.absorbed_scores, limits, reference.absorbed_scores(*args), *args)
        if (apart := student.apart()) is not None:
            assert_step_is_cheap(apart, reference, rng)

    test_gradients = contracts.gradients("Gradients flow back to queries, latents and up_key.")
    test_float64_stays_exact = contracts.float64("The scores of float64 inputs are as exact as float64.")
    test_inputs_are_unchanged = contracts.unchanged("The function modifies none of its arguments.")
    test_follows_device = contracts.device("The scores are on the device of the queries.")
    test_dtype_is_kept = contracts.dtype("The scores have the dtype of the queries.")
