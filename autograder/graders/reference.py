"""The solutions behind the same proxy as the student's code. They compute in float64 and return `Expected` values."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

import torch

from ..core.arguments import Arguments, tensors_in
from ..core.bench import Bench, Operation
from ..core.comparison import TOLERANCE
from ..core.operations import Assemble, Build, Call, ToDtype
from ..core.values import expecting
from .backend import Backend
from .proxy import StudentProxy

T = TypeVar("T")


class Float64Backend:
    """Lets another backend compute in float64. Instances are built in float32, whose initial values a seed determines.

    Example: `Float64Backend(bench).ask(Call("softmax", Arguments((scores,))))` returns float64 for float32 scores.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def ask(self, operation: Operation[T]) -> T:
        """Return the operation's result for inputs in float64."""
        precise: Operation[Any] = operation
        if isinstance(operation, Call):
            cotangents = Arguments(operation.cotangents or ()).mapped(_double).positional or None
            precise = replace(operation, arguments=operation.arguments.mapped(_double), cotangents=cotangents)
        result: Any = self._backend.ask(precise)
        if isinstance(operation, Assemble) or (isinstance(operation, Build) and not operation.plain):
            self._backend.ask(ToDtype(result, "float64"))
        return cast(T, result)


class _ExpectedBackend(Float64Backend):
    """Returns the results of calls as `Expected`, with the tolerance of the inputs' own dtype.

    It has random numbers of its own. A known answer runs in this process, and must draw what it would in a sandbox.
    """

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend)
        self._random_state = torch.Generator().get_state()

    def ask(self, operation: Operation[T]) -> T:
        around = torch.get_rng_state()
        torch.set_rng_state(self._random_state)
        try:
            result: Any = super().ask(operation)
        finally:
            self._random_state = torch.get_rng_state()
            torch.set_rng_state(around)
        if isinstance(operation, Call):
            dtypes = (arg.dtype for arg in tensors_in(operation.arguments.positional) if arg.is_floating_point())
            tolerance = TOLERANCE[next(dtypes, torch.float32)]
            result = result.mapped(lambda value: expecting(value, tolerance))
        return cast(T, result)


class Reference(StudentProxy):
    """A proxy of the solutions, which computes `Expected` values in float64."""

    def __init__(self, solutions: Mapping[str, Any]) -> None:
        super().__init__(_ExpectedBackend(Bench(solutions)))


def _double(arg: Any) -> Any:
    return arg.double() if isinstance(arg, torch.Tensor) and arg.is_floating_point() else arg
