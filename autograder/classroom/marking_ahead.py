"""Marks a class with several grader processes, ahead of the one writer that puts the reports into the gradebook."""

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any

from ..grading.client import Grader
from ..grading.requests import Device, Ready
from ..report import Report


class MarkingAhead:
    """Reports on a class's notebooks, by student, each ready when it is asked for."""

    def __init__(self, notebooks: Mapping[str, Path], unit: str, *, device: Device, workers: int) -> None:
        count = max(1, min(workers, len(notebooks)))
        self._graders = [Grader(device) for _ in range(count)]
        self._idle: SimpleQueue[Grader] = SimpleQueue()
        for grader in self._graders:
            self._idle.put(grader)
        self._threads = ThreadPoolExecutor(count)
        self._unit = unit
        self._notebooks = dict(notebooks)
        self._reports: dict[str, Future[Report]] = {}

    def start(self) -> Ready:
        """Waits for the graders, raising GraderRefused, and sets them to work."""
        (ready, *_) = [grader.ready for grader in self._graders]
        self._reports = {
            student: self._threads.submit(self._mark, student, path) for student, path in self._notebooks.items()
        }
        return ready

    def report(self, student: str, unit: str, node: Any) -> Report:
        """The report on one student's notebook. `node` is the same notebook on its way through nbgrader."""
        return self._reports[student].result()

    def _mark(self, student: str, path: Path) -> Report:
        grader = self._idle.get()
        try:
            return grader.mark_file(path, self._unit, name=f"{student}/{self._unit}/{path.name}")
        finally:
            self._idle.put(grader)

    def __enter__(self) -> "MarkingAhead":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._threads.shutdown(cancel_futures=True)
        for grader in self._graders:
            grader.close()
