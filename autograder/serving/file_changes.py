"""Changes of submitted files: how `serve` is woken by them, recognises them, and finds notebooks under other names."""

import threading
import time
import traceback
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple, Self

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from ..classroom.submissions import NotKnownYet, newest_first, newest_of_unit
from ..course.submitted_files import OpenedFolder
from ..gradebook.time_stamp import TIMESTAMP

STILL_SECONDS = 0.25
"""Age of a notebook's last change below which somebody may still be writing it."""
WATCHED_SECONDS = 60.0
"""Seconds between polls of everything if the system reports changes, because it may lose some."""
POLL_SECONDS = 5.0
"""Seconds between polls if the system reports no changes, or not those by other machines."""
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "gpfs", "beegfs", "glusterfs"}
_READING = {"opened", "closed_no_write"}


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


class NotebookFinder:
    """Finds which of a student's notebooks under other names belongs to the unit, in a thread of its own.

    Reading a large notebook takes seconds, for which the serving thread does not wait.
    """

    def __init__(self, unit: str, class_folder: Path, submitted: Path) -> None:
        """submitted: folder of submissions."""
        self._unit = unit
        self._class_folder = class_folder
        self._submitted = submitted
        self._queue: SimpleQueue[tuple[Future[str | None], str, list[str]]] = SimpleQueue()
        # A daemon: the end of `serve` does not wait for a search.
        threading.Thread(target=self._search_all, daemon=True).start()
        self._searches: dict[str, tuple[list[tuple[object, ...]], Future[str | None]]] = {}
        """Last search by student, with the fingerprint of the files that it searches."""

    @property
    def is_searching(self) -> bool:
        """True if any notebook is still to be searched."""
        return not all(search.done() for _, search in self._searches.values())

    def newest(self, student: str, folder: OpenedFolder, notebooks: list[str]) -> str | None:
        """Return the newest of a student's notebooks that belongs to the unit, without reading any.

        Raises NotKnownYet if the search has not ended.
        """
        files = newest_first(folder, notebooks)
        seen: list[tuple[object, ...]] = [
            (name, its.st_ino, its.st_size, its.st_mtime_ns, its.st_ctime_ns) for name, its in files
        ]
        searched, search = self._searches.get(student, (None, None))
        if search and not search.done():
            raise NotKnownYet
        if search and searched == seen and not search.exception():
            return search.result()
        self._searches[student] = seen, Future()
        self._queue.put((self._searches[student][1], student, notebooks))
        raise NotKnownYet

    def _search_all(self) -> None:
        while True:
            search, student, notebooks = self._queue.get()
            try:
                search.set_result(self._search(student, notebooks))
            except (OSError, ValueError) as error:  # the folder was changed meanwhile, and is searched again
                search.set_exception(error)

    def _search(self, student: str, notebooks: list[str]) -> str | None:
        with OpenedFolder.of_student(self._submitted / student / self._unit) as folder:
            try:
                return newest_of_unit(folder, notebooks, self._unit, self._class_folder)
            except Exception:  # a fault of ours costs this student's file a grade, and nobody else's
                traceback.print_exc()
                return None


class FolderWatch(FileSystemEventHandler):
    """Watches folders for changes, and lets other threads wake the serving thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._reasons: set[str] = set()
        self._observer = Observer()
        self._watched: dict[Path, tuple[int, int]] = {}
        self._reports_all = True

    @property
    def poll_seconds(self) -> float:
        """Seconds between polls of everything."""
        return WATCHED_SECONDS if self._reports_all else POLL_SECONDS

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
        self._reports_all = len(identities) == len(folders) and not any(map(_is_shared, identities))
        for folder in identities:
            try:
                self._observer.schedule(self, str(folder), recursive=folders[folder])
            except OSError:  # the system has no more watches
                self._reports_all = False
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


def _is_shared(folder: Path) -> bool:
    """Return whether other machines can write into a folder, whose changes the system does not report."""
    try:
        mounts = [line.split(" ")[1:3] for line in Path("/proc/self/mounts").read_text().splitlines()]
    except OSError:
        return True
    path = folder.resolve()
    _, kind = max(
        ((point, kind) for point, kind in mounts if path.is_relative_to(point)),
        key=lambda mount: len(mount[0]),
        default=("", ""),
    )
    return kind in _NETWORK or kind.startswith("fuse.")
