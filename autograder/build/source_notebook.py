"""Build a unit's source notebook from its text in exercises/ and its answers in solutions/.

The text is a py:percent notebook (jupytext). The first line of a cell says what the cell becomes:

    # %% exercise="scaled_softmax" points=4             a solution cell, and the exercise's check cell
    # %% [markdown] written="why_scale" points=3        a question, and a cell for the answer, which a person grades
    # %% locked="setup"                                 code that only the instructor changes
    # %% drawing=true                                   code that only draws: collapsed; also for locked cells
    # %% training="reverse_six_digits"                  code that trains slowly: students run it, grading does not
    # %% [markdown]  and  # %%                          the same cell; students may change the code

The build adds the points at the top of each exercise's text, and the instructions for submitting at the notebook's end.
It guards the import of the student check: if the check's files are missing, the cell fetches them, or says what to do.

In a solution cell, everything below a docstring is between nbgrader's solution marks. Code that students get is narrow
enough for JupyterLab in a window of 1280 pixels, next to its file list.
"""

import ast
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from .. import UserError
from ..course import CHECK_PREFIX, Exercise
from ..course.content import notebook_digest
from ..course.settings import Settings
from ..course.units import BEGIN, END
from ..student_check.unit_data import data_file, zip_file

COLUMNS = 88
CHECK_OF_A_HUNT = """# Compares the wrong function with your own, so write your own first.
"""
STUCK = """# Stuck? In a cell of your own: hint("{exercise}")
"""
CALLED = 'check("{exercise}")'
DRAWS = "# This code only draws. Click here to read it."
"""First line of a cell that only draws: the line that JupyterLab shows of the collapsed cell."""
TRAINS = "# Yours to change and to run, as often as you like. Grading does not run this cell."
"""First line of a training cell."""
HOW_TO_HAND_IN = "how-to-hand-in"
"""The id of the notebook's last cell, with the instructions for submitting."""
QUESTION = "question-"
"""Prefix of the id of a cell with a written question's text."""
LESSON_FUNCTIONS = ("buggy", "draw", "example", "explain", "guess", "hint", "show")
"""Functions of the student check, besides `check`, that a notebook calls."""
_TEMPLATES = Path(__file__).parent / "templates"
_POINTS = re.compile(r"\*\*(Exercise `\w+`: |Question: )?[\d.]+ points?\*\*.*")
_KNOWN = {"exercise", "written", "locked", "points", "drawing", "training"}
_METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


class NoSolution(Exception):
    """Raised if a unit's solutions lack a definition, or if it cannot become a stub; `str()` gives the reason."""


def solution_cell(module_source: str, name: str) -> str:
    """Return the source of the definition of `name`, with marks around the code that nbgrader replaces by the stub.

    Signatures, docstrings and `super().__init__()` stay outside the marks. Raises NoSolution.
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
    """Return a cell's first line outside the solution that has more than COLUMNS characters; empty without one."""
    in_solution = False
    for line in code.splitlines():
        in_solution = line.strip() == BEGIN or (in_solution and line.strip() != END)
        if len(line) > COLUMNS and not in_solution:
            return line
    return ""


def takes_nothing(module_source: str, name: str) -> bool:
    """Return whether `name` is a function without arguments, and so the answer to a bug hunt. Raises NoSolution."""
    definition = _definition(module_source, name)
    return isinstance(definition, ast.FunctionDef) and not ast.unparse(definition.args)


def written_answers(module_source: str) -> dict[str, str]:
    """Return the model answers to a unit's written questions, by the question's name.

    They are read from the dict WRITTEN in the source of the unit's solutions.
    """
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
    """Return the index of a body's first line, which is a comment if comments precede the first statement."""
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
    """Raised if the course cannot be built; `str()` says what is wrong, and in which file."""


def source_notebook(text: Path, solutions: Path, settings: Settings, *, with_hints: bool = False) -> Any:
    """Return the source notebook of a unit, which contains the solutions; raises BuildError.

    text, solutions: paths of the unit's files. with_hints: True if its exercises have hints.
    """
    if not solutions.is_file():
        raise BuildError(f"{text.name} has no solutions: write solutions/{solutions.name}.")
    answers = solutions.read_text()
    notebook = new_notebook(metadata=dict(_METADATA))
    given = jupytext.read(text, fmt="py:percent").cells
    used = {call.function for cell in given if cell.cell_type == "code" for call in called_in(cell.source)}
    later = [name for name in LESSON_FUNCTIONS if name in used or (name == "hint" and with_hints)]
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
    """Return the points of each exercise, and the points of each written question, by name.

    cells: those of a source notebook.
    """
    graded = {cell.id: one["points"] for cell in cells if "points" in (one := cell.metadata.get("nbgrader", {}))}
    checks = {name: worth for name, worth in graded.items() if name.startswith(CHECK_PREFIX)}
    exercises = {name.removeprefix(CHECK_PREFIX): worth for name, worth in checks.items()}
    return exercises, {name: worth for name, worth in graded.items() if name not in checks}


def locked(name: str) -> dict[str, Any]:
    """Return nbgrader's metadata for a locked code cell. name: its grade_id."""
    return _nbgrader(name, locked=True)


