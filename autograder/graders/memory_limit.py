"""Test that a call gives the right result in a worker with little memory, which the operating system limits.

The limit holds for all memory, also of another thread, of NumPy, or of an operator whose cost is not counted. The
inputs are so large that a T x T matrix does not fit, even with one byte for each element.
"""

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, NamedTuple

import torch

from ..core.comparison import Mismatch
from ..core.observation import Missing, Raised
from ..sandbox.client import TOO_MUCH_MEMORY, Crashed, TimedOut
from .budget import OutOfBudget, OutOfRestarts
from .proxy import StudentProxy


class MemoryLimit(NamedTuple):
    """Limits for the memory and CPU time of a call with large inputs, and the size of these inputs."""

    spare_bytes: int
    """Limit for memory in addition to what Python, PyTorch and the notebook's imports take."""
    cpu_seconds: int
    tokens: float
    """Number of tokens, as a fraction of the number that a hidden test states."""
    is_patient: bool = False
    """True for the limit that allows slow code much CPU time."""

    @property
    def in_words(self) -> str:
        """The memory limit in words, such as `24 MB`, for a message."""
        return f"{self.spare_bytes >> 20} MB"


_USUAL = MemoryLimit(24 << 20, 1, 0.7)
"""The first limit that is tried. Usual right answers take a third of its CPU time."""
_ROOMY = MemoryLimit(48 << 20, 1, 1.0)
"""The limit for notebooks whose cells need memory, and for answers that fragment it. A T x T matrix does not fit."""
_PATIENT = MemoryLimit(24 << 20, 20, 0.7, is_patient=True)
_TOO_SLOW = (
    f"With large inputs the call takes more than {_PATIENT.cpu_seconds} seconds of CPU time, so its memory cannot be "
    "measured."
)
_CLOSE = 1e-3
"""Tolerance for results that are sums over thousands of float32 elements: rounding errors grow with the number."""
_NO_MEMORY = ("allocate memory", "bad_alloc", "out of memory", "Cannot allocate", "Unable to allocate")

_right: dict[Hashable, Any] = {}
"""Cache of right results for large inputs, by `case_key`. They are the same for every student."""


class LargeCall(NamedTuple):
    """A call with large inputs."""

    call: Callable[[], Any]
    """Runs the student's code in the worker."""
    reference: Callable[[], Any]
    """Computes the right result."""
    case: tuple[Any, ...]
    """The inputs and everything else that the right result depends on."""


def assert_fits(
    student: StudentProxy,
    large: Callable[[StudentProxy, MemoryLimit], LargeCall],
    check: Callable[..., None],
    *,
    may_be_slow: bool = False,
) -> None:
    """Raise Mismatch unless a call with large inputs gives the right result in little memory.

    large: returns the call, given the student's code in a separate worker, and the limit. check: compares the result
    with the right one.

    If the call fails, it is made once more with more memory and more tokens, and only that counts. If it takes too
    long, it is made once more with more time. may_be_slow: a slow call passes instead, because its cost is also
    counted. Without a sandbox, there is no limit and no call.
    """
    assert_fits = partial(_assert_fits, student, large, check)
    try:
        try:
            assert_fits(_USUAL)
        except (Mismatch, Raised):
            assert_fits(_ROOMY)
        return
    except (TimedOut, OutOfBudget):
        if may_be_slow:
            return
    try:
        assert_fits(_PATIENT)
    except (TimedOut, OutOfBudget):
        raise Mismatch(_TOO_SLOW) from None


def _assert_fits(
    student: StudentProxy,
    for_limit: Callable[[StudentProxy, MemoryLimit], LargeCall],
    check: Callable[..., None],
    limit: MemoryLimit,
) -> None:
    if (confined := student.apart(limit.spare_bytes, limit.cpu_seconds)) is None:
        return
    large = for_limit(confined, limit)
    key = case_key(large.case)
    if key not in _right:
        _right[key] = large.reference()
    too_much = f"With large inputs the call needs more than {limit.in_words} of memory besides the inputs."
    did_not_run = f"{_with_spare(limit)} the cell that defines it did not run."
    try:
        found = large.call()
    except Raised as raised:
        if _is_no_memory(raised):
            raise Mismatch(too_much) from None
        if "NameError" in raised.kinds:
            raise Mismatch(f"{raised}. {did_not_run}") from None
        raise
    except Missing as missing:
        raise Mismatch(f"{missing} {did_not_run}") from None
    except OutOfRestarts:
        raise Mismatch(f"{_with_spare(limit)} its cells ended Python, so that the call could not be tried.") from None
    except Crashed as crash:
        if str(crash) == TOO_MUCH_MEMORY:
            raise Mismatch(too_much) from None
        raise Mismatch(
            f"With large inputs Python ended. Most likely the call needs more than {limit.in_words} besides the inputs."
        ) from None
    check(found, _right[key], tolerance=_CLOSE)


def _with_spare(limit: MemoryLimit) -> str:
    return f"This test runs the notebook with {limit.in_words} of memory to spare, in which"


def _is_no_memory(raised: Raised) -> bool:
    return "MemoryError" in raised.kinds or any(words in str(raised) for words in _NO_MEMORY)


def case_key(case: Any) -> Hashable:
    """Return a dict key for a case of a large call; equal inputs have equal keys."""
    if isinstance(case, torch.Tensor):
        return case.shape, str(case.dtype), case.contiguous().numpy().tobytes()
    return tuple(map(case_key, case)) if isinstance(case, tuple | list) else case
