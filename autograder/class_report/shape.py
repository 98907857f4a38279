"""The class report as data. `report.json` is a `ClassReport` with these fields, in this order.

Points are as nbgrader's gradebook has them, with a person's marks in place of automatic ones. Shares are between 0 and
1. In an anonymous report every `students` is empty, every `student` and `name` of a row is "", `late_minutes` is 0, and
the order of rows tells nothing but their marks. Fields may be added; none is renamed.
"""

from enum import StrEnum

import msgspec


class Spread(msgspec.Struct, frozen=True):
    """How the marks of those who handed in are spread, after penalties for handing in late."""

    mean: float
    median: float
    lower_quartile: float
    upper_quartile: float
    lowest: float
    highest: float


class ExerciseFigures(msgspec.Struct, frozen=True):
    """One exercise, or one question that a person marks, over those who have a mark for it."""

    name: str
    section: str
    """The heading of the text that it stands below."""
    points: float
    is_written: bool
    """Whether a person marks it."""
    marked: int
    waiting: int
    """How many answers wait for a person; they count in none of the figures."""
    passed: int
    """How many have all of the points."""
    pass_rate: float | None
    mean: float | None
    discrimination: float | None
    """How well it tells the strong from the weak: the correlation (Pearson) of its marks with the sum of the same
    students' other marks, item-rest. Damaged files and questions that wait for a person are left out. None where either
    is the same for all, or fewer than three have marks."""


class Specimen(msgspec.Struct, frozen=True):
    """The code of one answer: without comments and docstrings, every string literal shown as '…'."""

    code: str
    """Empty where there is none to show; `note` says why."""
    lines: list[int]
    """Where it goes wrong, in lines of `code` counted from 1, as far as that is known."""
    note: str = ""


class MistakeFigures(msgspec.Struct, frozen=True):
    """A known mistake and who made it."""

    exercise: str
    section: str
    name: str
    sentence: str
    """What the students were told."""
    count: int
    share: float
    """Of those who handed in."""
    students: list[str]
    specimen: Specimen


class Cluster(msgspec.Struct, frozen=True):
    """Wrong answers to one exercise that no known mistake explains, and that all do the same."""

    exercise: str
    section: str
    count: int
    students: list[str]
    step: str
    """The solution's name of the step where they go wrong; empty where that is not known."""
    seen: list[str]
    """Of one of them, the statements that fail and what was seen."""
    specimen: Specimen


class Unexplained(msgspec.Struct, frozen=True):
    """Exercises without full marks where no mistake could be looked for, and why."""

    exercise: str
    why: str
    count: int
    students: list[str]


class Concern(StrEnum):
    """What an instructor may have to do something about, in the order of the report."""

    WAITING = "waiting for a person"
    OUR_FAULT = "our fault"
    DAMAGED = "damaged"
    TIMED_OUT = "timed out"
    CRASHED = "crashed"
    CELLS_FAILED = "cells failed"
    LATE = "late"
    LATENESS_UNKNOWN = "lateness unknown"
    NOTHING = "nothing handed in"
    NO_REPORT = "no report"


class ToLookAt(msgspec.Struct, frozen=True):
    """Whom a concern is about."""

    what: Concern
    count: int
    students: list[str]


class CellFigures(msgspec.Struct, frozen=True):
    """One student's mark for one exercise."""

    score: float
    is_waiting: bool
    mistakes: list[str]
    """Names of known mistakes: none, one, or two that were made at once."""


class Row(msgspec.Struct, frozen=True):
    """One student."""

    student: str
    name: str
    status: str
    """As in `Report.status`; `not_submitted` without a submission, empty where autograder did not give the marks."""
    late_minutes: int
    """Rounded up."""
    raw_score: float
    late_penalty: float
    score: float
    cells: dict[str, CellFigures]
    """By the exercises' names, in their order; empty if nothing was handed in."""
    is_lateness_unknown: bool = False
    """True if the time stamp does not determine the time of submission; `late_minutes` is 0 then."""


class ClassReport(msgspec.Struct, frozen=True):
    """What a class did in one unit."""

    unit: str
    title: str
    made: str
    """When, in UTC, as ISO 8601 has it."""
    version: str
    """Of the kit that made the report."""
    is_anonymous: bool
    students: int
    """In the gradebook."""
    handed_in: int
    """All figures are about these. A damaged file counts with 0 points, as in the gradebook."""
    max_score: float
    spread: Spread | None
    exercises: list[ExerciseFigures]
    mistakes: list[MistakeFigures]
    """The most common first: the first five are those to speak of in the next lecture."""
    clusters: list[Cluster]
    """The largest first."""
    unexplained: list[Unexplained]
    to_look_at: list[ToLookAt]
    rows: list[Row]
