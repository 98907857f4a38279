"""Change the points of an exercise after a class is graded: the instructor's rules, and the scores that follow.

The rules are in the gradebook, in a log to which lines are only added. For each exercise, its last line applies.
Reports are stored with the points that the hidden tests gave, so each rule is applied to these and never to another
rule's result.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from sqlalchemy.orm import Session

from .. import UserError, course
from ..course.notebook import printable
from ..report import ExerciseReport, Report, Reweighted
from . import nbgrader_course, records
from .nbgrader_course import course_directory, writing
from .records import PointsChange

_DIGITS = 2
"""Digits after the point that a score has; so that full grades stay full, a maximum has no more."""
_MOST = 10_000


class BadReweight(UserError):
    """An exercise's points cannot be changed; `str()` says why and what to do."""


class Rule(msgspec.Struct, frozen=True):
    """The points that an exercise counts instead of its released points.

    Example: `Rule("points", 2.0, 4.0).score(3.0, 4.0)` is 1.5.
    """

    kind: str
    """points: scores are scaled to another maximum. drop: score and maximum are 0. give_full: all who submitted get the
    maximum."""
    points: float
    """The maximum with this rule."""
    released: float
    """The maximum before any rule."""

    def score(self, score: float, max_score: float) -> float:
        """Convert a score out of `max_score` to the points that the exercise counts now."""
        if self.kind == "give_full":
            return self.points
        return round(score * self.points / max_score, _DIGITS) if max_score else 0.0

    def sentence(self, exercise: str) -> str:
        """Return the reason for other points, for the student."""
        if self.kind == "drop":
            return (
                f"Your instructor removed {exercise} from the unit: it counts in neither your points nor the maximum."
            )
        if self.kind == "give_full":
            return f"Your instructor gave the {self.points:g} points of {exercise} to everyone who submitted."
        return f"Your instructor changed the points of {exercise} from {self.released:g} to {self.points:g}."


Rules = Mapping[str, Rule]
"""Rules by exercise."""


class CountedScore(msgspec.Struct, frozen=True):
    """A score that a person gave for an exercise with a rule, and what it counts."""

    rule: Rule
    given: float | None
    """In the points before any rule; None if no person gave one."""
    counted: float | None


def count_by_hand(
    score: float | None, before: CountedScore | None, rule: Rule | None
) -> tuple[float | None, CountedScore | None]:
    """Return what a person's score counts by a rule, and the record of it; no record without a rule.

    score: as it is in the gradebook. before: the record of the last time. A score that differs from it was given since,
    in the points of the rule that held then.
    """
    given = score
    if before is not None and score is not None:
        of_rule = before.rule
        is_scaled = of_rule.kind == "points" and of_rule.points
        given = before.given if score == before.counted else score
        if score != before.counted and is_scaled:
            given = score * of_rule.released / of_rule.points
    if rule is None:
        return given, None
    counted = None if given is None else rule.score(given, rule.released)
    return counted, CountedScore(rule, given, counted)


def of_unit(session: Session | None, unit: str) -> dict[str, Rule]:
    """Return the rules of a unit, by exercise."""
    last = {change.exercise: change for change in records.points_changes(session, unit)} if session else {}
    return {
        name: Rule(change.kind, change.points, change.released)
        for name, change in sorted(last.items())
        if change.kind != "undo"
    }


def of_class(directory: Any, unit: str) -> dict[str, Rule]:
    """Return the rules of a unit in a course's gradebook. directory: the course as nbgrader has it."""
    with nbgrader_course.database_of_program(directory).reading() as session:
        return of_unit(session, unit)


def reweighted_unit(unit: course.Unit, rules: Rules) -> course.Unit:
    """Return the unit with each exercise's points as the rules change them."""
    points = {course.CHECK_PREFIX + name: rule.points for name, rule in rules.items()}
    exercises = tuple(replace(one, points=points.get(one.check, one.points)) for one in unit.exercises)
    return replace(
        unit, exercises=exercises, points={**unit.points, **{n: points[n] for n in unit.points if n in points}}
    )


def as_graded(report: Report) -> Report:
    """Return a report with the points that the hidden tests gave."""
    if not any(one.reweighted for one in report.exercises):
        return report
    exercises = [_as_graded(one) for one in report.exercises if not (one.reweighted and one.reweighted.is_added)]
    return _with(report, exercises)


