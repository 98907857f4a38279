"""The hidden graders: collected once, and then run for one student after another.

pytest's own way from a test to its report costs as much as what the test asks; so they are called without it.
"""

import contextlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ..core.comparison import Mismatch, Unproven
from ..core.counterexample import CounterexampleTarget
from ..core.faults import Missing, Raised, StudentFault
from ..core.library_calls import LIBRARIES
from ..core.lost_aspects import OF_VALUE
from ..course import content
from ..course.settings import load
from ..report import TestOutcome
from ..sandbox.failures import Crashed, TimedOut
from . import fixtures
from .budget import OutOfBudget
from .fixtures import Cases, Reference
from .proxy import StudentProxy

ARGUMENTS = {"student", "reference", "rng"}
"""What a grader may ask for: see `fixtures`."""
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
"""Plugins of pytest's that have nothing to do here."""
_MOST_NAMED = 3


@dataclass(frozen=True)
class HiddenTest:
    """One hidden grader, as its markers describe it."""

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
    """The class that it is a method of."""
    function: Callable[..., None]
    asks_for: frozenset[str]
    hunted: CounterexampleTarget | None = None
    """Of a hunt: what it is for."""

    def ask(self, student: StudentProxy, reference: Reference | None = None, rng: Cases | None = None) -> None:
        """Runs it on one student's code; raises what it finds. reference, rng: in the place of its own."""
        given: dict[str, Any] = {"student": student}
        if "reference" in self.asks_for:
            given["reference"] = reference or Reference(content.solutions(self.unit))
        if "rng" in self.asks_for:
            given["rng"] = rng or Cases(self.name)
        self.function(self.of(), **given)


@dataclass(frozen=True)
class Verdict:
    """What one grader found. `lost` says that the worker hung or crashed, so no more of the exercise can be run."""

    grader: HiddenTest
    outcome: TestOutcome
    seen: str = ""
    lost: TimedOut | Crashed | OutOfBudget | None = None
    missing: bool = False
    """The notebook does not define what was to be called."""
    raised: bool = False
    """What was called raised an exception."""
    aspect: str = OF_VALUE
    """The wrong aspect of the answer, as in `core.comparison.Mismatch`."""
    details: tuple[str, ...] = ()
    unproven: bool = False
    """True if the test passed, but the call that it inspects returned a wrong value. `seen` describes the value."""


TestsOfUnit = Mapping[str, Sequence[HiddenTest]]
"""By exercise, in the order of the files."""
HiddenTests = Mapping[str, TestsOfUnit]
"""By unit."""


class NotCollected(Exception):
    """Some graders could not be collected; `str()` says which and why."""


class _Collected(Mapping[str, TestsOfUnit]):
    """The graders of each unit, collected when they are first asked for. Looking one up may raise NotCollected."""

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
    """The hidden graders of the course."""
    return _Collected()


def _units() -> list[str]:
    """The units that have a folder of graders."""
    hidden = content.place(content.HIDDEN)
    if not hidden.is_dir():
        raise NotCollected(f"The hidden graders cannot be collected. There is no folder {hidden}.")
    return sorted(folder.name for folder in hidden.iterdir() if folder.is_dir() and folder.name[0] not in "._")


