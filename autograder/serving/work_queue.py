"""The threads in which `serve` grades notebooks, and how often a student's files are graded.

At most one file of each student and unit is graded at a time or waits for a process. Repairs of unexplained answers are
searched when no file waits. The number of a student's attempts within an hour is limited, and so is the number of files
that get no grade.
"""

import contextlib
import dataclasses
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from ..classroom.assignment import Assignment, GradedSubmission, grade_submission
from ..classroom.student_folders import Submission
from ..course import released
from ..course.notebook_file import NotebookFile
from ..gradebook.class_gradebook import ClassGradebook
from ..gradebook.time_stamp import in_zone
from ..pool.grading_pool import GradingPool, GradingRefused, GradingStopped, NotStarted
from ..pool.requests import GradeNotebook, Ready
from ..report import Report

_ENDING = "This `autograder serve` is ending."
HOUR = 3600.0
TRIES = 2
"""Number of tries to grade a file that gets no grade: each may end its grading process."""
MOST_FAILED = 4
"""After this number of files within an hour without a grade, the student's next file waits."""


@dataclass(frozen=True)
class UnrecordedNotebook:
    """Notebook to grade without recording the result."""

    name: str
    """Name in the report."""
    file: NotebookFile
    answer: Callable[[Report | str], None]
    """Called with the report, or with the reason why there is none."""
    is_wanted: Callable[[], bool]
    """Returns whether anybody still waits for the report."""


@dataclass(eq=False)
class GradingThreads:
    """Threads in which a pool's processes grade submissions, and notebooks whose result is not recorded.

    So a submission that hangs does not delay any other.
    """

    _pool: GradingPool
    _root: Path
    _units: Sequence[str]
    _on_result: Callable[[], None]
    """Called in another thread when `results` has a new one."""
    _remark: Callable[[str], None]
    """Reports to the instructor, in another thread."""

    def __post_init__(self) -> None:
        self._results: deque[tuple[str, GradedSubmission] | BaseException] = deque()
        self._changing = threading.Lock()
        self._ungraded = 0
        """The number of submissions that wait for a process or are being graded."""
        self._unexplained: deque[tuple[str, GradedSubmission]] = deque()
        """Units and graded submissions with answers whose repairs are to be searched."""
        self._is_repairing = False

    def start(self) -> Ready:
        """Wait for the processes, and let each prepare to grade. Raises GradingRefused and GradingStopped."""
        ready = self._pool.ready()
        for _ in range(self._pool.size):
            self._pool.submit(self._prepare)
        return ready

    def put(self, work: Assignment, submission: Submission) -> None:
        """Grade a submission as soon as a process is free."""
        with self._changing:
            self._ungraded += 1
        self._pool.submit(self._grade, work, submission)

    def put_unrecorded(self, notebook: UnrecordedNotebook) -> None:
        """Grade a notebook as soon as a process is free; may be called in any thread."""
        try:
            future = self._pool.submit(self._answer, notebook)
        except RuntimeError:  # the pool is closed
            notebook.answer(_ENDING)
        else:
            future.add_done_callback(lambda its: notebook.answer(_ENDING) if its.cancelled() else None)

    def results(self) -> list[tuple[str, GradedSubmission]]:
        """Return units and submissions graded since the last call, or with repairs found since then.

        Raises what ended a submission's grading.
        """
        results: list[tuple[str, GradedSubmission]] = []
        while self._results:
            result = self._results[0]
            if isinstance(result, BaseException):
                if results:  # which are recorded first
                    break
                raise result
            results.append(result)
            self._results.popleft()
        return results

    def _prepare(self, number: int) -> None:
        """Read and compute in advance what a process needs once, so that no student waits."""
        for unit in self._units:
            with contextlib.suppress(GradingStopped, GradingRefused, OSError):  # reported when it matters
                self._pool.grade(GradeNotebook(unit, released(unit, self._root).read_bytes(), unit), number)
                self._pool.running(number).learn(unit)

    def _grade(self, number: int, work: Assignment, submission: Submission) -> None:
        unit = work.unit.name
        while self._pool.keep_running(number, self._remark):
            try:
                graded = grade_submission(self._pool, number, work.files, unit, submission, TRIES)
                self._results.append((unit, graded))
                if graded.report.has_unexplained:
                    self._unexplained.append((unit, graded))
            except (GradingStopped, NotStarted):
                continue  # until a process starts, or the pool is closed
            except BaseException as error:
                self._results.append(error)
            break
        self._on_result()
        with self._changing:
            self._ungraded -= 1
        self._repair_next()

    def _repair_next(self) -> None:
        """Search the next repairs if no submission waits. One process at most does that, so that another stays free."""
        with self._changing:
            if self._ungraded or self._is_repairing or not self._unexplained:
                return
            self._is_repairing = True
            unit, graded = self._unexplained.popleft()
        with contextlib.suppress(RuntimeError):  # the pool is closed
            self._pool.submit(self._repair, unit, graded)

    def _repair(self, number: int, unit: str, graded: GradedSubmission) -> None:
        before = graded.report
        request = GradeNotebook(before.notebook, graded.content, unit, before.submission, graded.submission.note)
        try:
            report = self._pool.repair(request, before, number)
            if report != before:
                self._results.append((unit, dataclasses.replace(graded, report=report)))
                self._on_result()
        except Exception:  # a fault of ours costs this search, and not the process
            traceback.print_exc()
        finally:
            with self._changing:
                self._is_repairing = False
        self._repair_next()

    def _answer(self, number: int, notebook: UnrecordedNotebook) -> None:
        try:
            if notebook.is_wanted():
                request = GradeNotebook(
                    notebook.name, notebook.file.content, digest=notebook.file.digest, of_course=True
                )
                notebook.answer(self._pool.grade(request, number, tries=TRIES))
        except (GradingStopped, GradingRefused) as reason:
            notebook.answer(str(reason))
        except Exception:  # a fault of ours costs this answer, and not the process
            traceback.print_exc()
            notebook.answer("Our fault; what was printed says more.")


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


def wait(gradebook: ClassGradebook, student: str, attempts: int | None, failed: Iterable[float]) -> Wait | None:
    """Return for how long a student's next file has to wait; None if it may be graded at once.

    attempts: number of files that are graded in any hour; None for no limit. failed: times at which a file of the
    student's got no grade.
    """
    now = time.time()
    until = wait_until([its.marked_at for its in gradebook.attempts(student)], attempts, now)
    after_failures = wait_until(failed, MOST_FAILED, now)
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
