"""The moments at which an exercise can be judged: when its check cell had run, or at the notebook's end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ..notebook import CodeCell
from ..sandbox.inside.faults import StudentFault
from ..sandbox.losses import Crashed, TimedOut
from ..student.budget import OutOfBudget
from ..student.sandboxed import Change, SandboxedNotebook

_MOST_NAMED = 3

T = TypeVar("T")


@dataclass(frozen=True)
class Judged(Generic[T]):
    """What was found of an exercise at the moment at which it does better."""

    finding: T
    at_end: bool = False
    changes: Sequence[Change] = ()
    """The names that later cells changed, if it was judged at both moments."""

    @property
    def note(self) -> str:
        """A message to the student that names the cells; empty if it was judged at its check only."""
        if not self.changes:
            return ""
        told = " and ".join(f"`{change.name}` in the cell `{change.cell}`" for change in self.changes[:_MOST_NAMED])
        moment = "at the end of the notebook, where it does better" if self.at_end else "at its check"
        return f"After its check you changed {told}. It is judged as it stands {moment}."


def judge(
    exercise: str,
    code: SandboxedNotebook,
    cells: Sequence[CodeCell],
    look: Callable[[], T],
    score: Callable[[T], float],
    full: float,
) -> Judged[T]:
    """Return what `look` finds in the code as it stood at the exercise's check, or at the end if that earns more.

    The end is judged only if the check's moment does not earn the full points, and the answer reaches names that later
    cells changed.
    """
    code.begin_exercise(exercise)
    finding = look()
    if score(finding) >= full or not (changes := _changes(exercise, code, cells)):
        return Judged(finding)
    code.begin_exercise()
    at_end = look()
    if score(at_end) > score(finding):
        return Judged(at_end, at_end=True, changes=changes)
    return Judged(finding, changes=changes)


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
