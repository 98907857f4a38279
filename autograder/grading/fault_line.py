"""Find the line at which a wrong answer goes wrong, and add it to the report. This does not change the points."""

import sys
import traceback
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial

import torch
from msgspec.structs import replace

from ..core.arguments import Arguments
from ..core.edit_trials import OverLimit, cpu_limit
from ..core.lost_aspects import LostAspect
from ..core.observation import CELL_PREFIX, StudentFault
from ..core.operations import FindLostAspect, TraceRun
from ..core.run_trace import Run
from ..course.notebook import CodeCell
from ..graders.backend import Backend
from ..graders.budget import OutOfBudget
from ..graders.decoding import decode_trace
from ..graders.sandboxed import SandboxedNotebook
from ..report import USES_WRONG, ExerciseReport, FaultLocation
from ..sandbox.client import Crashed, SandboxLost, TimedOut
from ..student_check.fault_location import WAYS, explain_aspect
from ..tracing.explain import Source, explain, line_of
from ..tracing.fault_search import locate_fault
from ..tracing.reference import TraceCase
from .examiner import Finding
from .messages import readable
from .reference_trace import reference_trace, trace_cases

MAX_SECONDS = 10.0
"""Limit for this process's CPU seconds for one submission, because a worker may send traces that are slow to search."""

CODE_FAILURES = (StudentFault, TimedOut, Crashed, OutOfBudget)
"""Exceptions that a backend may raise because of the student's code."""

_reference = cache(lambda unit, exercise, number: reference_trace(unit, trace_cases(unit, exercise)[number]))


def add_fault_lines(
    unit: str,
    reports: Sequence[ExerciseReport],
    code: SandboxedNotebook,
    cells: Sequence[CodeCell],
    findings: Mapping[str, Finding],
    at_end: Collection[str] = (),
) -> list[ExerciseReport]:
    """Return the reports, and add the faulty line to that of each failed exercise, if the line is found.

    code: the submission in the sandbox. findings: by exercise. at_end: exercises that were judged in the state at the
    notebook's end, not at their check cell.
    """
    located: dict[str, ExerciseReport] = {}
    with suppress(OverLimit), cpu_limit(MAX_SECONDS):  # the worker is not used after this
        for report in reports:
            name = report.name
            has_failed = report.status == "failed" and any(test.outcome == "failed" for test in report.tests)
            if has_failed and not report.message.startswith(USES_WRONG):
                code.begin_exercise(None if name in at_end else name)
                own = [cell for cell in cells if cell.defines(name)]
                located[name] = _with_fault_line(unit, report, code, own, findings[name])
    return [located.get(report.name, report) for report in reports]


def _with_fault_line(
    unit: str, report: ExerciseReport, code: SandboxedNotebook, cells: Sequence[CodeCell], finding: Finding
) -> ExerciseReport:
    """Return the report with the faulty line, if it is found. cells: those that define the exercise."""
    texts = {CELL_PREFIX + cell.name: cell.source.splitlines() for cell in cells}

    def source(file: str) -> list[str]:
        return texts.get(file, [])

    try:
        location = fault_line(unit, report.name, code, source) if finding.has_wrong_values else None
        location = location or line_of_aspect(unit, report.name, code, source, finding.lost_aspects)
    except CODE_FAILURES:
        return report
    except SandboxLost:
        raise
    except Exception:
        print(f"{unit}: the search for a faulty line failed in {report.name}:", file=sys.stderr)
        traceback.print_exc()
        return report
    if location is None:
        return report
    return replace(report, whereabouts=replace(location, told=readable(location.told)))


def fault_line(unit: str, exercise: str, backend: Backend, source: Source) -> FaultLocation | None:
    """Return the line at which the values of an answer become wrong; None if it is not found.

    source: returns the lines of a file if it defines the exercise, otherwise an empty list. Exceptions of the backend
    are passed on.
    """
    for number, case in enumerate(trace_cases(unit, exercise)):
        right = _reference(unit, exercise, number)
        if right is None:
            continue
        first = _trace(backend, case, {})
        if right.is_right(first):
            continue
        fault = locate_fault(right, partial(_trace_again, backend, case, first))
        if fault is None or not all(line_of(source(fault.file), line) for line in fault.lines):
            return None  # the fault may be in another cell
        return FaultLocation(list(fault.lines), explain(fault, case, source), fault.step)
    return None


def line_of_aspect(
    unit: str, exercise: str, backend: Backend, source: Source, aspects: Iterable[tuple[str, Sequence[str]]]
) -> FaultLocation | None:
    """Return the line at which an answer loses an aspect, such as a gradient or a dtype; None if it is not found.

    source: as in `fault_line`. aspects: each with its details, as in `core.comparison.Mismatch`.
    """
    for aspect, details in aspects:
        for case in trace_cases(unit, exercise):
            call = Arguments(case.arguments), case.built, case.parameters, case.through
            try:
                lost = _lost(backend.ask(FindLostAspect(exercise, *call, aspect, tuple(details))))
            except StudentFault:
                continue  # another case may show it
            if lost and (line := line_of(source(lost.file), lost.line)):
                return FaultLocation([lost.line], explain_aspect(aspect, details, lost, case, line))
    return None


def _lost(sent: str) -> LostAspect | None:
    """Parse a worker's answer to FindLostAspect; None if no line is found. A student can forge the answer."""
    line, how, file = [*sent.split(" ", 2), "", ""][:3]
    return LostAspect(file, int(line), how) if line.isdecimal() and len(line) < 6 and how in WAYS else None


def _trace(backend: Backend, case: TraceCase, replaced: Mapping[int, torch.Tensor]) -> Run:
    """Run an answer on a trace case and return its trace. replaced: new values of its tensors, by their number."""
    call = case.exercise, Arguments(case.arguments), case.built, case.parameters, case.through
    values = tuple(tensor.float() for tensor in replaced.values())
    return decode_trace(backend.ask(TraceRun(*call, tuple(replaced), values)))


def _trace_again(backend: Backend, case: TraceCase, first: Run, replaced: Mapping[int, torch.Tensor]) -> Run:
    return _trace(backend, case, replaced) if replaced else first
