"""Collect the hidden tests, and run one of them on a student's code.

pytest collects the tests once. They run without pytest, because its overhead is as large as the time for a test.

This module is also the pytest plugin for hidden tests, with their markers and fixtures. With it, `pytest
autograder/hidden -c autograder/hidden/pytest.ini` runs the hidden tests on the solutions, which must pass all of them.
"""

import contextlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from ..core.bench import Bench
from ..core.comparison import Mismatch, Unproven
from ..core.constructed_answers import CounterexampleTarget
from ..core.judgement import Signature, whole_signature
from ..core.library_calls import LIBRARIES
from ..core.lost_aspects import OF_VALUE
from ..core.observation import Missing, Raised, StudentFault
from ..course import content
from ..course.settings import load, read_secret
from ..report import TestOutcome
from ..sandbox.client import Crashed, TimedOut
from .budget import OutOfBudget
from .proxy import Cases, Reference, StudentProxy

ARGUMENTS = {"student", "reference", "rng"}
"""Names of the arguments that a hidden test may have: the fixtures below."""
_WITHOUT = (
    "terminal",
    "cacheprovider",
    "capture",
    "logging",
    "warnings",
    "faulthandler",
    "junitxml",
    "pastebin",
    "unraisableexception",
    "threadexception",
)
"""Names of pytest's plugins that collection does not need."""
_MOST_NAMED = 3


@dataclass(frozen=True)
class HiddenTest:
    """A hidden test, with the properties that its markers state."""

    name: str
    unit: str
    exercise: str
    forbids: tuple[str, ...]
    points: float
    is_property: bool
    is_public: bool
    probes_device: bool
    is_essential: bool
    statement: str
    of: type
    """The class of hidden tests of which the test is a method."""
    function: Callable[..., None]
    arguments: frozenset[str]
    hunted: CounterexampleTarget | None = None
    """The wrong function, if the exercise is a counterexample exercise."""
    secret: str = field(default="", repr=False)
    """Seeds the random cases, together with the name. Empty for a public test, whose cases are released."""

    def run(self, student: StudentProxy, reference: Reference | None = None, rng: Cases | None = None) -> None:
        """Run the test on one student's code; raises what the test raises.

        reference, rng: used instead of the test's own reference and cases.
        """
        given: dict[str, Any] = {"student": student}
        if "reference" in self.arguments:
            given["reference"] = reference or Reference(content.solutions(self.unit))
        if "rng" in self.arguments:
            given["rng"] = rng or Cases(self.name, self.secret)
        self.function(self.of(), **given)


@dataclass(frozen=True)
class Verdict:
    """The verdict of one hidden test on an answer.

    seen: the message; may be empty. lost: the error if the worker hung or crashed, so that later tests of the
    exercise cannot run.
    """

    test: HiddenTest
    outcome: TestOutcome
    seen: str = ""
    lost: TimedOut | Crashed | OutOfBudget | None = None
    missing: bool = False
    """True if the notebook does not define the called name."""
    raised: bool = False
    """True if the student's code raised an exception."""
    aspect: str = OF_VALUE
    """The aspect of the answer that is wrong, such as `value`: see `core.comparison.Mismatch`."""
    details: tuple[str, ...] = ()
    signature: Signature = field(default_factory=list)
    """See `core.judgement`; empty unless the test failed because of the code's result or error."""
    unproven: bool = False
    """True if the test passed, but the tested call returned a wrong value, which `seen` describes."""


TestsOfUnit = Mapping[str, Sequence[HiddenTest]]
"""A unit's hidden tests by exercise, in the order of the files."""
HiddenTests = Mapping[str, TestsOfUnit]
"""Hidden tests by unit."""


class NotCollected(Exception):
    """Raised if hidden tests cannot be collected; `str()` says which and why."""


