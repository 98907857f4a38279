"""nbgrader's exchange, as far as serving needs it: submissions are collected, and pages are released.

An index of the exchange's inbound folder determines whose folder is collected next. Each folder's name is parsed only
once. Only a student's newest few folders are opened, and students take turns. So a student who fills the inbound
folder delays nobody else.
"""

import contextlib
import glob
import logging
import os
import re
import stat
import time
from bisect import insort
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from nbgrader.exchange import ExchangeError
from sqlalchemy.exc import SQLAlchemyError

from ..gradebook.nbgrader_course import course_directory
from ..gradebook.roster import may_be_graded
from ..gradebook.time_stamp import TIMESTAMP, StampFormat, time_near
from ..nbgrader_plugin.exchange import TIME, CollectSubmissions, ReleaseFeedback, not_its_owners, owner_name
from ..nbgrader_plugin.guards import SECRET

NEWEST = 5
"""Maximum number of a student's folders that are opened in one round."""
_AGAIN_SECONDS = 0.1
_QUIET_SECONDS = 5.0
"""Seconds without a change after which a folder that nbgrader's `submit` did not finish is collected."""
_MOST_INSPECTED = 100  # files in a folder that is not finished


@dataclass(eq=False)
class Sender:
    """The folders in one student's name that one account has made for a unit."""

    unit: str
    student: str
    account: int
    folders: list[tuple[datetime, str]] = field(default_factory=list)
    """Times and names, the newest last."""
    settled: tuple[datetime, str] = (datetime.min, "")
    """The newest folder that is collected, or cannot be. Older ones no longer matter."""

    @property
    def newest(self) -> Sequence[tuple[datetime, str]]:
        """Return the newest few that may be collected, newest first."""
        return [its for its in reversed(self.folders[-NEWEST:]) if its > self.settled]

    @property
    def is_settled(self) -> bool:
        """Return whether all of the sender's folders are settled, so that nothing is left to collect."""
        return self.folders[-1] <= self.settled


class Inbound:
    """Index of the exchange's inbound folder."""

    def __init__(self, refuse: Callable[[str, int, str], None]) -> None:
        """refuse: called with name, account and reason for each entry that looks like a submission but is not."""
        self._refuse = refuse
        self._known: dict[str, Sender | None] = {}
        """Sender of every name in the folder; None if the name is not a submission's."""
        self._senders: dict[tuple[str, str, int], Sender] = {}

    def update(self, folder: Path, units: Iterable[str], stamps: StampFormat) -> None:
        """Parse the names that are new, and forget those that are gone. stamps: format of the course's time stamps."""
        try:
            with os.scandir(folder) as entries:
                names = {entry.name for entry in entries}
        except OSError:
            names = set()
        self._forget(self._known.keys() - names)
        known = "|".join(map(re.escape, units))
        pattern = re.compile(rf"(.+?)\+({known})\+({TIME})(?:\+[^+]*)?", re.DOTALL)
        for name in names - self._known.keys():
            match = pattern.fullmatch(name)
            self._known[name] = self._add(folder / name, match, stamps) if match else None

    def _add(self, path: Path, match: re.Match[str], stamps: StampFormat) -> Sender | None:
        """Add a folder with a submission's name to those of its sender; return None if it is no submission."""
        student, unit, time_text = match.groups()
        try:
            status = path.lstat()
        except OSError:
            return None
        changed = datetime.fromtimestamp(status.st_mtime, UTC).replace(tzinfo=None)
        moment = time_near(os.fsencode(time_text), changed, stamps)
        if moment is None or not stat.S_ISDIR(status.st_mode):
            why = "its name contains no valid time" if stat.S_ISDIR(status.st_mode) else "it is not a folder"
            self._refuse(path.name, status.st_uid, why)
            return None
        sender = self._senders.setdefault((unit, student, status.st_uid), Sender(unit, student, status.st_uid))
        insort(sender.folders, (moment, path.name))
        return sender

    def in_turns(self) -> list[Sender]:
        """Return the senders with something to collect, in turns."""
        return [sender for sender in self._senders.values() if not sender.is_settled]

    def next(self, folder: Path, sender: Sender) -> tuple[str, float]:
        """Return the newest of a sender's folders that is finished, or "", and the seconds until the next poll."""
        again = float("inf")
        for _, name in sender.newest:
            state = _state(folder / name)
            if state == "whole":
                return name, again
            if state == "unfinished":
                again = _AGAIN_SECONDS
        return "", again

    def refuse(self, sender: Sender, why: str) -> None:
        """Report all of a sender's folders, none of which may be collected, and settle them."""
        for its in sender.folders:
            if its > sender.settled:
                self._refuse(its[1], sender.account, why)
        sender.settled = sender.folders[-1]

    def settle(self, sender: Sender, name: str) -> None:
        """Inspect neither this folder nor an older one again: it is collected, or cannot be."""
        sender.settled = max(its for its in sender.folders if its[1] == name)
        key = sender.unit, sender.student, sender.account
        self._senders[key] = self._senders.pop(key)  # to the end: the others' turn comes first

    def _forget(self, names: Iterable[str]) -> None:
        changed = {id(sender): sender for name in names if (sender := self._known.pop(name))}
        for sender in changed.values():
            sender.folders = [its for its in sender.folders if its[1] in self._known]
            if not sender.folders:
                del self._senders[sender.unit, sender.student, sender.account]


