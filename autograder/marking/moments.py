"""The moments at which an exercise can be judged: when its check cell had run, or at the notebook's end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..core.faults import StudentFault
from ..course import Exercise
from ..notebook import CodeCell
from ..sandbox.failures import Crashed, TimedOut
from ..student.budget import OutOfBudget
from ..student.sandboxed import Change, SandboxedNotebook

_MOST_NAMED = 3

T = TypeVar("T")


@dataclass(frozen=True)
class Judged(Generic[T]):
    """Finding of an exercise at the moment with the better result: at its check or at the end of the notebook."""

    finding: T
    at_end: bool = False
    changes: Sequence[Change] = ()
    """The names that later cells changed, if it was judged at both moments."""

    @property
    def note(self) -> str:
        """A message to the student that names the cells; empty if it was judged at its check only."""
        if not self.changes:
            return ""
        names = " and ".join(f"`{change.name}` in the cell `{change.cell}`" for change in self.changes[:_MOST_NAMED])
        moment = "at the end of the notebook, where it does better" if self.at_end else "at its check"
        return f"After its check you changed {names}. It is judged as it stands {moment}."


def judge(
    exercises: Sequence[Exercise],
    code: SandboxedNotebook,
    cells: Sequence[CodeCell],
    look: Callable[[Exercise], T],
    score: Callable[[Exercise, T], float],
) -> dict[str, Judged[T]]:
    """Return by exercise what `look` finds in the code as it stood at its check, or at the end if that earns more.

    The end is judged only if the check's moment does not earn the full points, and the answer reaches names that later
    cells changed. The end is judged in another worker. It gets the same requests
    again, and the code must not remember them.
    """
    judged: dict[str, Judged[T]] = {}
    for exercise in exercises:
        code.begin_exercise(exercise.name)
        judged[exercise.name] = Judged(look(exercise))
    scores = {exercise.name: score(exercise, judged[exercise.name].finding) for exercise in exercises}
    failed = [exercise for exercise in exercises if scores[exercise.name] < exercise.points]
    changes = {exercise.name: _changes(exercise.name, code, cells) for exercise in failed}
    again = [exercise for exercise in failed if changes[exercise.name]]
    if again and not code.is_in_haste:
        code.renew()
        for exercise in again:
            code.begin_exercise()
            at_end = look(exercise)
            is_better = score(exercise, at_end) > scores[exercise.name]
            finding = at_end if is_better else judged[exercise.name].finding
            judged[exercise.name] = Judged(finding, is_better, changes[exercise.name])
    return judged


def _changes(exercise: str, code: SandboxedNotebook, cells: Sequence[CodeCell]) -> list[Change]:
    """The changes that the worker reports, as far as the notebook's text can confirm them."""
    try:
        changes = code.changes_after_check(exercise)
    except (StudentFault, TimedOut, Crashed, OutOfBudget):
        return []
    names = {cell.name for cell in cells}
    return [
        change
        for change in changes
        if change.name.isidentifier() and change.cell in names and any(change.name in cell.source for cell in cells)
    ]
