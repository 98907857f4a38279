"""Marks one notebook: its cells in the sandbox, its exercises by the graders, the rest by the rules."""

import contextlib
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
import torch
from msgspec.structs import replace

from .. import catalogue, course, notebook
from ..client.requests import MarkNotebook
from ..course import kit
from ..course.cells import code_cells, unit_of
from ..diagnosis.in_short import in_short
from ..graders import cases
from ..report import CellReport, Conditions, Diagnosis, ExerciseReport, Report, SubmissionStatus, joined, without_marks
from ..sandbox.failures import SandboxLost
from ..sandbox.fork_server import ForkServer
from ..student.sandboxed import SandboxedNotebook
from . import redaction, scoring
from .examiner import Examiner, Finding, candidate_bench
from .missing import about_stubs, why_missing
from .moments import judge
from .notes import notes
from .whereabouts import with_whereabouts
from .written_questions import written_questions

_MOST_NAMED = 5


class NoSandbox(Exception):
    """There is no sandbox to run a notebook in."""


@dataclass(frozen=True)
class Desk:
    """What marking needs: the examiner, the sandbox, and the terms."""

    examiner: Examiner
    sandbox: ForkServer | None
    conditions: Conditions
    class_folder: Path | None = None
    """The class whose units are marked."""

    def mark(self, submission: MarkNotebook) -> Report:
        """The report on what was handed in; raises UnusableUnit and NoSandbox."""
        parsed = notebook.parse(submission.content)
        if isinstance(parsed, notebook.Damaged):
            return self.without_marks(submission, "damaged", parsed)
        kept = self.class_folder
        unit = course.unit(submission.unit, kept) if submission.unit else unit_of(parsed, kept)
        if isinstance(unit, notebook.Damaged):
            return self.without_marks(submission, "damaged", unit)
        course.refuse_outgrown(unit)
        if self.sandbox is None:
            raise NoSandbox("This marking process was started for the kit's own code alone.")
        losses = self.sandbox.losses
        try:
            report = self._marked(submission, parsed, unit, self.sandbox)
        except SandboxLost:
            report = None
        # Some of it may have been marked without a sandbox, through no fault of the submission: so all of it again.
        if report and self.sandbox.losses == losses:
            return report
        return self._marked(submission, parsed, unit, self.sandbox)

    def _marked(
        self, submission: MarkNotebook, parsed: notebook.RawNotebook, unit: course.Unit, sandbox: ForkServer
    ) -> Report:
        cells = code_cells(parsed, unit)
        names = [exercise.name for exercise in unit.exercises]
        hunted = self.examiner.hunted(unit.name)
        code = SandboxedNotebook(sandbox, cells, self.conditions.device, exercises=names, wrong=hunted)
        with contextlib.closing(code):
            outcomes = [replace(outcome, message=about_stubs(outcome.message, cells)) for outcome in code.run_cells()]
            troubled = {exercise.name: _troubled_cell(exercise.name, cells, outcomes) for exercise in unit.exercises}
            judged = judge(
                unit.exercises, code, cells, lambda one: self.examiner.examine(unit.name, one.name, code), _score
            )
            exercises: list[ExerciseReport] = []
            for exercise in unit.exercises:
                wrong = {other.name for other in exercises if other.status not in ("passed", "grader_error")}
                usual = sorted(wrong & catalogue.used_by(unit.name, exercise.name))
                own = [cell for cell in cells if usual and cell.defines(exercise.name)]
                marked = self._mark_exercise(
                    unit.name,
                    exercise,
                    judged[exercise.name].finding,
                    troubled[exercise.name],
                    uses_wrong=[name for name in usual if any(name in cell.names for cell in own)],
                    why_missing=partial(why_missing, exercise.name, parsed, unit, cells),
                )
                exercises.append(replace(marked, note=judged[exercise.name].note))
            # Last, so that it costs no exercise anything that is marked.
            is_value = partial(self.examiner.is_value, unit.name)
            exercises = [_about_stubs(exercise, cells) for exercise in exercises]
            at_end = [name for name, one in judged.items() if one.at_end]
            aspects = {name: one.finding.lost_aspects for name, one in judged.items()}
            exercises = with_whereabouts(unit.name, exercises, code, cells, is_value, aspects, at_end)
        said = joined(self._of_another_unit(parsed, unit, exercises), _of_failed(outcomes), notes(unit, cells))
        report = self._report(submission, unit, exercises, outcomes, said)
        return replace(report, written=written_questions(parsed, unit, self.class_folder))

    def _of_another_unit(
        self, parsed: notebook.RawNotebook, unit: course.Unit, exercises: Sequence[ExerciseReport]
    ) -> str:
        """That the notebook is that of another unit, where nothing of this one is in it."""
        if any(exercise.status != "missing" for exercise in exercises):
            return ""
        found = unit_of(parsed, self.class_folder)
        if isinstance(found, notebook.Damaged) or found == unit:
            return ""
        return f"This is the notebook of `{found.name}`, not that of `{unit.name}`."

    def without_marks(self, submission: MarkNotebook, status: SubmissionStatus, why: object) -> Report:
        """The report on a submission of which nothing can be run."""
        unit = submission.unit if status == "grader_error" else None
        return without_marks(
            submission.name, status, str(why), self.conditions,
            unit=unit, submission=submission.digest, note=submission.note,
        )  # fmt: skip

    def mark_candidate(self, unit: course.Unit, candidate: catalogue.Candidate | None) -> Report:
        """The report on one entry of the catalogue, or on the solutions, run in this process: no secret is in it."""
        exercises = unit.exercises if candidate is None else (unit.exercise(candidate.exercise),)
        bench = candidate_bench(unit.name, candidate and candidate.anew(), watch=True)
        reports = [
            self._mark_exercise(
                unit.name, exercise, self.examiner.examine(unit.name, exercise.name, bench, candidate), None
            )
            for exercise in exercises
        ]
        return self._report(MarkNotebook(candidate.name if candidate else "solutions", b""), unit, reports, [], "")

    def _mark_exercise(
        self,
        unit: str,
        exercise: course.Exercise,
        finding: Finding,
        cell: CellReport | None,
        uses_wrong: Sequence[str] = (),
        why_missing: Callable[[], str] = str,
    ) -> ExerciseReport:
        diagnosis = None if uses_wrong else self._diagnosed(unit, exercise.name, finding)
        try:
            report = scoring.mark(
                exercise,
                finding.verdicts,
                library_calls=finding.library_calls,
                diagnosis=diagnosis,
                cell=cell,
                uses_wrong=uses_wrong,
                why_missing=why_missing() if any(verdict.missing for verdict in finding.verdicts) else "",
            )
        except Exception:
            traceback.print_exc()
            return scoring.without_mark(exercise)
        return _with_behaviour(report, finding) if diagnosis is None and not uses_wrong else report

    def _diagnosed(self, unit: str, exercise: str, finding: Finding) -> Diagnosis | None:
        """The mistake's name. A fault of ours in looking for it costs the name alone: the mark needs none."""
        try:
            return self.examiner.diagnose(unit, exercise, finding)
        except Exception:
            print(f"{unit}: no mistake could be looked for in {exercise}:", file=sys.stderr)
            traceback.print_exc()
            return None

    def _report(
        self,
        submission: MarkNotebook,
        unit: course.Unit,
        exercises: list[ExerciseReport],
        cells: list[CellReport],
        said: str,
    ) -> Report:
        return Report(
            notebook=submission.name,
            unit=unit.name,
            status=scoring.submission_status(exercises, cells),
            isolation=self.conditions.isolation,
            device=self.conditions.device,
            score=round(sum(exercise.score for exercise in exercises), 2),
            max_score=sum(exercise.max_score for exercise in exercises),
            exercises=[redaction.exercise(exercise) for exercise in exercises],
            message=joined(submission.note, redaction.readable(said)),
            cells=redaction.cells(cells),
            enforced=self.conditions.enforced,
            submission=submission.digest,
            kit=kit.digest(unit.name, self.class_folder),
            torch=str(torch.__version__),
            cases=cases.DRAWN_FROM,
        )


