"""The hidden graders of the unit's hunts."""

from autograder.catalogue.bug_hunts import Hunt, hunt
from autograder.graders import contracts


@contracts.exercise("hunt_softmax", forbids=())
class TestHuntSoftmax(contracts.Graders):
    test_they_differ = hunt(
        "On your input, the wrong `softmax` must give a different result from the right one.",
        Hunt(
            "softmax",
            ("scores: R T",),
            hides=("R=1", "scores alike", "scores alike along R"),
            mistake="maximum_of_everything",
        ),
    )
