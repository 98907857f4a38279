"""One grading process as its client sees it: start it, send it requests, and read its answers."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ..course.folder import VARIABLE, folder
from ..course.notebook import UnreadableNotebook
from ..course.settings import Settings, load
from ..errors import UserError
from ..report import ExerciseReport, Report
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


class GradingRefused(UserError):
    """Raised if a grading process rejects a request, or cannot start; `str()` says why and what to do."""


class NotStarted(GradingRefused):
    """Raised if no grading process starts; `str()` says why and what to do."""


class GradingStopped(UserError):
    """Raised if a grading process ends before it answers. This is a fault of the autograder, never of a submission."""

    def __init__(self) -> None:
        super().__init__(
            "The grading process ended while it graded this notebook. Please tell your instructor, who can read why in "
            "what it printed."
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
