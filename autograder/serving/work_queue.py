"""Queue of notebooks to grade, the threads that grade them, and how often a student's files are graded.

Each student has at most one file of a unit in the queue. The threads use grading processes that stay warm. The number
of a student's attempts within an hour is limited, and so is the number of files that get no grade.
"""

import contextlib
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from ..classroom.assignment import Assignment
from ..classroom.batch import GradedSubmission, grade_submission
from ..classroom.submissions import Submission
from ..course import released
from ..course.notebook_file import NotebookFile
from ..gradebook.class_gradebook import ClassGradebook
from ..gradebook.time_stamp import in_zone
from ..pool.grading_pool import GradingPool, GradingRefused, GradingStopped, NotStarted
from ..pool.requests import GradeNotebook, Ready
from ..report import Report

QueuedSubmission = tuple[Assignment, Submission]
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


class WorkQueue:
    """Thread-safe queue. Submissions go before unrecorded notebooks, which never occupy all processes."""

    def __init__(self, processes: int) -> None:
        self._changed = threading.Condition()
        self._submissions: deque[QueuedSubmission] = deque()
        self._unrecorded: deque[UnrecordedNotebook] = deque()
        self._free_for_unrecorded = max(1, processes // 2)
        self._is_closed = False

    def put(self, item: QueuedSubmission | UnrecordedNotebook) -> None:
        """Append an item to those of its kind; once the queue is closed, refuse an unrecorded notebook."""
        with self._changed:
            if not isinstance(item, UnrecordedNotebook):
                self._submissions.append(item)
            elif self._is_closed:
                item.answer(_ENDING)
            else:
                self._unrecorded.append(item)
            self._changed.notify_all()

    def take(self) -> QueuedSubmission | UnrecordedNotebook | None:
        """Wait for the next item and return it; None once the queue is closed. Call `done` after it."""
        with self._changed:
            while not self._is_closed:
                if self._submissions:
                    return self._submissions.popleft()
                if self._unrecorded and self._free_for_unrecorded:
                    self._free_for_unrecorded -= 1
                    return self._unrecorded.popleft()
                self._changed.wait()
            return None

    def done(self, item: QueuedSubmission | UnrecordedNotebook) -> None:
        """Record that an item is done."""
        with self._changed:
            self._free_for_unrecorded += isinstance(item, UnrecordedNotebook)
            self._changed.notify_all()

    def close(self) -> None:
        """End all waiting, and refuse the unrecorded notebooks."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            while self._unrecorded:
                self._unrecorded.popleft().answer(_ENDING)


@dataclass(eq=False)
class GradingThreads:
    """Threads that grade what the queue holds, each in a grading process of its own.

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
        self._queue = WorkQueue(self._pool.size)
        self._results: deque[tuple[str, GradedSubmission] | BaseException] = deque()
        self._threads = [threading.Thread(target=self._work, args=(n,), daemon=True) for n in range(self._pool.size)]

    def start(self) -> Ready:
        """Wait for the processes and begin to grade. Raises GradingRefused and GradingStopped."""
        ready = self._pool.ready()
        for thread in self._threads:
            thread.start()
        return ready

    def put(self, item: QueuedSubmission | UnrecordedNotebook) -> None:
        """Append an item to the queue; may be called in any thread."""
        self._queue.put(item)

    def results(self) -> list[tuple[str, GradedSubmission]]:
        """Return units and submissions graded since the last call. Raises what ended a thread."""
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

    def _work(self, number: int) -> None:
        """Grade with one process until the queue is closed."""
        for unit in self._units:  # reads and computes in advance what is needed once, so that no student waits
            with contextlib.suppress(GradingStopped, GradingRefused, OSError):  # reported when it matters
                self._pool.grade(GradeNotebook(unit, released(unit, self._root).read_bytes(), unit), number)
                self._pool.running(number).learn(unit)
        while self._pool.keep_running(number, self._remark) and (item := self._queue.take()) is not None:
            if isinstance(item, UnrecordedNotebook):
                self._answer(number, item)
            else:
                self._grade(number, *item)
            self._queue.done(item)

    def _grade(self, number: int, work: Assignment, submission: Submission) -> None:
        unit = work.unit.name
        try:
            self._results.append((unit, grade_submission(self._pool, number, work.files, unit, submission, TRIES)))
        except (GradingStopped, NotStarted):  # `_work` waits until a process starts
            self._queue.put((work, submission))
        except BaseException as error:
            self._results.append(error)
        self._on_result()

    def _answer(self, number: int, item: UnrecordedNotebook) -> None:
        try:
            if item.is_wanted():
                request = GradeNotebook(item.name, item.file.content, digest=item.file.digest, of_course=True)
                item.answer(self._pool.grade(request, number, tries=TRIES))
        except (GradingStopped, GradingRefused) as reason:
            item.answer(str(reason))
        except Exception:  # a fault of ours costs this answer, and not the process
            traceback.print_exc()
            item.answer("Our fault; what was printed says more.")

    def __enter__(self) -> "GradingThreads":
        """Start the processes."""
        self._pool.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._queue.close()
        self._pool.close()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()


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
