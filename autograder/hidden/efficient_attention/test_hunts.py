"""The hidden graders of the unit's hunts."""

from autograder.catalogue.bug_hunts import Hunt, hunt
from autograder.graders import contracts


@contracts.exercise("hunt_tiled_attention", forbids=())
class TestHuntTiledAttention(contracts.Graders):
    test_they_differ = hunt(
        "On your input, the wrong `tiled_attention` must give a different result from the right one.",
        Hunt(
            "tiled_attention",
            ("queries: T hd", "keys: T hd", "values: T hd"),
            also=(2,),
            hides=("T=1", "T=2", "values alike along T", "keys alike along T", "queries all 0"),
            mistake="maximum_never_updated",
        ),
    )
