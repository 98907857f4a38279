"""The hidden graders of the unit's hunts."""

from autograder.catalogue.bug_hunts import Hunt, hunt
from autograder.graders import contracts


@contracts.exercise("hunt_scaled_dot_product_attention", forbids=())
class TestHuntScaledDotProductAttention(contracts.Graders):
    test_they_differ = hunt(
        "On your input, the wrong `scaled_dot_product_attention` must give a different result from the right one.",
        Hunt(
            "scaled_dot_product_attention",
            ("queries: Tq d_k", "keys: Tk d_k", "values: Tk d_v"),
            hides=("d_k=d_v", "Tk=1", "keys alike along Tk", "values alike along Tk"),
            mistake="attention_scaled_by_d_v",
        ),
    )
