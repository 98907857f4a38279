"""The class in nbgrader's gradebook: the unit, the students, and one writer that records their marks."""

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from .. import course
from ..nbgrader_plugin.course_directory import nbgrader_api
from .roster import Student


class GradebookProblem(Exception):
    """The gradebook cannot be used; `str()` says why and what to do."""


class ClassGradebook:
    """The gradebook of the course in a folder, for one unit whose submissions are staged in another."""

    def __init__(self, root: Path, unit: str, staging: Path) -> None:
        """Raises GradebookProblem."""
        self._root = root
        self._unit = unit
        self._api = nbgrader_api(root, source=course.SOURCE, submitted=staging)
        try:
            if self._points_held() != course.points(unit):
                self._put_unit()
        except (SQLAlchemyError, OSError) as error:
            reason = getattr(error, "orig", None) or error
            raise GradebookProblem(
                f"The gradebook {root / 'gradebook.db'} cannot be opened and written: {reason}. "
                "Is the folder there and yours, and no other program writing to it?"
            ) from None

    def students(self) -> list[Student]:
        """Everyone in the gradebook."""
        with self._api.gradebook as gradebook:
            return [Student(s.id, s.first_name, s.last_name, s.email) for s in gradebook.students]

    def enrol(self, students: Sequence[Student]) -> None:
        """Adds students, or updates what the gradebook knows of them."""
        with self._api.gradebook as gradebook:
            for student in students:
                named = {"first_name": student.first_name, "last_name": student.last_name, "email": student.email}
                gradebook.update_or_create_student(student.id, **{k: v for k, v in named.items() if v is not None})

    def record(self, student: str) -> str:
        """Has nbgrader autograde the staged submission and write its feedback page; what went wrong, or nothing."""
        if set("[]*?") & set(student):
            return "nbgrader takes a name with [ ] * or ? for a pattern: rename the folder."
        result = self._api.autograde(self._unit, student, force=True, create=True)
        if result["success"]:
            result = self._api.generate_feedback(self._unit, student, force=True)
        return "" if result["success"] else _cause(result)

    def scores(self, student: str) -> dict[str, float]:
        """The automatic scores that the gradebook holds, by exercise; empty where there is no submission."""
        with self._api.gradebook as gradebook:
            names = {submission.student.id for submission in gradebook.assignment_submissions(self._unit)}
            if student not in names:
                return {}
            grades = gradebook.find_submission_notebook(self._unit, self._unit, student).grades
            return {
                grade.name.removeprefix(course.CHECK_PREFIX): float(grade.auto_score or 0.0)
                for grade in grades
                if grade.name.startswith(course.CHECK_PREFIX)
            }

    def _points_held(self) -> dict[str, float]:
        """The points of each grade cell as the gradebook has them; empty where it does not know the unit."""
        with self._api.gradebook as gradebook:
            if self._unit not in {assignment.name for assignment in gradebook.assignments}:
                return {}
            notebooks = gradebook.find_assignment(self._unit).notebooks
            return {cell.name: cell.max_score for notebook in notebooks for cell in notebook.grade_cells}

    def _put_unit(self) -> None:
        """Tells the gradebook of the unit's cells and points; of new points too, once there are submissions."""
        with tempfile.TemporaryDirectory() as folder:  # release/ is made by `build`; here only the gradebook is
            api: Any = nbgrader_api(self._root, source=course.SOURCE, release=Path(folder))
            result = api.generate_assignment(self._unit, force=True, create=True)
        if not result["success"]:
            raise GradebookProblem(
                f"nbgrader could not put {self._unit} as it is now into the gradebook: {_cause(result)} "
                "Exercises can be added or taken away only before anything is graded; keep this gradebook for the "
                "old version and start a new one."
            )


def _cause(result: Any) -> str:
    """What went wrong, out of everything that nbgrader logged."""
    said = ((result.get("error") or "") + "\n" + (result.get("log") or "")).splitlines()
    errors = [line.strip() for line in said if re.match(r"\s*[\w.]*(Error|Exception|MissingEntry)\b.*:", line)]
    return (errors or [line.strip() for line in said if line.strip()] or ["it did not say why."])[0]
