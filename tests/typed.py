"""Notebooks with answers typed in."""

import json
from collections.abc import Callable
from typing import Any

import yaml

from autograder import catalogue, course
from autograder.course.cells import filled_in
from autograder.course.notebook import CodeCell
from autograder.pool.grading_pool import GradingProcess
from autograder.report import ExerciseReport
from autograder.tracing.definitions import used_answers
from tests import TESTS


def solved(unit: str, **answers: str) -> bytes:
    """The unit's notebook with these answers; the others are the solutions."""
    return filled_in(unit, {**solution_sources(unit), **answers})


def alone(unit: str, **answers: str) -> bytes:
    """The unit's notebook with these answers and with the solutions that they use; the other exercises' cells are gone.

    It is marked in a third of the time.
    """
    solutions = solution_sources(unit)
    written, todo = dict(answers), list(answers)
    while todo:
        name = todo.pop()
        used = CodeCell(name, written[name], name).names | used_answers(name, [("", solutions[name])], solutions)
        for other in used & solutions.keys() - written.keys():
            written[other] = solutions[other]
            todo.append(other)
    notebook = json.loads(filled_in(unit, written))
    gone = {exercise.name for exercise in course.unit(unit).exercises} - written.keys()
    notebook["cells"] = [cell for cell in notebook["cells"] if _grade_id(cell) not in gone]
    return json.dumps(notebook).encode()


def grade_answer(process: GradingProcess, unit: str, exercise: str, code: str) -> ExerciseReport:
    """Grade one exercise with this answer; the notebook has only it and the solutions that it uses."""
    return process.grade("typed.ipynb", alone(unit, **{exercise: code}), unit).exercise(exercise)


def with_cells(content: bytes, *sources: str, after: str = "", kind: str = "code") -> bytes:
    """The notebook with cells of a student's own below the cell of this grade_id, or at the end."""
    notebook = json.loads(content)
    at = [_grade_id(cell) for cell in notebook["cells"]].index(after) + 1 if after else len(notebook["cells"])
    notebook["cells"][at:at] = [{"cell_type": kind, "source": source, "metadata": {}} for source in sources]
    return json.dumps(notebook).encode()


def edited(content: bytes, **texts: "str | Callable[[str], str] | None") -> bytes:
    """Return the notebook with other texts in the cells with these grade_ids; a cell is deleted if its text is None."""
    notebook = json.loads(content)
    for name, text in texts.items():
        at = [_grade_id(cell) for cell in notebook["cells"]].index(name)
        cell = notebook["cells"][at]
        if text is None:
            del notebook["cells"][at]
        else:
            cell["source"] = text("".join(cell["source"])) if callable(text) else text
    return json.dumps(notebook).encode()


def stored(name: str) -> Any:
    """Return the content of tests/answers/NAME.yaml: answers, and what is known of them."""
    return yaml.load((TESTS / "answers" / f"{name}.yaml").read_text(), Loader=yaml.CSafeLoader)


def solution_sources(unit: str) -> dict[str, str]:
    return {name: solution.source() for name, solution in catalogue.solutions(unit).items()}


def _grade_id(cell: dict[str, Any]) -> str:
    return str(cell["metadata"].get("nbgrader", {}).get("grade_id", ""))
