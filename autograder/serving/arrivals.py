"""Arrival of submissions: `serve` notices changed files, or puts notebooks of HTTP requests into the course's folder.

- `FolderWatch` wakes the serving thread when files change. `FileFingerprint` recognises a changed submission.
- `Arrivals` passes notebooks from the threads of requests to the serving thread, which is the only one that touches the
  course's folder. Their senders get the outcome.
"""

import contextlib
import dataclasses
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from typing import Literal, NamedTuple, Self

import msgspec
from msgspec.structs import replace
from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from ..course.notebook_file import digest_in
from ..course.submitted_files import OpenedFolder, new_folder, replace_folder, restore_folder, sibling
from ..gradebook.time_stamp import TIMESTAMP, stamp_at, time_in

STILL_SECONDS = 0.25
"""Age of a notebook's last change below which somebody may still be writing it."""
POLL_SECONDS = 5.0
"""Seconds between polls for new files: the system may lose changes, and does not report those by other machines."""
_READING = {"opened", "closed_no_write"}
_STAMP = "%Y-%m-%d %H:%M:%S.%f +0000"
"""Format of nbgrader's `submit`, with a numeric zone: in a course with the zone UTC+3, `UTC` means an offset of 3 h."""


class FileStatus(NamedTuple):
    """Properties by which a changed or replaced file is recognised."""

    inode: int
    mtime_ns: int
    size: int

    @classmethod
    def of(cls, path: Path) -> Self | None:
        """Return the status of a file, or of the zip file that the path leads into; None if it is not there."""
        try:
            status = path.lstat()
        except NotADirectoryError:
            return cls.of(path.parent)
        except OSError:
            return None
        return cls(status.st_ino, status.st_mtime_ns, status.st_size)


class FileFingerprint(NamedTuple):
    """Properties by which a poll recognises a changed submission without reading it."""

    name: str
    """Name of the notebook."""
    folder: FileStatus | None
    notebook: FileStatus | None
    stamp: FileStatus | None

    @classmethod
    def of(cls, folder: Path, name: str) -> Self:
        """Return the fingerprint of the notebook with this name in a student's folder."""
        return cls(name, *map(FileStatus.of, (folder, folder / name, folder / TIMESTAMP)))

    @property
    def size(self) -> int:
        """Size of the notebook in bytes."""
        return self.notebook.size if self.notebook else 0

    @property
    def may_be_unfinished(self) -> bool:
        """True if somebody may be writing the notebook. A time stamp is written after its notebook."""
        changed = self.notebook.mtime_ns if self.notebook else 0
        stamped = self.stamp.mtime_ns if self.stamp else 0
        return stamped < changed and 0 <= time.time_ns() - changed < STILL_SECONDS * 1e9


class FolderWatch(FileSystemEventHandler):
    """Watches folders for changes, and lets other threads wake the serving thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._reasons: set[str] = set()
        self._observer = Observer()
        self._watched: dict[Path, tuple[int, int]] = {}

    def wake(self, reason: str) -> None:
        """End the serving thread's sleep; if it is awake, its next sleep ends at once."""
        with self._changed:
            self._reasons.add(reason)
            self._changed.notify()

    def sleep(self, until: float) -> set[str]:
        """Wait until `wake` is called, or until a time of the monotonic clock. Return the reasons to wake."""
        with self._changed:
            self._changed.wait_for(lambda: self._reasons, max(0.0, until - time.monotonic()))
            reasons, self._reasons = self._reasons, set()
            return reasons

    def watch(self, folders: Mapping[Path, bool]) -> bool:
        """Watch these folders; the value is True for folders that are watched with all subfolders.

        Returns whether a folder is new or another one than before, so that its content has to be polled.
        """
        identities = {folder: identity for folder in folders if (identity := _identity(folder))}
        if identities == self._watched:
            return False
        self._observer.unschedule_all()
        self._watched = identities
        for folder in identities:
            with contextlib.suppress(OSError):  # the system has no more watches
                self._observer.schedule(self, str(folder), recursive=folders[folder])
        return True

    def on_any_event(self, event: FileSystemEvent) -> None:
        if event.event_type not in _READING:  # our own polls would wake us
            self.wake("files")

    def __enter__(self) -> Self:
        self._observer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._observer.stop()
        self._observer.join()


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


class ReceivedSubmission(msgspec.Struct, frozen=True):
    """Answer to a request that submits for a student, with no more than the student may see."""

    unit: str
    student: str
    submission: str
    """SHA-256 of the file."""
    handed_in: datetime
    status: Literal["received", "marked", "waits", "replaced", "not_recorded"] = "received"
    """received: the file is in the course's folder, and is graded as soon as possible. waits: too many of the student's
    files were graded in the last hour, or could not be graded. replaced: another file counts, a later one of the
    student's or one of another member of the group. not_recorded: the grade could not be recorded, for a reason that
    the instructor can read."""
    waits_until: datetime | None = None
    score: float | None = None
    """Points from hidden tests; null if the student may not see them yet."""
    max_score: float | None = None
    page: str = ""
    """Page that the student sees, as HTML, once the file is graded."""


