"""The questions of a unit that are answered in words, and that a person grades."""

from pathlib import Path

from .. import course
from ..course.written_answers import written_answers
from ..notebook import RawNotebook
from ..report import WrittenQuestion


def written_questions(
    notebook: RawNotebook, unit: course.Unit, class_folder: Path | None = None
) -> list[WrittenQuestion]:
    """Return each question of the unit, with whether and where the notebook answers it."""
    points = course.points(unit.name, class_folder)
    return [
        WrittenQuestion(name, answer.status, points[name], answer.found_in)
        for name, answer in written_answers(notebook, unit, class_folder).items()
    ]
