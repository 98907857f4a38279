"""What is handed in by a request: it is put into the course's folder, and its sender learns what became of it.

Requests come in threads of their own. All that touches the course's folder is done by the one that serves.
"""

import contextlib
import dataclasses
import os
import shutil
import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from ..gradebook.time_stamp import TIMESTAMP, stamp_at, time_in
from ..submitted.folder import NotAFile, OpenedFolder, replace_folder, restore_folder, sibling, size_of
from .looking import Look, look
from .rules import HandedIn

Became = Callable[[HandedIn, Look], HandedIn]
"""What became of a file in the course's folder, which is told by how it looks; the same while nothing did."""
_STAMP = "%Y-%m-%d %H:%M:%S.%f +0000"
"""Format of nbgrader's `submit`, with a numeric zone: in a course with the zone UTC+3, `UTC` means an offset of 3 h."""


@dataclasses.dataclass(frozen=True)
class Arrival:
    """A notebook that has come for a student."""

    about: HandedIn
    file: Path
    """Where it is now, in a folder that no student can reach."""
    tell: Callable[[HandedIn | OSError], None]
    """Is told that it is in the course's folder, and later what became of it; or why it cannot be there."""
    is_wanted: Callable[[], bool]
    """Whether its sender is still there: what nobody waits for any more is not taken, because nobody was told so."""


class Arrivals:
    """Those that have come and those whose senders wait."""

    def __init__(self, submitted: Path, woken: Callable[[], None]) -> None:
        """submitted: the course's folder of submissions. woken: called when something has come."""
        self._submitted = submitted
        self._woken = woken
        self._lock = threading.Lock()
        self._new: list[Arrival] = []
        self._placed: list[tuple[Arrival, Look]] = []

    def put(self, arrival: Arrival) -> None:
        """Hands it over; may be called in any thread."""
        with self._lock:
            self._new.append(arrival)
        self._woken()

    def put_back(self, units: Iterable[str]) -> None:
        """Finishes what a killed process was doing in the students' folders."""
        for unit in units:
            for student in self._submitted.iterdir():
                there = student / unit
                with contextlib.suppress(OSError):  # a folder that is not ours: its student's row says what is wrong
                    if student.is_dir() and not student.is_symlink():
                        restore_folder(there)
                        for left in ("arrived", "old"):
                            shutil.rmtree(sibling(there, left), ignore_errors=True)

    def place(self) -> None:
        """Puts what has come into the course's folder."""
        with self._lock:
            new, self._new = self._new, []
        for arrival in new:
            if not arrival.is_wanted():
                continue
            its, there = arrival.about, self._submitted / arrival.about.student / arrival.about.unit
            try:
                its = replace(its, handed_in=_place(arrival.file, there, its.handed_in))
            except OSError as error:
                arrival.tell(error)
                continue
            for one in [one for one in self._placed if _whose(one[0]) == _whose(arrival)]:
                self._placed.remove(one)
                one[0].tell(replace(one[0].about, status="replaced"))
            self._placed.append((dataclasses.replace(arrival, about=its), look(there, f"{its.unit}.ipynb")))
            arrival.tell(its)

    def tell(self, became: Became) -> None:
        """Tells the senders what became of their files."""
        for one in list(self._placed):
            arrival, its_look = one
            now = became(arrival.about, its_look)
            if now.status != "received":
                arrival.tell(now)
            if now.status != "received" or not arrival.is_wanted():
                self._placed.remove(one)

    def close(self) -> None:
        """Nobody has to wait any longer: what is in the course's folder is marked when serving begins again."""
        for arrival, _ in self._placed:
            arrival.tell(arrival.about)
        self._placed = []


def _whose(arrival: Arrival) -> tuple[str, str]:
    return arrival.about.unit, arrival.about.student


def _place(file: Path, there: Path, moment: datetime) -> datetime:
    """Makes it the student's submission; the same file again stays the one that it is. Returns when that was handed in.

    Raises OSError.
    """
    notebook = f"{there.name}.ipynb"
    for folder in (there.parent, there):
        if folder.is_symlink():
            raise OSError(f"{folder} is a link")
    if _is_there(file, there, notebook) and (before := time_in(stamp_at(there))):
        return before.replace(tzinfo=UTC)
    there.parent.mkdir(exist_ok=True)
    part = sibling(there, "arrived")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    try:
        shutil.move(file, part / notebook)
        (part / TIMESTAMP).write_text(f"{moment.astimezone(UTC):{_STAMP}}")
        for path in (part / notebook, part / TIMESTAMP, part):
            _sync(path)
        replace_folder(part, there)
        for path in (there, there.parent, there.parent.parent):
            _sync(path)
    except OSError:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return moment


def _is_there(file: Path, there: Path, notebook: str) -> bool:
    """Whether this is what the student has handed in already, by a request too."""
    try:
        with OpenedFolder.of_student(there) as opened:
            if set(opened.names()) != {notebook, TIMESTAMP}:
                return False
            with opened.file(notebook) as before, file.open("rb") as now:
                return size_of(before) == file.stat().st_size and all(
                    now.read(len(piece)) == piece for piece in iter(partial(before.read, 1 << 18), b"")
                )
    except (NotAFile, OSError, ValueError):
        return False


def _sync(path: Path) -> None:
    """Has the disk keep it, whatever happens to the machine: after that it may be called received."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
