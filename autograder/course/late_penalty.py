"""The penalty for late submission: the rule that a class sets in autograder.toml, and the points that a delay costs."""

import re
from datetime import timedelta
from itertools import pairwise
from typing import Literal

import msgspec

DAY = timedelta(days=1)
_MOST = 1_000_000
_DURATION = re.compile(r"(?:(\d{1,4})d)?\s*(?:(\d{1,5})h)?\s*(?:(\d{1,6})m)?", re.ASCII)


def duration(text: str) -> timedelta | None:
    """Parse a duration such as `2d`, `36h`, `90m` or `1d 12h`; return None if the text is not one."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        return None
    days, hours, minutes = (int(digits or 0) for digits in match.groups())
    return timedelta(days=days, hours=hours, minutes=minutes)


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The penalty for submissions that are later than `later_than` but not later than that of the next step."""

    later_than: str
    """A duration such as `12h` or `2d`; `0h` for any delay."""
    percent: float | None = None
    """Percentage of the score that is deducted; None if `points` is set."""
    points: float | None = None
    """Points that are deducted; None if `percent` is set."""

    @property
    def after(self) -> timedelta | None:
        """The delay after which the step applies; None if `later_than` is no duration."""
        return duration(self.later_than)

    @property
    def charge(self) -> float:
        """The deduction: `percent` or `points`, whichever is set."""
        return self.percent if self.percent is not None else self.points or 0.0


class LatePenalty(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rule by which late submissions lose points, and the days that a student may be late without losing points.

    Example: `LatePenalty("linear", percent_a_day=10).points(30.0, timedelta(hours=25))` is 6.0, for two days begun.
    """

    rule: Literal["none", "zero", "linear", "steps"]
    """zero: a late submission gets 0 points. linear: each day costs the same, a part counts as a day. steps: `Step`."""
    percent_a_day: float | None = None
    """For linear: percentage of the score that each day costs; None if `points_a_day` is set."""
    points_a_day: float | None = None
    """For linear: points that each day costs; None if `percent_a_day` is set."""
    steps: tuple[Step, ...] = ()
    """For steps: the penalties, in the order of their delays."""
    late_days: int = 0
    """Days that a student may be late without penalty, in all units together; spent in the order of the due dates."""

    def fault(self) -> str:
        """Return why these settings cannot be used, as a part of a sentence; empty if they can."""
        rates = [rate for rate in (self.percent_a_day, self.points_a_day) if rate is not None]
        if self.rule != "linear" and rates:
            return 'percent_a_day and points_a_day need rule = "linear"'
        if self.rule == "linear" and (len(rates) != 1 or not 0 < rates[0] <= _MOST):
            return 'rule = "linear" needs either percent_a_day or points_a_day, above 0'
        if self.rule != "steps" and self.steps:
            return 'steps need rule = "steps"'
        if not 0 <= self.late_days <= _MOST:
            return f"late_days must be from 0 to {_MOST}"
        if self.late_days and self.rule == "none":
            return 'late_days need a rule for submissions after the late days: "zero", "linear" or "steps"'
        return self._fault_in_steps() if self.rule == "steps" else ""

    def _fault_in_steps(self) -> str:
        if not self.steps:
            return 'rule = "steps" needs steps, such as [{ later_than = "0h", percent = 10 }]'
        if wrong := next((step for step in self.steps if step.after is None), None):
            return (
                f"later_than = {wrong.later_than!r} is not a duration; write days, hours or minutes, such as 2d or 12h"
            )
        if len({step.percent is None for step in self.steps}) > 1 or any(
            (step.percent is None) == (step.points is None) for step in self.steps
        ):
            return "give percent in every step, or points in every step"
        if not all(0 <= step.charge <= (_MOST if step.percent is None else 100) for step in self.steps):
            return "percent must be from 0 to 100, and points from 0"
        delays = pairwise(step.after or timedelta() for step in self.steps)
        charges = pairwise(step.charge for step in self.steps)
        if any(one >= other for one, other in delays) or any(one >= other for one, other in charges):
            return "each step must be later than the one before, and deduct more"
        return ""

    def points(self, score: float, late: timedelta) -> float:
        """Return the points that a submission loses, at most its whole score. Late days are not considered.

        score: in points. late: the delay.
        """
        if self.points_a_day is not None or any(step.points is not None for step in self.steps):
            return min(self._charge(late), score)
        return score * self._charge(late) / 100

    def days_spent(self, late: timedelta, left: int) -> int:
        """Return the number of late days that are spent on a submission. left: the days that the student still has.

        It is the smallest number with which the penalty is as low as with all days that are left.
        """
        most = min(left, _days_begun(late))
        lowest = self._charge(late - most * DAY)
        return next(days for days in range(most + 1) if self._charge(late - days * DAY) == lowest)

    def _charge(self, late: timedelta) -> float:
        """Return the percentage of the score, or the points, that a delay costs."""
        if late <= timedelta() or self.rule == "none":
            return 0.0
        if self.rule == "zero":
            return 100.0
        if self.percent_a_day is not None:
            return min(100.0, self.percent_a_day * _days_begun(late))
        if self.points_a_day is not None:
            return self.points_a_day * _days_begun(late)
        return next((step.charge for step in reversed(self.steps) if (step.after or timedelta()) < late), 0.0)


def _days_begun(late: timedelta) -> int:
    return max(0, -(-late // DAY))
