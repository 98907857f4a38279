"""The messages between coordinator and workers, as bytes of JSON, and the validation of what workers send.

Dask would pickle anything but bytes. The coordinator cannot grade again, so it needs honest workers. But it records
only reports on the submissions that it sent, with the unit's exercises and points, made on its own terms.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Literal

import msgspec

from .. import __version__, course
from ..course.settings import Settings
from ..pool.requests import GradeNotebook
from ..report import Conditions, ExerciseReport, Report

MOST_BYTES = 64 << 20
"""Most bytes of a task and of an answer. The largest notebook takes 38 MB in base64, the longest report about 25 MB."""
ANSWER_BYTES = 8 << 20
"""A worker answers once its reports have this size, even if submissions of its task are left."""
_ROUNDING = 0.011
"""Scores are rounded to two decimals, points of single tests to none or to four."""
_NOTHING_RUN = ("damaged", "grader_error")
_OF_FILES = ("damaged", "unreadable", "not_submitted")
_WITHOUT_POINTS = ("missing", "error", "forbidden")
_UNPAID = ("withheld", "not_run", "grader_error")


class Terms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The unit that a run grades, and the conditions."""

    unit: str
    kit: str
    """The coordinator's digest of everything that affects a score in the unit: see `course.content`."""
    device: Literal["cpu", "cuda"]
    settings: Settings


class Task(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Submissions to grade. Their names are positions in the task: the cluster learns no student's name."""

    terms: Terms
    submissions: list[GradeNotebook]


class Able(Conditions, frozen=True, forbid_unknown_fields=True, tag="able"):
    """The conditions on which a worker would grade."""

    kit: str
    torch: str


class Unable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="unable"):
    """A worker's reason for not grading, as a sentence."""

    sentence: str


class Done(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="done"):
    """Reports on the first submissions of a task, in their order; at least one."""

    reports: list[Report]


Answer = Able | Unable | Done


class BadAnswer(Exception):
    """A worker's answer is not valid; `str()` says why."""


class CannotGrade(Exception):
    """A worker cannot grade this run; `str()` says why."""


@dataclass(frozen=True)
class Expected:
    """The answers that a run accepts from its workers."""

    unit: course.Unit
    terms: Terms
    written: frozenset[str]
    """The written questions, which a person grades."""

    def able(self, answer: object) -> Able:
        """Return a worker's conditions if they are those of the run; raises CannotGrade and BadAnswer."""
        able = _decode(answer)
        if not isinstance(able, Able):
            raise BadAnswer("the worker does not report its versions, device and isolation level.")
        isolation = self.terms.settings.isolation
        levels = {"best": ("A", "B"), "A": ("A",), "B": ("B",), "none": ()}[isolation.require]
        if able.isolation not in (*levels, *(("none",) if isolation.trust_submissions else ())):
            raise CannotGrade(f"its isolation level is {able.isolation}, but {isolation.require} is required.")
        if able.device != self.terms.device:
            raise CannotGrade(f"it computes on {able.device}, but {self.terms.device} is required.")
        if (theirs := _release(able.torch)) != (ours := _release(version("torch"))):
            raise CannotGrade(f"it has torch {theirs}, but this machine has torch {ours}.")
        if able.kit != self.terms.kit:
            raise CannotGrade("its version of the autograder or of the course differs.")
        return able

    def reports(self, answer: object, submissions: Sequence[GradeNotebook], able: Able) -> list[Report]:
        """Return the reports on the first of these submissions, or on all; raises CannotGrade and BadAnswer."""
        done = _decode(answer)
        if not isinstance(done, Done) or not 1 <= len(done.reports) <= len(submissions):
            raise BadAnswer("its answer is not a list of reports on the submissions that it was sent.")
        for report, submission in zip(done.reports, submissions, strict=False):
            if fault := self._fault(report, submission, able):
                raise BadAnswer(f"a report has {fault}.")
        return done.reports

    def _fault(self, report: Report, submission: GradeNotebook, able: Able) -> str:
        """Return why a worker's report on this submission is not valid; empty if it is."""
        if report.notebook != submission.name:
            return "another submission's name"
        if report.submission != submission.digest:
            return "another submission's digest"
        if (report.isolation, report.device) != (able.isolation, able.device):
            return (
                f"isolation {report.isolation} on {report.device}, but the worker announced {able.isolation} on "
                f"{able.device}"
            )
        if report.version != __version__:
            return f"the version {report.version[:40]!r}"
        if not report.exercises:
            is_empty = report.status in _NOTHING_RUN and report.score == report.max_score == 0 and not report.written
            is_valid = is_empty and report.unit in (None, self.unit.name)
            return "" if is_valid else "no exercises, although it is not on a damaged file"
        if report.unit != self.unit.name:
            return "another unit"
        if (report.kit, _release(report.torch)) != (self.terms.kit, _release(able.torch)):
            return "another kit or torch"
        if [exercise.name for exercise in report.exercises] != [exercise.name for exercise in self.unit.exercises]:
            return "exercises that differ from those of the unit"
        for exercise, known in zip(report.exercises, self.unit.exercises, strict=True):
            if exercise.max_score != known.points or _is_impossible(exercise):
                return f"impossible points for {exercise.name}"
        failed = any(exercise.status == "grader_error" for exercise in report.exercises)
        if report.status in _OF_FILES or failed != (report.status == "grader_error"):
            return f"the status {report.status}, which does not match its exercises"
        score = sum(exercise.score for exercise in report.exercises)
        if not _is_near(report.score, score) or not _is_near(report.max_score, self.unit.max_score):
            return "points that are not the sum of its exercises' points"
        return "" if {question.name for question in report.written} <= self.written else "questions of another unit"


def _decode(answer: object) -> Able | Done:
    """Return a worker's answer; raises BadAnswer if it is not valid, CannotGrade with the worker's own reason."""
    if not isinstance(answer, bytes):
        raise BadAnswer("its answer is not bytes.")
    if len(answer) > MOST_BYTES:
        raise BadAnswer(f"its answer has {len(answer)} bytes, more than {MOST_BYTES}.")
    try:
        message: Answer = msgspec.json.decode(answer, type=Answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadAnswer(f"its answer cannot be read ({error}).") from None
    if isinstance(message, Unable):
        raise CannotGrade(message.sentence)
    return message


def _is_impossible(exercise: ExerciseReport) -> bool:
    """Return whether an exercise's points contradict its status or its tests' outcomes."""
    score, tests = exercise.score, exercise.tests
    return (
        not 0 <= score <= exercise.max_score + _ROUNDING
        or (exercise.status in _WITHOUT_POINTS and score > 0)
        or any(not 0 <= test.points <= test.max_points + _ROUNDING for test in tests)
        or any(test.points and test.outcome in _UNPAID for test in tests)
        or (exercise.status == "passed" and any(test.max_points and test.outcome == "failed" for test in tests))
        or not _is_near(score, sum(test.points for test in tests))
    )


def _is_near(one: float, other: float) -> bool:
    return abs(one - other) <= _ROUNDING


def _release(torch: str) -> str:
    """Return a version of PyTorch without its suffix for CPU and GPU builds, such as `+cpu`."""
    return torch.partition("+")[0]
