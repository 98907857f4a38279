"""The class report as data: `report.json` is a `ClassReport` with these fields, in this order.

Points are those of nbgrader's gradebook: a person's scores replace automatic ones. Shares are between 0 and 1. In an
anonymous report every `students` is empty, every `student` and `name` of a row is "", `late_minutes` is 0, and rows are
ordered by their scores. Fields may be added; none is renamed.
"""

from collections.abc import Collection
from enum import StrEnum

import msgspec

DIGITS = 4
"""Decimals of the figures in a report; a score has two."""
FEWEST_GRADES = 30
"""Students with a score for an exercise from which a correlation says something about the exercise."""


class Spread(msgspec.Struct, frozen=True):
    """Distribution of the scores of all submissions, after penalties for lateness.

    While an answer to a question waits for a person, the question's points are left out of everyone's score.
    """

    mean: float
    median: float
    lower_quartile: float
    upper_quartile: float
    lowest: float
    highest: float
    max_score: float
    """The maximum of these scores."""


class ExerciseFigures(msgspec.Struct, frozen=True):
    """Statistics of one exercise, or one question that a person grades, over the students who have a score for it."""

    name: str
    section: str
    """Heading of the unit's section with the exercise."""
    points: float
    is_written: bool
    """True for a written question, which a person grades."""
    marked: int
    waiting: int
    """Number of answers that a person has not graded yet; no figure includes them."""
    passed: int
    """Number of students with all of the points."""
    pass_rate: float | None
    mean: float | None
    discrimination: float | None
    """Item-rest correlation (Pearson): the exercise's scores with the sum of the same students' other scores. Damaged
    files and questions that wait for a person are left out. None if either is the same for all, or fewer than 30
    students have scores."""
    lost: float = 0.0
    """Points that all students together lost in it; damaged files are left out."""


class CodeSample(msgspec.Struct, frozen=True):
    """The code of one answer: without comments, docstrings and empty lines, every string literal shown as '…'."""

    code: str
    """Empty if no code can be shown; `note` says why."""
    lines: list[int]
    """Lines of `code` at fault, counted from 1, if they are known."""
    note: str = ""


class MistakeFigures(msgspec.Struct, frozen=True):
    """A known mistake and the students who made it."""

    exercise: str
    section: str
    name: str
    sentence: str
    """The message to the students."""
    count: int
    share: float
    """Share of all submissions."""
    students: list[str]
    specimen: CodeSample
    lost: float = 0.0
    """Points that all of them together lost in the exercise: students times points lost."""


class ChangedLine(msgspec.Struct, frozen=True):
    """One changed line of a repair, as code is shown: see `CodeSample`."""

    kind: str
    """The changed thing, in words: "a number", "an argument that is missing"."""
    before: str
    """The line before the change. Both lines are empty if they cannot be shown, or differ only in what is not shown."""
    after: str


class Cluster(msgspec.Struct, frozen=True):
    """Wrong answers to one exercise that no known mistake explains: with the same repair, or else that behave alike."""

    exercise: str
    section: str
    count: int
    students: list[str]
    step: str
    """The solution's name for the wrong step; empty if it is not known."""
    seen: list[str]
    """Messages of the tests that one of the answers failed."""
    specimen: CodeSample
    repair: list[ChangedLine] = []
    """The change of code, equal for all these answers, with which all tests pass; empty if none is known."""
    lost: float = 0.0
    """Points that all of these answers together lost in the exercise."""


class Unexplained(msgspec.Struct, frozen=True):
    """Answers without full grades in which no known mistake could be searched for, and the reason."""

    exercise: str
    why: str
    count: int
    students: list[str]


class Concern(StrEnum):
    """Reasons why an instructor may have to act, in the order of the report."""

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
    """A reason to act, and the students whom it is about."""

    what: Concern
    count: int
    students: list[str]


class CellFigures(msgspec.Struct, frozen=True):
    """One student's score for one exercise."""

    score: float
    is_waiting: bool
    mistakes: list[str]
    """Names of known mistakes: none, one, or two at once."""


class Row(msgspec.Struct, frozen=True):
    """One student's line in the table of scores."""

    student: str
    name: str
    status: str
    """Status: see `Report.status`; `not_submitted` without a submission, empty if another program gave the scores."""
    late_minutes: int
    """Time from the due date to the submission, rounded up to minutes."""
    raw_score: float
    late_penalty: float
    score: float
    cells: dict[str, CellFigures]
    """Scores by the exercises' names, in their order; empty without a submission."""
    is_lateness_unknown: bool = False
    """True if the time stamp does not determine the time of submission; `late_minutes` is 0 then."""

    def score_without(self, exercises: Collection[str]) -> float:
        """Return the score without the points for some exercises; not less than 0."""
        return max(0.0, self.score - sum(self.cells[name].score for name in exercises if name in self.cells))


class ClassReport(msgspec.Struct, frozen=True):
    """Results of a class in one unit."""

    unit: str
    title: str
    made: str
    """Time at which the report was made, in UTC and ISO 8601."""
    version: str
    """Version of the autograder that made the report."""
    is_anonymous: bool
    students: int
    """Number of students in the gradebook."""
    handed_in: int
    """Number of submissions; all figures are about them. A damaged file counts with 0 points, as in the gradebook."""
    max_score: float
    spread: Spread | None
    exercises: list[ExerciseFigures]
    mistakes: list[MistakeFigures]
    """Known mistakes, most points lost first; the page suggests the first five for the next lecture."""
    clusters: list[Cluster]
    """Groups of wrong answers without a known mistake, most points lost first."""
    unexplained: list[Unexplained]
    to_look_at: list[ToLookAt]
    rows: list[Row]
    section: str = ""
    """The section of the roster that the report is about; empty for the whole class."""

    @property
    def waiting(self) -> list[str]:
        """Names of the questions with an answer that waits for a person."""
        return [exercise.name for exercise in self.exercises if exercise.waiting]
