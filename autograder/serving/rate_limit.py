"""Limits on how often a student's submissions are graded: attempts within an hour, and tries that give no grade.

A try is committed to the gradebook before it begins, and removed with the grade. So a submission that ends a worker,
the grading process or `serve` itself is tried `MOST_TRIES` times, also across restarts of `serve`. It is tried again
when the autograder changes or the instructor grades.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from msgspec.structs import replace

from ..classroom.assignment import NotGraded
from ..course.notebook import printable
from ..gradebook.class_gradebook import ClassGradebook
from ..gradebook.records import Attempt, Try
from ..gradebook.time_stamp import in_zone
from ..pool.requests import Ready
from ..report import Report, joined, ungraded_report

HOUR = 3600.0
MOST_TRIES = 2
"""Number of tries by one version of the autograder to grade a file that gets no grade."""
MOST_FAILED = 4
"""After this number of tries within an hour without a grade, the student's next file waits."""
_AGAIN = "Grading is tried once more."
_NOT_AGAIN = (
    f"Grading was tried {MOST_TRIES} times. It is tried again only if your instructor starts it or you submit another "
    "version."
)
_ENDED = "Grading this notebook ended the program that grades. Please tell your instructor."


@dataclass(frozen=True)
class Wait:
    """Time for which a student's file has to wait."""

    until: datetime
    notice: str
    """Text for the student's page."""

    @property
    def is_over(self) -> bool:
        """True if the file may be graded now."""
        return self.until.timestamp() <= time.time()


def wait(gradebook: ClassGradebook, student: str, attempts: int | None) -> Wait | None:
    """Return for how long a student's next file has to wait; None if it may be graded at once.

    attempts: number of files that are graded in any hour; None for no limit.
    """
    now = time.time()
    until = wait_until([its.marked_at for its in gradebook.history(Attempt, student)], attempts, now)
    after_failures = wait_until([its.begun_at for its in gradebook.history(Try, student)], MOST_FAILED, now)
    if not max(until, after_failures):
        return None
    moment = datetime.fromtimestamp(max(until, after_failures), UTC)
    reason = f"Each student is graded at most {'once' if attempts == 1 else f'{attempts} times'} an hour"
    if after_failures > until:
        reason = (
            f"{MOST_FAILED} times in an hour your notebook could not be graded to the end (please tell your instructor)"
        )
    notice = (
        f"You have submitted again. {reason}, so this file is graded after "
        f"{to_minute(moment, gradebook.deadlines.zone)}. Nothing is lost. The feedback below is about your "
        "earlier file."
    )
    return Wait(moment, notice)


def wait_until(moments: Iterable[float], most: int | None, now: float) -> float:
    """Return the time from which less than `most` of these moments are within the last hour; 0 for no wait.

    Moments more than an hour ahead come from a clock that was wrong, and do not count.
    """
    recent = sorted(moment for moment in moments if now - HOUR < moment <= now + HOUR)
    return 0.0 if most is None or len(recent) < most else recent[-most] + HOUR


def to_minute(moment: datetime, zone: tzinfo | None) -> str:
    """Return a time in UTC as students read it: to the minute, in the class's time zone."""
    return in_zone(moment.replace(second=0), zone)


class Retries:
    """Count of tries without a grade, for the files of one unit."""

    def __init__(self, unit: str, kit: str) -> None:
        """kit: digest of the autograder."""
        self._unit = unit
        self._kit = kit
        self._begun: dict[str, Try] = {}
        self.given_up: dict[str, NotGraded] = {}
        """Files that are not tried again, by student."""

    def count(self, gradebook: ClassGradebook, student: str, digest: str) -> int:
        """Return how often this version of the autograder tried the file without reaching a grade."""
        return [(its.submission, its.kit) for its in gradebook.history(Try, student)].count((digest, self._kit))

    def begin(self, gradebook: ClassGradebook, student: str, digest: str) -> None:
        """Count a try that begins once this is committed."""
        self._begun[student] = Try(digest, self._kit, time.time())
        gradebook.add(student, self._begun[student])

    def forget(self, gradebook: ClassGradebook, student: str) -> None:
        """Delete the tries of the file that is being graded, because it has a grade."""
        gradebook.remove_try(student, self._begun[student], earlier=True)

    def forget_begun(self, gradebook: ClassGradebook) -> None:
        """Delete the tries in progress, because somebody stops `serve`."""
        for student, begun in self._begun.items():
            gradebook.remove_try(student, begun)

    def outcome(self, gradebook: ClassGradebook, student: str, report: Report) -> tuple[Report, bool]:
        """Return the report, which says what happens next if it has no grade, and whether the file is tried again."""
        if report.status != "grader_error":
            self.forget(gradebook, student)
            self.given_up.pop(student, None)
            return report, False
        if report.exercises:  # the other exercises have grades, and a new try gives the same
            return report, False
        is_tried_again = self.count(gradebook, student, self._begun[student].submission) < MOST_TRIES
        if not is_tried_again:
            self.give_up(student)
        return replace(report, message=joined(report.message, _AGAIN if is_tried_again else _NOT_AGAIN)), is_tried_again

    def end(self, student: str) -> None:
        """Record that the student's try has ended."""
        del self._begun[student]

    def give_up(self, student: str) -> None:
        """Report to the instructor that a file is not tried again."""
        reason = (
            f"grading was tried {MOST_TRIES} times without a grade, and is not tried again. What was printed says "
            f"why; `autograder grade {self._unit}` tries once more."
        )
        self.given_up[student] = NotGraded(printable(student), reason)

    def ended_each_time(self, name: str, digest: str, note: str) -> Report:
        """Return the report on a file whose tries each ended `serve` itself, so that none was recorded."""
        why, unknown = joined(_ENDED, _NOT_AGAIN), Ready("", "", [])
        return ungraded_report(name, "grader_error", why, unknown, unit=self._unit, submission=digest, note=note)
