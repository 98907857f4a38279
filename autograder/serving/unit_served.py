"""One unit of a course that is served: what is new in it is marked, recorded, and shown to the student.

All that has to be known after a stop is in the gradebook and in the files. What is remembered here only keeps a look at
a whole class from taking long.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from ..classroom import whole_files
from ..classroom.assignment import Assignment, NotGraded, NothingToGrade, assignment
from ..classroom.autograded import Autograded
from ..classroom.feedback_page import FeedbackPages
from ..classroom.hand_in import HandIn
from ..classroom.one_run import one_run
from ..classroom.writer import Writer
from ..course import kit
from ..formatting.client import Formatter
from ..gradebook.class_gradebook import ClassGradebook, said_in_a_sentence
from ..gradebook.course_directory import course_directory
from ..gradebook.entry import Times
from ..gradebook.time_stamp import time_in
from .desks import Desks, Done
from .exchange import Exchange
from .looking import STILL_SECONDS, Look, may_be_unfinished, status
from .looking import look as look_at
from .rules import HOUR, Served, Terms
from .students_page import limited, waits, with_notice

SHOWN = "shown"
"""The course's folder with the pages as students see them; `feedback` has them as they are after the due date."""
_OPEN_SECONDS = 5.0
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
        self._exchange = exchange
        self._tell = tell
        self._kit = kit.digest(name, terms.root)
        self._kit_looked_at = 0.0
        self._pages: FeedbackPages | None = None
        self._work: Assignment | None = None
        self._gradebook: ClassGradebook | None = None
        self._opened_at = 0.0
        self._seen: dict[str, Look] = {}
        self._flying: dict[str, Look] = {}
        self._held: dict[str, tuple[Look, float]] = {}
        self._noticed: dict[str, float] = {}
        self._done: list[Done] = []
        self._recorded: list[Served] = []
        self._wakes_at = float("inf")
        self._shown: dict[str, Look] = {}
        self._times: dict[str, Times] = {}
        self._has_released = False

    def prepare(self) -> None:
        """Makes once what pages are made with."""
        self._pages = FeedbackPages(course_directory(self._terms.root), self.name, self._formatter)

    @property
    def refused(self) -> list[NotGraded]:
        """Folders and students that cannot be graded."""
        return self._work.refused if self._work else []

    def is_busy(self, student: str) -> bool:
        """Whether a submission of the student's is being marked."""
        return student in self._flying

    def done(self, done: Done) -> None:
        """Takes a submission that was marked, to record it in the next step."""
        self._done.append(done)

    def step(self, *, look: bool, everything: bool) -> float:
        """Records what is done and sends what is new to the markers; in how many seconds to look again at the latest.

        look: look for new files. everything: look also at what other programs may have changed.
        Raises AlreadyLocked, CourseProblem, KitChanged, and what `assignment` raises; then nothing is lost.
        """
        everything = everything or time.time() >= self._wakes_at
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
            with one_run(root), said_in_a_sentence(root), self._opened(self._work) as gradebook:
                self._step(self._work, gradebook, new)
        now = time.time()
        moments = [until for _, until in self._held.values()]
        moments += [its.due.replace(tzinfo=UTC).timestamp() for its in self._times.values() if its.due]
        self._wakes_at = min((moment for moment in moments if moment > now), default=float("inf"))
        return min(again, self._wakes_at - now)

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
        return assignment(self.name, terms.root, None, terms.roster, terms.id_column)

    def _refuse_another_kit(self) -> None:
        if time.monotonic() - self._kit_looked_at < _KIT_SECONDS:
            return
        self._kit_looked_at = time.monotonic()
        if kit.digest_as_it_is(self.name, self._terms.root) != self._kit:
            raise KitChanged

    def _new(self, work: Assignment) -> tuple[dict[str, tuple[HandIn, Look]], float]:
        """Whose file has not been looked at, and in how many seconds one will be there that is being written."""
        new, again = {}, float("inf")
        for hand_in in work.hand_ins:
            student = hand_in.student
            if hand_in.notebook is None or student in self._flying:
                continue
            folder = work.submitted / student / self.name
            its = look_at(folder, hand_in.notebook)
            held = self._held.get(student)
            if its == self._seen.get(student) or (held and held[0] == its and held[1] > time.time()):
                continue
            if may_be_unfinished(folder, hand_in.notebook):
                again = STILL_SECONDS
                continue
            self._noticed.setdefault(student, time.monotonic())
            new[student] = (hand_in, its)
        return new, again

    def _step(self, work: Assignment, gradebook: ClassGradebook, new: dict[str, tuple[HandIn, Look]]) -> None:
        if new:
            gradebook.enrol(work.students)
        writer = Writer(work, gradebook, self._formatter, pages=self._pages)
        while self._done:
            self._record(work, writer, self._done[0])
            del self._done[0]
        for hand_in, its in new.values():
            self._admit(work, gradebook, writer, hand_in, its)
        self._times = gradebook.times()
        self._show(work, writer)
        while self._recorded:
            served = self._recorded.pop(0)
            noticed = self._noticed.pop(served.student, time.monotonic())
            self._tell(_timed(served, time.monotonic() - noticed))

    def _record(self, work: Assignment, writer: Writer, done: Done) -> None:
        """Records a mark, unless `autograder grade` has been faster."""
        hand_in, report = done.marked.hand_in, done.marked.report
        student = hand_in.student
        if self._stands(writer, hand_in):
            self._noticed.pop(student, None)
            self._seen[student] = self._flying.pop(student)
            return
        problem = writer.record(done.marked)
        self._seen[student] = self._flying.pop(student)
        self._shown.pop(student, None)
        most = float(work.unit.max_score)
        its = Served(_now(), self.name, student, report.status, report.score, most, problem=problem)
        self._recorded.append(its)

    def _admit(self, work: Assignment, gradebook: ClassGradebook, writer: Writer, hand_in: HandIn, its: Look) -> None:
        """Puts a file before the markers, unless its mark stands, or it has to wait."""
        student = hand_in.student
        if self._stands(writer, hand_in):
            self._seen[student] = its
            self._noticed.pop(student, None)
            self._held.pop(student, None)
            return
        until = self._waits_until(work, gradebook, hand_in)
        if until is None:
            self._held.pop(student, None)
            self._flying[student] = its
            self._desks.put(work, hand_in)
            return
        if self._held.get(student, (None,))[0] != its:
            self._tell(Served(_now(), self.name, student, "waits", waits_until=datetime.fromtimestamp(until, UTC)))
        self._held[student] = its, until
        self._noticed.pop(student, None)

    def _stands(self, writer: Writer, hand_in: HandIn) -> bool:
        terms = self._terms
        return writer.left_alone(hand_in, terms.device, terms.settings, of_any_kit=True) is not None

    def _waits_until(self, work: Assignment, gradebook: ClassGradebook, hand_in: HandIn) -> float | None:
        now = time.time()
        attempts = gradebook.attempts(hand_in.student, now - HOUR)
        until = self._terms.rules.waits_until(attempts)
        if until is None or until <= now:
            return None
        read, last = work.submissions.read(hand_in), attempts[-1]
        is_again = last.submission == read.file.digest and last.handed_in in (str(time_in(read.stamp) or ""), "")
        return None if is_again else until

    def _show(self, work: Assignment, writer: Writer) -> None:
        """Puts what each student is to see now where it is released from, and releases it."""
        autograded = Autograded(work.directory, self.name)
        changed = []
        for student, times in self._times.items():
            page = writer.page(student)
            its = (status(page), self._is_due(times), times, self._held.get(student))
            if its[0] is None or its == self._shown.get(student):
                continue
            content = self._page(autograded, student, page, times)
            place = work.root / SHOWN / student / self.name / page.name
            if content is not None and (not place.is_file() or place.read_bytes() != content):
                whole_files.fill(place.parent, {page.name: content}, page.stat().st_mode & 0o777)
                changed.append(student)
            self._shown[student] = its
        if not self._has_released:  # the last run may have ended before it had released what it made
            self._exchange.release(self.name)
        elif changed:
            self._exchange.release(self.name, changed)
        self._has_released = True

    def _page(self, autograded: Autograded, student: str, usual: Path, times: Times) -> bytes | None:
        """What the student is to see; None if there is nothing yet."""
        rules = self._terms.rules
        if rules.show == "all" or self._is_due(times):
            page = usual.read_bytes()
        else:
            report = autograded.report(student)
            if report is None:
                return None
            page = limited(report, rules.show, due=times.due, handed_in=times.handed_in)
        held = self._held.get(student)
        if held is None or rules.attempts is None:
            return page
        return with_notice(page, waits(datetime.fromtimestamp(held[1], UTC), rules.attempts))

    def _is_due(self, times: Times) -> bool:
        return times.due is not None and times.due.replace(tzinfo=UTC) <= _now()


def _timed(served: Served, seconds: float) -> Served:
    """The same, with how long it took."""
    return msgspec.structs.replace(served, seconds=round(seconds, 3), time=_now())


def _now() -> datetime:
    return datetime.now(UTC)
