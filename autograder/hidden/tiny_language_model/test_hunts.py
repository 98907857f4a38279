"""The hidden graders of the unit's hunts."""

from autograder.catalogue.bug_hunts import Hunt, hunt
from autograder.graders import contracts


@contracts.exercise("hunt_next_token_loss", forbids=())
class TestHuntNextTokenLoss(contracts.Graders):
    test_they_differ = hunt(
        "On your input, the wrong `next_token_loss` must give a different result from the right one.",
        Hunt(
            "next_token_loss",
            ("logits: b T V", "tokens: b T int64"),
            hides=("T=1", "V=1", "logits alike"),
            mistake="probabilities_kept_above_zero",
        ),
    )
