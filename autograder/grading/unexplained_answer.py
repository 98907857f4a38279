"""An answer that no misconception explains, and the grading of a notebook in which this answer is edited."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Protocol

from .. import course
from ..core.observation import StudentFault
from ..course.notebook import CodeCell
from ..graders.budget import OutOfBudget
from ..graders.sandboxed import SandboxedNotebook
from ..sandbox.client import Crashed, TimedOut
from ..tracing.definitions import Definition, Edit, definitions
from . import scoring
from .examiner import Examiner
from .further_inputs import passes


class Start(Protocol):
    """A function that returns a backend for a notebook's cells."""

    def __call__(self, cells: Sequence[CodeCell], /, *, is_alone: bool = False) -> SandboxedNotebook:
        """is_alone: see `SandboxedNotebook`."""
        ...


@dataclass(frozen=True)
class Step:
    """One edit of a repair, and the definition that it changes."""

    definition: Definition
    edit: Edit

    @property
    def lines(self) -> list[int]:
        """The numbers of the lines in the cell that the edit changes."""
        return self.definition.lines(self.edit)

    def is_within(self, others: "Sequence[Step]") -> bool:
        """Return whether each place that the edit changes is within a place that one of the others changes."""
        places = [span for other in others if other.definition is self.definition for span in other.edit.spans]
        return all(any(a <= begin and end <= b for a, b, _ in places) for begin, end, _ in self.edit.spans)


def total_rank(steps: Sequence[Step]) -> int:
    """Return the sum of the edits' ranks; the likelier an edit, the lower its rank."""
    return sum(step.edit.rank for step in steps)


@dataclass(frozen=True)
class Repaired:
    """A repair of a student's code: one edit, or two that are both needed."""

    steps: tuple[Step, ...]

    @property
    def rank(self) -> int:
        """The sum of the edits' ranks."""
        return total_rank(self.steps)


@dataclass(frozen=True)
class UnexplainedAnswer:
    """An answer to an exercise, in the cells of a submission."""

    examiner: Examiner
    unit: course.Unit
    exercise: course.Exercise
    cells: Sequence[CodeCell]
    start: Start

    def definitions(self, without: Sequence[str] = ()) -> list[Definition]:
        """Return the definitions of the answer and of everything that it uses. without: exercises to leave out."""
        own = [(cell.name, cell.source) for cell in self.cells if not cell.is_ours]
        return definitions(self.exercise.name, own, without)

    def is_repaired(self, repaired: Repaired) -> bool:
        """Return whether a notebook with the edits earns all points for the exercise, and is right for further inputs.

        A new worker runs the notebook. An edit that is right only for the hidden tests' inputs is no repair.
        """
        exercise, cells = self.exercise, self.cells
        for step in repaired.steps:
            cells = _with(cells, step.definition, step.definition.edited(step.edit))
        with closing(self.start(cells)) as code:
            code.run_cells()
            code.begin_exercise(exercise.name)
            finding = self.examiner.examine(self.unit.name, exercise.name, code)
            report = scoring.score(exercise, finding.verdicts, library_calls=finding.library_calls)
            if report.status != "passed" or report.score != exercise.points:
                return False
            try:
                return passes(code, self.examiner.further_inputs(self.unit.name, exercise.name))
            except (StudentFault, TimedOut, Crashed, OutOfBudget):
                return False


def _with(cells: Sequence[CodeCell], old: Definition, new: Definition) -> list[CodeCell]:
    """Return the cells with the definition `old` replaced by `new`."""

    def edited(cell: CodeCell) -> CodeCell:
        lines = cell.source.splitlines(keepends=True)
        first, last = old.first_line - 1, old.first_line - 1 + len(old.text.splitlines())
        return replace(cell, source="".join([*lines[:first], new.text, *lines[last:]]))

    return [edited(cell) if cell.name == old.cell else cell for cell in cells]
