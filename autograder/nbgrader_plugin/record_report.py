"""Records what nbgrader's `SaveAutoGrades` does not: a failed hidden test, a mark's basis, an unclear time stamp."""

from typing import Any

import msgspec
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor

from ..gradebook import lateness, provenance
from ..gradebook.entry import unmarked
from ..gradebook.time_stamp import SubmissionTime
from ..report import REPORT_FILE, Report
from .preprocessor import SUBMISSION_TIME


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
            lateness.make_table(gradebook.engine)
            before = provenance.find(gradebook.db, entry.id)
            is_same_file = before is None or before.submission == report.submission
            time = about.get(SUBMISSION_TIME, SubmissionTime())
            lateness.record_time(gradebook.db, entry, time, is_same_file=is_same_file)
            provenance.put(gradebook.db, entry.id, provenance.of(report, page=""))  # none of our pages shows it yet
            gradebook.db.commit()
        return nb, resources
