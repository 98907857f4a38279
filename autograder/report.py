"""The result of grading: plain data, written as one JSON object per submission.

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
"""File name of the whole report, next to the graded notebook, for the instructor."""

NOT_WRITTEN = "Nothing is written in the cell"
"""Beginning of the message on an exercise whose stub is untouched."""

USES_WRONG = "It uses your"
"""Beginning of the message on an exercise that calls another one that is not right: `core.complaints.uses_wrong`."""
_TOLERANCE = 1e-3
"""Relative difference of two sums that rounding may cause."""


class TestReport(msgspec.Struct, frozen=True):
    """One hidden test's verdict."""

    name: str
    outcome: TestOutcome
    """withheld: passed, but gives points only if a test of hidden values passes."""
    points: float
    message: str
    """The test's statement and, if it failed, the observed result."""
    max_points: float = 0.0
    """0 for an advisory test."""
    public: bool = False
    """True if the released student check runs this test with the same numbers."""
    halves: bool = False
    """True if the test failed, and the exercise therefore gives at most half of its points."""


class Mistake(msgspec.Struct, frozen=True):
    """A known misconception: its name, for instructors, and the sentence that a student reads."""

    name: str
    sentence: str


class Diagnosis(Mistake, frozen=True):
    """The known misconception that behaves exactly like the submission, or one of two that do so together."""

    beside: Mistake | None = None
    """The other misconception, if there are two at once."""
    is_partial: bool = False
    """True if the submission fails more hidden tests than this explains."""

    @property
    def names(self) -> str:
        """Name of the misconception, or names of both."""
        return f"{self.name} + {self.beside.name}" if self.beside else self.name


class FaultLocation(msgspec.Struct, frozen=True):
    """The lines at which an answer goes wrong, in a call whose numbers are released to students."""

    lines: list[int]
    """Lines of the cell that defines the exercise: one, two that do not fit each other, or up to three to choose
    from."""
    told: str
    """The steps that are right, the wrong one and its result, as lines of text."""
    step: str = ""
    """The solution's name for the wrong step; empty if it has none."""


class Change(msgspec.Struct, frozen=True):
    """One changed place of the student's code."""

    cell: str
    line: int
    subject: str
    """The changed thing, in words: "a number", "an argument that is missing"."""
    before: str
    """The line before the change; empty if the change adds a line."""
    after: str
    """The line after the change; empty if the change removes a line."""


class Repair(msgspec.Struct, frozen=True):
    """Changes of the student's own code, tried out, with which the exercise earns all points."""

    changes: list[Change]
    """Changes that are needed all together."""


class Behaviour(msgspec.Struct, frozen=True):
    """A summary of a wrong answer's results in the hidden tests, to find the answers of a class that behave alike."""

    exact: str
    """Digest of everything exact: shapes, types, errors, arguments that were changed."""
    sums: list[float]
    """Two sums for each of the first tensors."""

    def is_like(self, other: "Behaviour") -> bool:
        """Return whether two answers to one exercise have the same summary, apart from rounding."""
        pairs = zip(self.sums, other.sums, strict=False)
        return self.exact == other.exact and all(abs(a - b) <= _TOLERANCE * (1 + abs(a)) for a, b in pairs)


class Reweighted(msgspec.Struct, frozen=True):
    """The points that hidden tests gave for an exercise whose points the instructor changed afterwards."""

    kind: str
    """points: another maximum. drop: neither score nor maximum. give_full: the maximum for all who submitted."""
    sentence: str
    """The change, for the student."""
    score: float
    """The score before the change."""
    max_score: float
    """The maximum before the change."""
    is_added: bool = False
    """True if the report had no exercise, because the file was damaged or its grading failed."""


