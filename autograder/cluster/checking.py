"""Whether what a worker answered can be the reports that it was asked for.

Marks cannot be computed again at home, so an honest worker is needed. But nothing is recorded that is not a report on
the submission that was sent, with the exercises and points that the unit has, made on the terms that were asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

import msgspec

from .. import __version__, course
from ..client.requests import MarkNotebook
from ..report import ExerciseReport, Report
from .messages import MOST_BYTES, Able, Answer, Done, Terms, Unable

_ROUNDED = 0.011
"""Scores are rounded to two decimals, what single graders give to none or to four."""
_NOTHING_RUN = ("damaged", "grader_error")
_WITHOUT_POINTS = ("missing", "error", "forbidden")
_PAYS_NOT = ("withheld", "not_run", "grader_error")


class BadAnswer(Exception):
    """What a worker answered is refused; `str()` says why."""


class CannotMark(Exception):
    """A worker cannot give the marks of this run; `str()` says why."""


@dataclass(frozen=True)
class Expected:
    """What a run asks of every worker."""

    unit: course.Unit
    terms: Terms
    written: frozenset[str]
    """The questions that a person marks."""

    def able(self, answer: object) -> Able:
        """What a worker would mark with, if that is what is asked for; raises CannotMark and BadAnswer."""
        said = _decoded(answer)
        if not isinstance(said, Able):
            raise BadAnswer("it does not say what it would mark with.")
        asked = self.terms.settings.isolation
        levels = {"best": ("A", "B"), "A": ("A",), "B": ("B",), "none": ()}[asked.require]
        if said.isolation not in (*levels, *(("none",) if asked.trust_submissions else ())):
            raise CannotMark(f"its isolation is {said.isolation}, and {asked.require} is asked for.")
        if said.device != self.terms.device:
            raise CannotMark(f"it computes on {said.device}, and {self.terms.device} is asked for.")
        if (its := _release(said.torch)) != (ours := _release(version("torch"))):
            raise CannotMark(f"it has torch {its}, and here it is {ours}.")
        if said.kit != self.terms.kit:
            raise CannotMark("its kit is another one.")
        return said

    def reports(self, answer: object, asked: Sequence[MarkNotebook], able: Able) -> list[Report]:
        """The reports on the first of these submissions, or on all; raises CannotMark and BadAnswer."""
        said = _decoded(answer)
        if not isinstance(said, Done) or not 1 <= len(said.reports) <= len(asked):
            raise BadAnswer("it does not answer with reports on what was sent.")
        for report, submission in zip(said.reports, asked, strict=False):
            if wrong := self._wrong_with(report, submission, able):
                raise BadAnswer(f"a report has {wrong}.")
        return said.reports

    def _wrong_with(self, report: Report, submission: MarkNotebook, able: Able) -> str:
        """What a report on this submission cannot have; empty if it can be one."""
        if report.notebook != submission.name:
            return "another submission's name"
        if report.submission != submission.digest:
            return "another submission's digest"
        if (report.isolation, report.device) != (able.isolation, able.device):
            return f"isolation {report.isolation} on {report.device}, where {able.isolation} on {able.device} was said"
        if report.version != __version__:
            return f"the version {report.version[:40]!r}"
        if not report.exercises:
            nothing = report.status in _NOTHING_RUN and report.score == report.max_score == 0 and not report.written
            return "" if nothing and report.unit in (None, self.unit.name) else "no exercises, and is no damaged file's"
        if report.unit != self.unit.name:
            return "another unit"
        if (report.kit, _release(report.torch)) != (self.terms.kit, _release(able.torch)):
            return "another kit or torch"
        if [exercise.name for exercise in report.exercises] != [exercise.name for exercise in self.unit.exercises]:
            return "other exercises than the unit"
        for exercise, known in zip(report.exercises, self.unit.exercises, strict=True):
            if exercise.max_score != known.points or _is_impossible(exercise):
                return f"points for {exercise.name} that cannot be"
        failed = any(exercise.status == "grader_error" for exercise in report.exercises)
        if report.status in ("damaged", "unreadable", "not_submitted") or failed != (report.status == "grader_error"):
            return f"the status {report.status}, which is not its exercises'"
        given = sum(exercise.score for exercise in report.exercises)
        if not _is_near(report.score, given) or not _is_near(report.max_score, self.unit.max_score):
            return "a sum that is not its exercises'"
        return "" if {question.name for question in report.written} <= self.written else "questions of another unit"


def _decoded(answer: object) -> Able | Done:
    """What a worker says, of its own types alone; raises CannotMark with what it says for itself."""
    if not isinstance(answer, bytes):
        raise BadAnswer("it does not answer in bytes.")
    if len(answer) > MOST_BYTES:
        raise BadAnswer(f"its answer has {len(answer)} bytes, more than {MOST_BYTES}.")
    try:
        said: Answer = msgspec.json.decode(answer, type=Answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadAnswer(f"its answer cannot be read ({error}).") from None
    if isinstance(said, Unable):
        raise CannotMark(said.sentence)
    return said


def _is_impossible(exercise: ExerciseReport) -> bool:
    """Whether an exercise's points are not those that its status and its graders' outcomes give."""
    score, most = exercise.score, exercise.max_score
    if not 0 <= score <= most + _ROUNDED or (exercise.status in _WITHOUT_POINTS and score):
        return True
    if any(not 0 <= test.points <= test.max_points + _ROUNDED for test in exercise.tests):
        return True
    if any(test.points and test.outcome in _PAYS_NOT for test in exercise.tests):
        return True
    if exercise.status == "passed" and any(t.max_points and t.outcome == "failed" for t in exercise.tests):
        return True
    return not _is_near(score, sum(test.points for test in exercise.tests))


def _is_near(one: float, other: float) -> bool:
    return abs(one - other) <= _ROUNDED


def _release(torch: str) -> str:
    """The version without what tells the build for a processor from that for a GPU."""
    return torch.partition("+")[0]
