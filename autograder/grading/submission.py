"""Grade one notebook: run its cells in the sandbox and its exercises' hidden tests, and make the report."""

import contextlib
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import torch
from msgspec.structs import replace

from .. import UserError, catalogue, course
from ..catalogue.transcript import short_signature
from ..course import content, notebook
from ..course.cells import code_cells, unit_of, written_answers
from ..graders.proxy import DRAWN_FROM, DRAWN_FROM_SECRET
from ..graders.sandboxed import Change, SandboxedNotebook
from ..pool.requests import GradeNotebook
from ..report import (
    CellReport,
    Conditions,
    Diagnosis,
    ExerciseReport,
    Report,
    SubmissionStatus,
    WrittenQuestion,
    joined,
    ungraded_report,
)
from ..sandbox.client import SandboxLost
from ..sandbox.fork_server import ForkServer
from ..tracing.definitions import used_answers
from . import messages, scoring
from .examiner import Examiner, Finding, candidate_bench
from .fault_line import CODE_FAILURES, add_fault_lines
from .repair_search import RepairTime
from .repairs import RepairCache, add_repairs

_MOST_CELLS = 5
_MOST_CHANGES = 3


class NoSandbox(UserError):
    """Raised if a notebook is to be graded in a process that was started without a sandbox."""


@dataclass(frozen=True)
class Judged:
    """The finding on an exercise in the better of two states: after its check cell, or at the notebook's end."""

    finding: Finding
    at_end: bool = False
    changes: Sequence[Change] = ()
    """The names that cells after the check cell changed, if the exercise was judged in both states."""

    @property
    def note(self) -> str:
        """A message to the student that names these cells; empty if the exercise was judged in one state only."""
        if not self.changes:
            return ""
        names = " and ".join(f"`{change.name}` in the cell `{change.cell}`" for change in self.changes[:_MOST_CHANGES])
        moment = "at the end of the notebook, where it earns more points," if self.at_end else "at its check"
        return f"After its check you changed {names}. The version {moment} is graded."


