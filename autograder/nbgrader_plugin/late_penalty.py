"""nbgrader's late submission plugin, with the rule in the class's autograder.toml."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from nbgrader.plugins import LateSubmissionPlugin

from ..course import settings
from ..course.folder import FILE
from ..course.late_penalty import DAY
from ..gradebook.course_directory import CourseProblem
from ..gradebook.lateness import late_days


class ClassLatePenalty(LateSubmissionPlugin):
    """Takes off points by the rule in [late_penalty]; without one, by nbgrader's own `penalty_method`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.rule = settings.of_late_penalty(Path(self.config.CourseDirectory.root))
        if self.rule and self.penalty_method != "none":
            raise CourseProblem(
                f"The penalty for lateness is set twice: [late_penalty] in {FILE}, and "
                "LateSubmissionPlugin.penalty_method in nbgrader_config.py. Take one of them out."
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
