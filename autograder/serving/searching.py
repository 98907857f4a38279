"""Which of a student's notebooks under other names is of the unit: found in a thread of its own, and remembered.

To look through a large notebook takes seconds; who serves everyone does not wait for it.
"""

import threading
import traceback
from pathlib import Path

from ..classroom.submissions import NotKnownYet, newest_first, newest_of_unit
from ..submitted.folder import OpenedFolder

_Seen = tuple[tuple[object, ...], ...]


class Searching:
    """The thread, for one unit; it begins when it is first needed."""

    def __init__(self, unit: str, class_folder: Path, submitted: Path) -> None:
        """submitted: the folder of submissions."""
        self._unit = unit
        self._class_folder = class_folder
        self._submitted = submitted
        self._changed = threading.Condition()
        self._wanted: dict[str, list[str]] = {}
        """By student, the notebooks to search, in the order in which they came."""
        self._found: dict[str, tuple[_Seen, str | None]] = {}
        self._thread: threading.Thread | None = None

    @property
    def goes_on(self) -> bool:
        """Whether anything is being looked for."""
        return bool(self._wanted)

    def newest(self, student: str, folder: OpenedFolder, notebooks: list[str]) -> str | None:
        """The newest of a student's notebooks that is of the unit; raises NotKnownYet. Reads none of them."""
        seen = _seen(folder, notebooks)
        with self._changed:
            found = self._found.get(student)
            if found and found[0] == seen:
                return found[1]
            if student not in self._wanted:
                self._wanted[student] = notebooks
                self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, daemon=True)
                self._thread.start()
        raise NotKnownYet

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._wanted)
                student, notebooks = next(iter(self._wanted.items()))
            found = self._search(student, notebooks)
            with self._changed:
                del self._wanted[student]
                if found:
                    self._found[student] = found

    def _search(self, student: str, notebooks: list[str]) -> tuple[_Seen, str | None] | None:
        """What was there, and which of it is of the unit; None if it has gone."""
        try:
            with OpenedFolder.of_student(self._submitted / student / self._unit) as folder:
                seen = _seen(folder, notebooks)
                try:
                    return seen, newest_of_unit(folder, notebooks, self._unit, self._class_folder)
                except Exception:  # a fault of ours costs this student's file a mark, and nobody else's
                    traceback.print_exc()
                    return seen, None
        except (OSError, ValueError):
            return None


def _seen(folder: OpenedFolder, notebooks: list[str]) -> _Seen:
    """What tells these files from others in their places."""
    files = newest_first(folder, notebooks)
    return tuple((name, its.st_ino, its.st_size, its.st_mtime_ns, its.st_ctime_ns) for name, its in files)
