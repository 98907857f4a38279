"""One unit of a course that is served: new submissions are graded, recorded, and their pages shown to the students.

All lasting state is in the gradebook and the files. What is held here in memory only makes a poll of the class cheap.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from ..classroom.assignment import Assignment, GradedSubmission, NotGraded, NothingToGrade, assignment
from ..classroom.student_folders import Autograded, FeedbackPages, Submission
from ..classroom.writer import Writer
from ..course import content
from ..course.notebook import printable
from ..course.settings import Settings
from ..formatting.client import Formatter
from ..gradebook.class_gradebook import ClassGradebook, Times
from ..gradebook.nbgrader_course import course_directory, course_lock, explained_errors
from ..gradebook.time_stamp import StampFormat
from ..pool.requests import Device
from ..report import NOT_WRITTEN, Report, SubmissionStatus, joined
from .arrivals import STILL_SECONDS, FileFingerprint, ReceivedSubmission
from .exchange import Exchange
from .released_pages import ReleasedPages, Show
from .work_queue import TRIES, GradingThreads, Wait, wait

_NOT_AGAIN = (
    f"Grading was tried {TRIES} times. It is tried again only if your instructor starts it or you submit another "
    "version."
)
OPEN_SECONDS = 5.0
KIT_SECONDS = 2.0
"""Minimum time between two computations of the autograder's digest, which reveals a change of it, in seconds."""
_NEVER = float("inf")


class KitChanged(Exception):
    """The course, its settings or the engine have changed since serving began."""


@dataclass(frozen=True)
class ServeOptions:
    """Options of `autograder serve`."""

    root: Path
    device: Device
    settings: Settings
    attempts: int | None = None
    """Number of a student's files in a unit that are graded in any hour; None for no limit."""
    show: Show = "all"
    roster: Path | None = None
    id_column: str | None = None
    unlisted: bool = False
    """True if requests may submit for ids that are not on the roster."""


class Served(msgspec.Struct, frozen=True):
    """Outcome of one submission."""

    time: datetime
    unit: str
    student: str
    status: SubmissionStatus | Literal["waits"]
    """waits: too many of the student's files were graded in the last hour, or could not be graded."""
    score: float = 0.0
    """Points from hidden tests."""
    max_score: float = 0.0
    seconds: float = 0.0
    """Time from when `serve` noticed the submission until its page was there."""
    waits_until: datetime | None = None
    not_written: list[str] = []
    """Exercises in whose cells nothing is written."""
    problem: str = ""
    """Reason why the grade could not be recorded; empty if it was."""
    time_stamp: str = ""
    """Text of the time stamp if it does not determine a time, so that lateness is unknown; else empty."""


@dataclass(frozen=True)
class _NewFile:
    submission: Submission
    fingerprint: FileFingerprint


