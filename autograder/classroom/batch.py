"""Grades a class's submissions in several processes, a little ahead of the one writer that records the reports."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, as_completed, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from ..course.notebook import UnreadableNotebook
from ..course.settings import Settings
from ..pool.grading_pool import GradingPool, pool_for_class
from ..pool.requests import Device, GradeNotebook, Ready
from ..report import Report
from .assignment import Assignment
from .submissions import Submission, SubmissionFiles

_AHEAD = 4
"""Maximum number of reports per process that wait for the writer, so that no class takes more memory than others."""
EACH = 4
"""Least number of submissions for each process: starting one takes as long as grading this number."""


@dataclass(frozen=True)
class GradedSubmission:
    """A submission and the report on it."""

    submission: Submission
    content: bytes | UnreadableNotebook
    """The part of the file that was graded, or the reason why the file cannot be read."""
    report: Report
    stamp: bytes | None = None
    """Content of the time stamp next to the notebook."""


class BatchGrading(AbstractContextManager[Any], Protocol):
    """Source of the reports on a class's submissions, for the one writer of a batch."""

    def start(self) -> Ready:
        """Begin the batch, and return the conditions under which submissions are graded. Raises GradingRefused."""
        ...

    def graded(self) -> Iterator[GradedSubmission]:
        """Yield every submission once, as soon as it is graded. Raises GradingRefused and GradingStopped."""
        ...

    def repaired(self, reports: Mapping[str, Report]) -> Iterator[GradedSubmission | None]:
        """Yield graded submissions again once their unexplained answers were searched for repairs.

        reports: by student. None stands for a submission whose report stays as it is, for example because its file was
        replaced.
        """
        ...


def grade_submission(
    pool: GradingPool, number: int, files: SubmissionFiles, unit: str, submission: Submission, tries: int = 1
) -> GradedSubmission:
    """Grade a submission in the pool's process with this number. Raises GradingRefused and GradingStopped.

    tries: see `GradingPool.grade`.
    """
    read = files.read(submission)
    name = f"{submission.folder}/{unit}/{submission.notebook}"
    request = GradeNotebook(name, read.file.content, unit, read.file.digest, submission.note)
    return GradedSubmission(submission, read.file.content, pool.grade(request, number, tries=tries), read.stamp)


class LocalGrading(AbstractContextManager["LocalGrading"]):
    """Batch that is graded by processes on this machine."""

    def __init__(
        self,
        work: Assignment,
        submissions: Sequence[Submission],
        *,
        device: Device,
        settings: Settings,
        process_count: int,
    ) -> None:
        """submissions: those without a notebook get no report. process_count: limit of processes."""
        self._to_grade = [submission for submission in submissions if submission.notebook is not None]
        self._unit = work.unit.name
        self._files = work.files
        self._size = max(1, min(process_count, len(self._to_grade) // EACH))
        self._pool = pool_for_class(work.root, work.submitted, device, settings, self._size, self._unit)
        self._pool.start()

    def start(self) -> Ready:
        """Wait for the processes. Raises GradingRefused and GradingStopped."""
        return self._pool.ready()

    def graded(self) -> Iterator[GradedSubmission]:
        """Yield every submission once, as soon as it is graded. Raises GradingRefused and GradingStopped."""
        waiting = iter(self._to_grade)
        first = islice(waiting, (1 + _AHEAD) * self._size)
        pending = {self._pool.submit(self._grade, submission) for submission in first}
        while pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=lambda one: one.exception() is not None):  # an exception ends the batch
                yield future.result()
                pending |= {self._pool.submit(self._grade, submission) for submission in islice(waiting, 1)}

    def repaired(self, reports: Mapping[str, Report]) -> Iterator[GradedSubmission | None]:
        """Yield graded submissions again once their unexplained answers were searched for repairs.

        reports: by student. None stands for a submission whose report stays as it is, for example because its file was
        replaced.
        """
        submissions = [submission for submission in self._to_grade if submission.student in reports]
        futures = [self._pool.submit(self._repair, one, reports[one.student]) for one in submissions]
        for future in as_completed(futures):
            yield future.result()

    def _repair(self, number: int, submission: Submission, report: Report) -> GradedSubmission | None:
        read = self._files.read(submission)
        if read.file.digest != report.submission:
            return None  # it was replaced since it was graded
        request = GradeNotebook(report.notebook, read.file.content, self._unit, read.file.digest, submission.note)
        new = self._pool.repair(request, report, number)
        return None if new == report else GradedSubmission(submission, read.file.content, new, read.stamp)

    def _grade(self, number: int, submission: Submission) -> GradedSubmission:
        return grade_submission(self._pool, number, self._files, self._unit, submission)

    def __exit__(self, *error: object) -> None:
        self._pool.close()
