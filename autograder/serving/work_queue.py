"""Queue of notebooks to grade: whose turn it is, how often a student's files are graded, and the threads that grade.

Students take turns, each with one file at a time. The threads use grading processes that stay warm. They search for
repairs of unexplained answers when nobody waits for a grade. The number of a student's attempts within an hour is
limited, and so is the number of tries that give no grade.

A try is committed to the gradebook before it begins, and removed with the grade. So a submission that ends a worker,
the grading process or `serve` itself is tried `MOST_TRIES` times, also across restarts of `serve`. It is tried again
when the autograder changes or the instructor grades.
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
from typing import Generic, TypeVar

from msgspec.structs import replace

from ..classroom.assignment import Assignment, NotGraded
from ..classroom.batch import GradedSubmission, grade_submission
from ..classroom.submissions import Submission
from ..course import released
from ..course.notebook import printable
from ..course.notebook_file import NotebookFile
from ..gradebook.class_gradebook import ClassGradebook
from ..gradebook.records import Attempt, Try
from ..gradebook.time_stamp import in_zone
from ..pool.grading_pool import GradingPool, GradingRefused, GradingStopped, NotStarted
from ..pool.requests import GradeNotebook, Ready
from ..report import Report, joined, ungraded_report

T = TypeVar("T")
QueuedSubmission = tuple[Assignment, Submission]
_UNRECORDED_TRIES = 2
"""Maximum number of processes tried on one unrecorded notebook: each may end while it grades."""
_ENDING = "This `autograder serve` is ending."
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
class UnrecordedNotebook:
    """Notebook to grade without recording the result."""

    name: str
    """Name in the report."""
    file: NotebookFile
    answer: Callable[[Report | str], None]
    """Called with the report, or with the reason why there is none."""
    is_wanted: Callable[[], bool]
    """Returns whether anybody still waits for the report."""


@dataclass(frozen=True)
class Unexplained:
    """Graded submission of a unit with answers that no known mistake explains, to search for their repairs."""

    unit: str
    graded: GradedSubmission


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


QueuedItem = QueuedSubmission | UnrecordedNotebook | Unexplained


class WorkQueue:
    """Thread-safe queue. Submissions go before unrecorded notebooks, which never occupy all processes.

    Repairs are searched when nothing else waits.
    """

    def __init__(self, processes: int) -> None:
        self._changed = threading.Condition()
        self._submissions: RoundRobin[QueuedSubmission] = RoundRobin()
        self._unrecorded: deque[UnrecordedNotebook] = deque()
        self._unexplained: deque[Unexplained] = deque()
        self._free_for_unrecorded = max(1, processes // 2)
        self._is_closed = False

    def put(self, item: QueuedItem) -> None:
        """Append an item to those of its kind; once the queue is closed, refuse an unrecorded notebook."""
        with self._changed:
            if isinstance(item, Unexplained):
                self._unexplained.append(item)
            elif not isinstance(item, UnrecordedNotebook):
                self._submissions.put(item[1].student, item)
            elif self._is_closed:
                item.answer(_ENDING)
            else:
                self._unrecorded.append(item)
            self._changed.notify_all()

    def take(self) -> QueuedItem | None:
        """Wait for the next item and return it; None once the queue is closed. Call `done` after it."""
        with self._changed:
            while not self._is_closed:
                if (submission := self._submissions.take()) is not None:
                    return submission
                if self._unrecorded and self._free_for_unrecorded:
                    self._free_for_unrecorded -= 1
                    return self._unrecorded.popleft()
                if self._unexplained:
                    return self._unexplained.popleft()
                self._changed.wait()
            return None

    def done(self, item: QueuedItem) -> None:
        """Record that an item is done."""
        with self._changed:
            if isinstance(item, UnrecordedNotebook):
                self._free_for_unrecorded += 1
            elif not isinstance(item, Unexplained):
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
        """Return units and submissions graded since the last call, again with repairs. Raises what ended a thread."""
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
            elif isinstance(item, Unexplained):
                self._repair(number, item)
            else:
                self._grade(number, *item)
            self._queue.done(item)

    def _grade(self, number: int, work: Assignment, submission: Submission) -> None:
        unit = work.unit.name
        try:
            graded = grade_submission(self._pool, number, work.files, unit, submission)
            self._results.append((unit, graded))
            if graded.report.has_unexplained:
                self._queue.put(Unexplained(unit, graded))
        except (GradingStopped, NotStarted):  # `_work` waits until a process starts
            self._queue.put((work, submission))
        except BaseException as error:
            self._results.append(error)
        self._on_result()

    def _repair(self, number: int, item: Unexplained) -> None:
        submission, before = item.graded.submission, item.graded.report
        request = GradeNotebook(before.notebook, item.graded.content, item.unit, before.submission, submission.note)
        report = self._pool.repair(request, before, number)
        if report != before:
            self._results.append((item.unit, dataclasses.replace(item.graded, report=report)))
            self._on_result()

    def _answer(self, number: int, item: UnrecordedNotebook) -> None:
        try:
            if item.is_wanted():
                request = GradeNotebook(item.name, item.file.content, digest=item.file.digest, of_course=True)
                item.answer(self._pool.grade(request, number, tries=_UNRECORDED_TRIES))
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
