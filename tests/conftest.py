"""Fixtures that the tests share: a grading process, a fork server, and ways to submit."""

import gc
import os
import shutil
import subprocess
import sys

gc.disable()  # until all tests are collected: what is imported and collected stays, and is walked through in vain
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # as the command does: see `cli`

# ruff: noqa: E402  (what follows is what takes its time)
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from hypothesis import settings

from autograder.course.settings import VARIABLE, folder, load
from autograder.pool.grading_pool import GradingProcess
from autograder.report import Report
from autograder.sandbox.confine.confinement import Level
from autograder.sandbox.fork_server import ForkServer
from autograder.sandbox.isolation import launch
from tests import REPOSITORY, TESTS, forked_command, sampling
from tests.postgresql_server import Server
from tests.typed import solved

if TYPE_CHECKING:
    from .recorded_class import RecordedClass

UNIT = "self_attention"
collect_ignore = ["own_course"]
"""Its tests are graders, and run by `test_own_course`."""

# Only what is imported for collecting is compiled once: modules of tests, whose assertions pytest rewrites. What tests
# import from release/ leaves nothing there that another test would find.
sys.dont_write_bytecode = False
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"

torch.set_num_threads(1)  # the tests themselves take all processors; several threads of each would wait for one another

# The same examples in each run. `pytest --hypothesis-profile=search` looks for others, and for longer.
settings.register_profile("repeat", derandomize=True, deadline=None, max_examples=25)
settings.register_profile("search", deadline=None, max_examples=2000)
settings.load_profile("repeat")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--every`, as `make search` has it."""
    parser.addoption("--every", action="store_true", help="try every known answer, not only the part in `sampling`")


def pytest_configure(config: pytest.Config) -> None:
    """Comes before the tests are collected, of which there are more or fewer."""
    sampling.every = config.getoption("--every")


OF_ALL_UNITS = (
    "catalogue/test_mutation_report",
    "catalogue/test_unseen",
    "catalogue/test_held_out",
    "grading/test_submissions",
    "catalogue/test_subtle_mistakes",
    "catalogue/test_bug_hunts",
)
"""Grade answers of every unit with the grading process that they share: it learns each unit's mistakes once."""

DEAREST = (
    "browser/",
    "catalogue/test_mutation_report",
    "serving/test_serve",
    "sandbox/test_misbehaving_submissions",
    "graders/test_resources",
    "sandbox/test_confinement",
    "course/test_own_course",
    "student_check/test_student_check",
    "cluster/test_cluster",
    "student_check/test_student_notebook",
    "formatting/test_formatting",
    "classroom/test_class_of_60",
    "classroom/test_interruption",
    "nbgrader_plugin/test_nbgrader",
    "course/test_reading",
    "project/test_docs",
    "project/test_site",
    "gradebook/test_reweight",
    "serving/test_retries",
    "grading/test_without_work",
    "cli/test_endings",
    "catalogue/test_reseed",
    "classroom/test_routes",
    "classroom/test_regrading",
    "classroom/test_graded_notebook",
    "catalogue/test_build_cache",
    "core/test_forbidden_calls",
    "graders/test_cost_of_answers",
    "course/test_malformed_input",
    "cli/test_pipeline",
    "grading/test_repair",
    "units/test_tiny_language_model_training",
    "sandbox/test_confined_notebook",
    "gradebook/test_postgresql",
    "build/test_build",
    "build/test_authoring",
    "cli/test_commands",
    "classroom/test_new_course",
    "gradebook/test_strange_names",
    "classroom/test_class",
)
"""Tests that take longest, in the order in which they start, so that no processor is idle at the end."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the tests that take longest."""

    def place(item: pytest.Item) -> int:
        name = item.path.relative_to(TESTS).with_suffix("").as_posix()
        return next((place for place, start in enumerate(DEAREST) if name.startswith(start)), len(DEAREST))

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """From here on garbage is collected as usual, and no compiled module is stored."""
    sys.dont_write_bytecode = True
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hands out a file at a time, whose tests share what it sets up; those in a browser share one JupyterLab.

    Those of all units share what a grading process learns of the units.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            if file.removeprefix("tests/").removesuffix(".py") in OF_ALL_UNITS:
                return "all units"
            return "browser" if "/browser/" in file else file

    config.option.loadscopereorder = False  # or the file with most tests would come first
    return ByFile(config, log)


@pytest.fixture(scope="module", autouse=True)
def served_again() -> Iterator[None]:
    """Whichever course a module's tests serve: the next module's serve the one that there was before."""
    before = os.environ.get(VARIABLE)
    yield
    if os.environ.get(VARIABLE) != before:
        os.environ.pop(VARIABLE, None) if before is None else os.environ.update({VARIABLE: before})
        folder.cache_clear()


@pytest.fixture(scope="session")
def grading_process() -> Iterator[GradingProcess]:
    """A real grading process with its sandbox, for the whole run."""
    with GradingProcess("cpu") as process:
        yield process


@pytest.fixture(scope="module")
def recorded(grading_process: GradingProcess) -> "RecordedClass":
    """A class whose real reports are made once, for the tests of a module."""
    from .recorded_class import RecordedClass  # nbgrader takes seconds to import

    return RecordedClass(grading_process)


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A course folder with an exchange, for tests that serve it."""
    from .served_unit import new_course

    return new_course(tmp_path / "course")


@pytest.fixture
def root(once: Path, tmp_path: Path) -> Path:
    """A copy of the module's course folder."""
    return Path(shutil.copytree(once, tmp_path / "course"))


@pytest.fixture(scope="session")
def fork_server() -> Iterator[Callable[[Level], ForkServer]]:
    """The fork server of a level, with the usual limits: one for the whole run, so it must be left as it was."""
    with ExitStack() as parents:
        yield cache(
            lambda level: parents.enter_context(
                ForkServer(launch(level, load().limits, cuda=False, check=load().check))
            )
        )


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A PostgreSQL server, for the whole run; a test takes a database of its own."""
    server = Server()
    yield server
    server.close()


@pytest.fixture
def mark(grading_process: GradingProcess) -> Callable[..., Report]:
    """Grade the unit's notebook with these answers; the others are the solutions."""

    def mark(**answers: str) -> Report:
        return grading_process.grade("typed.ipynb", solved(UNIT, **answers))

    return mark


@pytest.fixture(scope="session")
def autograder() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the installed command as an instructor would."""
    return partial(forked_command.autograder, cwd=REPOSITORY)
