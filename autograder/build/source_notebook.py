"""One unit's instructor notebook, from its text in exercises/ and its answers in solutions/.

The text is a py:percent notebook (jupytext). Some of its cells are more than text:

    # %% exercise="scaled_softmax" points=4             becomes the solution cell and its check
    # %% [markdown] written="why_scale" points=3        a question; below it comes a cell for the answer, marked by hand
    # %% locked="setup"                                 code that belongs to the instructor
    # %% [markdown]  and  # %%                          stay as they are; students may change the latter
"""

from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from ..course import Exercise
from ..course.version import digest
from .solution_cell import NoSolution, solution_cell, written_answers

CHECK = """# Checks your work; the hidden tests that decide the points ask the same with other numbers.
check("{exercise}")"""

_KNOWN = {"exercise", "written", "locked", "points"}
_METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


class BuildError(Exception):
    """Something is wrong in what is to be built; `str()` says what and where."""


def source_notebook(text: Path, solutions: Path) -> Any:
    """The notebook of one unit, with answers; raises BuildError."""
    if not solutions.is_file():
        raise BuildError(f"{text.name} has no solutions: write solutions/{solutions.name}.")
    answers = solutions.read_text()
    notebook = new_notebook(metadata=dict(_METADATA))
    for number, cell in enumerate(jupytext.read(text, fmt="py:percent").cells, start=1):
        metadata = {key: value for key, value in cell.metadata.items() if not key.startswith("lines_to")}
        if unknown := metadata.keys() - _KNOWN:
            line = f"`{next(iter(unknown))}`" if "title" not in unknown else f"`{metadata['title']}`"
            raise BuildError(
                f"{text.name}: a cell's line says {line}, which means nothing here. "
                f'It can say exercise="name", written="name", locked="name" and points=2, with the quotes.'
            )
        if "exercise" in metadata:
            notebook.cells += _exercise(text, answers, metadata, cell.source)
        elif "written" in metadata:
            notebook.cells += _written(text, answers, metadata, cell.source)
        elif "locked" in metadata:
            name = metadata["locked"]
            notebook.cells.append(_code(name, cell.source, _nbgrader(name, locked=True)))
        else:
            cell.id = f"{text.stem}-{number}"
            cell.metadata = {}
            notebook.cells.append(cell)
    repeated = [cell.id for cell in notebook.cells if [c.id for c in notebook.cells].count(cell.id) > 1]
    if repeated:
        raise BuildError(f"{text.name}: the name `{repeated[0]}` is on two cells.")
    notebook.metadata["autograder"] = {"digest": digest(notebook)}
    nbformat.validate(notebook)
    return notebook


def _exercise(text: Path, answers: str, metadata: dict[str, Any], body: str) -> list[Any]:
    name = metadata["exercise"]
    where = f"{text.name}: exercise `{name}`"
    points = _points(where, metadata)
    if body.strip():
        raise BuildError(f"{where} has code below its line; the stub comes from solutions/{text.name}.")
    try:
        answer = solution_cell(answers, name)
    except NoSolution as reason:
        raise BuildError(f"{where} has no solution in solutions/{text.name}: {reason}.") from None
    check = Exercise(name, points).check
    return [
        _code(name, answer, _nbgrader(name, solution=True)),
        _code(check, CHECK.format(exercise=name), _nbgrader(check, grade=True, locked=True, points=points)),
    ]


def _written(text: Path, answers: str, metadata: dict[str, Any], question: str) -> list[Any]:
    """The question, and a cell whose text in source/ is the model answer."""
    name = metadata["written"]
    where = f"{text.name}: question `{name}`"
    points = _points(where, metadata)
    answer = written_answers(answers).get(name)
    if not answer:
        raise BuildError(f"{where} has no model answer: add it to WRITTEN in solutions/{text.name}.")
    cells = [new_markdown_cell(question), new_markdown_cell(answer)]
    cells[0].id, cells[1].id = f"question-{name}", name
    nbgrader = _nbgrader(name, grade=True, solution=True, points=points)
    cells[1].metadata["nbgrader"] = {**nbgrader, "cell_type": "markdown"}
    return cells


def _points(where: str, metadata: dict[str, Any]) -> float:
    points = metadata.get("points")
    if isinstance(points, bool) or not isinstance(points, int | float) or points <= 0:
        raise BuildError(f"{where} needs points, e.g. points=4.")
    return points


def _code(name: str, source: str, nbgrader: dict[str, Any]) -> Any:
    cell = new_code_cell(source, metadata={"nbgrader": nbgrader})
    cell.id = name
    return cell


def _nbgrader(grade_id: str, **flags: Any) -> dict[str, Any]:
    plain = {"grade": False, "locked": False, "solution": False, "task": False}
    return {"schema_version": 3, "grade_id": grade_id, "cell_type": "code", **plain, **flags}
