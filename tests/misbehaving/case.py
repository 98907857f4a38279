"""What a misbehaving submission is: the text of a cell, or a whole file, and what must come of it."""

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder import course
from autograder.report import ExerciseStatus, SubmissionStatus

UNIT = "dot_product_attention"
TARGET = "context_vector"
"""The exercise into whose cell a case's code goes, if the code does not define another."""

EXERCISES = [exercise.name for exercise in course.unit(UNIT).exercises]

RIGHT = """
def context_vector(weights, inputs):
    return weights @ inputs
"""

FAMILIES = ("endings", "hangs", "strange_results", "patches", "forgeries", "looking_around", "reaching_out", "files")
_SPEAK_ALONE = {"strange_results", "patches", "forgeries"}
"""The families of which no case meets the operating system."""
_USE_UP = {"endings", "hangs"}
"""The families of which no case asks for what a level or a user may have and another may not."""


@dataclass(frozen=True)
class Must:
    """What must come of a submission. `exercises` names those that are not passed, each of which then earns nothing."""

    status: SubmissionStatus
    exercises: dict[str, ExerciseStatus]


@dataclass(frozen=True)
class Case:
    """One misbehaving submission."""

    name: str
    family: str
    tries: str
    must: Must
    code: str = ""
    file: "MakeFile | None" = None
    """Makes what is handed in, for the cases that are no code."""
    speaks_alone: bool = False
    """Whether it never meets the operating system: it speaks to the grader, or changes its own Python."""

    @property
    def uses_up(self) -> bool:
        """Whether it only ends its process, or takes time, memory or the like, of which all have as much."""
        return self.family in _USE_UP

    @property
    def hangs(self) -> bool:
        """Whether a time limit has to end it."""
        return "timeout" in self.must.exercises.values()

    def put_submission(self, path: Path, fill_in: Callable[[str], bytes]) -> None:
        """Puts the submission at a path. fill_in: makes a notebook with this text in the target's cell."""
        content = fill_in(self.code) if self.file is None else self.file(fill_in(RIGHT), path)
        if content is not None:
            path.write_bytes(content)


MakeFile = Callable[[bytes, Path], bytes | None]
"""From a right notebook the content of a strange file; or None, where it has put something at the path itself."""

UNHARMED = Must("graded", {})
"""What it tries fails, and the answer beside it is right: full marks."""


def lost(status: ExerciseStatus, submission: SubmissionStatus = "graded", exercise: str = TARGET) -> Must:
    """The exercise is lost, and no other."""
    return Must(submission, {exercise: status})


TIMEOUT = lost("timeout", "timed_out")
CRASH = lost("crashed", "crashed")
FAILED = lost("failed")
CELL_FAILED = lost("error", "cells_failed")
DAMAGED = Must("damaged", {})
UNREADABLE = Must("unreadable", {})


_known: dict[str, list[Case]] = {}


def must(outcome: Must, *, speaks_alone: bool = False) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Keeps a function whose body is the text of a cell; its docstring says what that tries."""

    def keep(function: Callable[[], None]) -> Callable[[], None]:
        _keep(function, outcome, speaks_alone, code=_body(function))
        return function

    return keep


def handed_in(outcome: Must, *, speaks_alone: bool = False) -> Callable[[MakeFile], MakeFile]:
    """Keeps a function that makes a strange file of a right one; its docstring says what that is."""

    def keep(function: MakeFile) -> MakeFile:
        _keep(function, outcome, speaks_alone, file=function)
        return function

    return keep


def cases() -> list[Case]:
    """All of them, in the order of the files."""
    for family in FAMILIES:
        importlib.import_module(f"{__package__}.{family}")
    return [case for family in FAMILIES for case in _known[family]]


def _keep(
    function: Callable[..., Any], outcome: Must, speaks_alone: bool, *, code: str = "", file: MakeFile | None = None
) -> None:
    family = function.__module__.rpartition(".")[2]
    tries = " ".join((function.__doc__ or "").split())
    case = Case(function.__name__, family, tries, outcome, code, file, speaks_alone or family in _SPEAK_ALONE)
    _known.setdefault(family, []).append(case)


def _body(function: Callable[[], None]) -> str:
    """The text of a function's body without its docstring, as a cell; with the right answer, if it gives none."""
    source = textwrap.dedent(inspect.getsource(function))
    (definition,) = ast.parse(source).body
    assert isinstance(definition, ast.FunctionDef)
    statements = definition.body[1:]
    first = min([statements[0].lineno, *(d.lineno for d in getattr(statements[0], "decorator_list", []))])
    text = textwrap.dedent("\n".join(source.splitlines()[first - 1 :])) + "\n"
    gives_one = re.search(rf"^(async def |def |){TARGET}\b", text, re.MULTILINE)
    return text if gives_one else text + RIGHT
