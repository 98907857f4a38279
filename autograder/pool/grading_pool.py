"""Grading processes as their clients see them: one that answers requests, and a pool of a fixed number of them.

A pool replaces each process that ends, and chooses the processors for all of them.
"""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Concatenate, ParamSpec, TypeVar

import msgspec

from .. import UserError
from ..course.notebook import UnreadableNotebook
from ..course.settings import VARIABLE, Settings, folder, load
from ..report import ExerciseReport, Report, ungraded_report
from ..sandbox.isolation import exposed_in
from .requests import (
    LOST,
    AllGraded,
    Answer,
    CandidateKind,
    Device,
    FindRepairs,
    GradeCandidate,
    Graded,
    GradeKnown,
    GradeNotebook,
    Handout,
    Known,
    LearnMisconceptions,
    Learnt,
    MakeHandout,
    Ready,
    Refused,
    Request,
    Start,
)

_CLOSING_SECONDS = 5
T = TypeVar("T", bound=Answer)
P = ParamSpec("P")
R = TypeVar("R")


class GradingRefused(UserError):
    """Raised if a grading process rejects a request, or cannot start; `str()` says why and what to do."""


class NotStarted(GradingRefused):
    """Raised if no grading process starts; `str()` says why and what to do."""


class GradingStopped(UserError):
    """Raised if a grading process ends before it answers. This is a fault of the autograder, never of a submission."""

    def __init__(self) -> None:
        super().__init__(
            "The grading process ended while it graded this notebook. Please tell your instructor, who finds the "
            "reason in what it printed."
        )


