"""Bounds how often a submission is graded whose grading gives no mark, across restarts of `serve`.

A try is committed to the gradebook before it begins, and removed with the mark. So a submission that ends a worker, the
grading process or `serve` itself is tried `MOST_TRIES` times, and again when the kit changes or the instructor grades.
"""

import time

from msgspec.structs import replace

from ..classroom.assignment import NotGraded
from ..client.requests import Ready
from ..course.notebook import printable
from ..gradebook.class_gradebook import ClassGradebook
from ..gradebook.records import Try
from ..report import Report, joined, without_marks
from .rules import MOST_TRIES

_AGAIN = "It is tried once more."
_NOT_AGAIN = (
    f"It was tried {MOST_TRIES} times. It is not tried again, unless your instructor does so or you submit another "
    "version."
)
_ENDED = "Grading this notebook ended the program that grades. Please tell your instructor."


class Retries:
    """Count of tries without a grade, for the files of one unit."""

    def __init__(self, unit: str, kit: str) -> None:
        """kit: the digest of the autograder."""
        self._unit = unit
        self._kit = kit
        self._begun: dict[str, Try] = {}
        self.given_up: dict[str, NotGraded] = {}
        """Files that are not tried again, by student."""

    def count(self, gradebook: ClassGradebook, student: str, digest: str) -> int:
        """Return how often this version of the autograder tried the file without reaching a grade."""
        return [(its.submission, its.kit) for its in gradebook.tries(student)].count((digest, self._kit))

    def begin(self, gradebook: ClassGradebook, student: str, digest: str) -> None:
        """Count a try that begins once this is committed."""
        self._begun[student] = Try(digest, self._kit, time.time())
        gradebook.add(student, self._begun[student])

    def forget(self, gradebook: ClassGradebook, student: str) -> None:
        """Do not count the tries of the file that is being graded: it has a mark."""
        gradebook.remove_try(student, self._begun[student], earlier=True)

    def forget_begun(self, gradebook: ClassGradebook) -> None:
        """Do not count the tries that go on: somebody stops serving."""
        for student, begun in self._begun.items():
            gradebook.remove_try(student, begun)

    def outcome(self, gradebook: ClassGradebook, student: str, report: Report) -> tuple[Report, bool]:
        """Return the report, which says what happens next if it has no mark, and whether the file is tried again."""
        if report.status != "grader_error":
            self.forget(gradebook, student)
            self.given_up.pop(student, None)
            return report, False
        if report.exercises:  # the others have marks, and trying it again gives the same
            return report, False
        is_tried_again = self.count(gradebook, student, self._begun[student].submission) < MOST_TRIES
        if not is_tried_again:
            self.give_up(student)
        return replace(report, message=joined(report.message, _AGAIN if is_tried_again else _NOT_AGAIN)), is_tried_again

    def end(self, student: str) -> None:
        """The student's try has ended."""
        del self._begun[student]

    def give_up(self, student: str) -> None:
        """Report to the instructor that a file is not tried again."""
        reason = (
            f"grading it was tried {MOST_TRIES} times without a mark, and is not tried again. What was printed says "
            f"why; `autograder grade {self._unit}` tries once more."
        )
        self.given_up[student] = NotGraded(printable(student), reason)

    def ended_each_time(self, name: str, digest: str, note: str) -> Report:
        """Return the report on a file with whose tries `serve` itself ended, so that none was written."""
        why, unknown = joined(_ENDED, _NOT_AGAIN), Ready("", "", [])
        return without_marks(name, "grader_error", why, unknown, unit=self._unit, submission=digest, note=note)
