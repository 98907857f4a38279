"""The messages for calls whose cost cannot be counted: such a call earns no points for its cost."""

from ..sandbox.inside.cost import Cost
from ..sandbox.inside.countable import LEFT, OPERATOR, THREAD
from .costs import At

_WHY = {
    LEFT: "elements leave PyTorch or come from outside of it, as with `.numpy()`, `.tolist()`, or many `.item()`",
    OPERATOR: "the code uses an operator whose steps this test does not know",
    THREAD: "another thread computes",
}
_UNSEEN = "part of what is computed is hidden from this test"


def uncountable(cost: Cost, at: At) -> str:
    """Say why the cost of a call cannot be counted, and where; empty if it can."""
    first = cost.uncounted
    if not first.count:
        return ""
    why = _WHY.get(first.of, _UNSEEN)
    return f"The operations cannot be counted:{at(first)} {why}. Use PyTorch's usual operators in this thread instead."
