"""A fixed number of grading processes, each of which is replaced if it ends, and the choice of their processors."""

import contextlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..course.settings import Settings
from ..report import Report, ungraded_report
from .process import GradingProcess, GradingRefused, GradingStopped, NotStarted
from .requests import Device, FindRepairs, GradeNotebook, Ready

PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 1.0, 60.0


def usable_processors() -> list[int]:
    """Return the numbers of the processors that this process may use; empty if the system does not report them."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def processor_count() -> int:
    """Return the number of processors that this process may use."""
    return len(usable_processors()) or os.cpu_count() or 1


def processors_in_turn() -> list[int]:
    """Return the numbers of the usable processors, in an order whose start depends on this process's id."""
    cores = usable_processors()
    first = os.getpid() % len(cores) if cores else 0
    return cores[first:] + cores[:first]


class GradingPool:
    """Grading processes with the numbers 0, 1, ..., each used by one thread at a time.

    A process that ended while it was idle is replaced before it gets a submission, so no submission is blamed for that.
    If a process ends while it grades a submission, the submission's report says so.

    Example::

        with GradingPool(lambda number: GradingProcess("cpu")) as pool:
            report = pool.grade(GradeNotebook("homework.ipynb", content))
    """

    def __init__(self, new_process: Callable[[int], GradingProcess], size: int = 1) -> None:
        """Create a pool without starting processes. new_process: starts a process, given its number."""
        self.size = size
        self._new_process = new_process
        self._processes: list[GradingProcess | None] = [None] * size
        self._lock = threading.Lock()
        self._closing = threading.Event()

    def start(self) -> None:
        """Start the processes, without waiting until they are ready. Raises GradingRefused."""
        for number in range(self.size):
            self._replace(number)

    def ready(self) -> Ready:
        """Wait until all processes are ready; return the versions, device and isolation level that they grade with.

        Raises GradingRefused and GradingStopped.
        """
        (first, *_) = [self.running(number).ready for number in range(self.size)]
        return first

    def running(self, number: int) -> GradingProcess:
        """Return the process with this number once it is ready; if it has ended, replace it first.

        Raises NotStarted and GradingStopped if no process starts.
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
        """Wait until the process with this number runs, and return True; return False once the pool is closed.

        If the process does not start, it is started again after increasing pauses. remark: called with the reason.
        """
        pause = PAUSE_SECONDS
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
        """Grade a submission in the process with this number, and return the report.

        tries: number of attempts. If the process ends in each, the report has the status `grader_error`.
        Raises GradingRefused, and NotStarted or GradingStopped if no process starts or the pool is closed.
        """
        process, stopped = self.running(number), ""  # raises if no process starts at all
        for _ in range(tries):
            try:
                process = self.running(number)  # may end while it starts, which counts as an attempt, too
                return process.report(submission)
            except GradingStopped as error:
                process.close()
                if self._closing.is_set():
                    raise
                stopped = str(error)
        return ungraded_report(
            submission.name, "grader_error", stopped, process.ready,
            unit=submission.unit, submission=submission.digest, note=submission.note,
        )  # fmt: skip

    def repair(self, submission: GradeNotebook, report: Report, number: int = 0) -> Report:
        """Search for repairs of a graded submission's answers, and return the report with those found.

        Returns the report unchanged if the process refuses or ends.
        """
        try:
            return self.running(number).report(FindRepairs(submission, report))
        except (GradingRefused, GradingStopped):
            return report

    def close(self) -> None:
        """End all processes, even while they grade, and start no more."""
        self._closing.set()
        self.end_processes()

    def end_processes(self) -> None:
        """End all processes, even while they grade; new ones start when they are needed."""
        with self._lock:
            processes = list(filter(None, self._processes))
            self._processes = [None] * self.size
            if len(processes) == 1:  # at the end of Python, when a pool of one is closed by atexit, no thread can start
                processes[0].close()
            elif processes:
                with ThreadPoolExecutor(len(processes)) as threads:  # at once: each may be grading a submission
                    list(threads.map(GradingProcess.close, processes))

    def __enter__(self) -> "GradingPool":
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _replace(self, number: int) -> GradingProcess:
        with self._lock:
            if self._closing.is_set():
                raise GradingStopped
            if ended := self._processes[number]:
                ended.close()
            process = self._processes[number] = self._new_process(number)
            return process


def pool_for_class(
    root: Path, submitted: Path, device: Device, settings: Settings, size: int, unit: str = ""
) -> GradingPool:
    """Return a pool for grading a class's submissions, whose processes are not started yet.

    Each process stays on a processor of its own; if there are more processes than processors, the system places the
    rest. root: the class's folder. submitted: its folder of submissions. size: number of processes. unit: name of the
    only unit to grade; empty if it is not known.
    """
    cores = processors_in_turn()
    return GradingPool(
        lambda number: GradingProcess(
            device,
            settings,
            class_folder=root,
            private=(root, submitted),
            core=cores[number] if number < len(cores) else None,
            unit=unit,
        ),
        size,
    )
