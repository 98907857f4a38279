"""Messages for calls whose cost cannot be counted. These calls earn no points for their cost."""

from ..core.cost import Cost
from ..core.countable import LEFT, OPERATOR, THREAD
from .costs import At

_WHY = {
    LEFT: (
        "elements leave PyTorch or come from outside of it (`.numpy()`, `.tolist()`, many `.item()` or `if`s on "
        "tensors). Compute with tensors instead."
    ),
    OPERATOR: (
        "the code calls a function whose operations this test cannot count. Use matrix products, sums, exp and the "
        "like instead."
    ),
    THREAD: "another thread computes. Compute in the thread that calls the function instead.",
}
_UNSEEN = "part of what is computed is hidden from the count. Call PyTorch's functions directly instead."


def uncountable(cost: Cost, at: At) -> str:
    """Say why the cost of a call cannot be counted, and where; empty if it can."""
    first = cost.uncounted
    return f"The operations cannot be counted:{at(first)} {_WHY.get(first.of, _UNSEEN)}" if first.count else ""
