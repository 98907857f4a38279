"""The result of marking: plain data, written as one JSON object per submission.

Fields may be added; none is renamed, since instructors' scripts read them. docs/mark.schema.json is made from these
types and their docstrings.
"""

from typing import Literal

import msgspec

from . import __version__

SubmissionStatus = Literal[
    "graded", "cells_failed", "timed_out", "crashed", "damaged", "unreadable", "not_submitted", "grader_error"
]
ExerciseStatus = Literal[
    "passed", "failed", "error", "timeout", "crashed", "missing", "forbidden", "skipped", "grader_error"
]
TestOutcome = Literal["passed", "failed", "withheld", "not_run", "grader_error"]


REPORT_FILE = "report.json"
"""The whole report, next to the marked notebook, for the instructor."""

NOT_WRITTEN = "Nothing is written in the cell"
"""How the message begins for an exercise whose stub is untouched."""

USES_WRONG = "It uses your"
"""How the message begins for an exercise that calls another one that is not right."""


_NEAR = 1e-3
"""Between two sums over numbers that differ by rounding."""


class TestReport(msgspec.Struct, frozen=True):
    """One hidden grader's verdict."""

    name: str
    outcome: TestOutcome
    """withheld: passed, but it pays only once a result is right that is not one of the examples."""
    points: float
    message: str
    """The grader's statement and, where it failed, what was seen."""
    max_points: float = 0.0
    """0 for a grader that only tells."""
    public: bool = False
    """Whether students have it with these numbers, in the check that was released."""


class Mistake(msgspec.Struct, frozen=True):
    """A known misconception: its name, for instructors, and the sentence that a student reads."""

    name: str
    sentence: str


class Diagnosis(Mistake, frozen=True):
    """The known misconception that behaves exactly like the submission, or one of two that do so together."""

    beside: Mistake | None = None
    """The other one, where there are two at once."""

    @property
    def names(self) -> str:
        """The name, or both."""
        return f"{self.name} + {self.beside.name}" if self.beside else self.name


class Whereabouts(msgspec.Struct, frozen=True):
    """Where an answer goes wrong on a case that is drawn for showing."""

    lines: list[int]
    """Of the cell that defines the exercise: one, or two that do not fit each other."""
    told: str
    """The steps that are right, the one that is not, and what was made there, as lines of text."""
    step: str = ""
    """What the solution calls the step that is not right; empty where that is not known."""


class Behaviour(msgspec.Struct, frozen=True):
    """What a wrong answer showed its graders, in short: to find the answers of a class that do the same."""

    exact: str
    """A digest of all that is exact: shapes, types, errors, what was written into."""
    sums: list[float]
    """Two for each tensor, the first ones only."""

    def is_like(self, other: "Behaviour") -> bool:
        """Whether two answers to one exercise do the same, as far as is kept."""
        return self.exact == other.exact and all(map(_is_near, self.sums, other.sums))


class ExerciseReport(msgspec.Struct, frozen=True):
    """One exercise's mark."""

    name: str
    status: ExerciseStatus
    score: float
    max_score: float
    diagnosis: Diagnosis | None
    message: str
    tests: list[TestReport]
    whereabouts: Whereabouts | None = None
    """Where it goes wrong, as far as that can be told; decides no mark."""
    behaviour: Behaviour | None = None
    """What it does, where it failed and no known mistake does the same."""
    note: str = ""
    """Message: cells that changed the answer's names after its check, and the moment that is graded."""


class WrittenQuestion(msgspec.Struct, frozen=True):
    """A question that is answered in words, and that a person marks: it is in no score here."""

    name: str
    status: Literal["answered", "unanswered", "missing"]
    """unanswered: nothing is written. missing: the cell is not in the notebook, and no answer was found elsewhere."""
    max_score: float
    found_in: str = ""
    """Location of the answer; empty if it is in the question's own cell."""


class CellReport(msgspec.Struct, frozen=True):
    """What one of the notebook's own cells did when it was run."""

    cell: str
    status: Literal["ran", "set_aside", "failed", "timeout", "crashed"]
    """set_aside: it only shows what other cells made, and runs only if another cell uses what it defines."""
    message: str
    printed: str

    @property
    def troubled(self) -> bool:
        """Whether it should have run to its end and did not."""
        return self.status in ("failed", "timeout", "crashed")


class Report(msgspec.Struct, frozen=True):
    """One submission's mark."""

    notebook: str
    """The file, as it was named."""
    unit: str | None
    """null where no unit could be told."""
    status: SubmissionStatus
    """The gravest thing that happened. damaged: there is a file, but no notebook of this course in it. unreadable:
    there is none, or it cannot be read. grader_error: our own fault, and no mark for the exercises that say so."""
    isolation: str
    """A, B or none: see docs/security.md."""
    device: str
    score: float
    """Given by the graders; written questions are not in it."""
    max_score: float
    """What the graders can give, and not by hand; 0 where no unit could be told."""
    exercises: list[ExerciseReport]
    message: str = ""
    cells: list[CellReport] = []
    enforced: list[str] = []
    """What the isolation consisted of, in words."""
    version: str = __version__
    """Of the kit that gave the mark."""
    submission: str = ""
    """SHA-256 of the file that was handed in; empty if there is none."""
    kit: str = ""
    """SHA-256 of everything that decides a mark in this unit: see `course.kit`."""
    torch: str = ""
    """The version of torch that the graders computed with."""
    cases: str = ""
    """What the graders' cases are drawn from."""
    written: list[WrittenQuestion] = []
    """The questions that wait for a person."""

    @property
    def is_result(self) -> bool:
        """Whether it says something of the submission: it does not where we could not read it or our grader failed."""
        return self.status not in ("unreadable", "grader_error")

    def exercise(self, name: str) -> ExerciseReport:
        """The report on one exercise; raises KeyError."""
        for exercise in self.exercises:
            if exercise.name == name:
                return exercise
        raise KeyError(name)


class Conditions(msgspec.Struct, frozen=True):
    """On what a grader marks, and how its sandbox is isolated."""

    device: str
    isolation: str
    enforced: list[str]
    """What the isolation consists of, in words."""


def without_marks(
    notebook: str,
    status: SubmissionStatus,
    sentence: str,
    on: Conditions,
    *,
    unit: str | None = None,
    submission: str = "",
    note: str = "",
) -> Report:
    """The report on a submission that cannot be run, with a sentence that says why."""
    return Report(
        notebook, unit, status, on.isolation, on.device, 0.0, 0.0, [], joined(note, sentence),
        enforced=on.enforced, submission=submission,
    )  # fmt: skip


def _is_near(one: float, other: float) -> bool:
    return abs(one - other) <= _NEAR * (1 + abs(one))


def joined(*sentences: str) -> str:
    """Those that say something, one after another."""
    return " ".join(filter(None, sentences))
