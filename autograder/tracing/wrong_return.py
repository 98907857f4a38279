"""Faults of the `return` statement: the tensors before it are right, but the returned ones are not."""

from itertools import combinations

import torch

from ..core.arguments import tensors_in
from ..core.run_trace import Run
from .fault import FaultKind, LocatedFault, build_fault
from .reference import has_same_values, is_mask
from .substitution_runs import result_tensors
from .tensor_status import TensorStatus


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
        matches = status.reference.matches(result)
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
