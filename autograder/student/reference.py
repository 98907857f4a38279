"""`reference`: the solutions with the student's face. Float inputs go in as float64, values come out as `Expected`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import torch

from ..compare import TOLERANCE
from ..compare.values import expecting
from ..core.arguments import Arguments
from ..core.bench import Bench, Operation
from ..core.nesting import tensors_in
from ..core.operations import Assemble, Build, Call, ToDtype
from .backend import Backend
from .face import Student

T = TypeVar("T")


class Exact:
    """A backend that has another one compute in float64; what is built is built in float32, as a seed wants it."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def ask(self, operation: Operation[T]) -> T:
        """What the operation gives for inputs in float64."""
        asked: Operation[Any] = operation
        if isinstance(operation, Call):
            cotangents = Arguments(operation.cotangents or ()).mapped(_double).positional or None
            asked = replace(operation, arguments=operation.arguments.mapped(_double), cotangents=cotangents)
        given: Any = self._backend.ask(asked)
        if isinstance(operation, Assemble) or (isinstance(operation, Build) and not operation.plain):
            self._backend.ask(ToDtype(given, "float64"))
        found: T = given
        return found


class _Expecting(Exact):
    """What calls give, as what is expected of a student's code: as close as the inputs' own dtype lets it come."""

    def ask(self, operation: Operation[T]) -> T:
        given: Any = super().ask(operation)
        if isinstance(operation, Call):
            tolerance = TOLERANCE[_dtype(operation.arguments.positional)]
            given = given.mapped(lambda value: expecting(value, tolerance))
        expected: T = given
        return expected


class Reference(Student):
    """The solutions, computed in float64, with `Expected` values that know how close a right answer comes."""

    def __init__(self, solutions: Mapping[str, Any]) -> None:
        super().__init__(_Expecting(Bench(solutions)))


def _dtype(args: tuple[Any, ...]) -> torch.dtype:
    floats = (arg.dtype for arg in tensors_in(args) if arg.is_floating_point())
    return next(floats, torch.float32)


def _double(arg: Any) -> Any:
    return arg.double() if isinstance(arg, torch.Tensor) and arg.is_floating_point() else arg