def _score(exercise: course.Exercise, finding: Finding) -> float:
    """The points that a finding earns; all of them if a fault of ours is found, which nothing else mends."""
    try:
        report = scoring.mark(exercise, finding.verdicts, library_calls=finding.library_calls)
    except Exception:  # reported when the exercise is marked
        return exercise.points
    return exercise.points if report.status == "grader_error" else report.score


def _about_stubs(report: ExerciseReport, cells: Sequence[notebook.CodeCell]) -> ExerciseReport:
    """The report with messages that say only of untouched stubs that nothing is written."""
    if report.status == "passed":
        return report
    tests = [replace(test, message=about_stubs(test.message, cells)) for test in report.tests]
    return replace(report, message=about_stubs(report.message, cells), tests=tests)


def _with_behaviour(report: ExerciseReport, finding: Finding) -> ExerciseReport:
    """The report of an answer that has no name, if it failed, with what tells which others do the same."""
    if report.status != "failed":
        return report
    try:
        return msgspec.structs.replace(report, behaviour=in_short(finding.fingerprint))
    except Exception:  # a fault of ours costs the behaviour alone
        traceback.print_exc()
        return report


def _of_failed(outcomes: Sequence[CellReport]) -> str:
    """Which cells failed, as far as anyone reads a list."""
    failed = [cell.cell for cell in outcomes if cell.troubled]
    if not failed:
        return ""
    more = f" and {len(failed) - _MOST_NAMED} more" if len(failed) > _MOST_NAMED else ""
    return f"Cells that did not run to their end: {', '.join(failed[:_MOST_NAMED])}{more}."


def _troubled_cell(
    exercise: str, cells: Sequence[notebook.CodeCell], outcomes: Sequence[CellReport]
) -> CellReport | None:
    """The last cell that means to define the exercise, if it did not run to its end."""
    for cell, outcome in zip(reversed(cells), reversed(outcomes), strict=True):
        if cell.exercise == exercise or cell.defines(exercise):
            return outcome if outcome.troubled else None
    return None
