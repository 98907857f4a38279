"""Records marks: the marked notebook, the feedback page, then the gradebook, whose commit makes the mark count.

A run that ends in the middle leaves a student's folders newer than the gradebook, or untouched. The gradebook keeps
what each mark is based on (`provenance`), so the next run sees which it is, and marks again what does not agree.
"""

import errno
import time
import traceback
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import msgspec
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError

from ..client.marker import in_utf8
from ..client.requests import Device
from ..course import digests
from ..course.settings import Settings
from ..gradebook import provenance
from ..gradebook.attempts import Attempt
from ..gradebook.class_gradebook import ClassGradebook
from ..gradebook.course_directory import CourseProblem
from ..gradebook.entry import Entry
from ..report import Report
from .assignment import Assignment
from .autograded import Autograded
from .feedback_page import FeedbackPages, page_path
from .hand_in import HandIn
from .marking_ahead import MarkedHandIn

_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}
"""Errors of the disk, not of one student's folders."""
_NO_ATTEMPT = {"damaged", "unreadable"}
"""Of these a student learns nothing that a limit on attempts could be for."""


@dataclass(frozen=True)
class LeftAlone:
    """A submission that is not graded again."""

    report: Report
    is_penalty_new: bool
    """True if the late penalty differs from the recorded one."""


