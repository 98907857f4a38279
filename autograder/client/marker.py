"""The client's end of a marking process.

Imports neither torch nor pytest: formgrader runs this in the Jupyter server.
"""

import contextlib
import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

import msgspec

from ..course.folder import VARIABLE, folder
from ..course.notebook import UnreadableNotebook
from ..course.settings import Settings, load
from ..errors import UserError
from ..report import ExerciseReport, Report, without_marks
from ..sandbox.isolation import exposed_in
from ..submitted.notebook_file import read_at
from .requests import (
    LOST,
    AllMarked,
    Answer,
    CandidateKind,
    Device,
    Handout,
    Known,
    LearnMistakes,
    MakeHandout,
    MarkCandidate,
    Marked,
    MarkKnown,
    MarkNotebook,
    Ready,
    Refused,
    Request,
    Start,
)

_CLOSING_SECONDS = 5


class MarkerRefused(UserError):
    """The grader cannot do what was asked; `str()` says why and what to do."""


class MarkerStopped(UserError):
    """The marking process ended in the middle: our fault, never the submission's."""

    def __init__(self) -> None:
        super().__init__(
            "The grading process ended while it graded this notebook. Please tell your instructor, who can read why in "
            "what it printed."
        )


class Marker:
    """A marking process of one's own. May be shared by threads: one request is answered after another."""

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
        """settings: those of autograder.toml, if none are given. class_folder: the class whose units are marked.
        private: folders that no submission may read. core: the processor to keep to. unit: the one that is asked for
        first, where that is known. own_code_alone: no notebook will be marked, so no sandbox is started.

        Raises BadSettings, and MarkerRefused if the system starts no process.
        """
        exposed = [str(place) for place in private if exposed_in(place)]  # usually none, and there may be thousands
        whose = None if class_folder is None else str(class_folder)
        start = Start(device, settings or load(), whose, exposed, core, unit, own_code_alone)
        self._lock = threading.Lock()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "autograder.grading", msgspec.json.encode(start).decode()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # As in the sandbox: what walks a set does so in the same order on both sides.
                env={**os.environ, VARIABLE: str(folder()), "PYTHONHASHSEED": "0"},
            )
        except OSError as error:
            raise MarkerRefused(f"No grading process can be started: {error}.") from None
        self._ready: Ready | None = None

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    @property
    def ready(self) -> Ready:
        """The device and the isolation level, once the process has started; raises MarkerRefused."""
        with self._lock:
            return self._wait_until_ready()

    def mark(
        self,
        name: str,
        content: bytes | UnreadableNotebook,
        unit: str | None = None,
        *,
        digest: str | None = None,
        note: str = "",
        of_course: bool = False,
    ) -> Report:
        """The report on the bytes of a notebook; without a unit, the notebook itself tells which it is.

        digest: of the file, where the content is not all of it. note: what the report says first. of_course: mark it as
        the course has its units, whatever the class keeps.
        """
        if digest is None:
            digest = hashlib.sha256(content).hexdigest() if isinstance(content, bytes) else ""
        return self._report(MarkNotebook(in_utf8(name), content, unit, digest, note, of_course))

    def mark_file(self, path: Path, unit: str | None = None, *, name: str | None = None) -> Report:
        """The report on a notebook file, under this name or else the path as it is given."""
        file, name = read_at(path), name or str(path)
        if not file.is_read:
            return without_marks(in_utf8(name), "unreadable", str(file.content), self.ready)
        return self.mark(name, file.content, unit, digest=file.digest)

    def mark_candidate(self, unit: str, kind: CandidateKind, name: str = "") -> Report:
        """The report on an answer that the kit knows."""
        return self._report(MarkCandidate(unit, kind, name))

    def mark_known(self, unit: str, known: Sequence[Known]) -> list[ExerciseReport]:
        """What the graders make of each of these answers. Raises MarkerRefused."""
        answer = self._ask_of_unit(MarkKnown(unit, list(known)))
        assert isinstance(answer, AllMarked)
        return answer.exercises

    def learn(self, unit: str) -> None:
        """Has it see what the unit's known mistakes show, before a wrong answer waits for that."""
        self._ask(LearnMistakes(unit))

    def handout(self, unit: str, *, is_new: bool = True) -> Handout:
        """The public graders' calls with their right results, and what known mistakes show on them.

        is_new: make all of it, though some may be kept from before. Raises MarkerRefused.
        """
        answer = self._ask_of_unit(MakeHandout(unit, is_new))
        assert isinstance(answer, Handout)
        return answer

    def _ask_of_unit(self, request: MakeHandout | MarkKnown) -> Answer:
        """The answer to what takes processes of its own; one that is ended from outside is said in a sentence."""
        try:
            return self._ask(request)
        except MarkerStopped:
            raise MarkerRefused(LOST.format(unit=request.unit)) from None

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin
        assert self._process.stdout
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(_CLOSING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()  # in the middle of a submission; the sandbox ends with it
            self._process.wait()
        self._process.stdout.close()

    def __enter__(self) -> "Marker":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _report(self, request: Request) -> Report:
        answer = self._ask(request)
        assert isinstance(answer, Marked)
        return answer.report

    def _ask(self, request: Request) -> Answer:
        with self._lock:
            self._wait_until_ready()
            assert self._process.stdin
            line = msgspec.json.encode(request) + b"\n"
            try:
                self._process.stdin.write(line)
                self._process.stdin.flush()
            except (BrokenPipeError, ValueError):  # ValueError: another thread has closed it
                raise MarkerStopped from None
            return self._hear()

    def _wait_until_ready(self) -> Ready:
        if self._ready is None:
            answer = self._hear()
            assert isinstance(answer, Ready)
            self._ready = answer
        return self._ready

    def _hear(self) -> Answer:
        assert self._process.stdout
        try:
            line = self._process.stdout.readline()
        except ValueError:  # another thread has closed it
            line = b""
        if not line:
            raise MarkerStopped
        answer: Answer = msgspec.json.decode(line, type=Answer)
        if isinstance(answer, Refused):
            raise MarkerRefused(answer.sentence)
        return answer


def running(marker: Marker, replaced: Callable[[], Marker]) -> Marker:
    """Return this marker once it has started, or its successor if it has ended with nothing to mark.

    So no submission is blamed for what ended an idle process. Raises MarkerRefused and MarkerStopped if none starts.
    """
    with contextlib.suppress(MarkerStopped):
        if marker.is_running and marker.ready:
            return marker
    successor = replaced()
    if not successor.ready:
        raise MarkerStopped
    return successor


def stopped_at(
    name: str, stopped: MarkerStopped, ready: Ready, *, unit: str | None = None, digest: str = "", note: str = ""
) -> Report:
    """Return the report on a submission whose grading process ended. ready: that process's own description."""
    return without_marks(in_utf8(name), "grader_error", str(stopped), ready, unit=unit, submission=digest, note=note)


def in_utf8(name: str) -> str:
    """A file's name, which may be no UTF-8, as JSON can hold it."""
    return os.fsencode(name).decode("utf-8", "replace")
