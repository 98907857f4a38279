"""The class in nbgrader's gradebook: the unit, the students, and one writer that records their marks."""

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
            with self._api.gradebook as gradebook:
                known = unit in {assignment.name for assignment in gradebook.assignments}
            if not known:
                self._add_unit()
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
        result = self._api.autograde(self._unit, student, force=True, create=True)
        if result["success"]:
            result = self._api.generate_feedback(self._unit, student, force=True)
        return "" if result["success"] else (result.get("error") or result["log"]).strip().splitlines()[-1]

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

    def _add_unit(self) -> None:
        with tempfile.TemporaryDirectory() as folder:  # release/ is made by `build`; here only the gradebook is
            api: Any = nbgrader_api(self._root, source=course.SOURCE, release=Path(folder))
            result = api.generate_assignment(self._unit, force=True, create=True)
        if not result["success"]:
            raise GradebookProblem(f"nbgrader could not put {self._unit} into the gradebook:\n{result['log']}")
