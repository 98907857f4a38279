"""Grade every known answer by the hidden tests and by the student check.

A misconception is a mutant of the solution; both must detect and diagnose it. A right answer must not lose points.
"""

import contextlib
import importlib.util
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from types import ModuleType
from typing import Any, Literal, TypeVar

import torch

from .. import catalogue, course
from ..course import content
from ..course.cells import filled_in
from ..course.settings import load
from ..pool.grading_pool import GradingProcess
from ..pool.requests import Known
from ..report import ExerciseReport
from ..student_check.unit_data import EXAMPLES, WRITTEN, data_file, read_unit
from .build_cache import BuildCache

T = TypeVar("T")
Way = Literal["in process", "sandboxed"]
"""Ways to grade a known answer: run it in the grading process, or grade a notebook with it like a submission."""
_LETTERS = {"passed": ".", "FAILED": "F", "not tried": "-"}


@dataclass(frozen=True)
class Outcome:
    """The report of grading one known answer."""

    unit: str
    entry: catalogue.Candidate
    report: ExerciseReport

    @property
    def is_misconception(self) -> bool:
        """True if the known answer is a misconception, not a right answer."""
        return self.entry.caught_by is not None

    @property
    def is_detected(self) -> bool:
        """True for a misconception that fails the hidden test that must detect it, and loses points."""
        if self.entry.caught_by == catalogue.FORBIDDEN:
            return self.report.status == "forbidden"
        return self._fails_its_test and self.report.score < self.report.max_score

    @property
    def is_advised(self) -> bool:
        """True for a misconception that fails the hidden test that must detect it, but loses no points by that."""
        return self._fails_its_test and self.report.score == self.report.max_score

    @property
    def _fails_its_test(self) -> bool:
        return any(test.outcome == "failed" and test.name == self.entry.caught_by for test in self.report.tests)

    @property
    def is_diagnosed(self) -> bool:
        """True for a misconception that is reported by name, or by the library that it must not call."""
        if self.entry.caught_by == catalogue.FORBIDDEN:
            return self.is_detected and self.report.diagnosis is None
        return self.report.diagnosis is not None and self.report.diagnosis.names == self.entry.name

    @property
    def is_misdiagnosed(self) -> bool:
        """True if a misconception is reported that the answer does not have."""
        return self.report.diagnosis is not None and not self.is_diagnosed

    @property
    def is_false_positive(self) -> bool:
        """True for a right answer that loses points."""
        return not self.is_misconception and (
            self.report.status != "passed" or self.report.score < self.report.max_score
        )

    @property
    def is_as_expected(self) -> bool:
        """True if a misconception is detected and diagnosed, or if a right answer loses no points."""
        if self.is_false_positive or self.is_misdiagnosed:
            return False
        return not self.is_misconception or ((self.is_detected or self.is_advised) and self.is_diagnosed)


@dataclass(frozen=True)
class CheckVerdict:
    """The output of the student check for one known answer."""

    unit: str
    entry: catalogue.Candidate
    printed: str
    score: float
    points: float

    def outcome(self, statement: str) -> str:
        """Return the outcome of a hidden test's example: `.` passed, `F` failed, `-` not tried, `?` no example.

        statement: the hidden test's.
        """
        lines = self.printed.splitlines()
        return next((letter for mark, letter in _LETTERS.items() if f"{mark}  {statement}" in lines), "?")

    @property
    def is_misconception(self) -> bool:
        """True if the known answer is a misconception, not a right answer."""
        return self.entry.caught_by is not None

    @property
    def has_all_points(self) -> bool:
        """True if the student check reports all points of the exercise."""
        return self.score == self.points

    @property
    def is_diagnosed(self) -> bool:
        """True if the student check prints the misconception's own sentence."""
        return self.entry.sentence in self.printed

    @property
    def is_unreported(self) -> bool:
        """True for a misconception that gets all points, without a diagnosis and without a failed example."""
        return self.is_misconception and self.has_all_points and not self.is_diagnosed and "FAILED" not in self.printed


Columns = Mapping[str, Callable[[T], bool]]
"""The columns of a table by their heading, each with the predicate that holds for the answers it counts."""
COLUMNS: Columns[Outcome] = {
    "misconceptions": lambda one: one.is_misconception,
    "detected": lambda one: one.is_detected,
    "advisory": lambda one: one.is_advised,
    "diagnosed": lambda one: one.is_misconception and one.is_diagnosed,
    "misdiagnosed": lambda one: one.is_misdiagnosed,
    "alternatives": lambda one: not one.is_misconception,
    "false positives": lambda one: one.is_false_positive,
}
OF_MISCONCEPTIONS = 5
"""Number of the first columns that count misconceptions."""
CHECK_COLUMNS: Columns[CheckVerdict] = {
    "misconceptions": lambda one: one.is_misconception,
    "diagnosed": lambda one: one.is_misconception and one.is_diagnosed,
    "unreported": lambda one: one.is_unreported,
    "alternatives": lambda one: not one.is_misconception,
    "false positives": lambda one: not one.is_misconception and not one.has_all_points,
}


