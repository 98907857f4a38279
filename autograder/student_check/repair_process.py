"""Search for one change of a student's code with which all examples pass, in a process of its own.

The student's kernel starts this process and ends it (`repair_request`). An edited answer that never ends, takes all
memory or changes a module does so here only.
"""

import __future__

import contextlib
import io
import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import CodeType
from typing import Any

import torch

from ..core.observation import CELL_PREFIX
from ..tracing.definitions import Definition, Edit, definitions
from ..tracing.repair_operators import generic_edits
from .check import examples_of
from .judgement import judge_example
from .run_examples import limited, new_notebook_state, recorded_libraries
from .unit_data import UnitData, read_unit

MODULES = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "math": math}
"""The modules that the code may use, by the only name that it may use for each."""
PASSES, COMPLETE = {"passes": True}, {"complete": True}
MAX_SECONDS = 5.0
"""CPU seconds of a search, which begins after the import of torch."""
MAX_WALL_SECONDS = 15.0
_SECONDS_OF_FIRST = 0.2
"""Limit of CPU seconds for the first example, in which an edit that never ends is found."""
_SECONDS_OF_EXAMPLE = 1.0
"""Limit of CPU seconds for each other example; one that fails at once may take longer to pass."""
_TIMES_AS_LONG = 4
"""Limit as a multiple of the unedited code's time, if that is more."""
_MOST_MEMORY = 1 << 30
"""Limit of address space in bytes, besides those in use when the search begins."""
_SOONEST = 0.01
"""Least limit in seconds, for the example that runs when the search ends."""
_LONGEST_LINE = 200


def main() -> None:
    """Read a request from standard input, and print a line of JSON for each repair as soon as it is found."""
    request, output = json.loads(sys.stdin.buffer.read()), sys.stdout
    _limit_resources()
    torch.set_num_threads(1)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for repair in found_repairs(request):
            print(json.dumps(repair), file=output, flush=True)


