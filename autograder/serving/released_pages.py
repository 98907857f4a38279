"""Pages as students see them now: the feedback page, or before the due date as much of it as the instructor shows.

Before the due date a page has nothing that a student's own code returned or raised while hidden tests called it. In
these calls the code had the hidden inputs, and an error raised in one call can carry the inputs of another.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from functools import cache, cached_property
from pathlib import Path
from typing import Literal, NamedTuple

from .. import course, output_files
from ..classroom.assignment import Assignment
from ..classroom.student_folders import Autograded
from ..gradebook.class_gradebook import Times
from ..gradebook.lateness import exactly
from ..gradebook.time_stamp import StampFormat, in_zone
from ..report import NOT_WRITTEN, USES_WRONG, CellReport, ExerciseReport, Report
from ..reports.pages import environment, message_html
from ..student_check.unit_data import EXAMPLES, data_file, read_unit
from .arrivals import FileStatus
from .exchange import EVERYONE, Exchange
from .work_queue import to_minute

Show = Literal["check", "names", "all"]
"""Content of pages before the due date: verdicts on public examples, names of misconceptions, or the usual page."""
SHOWN = "shown"
"""Folder of the pages as students see them now; `feedback` has the usual pages, which they see after the due date."""
AGAIN_SECONDS = 5.0
"""Pause in seconds before another try to release a page, in the next poll after it."""
_BODY = re.compile(r"<body\b[^>]*>")
_OF_CELL = "Its cell could not be run."
_UNWRITTEN = f"{NOT_WRITTEN}."
_CHECK_SAYS = "Wrong on the public examples. The check in your notebook says more on them."
_NOT_RIGHT = "Not right yet; this is not a known mistake."
_OUR_FAULT = "One of our graders failed on this, which is our fault and not yours. Please tell your instructor."


class ReleasedPages:
    """Pages of one unit: in the folder that they are released from, and in the exchange."""

    def __init__(self, unit: str, root: Path, show: Show, exchange: Exchange) -> None:
        self._unit = unit
        self._root = root
        self._show = show
        self._exchange = exchange
        self._sources: dict[str, object] = {}
        """Fingerprint of the data that each student's page was made from."""
        self._again_at = 0.0
        self._unreleased = {EVERYONE}
        """Students whose page may not be released; at first all, because the last run may have ended before that."""

    def path(self, student: str) -> Path:
        """Return the path of a student's page."""
        return self._root / SHOWN / student / self._unit / f"{self._unit}.html"

    def forget(self, student: str) -> None:
        """Make the student's page again in the next update, because another grade was recorded."""
        self._sources.pop(student, None)

    def shows_all(self, times: Times | None) -> bool:
        """Return whether a student sees the usual page, points included."""
        return self._show == "all" or (times is not None and _is_due(times))

    def update(
        self, work: Assignment, usual: Callable[[str], Path], times: Mapping[str, Times], notices: Mapping[str, str]
    ) -> None:
        """Write the pages that have changed, and release them.

        usual: returns the path of a student's feedback page. notices: text for the top of a page, by student.
        """
        changed: set[str] = set()
        before_due = cache(lambda: (Autograded(work.directory, self._unit), StampFormat.of_course(work.directory).zone))
        for student, its_times in times.items():
            page, notice = usual(student), notices.get(student)
            status = FileStatus.of(page)
            source = status, _is_due(its_times), its_times, notice
            if status is None or source == self._sources.get(student):
                continue
            content = self._content(before_due, student, page, its_times, notice)
            path = self.path(student)
            if content is not None and (not path.is_file() or path.read_bytes() != content):
                self._unreleased.add(student)  # for the case that the next student's page raises an error
                changed.add(student)
                output_files.fill_folder(path.parent, {path.name: content}, page.stat().st_mode & 0o777)
            self._sources[student] = source
        self._release(changed)

    def _release(self, changed: set[str]) -> None:
        """Release these pages, and from time to time those that could not be released before."""
        self._unreleased |= changed
        students = self._unreleased if time.monotonic() >= self._again_at else changed
        if not students:
            return
        failed = self._exchange.release(self._unit, None if EVERYONE in students else sorted(students))
        self._unreleased = failed if EVERYONE in students else (self._unreleased - students) | failed
        if failed:
            self._again_at = time.monotonic() + AGAIN_SECONDS

    def _content(
        self,
        before_due: Callable[[], tuple[Autograded, tzinfo | None]],
        student: str,
        usual: Path,
        times: Times,
        notice: str | None,
    ) -> bytes | None:
        """Return the student's page; None if there is nothing to show yet.

        before_due: returns what only the page before the due date needs: the reports, and the class's time zone.
        """
        if self.shows_all(times):
            page = usual.read_bytes()
        else:
            autograded, zone = before_due()
            report = autograded.report(student)
            if report is None:
                return None
            page = limited(report, self._show, self._statements, times, zone)
        return page if notice is None else _with_notice(page, notice)

    @cached_property
    def _statements(self) -> dict[str, list[str]]:
        """Statements of each exercise's public examples, as the student check has them."""
        try:
            released = read_unit(course.released(self._unit, self._root).with_name(data_file(self._unit)))[EXAMPLES]
            return {
                name: [str(example["statement"]) for example in its.get("examples", []) if example.get("public")]
                for name, its in released.items()
            }
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}


