"""nbgrader's exchange, as far as serving needs it: submissions are collected, and pages are released."""

import glob
import logging
from collections.abc import Callable, Collection, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from nbgrader.exchange import ExchangeError
from sqlalchemy.exc import SQLAlchemyError

from ..gradebook.course_directory import course_directory
from ..gradebook.extensions import due_dates
from ..gradebook.roster import may_be_graded
from ..gradebook.time_stamp import StampFormat
from ..nbgrader_plugin.exchange import CollectSubmissions, ReleaseFeedback, not_its_owners, owner_name
from ..nbgrader_plugin.guards import SECRET
from .inbound import Inbound, Sender

FAILED_SECONDS = 10.0
"""Pause in seconds before a folder that could not be collected is tried again, for example after a full disk."""
AT_ONCE = 50
"""Maximum number of students' folders collected in one round, all of which are graded before the next round."""
MOST_NAMED = 20
"""Maximum number of one account's uncollectable folders that are reported by name."""
_NEVER = float("inf")
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
        folder = self.inbound
        self._inbound.update(folder, units)
        chosen, again = self._choose(folder, is_busy)
        for unit, senders in chosen.items():
            failed = self._collect(unit, senders)
            for name, sender in senders.items():
                if name in failed:
                    self._inbound.postpone(name, FAILED_SECONDS)
                    again = min(again, FAILED_SECONDS)
                else:
                    self._inbound.settle(sender, name)
        return again

    def _choose(self, folder: Path, is_busy: Callable[[str, str], bool]) -> tuple[dict[str, dict[str, Sender]], float]:
        """Return the folders to collect now, by unit, each with its sender, and the seconds until the next round."""
        chosen: dict[str, dict[str, Sender]] = {}
        again = _NEVER
        senders = self._inbound.in_turns()
        if not senders:
            return chosen, again
        directory = course_directory(self._root)
        settings = CollectSubmissions(coursedir=directory, config=directory.config)
        is_student = may_be_graded(directory)
        stamps = StampFormat.of_course(directory)
        of_unit = cache(lambda unit: due_dates(directory, unit) if settings.before_duedate else lambda student: None)
        for sender in senders:
            owner = owner_name(sender.account)
            if sum(map(len, chosen.values())) == AT_ONCE:
                return chosen, 0.0
            if not is_student(sender.student):
                self._inbound.refuse(sender, "its name is not a student's")
            elif settings.check_owner and owner != sender.student:
                self._inbound.refuse(sender, not_its_owners(sender.student, owner))
            elif not is_busy(sender.unit, sender.student):
                name, seconds = self._inbound.next(folder, sender, of_unit(sender.unit)(sender.student), stamps)
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
