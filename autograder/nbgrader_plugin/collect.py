"""nbgrader's `collect`, for an exchange into which strangers write.

nbgrader's own follows links, so a student's folder in the exchange can bring in whatever the instructor may read. One
folder with an odd name, or one that is too large, ends the run for the whole class. And it believes a folder's name,
whoever owns the folder. Here anything that is not a hand-in is named and left where it is, the rest is collected, and
what was collected before is replaced only by a complete folder.
"""

import fnmatch
import os
import pwd
import re
import shutil
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nbgrader.exchange.default import ExchangeCollect

from ..gradebook.time_stamp import StampFormat, time_near
from ..submitted.folder import replace_folder, restore_folder, sibling
from .enrolment import may_be_graded

_MOST_ENTRIES = 1_000
_DEEPEST = 20
_READ_AT_ONCE = 1 << 20
_KILOBYTE = 1000  # as nbgrader counts
TIME = r"[^+]+(?:(?<=[ \d])\+\d\d(?::?\d\d)?(?=\+|$))?"
"""A regular expression for the time in the name of a folder in the exchange: its zone may be called `+0530`."""
_SHARED_FOLDER, _SHARED_FILE = 0o2775, 0o664


class NotCollected(Exception):
    """A folder in the exchange that cannot be collected; `str()` says why."""