class _Line(NamedTuple):
    """The part of a page about one exercise."""

    name: str
    sign: str
    says: Sequence[str]

    @property
    def verdict(self) -> tuple[str, str]:
        """The sign's class in the stylesheet, and the sign in words."""
        verdicts = {"✓": ("right", "passed"), "✗": ("wrong", "failed"), "!": ("warn", "our fault")}
        return verdicts.get(self.sign, ("neutral", "no verdict"))


def limited(
    report: Report,
    show: Show,
    statements: Mapping[str, Sequence[str]],
    times: Times,
    zone: tzinfo | None,
) -> bytes:
    """Return the page that a student sees before the due date.

    statements: of each exercise's public examples. zone: the class's time zone.
    """
    if show == "check":
        lines = [_by_check(exercise, statements.get(exercise.name, ()), report.cells) for exercise in report.exercises]
    else:
        lines = [_by_name(exercise, report) for exercise in report.exercises]
    page = (
        environment(Path(__file__).parent / "templates")
        .get_template("limited.html")
        .render(
            unit=report.unit,
            show=show,
            due=in_zone(times.due, zone) if times.due else "",
            extension=exactly(times.extension) if times.due else "",
            handed_in=to_minute(times.handed_in, zone) if times.handed_in else "",
            message=report.message,
            wrong=[line for line in lines if line.sign in "✗!"],
            others=[line for line in lines if line.sign not in "✗!"],
        )
    )
    return page.encode()


def _by_check(exercise: ExerciseReport, statements: Sequence[str], cells: Sequence[CellReport]) -> _Line:
    """Return a line that depends only on the public examples and on the exercise's cell."""
    public = [test for test in exercise.tests if test.public]
    failed = [test.message for test in public if test.outcome == "failed"]
    if failed and len(failed) == len(public) and exercise.message.startswith(NOT_WRITTEN):
        return _Line(exercise.name, "–", [_UNWRITTEN])
    if failed:
        wrong = [statement for statement in statements if any(message.startswith(statement) for message in failed)]
        return _Line(exercise.name, "✗", [_CHECK_SAYS, *wrong])
    if not public:
        return _Line(exercise.name, "–", ["It has no public examples."])
    if all(test.outcome in ("passed", "withheld") for test in public):
        return _Line(exercise.name, "✓", ["Right on the public examples."])
    return _Line(exercise.name, "–", [_of_cell(exercise, cells) or "Not all of the public examples were run."])


def _by_name(exercise: ExerciseReport, report: Report) -> _Line:
    """Return a line with the names of mistakes, without the hidden tests that detected them."""
    if exercise.status == "grader_error":
        return _Line(exercise.name, "!", [_OUR_FAULT])
    if exercise.score >= exercise.max_score:
        return _Line(exercise.name, "✓", ["Right."])
    named = exercise.mistake_messages
    of_cell = _of_cell(exercise, report.cells)
    return _Line(exercise.name, "✗", named or [of_cell or _in_our_words(exercise, report.exercises)])


def _of_cell(exercise: ExerciseReport, cells: Sequence[CellReport]) -> str:
    """Return why the exercise's cell did not run, from a message made before any hidden test ran; else ""."""
    if exercise.status == "missing":
        return exercise.message
    if exercise.status not in ("error", "timeout", "crashed"):
        return ""
    of_cells = {f"{_OF_CELL} {cell.message}" for cell in cells if cell.troubled}
    return exercise.message if exercise.message in of_cells else ""


def _in_our_words(exercise: ExerciseReport, others: Sequence[ExerciseReport]) -> str:
    """Return a message about a nameless mistake. For other statuses, the report's message may be a student's."""
    message = exercise.message
    if exercise.status in ("timeout", "crashed", "skipped", "forbidden"):
        return message or _NOT_RIGHT
    if message.startswith(USES_WRONG):
        used = [f"`{other.name}`" for other in others if f"`{other.name}`" in message]
        return f"{USES_WRONG} {' and '.join(used)}, which is not right yet: fix that first."
    return _UNWRITTEN if message.startswith(NOT_WRITTEN) else _NOT_RIGHT


def _with_notice(page: bytes, notice: str) -> bytes:
    box = f'<div role="status" class="note">{message_html(notice)}</div>'
    return _BODY.sub(lambda body: body[0] + box, page.decode(), count=1).encode()


def _is_due(times: Times) -> bool:
    return times.due is not None and times.due.replace(tzinfo=UTC) <= datetime.now(UTC)