class Writer:
    """The only writer of a batch."""

    def __init__(
        self,
        work: Assignment,
        gradebook: ClassGradebook,
        pages: FeedbackPages | None,
        *,
        for_students: bool = False,
    ) -> None:
        """pages: None for a dry run, which writes into this gradebook (a copy) and into no file.

        for_students: marking is begun by what students do. A mark stands then whatever the file is called and whatever
        kit or torch gave it, and each marking is an attempt: nothing that a student changes is marked uncounted.
        """
        self._for_students = for_students
        self._unit = work.unit
        self._directory = work.directory
        self._submissions = work.submissions
        self._gradebook = gradebook
        self._kit = digests.unit_digest(work.unit.name, work.root)
        self._autograded = Autograded(work.directory, work.unit.name)
        self._pages = pages

    def page(self, student: str) -> Path:
        """The path of a student's feedback page."""
        return page_path(self._directory, self._unit.name, student)

    def left_alone(self, hand_in: HandIn, device: Device, settings: Settings) -> LeftAlone | None:
        """A submission whose mark stands because nothing that decides it has changed; None if it has to be marked.

        What it costs that it is late is computed again, and the feedback page gets what people have given since.
        """
        try:
            return self._left_alone(hand_in, device, settings)
        except Exception as error:
            self._gradebook.rollback()
            if _is_everyones(error):
                raise
            return None  # what is there is damaged, in whatever way: mark it and write it again

    def _left_alone(self, hand_in: HandIn, device: Device, settings: Settings) -> LeftAlone | None:
        entry = self._gradebook.entry(hand_in.student)
        report = self._autograded.report(hand_in.student)
        if entry is None or report is None or not self._stands(hand_in, entry, report, device, settings):
            return None
        return LeftAlone(report, self._update(hand_in.student, entry))

    def update(self, student: str) -> bool:
        """Updates the penalty for being late, and the page, of a mark whose submission need not be there any more.

        Returns whether the penalty is another one. What was not graded by `autograder` stays as it is.
        """
        entry = self._gradebook.entry(student)
        if entry is None or self._gradebook.provenance(entry) is None:
            return False
        try:
            return self._update(student, entry)
        except Exception as error:
            self._gradebook.rollback()
            if _is_everyones(error):
                raise
        entry = self._gradebook.entry(student)  # the marked notebook is damaged or gone: there can be no new page
        is_penalty_new = entry is not None and self._gradebook.penalise(entry)
        self._gradebook.commit()
        return is_penalty_new

    def _update(self, student: str, entry: Entry) -> bool:
        is_penalty_new = self._gradebook.penalise(entry)
        kept = self._gradebook.provenance(entry)
        assert kept is not None
        shown = entry.shown()
        if is_penalty_new or kept.page != shown.digest or not self.page(student).is_file():
            node = self._autograded.notebook(student)
            if self._pages is not None:
                self._pages.put(student, node, shown)
            self._gradebook.keep(entry, replace(kept, page=shown.digest))
            self._gradebook.commit()
        return is_penalty_new

    def record(self, marked: MarkedHandIn) -> str:
        """Records one mark; returns what went wrong, if anything. A full disk or an unwritable gradebook is raised."""
        try:
            self._record(marked)
        except Exception as error:
            self._gradebook.rollback()
            if isinstance(error, (DataError, IntegrityError)):
                why = f"the gradebook does not take this entry: {error.orig}"
                return f"{why}. Was the old one damaged, or just put there?"
            if _is_everyones(error):
                raise
            if isinstance(error, OSError):
                return (
                    f"{error}. Is something else in the place of the student's folder or file, or are they not yours?"
                )
            traceback.print_exc()
            return f"our fault, not the student's: {type(error).__name__}. What was printed says more."
        return ""

    def _record(self, marked: MarkedHandIn) -> None:
        student = marked.hand_in.student
        report = msgspec.structs.replace(marked.report, kit=self._kit)  # one that nothing was run for has none
        node = self._autograded.marked(marked.content, report)
        entry = self._gradebook.entry(student) or self._gradebook.new_entry(student)
        before = self._gradebook.provenance(entry)
        is_same_file = before is None or before.submission == report.submission
        entry.put(node, report)
        time_of_stamp = self._gradebook.stamp_format.read(marked.stamp)
        self._gradebook.put_time(entry, time_of_stamp, is_same_file=is_same_file)
        self._gradebook.penalise(entry)
        shown = entry.shown()
        if self._pages is not None:
            self._autograded.put(student, node, report, marked.stamp)
            self._pages.put(student, node, shown)
        self._gradebook.keep(entry, provenance.of(report, shown.digest))
        if report.status not in _NO_ATTEMPT and (report.exercises or report.status != "grader_error"):
            handed_in = str(entry.timestamp or "")
            attempt = Attempt(report.submission, handed_in, time.time())
            self._gradebook.count(student, attempt, each=self._for_students)
        self._gradebook.commit()

    def _stands(self, hand_in: HandIn, entry: Entry, report: Report, device: Device, settings: Settings) -> bool:
        assert hand_in.notebook is not None
        kept = self._gradebook.provenance(entry)
        digest, stamp = self._submissions.digest(hand_in)
        its_time = self._gradebook.stamp_format.read(stamp)
        required = settings.isolation.require
        marks = {exercise.name: exercise.score for exercise in report.exercises}
        held = entry.automatic_scores()
        return (
            kept is not None
            and kept.submission == report.submission == digest != ""
            and kept.kit == report.kit
            and (
                self._for_students
                or (
                    kept.kit == self._kit
                    and kept.torch.partition("+")[0] in ("", version("torch").partition("+")[0])  # none ran, any build
                )
            )
            and report.status != "grader_error"
            and (
                self._for_students
                or report.notebook == f"{hand_in.student}/{self._unit.name}/{in_utf8(hand_in.notebook)}"
            )
            and (required not in ("A", "B") or kept.isolation == required)
            and (settings.isolation.trust_submissions or kept.isolation != "none")
            and (device == "auto" or kept.device == device)
            and its_time.unresolved == entry.unresolved
            and its_time.utc in (None, entry.timestamp)
            and all(held[exercise.check] == marks.get(exercise.name, 0.0) for exercise in self._unit.exercises)
        )


def _is_everyones(error: Exception) -> bool:
    """Return whether an error affects every student: an unwritable gradebook or disk, or wrong settings."""
    return isinstance(error, SQLAlchemyError | CourseProblem) or (isinstance(error, OSError) and error.errno in _DISK)
