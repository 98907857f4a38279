"""Asks a backend for one run of an answer, and for what it gives once mended; tells where it goes wrong."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache

import torch

from .. import catalogue
from ..core.arguments import Arguments
from ..core.faults import StudentFault
from ..core.lost_aspects import Lost
from ..core.operations import LineOfAspect, WatchRun
from ..core.tracing import Run
from ..handout.told_of_aspects import HOW, told_of_aspect
from ..report import FaultLocation
from ..student.backend import Backend
from ..student.watched_run import read
from ..tracing.case import TellingCase
from ..tracing.located import Located
from ..tracing.locating import locate
from ..tracing.reference import Reference
from ..tracing.right_runs import reference
from ..tracing.told import Source, line_of, told
from .telling_cases import telling_cases

_cases = cache(telling_cases)
_reference = cache(lambda unit, exercise, number: known(unit, _cases(unit, exercise)[number]))
"""Made when an answer first goes wrong; there are few exercises, and they are kept."""


def known(unit: str, case: TellingCase, *, without: str = "") -> Reference | None:
    """What the catalogue knows to be right on a case; None of a silent one. without: a right answer to leave out."""
    if case.is_silent:
        return None
    answers = catalogue.right_answers(unit).values()
    others = [one.answer for one in answers if one.exercise == case.exercise and one.name != without]
    return reference(case, catalogue.solutions(unit)[case.exercise].answer, others)


def whereabouts(unit: str, exercise: str, backend: Backend, source: Source) -> FaultLocation | None:
    """Where the answer behind the backend goes wrong; None where it cannot be told. Raises what the backend raises.

    source: the lines of a file, where they are the exercise's own; none of any other.
    """
    for number, case in enumerate(_cases(unit, exercise)):
        right = _reference(unit, exercise, number)
        if right is None:
            continue
        first = _run(backend, case, {})
        if right.is_right(first):
            continue
        located = _located(right, backend, first)
        if located is None or not all(line_of(source(located.file), line) for line in located.lines):
            return None  # it may be in another cell
        return FaultLocation(list(located.lines), told(located, case, source), located.step)
    return None


def line_of_aspect(
    unit: str, exercise: str, backend: Backend, source: Source, aspects: Iterable[tuple[str, Sequence[str]]]
) -> FaultLocation | None:
    """Return where the answer loses one of these aspects; None if no line is found.

    aspects: each with its details, as in `compare.Mismatch`.
    """
    for aspect, details in aspects:
        for case in _cases(unit, exercise):
            given = Arguments(case.arguments), case.built, case.parameters, case.through
            try:
                lost = _lost(backend.ask(LineOfAspect(exercise, *given, aspect, tuple(details))))
            except StudentFault:
                continue  # another case may show it
            if lost and (line := line_of(source(lost.file), lost.line)):
                return FaultLocation([lost.line], told_of_aspect(aspect, details, lost, case, line))
    return None


def _lost(sent: str) -> Lost | None:
    """What a worker says: a student's data."""
    line, how, file = [*sent.split(" ", 2), "", ""][:3]
    return Lost(file, int(line), how) if line.isdecimal() and len(line) < 6 and how in HOW else None


def _located(known: Reference, backend: Backend, first: Run) -> Located | None:
    def again(replaced: Mapping[int, torch.Tensor]) -> Run:
        return _run(backend, known.case, replaced) if replaced else first

    return locate(known, again)


def _run(backend: Backend, case: TellingCase, replaced: Mapping[int, torch.Tensor]) -> Run:
    operation = WatchRun(
        case.exercise,
        Arguments(case.arguments),
        case.built,
        case.parameters,
        case.through,
        tuple(replaced),
        tuple(one.float() for one in replaced.values()),
    )
    return read(backend.ask(operation))