class _Collected(Mapping[str, TestsOfUnit]):
    """The hidden tests by unit. The first lookup of a unit collects its tests, and may raise NotCollected."""

    def __init__(self) -> None:
        self._of_units: dict[str, TestsOfUnit] = {}

    def __getitem__(self, unit: str) -> TestsOfUnit:
        if unit not in self._of_units:
            self._of_units[unit] = _of_unit(unit) if unit in _units() else {}
        if not self._of_units[unit]:
            raise KeyError(unit)
        return self._of_units[unit]

    def __iter__(self) -> Iterator[str]:
        return (unit for unit in _units() if unit in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def collect() -> HiddenTests:
    """Return the hidden tests of the course by unit; each unit is collected at its first lookup.

    Example: `collect()["self_attention"]["softmax"]` is a list of `HiddenTest`.
    """
    return _Collected()


def _units() -> list[str]:
    """Return the names of the units that have a folder of hidden tests; raises NotCollected."""
    hidden = content.place(content.HIDDEN)
    if not hidden.is_dir():
        raise NotCollected(f"The hidden graders cannot be collected. There is no folder {hidden}.")
    return sorted(folder.name for folder in hidden.iterdir() if folder.is_dir() and folder.name[0] not in "._")


def _of_unit(unit: str) -> TestsOfUnit:
    """Collect a unit's hidden tests with pytest; raises NotCollected."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):  # the user's own options of pytest do not concern grading
        os.environ.pop(name, None)
    options = ["--collect-only", "--rootdir=.", "-c", os.devnull, "-p", __name__, unit]
    usual, secret, found = load().forbids, read_secret(), _Found()
    with contextlib.chdir(content.place(content.HIDDEN)):  # because its path may contain `[`, `::` or `$`
        code = pytest.main([*options, *(f"-pno:{name}" for name in _WITHOUT)], plugins=[found])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) and not found.problems:
        found.problems.append(f"pytest ended with {code!r}.")
    tests: dict[str, list[HiddenTest]] = {}
    for item in found.items:
        try:
            test = _hidden_test(item, usual, secret)
        except ValueError as error:
            found.problems.append(str(error))
            continue
        tests.setdefault(test.exercise, []).append(test)
    if found.problems:
        more = f" And {len(found.problems) - _MOST_NAMED} more." if len(found.problems) > _MOST_NAMED else ""
        raise NotCollected(f"The hidden graders cannot be collected. {' '.join(found.problems[:_MOST_NAMED])}{more}")
    return tests


@dataclass
class _Found:
    """pytest plugin that stores the collected items."""

    items: list[pytest.Item] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """The reasons why items could not be collected."""

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.problems.append(f"{report.nodeid}: {str(report.longrepr).strip().splitlines()[-1]}")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.items = session.items


def not_run(test: HiddenTest) -> Verdict:
    """Return the verdict on a hidden test that cannot run after a hang or a crash."""
    return Verdict(test, "not_run")


def run_test(student: StudentProxy, test: HiddenTest) -> Verdict:
    """Run a hidden test on one student's code, and return the verdict."""
    try:
        test.run(student)
    except Unproven as wrong:
        return Verdict(test, "passed", str(wrong), unproven=True)
    except (Mismatch, StudentFault) as found:
        return Verdict(
            test,
            "failed",
            str(found),
            aspect=found.aspect if isinstance(found, Mismatch) else OF_VALUE,
            details=found.details if isinstance(found, Mismatch) else (),
            missing=isinstance(found, Missing),
            raised=isinstance(found, Raised),
            signature=whole_signature(found),
        )
    except (TimedOut, Crashed, OutOfBudget) as lost:
        return Verdict(test, "failed", _loss(lost), lost)
    except Exception as error:
        # A fault of the test, never of the student: the report has only its type, and stderr has the details.
        where = line_in_hidden(error)
        line = f" (line {where.lineno})" if where else ""
        said = "".join(traceback.format_exception_only(error)).strip()
        print(f"{test.unit}: {test.name}{line}: {said}", file=sys.stderr)
        return Verdict(test, "grader_error", f"This grader itself failed ({type(error).__name__}).")
    return Verdict(test, "passed")


def line_in_hidden(error: BaseException) -> traceback.FrameSummary | None:
    """Return the innermost frame of a hidden test's file in an error's traceback; None if there is no such frame."""
    frames = traceback.extract_tb(error.__traceback__)
    hidden = content.place(content.HIDDEN)
    return next((frame for frame in reversed(frames) if hidden in Path(frame.filename).parents), None)


def _hidden_test(item: pytest.Item, usual: tuple[str, ...], secret: str) -> HiddenTest:
    """Return a pytest item as a hidden test; raises ValueError if it is not a valid one.

    usual: the libraries that the course forbids by default. secret: the course's secret for hidden cases.
    """
    arguments = frozenset(inspect.signature(getattr(item, "function", lambda: None)).parameters) - {"self"}
    if not isinstance(item, pytest.Function) or item.cls is None or arguments - ARGUMENTS:
        allowed = ", ".join(sorted(ARGUMENTS))
        raise ValueError(f"{item.nodeid} must be a method of a class, and have no other arguments than {allowed}.")
    exercise, points = item.get_closest_marker("exercise"), item.get_closest_marker("points")
    statement = item.function.__doc__
    if exercise is None or points is None or not statement:
        raise ValueError(f"{item.nodeid} needs an exercise, points and a docstring that students can read.")
    forbids = usual if exercise.kwargs["forbids"] is None else tuple(exercise.kwargs["forbids"])
    if unknown := set(forbids) - LIBRARIES:
        raise ValueError(f"{item.nodeid} forbids {', '.join(unknown)}; it can be {' or '.join(LIBRARIES)}.")
    is_public = item.get_closest_marker("public") is not None
    return HiddenTest(
        item.name,
        item.path.parent.name,
        exercise.args[0],
        forbids,
        float(points.args[0]),
        item.get_closest_marker("property") is not None,
        is_public,
        item.get_closest_marker("device") is not None,
        item.get_closest_marker("essential") is not None,
        " ".join(statement.split()),
        item.cls,
        item.function,
        arguments,
        getattr(item.function, "hunted", None),
        "" if is_public else secret,
    )


def _loss(lost: Exception) -> str:
    match lost:
        case TimedOut():
            return str(lost) or "The call did not return in time. Does a loop never end?"
        case Crashed():
            return str(lost) or "Python ended during this call (an exit, or a crash in native code)."
    return "Not run: this notebook had used up its time, or had hung or crashed too often."


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
