"""Where an answer goes wrong: the line of the student's own cell, found by watching it on cases drawn for showing."""

import contextlib
import io
import linecache
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch

from ..sandbox.inside.tracing import Run, Watch, made_ready, watched
from ..tracing.case import TellingCase
from ..tracing.located import Located
from ..tracing.locating import locate
from ..tracing.reference import Reference
from ..tracing.told import told
from ..tracing.written_reference import read_reference
from .data_file import read_data
from .freshness import file_of
from .trial import is_cell
from .tried import limited
from .written_values import as_value

SECONDS_TO_LOOK = 5.0
"""For all runs of one answer; most take a tenth of a second together."""


def line_told(names: Mapping[str, Any], exercise: str, steps: Path) -> str:
    """What `told` says of the answer; nothing where no line can be told, or where it is in another cell.

    steps: the file that says what is right. What the code prints meanwhile is not shown.
    """
    quiet = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
    try:
        with quiet[0], quiet[1], warnings.catch_warnings(), limited(SECONDS_TO_LOOK):
            warnings.simplefilter("ignore")
            return _told(names[exercise], known_right(steps, steps.stat().st_mtime_ns, exercise))
    except KeyboardInterrupt:
        raise
    except BaseException:  # SystemExit and TimeUp too
        return ""


@cache
def known_right(steps: Path, _changed: int, exercise: str) -> list[Reference]:
    """What the file says of an exercise, read again only when the file has changed; nothing where it has no case."""
    of = read_data(steps).get(exercise, {"cases": []})
    return [read_reference(one, of["operators"], _case(exercise, one)) for one in of["cases"]]


def _told(answer: Any, known: Sequence[Reference]) -> str:
    file = file_of(answer)
    if not linecache.getlines(file):
        return ""
    for right in known:
        looking = _Looking(answer, file, right)
        if right.is_right(looking.first):
            continue
        located = locate(right, looking.again)
        return told(located, right.case, linecache.getline) if located and looking.is_own(located) else ""
    return ""


def _case(exercise: str, written: Mapping[str, Any]) -> TellingCase:
    arguments = tuple(as_value(arg) for arg in written["args"])
    if "built" not in written:
        return TellingCase(exercise, arguments)
    parameters = {name: as_value(one) for name, one in written["parameters"].items()}
    return TellingCase(exercise, arguments, tuple(written["built"]), parameters)


class _Looking:
    """Runs of one answer on one case."""

    def __init__(self, answer: Any, file: str, right: Reference) -> None:
        self._answer = answer
        self._file = file
        self._case = right.case
        self.first = self._run({})

    def again(self, replaced: Mapping[int, torch.Tensor]) -> Run:
        return self._run(replaced) if replaced else self.first

    def is_own(self, located: Located) -> bool:
        """Whether the lines are the answer's own, and their text is known."""
        lines = {one.line for one in self.first.made if one.file == self._file}
        lines |= {self.first.returned[1]} if self.first.returned else set()
        texts = [linecache.getline(self._file, line) for line in located.lines]
        return located.file == self._file and lines.issuperset(located.lines) and all(map(str.strip, texts))

    def _run(self, replaced: Mapping[int, torch.Tensor]) -> Run:
        torch.default_generator.manual_seed(0)
        case = self._case
        call = made_ready(self._answer, case.built, case.parameters, case.arguments)
        return watched(call, Watch(lambda file: file == self._file or is_cell(file), replaced, in_shape=True))
