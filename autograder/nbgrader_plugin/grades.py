"""Grades on feedback pages and in nbgrader's table for spreadsheets, and the points that lateness costs."""

import csv
import io
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.coursedir import CourseDirectory
from nbgrader.plugins import CsvExportPlugin, LateSubmissionPlugin
from nbgrader.preprocessors import GetGrades

from .. import output_files
from ..course import settings
from ..course.late_penalty import DAY
from ..course.settings import FILE
from ..gradebook import records, reweights
from ..gradebook.course_directory import CourseProblem
from ..gradebook.entry import is_blank
from ..gradebook.grades import number, text
from ..gradebook.lateness import Deadlines, is_past_due, late_days
from ..reports.graded_notebook import show_edits

_HEADER = (
    "assignment,duedate,timestamp,student_id,last_name,first_name,email,"
    "raw_score,late_submission_penalty,score,max_score\n"
)


class ClassLatePenalty(LateSubmissionPlugin):
    """Deducts points for late submission by the rule in [late_penalty], or else by nbgrader's `penalty_method`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.rule = settings.of_late_penalty(Path(self.config.CourseDirectory.root))
        if self.rule and self.penalty_method != "none":
            raise CourseProblem(
                f"The penalty for lateness is set twice: [late_penalty] in {FILE}, and "
                "LateSubmissionPlugin.penalty_method in nbgrader_config.py. Delete one of the two settings."
            )

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float | None:
        """Return the points that a late submission loses; None for no penalty.

        `parent` is nbgrader's preprocessor, which holds the gradebook and the assignment's name.
        """
        if self.rule is None:
            penalty: float | None = super().late_submission_penalty(student_id, score, total_seconds_late)
            return penalty
        late = timedelta(seconds=total_seconds_late)
        if self.rule.late_days:
            unit = self.parent.assignment_id
            days = late_days(self.parent.gradebook.db, self.rule, unit, student_id)
            late -= self.rule.days_spent(late, sum(days.get(student_id, ()))) * DAY
        return self.rule.points(score, late)


class ReadGrades(GetGrades):
    """Adds blank and ungraded answers, which nbgrader gives 0, unclear times, deadlines and edits of repairs."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        nb, resources = super().preprocess(nb, resources)
        about = resources["nbgrader"]
        deadlines = Deadlines.of_course(CourseDirectory(config=self.config))
        with Gradebook(about["db_url"]) as gradebook:
            entry = gradebook.find_submission_notebook(about["notebook"], about["assignment"], about["student"])
            about["is_time_unresolved"] = entry.id in records.unresolved_stamps(gradebook.db)
            days = deadlines.days_of(gradebook.db, about["assignment"], about["student"])
            about["deadline"] = deadlines.of(entry.assignment, days.get(about["student"]))
            rules = reweights.of_unit(gradebook.db, about["assignment"])
            about["reweighted"] = [rule.sentence(exercise) for exercise, rule in rules.items()]
            if is_past_due(entry.assignment):
                show_edits(nb)
        return nb, resources

    def _get_score(self, cell: Any, resources: Any) -> None:
        super()._get_score(cell, resources)
        about = cell.metadata.nbgrader
        grade = self.gradebook.find_grade(about["grade_id"], self.notebook_id, self.assignment_id, self.student_id)
        about["waiting"] = grade.auto_score is None and grade.manual_score is None
        about["blank"] = is_blank(about["grade_id"], grade)


class GradesCsv(CsvExportPlugin):
    """Writes the rows and columns of nbgrader's own plugin, and takes its options; no name is a formula."""

    def export(self, gradebook: Any) -> None:
        """Write the table of grades to a file, by default grades.csv."""
        destination = Path(self.to or "grades.csv")
        self.log.info("Exporting grades to %s", destination)
        written = io.StringIO(newline="")
        written.write(_HEADER)
        table = csv.writer(written, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        for assignment, student in product(gradebook.assignments, gradebook.students):
            if _is_wanted(assignment.name, self.assignment) and _is_wanted(student.id, self.student):
                table.writerow(_row(gradebook, assignment, student))
        try:
            output_files.write({destination: written.getvalue().encode()})
        except output_files.NotWritable as reason:
            self.log.error("%s", reason)
            raise SystemExit(1) from None


def _is_wanted(name: str, names: Sequence[object]) -> bool:
    return not names or name in map(str, names)


def _row(gradebook: Any, assignment: Any, student: Any) -> list[object]:
    """Return the student's row for the assignment; zeros if nothing was submitted."""
    timestamp, raw, penalty = None, 0.0, 0.0
    with suppress(MissingEntry):
        submission = gradebook.find_submission(assignment.name, student.id)
        timestamp, raw, penalty = submission.timestamp, submission.score, submission.late_submission_penalty
    person = (student.id, student.last_name, student.first_name, student.email)
    texts = [text(value) for value in (assignment.name, assignment.duedate, timestamp, *person)]
    figures = (raw, penalty, max(0.0, raw - penalty), assignment.max_score)
    return [*texts, *(float(number(points)) for points in figures)]
