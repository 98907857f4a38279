"""What the tests share: a grader process of their own, and ways to hand something in."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from autograder import catalogue
from autograder.course import REPOSITORY
from autograder.grading.client import Grader
from autograder.notebook import filled_in
from autograder.report import Report

UNIT = "self_attention"

# What is imported from release/ leaves nothing there that another test would find.
sys.dont_write_bytecode = True
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"

# The same examples in each run. `pytest --hypothesis-profile=search` looks for others, and for longer.
settings.register_profile("repeat", derandomize=True, deadline=None, max_examples=25)
settings.register_profile("search", deadline=None, max_examples=2000)
settings.load_profile("repeat")


@pytest.fixture(scope="session")
def grader() -> Iterator[Grader]:
    """A real grader process with its sandbox, for the whole run."""
    with Grader("cpu") as process:
        yield process


@pytest.fixture
def mark(grader: Grader) -> Callable[..., Report]:
    """Marks the unit's notebook with these answers typed in; the others are the solutions."""

    def mark(**answers: str) -> Report:
        right = {name: solution.source() for name, solution in catalogue.solutions(UNIT).items()}
        return grader.mark("typed.ipynb", filled_in(UNIT, {**right, **answers}))

    return mark


@pytest.fixture
def autograder() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the installed command as an instructor would."""

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [Path(sys.executable).with_name("autograder"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, timeout=300)

    return run
