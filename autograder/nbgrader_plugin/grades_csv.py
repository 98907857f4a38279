"""nbgrader's table of grades for a spreadsheet, in which nobody's name is a formula."""

import csv
import io
from pathlib import Path
from typing import Any

from nbgrader.api import MissingEntry
from nbgrader.plugins import CsvExportPlugin

from .. import output_files
from ..gradebook.spreadsheet import number, text

_COLUMNS = ("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email")
_FIGURES = ("raw_score", "late_submission_penalty", "score", "max_score")


class GradesCsv(CsvExportPlugin):
    """The rows and columns of nbgrader's own plugin, whose options it takes."""

    def export(self, gradebook: Any) -> None:
        """Writes the file, grades.csv unless told another."""
        destination = Path(self.to or "grades.csv")
        self.log.info("Exporting grades to %s", destination)
        assignments, students = set(map(str, self.assignment)), set(map(str, self.student))
        written = io.StringIO(newline="")
        written.write(",".join((*_COLUMNS, *_FIGURES)) + "\n")
        table = csv.writer(written, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        for assignment in gradebook.assignments:
            if assignments and assignment.name not in assignments:
                continue
            for student in gradebook.students:
                if not students or student.id in students:
                    table.writerow(_row(gradebook, assignment, student))
        try:
            output_files.write({destination: written.getvalue().encode()})
        except output_files.NotWritable as reason:
            self.log.error("%s", reason)
            raise SystemExit(1) from None


def _row(gradebook: Any, assignment: Any, student: Any) -> list[object]:
    """The student's row for the assignment; zeros if nothing was handed in."""
    try:
        submission = gradebook.find_submission(assignment.name, student.id)
    except MissingEntry:
        timestamp, raw, penalty = None, 0.0, 0.0
    else:
        timestamp, raw, penalty = submission.timestamp, submission.score, submission.late_submission_penalty
    person = (student.id, student.last_name, student.first_name, student.email)
    texts = [text(value) for value in (assignment.name, assignment.duedate, timestamp, *person)]
    figures = (raw, penalty, max(0.0, raw - penalty), assignment.max_score)
    return [*texts, *(float(number(points)) for points in figures)]
