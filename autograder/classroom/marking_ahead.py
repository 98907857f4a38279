"""Marks a class with several grader processes, ahead of the one writer that puts the reports into the gradebook."""

from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from types import TracebackType
from typing import Any

from ..grading.client import Grader, GraderStopped
from ..grading.requests import Device, Ready
from ..report import Report
from ..settings import Settings
from .assignment import Assignment
from .hand_in import HandIn


class MarkingAhead:
    """Reports on a class's submissions, by student, each ready when it is asked for."""

    def __init__(self, work: Assignment, *, device: Device, settings: Settings, workers: int) -> None:
        self._hand_ins = work.hand_ins
        self._unit = work.unit.name
        self._new_grader = lambda: Grader(device, settings, private=(work.root, work.submitted))
        count = max(1, min(workers, len(work.hand_ins)))
        self._graders = [self._new_grader() for _ in range(count)]
        self._idle: SimpleQueue[Grader] = SimpleQueue()
        self._threads = ThreadPoolExecutor(count)
        self._reports: dict[str, Future[Report]] = {}

    def start(self) -> Ready:
        """Waits for the graders, raising GraderRefused, and sets them to work."""
        (ready, *_) = [grader.ready for grader in self._graders]
        for grader in self._graders:
            self._idle.put(grader)
        self._reports = {hand_in.student: self._threads.submit(self._mark, hand_in) for hand_in in self._hand_ins}
        return ready

    def report(self, student: str, unit: str, node: Any) -> Report:
        """The report on one student's notebook. `node` is the same notebook on its way through nbgrader."""
        return self.report_of(student)

    def report_of(self, student: str) -> Report:
        """The report on what one student handed in."""
        return self._reports[student].result()

    def _mark(self, hand_in: HandIn) -> Report:
        grader = self._idle.get()
        try:
            report = self._report(grader, hand_in)
        except GraderStopped as stopped:
            grader = self._replaced(grader)
            report = grader.without_marks(hand_in.student, "grader_error", str(stopped))
        finally:
            self._idle.put(grader)
        report.message = " ".join(filter(None, [hand_in.note, report.message]))
        return report

    def _report(self, grader: Grader, hand_in: HandIn) -> Report:
        folder = f"{hand_in.student}/{self._unit}"
        if hand_in.notebook is None:
            return grader.without_marks(folder, "not_submitted", "")
        return grader.mark_file(hand_in.notebook, self._unit, name=f"{folder}/{hand_in.notebook.name}")

    def _replaced(self, stopped: Grader) -> Grader:
        """A new grader in the place of one that has stopped."""
        stopped.close()
        grader = self._new_grader()
        self._graders[self._graders.index(stopped)] = grader
        return grader

    def __enter__(self) -> "MarkingAhead":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._threads.shutdown(cancel_futures=True)
        for grader in self._graders:
            grader.close()
