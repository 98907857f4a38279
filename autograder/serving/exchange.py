"""nbgrader's exchange, as far as serving needs it: what has arrived is collected, and pages are released."""

import contextlib
import glob
import logging
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from nbgrader.exchange import ExchangeError
from sqlalchemy.exc import SQLAlchemyError

from ..gradebook.course_directory import course_directory
from ..gradebook.time_stamp import TIMESTAMP
from ..nbgrader_plugin.collect import TIME, CollectHandIns
from ..nbgrader_plugin.release_feedback import SECRET, ReleaseFeedback

_QUIET_SECONDS = 5.0
"""A folder that nbgrader's `submit` did not finish is taken when nothing has changed in it for so long."""
_AGAIN_SECONDS = 0.1
_FAILED_SECONDS, _LONGEST_FAILED_SECONDS = 2.0, 60.0
"""A folder that could not be collected, as when the disk was full, is tried again after so long, then twice that."""
_FOLDERS = 150
"""To go through so many folders of all students takes as long as to collect from one student."""
_MOST_LOOKED_AT = 100  # files in a folder that is not finished
EVERYONE = "*"
"""In the place of a student."""


class _CollectArrived(CollectHandIns):
    """Collects no folders but some."""

    arrived: set[str]
    failed: set[str]

    def init_src(self) -> None:
        super().init_src()
        self.src_records = [record for record in self.src_records if record["filename"] in self.arrived]

    def _collect(self, record: dict[str, Any]) -> None:
        try:
            super()._collect(record)
        except OSError:
            self.failed.add(record["filename"])
            raise


class Exchange:
    """The exchange of a course's settings, if it is there."""

    def __init__(self, root: Path, shown: str, remark: Callable[[str], None]) -> None:
        """shown: the course's folder with the pages to release. remark: says what could not be done."""
        self._root = root
        self._shown = shown
        self._log = logging.Logger("autograder.serving")
        self._log.addHandler(_Telling(remark))
        self._remark = remark
        self._seen: set[str] = set()
        self._later: dict[str, tuple[float, float]] = {}
        """What could not be collected: when it is tried again, and after how many seconds."""

    @property
    def inbound(self) -> Path:
        """Where students' folders arrive."""
        return self._course() / "inbound"

    def collect(self, units: Iterable[str], is_busy: Callable[[str, str], bool]) -> float | None:
        """Brings in what has arrived; in how many seconds to look again, if something has arrived in part.

        is_busy: whether an earlier submission of a student's in a unit is being marked; the later one waits.
        """
        names = _names(self.inbound)
        self._seen &= names
        self._later = {name: its for name, its in self._later.items() if name in names}
        now = time.monotonic()
        again = min((moment - now for moment, _ in self._later.values() if moment > now), default=None)
        arrived: dict[str, dict[str, str]] = {}
        for name in sorted(names - self._seen):
            unit, student = _whose(name, units)
            if student and is_busy(unit, student):
                continue
            if student and not _is_whole(self.inbound / name):
                again = min(again or _AGAIN_SECONDS, _AGAIN_SECONDS)
                continue
            if self._later.get(name, (now, 0.0))[0] > now:
                continue
            self._seen.add(name)
            if student:
                arrived.setdefault(unit, {})[name] = student
        for unit, folders in arrived.items():
            students = set(folders.values())
            for student in students if len(students) * _FOLDERS < len(names) else [EVERYONE]:
                failed = self._collect(unit, student, folders)
                self._seen -= failed
                for name in failed:
                    seconds = min(2 * self._later.get(name, (0.0, _FAILED_SECONDS / 2))[1], _LONGEST_FAILED_SECONDS)
                    self._later[name] = time.monotonic() + seconds, seconds
                    again = min(again or seconds, seconds)
        self._later = {name: its for name, its in self._later.items() if name not in self._seen}
        return again

    def _collect(self, unit: str, student: str, folders: Mapping[str, str]) -> set[str]:
        """Brings in these of the folders that are the student's; the names of those that it failed for."""
        doing = self._made(_CollectArrived, unit, student, update=True)
        doing.arrived, doing.failed = set(folders), set()
        is_done = self._do(doing)
        return doing.failed if is_done else {name for name, its in folders.items() if student in (its, EVERYONE)}

    def release(self, unit: str, students: Iterable[str] | None = None) -> set[str]:
        """Releases the pages of these students, or of all, who handed in through the exchange.

        Returns those for whom it has to be tried again; "*" for all.
        """
        asked = [EVERYONE] if students is None else list(students)
        if not self._course().is_dir():
            return set(asked)
        directory = course_directory(self._root)
        failed = set()
        for student in asked:
            handed_in = Path(directory.format_path(directory.submitted_directory, student, unit))
            has_page = student == EVERYONE or (handed_in / SECRET).is_file()
            if has_page and not self._do(self._made(ReleaseFeedback, unit, student)):
                failed.add(student)
        return failed

    def _course(self) -> Path:
        directory = course_directory(self._root)
        exchange = CollectHandIns(coursedir=directory, config=directory.config)
        return Path(str(exchange.root)) / str(directory.course_id)

    def _made(self, what: type[Any], unit: str, student: str, **settings: Any) -> Any:
        directory = course_directory(self._root, feedback=Path(self._shown))
        directory.assignment_id = unit
        directory.student_id = student if student == EVERYONE else glob.escape(student)
        return what(coursedir=directory, config=directory.config, log=self._log, **settings)

    def _do(self, doing: Any) -> bool:
        """Whether it could be done; what stood in the way is remarked."""
        try:
            doing.start()
        except (ExchangeError, OSError, SQLAlchemyError) as error:  # the gradebook says who is a student
            self._remark(f"The exchange {doing.root} cannot be used: {error}.")
            return False
        return True


class _Telling(logging.Handler):
    """Hands on what nbgrader's exchange complains of."""

    def __init__(self, remark: Callable[[str], None]) -> None:
        super().__init__(logging.ERROR)
        self._tell = remark

    def emit(self, record: logging.LogRecord) -> None:
        if "Not released" not in record.getMessage():  # it came some other way
            self._tell(record.getMessage())


def _names(folder: Path) -> set[str]:
    try:
        return {path.name for path in folder.iterdir()}
    except OSError:
        return set()


def _whose(name: str, units: Iterable[str]) -> tuple[str, str]:
    """The unit and the student in a folder's name STUDENT+UNIT+TIME[+SECRET]; none if it is no hand-in of these."""
    known = "|".join(map(re.escape, units))
    found = re.fullmatch(rf"(.+?)\+({known})\+{TIME}(?:\+[^+]*)?", name, re.DOTALL)
    return (found[2], found[1]) if found else ("", "")


def _is_whole(folder: Path) -> bool:
    """Whether `submit` is done with it: the last thing it does is to let everyone write there."""
    try:
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode):
            return True  # `collect` says what is wrong with it
        beside = [folder / TIMESTAMP, folder / SECRET]
        if status.st_mode & stat.S_IWOTH and all(path.lstat().st_size for path in beside):
            return True
    except OSError:
        pass
    return not 0 <= time.time() - _last_change(folder) < _QUIET_SECONDS


def _last_change(folder: Path) -> float:
    changes = [0.0]
    with contextlib.suppress(OSError):  # gone, or not readable yet
        changes.append(folder.lstat().st_mtime)
        with os.scandir(folder) as entries:
            changes += [entry.stat(follow_symlinks=False).st_mtime for entry in islice(entries, _MOST_LOOKED_AT)]
    return max(changes)
