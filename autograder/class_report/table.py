"""The class report as a table for a spreadsheet: a line a student, two columns an exercise."""

from ..gradebook.spreadsheet import as_csv, text
from .shape import CellFigures, ClassReport, Row

_COLUMNS = ("student", "name", "status", "late_minutes", "raw_score", "late_penalty", "score", "max_score")


def table(report: ClassReport) -> str:
    """The table as CSV. A mark that waits for a person is empty; two mistakes at once are joined by a plus."""
    exercises = [exercise.name for exercise in report.exercises]
    header = [*_COLUMNS, *(column for name in exercises for column in (name, f"{name}: mistakes"))]
    rows = (
        [*_about(row, report.max_score), *(value for name in exercises for value in _of(row, name))]
        for row in report.rows
    )
    return as_csv([header, *rows])


def _about(row: Row, max_score: float) -> list[object]:
    late = "unknown" if row.is_lateness_unknown else row.late_minutes
    figures = (late, row.raw_score, row.late_penalty, row.score, max_score)
    return [text(row.student), text(row.name), row.status, *figures]


def _of(row: Row, exercise: str) -> tuple[object, str]:
    cell: CellFigures | None = row.cells.get(exercise)
    if cell is None:
        return "", ""
    return "" if cell.is_waiting else cell.score, text(" + ".join(cell.mistakes))