class ExerciseReport(msgspec.Struct, frozen=True):
    """One exercise's score and the reasons for it."""

    name: str
    status: ExerciseStatus
    score: float
    max_score: float
    diagnosis: Diagnosis | None
    message: str
    tests: list[TestReport]
    whereabouts: FaultLocation | None = None
    """The fault's location, if it was found; it affects no score."""
    behaviour: Behaviour | None = None
    """Summary of a failed answer's behaviour, if no known misconception explains it."""
    repairs: list[Repair] = []
    """Repairs, each of which suffices; only for an answer whose behaviour no known misconception explains."""
    note: str = ""
    """Message on cells that changed the answer's names after its check, and on the moment that is graded."""
    reweighted: Reweighted | None = None
    """The points before the instructor changed those of the exercise; its tests keep the points that they gave."""

    @property
    def mistakes(self) -> list[Mistake]:
        """The known misconceptions that the diagnosis names: none, one, or two at once."""
        return [mistake for mistake in (self.diagnosis, self.diagnosis and self.diagnosis.beside) if mistake]

    @property
    def mistake_messages(self) -> list[str]:
        """The diagnosis in lines for the student: one line, or a title and a line for each of two mistakes."""
        sentences = [mistake.sentence for mistake in self.mistakes]
        is_partial = self.diagnosis is not None and self.diagnosis.is_partial
        if len(sentences) < 2:
            more = " Something else is wrong, too." if is_partial else ""
            return [f"Your code behaves like this mistake: {sentence}{more}" for sentence in sentences]
        more = ", and something else is wrong, too" if is_partial else ""
        return [f"Your code behaves like two mistakes at once{more}:", *sentences]


class WrittenQuestion(msgspec.Struct, frozen=True):
    """A question that is answered in words and graded by a person; no score in the report includes it."""

    name: str
    status: Literal["answered", "unanswered", "missing"]
    """unanswered: nothing is written. missing: the notebook has neither the cell nor an answer elsewhere."""
    max_score: float
    found_in: str = ""
    """Location of the answer; empty if it is in the question's own cell."""


class CellReport(msgspec.Struct, frozen=True):
    """The outcome of running one of the notebook's own cells."""

    cell: str
    status: Literal["ran", "set_aside", "failed", "timeout", "crashed"]
    """set_aside: the cell only displays other cells' results, and runs only if another cell uses what it defines."""
    message: str
    printed: str

    @property
    def troubled(self) -> bool:
        """True if the cell should have run to its end and did not."""
        return self.status in ("failed", "timeout", "crashed")


class Report(msgspec.Struct, frozen=True):
    """One submission's score and the reasons for it."""

    notebook: str
    """Path of the file, as the user or the course named it."""
    unit: str | None
    """null if the notebook belongs to no known unit."""
    status: SubmissionStatus
    """The gravest thing that happened. damaged: there is a file, but no notebook of this course in it. unreadable:
    there is no file, or it cannot be read. grader_error: a fault of the autograder; exercises with it have no score."""
    isolation: str
    """A, B or none: see docs/security.md."""
    device: str
    score: float
    """Points given by the hidden tests, without written questions."""
    max_score: float
    """Points that the hidden tests can give, without written questions; 0 if there is no unit."""
    exercises: list[ExerciseReport]
    message: str = ""
    cells: list[CellReport] = []
    enforced: list[str] = []
    """The parts of the isolation, in words."""
    version: str = __version__
    """Version of the autograder that graded the submission."""
    submission: str = ""
    """SHA-256 of the submitted file; empty if there is none."""
    kit: str = ""
    """SHA-256 of everything that affects a score in this unit: see `course.content`."""
    torch: str = ""
    """Version of torch that the hidden tests ran with."""
    cases: str = ""
    """Source of the random numbers in the hidden tests' cases."""
    written: list[WrittenQuestion] = []
    """Questions that a person grades."""
    repairs_searched: bool = False
    """True if repairs were searched for the answers that no known misconception explains."""

    @property
    def is_result(self) -> bool:
        """False if the file could not be read or the autograder failed: the report says nothing of the submission."""
        return self.status not in ("unreadable", "grader_error")

    @property
    def has_unexplained(self) -> bool:
        """True if an answer failed whose behaviour no known misconception explains."""
        return any(exercise.behaviour is not None for exercise in self.exercises)

    def exercise(self, name: str) -> ExerciseReport:
        """Return the report on one exercise; raises KeyError."""
        return {exercise.name: exercise for exercise in self.exercises}[name]


class Conditions(msgspec.Struct, frozen=True):
    """The device that a grading process computes on, and the isolation of its sandbox."""

    device: str
    isolation: str
    enforced: list[str]
    """The parts of the isolation, in words."""


def ungraded_report(
    notebook: str,
    status: SubmissionStatus,
    sentence: str,
    on: Conditions,
    *,
    unit: str | None = None,
    submission: str = "",
    note: str = "",
) -> Report:
    """Return the report on a submission that cannot be run, with a sentence that says why."""
    return Report(
        notebook, unit, status, on.isolation, on.device, 0.0, 0.0, [], joined(note, sentence),
        enforced=on.enforced, submission=submission,
    )  # fmt: skip


def joined(*sentences: str) -> str:
    """Join sentences with spaces; empty ones are left out."""
    return " ".join(filter(None, sentences))
