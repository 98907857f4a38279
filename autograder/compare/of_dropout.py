"""What is said of dropped weights, by marking and by the check that students get."""

NOT_FINITE = "Some weights are NaN or infinite. Is a whole row hidden, or something divided by 0?"
NONE_DROPPED = "No weight is dropped: none is 0."
ALL_DROPPED = "Every weight is dropped."
TURNED_ROUND = "A share of 1-p is dropped, and p is kept: it is the other way round."
ANOTHER_SHARE = "The share of the weights that is dropped is not p."
NOT_RESCALED = "The kept weights are as they were; divide them by 1-p, so that their sum stays as it was."
CHANGED = "Not all of the kept weights are divided by 1-p."
NOT_THE_WEIGHTS = "Numbers of the values or of the result are dropped; it is weights that should be."
WRONG_ALREADY = "The result is wrong in evaluation already, where nothing should be dropped; mend that first."
DETACHED = "No gradient arrives at the weights: is the result detached from them somewhere?"


def always_as_many(calls: int) -> str:
    """The number of weights that fall is no chance."""
    return (
        f"In {calls} calls the same number of weights is dropped each time. Each weight is dropped with probability p, "
        "whatever becomes of the others: how many fall is chance."
    )
