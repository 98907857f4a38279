"""One unit of a course that is served: what is new in it is marked, recorded, and shown to the student.

All that has to be known after a stop is in the gradebook and in the files. What is remembered here only keeps a look at
a whole class from taking long.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import msgspec

from ..classroom.assignment import Assignment, NotGraded, NothingToGrade, assignment
from ..classroom.marking_ahead import MarkedHandIn
from ..classroom.student_folders import Autograded, FeedbackPages
from ..classroom.submissions import HandIn
from ..classroom.writer import Writer
from ..client.marker import in_utf8
from ..course import digests
from ..formatting.client import Formatter
from ..gradebook.class_gradebook import ClassGradebook, Times
from ..gradebook.course_directory import course_directory
from ..gradebook.course_lock import course_lock
from ..gradebook.database import explained_errors
from ..gradebook.time_stamp import StampFormat
from ..report import NOT_WRITTEN, Report
from .desks import Desks, Done
from .exchange import Exchange
from .looking import STILL_SECONDS, Look, may_be_unfinished, size
from .looking import look as look_at
from .retries import Retries
from .rules import MOST_TRIES, HandedIn, Served, Terms, failures_wait_until
from .searching import Searching
from .shown import Shown
from .students_page import waits, waits_after_failures

_RETRY_SECONDS = 0.3
_OPEN_SECONDS = 5.0
_SEARCHED_SECONDS = 0.5
_KIT_SECONDS = 2.0
"""How often it is looked at at the most, when many hand in at once. Until then marks are of the kit before."""


class KitChanged(Exception):
    """The course, its settings or the engine are other than when serving began."""


class UnitServed:
    """See the module."""

    def __init__(
        self,
        name: str,
        terms: Terms,
        desks: Desks,
        formatter: Formatter,
        exchange: Exchange,
        tell: Callable[[Served], None],
    ) -> None:
        """tell: is called with each submission that is marked, or has to wait."""
        self.name = name
        self._terms = terms
        self._desks = desks
        self._formatter = formatter
        self._tell = tell
        self._kit = digests.unit_digest(name, terms.root)
        self._kit_looked_at = 0.0
        self._pages: FeedbackPages | None = None
        self._work: Assignment | None = None
        self._gradebook: ClassGradebook | None = None
        self._opened_at = 0.0
        self._seen: dict[str, Look] = {}
        self._flying: dict[str, Look] = {}
        self._retries = Retries(name, self._kit)
        self._held: dict[str, _Held] = {}
        self._noticed: dict[str, float] = {}
        self._done: list[Done] = []
        self._recorded: list[Served] = []
        self._unrecorded: set[str] = set()
        self._wakes_at = float("inf")
        self._is_left = False
        """True if a file was left for the next attempt, which is to come soon."""
        self._shown = Shown(name, terms, exchange)
        self._times: dict[str, Times] = {}
        submitted = (terms.root / course_directory(terms.root).submitted_directory).resolve()
        self._searching = Searching(name, terms.root, submitted)

    def prepare(self) -> None:
        """Makes once what pages are made with."""
        self._pages = FeedbackPages(course_directory(self._terms.root), self.name, self._formatter)

    @property
    def refused(self) -> list[NotGraded]:
        """Folders and students that cannot be graded, and submissions that are not tried again."""
        return [*(self._work.refused if self._work else ()), *self._retries.given_up.values()]

    def is_busy(self, student: str) -> bool:
        """Whether a submission of the student's is being marked."""
        return student in self._flying

    def done(self, done: Done) -> None:
        """Takes a submission that was marked, to record it in the next step."""
        self._done.append(done)

    def became(self, its: HandedIn, its_look: Look) -> HandedIn:
        """What became of a file in the course's folder, as far as the student may know; the same while nothing did."""
        student = its.student
        held = self._held.get(student)
        if held and held.look == its_look:
            return msgspec.structs.replace(its, status="waits", waits_until=_moment(held.until))
        if self._seen.get(student) != its_look or self._work is None:
            return its
        if student in self._unrecorded:
            return msgspec.structs.replace(its, status="not_recorded")
        try:
            page = self._shown.page(student).read_text()
        except OSError:
            return its
        report = Autograded(self._work.directory, self.name).report(student)
        told = (report.score, float(self._work.unit.max_score)) if report else (None, None)
        score, most = told if self._shown.shows_all(self._times.get(student)) else (None, None)
        return msgspec.structs.replace(its, status="marked", page=page, score=score, max_score=most)

    def step(self, *, look: bool, everything: bool) -> float:
        """Records what is done and sends what is new to the markers; in how many seconds to look again at the latest.

        look: look for new files. everything: look also at what other programs may have changed.
        Raises AlreadyLocked, CourseProblem, KitChanged, and what `assignment` raises; then nothing is lost.
        """
        everything = everything or time.time() >= self._wakes_at
        self._is_left = False
        again = float("inf")
        new: dict[str, tuple[HandIn, Look]] = {}
        if look or self._work is None:
            try:
                self._work = self._assignment()
            except NothingToGrade:  # nobody is in the class yet
                return again
            new, again = self._new(self._work)
        if new or everything:
            self._refuse_another_kit()
        if new or everything or self._done:
            root = self._terms.root
            with course_lock(root), explained_errors(root), self._opened(self._work) as gradebook:
                self._step(self._work, gradebook, new, everything=everything)
        now = time.time()
        moments = [held.until for held in self._held.values()]
        moments += [its.due.replace(tzinfo=UTC).timestamp() for its in self._times.values() if its.due]
        self._wakes_at = min((moment for moment in moments if moment > now), default=float("inf"))
        return min(again, self._wakes_at - now, _RETRY_SECONDS if self._is_left else float("inf"))

    @contextmanager
    def _opened(self, work: Assignment) -> Iterator[ClassGradebook]:
        """The gradebook, opened anew unless it was a moment ago: to open it takes longer than to record a mark."""
        if self._gradebook is None or time.monotonic() - self._opened_at > _OPEN_SECONDS:
            self.close()
            self._gradebook, self._opened_at = ClassGradebook(work.directory, self.name), time.monotonic()
        try:
            yield self._gradebook
            self._gradebook.commit()  # ends what was begun for reading
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Closes the gradebook, if it is open."""
        if self._gradebook is not None:
            self._gradebook.close()
            self._gradebook = None

    def _assignment(self) -> Assignment:
        terms = self._terms
        return assignment(self.name, terms.root, None, terms.roster, terms.id_column, self._searching.newest)

    def _refuse_another_kit(self) -> None:
        if time.monotonic() - self._kit_looked_at < _KIT_SECONDS:
            return
        self._kit_looked_at = time.monotonic()
        if digests.current_unit_digest(self.name, self._terms.root) != self._kit:
            raise KitChanged

    def _new(self, work: Assignment) -> tuple[dict[str, tuple[HandIn, Look]], float]:
        """Whose file has not been looked at, and in how many seconds one will be there that is being written."""
        new, again = {}, _SEARCHED_SECONDS if self._searching.goes_on else float("inf")
        for hand_in in work.hand_ins:
            student = hand_in.student
            if hand_in.notebook is None or student in self._flying:
                continue
            folder = work.submitted / student / self.name
            its = look_at(folder, hand_in.notebook)
            held = self._held.get(student)
            if its == self._seen.get(student) or (held and held.look == its and held.until > time.time()):
                continue
            if may_be_unfinished(folder, hand_in.notebook):
                again = min(again, STILL_SECONDS)
                continue
            self._noticed.setdefault(student, time.monotonic())
            new[student] = (hand_in, its)
        return new, again

    def _step(
        self, work: Assignment, gradebook: ClassGradebook, new: dict[str, tuple[HandIn, Look]], *, everything: bool
    ) -> None:
        if new:
            gradebook.enrol(work.students)
        assert self._pages is not None  # since `prepare`
        writer = Writer(work, gradebook, self._pages, self._terms.device, self._terms.settings, for_students=True)
        while self._done:
            self._record(work, gradebook, writer, self._done[0])
            del self._done[0]
        self._admit_all(work, gradebook, writer, new)
        if everything:  # a due date, an extension or the penalty's settings may be new
            for student, mark in gradebook.marks().marks.items():
                if mark.late or mark.shown.late_penalty:
                    writer.update(student)
        self._times = gradebook.times()
        self._shown.update(work, writer.page, self._times, {who: held.notice for who, held in self._held.items()})
        while self._recorded:
            served = self._recorded.pop(0)
            noticed = self._noticed.pop(served.student, time.monotonic())
            self._tell(_timed(served, time.monotonic() - noticed))

    def _record(self, work: Assignment, gradebook: ClassGradebook, writer: Writer, done: Done) -> None:
        """Records a mark, unless `autograder grade` has been faster."""
        hand_in = done.marked.hand_in
        student = hand_in.student
        if writer.leave_alone(hand_in):
            self._retries.forget(gradebook, student)
            self._noticed.pop(student, None)
            self._seen[student] = self._ended(student)
            return
        report, is_tried_again = self._retries.outcome(gradebook, student, done.marked.report)
        problem = writer.record(replace(done.marked, report=report))
        if problem and report.status != "grader_error":  # then what was forgotten was brought back
            self._retries.forget(gradebook, student)
        (self._unrecorded.add if problem else self._unrecorded.discard)(student)
        look = self._ended(student)
        if is_tried_again:
            self._is_left = True
        else:
            self._seen[student] = look
        self._say_recorded(work, report, student, problem, done.marked.stamp)

    def _ended(self, student: str) -> Look:
        self._retries.end(student)
        return self._flying.pop(student)

    def _say_recorded(self, work: Assignment, report: Report, student: str, problem: str, stamp: bytes | None) -> None:
        self._shown.is_new(student)
        most = float(work.unit.max_score)
        unresolved = StampFormat.of_course(work.directory).read(stamp).unresolved or ""
        unwritten = [exercise.name for exercise in report.exercises if exercise.message.startswith(NOT_WRITTEN)]
        its = Served(
            _now(),
            self.name,
            student,
            report.status,
            report.score,
            most,
            not_written=unwritten,
            problem=problem,
            time_stamp=unresolved,
        )
        self._recorded.append(its)

    def _admit_all(
        self, work: Assignment, gradebook: ClassGradebook, writer: Writer, new: dict[str, tuple[HandIn, Look]]
    ) -> None:
        """Puts files before the markers, once it is committed that they are tried."""
        admitted: dict[str, tuple[HandIn, Look, str]] = {}
        # The largest file last, so that no other file waits for its long inspection.
        for hand_in, its in sorted(new.values(), key=lambda one: size(one[1])):
            is_alone = not (self._flying or admitted)
            digest = self._admit(work, gradebook, writer, hand_in, its, is_alone=is_alone)
            if digest is not None:
                admitted[hand_in.student] = hand_in, its, digest
        for student, (_, _, digest) in admitted.items():
            self._retries.begin(gradebook, student, digest)
        if admitted:
            gradebook.commit()
        for student, (hand_in, its, _) in admitted.items():
            self._flying[student] = its
            self._desks.put(work, hand_in)

    def _admit(
        self,
        work: Assignment,
        gradebook: ClassGradebook,
        writer: Writer,
        hand_in: HandIn,
        its: Look,
        *,
        is_alone: bool,
    ) -> str | None:
        """The digest of a file to grade; None if its mark stands, it has to wait, or it is not tried again.

        is_alone: whether no other file is being graded. One whose grading gave no mark before is graded alone, so that
        no other is taken for what ended `serve`.
        """
        student = hand_in.student
        if writer.leave_alone(hand_in):
            self._seen[student] = its
            self._noticed.pop(student, None)
            self._held.pop(student, None)
            return None
        digest, _ = work.submissions.digest(hand_in)
        before = self._retries.count(gradebook, student, digest)
        if before >= MOST_TRIES:
            self._not_again(work, writer, hand_in, its, digest)
            return None
        if before and not is_alone:
            self._is_left = True
            return None
        if (held := self._must_wait(gradebook, student, its)) is None:
            self._held.pop(student, None)
            return digest
        if student not in self._held or self._held[student].look != its:
            self._tell(Served(_now(), self.name, student, "waits", waits_until=_moment(held.until)))
        self._held[student] = held
        self._noticed.pop(student, None)
        return None

    def _not_again(self, work: Assignment, writer: Writer, hand_in: HandIn, its: Look, digest: str) -> None:
        """Records that a file could not be graded, unless that is recorded: `serve` may have ended with each try."""
        student = hand_in.student
        self._seen[student] = its
        self._noticed.pop(student, None)
        self._held.pop(student, None)
        report = Autograded(work.directory, self.name).report(student)
        is_recorded = report is not None and (report.status, report.submission) == ("grader_error", digest)
        if not (is_recorded and report and report.exercises):
            self._retries.give_up(student)
        if is_recorded:
            return
        read = work.submissions.read(hand_in)
        name = in_utf8(f"{student}/{self.name}/{hand_in.notebook}")
        report = self._retries.ended_each_time(name, digest, hand_in.note)
        problem = writer.record(MarkedHandIn(hand_in, read.file.content, report, read.stamp))
        self._say_recorded(work, report, student, problem, read.stamp)

    def forget_tries(self) -> None:
        """Delete the tries of files that are being graded when the instructor stops `serve`."""
        with suppress(Exception), course_lock(self._terms.root):
            if self._flying and self._work:
                with self._opened(self._work) as gradebook:
                    self._retries.forget_begun(gradebook)

    def _must_wait(self, gradebook: ClassGradebook, student: str, its: Look) -> "_Held | None":
        now, rules = time.time(), self._terms.rules
        until = rules.waits_until(gradebook.attempts(student), now)
        after_failures = failures_wait_until(gradebook.tries(student), now)
        if after_failures and after_failures > (until or 0.0):
            return _Held(its, after_failures, waits_after_failures(_moment(after_failures)))
        if until and rules.attempts:
            return _Held(its, until, waits(_moment(until), rules.attempts))
        return None


@dataclass(frozen=True)
class _Held:
    """A file that has to wait."""

    look: Look
    until: float
    """In seconds since 1970."""
    notice: str
    """Text for the student's page."""


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _timed(served: Served, seconds: float) -> Served:
    """The same, with how long it took."""
    return msgspec.structs.replace(served, seconds=round(seconds, 3), time=_now())


def _now() -> datetime:
    return datetime.now(UTC)
