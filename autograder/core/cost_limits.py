"""Limits of a call's cost, and the messages if it exceeds them or cannot be counted."""

from collections.abc import Callable, Mapping

from .cost import Cost, Most
from .countable import LEFT, OPERATOR, THREAD

Limits = Mapping[str, int]
"""The most of each: `largest` and `alive` in numbers, `rows`, `operations`. What is not named is not limited."""
At = Callable[[Most], str]
"""Where something was, in words: ` in line 5`, or nothing where that is not known."""


def exceeded(cost: Cost, limits: Limits) -> list[str]:
    """The limits that a call has passed, by name."""
    spent = {
        "largest": cost.largest.count,
        "alive": cost.alive.count,
        "rows": cost.rows.count,
        "operations": cost.operations,
    }
    return [name for name, most in limits.items() if spent[name] > most]


def complaint(cost: Cost, limits: Limits, at: At) -> str:
    """What is said of the first limit that a call has passed; nothing where it has passed none."""
    for name in exceeded(cost, limits):
        most = limits[name]
        match name:
            case "largest":
                found = cost.largest
                return f"There is a tensor of shape {found.of}{at(found)}: {_numbers(found, most)}"
            case "alive":
                return f"The tensors that are held at once{at(cost.alive)} have {_numbers(cost.alive, most)}"
            case "rows":
                found = cost.rows
                return f"`{found.of}` is multiplied with {found.count:,} rows{at(found)}; {most:,} are needed."
        return f"It takes {cost.operations:,} operations; {most:,} are enough."
    return ""


def _numbers(found: Most, most: int) -> str:
    return f"{found.count:,} numbers; {most:,} are enough."


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
