"""Asks a backend for one run of an answer, and for what it gives once mended; tells where it goes wrong."""

from collections.abc import Mapping
from functools import cache

import torch

from .. import catalogue
from ..report import Whereabouts
from ..sandbox.inside.arguments import Arguments
from ..sandbox.inside.operations import WatchRun
from ..sandbox.inside.tracing import Run
from ..student.backend import Backend
from ..student.watched_run import read
from ..tracing.case import TellingCase
from ..tracing.located import Located
from ..tracing.locating import locate
from ..tracing.reference import Reference
from ..tracing.right_runs import reference
from ..tracing.told import Source, told
from .telling_cases import telling_cases

_cases = cache(telling_cases)
_reference = cache(lambda unit, exercise, number: known(unit, _cases(unit, exercise)[number]))
"""Made when an answer first goes wrong; there are few exercises, and they are kept."""


def known(unit: str, case: TellingCase, *, without: str = "") -> Reference | None:
    """What the catalogue knows to be right on a case. without: a right answer to leave out."""
    answers = catalogue.right_answers(unit).values()
    others = [one.answer for one in answers if one.exercise == case.exercise and one.name != without]
    return reference(case, catalogue.solutions(unit)[case.exercise].answer, others)


def whereabouts(unit: str, exercise: str, backend: Backend, source: Source) -> Whereabouts | None:
    """Where the answer behind the backend goes wrong; None where it cannot be told. Raises what the backend raises.

    source: the text of a line of a file, where the line is the exercise's own; empty of any other.
    """
    for number, case in enumerate(_cases(unit, exercise)):
        right = _reference(unit, exercise, number)
        if right is None:
            continue
        first = _run(backend, case, {})
        if right.is_right(first):
            continue
        located = _located(right, backend, first)
        if located is None or not all(source(located.file, line) for line in located.lines):
            return None  # it may be in another cell
        return Whereabouts(list(located.lines), told(located, case, source), located.step)
    return None


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
        tuple(replaced),
        tuple(one.float() for one in replaced.values()),
    )
    return read(backend.ask(operation))
