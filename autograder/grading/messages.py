"""Messages in a report, on missing answers and on changes by grading; and removal of this machine's paths."""

import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from ..core.observation import Missing
from ..course import Unit
from ..course.cells import is_training, likenesses
from ..course.notebook import MAX_CHARACTERS, CodeCell, RawNotebook, printable_lines
from ..course.settings import folder
from ..report import NOT_WRITTEN, CellReport, ExerciseReport, joined
from ..sandbox.worker.cell_source import WRITING, unsupported_magic

_MOST_NAMED = 5
_CALLS, _MAGICS = {"breakpoint", "set_trace"}, re.compile(r"^[ \t]*%%?(?:debug|pdb)\b", re.M)
_STUB_RAISED = re.compile(
    re.escape(NOT_WRITTEN) + r" `(?P<cell>[^`]+)` yet: its line (?P<line>\d+) raises NotImplementedError\."
)
"""Matches the message of `Raised` on a stub's NotImplementedError."""


def about_stubs(message: str, cells: Sequence[CodeCell]) -> str:
    """Correct a message that an exercise is not written yet, if its cell is no longer an unchanged stub.

    Other messages are returned unchanged. cells: the submission's.
    """
    if NOT_WRITTEN not in message:
        return message
    stubs = {cell.name for cell in cells if cell.is_stub}

    def corrected(match: re.Match[str]) -> str:
        if match["cell"] in stubs:
            return f"{NOT_WRITTEN} `{match['cell']}` yet."
        return (
            f"`raise NotImplementedError()` is in line {match['line']} of the cell `{match['cell']}` and ends the "
            "call there: write what is missing, and delete that line."
        )

    return _STUB_RAISED.sub(corrected, message)


def why_missing(exercise: str, notebook: RawNotebook, unit: Unit, cells: Sequence[CodeCell]) -> str:
    """Return a message that says why an exercise's name is not defined. cells: those that were run."""
    own = [cell for cell in cells if cell.exercise == exercise or cell.defines(exercise)]
    reason = _reason_in_cell(own[-1], exercise) if own else _reason_elsewhere(exercise, notebook, unit)
    return f"{Missing(exercise)} {reason}"


def _reason_in_cell(cell: CodeCell, exercise: str) -> str:
    magic = unsupported_magic(cell.source)
    if magic == WRITING:
        return f"`%%{magic}` writes the cell `{cell.name}` into a file and does not run it: delete that line."
    if magic:
        return f"`%%{magic}`, which grading does not run, kept the cell `{cell.name}` from running: delete that line."
    if not cell.source.strip():
        return f"Its cell `{cell.name}` is empty."
    if exercise in cell.definitions:
        return (
            "The definition in its cell had no effect. Is it in a string, in another function or in a "
            "branch that did not run?"
        )
    return f"Its cell `{cell.name}` does not define this name: did you change the name?"


def _reason_elsewhere(exercise: str, notebook: RawNotebook, unit: Unit) -> str:
    """Return the reason why an exercise is not defined in the cells that were run."""
    definition = re.compile(rf"^[ \t]*(?:async def|def|class)[ \t]+{re.escape(exercise)}\b", re.M)
    for cell, likeness in zip(notebook.cells, likenesses(notebook, unit), strict=True):
        has_it = cell.grade_id == exercise or definition.search(cell.text[:MAX_CHARACTERS])
        if has_it and cell.cell_type != "code":
            return "Its cell is a text cell, which is not run: turn it into a code cell."
        if has_it and is_training(cell, likeness, unit):
            return "Its definition is in a cell that grading does not run."
    return "Did you delete its cell or change the name?"


def notes(unit: Unit, cells: Sequence[CodeCell]) -> str:
    """Return a message on restored locked cells and ignored breakpoints; empty if there were none.

    cells: those that were run.
    """
    return joined(*_on_additions(unit, cells), _on_changes(cells), _on_breakpoints(cells))


def _on_additions(unit: Unit, cells: Sequence[CodeCell]) -> list[str]:
    added = [cell for cell in cells if cell.added_to]
    if not added:
        return []
    where = _locked_cells(cell.added_to for cell in added)
    answers = {one.name: cell.added_to for cell in added for one in unit.exercises if cell.defines(one.name)}
    messages = [f"The answer to `{name}` was found in the cell `{cell}`." for name, cell in answers.items()]
    return [
        f"You added lines to the {where}: the released lines were restored, and your lines were run as well.",
        *messages[:_MOST_NAMED],
    ]


