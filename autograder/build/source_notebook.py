"""A unit's instructor notebook, from its text in exercises/ and its answers in solutions/.

The text is a py:percent notebook (jupytext). Some of its cells are more than text:

    # %% exercise="scaled_softmax" points=4             becomes the solution cell and its check
    # %% [markdown] written="why_scale" points=3        a question; below it comes a cell for the answer, marked by hand
    # %% locked="setup"                                 code that belongs to the instructor
    # %% drawing=true                                   code that only draws: collapsed, in a locked cell too
    # %% training="reverse_six_digits"                  code that takes its time: students run it, marking never does
    # %% [markdown]  and  # %%                          stay as they are; students may change the latter

Added are the points, where each exercise's text begins, and at the end the instructions on submitting.

In a solution's cell, everything below a docstring is between nbgrader's solution marks. Code that students get is
narrow enough for JupyterLab at 1280 pixels, next to its file list.
"""

import ast
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from ..course import CHECK_PREFIX, Exercise
from ..course.content import notebook_digest
from ..course.settings import Settings
from ..course.units import BEGIN, END
from ..errors import UserError
from .check_import import LATER, called_in, guarded

COLUMNS = 88
CHECK = """# Checks your work. The hidden tests, which decide the points, use other numbers.
"""
CHECK_OF_A_HUNT = """# Checks your work. The hidden test, which decides the points, asks the same
# with the right function in the place of yours.
"""
STUCK = """# Stuck? In a cell of your own: hint("{exercise}")
"""
CALLED = 'check("{exercise}")'
DRAWS = "# This code only draws. Click here to read it."
"""The line of a collapsed cell that JupyterLab shows."""
TRAINS = "# Yours to change and to run, as often as you like. Grading does not run this cell."
"""Above what a training cell says."""
HOW_TO_HAND_IN = "how-to-hand-in"
"""The id of the last cell."""
QUESTION = "question-"
"""The beginning of the id of a written question's cell."""
_POINTS = re.compile(r"\*\*(Exercise `\w+`: |Question: )?[\d.]+ points?\*\*.*")
_KNOWN = {"exercise", "written", "locked", "points", "drawing", "training"}
_METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


class NoSolution(Exception):
    """solutions/ has no such function or class, or none that can become a stub; `str()` gives the reason."""


def solution_cell(module_source: str, name: str) -> str:
    """Return the definition of `name`, with its bodies marked so that nbgrader replaces them with the stub.

    Signature and docstring stay; so does `super().__init__()`, which is not part of any exercise.
    """
    try:
        ast.parse(module_source)
    except SyntaxError as error:
        raise NoSolution(f"line {error.lineno} is not Python: {error.msg}") from None
    lines = module_source.splitlines()
    definition = _definition(module_source, name)
    functions = (
        [node for node in definition.body if isinstance(node, ast.FunctionDef)]
        if isinstance(definition, ast.ClassDef)
        else [definition]
    )
    added = 0
    for function in reversed(functions):  # bottom up, so that line numbers above stay right
        body = _body(function)
        if not body:
            continue
        if body[0].lineno == function.lineno:
            raise NoSolution(f"`{function.name}` has its body on the line of its `def`; begin the body on a new line")
        indent = " " * body[0].col_offset
        end = body[-1].end_lineno
        lines.insert(end or 0, indent + END)
        lines.insert(_first_line(lines, body[0]), indent + BEGIN)
        added += 2
    start = min([definition.lineno, *(decorator.lineno for decorator in definition.decorator_list)])
    return "\n".join(lines[start - 1 : (definition.end_lineno or 0) + added])


def too_wide(code: str) -> str:
    """Return a cell's first line that is too wide, or nothing. The solution, which a stub replaces, may be wider."""
    in_solution = False
    for line in code.splitlines():
        in_solution = line.strip() == BEGIN or (in_solution and line.strip() != END)
        if len(line) > COLUMNS and not in_solution:
            return line
    return ""


def takes_nothing(module_source: str, name: str) -> bool:
    """Return whether `name` is a function without arguments: the one of a bug hunt."""
    definition = _definition(module_source, name)
    return isinstance(definition, ast.FunctionDef) and not ast.unparse(definition.args)


def written_answers(module_source: str) -> dict[str, str]:
    """Return the model answers to the unit's written questions, by name, from the module's dict WRITTEN."""
    for node in ast.parse(module_source).body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["WRITTEN"]:
            answers: dict[str, str] = ast.literal_eval(node.value)
            return {name: textwrap.dedent(answer).strip() for name, answer in answers.items()}
    return {}


