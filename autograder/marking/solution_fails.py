"""Runs every grader on its own solution, which must pass, and call nothing that the exercise forbids.

A grader that fails there would cost right answers their points, and so would a list of what may not be called.
"""

from typing import Any

import pytest
import torch

from ..compare import Expected, Mismatch
from ..core.faults import StudentFault
from ..core.operations import KindOf
from ..course import content
from ..course.folder import folder
from ..graders.collected import Grader, Graders, place_in_hidden
from ..student.face import Student
from ..student.recording import Recording
from .examiner import candidate_bench

_MOST_SAID = 3
_LONGEST = 160
"""Characters of a value in a sentence."""

_CALLS = (
    "solutions/{unit}.py: `{exercise}` calls {library}, which its graders forbid: an answer like it gets no points."
)

FAILURES = (Exception, pytest.fail.Exception, pytest.skip.Exception)
"""What ends a grader; pytest's own are no Exception."""


class SolutionFails(Exception):
    """Some graders do not pass their own solution; `str()` says which, and what they got and expected, or what it calls
    that they forbid."""


def ensure_passes(graders: Graders, unit: str) -> None:
    """Raises SolutionFails unless the unit's solutions pass every grader, with the numbers that students meet.

    From then on this process notes which libraries run in an answer.
    """
    failing: list[str] = []
    defined = content.solutions(unit)
    for exercise, its_graders in graders.get(unit, {}).items():
        if exercise not in defined:  # the build says that no text asks for it
            continue
        recording = Recording(candidate_bench(unit, None, watch=True))
        kinds = {exercise: recording.ask(KindOf(exercise))}
        for grader in its_graders:
            try:
                grader.ask(Student(recording, kinds))
            except FAILURES as found:
                failing.append(sentence(grader, found))
        forbidden = {library for grader in its_graders for library in grader.forbids} & recording.library_calls
        failing += [_CALLS.format(unit=unit, exercise=exercise, library=one) for one in sorted(forbidden)]
    if failing:
        more = [f"And {len(failing) - _MOST_SAID} more."] if len(failing) > _MOST_SAID else []
        raise SolutionFails("\n".join([*failing[:_MOST_SAID], *more]))


def sentence(grader: Grader, found: BaseException, on: str = "") -> str:
    """What went wrong when a grader met its solution. on: with which numbers, where they are not its own."""
    place = place_in_hidden(found)
    file = f" ({place.filename}, line {place.lineno})".replace(f"{folder()}/", "") if place else ""
    name, solution = f"`{grader.name}` of {grader.exercise}{file}", f"solutions/{grader.unit}.py"
    if isinstance(found, Mismatch | StudentFault):
        return f"{solution} fails the grader {name}{on}: {found}{_compared(found)}"
    said = " ".join(str(found).partition("\n +")[0].split())  # where each value came from, pytest adds below
    return f"The grader {name} itself fails on {solution}{on}: {type(found).__name__}: {said}"


def _compared(found: Exception) -> str:
    if not isinstance(found, Mismatch) or found.compared is None:
        return ""
    got, expected = map(_written, found.compared)
    return f" It got {got} and expected {expected}."


def _written(value: Any) -> str:
    written = _plain(value)
    return written if len(written) <= _LONGEST else f"{written[:_LONGEST]}…"


def _plain(value: Any) -> str:
    """Tensors as nested lists, which show their shapes."""
    match value:
        case Expected():
            return _plain(value.value)
        case torch.Tensor():
            return _plain(value.detach().tolist())
        case list():
            return f"[{', '.join(map(_plain, value))}]"
        case tuple():
            return f"({', '.join(map(_plain, value))})"
        case float():
            return f"{value:.6g}"
    return repr(value)
