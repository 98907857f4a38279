"""Records what nbgrader's `SaveAutoGrades` does not: a failed hidden test, a mark's basis, an unclear time stamp."""

from pathlib import Path
from typing import Any

import msgspec
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor

from ..gradebook import lateness, provenance
from ..gradebook.entry import unmarked
from ..gradebook.time_stamp import StampFormat, SubmissionTime, stamp_at
from ..report import REPORT_FILE, Report


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
            lateness.record_time(gradebook.db, entry, self._time(about), is_same_file=is_same_file)
            provenance.put(gradebook.db, entry.id, provenance.of(report, page=""))  # none of our pages shows it yet
            gradebook.db.commit()
        return nb, resources

    def _time(self, about: Any) -> SubmissionTime:
        directory = self.parent.parent.coursedir
        place = directory.format_path(directory.submitted_directory, about["student"], about["assignment"])
        return StampFormat.of_course(directory).read(stamp_at(Path(place)))
