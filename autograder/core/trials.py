"""Operations that try other definitions of a student's functions and classes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from . import operations
from .bench import Bench, Operation
from .cpu_limit import OverLimit, cpu_limit
from .faults import CELL_PREFIX, StudentFault, student_code
from .fingerprint import print_of
from .packing import Tensors, unpack

_SECONDS_OF_VARIANT = 0.25
"""CPU time of one variant, whose operations take milliseconds."""


@dataclass(frozen=True)
class Redefine(Operation[None]):
    """Define functions or classes of the notebook in another way, until the next `Redefine`.

    definitions: for each its name, its text, its cell, and the line of the cell in which the text begins.
    """

    tag = "redefine"
    definitions: tuple[tuple[str, str, str, int], ...]

    def on(self, bench: Bench) -> None:
        with student_code():
            codes = {
                name: compile("\n" * (line - 1) + text, CELL_PREFIX + cell, "exec", dont_inherit=True)
                for name, text, cell, line in self.definitions
            }
            bench.redefine(codes)


@dataclass(frozen=True)
class TryEdits(Operation[torch.Tensor]):
    """Try several new definitions on the same operations; give the prints of all results.

    variants: each as in `Redefine`. Result: (variant, operation, 3), see `print_of`. The negative print of an error
    message stands for the operation that failed, and zeros for those after it.
    """

    tag = "try_edits"
    variants: tuple[tuple[tuple[str, str, str, int], ...], ...]
    operations: tuple[Operation[Any], ...]

    def on(self, bench: Bench) -> torch.Tensor:
        prints = torch.zeros(len(self.variants), len(self.operations), 3, dtype=torch.float64)
        for variant, rows in zip(self.variants, prints, strict=True):
            done = 0
            try:
                with cpu_limit(_SECONDS_OF_VARIANT), student_code():
                    bench.ask(Redefine(variant))
                    for operation in self.operations:
                        rows[done] = print_of(bench.ask(operation))
                        done += 1
            except StudentFault as fault:
                rows[done] = -print_of(str(fault))
            except OverLimit:
                pass
        return prints

    def packed(self, tensors: Tensors) -> dict[str, Any]:
        operations = [operation.packed(tensors) for operation in self.operations]
        return {"operation": self.tag, "variants": self.variants, "operations": operations}


def unpacked(header: Mapping[str, Any], tensors: Tensors) -> Operation[Any]:
    """Return the operation of a header, one of this module or of `operations`."""
    match header["operation"]:
        case Redefine.tag:
            return Redefine(unpack(header["definitions"], tensors))
        case TryEdits.tag:
            tried = (operations.unpacked(one, tensors) for one in header["operations"])
            return TryEdits(header["variants"], tuple(tried))
    return operations.unpacked(header, tensors)
