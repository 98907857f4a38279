"""Sleeps until there is something to do: a file has come, a report is ready, or it is time to look all the same."""

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

LOOK_SECONDS = 60.0
"""How often everything is looked at, also where the system tells what changes: it may have lost something."""
POLL_SECONDS = 5.0
"""The same where the system does not tell, or not what other machines change."""
_NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "gpfs", "beegfs", "glusterfs"}
_READING = {"opened", "closed_no_write"}


class Watching:
    """Watches folders, and is woken by other threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._reasons: set[str] = set()
        self._observer = Observer()
        self._watched: dict[Path, tuple[int, int]] = {}
        self._is_told = True

    @property
    def look_seconds(self) -> float:
        """How long it may be until everything is looked at again."""
        return LOOK_SECONDS if self._is_told else POLL_SECONDS

    def wake(self, reason: str) -> None:
        """Ends the sleep, also one that has not begun yet."""
        with self._changed:
            self._reasons.add(reason)
            self._changed.notify()

    def sleep(self, until: float) -> set[str]:
        """Waits for a reason to wake, until a time of the monotonic clock; the reasons."""
        with self._changed:
            self._changed.wait_for(lambda: self._reasons, max(0.0, until - time.monotonic()))
            reasons, self._reasons = self._reasons, set()
            return reasons

    def watch(self, folders: Mapping[Path, bool]) -> bool:
        """Watches these folders, those that are True with all that is in them; again, if another is in its place.

        Returns whether it was told to watch something new: what is there then has to be looked at.
        """
        there = {folder: found for folder in folders if (found := _identity(folder))}
        if there == self._watched:
            return False
        self._observer.unschedule_all()
        self._watched = there
        self._is_told = len(there) == len(folders) and not any(_is_elsewhere(folder) for folder in there)
        handler = _Waking(self)
        for folder in there:
            try:
                self._observer.schedule(handler, str(folder), recursive=folders[folder])
            except OSError:  # no more watches are to be had
                self._is_told = False
        return True

    def __enter__(self) -> "Watching":
        self._observer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._observer.stop()
        self._observer.join()


class _Waking(FileSystemEventHandler):
    def __init__(self, watching: Watching) -> None:
        self._watching = watching

    def on_any_event(self, event: FileSystemEvent) -> None:
        if event.event_type not in _READING:  # our own looking would wake us
            self._watching.wake("files")


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_elsewhere(folder: Path) -> bool:
    """Whether other machines can write there, of which this one is not told."""
    try:
        mounts = [line.split(" ")[1:3] for line in Path("/proc/self/mounts").read_text().splitlines()]
    except OSError:
        return True
    place = folder.resolve()
    _, kind = max(
        ((point, kind) for point, kind in mounts if place.is_relative_to(point)),
        key=lambda mount: len(mount[0]),
        default=("", ""),
    )
    return kind in _NETWORK or kind.startswith("fuse.")
