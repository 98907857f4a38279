"""Test that a call gives the right result in a worker with little memory, which the operating system limits.

The limit holds for all code: another thread, NumPy, or an operator that is not counted. The inputs are so large that
T x T elements of one byte do not fit.
"""

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, NamedTuple

import torch

from ..core.comparison import Mismatch
from ..core.faults import Missing, Raised
from ..sandbox.client import TOO_MUCH_MEMORY, Crashed, TimedOut
from .budget import OutOfBudget, OutOfRestarts
from .proxy import StudentProxy


class MemoryLimit(NamedTuple):
    """The memory and CPU time of a call with large inputs, and how large these are."""

    spare_bytes: int
    """Memory beyond what Python, PyTorch and the notebook's own imports take."""
    cpu_seconds: int
    tokens: float
    """Number of tokens, as a fraction of the largest one."""
    is_patient: bool = False
    """True for code that takes long."""

    @property
    def in_words(self) -> str:
        """The memory, for a message."""
        return f"{self.spare_bytes >> 20} MB"


_USUAL = MemoryLimit(24 << 20, 1, 0.7)
"""Right answers that are not very slow take a third of this CPU time."""
_ROOMY = MemoryLimit(48 << 20, 1, 1.0)
"""For notebooks whose own cells need memory, and answers that leave holes in it; a matrix fits in neither."""
_PATIENT = MemoryLimit(24 << 20, 20, 0.7, is_patient=True)
_TOO_SLOW = (
    f"With large inputs the call takes more than {_PATIENT.cpu_seconds} seconds of CPU time, so its memory cannot be "
    "measured."
)
_CLOSE = 1e-3
"""Tolerance for sums over thousands of elements in float32, which lose digits with their length."""
_NO_MEMORY = ("allocate memory", "bad_alloc", "out of memory", "Cannot allocate", "Unable to allocate")

_right: dict[Hashable, Any] = {}
"""Right results for large inputs, which are the same for every student."""


class LargeCall(NamedTuple):
    """A call with large inputs."""

    call: Callable[[], Any]
    """Runs the student's code in the worker."""
    reference: Callable[[], Any]
    """Computes the right result."""
    case: tuple[Any, ...]
    """The inputs and whatever else the result depends on."""


def assert_fits(
    student: StudentProxy,
    large: Callable[[StudentProxy, MemoryLimit], LargeCall],
    check: Callable[..., None],
    *,
    may_be_slow: bool = False,
) -> None:
    """Raise Mismatch unless the call gives the right result in little memory.

    large: returns the call to a student's code that a limit is for. check: compares its result with the right one.

    A call that fails is made once more with more memory and tokens, and its failure counts. One that takes too long is
    made once more with more time; may_be_slow: it passes instead, so that only the count of a small call decides.
    Without a sandbox there is no limit, and no call.
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
    """Return a key that is the same for equal inputs."""
    if isinstance(case, torch.Tensor):
        return case.shape, str(case.dtype), case.contiguous().numpy().tobytes()
    return tuple(map(case_key, case)) if isinstance(case, tuple | list) else case