class GradingProcess(contextlib.AbstractContextManager["GradingProcess"]):
    """A client's handle of a grading process, in which the hidden tests run.

    Several threads may share it; it answers one request after another.

    Example::

        with GradingProcess("cpu") as process:
            report = process.grade("homework.ipynb", Path("homework.ipynb").read_bytes())
    """

    def __init__(
        self,
        device: Device = "auto",
        settings: Settings | None = None,
        *,
        class_folder: Path | None = None,
        private: Sequence[Path] = (),
        core: int | None = None,
        unit: str = "",
        own_code_alone: bool = False,
    ) -> None:
        """Start the process, without waiting until it is ready.

        settings: by default those of autograder.toml. class_folder: folder of the class whose units are graded; None
        for the course's units. private: folders that no submission may read. core: number of the only processor to use.
        unit: name of the unit to prepare for; empty if it is not known. own_code_alone: True if no notebook will be
        graded, so that no sandbox is started.

        Raises BadSettings, and GradingRefused if the system starts no process.
        """
        exposed = [str(place) for place in private if exposed_in(place)]  # usually none, and there may be thousands
        class_name = None if class_folder is None else str(class_folder)
        start = Start(device, settings or load(), class_name, exposed, core, unit, own_code_alone)
        self._lock = threading.Lock()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "autograder.grading", msgspec.json.encode(start).decode()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # As in the sandbox, so that both sides iterate over a set in the same order.
                env={**os.environ, VARIABLE: str(folder()), "PYTHONHASHSEED": "0"},
            )
        except OSError as error:
            raise GradingRefused(f"No grading process can be started: {error}.") from None
        assert self._process.stdin
        assert self._process.stdout
        self._requests, self._answers = self._process.stdin, self._process.stdout
        self._ready: Ready | None = None

    @property
    def pid(self) -> int:
        """The id of the process in the system."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """True if the process has not ended."""
        return self._process.poll() is None

    @property
    def ready(self) -> Ready:
        """The versions, device and isolation level that the process grades with.

        Waits until it has started; raises GradingRefused and GradingStopped.
        """
        with self._lock:
            return self._wait_until_ready()

    def grade(self, name: str, content: bytes | UnreadableNotebook, unit: str | None = None, **more: Any) -> Report:
        """Grade the content of a notebook file and return the report. Raises GradingRefused and GradingStopped.

        name: the file's name, for the report. unit: name of the unit; None to determine it from the notebook.
        more: further fields of `GradeNotebook`.
        """
        return self.report(GradeNotebook(name, content, unit, **more))

    def grade_candidate(self, unit: str, kind: CandidateKind, name: str = "") -> Report:
        """Grade a known answer in the grading process, without a sandbox, and return the report.

        name: of the misconception or alternative solution; empty for the unit's solutions.
        """
        return self.report(GradeCandidate(unit, kind, name))

    def report(self, request: GradeNotebook | FindRepairs | GradeCandidate) -> Report:
        """Send a request whose answer is a report, and return the report. Raises GradingRefused and GradingStopped."""
        return self._ask(request, Graded).report

    def grade_known(self, unit: str, known: Sequence[Known]) -> list[ExerciseReport]:
        """Grade known answers by the hidden tests; return a report for each, in their order. Raises GradingRefused."""
        return self._ask_of_unit(GradeKnown(unit, list(known)), AllGraded).exercises

    def learn(self, unit: str) -> None:
        """Record the behaviour of a unit's misconceptions now, so that diagnosing the first wrong answer is quick."""
        self._ask(LearnMisconceptions(unit), Learnt)

    def handout(self, unit: str, *, is_new: bool = True) -> Handout:
        """Return the data of a unit's student check: calls, right results and the misconceptions' behaviour.

        is_new: compute everything, and use no cached results. Raises GradingRefused.
        """
        return self._ask_of_unit(MakeHandout(unit, is_new), Handout)

    def _ask_of_unit(self, request: MakeHandout | GradeKnown, kind: type[T]) -> T:
        try:
            return self._ask(request, kind)
        except GradingStopped:
            raise GradingRefused(LOST.format(unit=request.unit)) from None

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(BrokenPipeError):
            self._requests.close()
        try:
            self._process.wait(_CLOSING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()  # it is grading a submission; the sandbox ends with it
            self._process.wait()
        self._answers.close()

    def __exit__(self, *error: object) -> None:
        self.close()

    def _ask(self, request: Request, kind: type[T]) -> T:
        line = msgspec.json.encode(request) + b"\n"
        with self._lock:
            self._wait_until_ready()
            try:
                self._requests.write(line)
                self._requests.flush()
            except (BrokenPipeError, ValueError):  # ValueError: another thread has closed it
                raise GradingStopped from None
            return self._read(kind)

    def _wait_until_ready(self) -> Ready:
        if self._ready is None:
            self._ready = self._read(Ready)
        return self._ready

    def _read(self, kind: type[T]) -> T:
        try:
            line = self._answers.readline()
        except ValueError:  # another thread has closed it
            line = b""
        if not line:
            raise GradingStopped
        answer: Answer = msgspec.json.decode(line, type=Answer)
        if isinstance(answer, Refused):
            raise GradingRefused(answer.sentence)
        assert isinstance(answer, kind)
        return answer


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
        self._threads = ThreadPoolExecutor(size)
        self._idle: SimpleQueue[int] = SimpleQueue()
        for number in range(size):
            self._idle.put(number)

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

        tries: number of attempts. If each gives no grade or ends the process, the report has the status `grader_error`.
        Raises GradingRefused, and NotStarted or GradingStopped if no process starts or the pool is closed.
        """
        process, stopped = self.running(number), ""  # raises if no process starts at all
        for left in reversed(range(tries)):
            try:
                process = self.running(number)  # may end while it starts, which counts as an attempt, too
                report = process.report(submission)
                if report.status != "grader_error" or report.exercises or not left:
                    return report
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

    def submit(self, task: Callable[Concatenate[int, P], R], *arguments: P.args, **more: P.kwargs) -> Future[R]:
        """Call a function in another thread, with the number of a process that no other such function uses meanwhile.

        Functions wait for each other in the order of the calls. Raises RuntimeError once the pool is closed; what waits
        then is cancelled.
        """

        def run() -> R:
            number = self._idle.get()
            try:
                return task(number, *arguments, **more)
            finally:
                self._idle.put(number)

        return self._threads.submit(run)

    def close(self) -> None:
        """End all processes, even while they grade, and start no more. Wait for the functions that were submitted."""
        self._closing.set()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self.end_processes()
        self._threads.shutdown()

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
