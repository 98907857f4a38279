"""The faulty line of the student's own cell, found by tracing the code on cases that were drawn for showing."""

import contextlib
import io
import linecache
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch

from ..core.faults import is_cell
from ..core.lost_aspects import (
    BY_CAST,
    CUT_BY_DATA,
    CUT_BY_DETACH,
    CUT_BY_NO_GRAD,
    CUT_BY_NUMBERS,
    OF_DEVICE,
    OF_DTYPE,
    OF_GRADIENT,
    OF_NOTHING,
    OF_OTHERS,
    OF_WRITING,
    Asked,
    Lost,
    where_lost,
)
from ..core.tracing import Run, Watch, made_ready, watched
from ..core.values import ORDINALS
from ..tracing.located import Located
from ..tracing.locating import locate
from ..tracing.reference import Reference, TraceCase
from ..tracing.told import call_in_words, quoted, told
from ..tracing.written_reference import read_reference
from .freshness import file_of
from .tried import limited
from .unit_data import STEPS, read_unit
from .written_values import as_value

Aspect = tuple[str, Sequence[str]]
"""An aspect and its details, as in `core.comparison.Mismatch`."""
SECONDS_TO_LOOK = 5.0
"""For all runs of one answer; most take a tenth of a second together."""


def line_told(
    names: Mapping[str, Any], exercise: str, data: Path, aspects: Iterable[Aspect] = (), *, is_wrong: bool = True
) -> str:
    """Return the message on the faulty line; empty if no line is found, or if it is in another cell.

    data: the unit's data file. aspects: those that the answer fails, with their details. is_wrong: true if a value is
    wrong, false if only other aspects are. What the code prints meanwhile is not shown.
    """
    quiet = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
    try:
        with quiet[0], quiet[1], warnings.catch_warnings(), limited(SECONDS_TO_LOOK):
            warnings.simplefilter("ignore")
            answer, changed = names[exercise], data.stat().st_mtime_ns
            cases = known_cases(data, changed, exercise)
            found = ""
            if is_wrong:
                references = (known_right(data, changed, exercise, number) for number in range(len(cases)))
                found = _told(answer, filter(None, references))
            return found or _told_of_aspects(answer, cases, aspects)
    except KeyboardInterrupt:
        raise
    except BaseException:  # SystemExit and TimeUp too
        return ""


@cache
def known_cases(data: Path, _changed: int, exercise: str) -> list[TraceCase]:
    """Return the trace cases of an exercise. They are read again only when the file has changed."""
    of = read_unit(data).get(STEPS, {}).get(exercise, {"cases": []})
    return [_case(exercise, one) for one in of["cases"]]


@cache
def known_right(data: Path, changed: int, exercise: str, number: int) -> Reference | None:
    """Return the reference trace of a trace case; None for a silent case, which has none.

    Each is read when it is needed: most wrong answers show in the first case.
    """
    case, of = known_cases(data, changed, exercise)[number], read_unit(data)[STEPS][exercise]
    return None if case.is_silent else read_reference(of["cases"][number], of["operators"], case)


def _told(answer: Any, known: Iterable[Reference]) -> str:
    file = file_of(answer)
    if not linecache.getlines(file):
        return ""
    for right in known:
        first = _watched(answer, right.case, file, {})
        if not right.is_right(first):
            return _told_of_run(answer, right, file, first)
    return ""


def _told_of_run(answer: Any, right: Reference, file: str, first: Run) -> str:
    def again(replaced: Mapping[int, torch.Tensor]) -> Run:
        return _watched(answer, right.case, file, replaced) if replaced else first

    located = locate(right, again)
    return told(located, right.case, linecache.getlines) if located and _is_own(located, first, file) else ""


def _told_of_aspects(answer: Any, cases: Sequence[TraceCase], aspects: Iterable[Aspect]) -> str:
    file = file_of(answer)
    for aspect, details in aspects:
        for case in cases:
            torch.default_generator.manual_seed(0)
            asked = Asked(answer, case.arguments, case.built, case.parameters, case.through)
            lost = None
            with contextlib.suppress(Exception):  # another case may show it
                lost = where_lost(aspect, details, asked, lambda name: name == file or is_cell(name))
            line = linecache.getline(file, lost.line) if lost and lost.file == file else ""
            if lost and line.strip():
                return told_of_aspect(aspect, details, lost, case, line)
    return ""


