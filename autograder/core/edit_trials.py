"""Operations that try edits of a student's functions and classes, and fingerprints of their results.

Fingerprints compare the results of hundreds of edited answers without sending the results.
"""

import signal
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any

import torch

from . import operations
from .bench import Bench, Operation
from .observation import CELL_PREFIX, Observation, StudentFault, student_code
from .packing import Tensors, unpack

_SECONDS_OF_VARIANT = 0.25
"""CPU time limit for one variant, whose operations take milliseconds."""


@dataclass(frozen=True)
class Redefine(Operation[None]):
    """Replace definitions of functions or classes of the notebook until the next `Redefine`.

    definitions: for each its name, its source, its cell, and the line of the cell at which the source begins.
    """

    tag = "redefine"
    definitions: tuple[tuple[str, str, str, int], ...]

    def on(self, bench: Bench) -> None:
        with student_code():
            bench.redefine({name: _compiled(text, cell, line) for name, text, cell, line in self.definitions})


@lru_cache(maxsize=1024)
def _compiled(text: str, cell: str, line: int) -> CodeType:
    """Return the code of a definition; cached, because a search tries the same edits on several hidden tests."""
    return compile("\n" * (line - 1) + text, CELL_PREFIX + cell, "exec", dont_inherit=True)


@dataclass(frozen=True)
class TryEdits(Operation[torch.Tensor]):
    """Run the same operations with several variants of definitions, and return the fingerprints of all results.

    variants: each as in `Redefine`. Result: (variant, operation, 3), see `fingerprint`. An operation that fails has the
    negative fingerprint of its error message, and operations after it have zeros.
    """

    tag = "try_edits"
    variants: tuple[tuple[tuple[str, str, str, int], ...], ...]
    operations: tuple[Operation[Any], ...]

    def on(self, bench: Bench) -> torch.Tensor:
        fingerprints: list[list[_Numbers]] = []  # of numbers, because thousands of small tensors take long to make
        for variant in self.variants:
            rows: list[_Numbers] = []
            try:
                with cpu_limit(_SECONDS_OF_VARIANT), student_code():
                    bench.ask(Redefine(variant))
                    for operation in self.operations:
                        rows.append(_numbers(bench.ask(operation)))
            except StudentFault as fault:
                rows.append((-_numbers(str(fault))[0], 0.0, 0.0))
            except OverLimit:
                pass
            rows += [(0.0, 0.0, 0.0)] * len(self.operations)
            fingerprints.append(rows[: len(self.operations)])
        return torch.tensor(fingerprints, dtype=torch.float64).reshape(len(fingerprints), len(self.operations), 3)

    def packed(self, tensors: Tensors) -> dict[str, Any]:
        operations = [operation.packed(tensors) for operation in self.operations]
        return {"operation": self.tag, "variants": self.variants, "operations": operations}


def unpacked(header: Mapping[str, Any], tensors: Tensors) -> Operation[Any]:
    """Return the operation of a header, one of this module or of `operations`."""
    match header["operation"]:
        case Redefine.tag:
            return Redefine(unpack(header["definitions"], tensors))
        case TryEdits.tag:
            unpacked_operations = (operations.unpacked(each, tensors) for each in header["operations"])
            return TryEdits(header["variants"], tuple(unpacked_operations))
    return operations.unpacked(header, tensors)


_Numbers = tuple[float, float, float]
_PARTS = ("value", "changed", "devices", "gradients", "parameter_gradients")
_TOLERANCE = 1e-4


def fingerprint(result: Any) -> torch.Tensor:
    """Return three numbers, (3,): a checksum of types, shapes and dtypes, and two sums of all elements.

    Equal results have fingerprints that are equal but for rounding; different results rarely do. The checksum is
    never 0.
    """
    return torch.tensor(_numbers(result), dtype=torch.float64)


def _numbers(result: Any) -> _Numbers:
    words: list[str] = []
    total = weighted = 0.0
    values = [[getattr(result, part) for part in _PARTS] if isinstance(result, Observation) else result]
    while values:
        one = values.pop()
        if isinstance(one, torch.Tensor):
            words.append(f"{one.dtype} {tuple(one.shape)}")
            numbers = one.detach().double().flatten().nan_to_num(nan=17.25, posinf=1e6, neginf=-1e6)
            total += numbers.sum().item() * (1 + len(words) % 7)
            weighted += (numbers @ _weights(len(numbers))).item() * (1 + len(words) % 7)
        elif isinstance(one, list | tuple | dict):
            words.append(f"{len(one)}")
            values += one.values() if isinstance(one, dict) else one
        else:
            words.append(repr(one)[:100])
    return 1.0 + zlib.crc32("\n".join(words).encode()), total, weighted


@lru_cache(maxsize=16)
def _weights(size: int) -> torch.Tensor:
    return torch.arange(1, size + 1, dtype=torch.float64).sin_()


def equal_fingerprints(fingerprints: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """Return for each fingerprint, (..., 3), whether it equals the expected one but for rounding."""
    size = expected.abs().clamp(min=1.0)
    is_close = ((fingerprints - expected).abs() <= _TOLERANCE * size).all(dim=-1)
    return is_close & (fingerprints[..., 0] == expected[..., 0])


_AGAIN = 0.05
"""Interval in seconds at which OverLimit is raised again, because edited code may catch it."""


class OverLimit(BaseException):
    """The limit of CPU time is exceeded."""


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raise OverLimit in and after the block once the process has used `seconds` of CPU time. Main thread only."""
    signals: list[int] = []

    def end(number: int, frame: Any) -> None:
        signals.append(number)
        raise OverLimit

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    if signals:
        raise OverLimit
