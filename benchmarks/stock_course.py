"""The same course for stock nbgrader: hidden test cells that compare with the reference, in the student's kernel.

Each check gets every call that our hidden graders make to a right answer, and the result that they expect. What a
kernel cannot check in this way (gradients, devices, changed arguments, library calls) is left out, in stock's favour.
"""

import base64
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from autograder import catalogue, course
from autograder.core.operations import Call
from autograder.course.cells import filled_in
from autograder.gradebook.nbgrader_course import put_commands_on_path
from autograder.graders.collection import collect
from autograder.grading.examiner import Examiner, candidate_bench

CONFIG = """c = get_config()
c.CourseDirectory.course_id = "attention"
c.ClearSolutions.code_stub = {{"python": "# YOUR CODE HERE\\nraise NotImplementedError()"}}
{more}
"""
IMMEDIATE = 'c.NotebookClient.shutdown_kernel = "immediate"'

CHECK = """### BEGIN HIDDEN TESTS
import base64 as _base64, io as _io, torch as _torch
def _same(found, wanted):
    if isinstance(wanted, tuple):
        return isinstance(found, tuple) and len(found) == len(wanted) and all(map(_same, found, wanted))
    if not isinstance(wanted, _torch.Tensor):
        return found == wanted
    return (isinstance(found, _torch.Tensor) and found.shape == wanted.shape
            and _torch.allclose(found.double(), wanted.double(), rtol=1e-4, atol=1e-5, equal_nan=True))
def _right(call):
    try:
        return _same({name}(*call[0], **call[1]), call[2])
    except Exception:
        return False
_calls = _torch.load(_io.BytesIO(_base64.b64decode("{calls}")), weights_only=True)
_score = {points} * sum(map(_right, _calls)) / len(_calls)
### END HIDDEN TESTS
_score if "_score" in globals() else None
"""


def calls(unit: str) -> dict[str, list[tuple[Any, Any, Any]]]:
    """By exercise, the arguments with which our graders call a right answer, and what it returns."""
    found: dict[str, list[tuple[Any, Any, Any]]] = {}

    examiner = Examiner(collect())
    for exercise in course.unit(unit).exercises:
        traces = examiner.examine(unit, exercise.name, candidate_bench(unit, None)).transcript
        found[exercise.name] = [
            (call.arguments.positional, dict(call.arguments.named), _plain(event.shown.value))
            for trace in traces
            for event in trace.events
            if isinstance(call := event.operation, Call)
            and call.target == exercise.name
            and not isinstance(event.shown, str)
        ]
    return found


def build(root: Path, unit: str, checks: Mapping[str, Any], more: str = "") -> None:
    """Makes the course in an empty folder and puts it into its gradebook."""
    (root / "nbgrader_config.py").write_text(CONFIG.format(more=more))
    source = root / "source" / unit
    source.mkdir(parents=True)
    notebook = json.loads((course.source(unit).parent / f"{unit}.ipynb").read_bytes())
    points = {exercise.check: exercise for exercise in course.unit(unit).exercises}
    for cell in notebook["cells"]:
        exercise = points.get(cell["metadata"].get("nbgrader", {}).get("grade_id"))
        if exercise:
            buffer = io.BytesIO()
            torch.save(checks[exercise.name], buffer)
            encoded = base64.b64encode(buffer.getvalue()).decode()
            cell["source"] = CHECK.format(name=exercise.name, calls=encoded, points=exercise.points)
    (source / f"{unit}.ipynb").write_text(json.dumps(notebook))
    for path in (course.source(unit).parent).iterdir():
        if path.suffix != ".ipynb":
            shutil.copy(path, source)
    nbgrader(root, "generate_assignment", unit)


def nbgrader(root: Path, *arguments: str) -> None:
    """Runs one of nbgrader's own commands in the course."""
    put_commands_on_path()
    command = [sys.executable, "-W", "ignore", "-m", "nbgrader", *arguments]
    subprocess.run(command, cwd=root, check=True, capture_output=True)


def class_of(size: int, unit: str) -> dict[str, bytes]:
    """Submissions, all of which terminate: a quarter right, the others each with one known mistake."""
    right = {name: solution.source() for name, solution in catalogue.solutions(unit).items()}
    wrong = list(catalogue.misconceptions(unit).values())
    submissions = {}
    for number in range(size):
        entry = wrong[number * 7 % len(wrong)]
        answers = right if number % 4 == 0 else {**right, entry.exercise: entry.source()}
        submissions[f"student-{number:04}"] = filled_in(unit, answers)
    return submissions


def submit(root: Path, unit: str, submissions: Mapping[str, bytes]) -> None:
    """Puts the submissions where `nbgrader collect` puts them."""
    for student, content in submissions.items():
        folder = root / "submitted" / student / unit
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{unit}.ipynb").write_bytes(content)


def _plain(value: Any) -> Any:
    return tuple(map(_plain, value)) if isinstance(value, tuple) else value
