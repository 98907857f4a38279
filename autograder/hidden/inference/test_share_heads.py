"""The hidden graders of giving groups to heads, and of the unit's hunt."""

import torch

from autograder.catalogue.bug_hunts import Hunt, hunt
from autograder.core.comparison import assert_close, golden
from autograder.graders import contracts


@contracts.exercise("share_heads", forbids=())
class TestShareHeads(contracts.Graders):
    def draw(self, rng, *sizes):
        b, groups, tokens, head_dim, num_heads = sizes or (2, 2, 5, 7, 6)
        return rng.randn(b, groups, tokens, head_dim), num_heads

    @contracts.points(2, public=True)
    def test_two_groups(self, student):
        """Six heads share two groups with the values 1 and 2 as 1 1 1 2 2 2."""
        x = torch.tensor([1.0, 2.0]).reshape(1, 2, 1, 1)
        assert_close(student.share_heads(x, 6), golden([[[[one]] for one in (1.0, 1.0, 1.0, 2.0, 2.0, 2.0)]]))

    test_any_sizes = contracts.agree(
        "Neighbouring heads share a group, for any number of groups, tokens and heads.",
        [(2, 2, 5, 7, 6), (1, 3, 7, 5, 6), (3, 2, 6, 5, 4), (2, 4, 1, 6, 12)],
        weight=4,
        essential=True,
    )
    test_one_group_or_as_many_as_heads = contracts.agree(
        "A single group serves all heads; with as many groups as heads, each head has its own.",
        [(2, 1, 5, 7, 6), (2, 6, 5, 7, 6), (3, 1, 2, 5, 1)],
        weight=2,
    )
    test_gradients = contracts.gradients("Gradients flow back to x, from all heads of a group.")
    test_float64_stays_exact = contracts.float64("float64 inputs keep their precision.")
    test_inputs_are_unchanged = contracts.unchanged("x is not modified.")
    test_follows_device = contracts.device("The result is on the input's device.")
    test_dtype_is_kept = contracts.dtype("The result has the dtype of x.")


@contracts.exercise("hunt_share_heads", forbids=())
class TestHuntShareHeads(contracts.Graders):
    test_they_differ = hunt(
        "On your input, the wrong `share_heads` must give a different result from the right one.",
        Hunt(
            "share_heads",
            ("x: b groups T hd",),
            also=(4,),
            hides=("groups=3", "groups=2", "groups=4", "b=1", "x alike", "x alike along b"),
            mistake="one_group_repeated_with_its_batch",
        ),
    )