@dataclass(frozen=True)
class NotebookGrading:
    """Grades notebooks and known answers with the examiner and the sandbox of a grading process."""

    examiner: Examiner
    sandbox: ForkServer | None
    conditions: Conditions
    class_folder: Path | None = None
    """Folder of the class whose copies of the units are graded; None for the course's units."""
    repairs: RepairCache = field(default_factory=RepairCache)

    def grade(self, submission: GradeNotebook) -> Report:
        """Grade a submission and return the report; raises UnusableUnit, UnknownUnit and NoSandbox."""
        parsed = notebook.parse(submission.content)
        if isinstance(parsed, notebook.UnreadableNotebook):
            return self.without_score(submission, "damaged", parsed)
        folder = self.class_folder
        unit = course.unit(submission.unit, folder) if submission.unit else unit_of(parsed, folder)
        if isinstance(unit, notebook.UnreadableNotebook):
            return self.without_score(submission, "damaged", unit)
        course.refuse_removed_exercises(unit)
        if self.sandbox is None:
            raise NoSandbox("This grading process was started only for the autograder's own code.")
        losses = self.sandbox.losses
        with contextlib.suppress(SandboxLost):
            report = self._grade(submission, parsed, unit, self.sandbox)
            if self.sandbox.losses == losses:
                return report
        # The sandbox was lost meanwhile, without fault of the submission, so all of it is graded again.
        return self._grade(submission, parsed, unit, self.sandbox)

    def _grade(
        self, submission: GradeNotebook, parsed: notebook.RawNotebook, unit: course.Unit, sandbox: ForkServer
    ) -> Report:
        cells = code_cells(parsed, unit)
        code = self._backend(sandbox, unit, cells)
        with contextlib.closing(code):
            outcomes = [
                replace(outcome, message=messages.about_stubs(outcome.message, cells)) for outcome in code.run_cells()
            ]
            judged = self._judge(unit, code, cells)
            exercises: list[ExerciseReport] = []
            for exercise in unit.exercises:
                wrong = {other.name for other in exercises if other.status not in ("passed", "grader_error")}
                scored = self._score(
                    unit.name,
                    exercise,
                    judged[exercise.name].finding,
                    _failed_cell(exercise.name, cells, outcomes),
                    uses_wrong=_used_of(wrong, exercise.name, cells),
                    why_missing=partial(messages.why_missing, exercise.name, parsed, unit, cells),
                )
                if scored.status != "passed":
                    scored = messages.with_messages(scored, partial(messages.about_stubs, cells=cells))
                exercises.append(replace(scored, note=judged[exercise.name].note))
            # Last, so that an error in it cannot change points.
            findings = {name: one.finding for name, one in judged.items()}
            at_end = [name for name, one in judged.items() if one.at_end]
            exercises = add_fault_lines(unit.name, exercises, code, cells, findings, at_end)
        message = joined(
            self._on_another_unit(parsed, unit, exercises), _on_failed_cells(outcomes), messages.notes(unit, cells)
        )
        report = self._report(submission, unit, exercises, outcomes, message)
        return replace(report, written=self._written_questions(parsed, unit))

    def with_repairs(self, submission: GradeNotebook, report: Report) -> Report:
        """Search for repairs of a graded submission's unexplained answers, and return the report with those found.

        This does not change the points. Raises SandboxLost.
        """
        parsed = notebook.parse(submission.content)
        unexplained = [one.name for one in report.exercises if one.status == "failed" and one.behaviour is not None]
        if not unexplained or isinstance(parsed, notebook.UnreadableNotebook) or report.unit is None:
            return report
        assert self.sandbox is not None
        unit = course.unit(report.unit, None if submission.of_course else self.class_folder)
        start = partial(self._backend, self.sandbox, unit)
        cells, time = code_cells(parsed, unit), RepairTime(self.sandbox.cpu_seconds)
        return add_repairs(report, unit, cells, self.examiner, start, unexplained, self.repairs, time)

    def _backend(
        self, sandbox: ForkServer, unit: course.Unit, cells: Sequence[notebook.CodeCell], *, is_alone: bool = False
    ) -> SandboxedNotebook:
        return SandboxedNotebook(
            sandbox,
            cells,
            self.conditions.device,
            exercises=[exercise.name for exercise in unit.exercises],
            wrong=self.examiner.hunted(unit.name),
            is_alone=is_alone,
        )

    def _judge(
        self, unit: course.Unit, code: SandboxedNotebook, cells: Sequence[notebook.CodeCell]
    ) -> dict[str, Judged]:
        """Examine each exercise in its state after the check cell, and at the notebook's end if that may be better.

        The state at the end is only examined if the first one does not earn all points and later cells changed names
        that the answer uses. This is done in another worker, because it gets the same requests, and the code must not
        remember those.
        """
        judged: dict[str, Judged] = {}
        for exercise in unit.exercises:
            code.begin_exercise(exercise.name)
            judged[exercise.name] = Judged(self.examiner.examine(unit.name, exercise.name, code))
        earned = {exercise.name: _points(exercise, judged[exercise.name].finding) for exercise in unit.exercises}
        failed = [exercise for exercise in unit.exercises if earned[exercise.name] < exercise.points]
        changes = {exercise.name: _changes(exercise.name, code, cells) for exercise in failed}
        again = [exercise for exercise in failed if changes[exercise.name]]
        if again and not code.is_in_haste:
            code.renew()
            for exercise in again:
                code.begin_exercise()
                at_end = self.examiner.examine(unit.name, exercise.name, code)
                is_better = _points(exercise, at_end) > earned[exercise.name]
                finding = at_end if is_better else judged[exercise.name].finding
                judged[exercise.name] = Judged(finding, is_better, changes[exercise.name])
        return judged

    def _on_another_unit(
        self, parsed: notebook.RawNotebook, unit: course.Unit, exercises: Sequence[ExerciseReport]
    ) -> str:
        """Return a message if the notebook has no answer to this unit but belongs to another one; else empty."""
        if any(exercise.status != "missing" for exercise in exercises):
            return ""
        other = unit_of(parsed, self.class_folder)
        if isinstance(other, notebook.UnreadableNotebook) or other == unit:
            return ""
        return f"This is the notebook of `{other.name}`, not that of `{unit.name}`."

    def _written_questions(self, parsed: notebook.RawNotebook, unit: course.Unit) -> list[WrittenQuestion]:
        points = unit.points
        answers = written_answers(parsed, unit, self.class_folder)
        return [WrittenQuestion(name, one.status, points[name], one.found_in) for name, one in answers.items()]

    def without_score(self, submission: GradeNotebook, status: SubmissionStatus, why: object) -> Report:
        """Return the report on a submission that cannot be graded. why: the reason, as a message to the student."""
        unit = submission.unit if status == "grader_error" else None
        return ungraded_report(
            submission.name, status, str(why), self.conditions,
            unit=unit, submission=submission.digest, note=submission.note,
        )  # fmt: skip

    def grade_candidate(self, unit: course.Unit, candidate: catalogue.Candidate | None) -> Report:
        """Grade a known answer in this process and return the report. candidate: None for all solutions of the unit."""
        exercises = unit.exercises if candidate is None else (unit.exercise(candidate.exercise),)
        bench = candidate_bench(unit.name, candidate and candidate.recreated(), watch=True)
        reports = [
            self._score(unit.name, one, self.examiner.examine(unit.name, one.name, bench, candidate), None)
            for one in exercises
        ]
        return self._report(GradeNotebook(candidate.name if candidate else "solutions", b""), unit, reports, [], "")

    def _score(
        self,
        unit: str,
        exercise: course.Exercise,
        finding: Finding,
        cell: CellReport | None,
        uses_wrong: Sequence[str] = (),
        why_missing: Callable[[], str] = str,
    ) -> ExerciseReport:
        diagnosis = None if uses_wrong else self._diagnose(unit, exercise.name, finding)
        try:
            report = scoring.score(
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
            return scoring.without_score(exercise)
        is_explained = diagnosis is not None and not diagnosis.is_partial
        return report if is_explained or uses_wrong else _with_behaviour(report, finding)

    def _diagnose(self, unit: str, exercise: str, finding: Finding) -> Diagnosis | None:
        """Return the diagnosis of a wrong answer; None also after an error in the search, which changes no points."""
        try:
            return self.examiner.diagnose(unit, exercise, finding)
        except Exception:
            print(f"{unit}: the search for a misconception failed in {exercise}:", file=sys.stderr)
            traceback.print_exc()
            return None

    def _report(
        self,
        submission: GradeNotebook,
        unit: course.Unit,
        exercises: list[ExerciseReport],
        cells: list[CellReport],
        message: str,
    ) -> Report:
        return Report(
            notebook=submission.name,
            unit=unit.name,
            status=scoring.submission_status(exercises, cells),
            isolation=self.conditions.isolation,
            device=self.conditions.device,
            score=round(sum(exercise.score for exercise in exercises), 2),
            max_score=sum(exercise.max_score for exercise in exercises),
            exercises=[messages.with_messages(exercise, messages.readable) for exercise in exercises],
            message=joined(submission.note, messages.readable(message)),
            cells=messages.readable_cells(cells),
            enforced=self.conditions.enforced,
            submission=submission.digest,
            kit=content.unit_digest(unit.name, self.class_folder),
            torch=str(torch.__version__),
            cases=DRAWN_FROM_SECRET if self.examiner.has_secret(unit.name) else DRAWN_FROM,
        )


def _changes(exercise: str, code: SandboxedNotebook, cells: Sequence[notebook.CodeCell]) -> list[Change]:
    """Return the names that cells changed after an exercise's check cell.

    A worker reports them; those that the notebook's text does not contain are dropped.
    """
    try:
        changes = code.changes_after_check(exercise)
    except CODE_FAILURES:
        return []
    names = {cell.name for cell in cells}
    return [
        change
        for change in changes
        if change.name.isidentifier() and change.cell in names and any(change.name in cell.source for cell in cells)
    ]


def _points(exercise: course.Exercise, finding: Finding) -> float:
    """Return the points that a finding earns; after an error in the autograder, the exercise's maximum.

    With the maximum, the exercise is not examined in another state.
    """
    try:
        report = scoring.score(exercise, finding.verdicts, library_calls=finding.library_calls)
    except Exception:  # reported when the exercise is scored
        return exercise.points
    return exercise.points if report.status == "grader_error" else report.score


def _with_behaviour(report: ExerciseReport, finding: Finding) -> ExerciseReport:
    """Add the short signature of the transcript to the report on a failed answer, to find answers that behave alike."""
    if report.status != "failed":
        return report
    try:
        return replace(report, behaviour=short_signature(finding.transcript))
    except Exception:  # after an error in the autograder, only the signature is missing
        traceback.print_exc()
        return report


def _on_failed_cells(outcomes: Sequence[CellReport]) -> str:
    failed = [cell.cell for cell in outcomes if cell.troubled]
    if not failed:
        return ""
    more = f" and {len(failed) - _MOST_CELLS} more" if len(failed) > _MOST_CELLS else ""
    return f"Cells that did not run to their end: {', '.join(failed[:_MOST_CELLS])}{more}."


def _used_of(wrong: set[str], exercise: str, cells: Sequence[notebook.CodeCell]) -> list[str]:
    """Return which of these wrong exercises an answer uses in the cells that define it."""
    own = [
        (cell.name, cell.source[: notebook.MAX_CHARACTERS])
        for cell in cells
        if cell.defines(exercise) and cell.names & wrong
    ]
    return sorted(used_answers(exercise, own, wrong))


def _failed_cell(
    exercise: str, cells: Sequence[notebook.CodeCell], outcomes: Sequence[CellReport]
) -> CellReport | None:
    """Return the report on the last cell that should define an exercise, if it did not run to its end; else None."""
    for cell, outcome in zip(reversed(cells), reversed(outcomes), strict=True):
        if cell.exercise == exercise or cell.defines(exercise):
            return outcome if outcome.troubled else None
    return None
