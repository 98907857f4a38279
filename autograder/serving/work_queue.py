"""Queue of notebooks to grade, and the threads that grade them in processes that stay warm."""

import contextlib
import threading
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from ..classroom.assignment import Assignment
from ..classroom.batch import GradedSubmission, grade_submission
from ..classroom.submissions import Submission
from ..course import released
from ..course.notebook_file import NotebookFile
from ..pool.grading_pool import GradingPool, GradingRefused, GradingStopped, NotStarted
from ..pool.requests import GradeNotebook, Ready
from ..report import Report

T = TypeVar("T")
QueuedSubmission = tuple[Assignment, Submission]
_TRIES = 2
"""Maximum number of processes tried on one unrecorded notebook: each may end while it grades."""
_ENDING = "This `autograder serve` is ending."


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


class RoundRobin(Generic[T]):
    """Queue of items that takes students in turns, and of each student one item at a time.

    It is not thread-safe: its owner holds a lock.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, deque[T]] = {}
        """Items by student, in the order of the students' turns."""
        self._busy: set[str] = set()

    def put(self, student: str, item: T) -> None:
        """Append an item to those of its student, who gets a turn after everyone who waits already."""
        self._waiting.setdefault(student, deque()).append(item)

    def take(self) -> T | None:
        """Return the next item of a student without another item in progress, or None. Call `done` after it."""
        student = next((student for student in self._waiting if student not in self._busy), None)
        if student is None:
            return None
        items = self._waiting.pop(student)
        item = items.popleft()
        if items:
            self._waiting[student] = items  # behind the others
        self._busy.add(student)
        return item

    def done(self, student: str) -> None:
        """Record that the student's item in progress is done."""
        self._busy.discard(student)


class WorkQueue:
    """Thread-safe queue. Submissions go before unrecorded notebooks, which never occupy all processes."""

    def __init__(self, processes: int) -> None:
        self._changed = threading.Condition()
        self._submissions: RoundRobin[QueuedSubmission] = RoundRobin()
        self._unrecorded: deque[UnrecordedNotebook] = deque()
        self._free_for_unrecorded = max(1, processes // 2)
        self._is_closed = False

    def put(self, item: QueuedSubmission | UnrecordedNotebook) -> None:
        """Append an item to those of its kind; once the queue is closed, refuse an unrecorded notebook."""
        with self._changed:
            if not isinstance(item, UnrecordedNotebook):
                self._submissions.put(item[1].student, item)
            elif self._is_closed:
                item.answer(_ENDING)
            else:
                self._unrecorded.append(item)
            self._changed.notify_all()

    def take(self) -> QueuedSubmission | UnrecordedNotebook | None:
        """Wait for the next item and return it; None once the queue is closed. Call `done` after it."""
        with self._changed:
            while not self._is_closed:
                if (submission := self._submissions.take()) is not None:
                    return submission
                if self._unrecorded and self._free_for_unrecorded:
                    self._free_for_unrecorded -= 1
                    return self._unrecorded.popleft()
                self._changed.wait()
            return None

    def done(self, item: QueuedSubmission | UnrecordedNotebook) -> None:
        """Record that an item is done."""
        with self._changed:
            if isinstance(item, UnrecordedNotebook):
                self._free_for_unrecorded += 1
            else:
                self._submissions.done(item[1].student)
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
            self._results.append((unit, grade_submission(self._pool, number, work.files, unit, submission)))
        except (GradingStopped, NotStarted):  # `_work` waits until a process starts
            self._queue.put((work, submission))
        except BaseException as error:
            self._results.append(error)
        self._on_result()

    def _answer(self, number: int, item: UnrecordedNotebook) -> None:
        try:
            if item.is_wanted():
                request = GradeNotebook(item.name, item.file.content, digest=item.file.digest, of_course=True)
                item.answer(self._pool.grade(request, number, tries=_TRIES))
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
