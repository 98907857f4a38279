"""The hidden graders of the unit's hunts."""

from autograder.catalogue.bug_hunts import Hunt, hunt
from autograder.graders import contracts


@contracts.exercise("hunt_causal_softmax", forbids=())
class TestHuntCausalSoftmax(contracts.Graders):
    test_they_differ = hunt(
        "On your input, the wrong `causal_softmax` must give a different result from the right one.",
        Hunt(
            "causal_softmax",
            ("scores: T T",),
            also=(4,),
            hides=("T=1",),
            mistake="hidden_filled_with_minus_ten_thousand",
        ),
    )