@dataclasses.dataclass(frozen=True)
class Arrival:
    """A notebook that a request submits for a student."""

    about: ReceivedSubmission
    file: Path
    """Path of the notebook, in a folder that no student can reach."""
    answer: Callable[[ReceivedSubmission | OSError], None]
    """Called when the notebook is in the course's folder or cannot be put there, and later with its outcome."""
    is_wanted: Callable[[], bool]
    """Returns whether the sender still waits. If not, the notebook is rejected, because nobody would learn of it."""

    @property
    def owner(self) -> tuple[str, str]:
        """Unit and student."""
        return self.about.unit, self.about.student


class Arrivals:
    """Notebooks that requests submit, and those whose senders wait for the outcome."""

    def __init__(self, submitted: Path, on_arrival: Callable[[], None]) -> None:
        """submitted: the course's folder of submissions. on_arrival: called in the request's thread."""
        self._submitted = submitted
        self._on_arrival = on_arrival
        self._new: SimpleQueue[Arrival] = SimpleQueue()
        self._waiting: dict[tuple[str, str], tuple[Arrival, FileFingerprint]] = {}

    def put(self, arrival: Arrival) -> None:
        """Pass an arrival to the serving thread; may be called in any thread."""
        self._new.put(arrival)
        self._on_arrival()

    def put_back(self, units: Iterable[str]) -> None:
        """Finish the replacement of students' folders that a killed process began."""
        for unit in units:
            for student in self._submitted.iterdir():
                folder = student / unit
                with contextlib.suppress(OSError):  # the student's row reports a folder that is not ours
                    if student.is_dir() and not student.is_symlink():
                        restore_folder(folder)
                        for left in ("part", "old"):
                            shutil.rmtree(sibling(folder, left), ignore_errors=True)

    def place(self) -> None:
        """Put the notebooks that have arrived into the course's folder."""
        for _ in range(self._new.qsize()):  # requests may come without end
            arrival = self._new.get()
            if not arrival.is_wanted():
                continue
            unit, student = arrival.owner
            folder = self._submitted / student / unit
            try:
                moment = _place(arrival.file, arrival.about.submission, folder, arrival.about.handed_in)
            except OSError as error:
                arrival.answer(error)
                continue
            arrival = dataclasses.replace(arrival, about=replace(arrival.about, handed_in=moment))
            if earlier := self._waiting.pop(arrival.owner, None):
                earlier[0].answer(replace(earlier[0].about, status="replaced"))
            self._waiting[arrival.owner] = arrival, FileFingerprint.of(folder, f"{unit}.ipynb")
            arrival.answer(arrival.about)

    def answer(self, outcome: Callable[[ReceivedSubmission, FileFingerprint], ReceivedSubmission]) -> None:
        """Answer the senders whose file has an outcome. outcome: returns the answer, unchanged if there is none yet."""
        for owner, (arrival, fingerprint) in list(self._waiting.items()):
            about = outcome(arrival.about, fingerprint)
            if about.status != "received":
                arrival.answer(about)
            if about.status != "received" or not arrival.is_wanted():
                del self._waiting[owner]

    def close(self) -> None:
        """Answer all senders: files in the course's folder are graded when serving begins again."""
        for arrival, _ in self._waiting.values():
            arrival.answer(arrival.about)
        self._waiting = {}


def _place(file: Path, digest: str, folder: Path, moment: datetime) -> datetime:
    """Make a file the student's submission, unless it is already. Return the time of the submission. Raises OSError."""
    notebook = f"{folder.name}.ipynb"
    for parent in (folder.parent, folder):
        if parent.is_symlink():
            raise OSError(f"{parent} is a link")
    if _is_there(digest, folder, notebook) and (before := time_in(stamp_at(folder))):
        return before.replace(tzinfo=UTC)
    with new_folder(folder) as part:
        shutil.move(file, part / notebook)
        (part / TIMESTAMP).write_text(f"{moment.astimezone(UTC):{_STAMP}}")
        _sync(part / notebook, part / TIMESTAMP, part)
        replace_folder(part, folder)
        _sync(folder, folder.parent, folder.parent.parent)
    return moment


def _is_there(digest: str, folder: Path, notebook: str) -> bool:
    """Return whether this file is the student's submission already, even if another request submitted it."""
    try:
        with OpenedFolder.of_student(folder) as opened:
            return set(opened.names()) == {notebook, TIMESTAMP} and digest_in(opened, notebook) == digest
    except (OSError, ValueError):
        return False


def _sync(*paths: Path) -> None:
    """Write files and folders to the disk, so that they are received whatever happens to the machine."""
    for path in paths:
        opened = os.open(path, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
