"""nbgrader's `release_assignment`; and its `collect` and `release_feedback`, for an exchange into which students write.

nbgrader's `collect` follows links, so a student's folder in the exchange can bring in every file that the instructor
may read. One folder with an odd name, or one that is too large, ends the run for the whole class. It trusts the
student's name in the folder's name, regardless of the folder's owner. Its `release_feedback` ends for the whole class
if one student's time or secret is missing or is not text.
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

from nbgrader.exchange.default import ExchangeCollect, ExchangeReleaseAssignment, ExchangeReleaseFeedback
from nbgrader.utils import notebook_hash

from ..course.submitted_files import NotAFile, file_at, new_folder, replace_folder, restore_folder
from ..gradebook.lateness import due_dates
from ..gradebook.nbgrader_course import KILOBYTE
from ..gradebook.roster import may_be_graded
from ..gradebook.time_stamp import StampFormat, in_zone, time_near
from .guards import SECRET, paths_like, read_beside

TIME = r"[^+]+(?:(?<=[ \d])\+\d\d(?::?\d\d)?(?=\+|$))?"
"""Regular expression for the time in the name of a folder in the exchange: its zone may be called `+0530`."""
_MOST_ENTRIES = 1_000
_DEEPEST = 20
_READ_AT_ONCE = 1 << 20
_SHARED_FOLDER, _SHARED_FILE = 0o2775, 0o664
_README = "README.md"
_OWN_DATE = "If your instructor has given you more time, your own date counts."


class ReleaseUnit(ExchangeReleaseAssignment):
    """Releases a unit with its due date in the README. Only the class knows the date, so `release/` has none."""

    def do_copy(self, src: str, dest: str, log: Any = None) -> None:
        """Copy the released folder to the exchange, and insert the due date below the title of its README."""
        super().do_copy(src, dest, log)
        due = due_dates(self.coursedir, self.coursedir.assignment_id)("")
        if due is None:
            return
        readme = Path(dest) / _README
        title, _, rest = (readme.read_text() if readme.exists() else "").partition("\n")
        sentence = f"**Due: {in_zone(due, StampFormat.of_exchange(self).zone)}.** {_OWN_DATE}"
        readme.unlink(missing_ok=True)  # the copy may be read-only
        readme.write_text(f"{title}\n\n{sentence}\n{rest}".lstrip("\n"))


class NotCollected(Exception):
    """Raised if a folder in the exchange cannot be collected; `str()` says why."""


class CollectSubmissions(ExchangeCollect):
    """Chooses among a student's submissions as nbgrader does, but copies them one at a time and follows no link.

    It reports anything that is not a submission, leaves it where it is, and collects the rest. A collected folder is
    replaced only by a complete one.
    """

    src_records: list[dict[str, Any]]

    def init_src(self) -> None:
        """Find each student's newest folder among those that are submissions."""
        self.read_settings()
        if self.before_duedate:
            self._due_dates = due_dates(self.coursedir, self.coursedir.assignment_id)
        super().init_src()
        self.src_records = [record for record in self.src_records if record["username"]]

    def _sort_by_timestamp(self, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return a student's folders, the newest first; with `before_duedate` only the one to collect.

        nbgrader itself does not count extensions.
        """
        newest_first: list[dict[str, Any]] = super()._sort_by_timestamp(records)
        due = self._due_dates(newest_first[0]["username"]) if self.before_duedate else None
        in_time = [record for record in newest_first if due is None or record["timestamp"] <= due]
        return newest_first if due is None else (in_time or newest_first)[:1]

    def read_settings(self) -> None:
        """Find out who may be graded, and how the course writes times."""
        self._is_student = may_be_graded(self.coursedir)
        self._stamp_format = StampFormat.of_exchange(self)

    def _path_to_record(self, path: str) -> dict[str, Any]:
        """Return nbgrader's record of a folder; without a student if the folder is not a submission."""
        name = Path(path).name
        try:
            status = os.lstat(path)
            student, time = self._student_and_time(name, datetime.fromtimestamp(status.st_mtime, UTC))
            if not stat.S_ISDIR(status.st_mode):
                raise NotCollected("it is not a folder")
            owner = owner_name(status.st_uid)
            if self.check_owner and owner != student:
                raise NotCollected(not_its_owners(student, owner))
        except (NotCollected, OSError) as reason:
            self.log.error("Not collected: %s (%s).", ascii(name), _in_words(reason))
            return {"username": "", "filename": "", "timestamp": datetime.min}
        return {"username": student, "filename": name, "timestamp": time}

    def _student_and_time(self, name: str, changed: datetime) -> tuple[str, datetime]:
        """Parse a name STUDENT+ASSIGNMENT+TIME[+SECRET]; an id and a time may have a + in it.

        changed: when the folder was changed last, which helps if the zone in the name is unknown.
        """
        assignment = re.escape(self.coursedir.assignment_id)
        match = re.fullmatch(rf"(.+?)\+{assignment}\+({TIME})(?:\+[^+]*)?", name, re.DOTALL)
        if not match:
            raise NotCollected("its name is not STUDENT+ASSIGNMENT+TIME")
        time = time_near(os.fsencode(match[2]), changed.replace(tzinfo=None), self._stamp_format)
        if time is None:
            raise NotCollected("its name contains no valid time")
        if not self._is_student(match[1]):
            raise NotCollected("its name is not a student's")
        return match[1], time

    def copy_files(self) -> None:
        """Copy new folders; report and skip a folder that cannot be copied."""
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
        target = Path(self.coursedir.format_path(self.coursedir.submitted_directory, student, unit))
        restore_folder(target)
        is_new = not os.path.lexists(target)
        if not is_new and not self._replaces(target, record["timestamp"]):
            also = "" if self.update else ", use --update to update"
            self.log.info("Submission already exists%s: %s %s", also, student, unit)
            return
        self.log.info("%s submission: %s %s", "Collecting" if is_new else "Updating", student, unit)
        with new_folder(target) as part:
            self._copy(Path(self.inbound_path) / record["filename"], part)
            replace_folder(part, target)

    def _replaces(self, target: Path, submitted: datetime) -> bool:
        """Return whether a folder submitted at this time replaces the collected one."""
        before = self.coursedir.get_existing_timestamp(str(target))
        if self.update:
            return before is None or submitted > before
        return bool(self.before_duedate and before != submitted)

    def _copy(self, source: Path, target: Path) -> None:
        """Copy a folder's regular files. Raises NotCollected if it is larger than a submission may be."""
        room = self.coursedir.max_dir_size * KILOBYTE
        top = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            entries = 0
            for place, folders, files, folder in os.fwalk(".", dir_fd=top, follow_symlinks=False):
                folders[:] = [name for name in folders if not self._is_ignored(name)]
                entries += len(folders) + len(files)
                if entries > _MOST_ENTRIES or len(Path(place).parts) > _DEEPEST:
                    raise NotCollected("it contains more files and folders than a submission may have")
                (target / place).mkdir(exist_ok=True)
                if self.coursedir.groupshared:
                    (target / place).chmod(_SHARED_FOLDER)
                for name in files:
                    if not self._is_ignored(name):
                        room -= self._copy_file(name, folder, target / place / name, room)
        finally:
            os.close(top)

    def _copy_file(self, name: str, folder: int, target: Path, room: int) -> int:
        """Copy one file, if it is a regular file, and return its size in bytes."""
        try:
            file = file_at(name, folder)
        except (NotAFile, OSError):  # OSError: not readable
            self.log.warning("Left out: %s", ascii(name))
            return 0
        with file:
            status = os.fstat(file.fileno())
            if status.st_size > self.coursedir.max_file_size * KILOBYTE:
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
    """Return the name of the system's account with this user id."""
    try:
        return pwd.getpwuid(account).pw_name
    except KeyError:
        return "an account without a name"


def not_its_owners(student: str, owner: str) -> str:
    """Return a message on a folder that names a student but belongs to another account, and so is not collected."""
    return (
        f"its name says that it is from {ascii(student)[1:-1]}, but it belongs to {owner}; if accounts have "
        "other names "
        "than the students, set c.ExchangeCollect.check_owner = False"
    )


def _in_words(reason: BaseException) -> str:
    return str(reason) if isinstance(reason, NotCollected) else ascii(str(reason))[1:-1] or type(reason).__name__


class ReleaseFeedback(ExchangeReleaseFeedback):
    """Releases the pages of everyone whose submission came through the exchange, and reports the others.

    A student may have changed or deleted any file next to the submission. nbgrader looks for the secret next to the
    page, where `autograder grade` does not put it.
    """

    def copy_files(self) -> None:
        left_out = set((self.coursedir.student_id_exclude or "").split(","))
        for page in sorted(map(Path, paths_like(f"{self.src_path}/*.html"))):  # for everyone
            student = self._student(page)
            if student in left_out:
                continue
            secret = self._secret(page.parent, student)
            if secret is None:
                self.log.error("Not released: %s (no %s was submitted).", ascii(student)[1:-1], SECRET)
                continue
            released = Path(self.dest_path) / f"{notebook_hash(secret=secret, notebook_id=page.stem)}.html"
            part = released.with_name(f"{released.stem}-tmp.html")
            shutil.copy(page, part)
            part.replace(released)
            self.log.info("Feedback released for student '%s' to: %s", ascii(student)[1:-1], released)

    def _student(self, page: Path) -> str:
        pattern = self.coursedir.format_path(
            self.coursedir.feedback_directory, "(?P<student>.*)", self.coursedir.assignment_id, escape=True
        )
        match = re.fullmatch(pattern, str(page.parent), re.DOTALL)
        return match["student"] if match else ""

    def _secret(self, page_folder: Path, student: str) -> str | None:
        """Return the secret by which the student finds the page; None if there is none."""
        coursedir = self.coursedir
        submitted = coursedir.format_path(coursedir.submitted_directory, student, coursedir.assignment_id)
        contents = (read_beside(folder, SECRET) for folder in (page_folder, Path(submitted)))
        return next((content.decode() for content in contents if content and content.isascii()), None)
