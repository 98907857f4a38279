"""pytest's plugin for hidden graders: their modules, their markers, and what a grader is given.

`pytest autograder/hidden -c autograder/hidden/pytest.ini` runs the graders on the solutions, which must pass every one.
A marking process calls them itself, with a submission as `student`.
"""

from pathlib import Path
from types import ModuleType

import pytest
import torch

from ..core.bench import Bench
from ..course import content
from .cases import Cases
from .proxy import StudentProxy
from .reference import Reference

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