def _state(folder: Path) -> str:
    """Return "whole", "unfinished" or "empty".

    A folder is whole if `submit` has taken its last step, which lets everyone write there, or if nothing in it has
    changed for a while. It is empty, and no submission, if it has no file.
    """
    try:
        status = folder.lstat()
    except OSError:
        return "empty"
    with contextlib.suppress(OSError):
        beside = [folder / TIMESTAMP, folder / SECRET]
        if status.st_mode & stat.S_IWOTH and all(path.lstat().st_size for path in beside):
            return "whole"
    changes = _changes_in(folder)
    if 0 <= time.time() - max([status.st_mtime, *(changes or ())]) < _QUIET_SECONDS:
        return "unfinished"
    return "empty" if changes == [] else "whole"


def _changes_in(folder: Path) -> list[float] | None:
    """Return the modification times of the first files in a folder; None if the folder cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return [entry.stat(follow_symlinks=False).st_mtime for entry in islice(entries, _MOST_INSPECTED)]
    except OSError:
        return None


FAILED_SECONDS = 10.0
"""Seconds after which a folder that could not be collected is tried again, for example after a full disk."""
AT_ONCE = 50
"""Maximum number of students' folders collected in one round, all of which are graded before the next round."""
MOST_NAMED = 20
"""Maximum number of one account's uncollectable folders that are reported by name."""
EVERYONE = "*"
"""nbgrader's pattern for all students."""


class _CollectFolders(CollectSubmissions):
    """Collects only those folders of the inbound folder that `folders` names."""

    folders: Collection[str]
    failed: set[str]

    def init_src(self) -> None:
        self.read_settings()
        self.inbound_path = str(Path(self.root) / self.coursedir.course_id / "inbound")
        records = [self._path_to_record(f"{self.inbound_path}/{name}") for name in self.folders]
        self.src_records = [record for record in records if record["username"]]

    def _collect(self, record: dict[str, Any]) -> None:
        try:
            super()._collect(record)
        except OSError:
            self.failed.add(record["filename"])
            raise


