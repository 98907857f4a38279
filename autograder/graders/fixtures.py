"""pytest's plugin for hidden graders: their modules, their markers, and what a grader is given.

`pytest autograder/hidden -c autograder/hidden/pytest.ini` runs the graders on the solutions, which must pass every one.
A marking process calls them itself, with a submission as `student`.
"""

import copy
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

import pytest
import torch

from ..core.arguments import Arguments, tensors_in
from ..core.bench import Bench, Operation
from ..core.comparison import TOLERANCE, as_expected
from ..core.operations import Assemble, Build, Call, ToDtype
from ..course import content
from .backend import Backend
from .proxy import StudentProxy

DIGITS = 3
DRAWN_FROM = f"torch.Generator on the CPU, seeded with the CRC-32 of the grader's name; {DIGITS} decimals"


class Cases:
    """A generator of its own for each grader, seeded by the grader's name: adding one changes no other's cases.

    Numbers are rounded to three digits, so that no difference between two CPUs' instructions shows in them.
    """

    def __init__(self, name: str) -> None:
        self._generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
        self._dtype = torch.float32

    def of(self, dtype: torch.dtype) -> "Cases":
        """The same generator, for tensors of this dtype: the numbers are those that would have come anyway."""
        cases = copy.copy(self)
        cases._dtype = dtype
        return cases

    def rand(self, *shape: int) -> torch.Tensor:
        """Numbers between 0.1 and 1.1, away from zero."""
        return self._even(shape).to(self._dtype)

    def randn(self, *shape: int, scale: float = 1.0) -> torch.Tensor:
        """Numbers from the normal distribution with this standard deviation."""
        return self._bell(shape, scale).to(self._dtype)

    def _even(self, shape: tuple[int, ...]) -> torch.Tensor:
        drawn = torch.rand(shape, generator=self._generator, dtype=torch.float64)
        return (drawn + 0.1).round(decimals=DIGITS)

    def _bell(self, shape: tuple[int, ...], scale: float) -> torch.Tensor:
        drawn = torch.randn(shape, generator=self._generator, dtype=torch.float64)
        return (drawn * scale).round(decimals=DIGITS)


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
            result = result.mapped(lambda value: as_expected(value, tolerance))
        return cast(T, result)


class Reference(StudentProxy):
    """A proxy of the solutions, which computes `Expected` values in float64."""

    def __init__(self, solutions: Mapping[str, Any]) -> None:
        super().__init__(_ExpectedBackend(Bench(solutions)))


def _double(arg: Any) -> Any:
    return arg.double() if isinstance(arg, torch.Tensor) and arg.is_floating_point() else arg


MARKERS = {
    "exercise(name, forbids)": "the exercise that a class of graders marks, and the libraries that it may not call",
    "points(weight)": "what the grader weighs within its exercise",
    "property": "pays only where a grader of values passes",
    "public": "its inputs and the right results are shown to students",
    "essential": "an exercise that fails it gives no more than half of its points",
    "device": "asks whether the code follows its inputs to another device",
}


def pytest_configure(config: pytest.Config) -> None:
    """Makes the markers known, and has torch compute in one thread, as in a grading process."""
    torch.set_num_threads(1)
    for marker, meaning in MARKERS.items():
        config.addinivalue_line("markers", f"{marker}: {meaning}")


class _Graders(pytest.Module):
    """A module of graders, imported by its place in the course."""

    def _getobj(self) -> ModuleType:
        place = self.path.relative_to(content.place(content.HIDDEN)).with_suffix("")
        return content.module(".".join([content.HIDDEN, *place.parts]))


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """The course's graders have no package on Python's path."""
    is_course = module_path.is_relative_to(content.place(content.HIDDEN))
    return _Graders.from_parent(parent, path=module_path) if is_course else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """`-k` finds graders by the name of their exercise."""
    exercise = item.get_closest_marker("exercise")
    if exercise is not None:
        item.extra_keyword_matches.add(exercise.args[0])


@pytest.fixture
def student(request: pytest.FixtureRequest) -> StudentProxy:
    """The code being marked: here the solutions themselves."""
    return StudentProxy(Bench(content.solutions(request.path.parent.name)))


@pytest.fixture
def reference(request: pytest.FixtureRequest) -> Reference:
    """The solutions, computed in float64."""
    return Reference(content.solutions(request.path.parent.name))


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> Cases:
    """The grader's own generator of cases."""
    return Cases(request.node.name)
