"""One pytest session for a whole class: the graders are collected once and run for one student after another."""

import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from ..compare import Mismatch
from ..hidden.cases import Cases
from ..report import TestOutcome
from ..sandbox.inside.faults import Missing, StudentFault
from ..sandbox.losses import Crashed, TimedOut
from ..student.budget import OutOfBudget
from ..student.face import Reference, Student

GIVEN = {"student", "reference", "rng"}
"""What a grader may ask for: see `hidden.conftest`."""
HIDDEN = Path(__file__).resolve().parents[1] / "hidden"


@dataclass(frozen=True)
class Grader:
    """One hidden grader, as its markers describe it."""

    item: pytest.Function
    unit: str
    exercise: str
    forbids: tuple[str, ...]
    points: float
    is_property: bool
    is_public: bool
    probes_device: bool
    statement: str

    @property
    def name(self) -> str:
        return self.item.name

    def ask(self, student: Student) -> None:
        """Runs it on one student's code; raises what it finds."""
        given: dict[str, Any] = {"student": student}
        if "reference" in self._asks_for:
            given["reference"] = Reference(self._solutions)
        if "rng" in self._asks_for:
            given["rng"] = Cases(self.name)
        self.item.function(self.item.cls(), **given)

    @cached_property
    def _asks_for(self) -> set[str]:
        return _asks_for(self.item)

    @cached_property
    def _solutions(self) -> dict[str, Any]:
        return vars(importlib.import_module(f"solutions.{self.unit}"))


@dataclass
class Verdict:
    """What one grader found. `lost` says that the worker hung or crashed, so no more of the exercise can be run."""

    grader: Grader
    outcome: TestOutcome
    seen: str = ""
    lost: TimedOut | Crashed | OutOfBudget | None = None
    missing: bool = False
    """The notebook does not define what was to be called."""


@dataclass
class Session:
    """The running pytest session, as a plugin of it."""

    serve: Callable[["Session"], None]
    """What to do once the graders are collected; returns when the session is over."""
    graders: dict[str, dict[str, list[Grader]]] = field(default_factory=dict)
    """By unit and exercise, in the order of the files."""
    problems: list[str] = field(default_factory=list)
    """Why some graders could not be collected."""

    def run(self, student: Student, graders: Sequence[Grader]) -> Iterator[Verdict]:
        """Runs the graders of one exercise on one student; after a hang or a crash the rest is not run."""
        lost = False
        for grader in graders:
            verdict = Verdict(grader, "not_run") if lost else self._run(student, grader)
            lost = lost or verdict.lost is not None
            yield verdict

    def _run(self, student: Student, grader: Grader) -> Verdict:
        # Called directly: pytest's own way from a test to its report costs as much as what the test asks.
        try:
            grader.ask(student)
        except (Mismatch, StudentFault) as found:
            return Verdict(grader, "failed", str(found), missing=isinstance(found, Missing))
        except (TimedOut, Crashed, OutOfBudget) as lost:
            return Verdict(grader, "failed", _loss(lost), lost)
        except Exception as error:
            # Our own fault, never the student's: told in full on our side, in one word on theirs.
            frames = traceback.extract_tb(error.__traceback__)
            where = next((frame for frame in reversed(frames) if HIDDEN in Path(frame.filename).parents), None)
            line = f" (line {where.lineno})" if where else ""
            said = "".join(traceback.format_exception_only(error)).strip()
            print(f"{grader.unit}: {grader.name}{line}: {said}", file=sys.stderr)
            return Verdict(grader, "grader_error", f"This grader itself failed ({type(error).__name__}).")
        return Verdict(grader, "passed")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keeps why a module of graders could not be collected."""
        if report.failed:
            self.problems.append(f"{report.nodeid}: {str(report.longrepr).strip().splitlines()[-1]}")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Sorts the graders by unit and exercise."""
        for item in session.items:
            try:
                grader = _grader(item)
            except ValueError as error:
                self.problems.append(str(error))
                continue
            self.graders.setdefault(grader.unit, {}).setdefault(grader.exercise, []).append(grader)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Takes the place of pytest's own loop over all items."""
        self.serve(self)
        return True


def run_session(serve: Callable[[Session], None]) -> int:
    """Collects the hidden graders and serves until `serve` returns; pytest's exit code, 5 being no failure here."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):  # the user's own pytest is no business of a grading session
        os.environ.pop(name, None)
    options = [f"--rootdir={HIDDEN}", "-c", str(HIDDEN / "pytest.ini"), str(HIDDEN)]
    without = (
        "terminal",
        "cacheprovider",
        "capture",
        "logging",
        "warnings",
        "faulthandler",
        "junitxml",
        "pastebin",
    )
    return int(pytest.main([*options, *(f"-pno:{name}" for name in without)], plugins=[Session(serve)]))


def _grader(item: pytest.Item) -> Grader:
    if not isinstance(item, pytest.Function) or item.cls is None or _asks_for(item) - GIVEN:
        raise ValueError(
            f"{item.nodeid} must be a method of a class, and ask for no more than {', '.join(sorted(GIVEN))}."
        )
    exercise = item.get_closest_marker("exercise")
    points = item.get_closest_marker("points")
    statement = getattr(getattr(item, "function", None), "__doc__", None)
    if exercise is None or points is None or not statement:
        raise ValueError(f"{item.nodeid} needs an exercise, points and a docstring that students can read.")
    return Grader(
        item,
        item.path.parent.name,
        exercise.args[0],
        tuple(exercise.kwargs["forbids"]),
        float(points.args[0]),
        item.get_closest_marker("property") is not None,
        item.get_closest_marker("public") is not None,
        item.get_closest_marker("device") is not None,
        " ".join(statement.split()),
    )


def _asks_for(item: pytest.Function) -> set[str]:
    return set(inspect.signature(item.function).parameters) - {"self"}


def _loss(lost: Exception) -> str:
    match lost:
        case TimedOut():
            return str(lost) or "It did not come back in time. Does a loop never end?"
        case Crashed():
            return str(lost) or "Python ended during this call (an exit, or a crash in native code)."
    return "Not run: this notebook had used up its time, or had hung or crashed too often."
