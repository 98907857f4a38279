"""A fixed number of grading processes, each of which is replaced when it ends."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType

from ..report import Report, without_marks
from .process import GradingProcess, GradingRefused, GradingStopped, NotStarted
from .requests import GradeNotebook, Ready

_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 1.0, 60.0


class GradingPool:
    """Grading processes with the numbers 0, 1, ..., each used by one thread at a time.

    A process that ended while it was idle is replaced before it gets a submission, so no submission is blamed for that.
    A submission during which its process ends gets a report that says so.

    Example::

        with GradingPool(lambda number: GradingProcess("cpu")) as pool:
            report = pool.grade(GradeNotebook("homework.ipynb", content))
    """

    def __init__(
        self, new_process: Callable[[int], GradingProcess], size: int = 1, *, idle_seconds: float | None = None
    ) -> None:
        """new_process: starts the process with a number. idle_seconds: time without use that ends the processes."""
        self._new_process = new_process
        self._processes: list[GradingProcess | None] = [None] * size
        self._idle_seconds = idle_seconds
        self._lock = threading.Lock()
        self._users = 0
        self._timer: threading.Timer | None = None
        self._closing = threading.Event()

    def start(self) -> None:
        """Start the processes, without waiting until they are ready. Raises GradingRefused."""
        for number in range(len(self._processes)):
            self._replace(number)

    def ready(self) -> Ready:
        """Wait until all processes are ready and return what they grade with. Raises GradingRefused, GradingStopped."""
        with self._use():
            (first, *_) = [self.running(number).ready for number in range(len(self._processes))]
            return first

    def is_running(self, number: int) -> bool:
        """Return whether the process with this number has not ended."""
        process = self._processes[number]
        return process is not None and process.is_running

    def running(self, number: int) -> GradingProcess:
        """Return the process with this number once it is ready, or its successor if it has ended.

        Raises NotStarted and GradingStopped if none starts.
        """
        process = self._processes[number]
        try:
            with contextlib.suppress(GradingStopped):
                if process and process.is_running and process.ready:
                    return process
            successor = self._replace(number)
            if not successor.ready:
                raise GradingStopped
            return successor
        except GradingRefused as reason:
            raise NotStarted(str(reason)) from None

    def keep_running(self, number: int, remark: Callable[[str], None]) -> bool:
        """Wait until the process with this number runs; return False once the pool is closed.

        If it does not start, it is started again after longer and longer pauses, and `remark` gets the reason.
        """
        pause = _PAUSE_SECONDS
        while not self._closing.is_set():
            try:
                self.running(number)
                return True
            except (NotStarted, GradingStopped) as reason:
                if not self._closing.wait(pause):
                    remark(f"A grading process does not start, and is started again: {reason}")
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        return False

    def grade(self, submission: GradeNotebook, number: int = 0, *, tries: int = 1) -> Report:
        """Return the report on a submission by the process with this number.

        tries: number of processes that may end while they grade it; after that its report has status `grader_error`.
        Raises GradingRefused, and NotStarted or GradingStopped if no process starts or the pool is closed.
        """
        with self._use():
            process, stopped = self.running(number), ""  # raises if no process starts at all
            for _ in range(tries):
                try:
                    process = self.running(number)  # may end while it starts, which counts as a try too
                    return process.report(submission)
                except GradingStopped as error:
                    process.close()
                    if self._closing.is_set():
                        raise
                    stopped = str(error) or stopped
            return without_marks(
                submission.name, "grader_error", stopped, process.ready,
                unit=submission.unit, submission=submission.digest, note=submission.note,
            )  # fmt: skip

    def close(self) -> None:
        """End the processes and what they do."""
        self._closing.set()
        self.end_processes()

    def end_processes(self) -> None:
        """End the processes and what they do; new ones start when they are needed."""
        with self._lock:
            self._end_processes()

    def __enter__(self) -> "GradingPool":
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _replace(self, number: int) -> GradingProcess:
        with self._lock:
            if self._closing.is_set():
                raise GradingStopped
            if ended := self._processes[number]:
                ended.close()
            process = self._processes[number] = self._new_process(number)
            return process

    @contextlib.contextmanager
    def _use(self) -> Iterator[None]:
        """Keep the processes from being ended as idle."""
        with self._lock:
            self._users += 1
            if self._timer:
                self._timer.cancel()
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._idle_seconds and not self._users:
                    self._timer = threading.Timer(self._idle_seconds, self._end_idle)
                    self._timer.daemon = True
                    self._timer.start()

    def _end_idle(self) -> None:
        with self._lock:
            if not self._users:
                self._end_processes()

    def _end_processes(self) -> None:
        processes = list(filter(None, self._processes))
        self._processes = [None] * len(self._processes)
        if len(processes) < 2:  # at the end of Python, when a pool of one is closed by atexit, no thread can start
            for process in processes:
                process.close()
            return
        with ThreadPoolExecutor(len(processes)) as threads:  # at once: each may be grading a submission
            list(threads.map(GradingProcess.close, processes))