def _case(exercise: str, written: Mapping[str, Any]) -> TraceCase:
    arguments = tuple(as_value(arg) for arg in written["args"])
    parameters = {name: as_value(one) for name, one in written.get("parameters", {}).items()}
    built = tuple(written["built"]) if "built" in written else None
    untold = frozenset(written.get("untold", ()))
    through = tuple(written.get("through", ()))
    is_silent = "silent" in written
    return TraceCase(exercise, arguments, built, parameters, through=through, is_silent=is_silent, untold=untold)


def _is_own(located: Located, run: Run, file: str) -> bool:
    """Return whether the lines are the answer's own, and their text is known."""
    lines = {one.line for one in run.made if one.file == file}
    lines |= {run.returned[1]} if run.returned else set()
    texts = [linecache.getline(file, line) for line in located.lines]
    return located.file == file and lines.issuperset(located.lines) and all(map(str.strip, texts))


def _watched(answer: Any, case: TraceCase, file: str, replaced: Mapping[int, torch.Tensor]) -> Run:
    """Run the answer on a case, with some of the tensors that it makes replaced."""
    torch.default_generator.manual_seed(0)
    call = made_ready(answer, case.built, case.parameters, case.arguments, case.through)
    return watched(call, Watch(lambda name: name == file or is_cell(name), replaced, in_shape=True))


_ENDS = {
    CUT_BY_DETACH: "what `.detach()` gives carries no gradient.",
    CUT_BY_DATA: "what `.data` gives carries no gradient.",
    CUT_BY_NO_GRAD: "what is computed without gradients carries none.",
    CUT_BY_NUMBERS: "plain numbers carry no gradient, and nothing that is made of them does.",
    OF_OTHERS: "what is made there carries no gradient.",
}
HOW = {*_ENDS, BY_CAST, OF_NOTHING}
"""In which ways a line may lose something."""


def told_of_aspect(aspect: str, details: Sequence[str], lost: Lost, case: TraceCase, line: str) -> str:
    """Lines of plain text. line: the text of the line."""
    said = [f"Line {lost.line} {_does(aspect, details)}.", f"  line {lost.line}: {quoted(line)}"]
    return "\n".join([*said, _meaning(aspect, details, lost.how, line), f"Tried on {call_in_words(case)}"])


def _does(aspect: str, details: Sequence[str]) -> str:
    if aspect == OF_WRITING:
        return f"writes into {_argument(details[0])}"
    if aspect == OF_DTYPE:
        return f"makes numbers in torch.{details[0]}, of which the result is made"
    if aspect == OF_GRADIENT:
        return f"ends the way of the gradient to {_argument(details[0])}"
    return "makes a tensor that stays on the CPU when the inputs are elsewhere"


def _meaning(aspect: str, details: Sequence[str], how: str, line: str) -> str:
    if aspect == OF_WRITING:
        return "Whoever calls it has that tensor too. Make a new one of it, or write into a copy (`.clone()`)."
    if aspect == OF_GRADIENT:
        return f"A gradient goes back the way that the numbers came: {_ENDS[how]}"
    if aspect == OF_DTYPE:
        return _of_dtype(details[0], details[1], how)
    assert aspect == OF_DEVICE
    if how == OF_NOTHING and line.lstrip().startswith("self."):
        return "A tensor that the module keeps moves with it as a buffer: `self.register_buffer`."
    if how == OF_NOTHING:
        return "What is made of nothing is on the CPU, unless `device=` says where: that of the inputs is wanted."
    return "What follows should be where the inputs are."


def _of_dtype(found: str, wanted: str, how: str) -> str:
    made = "A new tensor has the dtype that it is made with (`dtype=`). " if how == OF_NOTHING else ""
    end = " It may be so on the way, if it is brought back at the end." if found == "float64" else ""
    return f"{made}The result should be torch.{wanted}.{end}"


def _argument(where: str) -> str:
    return f"the {ORDINALS[int(where)]} argument" if where.isdigit() else f"`{where}`"
