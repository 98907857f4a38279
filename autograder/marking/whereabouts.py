"""Adds to the reports of exercises that failed where they go wrong. It decides no mark, and costs nothing but time."""

import sys
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

from msgspec.structs import replace

from .. import catalogue
from ..core.faults import StudentFault
from ..core.raising import CELL_PREFIX
from ..diagnosis.cpu_limit import OverLimit, cpu_limit
from ..notebook import CodeCell
from ..report import ExerciseReport
from ..sandbox.failures import Crashed, SandboxLost, TimedOut
from ..student.budget import OutOfBudget
from ..student.sandboxed import SandboxedNotebook
from . import redaction
from .finding import line_of_aspect, whereabouts

MOST_SECONDS = 10.0
"""Of this process, for a submission's lines: what a worker says it made is a stranger's graph, of any shape."""

NOT_TOLD = (StudentFault, TimedOut, Crashed, OutOfBudget)
"""What a student's code may do while it is watched: then nothing is said."""


def with_whereabouts(
    unit: str,
    reports: Sequence[ExerciseReport],
    code: SandboxedNotebook,
    cells: Sequence[CodeCell],
    is_value: Callable[[str, str], bool],
    aspects: Mapping[str, Sequence[tuple[str, Sequence[str]]]],
    at_end: Collection[str] = (),
) -> list[ExerciseReport]:
    """The reports; those that failed with where they go wrong.

    is_value: by exercise and test, if it is of values. aspects: by exercise, those that failed.
    at_end: the exercises that were judged as they stand at the end of the notebook, and not at their check.
    """
    wrong = {report.name for report in reports if report.status != "passed"}
    told: dict[str, ExerciseReport] = {}
    with suppress(OverLimit), cpu_limit(MOST_SECONDS):  # nothing else is asked of the worker after it
        for report in reports:
            if (
                report.status == "failed"
                and not wrong & catalogue.used_by(unit, report.name)
                and any(test.outcome == "failed" for test in report.tests)
            ):
                is_wrong = any(test.outcome == "failed" and is_value(report.name, test.name) for test in report.tests)
                own = [cell for cell in cells if cell.defines(report.name)]
                code.begin_exercise(None if report.name in at_end else report.name)
                told[report.name] = _told(unit, report, code, own, aspects[report.name], is_wrong=is_wrong)
    return [told.get(report.name, report) for report in reports]


def _told(
    unit: str,
    report: ExerciseReport,
    code: SandboxedNotebook,
    cells: Sequence[CodeCell],
    aspects: Sequence[tuple[str, Sequence[str]]],
    *,
    is_wrong: bool,
) -> ExerciseReport:
    """is_wrong: in its values; else only in what is asked beside them."""
    texts = {CELL_PREFIX + cell.name: cell.source.splitlines() for cell in cells}

    def source(file: str) -> list[str]:
        return texts.get(file, [])

    try:
        found = whereabouts(unit, report.name, code, source) if is_wrong else None
        found = found or line_of_aspect(unit, report.name, code, source, aspects)
    except NOT_TOLD:
        return report
    except SandboxLost:
        raise
    except Exception:
        print(f"{unit}: no line could be looked for in {report.name}:", file=sys.stderr)
        traceback.print_exc()
        return report
    if found is None:
        return report
    return replace(report, whereabouts=replace(found, told=redaction.readable(found.told)))
