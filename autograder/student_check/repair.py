"""The repair of a check with `repair=True`: the line at which one change makes all examples pass.

Another process searches for the change. It gets the text of the answers, and neither the notebook's names nor its
memory. The student's kernel starts and ends it, so that an edited answer that never ends, takes all memory or changes a
module does so there only.
"""

import __future__

import contextlib
import dis
import io
import json
import linecache
import math
import os
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from types import CodeType
from typing import Any

import torch

from ..core.observation import CELL_PREFIX
from ..tracing.definitions import Definition, Edit, definitions
from ..tracing.repair_operators import generic_edits
from .check import examples_of
from .judgement import judge_example
from .run_examples import Outcome, code_file, limited, new_notebook_state, recorded_libraries
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
MOST_LINES = 3
"""If changes of more lines than these repair the answer, no line is named."""
MOST_KINDS = 2
"""Limit of kinds of changes that are named for one line."""
_WALL_SECONDS = 2 * MAX_WALL_SECONDS
"""Limit for the process, whose import of torch may take seconds."""
_OUTSIDE = frozenset(["open", "exec", "eval", "__import__", "save", "tofile", "hub"])
"""Functions and attributes that reach files, or names that do not appear in the code."""
_GLOBAL = ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS", "STORE_GLOBAL", "DELETE_GLOBAL")
"""Bytecode operations that use a global name."""
_START = "import sys; sys.path.insert(0, sys.argv[1]); [__import__(name) for name in sys.argv[2:]]; "
_START += "sys.modules[sys.argv[3]].main()"

_HUNT = "the answer to a hunt is an input, not a calculation"
_COMES_FIRST = "solve first what is said above"
_PASSES = "in a new notebook your code passes; restart the kernel and run all cells"
_NO_PROCESS = "this needs a second Python, which did not start or took too long"
_NOTHING = "No single change was found that makes all examples pass. The mistake may need more than one change."
_NOTHING_IN_TIME = "No single change that makes all examples pass was found within the time limit."
_NOT_ALL_TRIED = "; changes of other lines were not all tried"
_MANY_LINES = "Changes in many lines each make all examples pass, so no line is certain to be the wrong one."


class NotTried(Exception):
    """No change can be tried; `str()` is the reason."""


def repair_message(names: Mapping[str, Any], unit: UnitData, found: Outcome, facade: Path, *, more: bool) -> str:
    """Return the line of the change with which all examples pass, or the reason why no line is named.

    The result is empty if nothing fails. names: the notebook's. facade: the module that notebooks import. more: say
    also what kind of change it is. The change itself is shown only if the course has set `show_repair`.
    Raises KeyboardInterrupt.
    """
    if found.missing or not found.failed:
        return ""
    try:
        if found.hunts:
            raise NotTried(_HUNT)
        if not found.can_be_located:
            raise NotTried(_COMES_FIRST)
        request = {
            "data": str(unit.path),
            "exercise": found.exercise,
            "cells": _cells(names, found.exercise, unit.exercises),
            "suspected": sorted(_suspected(found)),
        }
        repairs = _searched(json.dumps(request), facade)
    except NotTried as reason:
        return f"No change was tried: {reason}."
    return describe_repairs(repairs, more=more, shows_repair=unit.shows_repair)


def _suspected(found: Outcome) -> set[int]:
    """Return the lines that an error or a trace names."""
    lines = {line for one in found.tried for _, line, _ in one.frames}
    return lines | set(map(int, re.findall(r"\bline (\d{1,5})\b", found.line_message)))


def _cells(names: Mapping[str, Any], exercise: str, exercises: Sequence[str]) -> dict[str, str]:
    """Return by exercise the source of each answer's cell, without answers that cannot be copied.

    Raises NotTried if the answer to `exercise` is or uses one of these.
    """
    sources, used, reasons = dict[str, str](), dict[str, set[str]](), dict[str, NotTried]()
    for name in exercises:
        try:
            source = "".join(linecache.getlines(code_file(names.get(name))))
            used[name] = _used_answers(names, name, source, exercises)
            sources[name] = source
        except NotTried as reason:
            reasons[name] = reason
    waiting = [exercise]
    for name in waiting:
        if name in reasons:
            raise reasons[name]
        waiting += used[name].difference(waiting)
    return sources


