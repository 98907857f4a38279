"""The hidden graders of the unit's hunts."""

from autograder.catalogue.bug_hunts import Hunt, hunt
from autograder.graders import contracts


@contracts.exercise("hunt_merge_heads", forbids=())
class TestHuntMergeHeads(contracts.Graders):
    test_they_differ = hunt(
        "On your input, the wrong `merge_heads` must give a different result from the right one.",
        Hunt(
            "merge_heads",
            ("x: b h T hd",),
            hides=("b=1", "T=1", "x alike", "x alike turned b T"),
            mistake="tokens_first_if_as_many_as_sequences",
        ),
    )
