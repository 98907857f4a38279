"""Location of the faulty line in the student's own cell, by tracing the code on released trace cases."""

import contextlib
import io
import linecache
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from ..core.arguments import tensors_in
from ..core.comparison import ORDINALS
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
    OF_VALUE,
    OF_WRITING,
    LostAspect,
    find_lost_aspect,
)
from ..core.observation import is_cell
from ..core.run_trace import Run, RunTracer, TracedCall, trace_run
from ..tracing.explain import describe_call, explain, quote
from ..tracing.fault import LocatedFault
from ..tracing.fault_search import locate_fault
from ..tracing.reference import Reference, TraceCase, read_reference
from .examples import decode_value
from .run_examples import code_file, limited
from .unit_data import STEPS, read_unit

Aspect = tuple[str, Sequence[str]]
"""An aspect and its details, as in `core.comparison.Mismatch`."""
MAX_SECONDS = 5.0
"""CPU seconds of all runs of one answer; most take a tenth of a second together."""


def located_fault(
    names: Mapping[str, Any], exercise: str, data: Path, aspects: Iterable[Aspect] = (), *, is_wrong: bool = True
) -> tuple[str, str]:
    """Return the message on the faulty line, and the aspect in which the line fails.

    data: the unit's data file. aspects: those that the answer fails, with their details, the most important first.
    is_wrong: true if a value is wrong, false if only other aspects are. The code's output is not shown. The message is
    empty if no line is found, or if it is in another cell.
    """
    with quiet_runs():
        answer, changed = names[exercise], data.stat().st_mtime_ns
        cases, found = read_cases(data, changed, exercise), ""
        if is_wrong:
            references = (read_trace(data, changed, exercise, number) for number in range(len(cases)))
            found = _explain_values(answer, filter(None, references))
        return (found, OF_VALUE) if found else _explain_aspects(answer, cases, aspects)
    return "", OF_VALUE


@contextlib.contextmanager
def quiet_runs() -> Iterator[None]:
    """Run code of the student without output, warnings and errors, for MAX_SECONDS; an interruption is raised."""
    quiet = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
    try:
        with quiet[0], quiet[1], warnings.catch_warnings(), limited(MAX_SECONDS):
            warnings.simplefilter("ignore")
            yield
    except KeyboardInterrupt:
        raise
    except BaseException:  # SystemExit and TimeUp too
        pass


@cache
def read_cases(data: Path, _changed: int, exercise: str) -> list[TraceCase]:
    """Return the trace cases of an exercise. They are read again only when the file has changed."""
    of = read_unit(data).get(STEPS, {}).get(exercise, {"cases": []})
    return [_case(exercise, one) for one in of["cases"]]


@cache
def read_trace(data: Path, changed: int, exercise: str, number: int) -> Reference | None:
    """Return a case's reference trace, which is read only when it is needed; None for a silent case, which has none."""
    case, of = read_cases(data, changed, exercise)[number], read_unit(data)[STEPS][exercise]
    return None if case.is_silent else read_reference(of["cases"][number], of["operators"], case)


def _explain_values(answer: Any, known: Iterable[Reference]) -> str:
    file = code_file(answer)
    if not linecache.getlines(file):
        return ""
    for right in known:
        first = trace_answer(answer, right.case, file)
        if not right.is_right(first):
            return _explain_run(answer, right, file, first) or _explain_nan(right.case, file, first)
    return ""


def _explain_nan(case: TraceCase, file: str, run: Run) -> str:
    """Return a message on the first line of the answer that makes NaN of other numbers, if the result contains NaN."""
    if not any(bool(one.isnan().any()) for one in tensors_in(run.result)):
        return ""
    has_nan = [bool(one.values.isnan().any()) for one in run.made]
    for tensor, is_nan in zip(run.made, has_nan, strict=True):
        if is_nan and not any(has_nan[number] for number in tensor.inputs):
            text = linecache.getline(file, tensor.line)
            if tensor.file != file or not text.strip():
                return ""
            said = [f"Line {tensor.line} is the first that makes NaN.", f"  line {tensor.line}: {quote(text)}"]
            said.append("Infinity - infinity, 0 * infinity, 0 / 0 and the root of a negative number give NaN.")
            return "\n".join([*said, f"Tried on {describe_call(case)}"])
    return ""