def _on_changes(cells: Sequence[CodeCell]) -> str:
    changed = [cell.name for cell in cells if cell.was_changed]
    if not changed:
        return ""
    return f"You changed lines of the {_locked_cells(changed)}: the released lines were run instead of yours."


def _on_breakpoints(cells: Sequence[CodeCell]) -> str:
    names = [cell.name for cell in cells if not cell.is_ours and _has_breakpoint(cell)]
    return f"Grading ignores breakpoints: there is one in the {_cells(names)}." if names else ""


def _has_breakpoint(cell: CodeCell) -> bool:
    if any(word in cell.source for word in _CALLS) and not cell.names.isdisjoint(_CALLS):
        return True
    return _MAGICS.search(cell.source) is not None


def _locked_cells(names: Iterable[str]) -> str:
    return f"locked {_cells(list(dict.fromkeys(names)))}"


def _cells(names: Sequence[str]) -> str:
    """Return a list of cells in words, such as "cells `a` and `b`", with at most five names."""
    listed = [f"`{name}`" for name in names[:_MOST_NAMED]]
    if len(names) > _MOST_NAMED:
        listed.append(f"{len(names) - _MOST_NAMED} more")
    return f"cell{'s' if len(names) > 1 else ''} {' and '.join(filter(None, [', '.join(listed[:-1]), listed[-1]]))}"


_NAME = r"[\w.@+~%-]"
_USUAL = (
    "Applications|bin|boot|dev|etc|home|lib|lib64|Library|media|mnt|nix|opt|private|proc|root|run|sbin|snap|srv|sys|tmp|"
    "usr|Users|var|Volumes"
)
_TOP = "|".join([_USUAL, *(re.escape(place.name) for place in Path("/").iterdir())])
"""Pattern of the usual top-level folders of absolute paths, on this machine and on others."""


def _home() -> Path:
    """Return the user's home directory; `/` for a user without one, as in some containers."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/")


_OWN = sorted(
    {
        str(place)
        for place in (folder(), _home(), Path(sys.prefix), Path(sys.base_prefix), Path(tempfile.gettempdir()))
        if len(place.parts) > 2  # `/root` is too short to be a path wherever it occurs
    },
    key=len,
    reverse=True,
)

_FOLDERS = re.compile(
    rf"""
    # A known folder of this machine, after any text.
    (?:{"|".join(map(re.escape, _OWN)) or "(?!)"})(?:/+{_NAME}+)*/+(?={_NAME})
    # In quotes, a path with a usual beginning, up to its last part: names in it may have any characters.
    | (?<=['"])/+(?:{_TOP})/[^'"\n]*/(?=[^'"\n/])
    # A path with a usual beginning, after anything but a word, or a network address, or what a program escapes.
    | (?:(?<=file://)|(?<=file:)(?!//)|(?<![\w./:])|(?<=:)(?!//)|(?<=\\[abfnrtv]))/+(?:{_TOP})
      (?:/+{_NAME}+)*/+(?={_NAME})
    # Any other path that cannot be a fraction or a division.
    | (?:(?<=file://)|(?<![\w/.)\]}}>]))(?:/{_NAME}+)+/(?={_NAME})
    """,
    re.VERBOSE,
)

_LONGEST_MESSAGE = 2_000  # characters
_MOST_PRINTED = 200_000  # characters, by all cells together


def without_folders(text: str) -> str:
    """Return a text in which the folders of each absolute path are replaced by `…/`."""
    return _FOLDERS.sub("…/", text)


def readable(message: str) -> str:
    """Return a message in printable characters, truncated, and without the folders of absolute paths."""
    try:
        return without_folders(printable_lines(message[:_LONGEST_MESSAGE].expandtabs()))
    except Exception:  # after an error in the autograder, only the message is missing
        traceback.print_exc()
        return ""


def with_messages(report: ExerciseReport, change: Callable[[str], str]) -> ExerciseReport:
    """Return the report on an exercise with `change` applied to each of its messages."""
    tests = [replace(test, message=change(test.message)) for test in report.tests]
    return replace(report, message=change(report.message), note=change(report.note), tests=tests)


def readable_cells(reports: Sequence[CellReport]) -> list[CellReport]:
    """Return the reports on cells with `readable` messages, and with the printed texts truncated to a total limit."""
    characters_left, readable_reports = _MOST_PRINTED, []
    for report in reports:
        printed = without_folders(report.printed[: max(characters_left, 0)])
        characters_left -= len(printed)
        readable_reports.append(replace(report, message=readable(report.message), printed=printed))
    return readable_reports
