"""What nbgrader's generate_feedback takes from the gradebook: also which answers are blank or wait for a person."""

from typing import Any

from nbgrader.preprocessors import GetGrades

from ..gradebook.entry import is_blank


class ReadGrades(GetGrades):
    """nbgrader's own, which takes a mark that is not given yet for a 0."""

    def _get_score(self, cell: Any, resources: Any) -> None:
        super()._get_score(cell, resources)
        about = cell.metadata.nbgrader
        grade = self.gradebook.find_grade(about["grade_id"], self.notebook_id, self.assignment_id, self.student_id)
        about["waiting"] = grade.auto_score is None and grade.manual_score is None
        about["blank"] = is_blank(about["grade_id"], grade)
