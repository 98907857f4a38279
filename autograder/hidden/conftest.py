"""What a grader is given: `student`, `reference` and `rng`.

`pytest autograder/hidden` runs the graders on the solutions, which must pass every one. A grader process calls them
itself, with a submission as `student`.
"""

import importlib
from collections.abc import Mapping
from typing import Any

import pytest

from autograder.hidden.cases import Cases
from autograder.sandbox.inside.bench import Bench
from autograder.student.face import Student
from autograder.student.reference import Reference


def _solutions(request: pytest.FixtureRequest) -> Mapping[str, Any]:
    return vars(importlib.import_module(f"solutions.{request.path.parent.name}"))


@pytest.fixture
def student(request: pytest.FixtureRequest) -> Student:
    """The code being marked: here the solutions themselves."""
    return Student(Bench(_solutions(request)))


@pytest.fixture
def reference(request: pytest.FixtureRequest) -> Reference:
    """The solutions, computed in float64."""
    return Reference(_solutions(request))


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> Cases:
    """The grader's own generator of cases."""
    return Cases(request.node.name)