@dataclass(eq=False)
class ServedUnit:
    """State of one unit, which the serving thread brings up to date step by step."""

    name: str
    _options: ServeOptions
    _threads: GradingThreads
    _formatter: Formatter
    _exchange: Exchange
    _on_outcome: Callable[[Served], None]
    """Called with each submission that is graded, or has to wait."""
    _kit_read_at: float = 0.0
    _usual_pages: FeedbackPages | None = None
    _work: Assignment | None = None
    _gradebook: ClassGradebook | None = None
    _opened_at: float = 0.0
    _wakes_at: float = _NEVER

    def __post_init__(self) -> None:
        root = self._options.root
        self._kit = content.unit_digest(self.name, root)
        self._pages = ReleasedPages(self.name, root, self._options.show, self._exchange)
        self._failed: dict[str, list[float]] = {}
        """Times at which a file got no grade, by student."""
        self._given_up: dict[str, NotGraded] = {}
        """Files that got no grade, by student."""
        self._times: dict[str, Times] = {}
        self._graded: list[GradedSubmission] = []
        """Submissions that are to be recorded in the next step."""
        self._outcomes: list[Served] = []
        """Recorded submissions whose pages are not there yet."""
        self._finished: dict[str, FileFingerprint] = {}
        """Files that need nothing more, by student."""
        self._warnings: dict[str, str] = {}
        """Warnings about unreadable files of a student's group, by student, as last noticed."""
        self._outranked: dict[str, FileFingerprint] = {}
        """Files that do not count because another file of the student's group does, by student."""
        self._in_progress: dict[str, FileFingerprint] = {}
        self._waiting: dict[str, tuple[FileFingerprint, Wait]] = {}
        self._noticed_at: dict[str, float] = {}
        self._unrecorded: set[str] = set()
        """Students whose grade could not be recorded."""

    def prepare(self) -> None:
        """Create the exporter that all feedback pages share."""
        directory = course_directory(self._options.root)
        self._usual_pages = FeedbackPages(directory, self.name, self._formatter)

    @property
    def refused(self) -> list[NotGraded]:
        """Folders and students that cannot be graded, and submissions that are not tried again."""
        return [*(self._work.refused if self._work else ()), *self._given_up.values()]

    def is_busy(self, student: str) -> bool:
        """Return whether a submission of the student's is being graded."""
        return student in self._in_progress

    def add(self, graded: GradedSubmission) -> None:
        """Accept a graded submission, which the next step records."""
        self._graded.append(graded)

    def outcome(self, about: ReceivedSubmission, fingerprint: FileFingerprint) -> ReceivedSubmission:
        """Return what became of a file, as far as the student may know; `about` if it is still to be graded."""
        student = about.student
        if self._outranked.get(student) == fingerprint:
            return msgspec.structs.replace(about, status="replaced")
        searched, waits = self._waiting.get(student, (None, None))
        if waits and searched == fingerprint:
            return msgspec.structs.replace(about, status="waits", waits_until=waits.until)
        if self._finished.get(student) != fingerprint or self._work is None:
            return about
        if student in self._unrecorded:
            return msgspec.structs.replace(about, status="not_recorded")
        try:
            page = self._pages.path(student).read_text()
        except OSError:
            return about
        score = most = None
        report = Autograded(self._work.directory, self.name).report(student)
        if report and self._pages.shows_all(self._times.get(student)):
            score, most = report.score, float(self._work.unit.max_score)
        return msgspec.structs.replace(about, status="marked", page=page, score=score, max_score=most)

    def step(self, *, look: bool, everything: bool) -> float:
        """Record what is graded and queue new files; return the seconds until the next step is due at the latest.

        look: poll for new files. everything: poll also what other programs may have changed.
        Raises AlreadyLocked, CourseProblem, KitChanged, and what `assignment` raises; then nothing is lost.
        """
        everything = everything or time.time() >= self._wakes_at
        again = _NEVER
        new: list[_NewFile] = []
        options = self._options
        if look or self._work is None:
            try:
                self._work = assignment(self.name, options.root, None, options.roster, options.id_column)
            except NothingToGrade:  # nobody is in the class yet
                return again
            new, again = self._new_files(self._work)
        if new or everything:
            self._refuse_another_kit()
        if new or everything or self._graded:
            with course_lock(options.root), explained_errors(options.root), self._opened(self._work) as gradebook:
                self._step(self._work, gradebook, new, everything=everything)
        now = time.time()
        moments = [waits.until.timestamp() for _, waits in self._waiting.values()]
        moments += [its.due.replace(tzinfo=UTC).timestamp() for its in self._times.values() if its.due]
        self._wakes_at = min((moment for moment in moments if moment > now), default=_NEVER)
        return min(again, self._wakes_at - now)

    @contextmanager
    def _opened(self, work: Assignment) -> Iterator[ClassGradebook]:
        """Open the gradebook unless it was opened a moment ago, because opening takes longer than recording a grade."""
        if self._gradebook is None or time.monotonic() - self._opened_at > OPEN_SECONDS:
            self.close()
            self._gradebook, self._opened_at = ClassGradebook(work.directory, self.name), time.monotonic()
        try:
            yield self._gradebook
            self._gradebook.commit()  # ends what was begun for reading
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the gradebook, if it is open."""
        if self._gradebook is not None:
            self._gradebook.close()
            self._gradebook = None

    def _refuse_another_kit(self) -> None:
        if time.monotonic() - self._kit_read_at < KIT_SECONDS:
            return
        self._kit_read_at = time.monotonic()
        if content.current_unit_digest(self.name, self._options.root) != self._kit:
            raise KitChanged

    def _new_files(self, work: Assignment) -> tuple[list[_NewFile], float]:
        """Return the files that have changed, and the seconds until one that is being written may be complete."""
        new: list[_NewFile] = []
        again = _NEVER
        self._outranked = {
            member.student: FileFingerprint.of(work.submitted / member.student / self.name, f"{self.name}.ipynb")
            for member in work.submissions
            if member.author
        }
        for submission in work.submissions:
            student = submission.student
            if submission.notebook is None or student in self._in_progress:
                continue
            fingerprint = FileFingerprint.of(work.submitted / submission.folder / self.name, submission.notebook)
            if submission.warning != self._warnings.get(student, ""):
                self._warnings[student] = submission.warning
                self._finished.pop(student, None)
            waiting, waits = self._waiting.get(student, (None, None))
            if self._finished.get(student) == fingerprint or (waiting == fingerprint and waits and not waits.is_over):
                continue
            if fingerprint.may_be_unfinished:
                again = min(again, STILL_SECONDS)
                continue
            self._noticed_at.setdefault(student, time.monotonic())
            new.append(_NewFile(submission, fingerprint))
        return new, again

    def _step(self, work: Assignment, gradebook: ClassGradebook, new: list[_NewFile], *, everything: bool) -> None:
        if new:
            gradebook.enrol(work.students)
        assert self._usual_pages is not None  # since `prepare`
        options = self._options
        writer = Writer(work, gradebook, self._usual_pages, options.device, options.settings, for_students=True)
        while self._graded:
            self._record(work, gradebook, writer, self._graded[0])
            del self._graded[0]
        # The largest file last, so that no other file waits for its long inspection.
        for file in sorted(new, key=lambda its: its.fingerprint.size):
            if self._admit(gradebook, writer, file):
                self._in_progress[file.submission.student] = file.fingerprint
                self._threads.put(work, file.submission)
        self._times = gradebook.times()
        if everything:  # a due date, an extension, the penalty's settings or an exercise's points may be new
            for student in gradebook.late_or_penalised(self._times) | gradebook.counted_otherwise():
                writer.update(student)
        notices = {student: waits.notice for student, (_, waits) in self._waiting.items()}
        self._pages.update(work, writer.page, self._times, notices)
        while self._outcomes:
            outcome = self._outcomes.pop(0)
            seconds = time.monotonic() - self._noticed_at.pop(outcome.student, time.monotonic())
            self._on_outcome(msgspec.structs.replace(outcome, seconds=round(seconds, 3), time=_now()))

    def _record(self, work: Assignment, gradebook: ClassGradebook, writer: Writer, graded: GradedSubmission) -> None:
        """Record a grade, unless `autograder grade` has been faster."""
        student = graded.submission.student
        if graded.report.repairs_searched:
            self._record_findings(work, writer, graded)
            return
        if writer.leave_alone(graded.submission):
            self._noticed_at.pop(student, None)
        else:
            report = self._counted(student, graded.report)
            problem = writer.record(replace(graded, report=report))
            (self._unrecorded.add if problem else self._unrecorded.discard)(student)
            self._add_outcome(work, report, student, problem, graded.stamp)
        self._finished[student] = self._in_progress.pop(student)

    def _counted(self, student: str, report: Report) -> Report:
        """Return the report on a file; if it has no grade, count that, and say in the report what happens next."""
        if report.status != "grader_error" or report.exercises:
            self._given_up.pop(student, None)
            return report
        self._failed.setdefault(student, []).append(time.time())
        reason = (
            f"grading was tried {TRIES} times without a grade. What was printed says why; `autograder grade "
            f"{self.name}` tries again."
        )
        self._given_up[student] = NotGraded(printable(student), reason)
        return msgspec.structs.replace(report, message=joined(report.message, _NOT_AGAIN))

    def _record_findings(self, work: Assignment, writer: Writer, graded: GradedSubmission) -> None:
        """Record a grade again with repairs, unless another file of the student's is graded now. Not an attempt."""
        student = graded.submission.student
        recorded = Autograded(work.directory, self.name).report(student)
        if recorded and recorded.submission == graded.report.submission and student not in self._in_progress:
            replace(writer, for_students=False).record(graded)
            self._pages.forget(student)

    def _add_outcome(self, work: Assignment, report: Report, student: str, problem: str, stamp: bytes | None) -> None:
        self._pages.forget(student)
        outcome = Served(
            _now(),
            self.name,
            student,
            report.status,
            report.score,
            float(work.unit.max_score),
            not_written=[its.name for its in report.exercises if its.message.startswith(NOT_WRITTEN)],
            problem=problem,
            time_stamp=StampFormat.of_course(work.directory).read(stamp).unresolved or "",
        )
        self._outcomes.append(outcome)

    def _admit(self, gradebook: ClassGradebook, writer: Writer, file: _NewFile) -> bool:
        """Return whether a file is graded now, and not left because its grade is valid or it has to wait."""
        student = file.submission.student
        if writer.leave_alone(file.submission):
            self._finish(file)
            return False
        waits = wait(gradebook, student, self._options.attempts, self._failed.get(student, ()))
        if waits is None:
            self._waiting.pop(student, None)
            return True
        if student not in self._waiting or self._waiting[student][0] != file.fingerprint:
            self._on_outcome(Served(_now(), self.name, student, "waits", waits_until=waits.until))
        self._waiting[student] = file.fingerprint, waits
        self._noticed_at.pop(student, None)
        return False

    def _finish(self, file: _NewFile) -> None:
        """Record that a file needs nothing more until it changes."""
        student = file.submission.student
        self._finished[student] = file.fingerprint
        self._noticed_at.pop(student, None)
        self._waiting.pop(student, None)


def _now() -> datetime:
    return datetime.now(UTC)
