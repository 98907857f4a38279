"""The repair of a check with `repair=True`: the line at which one change makes all examples pass.

Another process searches for the change (`repair_process`). It gets the text of the answers, and neither the notebook's
names nor its memory.
"""

import dis
import json
import linecache
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import CodeType
from typing import Any

from ..tracing.definitions import Definition, definitions
from . import repair_process
from .freshness import code_file
from .run_examples import Outcome
from .unit_data import UnitData

MOST_LINES = 3
"""If changes of more lines than these repair the answer, no line is named."""
MOST_KINDS = 2
"""Limit of kinds of changes that are named for one line."""
_WALL_SECONDS = 2 * repair_process.MAX_WALL_SECONDS
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
        here, there = names.get(name, ...), repair_process.MODULES.get(name, ...)  # functions of Python are in neither
        if here is not there or name in _OUTSIDE or name.startswith("import "):
            raise NotTried(
                f"`{exercise}` uses `{name}`; the copy that is tried has only local names, `torch`, `nn`, `F`, `math`, "
                "Python's own functions and your other answers"
            )
    return used & set(exercises)


def _names_in(part: Definition) -> set[str]:
    """Return the global names that a definition uses, its imports (`import numpy`), and attributes in `_OUTSIDE`."""
    codes, found = [repair_process.compiled(part)], set[str]()
    for code in codes:
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        operations = [(one.opname, str(one.argval)) for one in dis.get_instructions(code)]
        own = {name for operation, name in operations if operation == "STORE_NAME"}
        found |= {name for operation, name in operations if operation in _GLOBAL and name not in own}
        imported = {name.partition(".")[0] for operation, name in operations if operation == "IMPORT_NAME"}
        found |= {f"import {name}" for name in imported - repair_process.MODULES.keys()}
        found |= _OUTSIDE.intersection(code.co_names)
    return found


@lru_cache(maxsize=8)
def _searched(request: str, facade: Path) -> tuple[dict[str, Any], ...]:
    """Return the repairs that the other process finds; raises NotTried."""
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", _START, str(facade.parent), facade.stem, repair_process.__name__],
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
    if repair_process.PASSES in repairs:
        raise NotTried(_PASSES)
    return repairs


def describe_repairs(repairs: Sequence[Mapping[str, Any]], *, more: bool, shows_repair: bool) -> str:
    """Return the message on the lines that the smallest repairs change.

    repairs: as in `repair_process.found_repairs`.
    """
    is_complete = repair_process.COMPLETE in repairs
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
