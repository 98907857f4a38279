"""The located fault: the lines at which the values of a run go wrong, and what is known about them.

Faults of the `return` statement are found here: the tensors before it are right, and what is returned is not.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import Any

import torch

from ..core.arguments import tensors_in
from ..core.run_trace import Run
from .reference import has_same_values, is_mask
from .substitutions import result_tensors
from .tensor_status import TensorStatus


class FaultKind(StrEnum):
    """Reasons to report a line. The release has the values in the field `untold` of a trace case."""

    WRONG_VALUES = "mended"
    """With other values from this line the result is right."""
    MISSING_STEP = "missing"
    """With other values from this line the result is right, and a step may be missing before it."""
    INVERTED_MASK = "mask"
    """The mask of one line is the inverse of what the other needs."""
    SWAPPED = "swapped"
    """Two right tensors are in each other's places."""
    WRONG_TENSOR = "another"
    """A right tensor is in the place of another one."""
    UNUSED = "unused"
    """The tensor of the first line is right, and the second line uses an earlier one instead."""
    WRONG_RETURN = "returned"
    """All tensors are right, but the wrong one is returned."""
    WRONG_COUNT = "of another kind"
    """The number of returned tensors is wrong."""
    FIRST_OF_TWO = "first of two"
    """The values of a later line are wrong, too."""
    ONLY_LINE = "one line"
    """The tensors of all other lines are right."""


@dataclass(frozen=True)
class LocatedFault:
    """The line at which a run goes wrong, or two lines that do not fit each other."""

    file: str
    lines: tuple[int, ...]
    """One or two, in the order in which they run."""
    made: torch.Tensor | None
    """The wrong tensor; None if there is no tensor."""
    step: str
    """The solution's name for the wrong tensor; empty if unknown."""
    expected: torch.Tensor | None
    """The right tensor; None if unknown."""
    right_steps: dict[str, int]
    """The names of the solution's steps that are right up to the fault, with their lines."""
    kind: FaultKind
    computing_lines: frozenset[int]
    """The lines that compute tensors or make steps of the solution: no constants, and no parts of other tensors."""
    is_intermediate: bool = False
    """True if the line computes something else from `made`."""
    result_count: int | None = None
    """The number of returned tensors, for `WRONG_COUNT`."""
    expected_count: int | None = None


def build_fault(
    status: TensorStatus,
    lines: Iterable[int],
    file: str,
    until: int,
    kind: FaultKind,
    made: torch.Tensor | None,
    expected: torch.Tensor | None = None,
    *,
    step: str = "",
    **details: Any,
) -> LocatedFault:
    """Return a `LocatedFault` at these lines.

    until: the tensor before which right steps are listed. details: the last fields of `LocatedFault`.
    """
    tensors = [(number, tensor) for number, tensor in enumerate(status.made) if tensor.file == file]
    computing = frozenset(tensor.line for number, tensor in tensors if _is_computed(status, number))
    steps = dict[str, int]()
    for number, tensor in tensors:
        for match in status.matches[number] if number < until else ():
            if match.step:
                steps.setdefault(match.step, tensor.line)
    places = tuple(dict.fromkeys(lines))
    return LocatedFault(file, places, made, step, expected, steps, kind, computing, **details)


def _is_computed(status: TensorStatus, number: int) -> bool:
    if status.is_trivial[number] or status.is_from_factory(number):
        return False
    return not status.is_reshaped(number) or any(match.step for match in status.matches[number])


def is_intermediate(status: TensorStatus, number: int, same_line: Sequence[int]) -> bool:
    """Return whether a line computes, or at least reshapes, something from this tensor.

    same_line: the tensors of the line.
    """
    shape = status.made[number].values.shape
    users = [user for user in same_line if number in status.ancestors[user]]
    return any(not status.is_reshaped(user) or status.made[user].values.shape != shape for user in users)


def wrong_count(status: TensorStatus, run: Run) -> LocatedFault | None:
    """Return the fault if the number of returned tensors is wrong and no other line makes a suspect tensor."""
    results, expected = list(tensors_in(run.result)), len(status.reference.results)
    if run.error is not None or run.returned is None or len(results) == expected:
        return None
    file, line = run.returned
    suspect_lines = {tensor.line for number, tensor in enumerate(run.made) if status.is_suspect(number)}
    if results and suspect_lines - {line}:
        return None
    first = results[0].detach() if results else None
    return build_fault(
        status, [line], file, len(run.made), FaultKind.WRONG_COUNT, first,
        result_count=len(results), expected_count=expected,
    )  # fmt: skip


def wrong_return(status: TensorStatus, run: Run) -> LocatedFault | None:
    """Return the fault if a right tensor is returned instead of the result, or one independent of the arguments."""
    results, expected = list(tensors_in(run.result)), status.reference.results
    if run.error is not None or run.returned is None or len(results) != len(expected):
        return None
    returned = result_tensors(run)
    used = set(returned).union(*(status.ancestors[number] for number in returned))
    if any(map(status.is_suspect, used)) or any(map(status.is_only_slice, used.difference(returned))):
        return None
    if any(_is_accumulated(status, number) for number in used) or _is_one_result_twice(status, results):
        return None
    for result, right in zip(results, expected, strict=True):
        if result.shape == right.shape and has_same_values(result, right):
            continue
        # A step of an alternative solution says nothing about what is missing here.
        matches = [one for one in status.reference.matches(result) if one.is_given or one.number is not None]
        is_argument = any(match.is_given for match in matches)
        is_changed = is_argument and len({run.made[number].line for number in used}) > 1
        is_constant = bool(used) and all(map(status.is_from_factory, used))
        if is_mask(result) or is_changed or not (matches or is_constant):
            return None
        file, line = run.returned
        return build_fault(status, [line], file, len(run.made), FaultKind.WRONG_RETURN, result, right)
    return None


def _is_accumulated(status: TensorStatus, number: int) -> bool:
    """Return whether a loop computes the tensor from one of an earlier iteration. Then an iteration may be missing."""
    earlier = status.ancestors[number].intersection(status.iterations(number))
    return bool(earlier) and not status.is_reshaped(number)


def _is_one_result_twice(status: TensorStatus, results: list[torch.Tensor]) -> bool:
    """Return whether two results match the same reference tensor. Then one was wrong before it was returned."""
    matches = [set(status.reference.matches(result)) for result in results]
    return any(first & second for first, second in combinations(matches, 2))
