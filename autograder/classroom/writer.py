"""Records grades: the graded notebook, the feedback page, then the gradebook, whose commit makes the grade count.

A run that ends in the middle leaves a student's folders newer than the gradebook, or untouched. The gradebook stores
the provenance of each grade, so the next run detects which it is, and grades a submission again if they do not agree.
A report on a submission that is graded again says why its points change.
"""

import time
import traceback
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import msgspec
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError

from .. import course
from ..course import content
from ..course.settings import Settings
from ..gradebook.class_gradebook import ClassGradebook
from ..gradebook.entry import Entry
from ..gradebook.nbgrader_course import CourseProblem
from ..gradebook.records import Attempt, provenance_of
from ..gradebook.reweights import as_graded, reweighted
from ..output_files import DISK_ERRORS
from ..pool.requests import Device, in_utf8
from ..report import REPORT_FILE, ExerciseReport, Report
from .assignment import Assignment, GradedSubmission
from .student_folders import UNREAD, Autograded, FeedbackPages, Submission, page_path

Updates = tuple[str, ...]
"""Names of what was changed of a mark without grading its submission again."""
_POINTS: Updates = ("points",)
_LATE_PENALTY: Updates = ("late penalty",)
_NO_FILES = (
    "the points of an exercise have changed, but this student's files in autograded/ are missing or damaged. Restore "
    "the submission, and grade again."
)
_NO_ATTEMPT = {"damaged", "unreadable"}
"""Statuses of reports that say nothing about a student's answers, so that they need no limit on attempts."""


@dataclass
class Writer:
    """The only writer of a batch: records each grade in the gradebook and in the student's folders."""

    _work: Assignment
    _gradebook: ClassGradebook
    _pages: FeedbackPages | None
    """None for a dry run, which writes into this gradebook (a copy) and into no file."""
    _device: Device
    _settings: Settings
    for_students: bool = False
    """True if students start the gradings. Then a grade stands regardless of the file's name, of the autograder's
    version and of torch's, and each grading is an attempt: no change by a student is graded without being counted."""
    needs_repairs: bool = False
    """True if a submission is graded again whose unexplained answers were not searched for repairs."""

    def __post_init__(self) -> None:
        unit = self._work.unit.name
        self._kit = content.unit_digest(unit, self._work.root)
        self._autograded = Autograded(self._work.directory, unit)

    def page(self, student: str) -> Path:
        """Return the path of a student's feedback page."""
        return page_path(self._work.directory, self._work.unit.name, student)

    def leave_alone(self, submission: Submission) -> tuple[Report, Updates] | None:
        """Keep the grade of a submission if nothing that decides it has changed; return None if it has to be graded.

        Update its points, its late penalty and the feedback page. Return the report and the names of what has changed.
        """
        try:
            entry = self._gradebook.entry(submission.student)
            report = self._autograded.report(submission.student)
            if entry is None or report is None or not self._stands(submission, entry, report):
                return None
            updates = self._update(submission.student, entry, report)
            return reweighted(report, self._gradebook.rules), updates
        except Exception as error:
            self._gradebook.rollback()
            if _affects_everyone(error):
                raise
            return None  # the files are damaged: grade the submission and write them again

    def update(self, student: str) -> tuple[Updates, str]:
        """Update a student's points, late penalty and feedback page, although the submission may be missing now.

        A grade that the autograder did not give is left alone. Return the names of what has changed, and why points
        could not be changed; empty if they could.
        """
        entry = self._gradebook.entry(student)
        if entry is None or entry.provenance is None:
            return (), ""
        try:
            return self._update(student, entry, self._autograded.report(student)), ""
        except Exception as error:
            self._gradebook.rollback()
            if _affects_everyone(error):
                raise
        entry = self._gradebook.entry(student)  # the graded notebook is damaged or missing: there can be no new page
        assert entry is not None
        if entry.reweight():
            self._gradebook.rollback()
            return (), _NO_FILES
        updates = _LATE_PENALTY if self._gradebook.penalise(entry) else ()
        self._gradebook.commit()
        return updates, ""

    def _update(self, student: str, entry: Entry, report: Report | None) -> Updates:
        updates = _POINTS if self._reweight(student, entry, report) else ()
        updates += _LATE_PENALTY if self._gradebook.penalise(entry) else ()
        provenance = entry.provenance
        assert provenance is not None
        shown = entry.shown()
        if updates or provenance.page != shown.digest or not self.page(student).is_file():
            node = self._autograded.notebook(student)
            if self._pages is not None:
                self._pages.put(student, node, shown)
            entry.put_provenance(replace(provenance, page=shown.digest))
            self._gradebook.commit()
        return updates

    def _reweight(self, student: str, entry: Entry, report: Report | None) -> bool:
        """Count the points of a grade by the present rules; return whether that changes anything."""
        is_rule_new = entry.reweight()
        if report is None:
            if is_rule_new:
                raise FileNotFoundError(REPORT_FILE)
            return False
        counted = reweighted(report, self._gradebook.rules)
        is_new = is_rule_new or counted != report  # a run that was killed may have written the report only
        if is_new:
            node = self._autograded.reweighted(student, counted)
            entry.put(node, counted)
            if self._pages is not None:
                self._autograded.replace(student, node, counted)
        return is_new

    def record(self, graded: GradedSubmission) -> str:
        """Record the grade of one submission; return what went wrong, or an empty string.

        Raises errors that affect everyone, such as a full disk or an unwritable gradebook.
        """
        try:
            self._record(graded)
        except Exception as error:
            self._gradebook.rollback()
            if isinstance(error, (DataError, IntegrityError)):
                why = f"the gradebook rejects this entry: {error.orig}"
                return f"{why}. Is the earlier entry damaged, or has another program just written one?"
            if _affects_everyone(error):
                raise
            if isinstance(error, OSError):
                return (
                    f"{error}. Is something else at the path of the student's folder or file, or may you not change "
                    "them?"
                )
            traceback.print_exc()
            return (
                f"an error of the autograder, not the student's: {type(error).__name__}. The printed traceback says "
                "more."
            )
        return ""

    def _record(self, graded: GradedSubmission) -> None:
        student = graded.submission.student
        report = msgspec.structs.replace(graded.report, kit=self._kit)  # a report without a run has no digest
        before = self._autograded.report(student)
        report = reweighted(with_reasons(before and as_graded(before), report), self._gradebook.rules)
        node = self._autograded.graded(graded.content, report)
        entry = self._gradebook.entry(student) or self._gradebook.new_entry(student)
        entry.put(node, report)
        entry.reweight()
        entry.put_time(self._gradebook.stamp_format.read(graded.stamp), report.submission)
        self._gradebook.penalise(entry)
        shown = entry.shown()
        if self._pages is not None:
            self._autograded.put(student, node, report, graded.stamp)
            self._pages.put(student, node, shown)
        entry.put_provenance(provenance_of(report, shown.digest))
        if report.status not in _NO_ATTEMPT and (report.exercises or report.status != "grader_error"):
            attempt = Attempt(report.submission, str(entry.timestamp or ""), time.time())
            last = self._gradebook.attempts(student)[-1:]
            if self.for_students or [replace(its, marked_at=attempt.marked_at) for its in last] != [attempt]:
                self._gradebook.add_attempt(student, attempt)
        self._gradebook.commit()

    def _stands(self, submission: Submission, entry: Entry, report: Report) -> bool:
        assert submission.notebook is not None
        origin = entry.provenance
        digest, stamp = self._work.files.digest(submission)
        its_time = self._gradebook.stamp_format.read(stamp)
        grades = {exercise.name: exercise.score for exercise in report.exercises}
        recorded = entry.automatic_scores()
        required = self._settings.isolation
        return (
            origin is not None
            and origin.submission == report.submission == digest != ""
            and origin.kit == report.kit
            and report.status != "grader_error"
            and report.message.startswith(submission.warning)
            and report.message.startswith(UNREAD) == bool(submission.warning)
            and (report.repairs_searched or not (self.needs_repairs and report.has_unexplained))
            and (
                self.for_students
                or (
                    origin.kit == self._kit
                    # No torch was needed, or it was any build of this version.
                    and origin.torch.partition("+")[0] in ("", version("torch").partition("+")[0])
                    and report.notebook == f"{submission.folder}/{self._work.unit.name}/{in_utf8(submission.notebook)}"
                )
            )
            and (required.require not in ("A", "B") or origin.isolation == required.require)
            and (required.trust_submissions or origin.isolation != "none")
            and self._device in ("auto", origin.device)
            and its_time.unresolved == entry.unresolved
            and its_time.utc in (None, entry.timestamp)
            and all(
                recorded[exercise.check] == grades.get(exercise.name, 0.0) for exercise in self._work.unit.exercises
            )
        )


