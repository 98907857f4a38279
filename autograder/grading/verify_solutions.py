"""Verify that the solutions pass their hidden tests and call no library that their exercise forbids.

Otherwise right answers would lose points: by a faulty test, or by a wrong list of forbidden libraries.
"""

from typing import Any

import pytest
import torch

from ..core.comparison import Expected, Mismatch
from ..core.observation import StudentFault
from ..core.operations import KindOf
from ..course import content
from ..course.folder import folder
from ..errors import UserError
from ..graders.backend import Recording
from ..graders.collection import HiddenTest, HiddenTests, line_in_hidden
from ..graders.proxy import StudentProxy
from .examiner import candidate_bench

_MOST_REPORTED = 3
_LONGEST = 160
"""Most characters of a value in a message."""

FAILURES = (Exception, pytest.fail.Exception, pytest.skip.Exception)
"""Exceptions that may end a hidden test; those of pytest are not derived from Exception."""


class SolutionFails(UserError):
    """Raised if a solution fails hidden tests or calls a forbidden library.

    `str()` names the tests, with the actual and the expected values.
    """


def verify_solutions(graders: HiddenTests, unit: str) -> None:
    """Run each hidden test of a unit on the solution, with the inputs of grading; raises SolutionFails.

    From then on, this process records which libraries an answer calls.
    """
    messages: list[str] = []
    solutions = content.solutions(unit)
    for exercise, tests in graders.get(unit, {}).items():
        if exercise not in solutions:  # `build` reports tests of an exercise that no text mentions
            continue
        recording = Recording(candidate_bench(unit, None, watch=True))
        kinds = {exercise: recording.ask(KindOf(exercise))}
        for test in tests:
            try:
                test.run(StudentProxy(recording, kinds))
            except FAILURES as error:
                messages.append(failure_message(test, error))
        forbidden = {library for test in tests for library in test.forbids} & recording.library_calls
        messages += [
            f"solutions/{unit}.py: `{exercise}` calls {library}, which its graders forbid: an answer like it gets no "
            "points."
            for library in sorted(forbidden)
        ]
    if messages:
        more = [f"And {len(messages) - _MOST_REPORTED} more."] if len(messages) > _MOST_REPORTED else []
        raise SolutionFails("\n".join([*messages[:_MOST_REPORTED], *more]))


def failure_message(test: HiddenTest, error: BaseException, on: str = "") -> str:
    """Return the error message on a hidden test that fails on the solution.

    on: words that describe the inputs, if they are not the test's own.
    """
    place = line_in_hidden(error)
    file = f" ({place.filename}, line {place.lineno})".replace(f"{folder()}/", "") if place else ""
    name, solution = f"`{test.name}` of {test.exercise}{file}", f"solutions/{test.unit}.py"
    if isinstance(error, Mismatch | StudentFault):
        return f"{solution} fails the grader {name}{on}: {error}{_compared(error)}"
    reason = " ".join(str(error).partition("\n +")[0].split())  # pytest appends where each value came from
    return f"The grader {name} itself fails on {solution}{on}: {type(error).__name__}: {reason}"


def _compared(error: Exception) -> str:
    if not isinstance(error, Mismatch) or error.compared is None:
        return ""
    actual, expected = (
        text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…" for text in map(_plain, error.compared)
    )
    return f" The result is {actual}, but {expected} is expected."


def _plain(value: Any) -> str:
    """Return a value as text, with tensors as nested lists."""
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