def reweighted(report: Report, rules: Rules) -> Report:
    """Return a report with the points that count by the rules, whichever rules it was stored with.

    A damaged file, or one whose grading failed, has no exercises in its report. It gets those that the rules decide.
    """
    report = as_graded(report)
    if not rules:
        return report
    exercises = [_reweighted(one, rules[one.name]) if one.name in rules else one for one in report.exercises]
    if not report.exercises and report.status != "unreadable":
        exercises = [_added(name, rule) for name, rule in rules.items() if rule.kind != "points"]
    return _with(report, exercises)


def _with(report: Report, exercises: list[ExerciseReport]) -> Report:
    score = round(sum(one.score for one in exercises), _DIGITS)
    return msgspec.structs.replace(
        report, exercises=exercises, score=float(score), max_score=float(sum(one.max_score for one in exercises))
    )


def _as_graded(one: ExerciseReport) -> ExerciseReport:
    if one.reweighted is None:
        return one
    points = {"score": one.reweighted.score, "max_score": one.reweighted.max_score}
    return msgspec.structs.replace(one, **points, reweighted=None)


def _reweighted(one: ExerciseReport, rule: Rule) -> ExerciseReport:
    its = Reweighted(rule.kind, rule.sentence(one.name), one.score, one.max_score)
    score = rule.score(one.score, one.max_score)
    return msgspec.structs.replace(one, score=score, max_score=rule.points, reweighted=its)


def _added(name: str, rule: Rule) -> ExerciseReport:
    its = Reweighted(rule.kind, rule.sentence(name), 0.0, rule.released, is_added=True)
    return ExerciseReport(name, "missing", rule.score(0.0, rule.released), rule.points, None, "", [], reweighted=its)


class Reweighting(NamedTuple):
    """A unit's exercises in a class, and the changes of their points."""

    root: Path
    unit: course.Unit

    def put(self, exercise: str, kind: str, points: float | None = None) -> Rule | None:
        """Record a change and return the rule that holds now. Raises BadReweight and CourseProblem.

        kind: that of a rule, or `undo`. points: the new maximum, for the kind `points`.
        """
        self._refuse_unknown(exercise)
        released = self.unit.exercise(exercise).points
        most = {"drop": 0.0, "points": points}.get(kind, released)
        if most is None or not 0 <= most <= _MOST or round(most, _DIGITS) != most or (kind == "points" and not most):
            raise BadReweight(f"--points takes a number above 0 with at most {_DIGITS} digits after the point.")
        directory = course_directory(self.root)
        its = nbgrader_course.database_of_directory(directory)
        with its.reading() as session:
            if session is None:
                raise BadReweight(f"Nothing is graded yet: there is no {its}. Run `autograder grade {self.unit.name}`.")
            if kind == "undo" and exercise not in of_unit(session, self.unit.name):
                raise BadReweight(f"{exercise} already counts the points that it was released with: {released:g}.")
        with writing(self.root) as session:
            records.METADATA.create_all(session.connection())
            change = PointsChange(exercise, kind, float(most), float(released), time.time())
            records.add_points_change(session, self.unit.name, change)
        return of_class(directory, self.unit.name).get(exercise)

    def log(self) -> Iterator[str]:
        """Yield a line for each change, oldest first."""
        directory = course_directory(self.root)
        with nbgrader_course.database_of_directory(directory).reading() as session:
            changes = records.points_changes(session, self.unit.name) if session else []
        for change in changes:
            done = {
                "points": f"{change.released:g} -> {change.points:g} points",
                "drop": f"dropped, {change.released:g} -> 0 points",
                "give_full": f"{change.points:g} points for everyone who submitted",
                "undo": f"undone, {change.released:g} points",
            }[change.kind]
            yield f"{datetime.fromtimestamp(change.changed_at, UTC):%Y-%m-%d %H:%M} UTC  {change.exercise}  {done}"

    def _refuse_unknown(self, exercise: str) -> None:
        names = [one.name for one in self.unit.exercises]
        if exercise in names:
            return
        if exercise in self.unit.points:
            raise BadReweight(
                f"{exercise} is a written question: a person gives its points, and changes them in formgrader."
            )
        raise BadReweight(f"{self.unit.name} has no exercise `{printable(exercise)}`. There are: {', '.join(names)}.")
