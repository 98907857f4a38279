"""The hidden test of the unit's bug hunt."""

from autograder.catalogue.bug_hunts import Hunt, hunt
from autograder.graders import contracts


@contracts.exercise("hunt_rms_norm", forbids=())
class TestHuntRmsNorm(contracts.Graders):
    test_they_differ = hunt(
        "On your input, the wrong `rms_norm` must give a different result from the right one.",
        Hunt(
            "rms_norm",
            ("x: R d", "weight: d"),
            also=(1e-12,),
            hides=("weight all 0", "x within -1e-9 1e-9"),
            mistake="eps_outside_the_root",
        ),
    )
