"""What nbgrader's `SaveAutoGrades` does not record: that one of our graders failed, and what a mark is based on."""

from collections.abc import Callable
from typing import Any

import msgspec
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor

from .. import course
from ..report import Report
from . import provenance
from .preprocessor import REPORT_FILE


def unmarked(report: Report) -> Callable[[str], bool]:
    """Tells whether our own fault left the grade cell of a name without a mark: nbgrader would make it a zero."""
    failed = {course.CHECK_PREFIX + e.name for e in report.exercises if e.status == "grader_error"}
    nothing = report.status == "grader_error" and not report.exercises
    return lambda name: name in failed or (nothing and name.startswith(course.CHECK_PREFIX))


class RecordReport(NbGraderPreprocessor):
    """Runs after `SaveAutoGrades` in `nbgrader autograde` and formgrader; `autograder grade` records these itself."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        about = resources["nbgrader"]
        report = msgspec.json.decode(resources["outputs"][REPORT_FILE], type=Report)
        has_no_mark = unmarked(report)
        with Gradebook(about["db_url"]) as gradebook:
            entry = gradebook.find_submission_notebook(about["notebook"], about["assignment"], about["student"])
            for grade in entry.grades:
                if has_no_mark(grade.name):
                    grade.auto_score = None
                    grade.needs_manual_grade = True
            provenance.make_table(gradebook.engine)
            provenance.put(gradebook.db, entry.id, provenance.of(report, page=""))  # none of our pages shows it yet
            gradebook.db.commit()
        return nb, resources
