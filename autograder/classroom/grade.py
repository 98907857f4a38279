"""`autograder grade`: a class through the sandbox and nbgrader into the gradebook, one row for everyone."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .. import course
from ..grading.requests import Device, Ready
from ..nbgrader_plugin.course_directory import nbgrader_api
from ..nbgrader_plugin.preprocessor import marks_from
from ..report import Report
from .marking_ahead import MarkingAhead


class NothingToGrade(Exception):
    """There is no class to grade; `str()` says what was looked for and where."""


@dataclass(frozen=True)
class Row:
    """One student's line in the table."""

    student: str
    report: Report
    problem: str = ""
    """What nbgrader said where it could not record the mark; empty where it did."""


@dataclass(frozen=True)
class ClassResult:
    """Where things are once a class is graded."""

    rows: list[Row]
    terms: Ready
    feedback: Path
    gradebook: Path


def grade(
    unit_name: str,
    root: Path,
    *,
    submitted: Path | None = None,
    device: Device = "auto",
    workers: int = 1,
    on_start: Callable[[int], None] = lambda total: None,
    on_row: Callable[[Row], None] = lambda row: None,
) -> ClassResult:
    """Grades everyone who handed in a unit, into the gradebook of the course in `root`.

    Raises UnknownUnit, NothingToGrade and GraderRefused before anything is written.
    """
    unit = course.unit(unit_name)
    root = root.resolve()
    submitted = (submitted or root / "submitted").resolve()
    notebooks = {folder.parent.name: folder / f"{unit_name}.ipynb" for folder in _handed_in(submitted, unit_name)}
    if not notebooks:
        raise NothingToGrade(
            f"Nobody has handed in `{unit_name}`: there is no {submitted}/<student>/{unit_name}/{unit_name}.ipynb."
        )
    with MarkingAhead(notebooks, unit.name, device=device, workers=workers) as marking:
        terms = marking.start()
        on_start(len(notebooks))
        rows = []
        with marks_from(marking):
            for row in _recorded(root, submitted, unit.name, marking, list(notebooks)):
                rows.append(row)
                on_row(row)
    return ClassResult(rows, terms, root / "feedback", root / "gradebook.db")


def _handed_in(submitted: Path, unit: str) -> list[Path]:
    return sorted(folder for folder in submitted.glob(f"*/{unit}") if folder.is_dir())


def _recorded(root: Path, submitted: Path, unit: str, marking: MarkingAhead, students: list[str]) -> Iterator[Row]:
    """Each student's row, once nbgrader has recorded it and written the feedback page."""
    api = nbgrader_api(root, source=course.SOURCE, submitted=submitted)
    with api.gradebook as gradebook:
        known = unit in {assignment.name for assignment in gradebook.assignments}
    if not known:
        with tempfile.TemporaryDirectory() as folder:  # release/ is made by `build`; here only the gradebook is
            enrolment = nbgrader_api(root, source=course.SOURCE, release=Path(folder))
            result = enrolment.generate_assignment(unit, force=True, create=True)
        if not result["success"]:
            raise RuntimeError(f"nbgrader could not put {unit} into the gradebook:\n{result['log']}")
    for student in students:
        result = api.autograde(unit, student, force=True, create=True)
        if result["success"]:
            result = api.generate_feedback(unit, student, force=True)
        problem = "" if result["success"] else (result.get("error") or result["log"]).strip().splitlines()[-1]
        yield Row(student, marking.report(student, unit, None), problem)