def _explain_run(answer: Any, right: Reference, file: str, first: Run) -> str:
    def again(replaced: Mapping[int, torch.Tensor]) -> Run:
        return trace_answer(answer, right.case, file, replaced) if replaced else first

    def attempt(replaced: Mapping[int, torch.Tensor]) -> Run:
        return trace_answer(answer, right.case, file, replaced, is_trial=True)

    fault = locate_fault(right, again, attempt, in_shape=True)
    return explain(fault, right.case, linecache.getlines) if fault and _is_own(fault, first, file) else ""


def _explain_aspects(answer: Any, cases: Sequence[TraceCase], aspects: Iterable[Aspect]) -> tuple[str, str]:
    file = code_file(answer)
    for aspect, details in aspects:
        for case in cases:
            torch.default_generator.manual_seed(0)
            asked = TracedCall(answer, case.arguments, case.built, case.parameters, case.through)
            lost = None
            with contextlib.suppress(Exception):  # another case may show it
                lost = find_lost_aspect(aspect, details, asked, lambda name: name == file or is_cell(name))
            line = linecache.getline(file, lost.line) if lost and lost.file == file else ""
            if lost and line.strip():
                return explain_aspect(aspect, details, lost, case, line), aspect
    return "", OF_VALUE


def _case(exercise: str, written: Mapping[str, Any]) -> TraceCase:
    arguments = tuple(decode_value(arg) for arg in written["args"])
    parameters = {name: decode_value(one) for name, one in written.get("parameters", {}).items()}
    built = tuple(written["built"]) if "built" in written else None
    unreported = frozenset(written.get("untold", ()))
    through = tuple(written.get("through", ()))
    is_silent = "silent" in written
    return TraceCase(
        exercise, arguments, built, parameters, through=through, is_silent=is_silent, unreported=unreported
    )


def _is_own(fault: LocatedFault, run: Run, file: str) -> bool:
    """Return whether the lines are the answer's own, and their text is known."""
    lines = {one.line for one in run.made if one.file == file}
    lines |= {run.returned[1]} if run.returned else set()
    texts = [linecache.getline(file, line) for line in fault.lines]
    return fault.file == file and lines.issuperset(fault.lines) and all(map(str.strip, texts))


def trace_answer(
    answer: Any,
    case: TraceCase,
    file: str,
    replaced: Mapping[int, torch.Tensor] = MappingProxyType({}),
    *,
    is_trial: bool = False,
) -> Run:
    """Run the answer on a case, with some of its tensors replaced.

    file: the file name of its code. is_trial: record no tensor, only the result.
    """
    torch.default_generator.manual_seed(0)
    call = TracedCall(answer, case.arguments, case.built, case.parameters, case.through)
    tracer = RunTracer(lambda name: name == file or is_cell(name), replaced, in_shape=True, is_trial=is_trial)
    return trace_run(call.run, tracer)


_CUTS = {
    CUT_BY_DETACH: "what `.detach()` gives carries no gradient.",
    CUT_BY_DATA: "what `.data` gives carries no gradient.",
    CUT_BY_NO_GRAD: "what is computed without gradients carries none.",
    CUT_BY_NUMBERS: "plain numbers carry no gradient, and nothing that is made of them does.",
    OF_OTHERS: "what is made there carries no gradient.",
}
WAYS = {*_CUTS, BY_CAST, OF_NOTHING}
"""The ways in which a line may lose an aspect."""


def explain_aspect(aspect: str, details: Sequence[str], lost: LostAspect, case: TraceCase, line: str) -> str:
    """Return the message on a line that loses an aspect. line: the text of the line."""
    said = [f"Line {lost.line} {_does(aspect, details)}.", f"  line {lost.line}: {quote(line)}"]
    return "\n".join([*said, _meaning(aspect, details, lost.how, line), f"Tried on {describe_call(case)}"])


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
        return "The caller uses the same tensor. Compute a new one, or write into a copy (`.clone()`)."
    if aspect == OF_GRADIENT:
        return f"A gradient goes back the way that the numbers came: {_CUTS[how]}"
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