def _definition(module_source: str, name: str) -> ast.FunctionDef | ast.ClassDef:
    for node in ast.parse(module_source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return node
    raise NoSolution(f"define `{name}` there")


def _first_line(lines: Sequence[str], statement: ast.stmt) -> int:
    """Return the index of a body's first line: a comment above the first statement is part of the answer."""
    decorators = getattr(statement, "decorator_list", [])
    start: int = min([statement.lineno, *(decorator.lineno for decorator in decorators)]) - 1
    while not (above := lines[start - 1].strip()) or above.startswith("#"):
        start -= 1
    return start


def _body(function: ast.FunctionDef) -> Sequence[ast.stmt]:
    body = function.body
    if ast.get_docstring(function) is not None:
        body = body[1:]
    if body and ast.unparse(body[0]) == "super().__init__()":
        body = body[1:]
    return body


class BuildError(UserError):
    """The course cannot be built; `str()` says what is wrong, and in which file."""


def source_notebook(text: Path, solutions: Path, settings: Settings, *, with_hints: bool = False) -> Any:
    """Return the notebook of a unit, with answers; raises BuildError. with_hints: whether its exercises have hints."""
    if not solutions.is_file():
        raise BuildError(f"{text.name} has no solutions: write solutions/{solutions.name}.")
    answers = solutions.read_text()
    notebook = new_notebook(metadata=dict(_METADATA))
    given = jupytext.read(text, fmt="py:percent").cells
    used = {call.function for cell in given if cell.cell_type == "code" for call in called_in(cell.source)}
    later = [name for name in LATER if name in used or (name == "hint" and with_hints)]
    for number, cell in enumerate(given, start=1):
        metadata = {key: value for key, value in cell.metadata.items() if not key.startswith("lines_to")}
        if unknown := metadata.keys() - _KNOWN:
            line = f"`{next(iter(unknown))}`" if "title" not in unknown else f"`{metadata['title']}`"
            raise BuildError(
                f"{text.name}: a cell's line says {line}, which is not allowed there. "
                f'It can say exercise="name", written="name", locked="name", training="name", points=2, drawing=true, '
                f"with the quotation marks."
            )
        if "training" in metadata:
            notebook.cells.append(_training(text, cell, metadata))
        elif "exercise" in metadata:
            its = _exercise(text, answers, metadata, cell.source, with_hints=with_hints)
            _add_points(notebook.cells, metadata["exercise"], metadata["points"])
            notebook.cells += its
        elif "written" in metadata:
            notebook.cells += _written(text, answers, metadata, cell.source)
        else:
            notebook.cells.append(_as_it_is(text, number, cell, metadata, settings, later))
    _frame(text.stem, notebook.cells, settings)
    repeated = [cell.id for cell in notebook.cells if [c.id for c in notebook.cells].count(cell.id) > 1]
    if repeated:
        raise BuildError(f"{text.name}: two cells have the name `{repeated[0]}`.")
    notebook.metadata["autograder"] = {"digest": notebook_digest(notebook)}
    nbformat.validate(notebook)
    return notebook


def points_of(cells: list[Any]) -> tuple[dict[str, float], dict[str, float]]:
    """Return the points of the exercises, and those of the written questions, which have no hidden test."""
    graded = {cell.id: one["points"] for cell in cells if "points" in (one := cell.metadata.get("nbgrader", {}))}
    checks = {name: worth for name, worth in graded.items() if name.startswith(CHECK_PREFIX)}
    exercises = {name.removeprefix(CHECK_PREFIX): worth for name, worth in checks.items()}
    return exercises, {name: worth for name, worth in graded.items() if name not in checks}


def locked(name: str) -> dict[str, Any]:
    """Return nbgrader's metadata for a code cell that belongs to the instructor."""
    return _nbgrader(name, locked=True)


def _as_it_is(
    text: Path, number: int, cell: Any, metadata: dict[str, Any], settings: Settings, later: Sequence[str]
) -> Any:
    """Return a cell that students get as it is in the text, except for a guarded import of the check."""
    name = metadata.get("locked", f"{text.stem}-{number}")
    if cell.cell_type == "code":
        _reject_wide(f"{text.name}: a given cell", cell.source)
        address = f"{settings.files_at.rstrip('/')}/{text.stem}" if settings.files_at else ""
        cell.source = guarded(cell.source, settings.check, address, later)
    cell.id, cell.metadata = name, {}
    if "locked" in metadata:
        cell.metadata["nbgrader"] = locked(name)
    if metadata.get("drawing"):
        cell.source, cell.metadata["jupyter"] = f"{DRAWS}\n{cell.source}", {"source_hidden": True}
    return cell


def _training(text: Path, cell: Any, metadata: dict[str, Any]) -> Any:
    """Return a cell that students may change and run. Its id or metadata tells grading to leave it out."""
    name = metadata["training"]
    if cell.cell_type != "code" or len(metadata) > 1 or not isinstance(name, str) or not name.isidentifier():
        raise BuildError(
            f'{text.name}: begin a training cell with `# %% training="name"` and nothing else, with a name of '
            f"letters, digits and `_`; this cell has {metadata}."
        )
    _reject_wide(f"{text.name}: training cell `{name}`", cell.source)
    return new_code_cell(f"{TRAINS}\n{cell.source}", id=name, metadata={"autograder": {"training": True}})


def _frame(unit: str, cells: list[Any], settings: Settings) -> None:
    """Add the total of points at the top, and how to submit at the end."""
    exercises, written = points_of(cells)
    _add_total(cells, unit, sum(exercises.values()), sum(written.values()))
    if how := settings.handing_in.section(f"{unit}.ipynb"):
        cells.append(new_markdown_cell(how, id=HOW_TO_HAND_IN))


def _reject_wide(where: str, code: str) -> None:
    if line := too_wide(code):
        raise BuildError(
            f"{where} has a line of {len(line)} columns; break it, so that students can read it without scrolling "
            f"(at most {COLUMNS}): {line.strip()}"
        )


def _exercise(text: Path, answers: str, metadata: dict[str, Any], body: str, *, with_hints: bool) -> list[Any]:
    name = metadata["exercise"]
    where = f"{text.name}: exercise `{name}`"
    points = _points(where, metadata)
    if body.strip():
        raise BuildError(
            f"{where} has code below its exercise line. Delete it: the stub comes from solutions/{text.name}."
        )
    try:
        answer = solution_cell(answers, name)
    except NoSolution as reason:
        raise BuildError(f"{where} has no solution in solutions/{text.name}: {reason}.") from None
    _reject_wide(f"solutions/{text.name}: the stub of `{name}`", answer)
    check = Exercise(name, points).check
    tries = (CHECK_OF_A_HUNT if takes_nothing(answers, name) else CHECK) + STUCK * with_hints + CALLED
    locked_check = _nbgrader(check, grade=True, locked=True, points=points)
    return [
        new_code_cell(answer, id=name, metadata={"nbgrader": _nbgrader(name, solution=True)}),
        new_code_cell(tries.format(exercise=name), id=check, metadata={"nbgrader": locked_check}),
    ]


def _written(text: Path, answers: str, metadata: dict[str, Any], question: str) -> list[Any]:
    """Return the question, and a cell whose text in source/ is the model answer."""
    name = metadata["written"]
    where = f"{text.name}: question `{name}`"
    points = _points(where, metadata)
    answer = written_answers(answers).get(name)
    if not answer:
        raise BuildError(f"{where} has no model answer: add it to WRITTEN in solutions/{text.name}.")
    with_points = _below_headings(question, f"**Question: {_in_words(points)}**, given by a person")
    nbgrader = {**_nbgrader(name, grade=True, solution=True, points=points), "cell_type": "markdown"}
    return [
        new_markdown_cell(with_points, id=f"{QUESTION}{name}"),
        new_markdown_cell(answer, id=name, metadata={"nbgrader": nbgrader}),
    ]


def _points(where: str, metadata: dict[str, Any]) -> float:
    points = metadata.get("points")
    if isinstance(points, bool) or not isinstance(points, int | float) or points <= 0:
        raise BuildError(f"{where} needs points, e.g. points=4.")
    return points


def _nbgrader(grade_id: str, **flags: Any) -> dict[str, Any]:
    plain = {"grade": False, "locked": False, "solution": False, "task": False}
    return {"schema_version": 3, "grade_id": grade_id, "cell_type": "code", **plain, **flags}


def _add_points(cells: list[Any], exercise: str, points: float) -> None:
    """Add a paragraph with an exercise's points to the text cell above the exercise, else to a new cell."""
    line = f"**Exercise `{exercise}`: {_in_words(points)}**"
    if cells and cells[-1].cell_type == "markdown" and "nbgrader" not in cells[-1].metadata:
        cells[-1].source = _below_headings(cells[-1].source, line)
        return
    cells.append(new_markdown_cell(line, id=f"points-{exercise}"))


def _add_total(cells: list[Any], title: str, by_tests: float, by_hand: float) -> None:
    """Add a paragraph with the notebook's points below its title."""
    total = f"**{_in_words(by_tests + by_hand)}**"
    if by_hand:
        total += f": {by_tests:g} for code, {by_hand:g} for what you write in words"
    if cells and cells[0].cell_type == "markdown":
        cells[0].source = _below_headings(cells[0].source, f"{total}.")
        return
    cells.insert(0, new_markdown_cell(f"{total}.", id=f"points-{title}"))


def states_points(paragraph: str) -> bool:
    """Return whether a paragraph only says how many points something is worth."""
    return _POINTS.fullmatch(paragraph.strip()) is not None


def _in_words(points: float) -> str:
    """Return `1 point` or `2.5 points`."""
    return f"{points:g} point{'' if points == 1 else 's'}"


def _below_headings(text: str, line: str) -> str:
    """Insert a paragraph into a text, below the headings that the text begins with."""
    lines, at = text.split("\n"), 0
    while at < len(lines) and (lines[at].startswith("#") or not lines[at].strip()):
        at += 1
    parts = "\n".join(lines[:at]).strip(), line, "\n".join(lines[at:]).strip()
    return "\n\n".join(filter(None, parts))
