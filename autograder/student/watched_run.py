"""Reads a run that a worker sent. It is a student's data: what does not hold together is no run."""

from typing import Any

import torch

from ..core.packing import ProtocolError
from ..core.tracing import MAX_ALL_NUMBERS, MAX_INPUTS, MAX_MADE, MAX_NUMBERS, MAX_RESULTS, Made, Run

MAX_NAME = 100
MAX_LINE = 100_000
MAX_DIMS = 8
_EACH = 5 + MAX_DIMS + MAX_INPUTS
"""The most whole numbers that tell of one tensor."""


class Unreadable(ProtocolError):
    """It is no run."""


class Failed(Exception):
    """Stands for the error that ended a run in the worker."""


def read(sent: Any) -> Run:
    """The run; raises Unreadable."""
    if not isinstance(sent, tuple) or len(sent) != 7:
        raise Unreadable
    files, operators, marks, numbers, results, failed, returned = sent
    if not isinstance(files, str) or not isinstance(operators, str) or not isinstance(failed, bool):
        raise Unreadable
    if not _is_flat(marks, torch.int64, MAX_MADE * _EACH) or not _is_flat(numbers, torch.float32, MAX_ALL_NUMBERS):
        raise Unreadable
    named = [name[:MAX_NAME] for name in files.split("\n", MAX_MADE)[:MAX_MADE]]
    called = [name[:MAX_NAME] for name in operators.split("\n", MAX_MADE)[:MAX_MADE]] if operators else []
    run = Run(_made(named, called, marks.tolist(), numbers.double()), _results(results))
    run.error = Failed() if failed else None
    run.returned = _returned(returned, named)
    return run


def _is_flat(tensor: Any, dtype: torch.dtype, most: int) -> bool:
    return isinstance(tensor, torch.Tensor) and tensor.dtype == dtype and tensor.dim() == 1 and tensor.numel() <= most


def _made(files: list[str], operators: list[str], marks: list[int], numbers: torch.Tensor) -> list[Made]:
    left, begins = iter(marks), 0
    found: list[Made] = []
    for operator in operators:
        file = _next(left, len(files) - 1)
        line, place = _next(left, MAX_LINE, at_least=1), _next(left, 1 << 30)
        shape = [_next(left, MAX_NUMBERS) for _ in range(_next(left, MAX_DIMS))]
        inputs = tuple(_next(left, len(found) - 1) for _ in range(_next(left, MAX_INPUTS)))
        size = torch.Size(shape).numel()
        if size > MAX_NUMBERS or begins + size > numbers.numel():
            raise Unreadable
        values = numbers[begins : begins + size].reshape(shape)
        begins += size
        found.append(Made(files[file], line, operator, values, inputs, place))
    if begins != numbers.numel() or next(left, None) is not None:
        raise Unreadable
    return found


def _next(left: Any, most: int, *, at_least: int = 0) -> int:
    number: int | None = next(left, None)
    if number is None or not at_least <= number <= most:
        raise Unreadable
    return number


def _results(results: Any) -> list[torch.Tensor]:
    if not isinstance(results, list) or len(results) > MAX_RESULTS:
        raise Unreadable
    for one in results:
        if not isinstance(one, torch.Tensor) or one.numel() > MAX_NUMBERS or one.is_complex():
            raise Unreadable
    return results


def _returned(returned: Any, files: list[str]) -> tuple[str, int] | None:
    if returned == []:
        return None
    if not isinstance(returned, list) or len(returned) != 2 or not all(type(one) is int for one in returned):
        raise Unreadable
    file, line = returned
    if not 0 <= file < len(files) or not 1 <= line <= MAX_LINE:
        raise Unreadable
    return files[file], line
