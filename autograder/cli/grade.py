"""`autograder grade`."""

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress, TaskID
from rich.table import Table

from .. import course
from ..classroom.grade import ClassResult, NothingToGrade, Row
from ..classroom.grade import grade as grade_class
from ..grading.client import GraderRefused
from ..grading.requests import Device
from ..report import ExerciseReport
from .saying import aside, console, refuse

_STATUS = {
    "graded": "graded",
    "cells_failed": "cells failed",
    "timed_out": "timed out",
    "crashed": "crashed",
    "damaged": "damaged",
    "grader_error": "grader error",
}


def grade(
    unit: Annotated[str, typer.Argument(help="The unit, e.g. self_attention.")],
    submitted: Annotated[
        Path | None, typer.Option(help="Submissions, as STUDENT/UNIT/UNIT.ipynb; COURSE/submitted if not given.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Grader processes side by side.")] = os.cpu_count() or 1,
    device: Annotated[Device, typer.Option(help="Where the exercises' tensors are.")] = "auto",
    course_folder: Annotated[
        Path, typer.Option("--course", help="The nbgrader course with the gradebook.")
    ] = course.REPOSITORY,
) -> None:
    """Grade a class: into the gradebook, with a table here and a feedback page for everyone."""
    try:
        with Progress(console=aside, transient=True) as progress:
            bar = _Bar(progress, unit)
            result = grade_class(
                unit,
                course_folder,
                submitted=submitted,
                device=device,
                workers=workers,
                on_start=bar.start,
                on_row=bar.advance,
            )
    except (course.UnknownUnit, NothingToGrade, GraderRefused) as reason:
        refuse(reason)
    console.print(_table(unit, result))
    for row in result.rows:
        if row.problem:
            aside.print(f"{row.student}: not recorded. {row.problem}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"Gradebook: {_short(result.gradebook)}", highlight=False, soft_wrap=True)
    console.print(f"Feedback pages: {_short(result.feedback)}/<student>/{unit}/{unit}.html", highlight=False, soft_wrap=True)
    if any(row.problem for row in result.rows):
        raise typer.Exit(1)


class _Bar:
    def __init__(self, progress: Progress, unit: str) -> None:
        self._progress = progress
        self._unit = unit
        self._task: TaskID | None = None

    def start(self, total: int) -> None:
        self._task = self._progress.add_task(self._unit, total=total)

    def advance(self, row: Row) -> None:
        if self._task is not None:
            self._progress.advance(self._task)


def _table(unit: str, result: ClassResult) -> Table:
    terms = f"device {result.terms.device}, isolation {result.terms.isolation}"
    table = Table(title=f"{unit}: {len(result.rows)} submissions ({terms})", title_justify="left")
    table.add_column("student")
    table.add_column("status")
    table.add_column("score", justify="right")
    for exercise in course.unit(unit).exercises:
        table.add_column(exercise.name, justify="right")
    table.add_column("what happened", overflow="fold")
    for row in result.rows:
        report = row.report
        marks = {exercise.name: f"{exercise.score:g}" for exercise in report.exercises}
        table.add_row(
            row.student,
            _STATUS[report.status],
            f"{report.score:g} / {course.unit(unit).max_score:g}",
            *(marks.get(exercise.name, "–") for exercise in course.unit(unit).exercises),
            "; ".join(filter(None, map(_in_short, report.exercises))) or report.message,
        )
    return table


def _in_short(exercise: ExerciseReport) -> str:
    if exercise.status == "passed":
        return ""
    return f"{exercise.name}: {exercise.diagnosis.name if exercise.diagnosis else exercise.status}"


def _short(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
