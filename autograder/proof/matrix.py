"""Every known answer against the graders: which mistakes are caught and named, which right answers are refused."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import msgspec

from .. import catalogue, course
from ..catalogue.kept import Kept
from ..client.marker import Marker
from ..client.requests import Known
from ..course.cells import filled_in
from ..report import ExerciseReport

Way = Literal["in process", "sandboxed"]
"""Run beside the graders, or typed into a notebook and marked as a submission is."""


@dataclass(frozen=True)
class Outcome:
    """What the graders made of one entry of the catalogue."""

    unit: str
    entry: catalogue.Candidate
    report: ExerciseReport

    @property
    def wrong(self) -> bool:
        """Whether the entry is a misconception."""
        return self.entry.caught_by is not None

    @property
    def caught(self) -> bool:
        """A misconception that loses points, and where it was expected to."""
        if self.entry.caught_by == catalogue.FORBIDDEN:
            return self.report.status == "forbidden"
        failed = {test.name for test in self.report.tests if test.outcome == "failed"}
        return self.entry.caught_by in failed and self.report.score < self.report.max_score

    @property
    def told(self) -> bool:
        """A misconception that fails where it was expected to, and loses no points: its grader only tells."""
        failed = {test.name for test in self.report.tests if test.outcome == "failed"}
        return self.entry.caught_by in failed and self.report.score == self.report.max_score

    @property
    def named(self) -> bool:
        """A misconception whose student reads its own sentence, or which library must not be called."""
        if self.entry.caught_by == catalogue.FORBIDDEN:
            return self.caught and self.report.diagnosis is None
        return self.report.diagnosis is not None and self.report.diagnosis.names == self.entry.name

    @property
    def wrongly_named(self) -> bool:
        """An entry whose student reads another's sentence."""
        return self.report.diagnosis is not None and not self.named

    @property
    def refused(self) -> bool:
        """A right answer that loses points."""
        return not self.wrong and (self.report.status != "passed" or self.report.score < self.report.max_score)


@dataclass(frozen=True)
class Figures:
    """How many of some entries are what."""

    misconceptions: int
    caught: int
    told: int
    named: int
    wrongly_named: int
    right_answers: int
    refused: int


COLUMNS = ("mistakes", "caught", "told", "named", "wrong name", "right", "refused")


def figures(outcomes: Iterable[Outcome]) -> Figures:
    """The figures of these outcomes."""
    found = list(outcomes)
    return Figures(
        misconceptions=sum(one.wrong for one in found),
        caught=sum(one.wrong and one.caught for one in found),
        told=sum(one.wrong and one.told for one in found),
        named=sum(one.wrong and one.named for one in found),
        wrongly_named=sum(one.wrongly_named for one in found),
        right_answers=sum(not one.wrong for one in found),
        refused=sum(one.refused for one in found),
    )


def entries(units: Sequence[str] = (), named: str = "") -> list[tuple[str, catalogue.Candidate]]:
    """The catalogue's entries with their units, in the order of the exercises.

    units: those alone. named: what the name of the entry, or of its exercise, has in it. Raises UnknownUnit.
    """
    found = []
    for unit in units or course.unit_names():
        known = [*catalogue.misconceptions(unit).values(), *catalogue.right_answers(unit).values()]
        for exercise in course.unit(unit).exercises:
            its = [entry for entry in known if entry.exercise == exercise.name]
            found += [(unit, entry) for entry in its if named in entry.name or named in entry.exercise]
    return found


def outcomes(
    marker: Callable[[], Marker], known: Sequence[tuple[str, catalogue.Candidate]], *, is_new: bool
) -> Iterator[Outcome]:
    """What the graders make of these entries, run beside them, in their order.

    marker: gives the marking process, when one is needed first. is_new: mark all of them, though what came of some may
    be kept from before.
    """
    for unit, of_unit in groupby(known, key=lambda one: one[0]):
        its = [entry for _, entry in of_unit]
        kept = {exercise: Kept("marks", unit, exercise) for exercise in dict.fromkeys(one.exercise for one in its)}
        held = {exercise: {} if is_new else _read(one) for exercise, one in kept.items()}
        missing = [entry for entry in its if "/".join(_known(entry)) not in held[entry.exercise]]
        reports = marker().mark_known(unit, list(map(_known, missing))) if missing else []
        for entry, report in zip(missing, reports, strict=True):
            held[entry.exercise]["/".join(_known(entry))] = report
        for exercise in {entry.exercise for entry in missing}:
            kept[exercise].write(held[exercise])
        for entry in its:
            yield Outcome(unit, entry, held[entry.exercise]["/".join(_known(entry))])


def _read(kept: Kept) -> dict[str, ExerciseReport]:
    try:
        return msgspec.convert(kept.read() or {}, dict[str, ExerciseReport])
    except msgspec.ValidationError:
        return {}


def _known(entry: catalogue.Candidate) -> Known:
    return ("right_answer" if entry.caught_by is None else "misconception"), entry.name


def outcome(marker: Marker, unit: str, entry: catalogue.Candidate, way: Way = "in process") -> Outcome:
    """What the graders make of one entry."""
    if way == "in process":
        report = marker.mark_candidate(unit, *_known(entry))
    else:
        answers = {name: solution.source() for name, solution in catalogue.solutions(unit).items()}
        report = marker.mark("typed.ipynb", filled_in(unit, {**answers, entry.exercise: entry.source()}))
    return Outcome(unit, entry, report.exercise(entry.exercise))


def by_exercise(outcomes: Iterable[Outcome]) -> Iterator[tuple[str, str, Figures]]:
    """Unit, exercise and figures, in the order of the outcomes."""
    for (unit, exercise), group in groupby(outcomes, key=lambda one: (one.unit, one.entry.exercise)):
        yield unit, exercise, figures(group)


def by_kind(outcomes: Iterable[Outcome]) -> Iterator[tuple[str, Figures]]:
    """Kind of mistake and figures."""
    found = list(outcomes)
    for kind in catalogue.KINDS:
        yield kind, figures(one for one in found if one.entry.kind == kind)
