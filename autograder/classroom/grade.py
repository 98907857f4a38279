"""`autograder grade`: a class through the sandbox and nbgrader into the gradebook, one row for everyone."""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..grading.requests import Device, Ready
from ..nbgrader_plugin.preprocessor import marks_from
from ..report import Report
from ..settings import Settings
from .assignment import Assignment
from .gradebook import ClassGradebook
from .hand_in import stage
from .marking_ahead import MarkingAhead


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
    work: Assignment,
    *,
    device: Device,
    settings: Settings,
    workers: int,
    on_start: Callable[[int], None] = lambda total: None,
    on_row: Callable[[Row], None] = lambda row: None,
) -> ClassResult:
    """Grades everyone into the gradebook. Raises GraderRefused and GradebookProblem before anything is recorded."""
    with tempfile.TemporaryDirectory(prefix="staging-") as folder:
        staging = Path(folder)
        with MarkingAhead(work, device=device, settings=settings, workers=workers) as marking:
            gradebook = ClassGradebook(work.root, work.unit.name, staging)
            gradebook.enrol(work.students)
            terms = marking.start()
            on_start(len(work.students))
            rows = []
            with marks_from(marking):
                for row in _recorded(work, marking, gradebook, staging):
                    rows.append(row)
                    on_row(row)
    return ClassResult(rows, terms, work.feedback, work.root / "gradebook.db")


def _recorded(work: Assignment, marking: MarkingAhead, gradebook: ClassGradebook, staging: Path) -> Iterator[Row]:
    """Each student's row, once nbgrader has recorded it and written the feedback page."""
    for hand_in in work.hand_ins:
        problem = ""
        if hand_in.notebook is not None:
            stage(hand_in, work.unit.name, staging)
            problem = gradebook.record(hand_in.student)
        yield Row(hand_in.student, marking.report_of(hand_in.student), problem)
