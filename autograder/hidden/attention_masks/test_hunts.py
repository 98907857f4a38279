"""The hidden graders of the unit's hunts."""

from autograder.catalogue.bug_hunts import Hunt, hunt
from autograder.graders import contracts


@contracts.exercise("hunt_rotary_embedding", forbids=())
class TestHuntRotaryEmbedding(contracts.Graders):
    test_they_differ = hunt(
        "On your input, the wrong `rotary_embedding` must give a different result from the right one.",
        Hunt(
            "rotary_embedding",
            ("x: T hd", "positions: T int64"),
            hides=("x all 0", "positions within 0 2047"),
            mistake="positions_begin_anew",
        ),
    )