def count(answers: Iterable[T], columns: Columns[T]) -> list[int]:
    """Return, for each column, the number of answers for which its predicate holds."""
    known = list(answers)
    return [sum(map(predicate, known)) for predicate in columns.values()]


def count_by(answers: Iterable[T], key: Callable[[T], str], columns: Columns[T]) -> list[tuple[str, list[int]]]:
    """Group answers by a key; return each group's key and its counts, in the order in which the keys first occur."""
    groups: dict[str, list[T]] = {}
    for one in answers:
        groups.setdefault(key(one), []).append(one)
    return [(name, count(group, columns)) for name, group in groups.items()]


def count_by_kind(outcomes: Sequence[Outcome]) -> list[tuple[str, list[int]]]:
    """Return the counts of misconceptions of each kind, in the order of `catalogue.KINDS`."""
    first = dict(list(COLUMNS.items())[:OF_MISCONCEPTIONS])
    return [(kind, count((one for one in outcomes if one.entry.kind == kind), first)) for kind in catalogue.KINDS]


def entries(units: Sequence[str] = (), named: str = "") -> list[tuple[str, catalogue.Candidate]]:
    """Return the known answers, each with its unit, in the order of the exercises; raises UnknownUnit.

    units: names of the units; all if empty. named: text that the name of the answer or its exercise must contain.
    """
    found = []
    for unit in units or course.unit_names():
        known = [*catalogue.misconceptions(unit).values(), *catalogue.right_answers(unit).values()]
        for exercise in course.unit(unit).exercises:
            its = [entry for entry in known if entry.exercise == exercise.name]
            found += [(unit, entry) for entry in its if named in entry.name or named in entry.exercise]
    return found


def outcomes(
    grading_process: Callable[[], GradingProcess], known: Sequence[tuple[str, catalogue.Candidate]], *, is_new: bool
) -> Iterator[Outcome]:
    """Grade known answers in the grading process; yield the outcomes in the order of the answers.

    grading_process: called if any report is not cached; returns the grading process. is_new: ignore cached reports.
    """
    for unit, of_unit in groupby(known, key=lambda one: one[0]):
        its = [entry for _, entry in of_unit]
        exercises = dict.fromkeys(entry.exercise for entry in its)
        caches = {exercise: BuildCache("marks", unit, exercise) for exercise in exercises}  # each hashes the engine
        reports: dict[str, dict[str, ExerciseReport]] = {
            exercise: {} if is_new else cache.read(dict[str, ExerciseReport]) or {}
            for exercise, cache in caches.items()
        }
        missing = [entry for entry in its if _key(entry) not in reports[entry.exercise]]
        graded = grading_process().grade_known(unit, list(map(_known, missing))) if missing else []
        for entry, report in zip(missing, graded, strict=True):
            reports[entry.exercise][_key(entry)] = report
        for exercise in {entry.exercise for entry in missing}:
            caches[exercise].write(reports[exercise])
        for entry in its:
            yield Outcome(unit, entry, reports[entry.exercise][_key(entry)])


def _known(entry: catalogue.Candidate) -> Known:
    return ("right_answer" if entry.caught_by is None else "misconception"), entry.name


def _key(entry: catalogue.Candidate) -> str:
    return "/".join(_known(entry))


def outcome(grading_process: GradingProcess, unit: str, entry: catalogue.Candidate, way: Way = "in process") -> Outcome:
    """Grade one known answer. grading_process: the grading process."""
    if way == "in process":
        report = grading_process.grade_candidate(unit, *_known(entry))
    else:
        answers = {name: solution.source() for name, solution in catalogue.solutions(unit).items()}
        report = grading_process.grade("typed.ipynb", filled_in(unit, {**answers, entry.exercise: entry.source()}))
    return Outcome(unit, entry, report.exercise(entry.exercise))


@cache
def released_check(unit: str) -> ModuleType:
    """Return the student check of a unit, imported from its release."""
    name = load().check
    spec = importlib.util.spec_from_file_location(name, course.released(unit).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_verdict(unit: str, entry: catalogue.Candidate) -> CheckVerdict:
    """Run the student check on one known answer. The other exercises have their solutions as answers."""
    names: dict[str, Any] = dict(content.solutions(unit))
    names[entry.exercise] = entry.answer
    names["check"] = released_check(unit).check
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        score = float(eval(f"check({entry.exercise!r}, more=True)", names))
    return CheckVerdict(unit, entry, printed.getvalue(), score, course.unit(unit).exercise(entry.exercise).points)


def check_verdicts() -> Iterator[CheckVerdict]:
    """Run the student check on every known answer, in the order of the exercises; yield the verdicts."""
    torch.set_num_threads(1)  # for tensors as small as these, several threads only wait for each other
    for unit, entry in entries():
        yield check_verdict(unit, entry)


def not_tried() -> list[tuple[str, str]]:
    """Return the hidden tests that the student check does not try: for each, the exercise and the statement."""
    found = []
    for unit in course.unit_names():
        exercises = read_unit(course.released(unit).with_name(data_file(unit)))[EXAMPLES]
        found += [
            (name, one["statement"]) for name, of in exercises.items() if name != WRITTEN for one in of["not_tried"]
        ]
    return found
