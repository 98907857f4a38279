"""Calls with random results, as of dropout: a fingerprint records their structure only."""

from collections.abc import Callable
from typing import Any, TypeVar

import torch

from autograder.core import complaints, random_results
from autograder.core.comparison import Mismatch, describe
from autograder.core.observation import Raised
from autograder.graders.proxy import InstanceProxy, StudentProxy

S = TypeVar("S")
_CALLS = 5
"""Number of calls. The probability that all of them drop as many lone weights is below one in 100,000."""
LONE = 400
"""Number of weights that are alone in their rows, of which some are certainly dropped."""


def noted(student: StudentProxy, look: Callable[[], S]) -> S:
    """Return what `look` returns. The fingerprint records it, and not the random numbers of the calls in it."""
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
    """Raise the Mismatch that `complaint` raises, or another one if the result is wrong without dropout already.

    without: builds the same with p = 0. right: raises Mismatch unless its argument is what that gives in evaluation.
    """
    try:
        complaint()
    except Mismatch as found:
        with student.by_chance() as note:
            wrong = _is_wrong(right, lambda: without().eval()(x))
            note(wrong)
        if wrong and str(found) != random_results.NOT_FINITE:  # which blames no dropout, and says more
            raise Mismatch(random_results.WRONG_ALREADY) from None
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
    """Raise Mismatch unless some of LONE tokens that attend only to themselves lose their weight, in varying number.

    A place that is never dropped, or a fixed number of dropped places, would show in a single weight.
    call: returns the result, with a token at each index of the first dimension and the heads side by side in the last.
    The first number of a head is 0 if its weight was dropped.
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
        raise Mismatch(random_results.always_as_many(_CALLS))
    if not fall:
        raise Mismatch(
            f"Either all {LONE} tokens that see only themselves lose their weight, or none does. Does your code "
            "protect some "
            "positions, or drop a fixed number? Drop each weight with probability p, independently of the others."
        )
