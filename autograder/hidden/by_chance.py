"""Calls whose results are chance, as those of dropout: what is noted of them, and how they are judged."""

from collections.abc import Callable
from typing import Any, TypeVar

import torch

from autograder.compare import Mismatch, complaints, describe, dropout
from autograder.core.faults import Raised
from autograder.student.proxy import InstanceProxy, StudentProxy

S = TypeVar("S")
_CALLS = 5
"""How often lone weights are dropped: that chance drops as many each time is less likely than one in 100,000."""
LONE = 400
"""How many weights that stand alone in their rows are looked at: that none of them falls by chance is impossible."""


def noted(student: StudentProxy, look: Callable[[], S]) -> S:
    """What is seen in calls whose results are chance; the fingerprint keeps this, and never their numbers."""
    with student.by_chance() as note:
        note(seen := look())
    return seen


def complain(
    student: StudentProxy,
    without: Callable[[], InstanceProxy],
    x: torch.Tensor,
    right: Callable[[Any], None],
    complaint: Callable[[], None],
) -> None:
    """Raises the complaint of dropout, unless the result is wrong without dropout already: then it says that.

    without: builds the same with p = 0. right: raises Mismatch unless its argument is what that gives in evaluation.
    """
    try:
        complaint()
    except Mismatch as found:
        with student.by_chance() as note:
            wrong = _is_wrong(right, lambda: without().eval()(x))
            note(wrong)
        if wrong and str(found) != dropout.NOT_FINITE:  # which blames no dropout, and says more
            raise Mismatch(dropout.WRONG_ALREADY) from None
        raise


def _is_wrong(right: Callable[[Any], None], result: Callable[[], Any]) -> bool:
    try:
        right(result())
    except Mismatch:
        return True
    except Raised:
        return False  # nothing is known of it then
    return False


def assert_lone_weights_fall(
    student: StudentProxy, call: Callable[[], Any], shape: tuple[int, ...], num_heads: int = 1
) -> None:
    """Of LONE tokens that see nothing but themselves, some lose their weight and some keep it, and not always as many.

    So no place is spared, and no number of places counted out: of a single weight that would be none, or all.
    call: gives what became of them, a token to each index of the first dimension, its heads side by side in the last;
    a head's first number is 0 where its weight fell.
    """
    with student.by_chance() as note:
        fallen = []
        for _ in range(_CALLS):
            result = call()
            if not isinstance(result, torch.Tensor) or result.shape != shape:
                raise Mismatch(complaints.of_another_shape(describe(result), shape))
            fell = result.detach().reshape(len(result), num_heads, -1)[..., 0] == 0
            fallen.append(int(fell.sum()))
        fall = 0 < fallen[0] < LONE * num_heads
        counted = len({*fallen}) == 1
        note((fall, counted))
    if fall and counted:
        raise Mismatch(dropout.always_as_many(_CALLS))
    if not fall:
        raise Mismatch(
            f"Of {LONE} tokens that see nothing but themselves, none loses its weight, or all do. Is a place spared, "
            "or a number of places counted out? Each weight is dropped with probability p, whatever the others are."
        )