def _used_answers(names: Mapping[str, Any], exercise: str, source: str, exercises: Sequence[str]) -> set[str]:
    """Return the other exercises that an answer uses; raises NotTried if it uses anything else that is not copied."""
    parts = definitions(exercise, [(exercise, source)], exercises)
    file = code_file(names.get(exercise))
    if not parts:
        raise NotTried(f"`{exercise}` is not defined by `def` or `class` in a cell whose text is known")
    used = set[str]().union(*map(_names_in, parts))
    own = {part.name for part in parts if code_file(names.get(part.name)) == file}
    for name in sorted(used - own - {*exercises, "__name__"}):
        here, there = names.get(name, ...), MODULES.get(name, ...)  # functions of Python are in neither
        if here is not there or name in _OUTSIDE or name.startswith("import "):
            raise NotTried(
                f"`{exercise}` uses `{name}`; the copy that is tried has only local names, `torch`, `nn`, `F`, `math`, "
                "Python's own functions and your other answers"
            )
    return used & set(exercises)


def _names_in(part: Definition) -> set[str]:
    """Return the global names that a definition uses, its imports (`import numpy`), and attributes in `_OUTSIDE`."""
    codes, found = [compiled(part)], set[str]()
    for code in codes:
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        operations = [(one.opname, str(one.argval)) for one in dis.get_instructions(code)]
        own = {name for operation, name in operations if operation == "STORE_NAME"}
        found |= {name for operation, name in operations if operation in _GLOBAL and name not in own}
        imported = {name.partition(".")[0] for operation, name in operations if operation == "IMPORT_NAME"}
        found |= {f"import {name}" for name in imported - MODULES.keys()}
        found |= _OUTSIDE.intersection(code.co_names)
    return found


@lru_cache(maxsize=8)
def _searched(request: str, facade: Path) -> tuple[dict[str, Any], ...]:
    """Return the repairs that the other process finds; raises NotTried."""
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", _START, str(facade.parent), facade.stem, __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt is for the kernel
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            env={**os.environ, **threads, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
    except (OSError, ValueError):
        raise NotTried(_NO_PROCESS) from None
    with process:
        try:
            output, _ = process.communicate(request.encode(), timeout=_WALL_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
        finally:
            process.kill()
            process.wait()
    repairs = tuple(json.loads(line) for line in output.splitlines(keepends=True) if line.endswith(b"\n"))
    if process.returncode and not repairs:
        raise NotTried(_NO_PROCESS)
    if PASSES in repairs:
        raise NotTried(_PASSES)
    return repairs


def describe_repairs(repairs: Sequence[Mapping[str, Any]], *, more: bool, shows_repair: bool) -> str:
    """Return the message on the lines that the smallest repairs change.

    repairs: as in `found_repairs`.
    """
    is_complete = COMPLETE in repairs
    repairs = [one for one in repairs if "lines" in one]
    if not repairs:
        return _NOTHING if is_complete else _NOTHING_IN_TIME
    every = {frozenset(one["lines"]) for one in repairs}
    smallest = [one for one in repairs if not any(other < set(one["lines"]) for other in every)]
    places: dict[tuple[int, ...], list[Mapping[str, Any]]] = {}
    for one in smallest:
        places.setdefault(tuple(one["lines"]), []).append(one)
    if len({line for place in places for line in place}) > MOST_LINES:
        return _MANY_LINES
    ways = [_place(place) + (_kinds(places[place]) if more else "") for place in sorted(places)]
    first, *others = ways
    sentence = f"One change in {first} makes all examples pass{'' if is_complete else _NOT_ALL_TRIED}."
    if others:
        alternatives = "".join(f", or one in {way}" for way in others)
        sentence = (
            f"A change in {first}{alternatives}, makes all examples pass, so no line is certain to be the wrong one."
        )
    shown = [change for place in sorted(places) for change in places[place][0]["changes"]] if shows_repair else []
    return "\n".join([sentence, *(f"Line {line}: `{before}` -> `{after}`" for line, before, after in shown)])


def _place(lines: Sequence[int]) -> str:
    *others, last = map(str, lines)
    return f"lines {', '.join(others)} and {last}" if others else f"line {last}"


def _kinds(repairs: Sequence[Mapping[str, Any]]) -> str:
    kinds = list(dict.fromkeys(one["subject"] for one in repairs))[:MOST_KINDS]
    return f" ({' or '.join(kinds)})"


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

    The request has `data` (the unit's data file), `exercise`, `cells` (the source of each exercise's cell, by exercise)
    and `suspected` (lines that are tried first). If the unedited code fails no example in this process, the only
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
