"""Notes to the student on what grading did otherwise than Jupyter: locked cells were restored, breakpoints ignored."""

import re
from collections.abc import Collection, Iterable, Sequence

from ..course import Unit
from ..notebook import CodeCell
from ..report import joined

_MOST_NAMED = 5
_CALLS, _MAGICS = ("breakpoint", "set_trace"), ("%debug", "%pdb")
_MAGIC = re.compile(r"^[ \t]*%%?(?:debug|pdb)\b", re.M)


def notes(unit: Unit, cells: Sequence[CodeCell]) -> str:
    """Describe the changes that grading made to the notebook; empty without changes. cells: the cells that were run."""
    return joined(_of_additions(unit, cells), _of_changes(cells), _of_breakpoints(cells))


def _of_additions(unit: Unit, cells: Sequence[CodeCell]) -> str:
    added = [cell for cell in cells if cell.added_to]
    if not added:
        return ""
    where = _locked(cell.added_to for cell in added)
    said = f"You added lines to the locked {where}: what was released is restored, and your lines were run as well."
    answers = {name: cell.added_to for cell in added for name in _answers(unit) if cell.defines(name)}
    found = [f"The answer to `{name}` was found in the cell `{cell}`." for name, cell in answers.items()]
    return joined(said, *found[:_MOST_NAMED])


def _answers(unit: Unit) -> Collection[str]:
    return [exercise.name for exercise in unit.exercises]


def _of_changes(cells: Sequence[CodeCell]) -> str:
    changed = [cell.name for cell in cells if cell.was_changed]
    if not changed:
        return ""
    return f"You changed lines of the locked {_locked(changed)}: what was released was run, and not your lines."


def _of_breakpoints(cells: Sequence[CodeCell]) -> str:
    names = [cell.name for cell in cells if not cell.is_ours and _has_breakpoint(cell)]
    return f"Breakpoints are ignored in grading: there is one in {_named(names)}." if names else ""


def _has_breakpoint(cell: CodeCell) -> bool:
    if any(word in cell.source for word in _CALLS) and not cell.names.isdisjoint(_CALLS):
        return True
    return any(word in cell.source for word in _MAGICS) and _MAGIC.search(cell.source) is not None


def _locked(names: Iterable[str]) -> str:
    return _named(list(dict.fromkeys(names))).removeprefix("the ")


def _named(names: Sequence[str]) -> str:
    """`the cells `a` and `b``, and how many more."""
    shown = [f"`{name}`" for name in names[:_MOST_NAMED]]
    if len(names) > _MOST_NAMED:
        shown.append(f"{len(names) - _MOST_NAMED} more")
    listed = " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
    return f"the cell{'s' if len(names) > 1 else ''} {listed}"