def _as_it_is(
    text: Path, number: int, cell: Any, metadata: dict[str, Any], settings: Settings, later: Sequence[str]
) -> Any:
    """Return a plain or locked cell as students get it: as in the text, but with a guarded import of the check.

    number: the cell's number in the text. later: see `guarded`. Raises BuildError if a line is too wide.
    """
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
    """Return a training cell, which students may change and run, and which grading recognises and leaves out.

    Raises BuildError if the cell is not valid.
    """
    name = metadata["training"]
    if cell.cell_type != "code" or len(metadata) > 1 or not isinstance(name, str) or not name.isidentifier():
        raise BuildError(
            f'{text.name}: begin a training cell with `# %% training="name"` and nothing else, with a name of '
            f"letters, digits and `_`; this cell has {metadata}."
        )
    _reject_wide(f"{text.name}: training cell `{name}`", cell.source)
    return new_code_cell(f"{TRAINS}\n{cell.source}", id=name, metadata={"autograder": {"training": True}})


def _frame(unit: str, cells: list[Any], settings: Settings) -> None:
    """Add the total points at the notebook's top, and the instructions for submitting at its end."""
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
    tries = CHECK_OF_A_HUNT * takes_nothing(answers, name) + STUCK * with_hints + CALLED
    locked_check = _nbgrader(check, grade=True, locked=True, points=points)
    return [
        new_code_cell(answer, id=name, metadata={"nbgrader": _nbgrader(name, solution=True)}),
        new_code_cell(tries.format(exercise=name), id=check, metadata={"nbgrader": locked_check}),
    ]


def _written(text: Path, answers: str, metadata: dict[str, Any], question: str) -> list[Any]:
    """Return the cells of a written question: the question, and the answer cell with the model answer.

    answers: the source of the unit's solutions. Raises BuildError.
    """
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
    """Add a paragraph with an exercise's points to the last cell, if that is a text cell, or else in a new cell.

    cells: those above the exercise.
    """
    line = f"**Exercise `{exercise}`: {_in_words(points)}**"
    if cells and cells[-1].cell_type == "markdown" and "nbgrader" not in cells[-1].metadata:
        cells[-1].source = _below_headings(cells[-1].source, line)
        return
    cells.append(new_markdown_cell(line, id=f"points-{exercise}"))


def _add_total(cells: list[Any], title: str, by_tests: float, by_hand: float) -> None:
    """Add a paragraph with the notebook's total points below its title.

    by_tests, by_hand: points that hidden tests give, and points that a person gives.
    """
    total = f"**{_in_words(by_tests + by_hand)}**"
    if by_hand:
        total += f": {by_tests:g} for code, {by_hand:g} for what you write in words"
    if cells and cells[0].cell_type == "markdown":
        cells[0].source = _below_headings(cells[0].source, f"{total}.")
        return
    cells.insert(0, new_markdown_cell(f"{total}.", id=f"points-{title}"))


def states_points(paragraph: str) -> bool:
    """Return whether a paragraph only states the points of an exercise, a question or the notebook."""
    return _POINTS.fullmatch(paragraph.strip()) is not None


def _in_words(points: float) -> str:
    """Return a number of points in words, such as `1 point` or `2.5 points`."""
    return f"{points:g} point{'' if points == 1 else 's'}"


def _below_headings(text: str, line: str) -> str:
    """Insert a paragraph into a text, below the headings that the text begins with."""
    lines, at = text.split("\n"), 0
    while at < len(lines) and (lines[at].startswith("#") or not lines[at].strip()):
        at += 1
    parts = "\n".join(lines[:at]).strip(), line, "\n".join(lines[at:]).strip()
    return "\n\n".join(filter(None, parts))


def guarded(code: str, module: str, address: str, later: Sequence[str] = ()) -> str:
    """Return a cell's code with its import of the student check replaced by a guarded one.

    module: name of the check's module. address: URL of the folder from which the unit's files are fetched, ending in
    the unit's name; empty to fetch none. later: functions to import even if the code does not import them.
    """
    template = _template("import_or_fetch" if address else "import_or_stop")
    unit = address.rpartition("/")[2]
    files = [data_file(unit), zip_file(module), f"{module}.py"]  # the check last

    def written(found: re.Match[str]) -> str:
        names = [name.strip(" ()") for name in found[1].partition("#")[0].split(",")]
        names += [name for name in later if name not in names]
        imported = f"from {module} import {', '.join(names)}"
        listed = "\n".join(f'            "{name}",' for name in files)
        return template.format(imported=imported, module=module, address=address, files=listed)

    return re.sub(rf"^from {module} import (.+)$", written, code, flags=re.M)


def _template(name: str) -> str:
    return (_TEMPLATES / f"{name}.txt").read_text().removesuffix("\n")


@dataclass(frozen=True)
class LessonCall:
    """A call of one of the functions in `LESSON_FUNCTIONS`, such as `guess("most_alike", ...)`."""

    function: str
    name: str
    """The first argument; empty unless it is a string."""
    is_open: bool
    """True if each further argument is `...`, or if there are no further arguments."""


def called_in(code: str) -> Iterator[LessonCall]:
    """Yield the calls of functions in `LESSON_FUNCTIONS` in a cell's code, except in IPython's `%` and `!` lines.

    Yields nothing if the code is not valid Python.
    """
    lines = ["" if line.lstrip().startswith(("%", "!")) else line for line in code.splitlines()]
    try:
        nodes = list(ast.walk(ast.parse("\n".join(lines))))
    except SyntaxError:
        return
    for node in nodes:
        match node:
            case ast.Call(func=ast.Name(id=function), args=args) if function in LESSON_FUNCTIONS:
                name = args[0].value if args and isinstance(args[0], ast.Constant) else ""
                is_open = all(isinstance(one, ast.Constant) and one.value is ... for one in args[1:])
                yield LessonCall(function, name if isinstance(name, str) else "", is_open)
