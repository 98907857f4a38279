"""nbgrader's exchange, as far as serving needs it: what has arrived is collected, and pages are released."""

import glob
import logging
import time
from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.exchange import ExchangeError
from sqlalchemy.exc import SQLAlchemyError

from ..gradebook.course_directory import course_directory
from ..gradebook.roster import may_be_graded
from ..gradebook.time_stamp import StampFormat
from ..nbgrader_plugin.exchange import CollectHandIns, ReleaseFeedback, not_its_owners, owner_name
from ..nbgrader_plugin.guards import SECRET
from .inbound import Inbound, Sender

_FAILED_SECONDS, _LONGEST_FAILED_SECONDS = 2.0, 60.0
"""A folder that could not be collected, as when the disk was full, is tried again after so long, then twice that."""
_AT_ONCE = 50
"""Number of students' folders collected in one round. The collected submissions are graded before the next round."""
_MOST_NAMED = 20
"""Number of one account's uncollectable folders that are reported by name."""
EVERYONE = "*"
"""In the place of a student."""


class _CollectFolders(CollectHandIns):
    """Collects these folders, and looks at no other."""

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
    """The exchange of a course's settings, if it is there."""

    def __init__(self, root: Path, shown: str, remark: Callable[[str], None]) -> None:
        """shown: the course's folder with the pages to release. remark: says what could not be done."""
        self._root = root
        self._shown = shown
        self._log = logging.Logger("autograder.serving")
        self._log.addHandler(_Telling(remark))
        self._remark = remark
        self._inbound = Inbound(self._refuse)
        self._later: dict[str, tuple[float, float]] = {}
        """What could not be collected: when it is tried again, and after how many seconds."""
        self._refused: dict[int, int] = {}
        """By account, how many of its folders cannot be collected."""

    @property
    def inbound(self) -> Path:
        """Where students' folders arrive."""
        return self._course() / "inbound"

    def collect(self, units: Iterable[str], is_busy: Callable[[str, str], bool]) -> float | None:
        """Collect what has arrived: of each student the newest folder that is finished, students in turns.

        is_busy: whether an earlier submission of a student's in a unit is being graded; the later one waits.
        Returns in how many seconds to look again, if something is left or has arrived in part.
        """
        folder = self.inbound
        self._inbound.update(folder, units)
        self._later = {name: its for name, its in self._later.items() if self._inbound.has(name)}
        try:
            chosen, again = self._choose(folder, is_busy)
        except SQLAlchemyError as error:
            self._remark(f"The exchange {folder} cannot be used: {error}.")
            return _FAILED_SECONDS
        for unit, folders in chosen.items():
            failed = self._collect(unit, folders)
            for name, sender in folders.items():
                if name in failed:
                    seconds = min(2 * self._later.get(name, (0.0, _FAILED_SECONDS / 2))[1], _LONGEST_FAILED_SECONDS)
                    self._later[name] = time.monotonic() + seconds, seconds
                else:
                    self._inbound.settle(sender, name)
        now = time.monotonic()
        moments = [max(0.0, moment - now) for moment, _ in self._later.values()]
        return again if (again := min([again, *moments])) < float("inf") else None

    def _choose(self, folder: Path, is_busy: Callable[[str, str], bool]) -> tuple[dict[str, dict[str, Sender]], float]:
        """Return by unit the folders to collect now, with their senders, and in how many seconds to look again."""
        chosen: dict[str, dict[str, Sender]] = {}
        again: float = float("inf")
        rules = _Rules(self._root)
        written = StampFormat.of_course(course_directory(self._root))
        for sender in self._inbound.in_turns():
            if sum(map(len, chosen.values())) == _AT_ONCE:
                again = 0.0
                break
            if why := rules.refuse(sender):
                self._inbound.refuse(sender, why)
            elif not is_busy(sender.unit, sender.student):
                name, seconds = self._inbound.next(folder, sender, rules.due(sender.unit), self._waits, written)
                again = min(again, seconds)
                if name:
                    chosen.setdefault(sender.unit, {})[name] = sender
        return chosen, again

    def _waits(self, name: str) -> bool:
        """Return whether a folder could not be collected and its next attempt is not due yet."""
        return self._later.get(name, (0.0, 0.0))[0] > time.monotonic()

    def _refuse(self, name: str, account: int, why: str) -> None:
        """Report a folder that cannot be collected; of one account's many folders only the first ones."""
        count = self._refused[account] = self._refused.get(account, 0) + 1
        if count <= _MOST_NAMED:
            self._log.error("Not collected: %s (%s).", ascii(name), why)
        elif count == _MOST_NAMED + 1:
            self._log.error(
                "Not collected: more folders of %s in the exchange, which are not named.", owner_name(account)
            )

    def _collect(self, unit: str, folders: Collection[str]) -> set[str]:
        """Collect these folders; the names of those that it failed for."""
        doing = self._made(_CollectFolders, unit, EVERYONE, update=True)
        doing.folders, doing.failed = folders, set()
        return doing.failed if self._do(doing) else set(folders)

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


class _Rules:
    """Rules of the course's settings for collecting folders: permitted students and due dates.

    They are read once a round, if anything has arrived.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._due: dict[str, datetime | None] = {}

    @cached_property
    def _directory(self) -> Any:
        return course_directory(self._root)

    @cached_property
    def _settings(self) -> CollectHandIns:
        return CollectHandIns(coursedir=self._directory, config=self._directory.config)

    @cached_property
    def _is_student(self) -> Callable[[str], bool]:
        return may_be_graded(self._directory)

    def refuse(self, sender: Sender) -> str:
        """Return why none of a sender's folders is collected; empty if they are."""
        if not self._is_student(sender.student):
            return "its name is not a student's"
        owner = owner_name(sender.account)
        if self._settings.check_owner and owner != sender.student:
            return not_its_owners(sender.student, owner)
        return ""

    def due(self, unit: str) -> datetime | None:
        """The due date, where the settings say that what came later does not count if anything came by then."""
        if not self._settings.before_duedate:
            return None
        if unit not in self._due:
            with Gradebook(self._directory.db_url, self._directory.course_id) as gradebook:
                try:
                    self._due[unit] = gradebook.find_assignment(unit).duedate
                except MissingEntry:
                    self._due[unit] = None
        return self._due[unit]


class _Telling(logging.Handler):
    """Hands on what nbgrader's exchange complains of."""

    def __init__(self, remark: Callable[[str], None]) -> None:
        super().__init__(logging.ERROR)
        self._tell = remark

    def emit(self, record: logging.LogRecord) -> None:
        if "Not released" not in record.getMessage():  # it came some other way
            self._tell(record.getMessage())