class CollectHandIns(ExchangeCollect):
    """Chooses among a student's submissions as nbgrader does, but copies them one at a time and follows no link."""

    src_records: list[dict[str, Any]]

    def init_src(self) -> None:
        """Finds each student's newest folder among those that are hand-ins."""
        self.read_settings()
        super().init_src()
        self.src_records = [record for record in self.src_records if record["username"]]

    def read_settings(self) -> None:
        """Find out who may be graded, and how the course writes times."""
        self._is_student = may_be_graded(self.coursedir)
        self._stamp_format = StampFormat.of_exchange(self)

    def _path_to_record(self, path: str) -> dict[str, Any]:
        """nbgrader's record of a folder; without a student if it is not a hand-in."""
        name = Path(path).name
        try:
            status = os.lstat(path)
            student, time = self._student_and_time(name, datetime.fromtimestamp(status.st_mtime, UTC))
            if not stat.S_ISDIR(status.st_mode):
                raise NotCollected("it is not a folder")
            self._refuse_others(path, student)
        except (NotCollected, OSError) as reason:
            self.log.error("Not collected: %s (%s).", ascii(name), _in_words(reason))
            return {"username": "", "filename": "", "timestamp": datetime.min}
        return {"username": student, "filename": name, "timestamp": time}

    def _student_and_time(self, name: str, changed: datetime) -> tuple[str, datetime]:
        """The student and time in a name STUDENT+ASSIGNMENT+TIME[+SECRET]; an id and a time may have a + in it.

        changed: when the folder was changed last, which helps where the zone in the name is unknown.
        """
        assignment = re.escape(self.coursedir.assignment_id)
        found = re.fullmatch(rf"(.+?)\+{assignment}\+({TIME})(?:\+[^+]*)?", name, re.DOTALL)
        if not found:
            raise NotCollected("its name is not STUDENT+ASSIGNMENT+TIME")
        time = time_near(os.fsencode(found[2]), changed.replace(tzinfo=None), self._stamp_format)
        if time is None:
            raise NotCollected("its name says no time")
        if not self._is_student(found[1]):
            raise NotCollected("its name is not a student's")
        return found[1], time

    def _refuse_others(self, path: str, student: str) -> None:
        if not self.check_owner:
            return
        owner = owner_name(os.lstat(path).st_uid)
        if owner != student:
            raise NotCollected(not_its_owners(student, owner))

    def copy_files(self) -> None:
        """Copies what is new; a folder that cannot be copied is named and skipped."""
        self.log.info(
            "Processing %d submissions of '%s' for course '%s'",
            len(self.src_records),
            self.coursedir.assignment_id,
            self.coursedir.course_id,
        )
        for record in self.src_records:
            try:
                self._collect(record)
            except (NotCollected, OSError) as reason:
                self.log.error("Not collected: %s (%s).", ascii(record["filename"]), _in_words(reason))

    def _collect(self, record: dict[str, Any]) -> None:
        student, unit = record["username"], self.coursedir.assignment_id
        there = Path(self.coursedir.format_path(self.coursedir.submitted_directory, student, unit))
        restore_folder(there)
        is_new = not os.path.lexists(there)
        if not is_new and not self._replaces(there, record["timestamp"]):
            also = "" if self.update else ", use --update to update"
            self.log.info("Submission already exists%s: %s %s", also, student, unit)
            return
        self.log.info("%s submission: %s %s", "Collecting" if is_new else "Updating", student, unit)
        there.parent.mkdir(parents=True, exist_ok=True)
        part = sibling(there, "part")
        if part.is_dir():  # from a killed run
            shutil.rmtree(part)
        part.mkdir()
        try:
            self._copy(Path(self.inbound_path) / record["filename"], part)
        except BaseException:
            shutil.rmtree(part)
            raise
        replace_folder(part, there)

    def _replaces(self, there: Path, handed_in: datetime) -> bool:
        """Whether a folder handed in at this time replaces the one that is there."""
        before = self.coursedir.get_existing_timestamp(str(there))
        if self.update:
            return before is None or handed_in > before
        return bool(self.before_duedate and before != handed_in)

    def _copy(self, source: Path, target: Path) -> None:
        """Copies a folder's regular files; raises NotCollected if it is larger than a submission may be."""
        room = self.coursedir.max_dir_size * _KILOBYTE
        top = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            entries = 0
            for place, folders, files, folder in os.fwalk(".", dir_fd=top, follow_symlinks=False):
                folders[:] = [name for name in folders if not self._is_ignored(name)]
                entries += len(folders) + len(files)
                if entries > _MOST_ENTRIES or len(Path(place).parts) > _DEEPEST:
                    raise NotCollected("it holds more files and folders than a submission does")
                (target / place).mkdir(exist_ok=True)
                if self.coursedir.groupshared:
                    (target / place).chmod(_SHARED_FOLDER)
                for name in files:
                    if not self._is_ignored(name):
                        room -= self._copy_file(name, folder, target / place / name, room)
        finally:
            os.close(top)

    def _copy_file(self, name: str, folder: int, target: Path, room: int) -> int:
        """Copies one file, if it is a regular one; returns its size."""
        try:
            opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        except OSError:  # a link, or not readable
            self.log.warning("Left out: %s", ascii(name))
            return 0
        with os.fdopen(opened, "rb") as file:
            status = os.fstat(opened)
            if not stat.S_ISREG(status.st_mode) or status.st_size > self.coursedir.max_file_size * _KILOBYTE:
                self.log.warning("Left out: %s", ascii(name))
                return 0
            size = 0
            with target.open("xb") as copy:
                while piece := file.read(min(_READ_AT_ONCE, room - size + 1)):
                    copy.write(piece)
                    size += len(piece)
                    if size > room:
                        raise NotCollected("its files are larger than a submission's may be")
        if self.coursedir.groupshared:
            target.chmod(_SHARED_FILE)
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
        return size

    def _is_ignored(self, name: str) -> bool:
        return any(fnmatch.fnmatch(name, pattern) for pattern in self.coursedir.ignore)


def owner_name(account: int) -> str:
    """The name of the account with this number."""
    try:
        return pwd.getpwuid(account).pw_name
    except KeyError:
        return "an account without a name"


def not_its_owners(student: str, owner: str) -> str:
    """Why a folder with a student's name is not collected from another owner."""
    return (
        f"it says it is from {ascii(student)[1:-1]} and belongs to {owner}; where accounts have other names than the "
        "students, set c.ExchangeCollect.check_owner = False"
    )


def _in_words(reason: BaseException) -> str:
    return str(reason) if isinstance(reason, NotCollected) else ascii(str(reason))[1:-1] or type(reason).__name__
