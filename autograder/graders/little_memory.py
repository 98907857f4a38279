"""Memory that is limited from outside: a call gives the right result in a worker that has little to spare.

The operating system refuses what does not fit, whatever code asks for it: another thread, NumPy, an operator that no
count knows. What is saved is decided by the size of the inputs, at which T x T elements of one byte do not fit.
"""

from collections.abc import Callable, Hashable
from typing import Any

import torch

from ..compare import Mismatch
from ..core.faults import Missing, Raised
from ..sandbox.client import TOO_MUCH_MEMORY
from ..sandbox.failures import Crashed, TimedOut
from ..student.budget import OutOfBudget, OutOfRestarts

SPARE_BYTES = 48 << 20
"""Beyond what Python, PyTorch and the notebook's own imports take."""
_TOO_MUCH = f"With large inputs it needs more than {SPARE_BYTES >> 20} MB of memory next to them."
_ENDED_PYTHON = f"With large inputs Python ended. Most likely it needs more than {SPARE_BYTES >> 20} MB next to them."
_CELLS_ENDED_PYTHON = (
    f"This test runs the notebook with {SPARE_BYTES >> 20} MB of memory to spare, in which its cells ended Python, so "
    "that the call could not be tried."
)
_CELL_DID_NOT_RUN = (
    f"This test runs the notebook with {SPARE_BYTES >> 20} MB of memory to spare, in which the cell that defines it "
    "did not run."
)
_CLOSE = 1e-3
"""For sums over thousands of elements, of which float32 keeps the fewer digits the longer they are."""
_NO_MEMORY = ("allocate memory", "bad_alloc", "out of memory", "Cannot allocate", "Unable to allocate")

_right: dict[Hashable, Any] = {}
"""Right results for large inputs, which are the same for every student."""


def assert_fits(
    call: Callable[[], Any],
    reference: Callable[[], Any],
    case: tuple[Any, ...],
    check: Callable[..., None],
    uncountable: str,
) -> None:
    """Raise Mismatch unless the call gives the right result in little memory.

    call: runs the student's code in the worker. reference: computes the right result. case: what both depend on.
    uncountable: why the count of a call with small inputs says nothing; empty if it says all. If the call with large
    inputs takes too long, the count decides.
    """
    key = case_key(case)
    if key not in _right:
        _right[key] = reference()
    try:
        found = call()
    except Raised as raised:
        if _is_no_memory(raised):
            raise Mismatch(_TOO_MUCH) from None
        if "NameError" in raised.kinds:
            raise Mismatch(f"{raised}. {_CELL_DID_NOT_RUN}") from None
        raise
    except Missing as missing:
        raise Mismatch(f"{missing} {_CELL_DID_NOT_RUN}") from None
    except Crashed as crash:
        raise Mismatch(_TOO_MUCH if str(crash) == TOO_MUCH_MEMORY else _ENDED_PYTHON) from None
    except OutOfRestarts:
        raise Mismatch(_CELLS_ENDED_PYTHON) from None
    except (TimedOut, OutOfBudget):
        if uncountable:
            raise Mismatch(uncountable) from None
        return
    check(found, _right[key], tolerance=_CLOSE)


def _is_no_memory(raised: Raised) -> bool:
    return "MemoryError" in raised.kinds or any(words in str(raised) for words in _NO_MEMORY)


def case_key(case: Any) -> Hashable:
    """The same for equal inputs."""
    if isinstance(case, torch.Tensor):
        return case.shape, str(case.dtype), case.contiguous().numpy().tobytes()
    return tuple(map(case_key, case)) if isinstance(case, tuple | list) else case