class Exchange:
    """nbgrader's exchange, at the place that the course's settings name. It need not exist."""

    def __init__(self, root: Path, pages: str, remark: Callable[[str], None]) -> None:
        """pages: name of the course's folder with the pages to release. remark: reports what could not be done."""
        self._root = root
        self._pages = pages
        self._log = logging.Logger("autograder.serving", logging.ERROR)
        self._log.addFilter(self._report)
        self._remark = remark
        self._inbound = Inbound(self._refuse)
        self._refused: dict[int, int] = {}
        """Number of folders that cannot be collected, by account."""

    @property
    def inbound(self) -> Path:
        """Folder in which students' folders arrive."""
        return self._course() / "inbound"

    def collect(self, units: Iterable[str], is_busy: Callable[[str, str], bool]) -> float:
        """Collect what has arrived: of each student the newest folder that is finished, students in turns.

        is_busy: returns whether a student's earlier submission in a unit is being graded; the later one waits.
        Returns the seconds until the next round is due; infinity if nothing is left.
        """
        directory = course_directory(self._root)
        folder = self.inbound
        self._inbound.update(folder, units, StampFormat.of_course(directory))
        chosen, again = self._choose(folder, directory, is_busy)
        for unit, senders in chosen.items():
            failed = self._collect(unit, senders)
            for name, sender in senders.items():
                if name in failed:
                    again = min(again, FAILED_SECONDS)
                else:
                    self._inbound.settle(sender, name)
        return again

    def _choose(
        self, folder: Path, directory: Any, is_busy: Callable[[str, str], bool]
    ) -> tuple[dict[str, dict[str, Sender]], float]:
        """Return the folders to collect now, by unit, each with its sender, and the seconds until the next round."""
        chosen: dict[str, dict[str, Sender]] = {}
        again = float("inf")
        senders = self._inbound.in_turns()
        if not senders:
            return chosen, again
        settings = CollectSubmissions(coursedir=directory, config=directory.config)
        is_student = may_be_graded(directory)
        for sender in senders:
            owner = owner_name(sender.account)
            if sum(map(len, chosen.values())) == AT_ONCE:
                return chosen, 0.0
            if not is_student(sender.student):
                self._inbound.refuse(sender, "its name is not a student's")
            elif settings.check_owner and owner != sender.student:
                self._inbound.refuse(sender, not_its_owners(sender.student, owner))
            elif not is_busy(sender.unit, sender.student):
                name, seconds = self._inbound.next(folder, sender)
                again = min(again, seconds)
                if name:
                    chosen.setdefault(sender.unit, {})[name] = sender
        return chosen, again

    def _report(self, record: logging.LogRecord) -> bool:
        """Report a complaint of nbgrader's exchange; return False, so that it is logged nowhere else."""
        if "Not released" not in record.getMessage():  # that submission came by another way
            self._remark(record.getMessage())
        return False

    def _refuse(self, name: str, account: int, why: str) -> None:
        """Report a folder that cannot be collected; of one account's many folders only the first ones."""
        count = self._refused[account] = self._refused.get(account, 0) + 1
        if count <= MOST_NAMED:
            self._log.error("Not collected: %s (%s).", ascii(name), why)
        elif count == MOST_NAMED + 1:
            self._log.error(
                "Not collected: more folders of %s in the exchange, which are not named.", owner_name(account)
            )

    def _collect(self, unit: str, folders: Collection[str]) -> set[str]:
        """Collect these folders; return the names of those that could not be collected."""
        step = self._step(_CollectFolders, unit, EVERYONE, update=True)
        step.folders, step.failed = folders, set()
        return step.failed if self._run(step) else set(folders)

    def release(self, unit: str, students: Iterable[str] | None = None) -> set[str]:
        """Release the pages of these students, or of all, who submitted through the exchange.

        Returns the students whose page has to be released again; "*" for all.
        """
        names = [EVERYONE] if students is None else list(students)
        if not self._course().is_dir():
            return set(names)
        directory = course_directory(self._root)
        failed = set()
        for student in names:
            submission = Path(directory.format_path(directory.submitted_directory, student, unit))
            has_page = student == EVERYONE or (submission / SECRET).is_file()
            if has_page and not self._run(self._step(ReleaseFeedback, unit, student)):
                failed.add(student)
        return failed

    def _course(self) -> Path:
        directory = course_directory(self._root)
        exchange = CollectSubmissions(coursedir=directory, config=directory.config)
        return Path(str(exchange.root)) / str(directory.course_id)

    def _step(self, kind: type[Any], unit: str, student: str, **settings: Any) -> Any:
        """Return one of nbgrader's exchange programs, such as `collect`, for a unit and a student."""
        directory = course_directory(self._root, feedback=Path(self._pages))
        directory.assignment_id = unit
        directory.student_id = student if student == EVERYONE else glob.escape(student)
        return kind(coursedir=directory, config=directory.config, log=self._log, **settings)

    def _run(self, step: Any) -> bool:
        """Run one of nbgrader's exchange programs. Return whether it succeeded; report why if not."""
        try:
            step.start()
        except (ExchangeError, OSError, SQLAlchemyError) as error:  # the gradebook lists the students
            self._remark(f"The exchange {step.root} cannot be used: {error}.")
            return False
        return True