def _of_unit(unit: str) -> TestsOfUnit:
    """The unit's graders, which pytest finds and describes, and is then left. Raises NotCollected."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):  # the user's own pytest is no business of a marking process
        os.environ.pop(name, None)
    options = ["--collect-only", "--rootdir=.", "-c", os.devnull, "-p", fixtures.__name__, unit]
    usual, found = load().forbids, _Found()
    with contextlib.chdir(content.place(content.HIDDEN)):  # whose path may have `[`, `::` or `$` in it
        code = pytest.main([*options, *(f"-pno:{name}" for name in _WITHOUT)], plugins=[found])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) and not found.problems:
        found.problems.append(f"pytest ended with {code!r}.")
    graders: dict[str, list[HiddenTest]] = {}
    for item in found.items:
        try:
            grader = _grader(item, usual)
        except ValueError as error:
            found.problems.append(str(error))
            continue
        graders.setdefault(grader.exercise, []).append(grader)
    if found.problems:
        more = f" And {len(found.problems) - _MOST_NAMED} more." if len(found.problems) > _MOST_NAMED else ""
        raise NotCollected(f"The hidden graders cannot be collected. {' '.join(found.problems[:_MOST_NAMED])}{more}")
    return graders


@dataclass
class _Found:
    """A plugin of pytest's that keeps what is collected."""

    items: list[pytest.Item] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Why some could not be collected."""

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.problems.append(f"{report.nodeid}: {str(report.longrepr).strip().splitlines()[-1]}")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.items = session.items


def not_run(grader: HiddenTest) -> Verdict:
    """Of a grader whose turn comes after a hang or a crash."""
    return Verdict(grader, "not_run")


def run_test(student: StudentProxy, grader: HiddenTest) -> Verdict:
    """What a grader finds in one student's code."""
    try:
        grader.ask(student)
    except Unproven as wrong:
        return Verdict(grader, "passed", str(wrong), unproven=True)
    except (Mismatch, StudentFault) as found:
        return Verdict(
            grader,
            "failed",
            str(found),
            aspect=found.aspect if isinstance(found, Mismatch) else OF_VALUE,
            details=found.details if isinstance(found, Mismatch) else (),
            missing=isinstance(found, Missing),
            raised=isinstance(found, Raised),
        )
    except (TimedOut, Crashed, OutOfBudget) as lost:
        return Verdict(grader, "failed", _loss(lost), lost)
    except Exception as error:
        # Our own fault, never the student's: told in full on our side, in one word on theirs.
        where = line_in_hidden(error)
        line = f" (line {where.lineno})" if where else ""
        said = "".join(traceback.format_exception_only(error)).strip()
        print(f"{grader.unit}: {grader.name}{line}: {said}", file=sys.stderr)
        return Verdict(grader, "grader_error", f"This grader itself failed ({type(error).__name__}).")
    return Verdict(grader, "passed")


def line_in_hidden(error: BaseException) -> traceback.FrameSummary | None:
    """The line of the hidden graders at which an error came up, if it did in one of them."""
    frames = traceback.extract_tb(error.__traceback__)
    hidden = content.place(content.HIDDEN)
    return next((frame for frame in reversed(frames) if hidden in Path(frame.filename).parents), None)


def _grader(item: pytest.Item, usual: tuple[str, ...]) -> HiddenTest:
    """A grader without pytest; raises ValueError where it is none. usual: what its course forbids."""
    asks_for = frozenset(inspect.signature(getattr(item, "function", lambda: None)).parameters) - {"self"}
    if not isinstance(item, pytest.Function) or item.cls is None or asks_for - ARGUMENTS:
        given = ", ".join(sorted(ARGUMENTS))
        raise ValueError(f"{item.nodeid} must be a method of a class, and ask for no more than {given}.")
    exercise, points = item.get_closest_marker("exercise"), item.get_closest_marker("points")
    statement = item.function.__doc__
    if exercise is None or points is None or not statement:
        raise ValueError(f"{item.nodeid} needs an exercise, points and a docstring that students can read.")
    forbids = usual if exercise.kwargs["forbids"] is None else tuple(exercise.kwargs["forbids"])
    if unknown := set(forbids) - LIBRARIES:
        raise ValueError(f"{item.nodeid} forbids {', '.join(unknown)}; it can be {' or '.join(LIBRARIES)}.")
    return HiddenTest(
        item.name,
        item.path.parent.name,
        exercise.args[0],
        forbids,
        float(points.args[0]),
        item.get_closest_marker("property") is not None,
        item.get_closest_marker("public") is not None,
        item.get_closest_marker("device") is not None,
        item.get_closest_marker("essential") is not None,
        " ".join(statement.split()),
        item.cls,
        item.function,
        asks_for,
        getattr(item.function, "hunted", None),
    )


def _loss(lost: Exception) -> str:
    match lost:
        case TimedOut():
            return str(lost) or "It did not come back in time. Does a loop never end?"
        case Crashed():
            return str(lost) or "Python ended during this call (an exit, or a crash in native code)."
    return "Not run: this notebook had used up its time, or had hung or crashed too often."
