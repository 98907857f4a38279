"""Marks one notebook: its cells in the sandbox, its exercises by the graders, the rest by the rules."""

import contextlib
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from .. import catalogue, course, kit, notebook
from ..hidden import cases
from ..report import CellReport, Diagnosis, ExerciseReport, Report, SubmissionStatus, without_marks
from ..sandbox.losses import SandboxLost
from ..sandbox.server import WarmParent
from ..student.backend import Backend
from ..student.sandboxed import SandboxedNotebook
from . import marking
from .examiner import Examiner, Finding, candidate_bench
from .redaction import redact

_MOST_NAMED = 5


@dataclass(frozen=True)
class Desk:
    """What marking needs: the examiner, the sandbox, and the terms."""

    examiner: Examiner
    sandbox: WarmParent
    enforced: list[str]
    device: str

    def mark(self, name: str, content: bytes, unit_name: str | None) -> Report:
        """The report on the bytes of a notebook file; damage is a status, not an error."""
        try:
            parsed = notebook.parse(content)
            unit = course.unit(unit_name) if unit_name else notebook.unit_of(parsed)
        except notebook.Damaged as damage:
            return self.without_marks(name, "damaged", str(damage), None)
        losses = self.sandbox.losses
        try:
            report = self._marked(name, parsed, unit)
        except SandboxLost:
            report = None
        # Some of it may have been marked without a sandbox, through no fault of the submission: so all of it again.
        return report if report and self.sandbox.losses == losses else self._marked(name, parsed, unit)

    def _marked(self, name: str, parsed: notebook.RawNotebook, unit: course.Unit) -> Report:
        cells = notebook.code_cells(parsed, unit)
        names = [exercise.name for exercise in unit.exercises]
        code = SandboxedNotebook(self.sandbox, cells, self.device, exercises=names)
        with contextlib.closing(code):
            outcomes = code.run_cells()
            troubled = {exercise.name: _troubled_cell(exercise.name, cells, outcomes) for exercise in unit.exercises}
            exercises: list[ExerciseReport] = []
            for exercise in unit.exercises:
                wrong = {marked.name for marked in exercises if marked.status not in ("passed", "grader_error")}
                usual = sorted(wrong & catalogue.used_by(unit.name, exercise.name))
                own = [cell for cell in cells if usual and cell.defines(exercise.name)]
                uses = [name for name in usual if any(name in cell.names for cell in own)]
                cell = troubled[exercise.name]
                code.begin_exercise()
                exercises.append(self._mark_exercise(unit.name, exercise, code, cell, uses_wrong=uses))
        report = self._report(name, unit, exercises, outcomes)
        report.message = " ".join(filter(None, [_of_another_unit(parsed, report), report.message]))
        return redact(report)

    def without_marks(self, name: str, status: SubmissionStatus, sentence: str, unit: str | None) -> Report:
        """The report on a submission of which nothing can be run."""
        return without_marks(
            name,
            status,
            sentence,
            isolation=self.sandbox.isolation,
            enforced=self.enforced,
            device=self.device,
            unit=unit,
        )

    def mark_candidate(self, unit: course.Unit, candidate: catalogue.Candidate | None) -> Report:
        """The report on one entry of the catalogue, or on the solutions, run in this process: no secret is in it."""
        exercises = unit.exercises if candidate is None else (unit.exercise(candidate.exercise),)
        bench = candidate_bench(unit.name, candidate, watch=True)
        reports = [self._mark_exercise(unit.name, exercise, bench, None, candidate) for exercise in exercises]
        return self._report(candidate.name if candidate else "solutions", unit, reports, [])

    def _mark_exercise(
        self,
        unit: str,
        exercise: course.Exercise,
        backend: Backend,
        cell: CellReport | None,
        entry: catalogue.Candidate | None = None,
        uses_wrong: Sequence[str] = (),
    ) -> ExerciseReport:
        finding = self.examiner.examine(unit, exercise.name, backend, entry)
        diagnosis = self._diagnosed(unit, exercise.name, finding)
        try:
            return marking.mark(
                exercise,
                finding.verdicts,
                library_calls=finding.library_calls,
                diagnosis=diagnosis,
                cell=cell,
                uses_wrong=uses_wrong,
            )
        except Exception:
            traceback.print_exc()
            return marking.without_mark(exercise)

    def _diagnosed(self, unit: str, exercise: str, finding: Finding) -> Diagnosis | None:
        """The mistake's name. A fault of ours in looking for it costs the name alone: the mark needs none."""
        try:
            return self.examiner.diagnose(unit, exercise, finding)
        except Exception:
            print(f"{unit}: no mistake could be looked for in {exercise}:", file=sys.stderr)
            traceback.print_exc()
            return None

    def _report(self, name: str, unit: course.Unit, exercises: list[ExerciseReport], cells: list[CellReport]) -> Report:
        failed = [cell.cell for cell in cells if cell.troubled]
        return Report(
            notebook=name,
            unit=unit.name,
            status=marking.submission_status(exercises, cells),
            isolation=self.sandbox.isolation,
            device=self.device,
            score=round(sum(exercise.score for exercise in exercises), 2),
            max_score=sum(exercise.max_score for exercise in exercises),
            exercises=exercises,
            message=_of_failed(failed),
            cells=cells,
            enforced=self.enforced,
            kit=kit.digest(unit.name),
            torch=str(torch.__version__),
            cases=cases.DRAWN_FROM,
        )


def _of_failed(cells: Sequence[str]) -> str:
    """Which cells failed, as far as anyone reads a list."""
    if not cells:
        return ""
    more = f" and {len(cells) - _MOST_NAMED} more" if len(cells) > _MOST_NAMED else ""
    return f"Cells that did not run to their end: {', '.join(cells[:_MOST_NAMED])}{more}."


def _of_another_unit(parsed: notebook.RawNotebook, report: Report) -> str:
    """That the notebook is that of another unit, where nothing of this one is in it."""
    if any(exercise.status != "missing" for exercise in report.exercises):
        return ""
    try:
        found = notebook.unit_of(parsed).name
    except notebook.Damaged:
        return ""
    return f"This is the notebook of `{found}`, not that of `{report.unit}`." if found != report.unit else ""


def _troubled_cell(
    exercise: str, cells: Sequence[notebook.CodeCell], outcomes: Sequence[CellReport]
) -> CellReport | None:
    """The last cell that means to define the exercise, if it did not run to its end."""
    for cell, outcome in zip(reversed(cells), reversed(outcomes), strict=True):
        if cell.exercise == exercise or cell.defines(exercise):
            return outcome if outcome.troubled else None
    return None