def found_repairs(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the repairs of a request, likeliest first: JSON objects with `lines`, `subject` and `changes`.

    The request has `data` (the unit's data file), `exercise`, `cells` (by exercise the source of its cell) and
    `suspected` (lines that are tried before others). If the unedited code fails no example in this process, the only
    object is `PASSES`. If the search ends before its time is over, the last one is `COMPLETE`.
    """
    answer, suspected = _Answer(request), frozenset(request["suspected"])
    if not any(answer.failed()):
        yield PASSES
        return

    def unlikeliness(step: tuple[Definition, Edit]) -> int:
        part, edit = step
        return edit.rank - 2 * (not suspected.isdisjoint(part.lines(edit)))

    highest = math.inf
    steps = [(part, edit) for part in answer.parts for edit in generic_edits(part)]
    for part, edit in sorted(steps, key=unlikeliness):
        if answer.seconds_left() <= 0:
            return
        if unlikeliness((part, edit)) > highest:
            break
        edited = part.edited(edit)
        if answer.passes_with(edited):
            highest = min(highest, unlikeliness((part, edit)) + 1)
            yield {"lines": part.lines(edit), "subject": edit.subject, "changes": _changes(part, edited)}
    yield COMPLETE


class _Answer:
    """The code of an exercise, together with the other answers of the notebook, and the exercise's examples."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self._begun = time.process_time(), time.monotonic()
        exercise, cells, data = request["exercise"], request["cells"], Path(request["data"])
        self._of = examples_of(UnitData(data, "", read_unit(data)), exercise)
        self._limits: dict[int, float] = {}
        """The CPU seconds that each example may take, in the order in which the examples are tried."""
        # Helpers first: an answer may be a subclass of one.
        answers = {name: definitions(name, [(name, source)], cells)[::-1] for name, source in cells.items()}
        self.parts = answers.pop(exercise)
        self._others = [compiled(part) for parts in answers.values() for part in parts]
        self._own = {part.name: compiled(part) for part in self.parts}

    def seconds_left(self) -> float:
        cpu_seconds, seconds = time.process_time() - self._begun[0], time.monotonic() - self._begun[1]
        return min(MAX_SECONDS - cpu_seconds, MAX_WALL_SECONDS - seconds)

    def failed(self) -> list[bool]:
        """Return for each example whether the unedited code fails. Order the examples: failed and public ones first."""
        names, failed, seconds = dict[str, Any](), list[bool](), dict[int, float]()
        self._is_done(partial(self._define, self._own, names), MAX_SECONDS)
        for number, example in enumerate(self._of["examples"]):
            begun = time.process_time()
            failed.append(not self._is_done(partial(judge_example, names, example), MAX_SECONDS))
            seconds[number] = time.process_time() - begun
        public = [example.get("public", True) for example in self._of["examples"]]
        order = sorted(seconds, key=lambda number: (not failed[number], not public[number], seconds[number]))
        self._limits = {
            number: max(_SECONDS_OF_EXAMPLE if place else _SECONDS_OF_FIRST, _TIMES_AS_LONG * seconds[number])
            for place, number in enumerate(order)
        }
        return failed

    def passes_with(self, edited: Definition) -> bool:
        """Return whether all examples pass with one definition replaced by an edited one."""
        try:
            codes = {**self._own, edited.name: compiled(edited)}
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
        names, examples = dict[str, Any](), self._of["examples"]
        return (
            self._is_done(partial(self._define, codes, names), _SECONDS_OF_FIRST)
            and all(
                self._is_done(partial(judge_example, names, examples[number]), seconds)
                for number, seconds in self._limits.items()
            )
            and not self._calls_forbidden(names)
        )

    def _calls_forbidden(self, names: dict[str, Any]) -> bool:
        """Return whether the code calls a library that the exercise forbids, in the example that is tried first."""
        libraries, first = set[str](), self._of["examples"][next(iter(self._limits))]
        with recorded_libraries(libraries):
            self._is_done(partial(judge_example, names, first), MAX_SECONDS)
        return not libraries.isdisjoint(self._of.get("forbids", ()))

    def _define(self, codes: Mapping[str, CodeType], names: dict[str, Any]) -> None:
        names.update({"__name__": "__main__", **MODULES})
        for code in (*self._others, *codes.values()):
            exec(code, names)

    def _is_done(self, do: Callable[[], Any], seconds: float) -> bool:
        """Return whether a function ends within these CPU seconds and those of the search, and raises nothing."""
        try:
            with new_notebook_state(), limited(max(min(seconds, self.seconds_left()), _SOONEST)):
                do()
        except BaseException:  # SystemExit and TimeUp too
            return False
        return True


def compiled(part: Definition) -> CodeType:
    """Return the code of a definition, without its annotations, whose names may be unknown."""
    flags = __future__.annotations.compiler_flag
    code: CodeType = compile(part.text, f"{CELL_PREFIX}{part.cell}", "exec", flags=flags, dont_inherit=True)
    return code


def _changes(part: Definition, edited: Definition) -> list[tuple[int, str, str]]:
    """Return number, old and new text of each changed line."""
    old, new = (one.text.splitlines() for one in (part, edited))
    lines = enumerate(zip(old, new, strict=False), start=part.first_line)
    return [
        (number, before.strip()[:_LONGEST_LINE], after.strip()[:_LONGEST_LINE])
        for number, (before, after) in lines
        if before != after
    ]


def _limit_resources() -> None:
    """Let this process write no file, and take little memory and time, if the system has such limits."""
    try:
        import resource
    except ImportError:  # Windows
        return
    with contextlib.suppress(OSError, ValueError):
        seconds = int(time.process_time() + 2 * MAX_SECONDS)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        Path("/proc/self/oom_score_adj").write_text("1000")  # this process is to end first, not the kernel
        pages = int(Path("/proc/self/statm").read_text().partition(" ")[0])
        most = pages * resource.getpagesize() + _MOST_MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
