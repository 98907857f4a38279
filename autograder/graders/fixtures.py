"""pytest plugin for hidden tests: markers and the fixtures `student`, `reference` (solutions) and `rng` (random cases).

`pytest autograder/hidden -c autograder/hidden/pytest.ini` runs the hidden tests on the solutions, which must pass all
of them. A grading process calls the tests without pytest, with a submission as `student`.
"""

import copy
import hashlib
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
from ..course.settings import read_secret
from .backend import Backend
from .proxy import StudentProxy

DIGITS = 3
DRAWN_FROM = f"torch.Generator on the CPU, seeded with the CRC-32 of the grader's name; {DIGITS} decimals"
DRAWN_FROM_SECRET = f"torch.Generator on the CPU, seeded with the grader's name and a secret; {DIGITS} decimals"


class Cases:
    """Random tensors for one hidden test, seeded by its name, so that a new test changes no other test's cases.

    Numbers are rounded to three decimals, so that they are equal on all CPUs. secret: if not empty, also seeds them.
    """

    def __init__(self, name: str, secret: str = "") -> None:
        digest = hashlib.sha256(f"{secret} {name}".encode()).digest()
        seed = int.from_bytes(digest[:4]) if secret else zlib.crc32(name.encode())
        self._generator = torch.Generator().manual_seed(seed)
        self._dtype = torch.float32

    def of(self, dtype: torch.dtype) -> "Cases":
        """Return these cases, but with tensors of another dtype. The same numbers are drawn for any dtype."""
        cases = copy.copy(self)
        cases._dtype = dtype
        return cases

    def rand(self, *shape: int) -> torch.Tensor:
        """Return a random tensor of this shape with elements between 0.1 and 1.1, so that none is zero."""
        return self._even(shape).to(self._dtype)

    def randn(self, *shape: int, scale: float = 1.0) -> torch.Tensor:
        """Return a random tensor of this shape with normally distributed elements. scale: the standard deviation."""
        return self._bell(shape, scale).to(self._dtype)

    def _even(self, shape: tuple[int, ...]) -> torch.Tensor:
        drawn = torch.rand(shape, generator=self._generator, dtype=torch.float64)
        return (drawn + 0.1).round(decimals=DIGITS)

    def _bell(self, shape: tuple[int, ...], scale: float) -> torch.Tensor:
        drawn = torch.randn(shape, generator=self._generator, dtype=torch.float64)
        return (drawn * scale).round(decimals=DIGITS)


T = TypeVar("T")


class Float64Backend:
    """A wrapper of a backend that converts inputs to float64. Instances are built in float32 and then converted.

    Example: `Float64Backend(bench).ask(Call("softmax", Arguments((scores,))))` returns float64 for float32 scores.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def ask(self, operation: Operation[T]) -> T:
        """Execute the operation with float64 inputs and return its result."""
        precise: Operation[Any] = operation
        if isinstance(operation, Call):
            cotangents = Arguments(operation.cotangents or ()).mapped(_double).positional or None
            precise = replace(operation, arguments=operation.arguments.mapped(_double), cotangents=cotangents)
        result: Any = self._backend.ask(precise)
        if isinstance(operation, Assemble) or (isinstance(operation, Build) and not operation.plain):
            self._backend.ask(ToDtype(result, "float64"))
        return cast(T, result)


class _ExpectedBackend(Float64Backend):
    """A wrapper that returns the results of calls as `Expected`, with the tolerance for the inputs' original dtype.

    It has its own random state, so that a known answer in this process draws the same numbers as in a sandbox.
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
    """A proxy of the solutions, whose calls return `Expected` values, computed in float64."""

    def __init__(self, solutions: Mapping[str, Any]) -> None:
        super().__init__(_ExpectedBackend(Bench(solutions)))


def _double(arg: Any) -> Any:
    return arg.double() if isinstance(arg, torch.Tensor) and arg.is_floating_point() else arg


MARKERS = {
    "exercise(name, forbids)": "the exercise of a class of hidden tests, and the libraries that answers may not call",
    "points(weight)": "the weight of the hidden test within its exercise",
    "property": "a conditional test: earns points only if a test of hidden values passes",
    "public": "students see its inputs and right results",
    "essential": "an answer that fails it gets at most half of the exercise's points",
    "device": "tests whether the code follows its inputs to another device",
}


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and let torch compute in one thread, like a grading process."""
    torch.set_num_threads(1)
    for marker, meaning in MARKERS.items():
        config.addinivalue_line("markers", f"{marker}: {meaning}")


class _Graders(pytest.Module):
    """A module of hidden tests, imported by its path in the course."""

    def _getobj(self) -> ModuleType:
        place = self.path.relative_to(content.place(content.HIDDEN)).with_suffix("")
        return content.module(".".join([content.HIDDEN, *place.parts]))


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Import the course's hidden tests by path, because they have no package on Python's path."""
    is_course = module_path.is_relative_to(content.place(content.HIDDEN))
    return _Graders.from_parent(parent, path=module_path) if is_course else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let `-k` select hidden tests by the name of their exercise."""
    exercise = item.get_closest_marker("exercise")
    if exercise is not None:
        item.extra_keyword_matches.add(exercise.args[0])


@pytest.fixture
def student(request: pytest.FixtureRequest) -> StudentProxy:
    """The code under test: in pytest, the solutions themselves."""
    return StudentProxy(Bench(content.solutions(request.path.parent.name)))


@pytest.fixture
def reference(request: pytest.FixtureRequest) -> Reference:
    """The solutions, computed in float64."""
    return Reference(content.solutions(request.path.parent.name))


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> Cases:
    """The random cases of the hidden test."""
    is_public = request.node.get_closest_marker("public") is not None
    return Cases(request.node.name, "" if is_public else read_secret())