def _affects_everyone(error: Exception) -> bool:
    """Return whether an error affects every student: an unwritable gradebook or disk, or wrong settings."""
    return isinstance(error, SQLAlchemyError | CourseProblem) or (
        isinstance(error, OSError) and error.errno in DISK_ERRORS
    )


OTHER_WEIGHTS = "the weights of its tests have changed"
"""The reason if no other is found."""


def change_reasons(unit: course.Unit, before: Report | None, now: Report) -> dict[str, str]:
    """Return, by exercise, why its points can differ. before: the last report on the student's work.

    If no test of an exercise was run, as in a damaged file, the reason is the report's message.
    """
    earlier, graded = _by_name(before), {one.name: one for one in now.exercises if one.tests}
    return {
        one.name: _reason(earlier.get(one.name), graded[one.name]) if one.name in graded else now.message
        for one in unit.exercises
    }


def with_reasons(before: Report | None, now: Report) -> Report:
    """Return a report that says why points differ from those of the last report on the same file."""
    if before is None or not now.submission or before.submission != now.submission:
        return now
    earlier = _by_name(before)
    return msgspec.structs.replace(now, exercises=[_with_reason(earlier.get(one.name), one) for one in now.exercises])


def _by_name(report: Report | None) -> dict[str, ExerciseReport]:
    return {exercise.name: exercise for exercise in report.exercises} if report else {}


def _with_reason(before: ExerciseReport | None, now: ExerciseReport) -> ExerciseReport:
    if before is None or (before.score, before.max_score) == (now.score, now.max_score):
        return now
    note = (
        f"This file was graded again: {now.score:g} of {now.max_score:g} points, before that {before.score:g} of "
        f"{before.max_score:g}. The reason: {_reason(before, now)}."
    )
    return msgspec.structs.replace(now, note=f"{now.note} {note}".strip())


def _reason(before: ExerciseReport | None, now: ExerciseReport) -> str:
    if before is None:
        return "not graded before"
    earlier, outcomes = ({test.name: test.outcome for test in report.tests} for report in (before, now))
    changed = [
        f"{test}: {earlier.get(test, 'new')} -> {outcomes.get(test, 'gone')}"
        for test in outcomes | earlier
        if earlier.get(test) != outcomes.get(test)
    ]
    if halving := [test.name for test in now.tests if test.halves]:
        changed.append(f"{' and '.join(halving)} failed, so that the exercise gives at most half of its points")
    earned = {test.name: test.points for test in before.tests}
    changed += [
        f"{test.name}: a form that can be converted earns half"
        for test in now.tests
        if test.outcome == "failed" and test.points > earned.get(test.name, 0.0)
    ]
    return "; ".join(changed) or OTHER_WEIGHTS
