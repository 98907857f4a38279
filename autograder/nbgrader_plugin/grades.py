"""Take from the gradebook what a page shows besides nbgrader's own: blank and ungraded answers, unclear times."""

from typing import Any

from nbgrader.api import Gradebook
from nbgrader.preprocessors import GetGrades

from ..gradebook.entry import is_blank
from ..gradebook.lateness import unresolved_stamps


class ReadGrades(GetGrades):
    """nbgrader's own, which takes a mark that is not given yet for a 0."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        nb, resources = super().preprocess(nb, resources)
        about = resources["nbgrader"]
        with Gradebook(about["db_url"]) as gradebook:
            entry = gradebook.find_submission_notebook(about["notebook"], about["assignment"], about["student"])
            about["is_time_unresolved"] = entry.id in unresolved_stamps(gradebook.db)
        return nb, resources

    def _get_score(self, cell: Any, resources: Any) -> None:
        super()._get_score(cell, resources)
        about = cell.metadata.nbgrader
        grade = self.gradebook.find_grade(about["grade_id"], self.notebook_id, self.assignment_id, self.student_id)
        about["waiting"] = grade.auto_score is None and grade.manual_score is None
        about["blank"] = is_blank(about["grade_id"], grade)
