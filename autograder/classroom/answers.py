"""A class's answers to the exercises of a unit, as code without the released text, and which of them are equal."""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..course.cells import code_cells
from ..course.notebook import RawNotebook, parse
from ..course.units import released_cells
from ..gradebook.grades import as_csv, rounded, text
from ..output_files import file_name
from .assignment import Assignment
from .normal_form import normal_form, parsed

TABLE = "equal_answers.csv"
_COLUMNS = ("exercise", "students", "equal_answers", "answers", "percent", "tokens", "remark")


@dataclass(frozen=True)
class Answer:
    """The answer to an exercise in one submitted notebook."""

    exercise: str
    students: str
    """The student's id, or the ids of the group's members, joined by `+`."""
    code: str
    is_python: bool
    """False if Python cannot parse the code."""


@dataclass(frozen=True)
class EqualAnswers:
    """Answers to an exercise that are equal up to names, comments, layout and the order of definitions."""

    exercise: str
    students: tuple[str, ...]
    answers: int
    """Number of all answers to the exercise."""
    tokens: int
    """Length of the answers in tokens, without comments, docstrings and annotations."""
    remark: str
    """`compare`; or `short` or `common` if such answers are often equal by chance."""


def class_answers(work: Assignment) -> tuple[list[Answer], list[str]]:
    """Return the class's answers, by exercise, and the students whose notebooks cannot be read.

    The file of a group is one submission. Unchanged stubs are left out.
    """
    students: dict[tuple[str, str], list[str]] = defaultdict(list)
    contents = {}
    for submission in work.submissions:
        if submission.notebook is not None:
            file = submission.folder, submission.notebook
            students[file].append(submission.student)
            contents[file] = submission
    stubs = _stubs(work)
    answers: list[Answer] = []
    unreadable: list[str] = []
    for file, submission in contents.items():
        notebook = parse(work.files.read(submission).file.content)
        if not isinstance(notebook, RawNotebook):
            unreadable += students[file]
            continue
        cells = [cell for cell in code_cells(notebook, work.unit) if not cell.is_stub and cell.source.strip()]
        for exercise in stubs:
            if sources := [cell.source for cell in cells if cell.defines(exercise)]:
                code = _without_released(sources[-1], stubs[exercise])
                answers.append(Answer(exercise, "+".join(students[file]), code, parsed(code) is not None))
    return sorted(answers, key=lambda answer: list(stubs).index(answer.exercise)), unreadable


def equal_answers(answers: Iterable[Answer], fewest_tokens: int, most_percent: float) -> list[EqualAnswers]:
    """Return the groups of equal answers, the longest first.

    fewest_tokens: length from which equal answers get the remark `compare`. most_percent: share of the answers to the
    exercise up to which they get it; two equal answers are never too common.
    """
    groups = defaultdict(list)
    total: Counter[str] = Counter()
    for answer in answers:
        total[answer.exercise] += 1
        if form := normal_form(answer.code):
            groups[answer.exercise, form].append(answer.students)
    equal = []
    for (exercise, form), students in groups.items():
        if len(students) > 1:
            is_common = len(students) > max(2.0, most_percent / 100 * total[exercise])
            remark = "short" if form.tokens < fewest_tokens else "common" if is_common else "compare"
            equal.append(EqualAnswers(exercise, tuple(students), total[exercise], form.tokens, remark))
    return sorted(equal, key=lambda its: (-its.tokens, its.exercise, its.students))


def as_files(answers: Iterable[Answer]) -> dict[Path, bytes]:
    """Return a file for each answer, in a folder for each exercise."""
    return {Path(its.exercise) / f"{file_name(its.students)}.py": _as_file(its.code) for its in answers}


def as_jplag(answers: Iterable[Answer], work: Assignment) -> dict[Path, bytes]:
    """Return the files for JPlag: a folder for each submission, and the stubs as the base code.

    Answers that Python cannot parse are left out, because JPlag would leave out the whole submission.
    """
    stubs = {Path("base_code", f"{name}.py"): _as_file(stub) for name, stub in _stubs(work).items()}
    return stubs | {
        Path("submissions", file_name(its.students), f"{its.exercise}.py"): _as_file(its.code)
        for its in answers
        if its.is_python
    }


def as_table(groups: Iterable[EqualAnswers]) -> dict[Path, bytes]:
    """Return a table with a row for each group of equal answers."""
    rows = [
        (
            its.exercise, text("; ".join(its.students)), len(its.students), its.answers,
            rounded(100 * len(its.students) / its.answers, 1), its.tokens, its.remark,
        )
        for its in groups
    ]  # fmt: skip
    return {Path(TABLE): as_csv([_COLUMNS, *rows]).encode()}


def _stubs(work: Assignment) -> dict[str, str]:
    """Return the released text of each exercise's cell."""
    texts = {cell.grade_id: cell.text for cell in released_cells(work.unit.name, work.root)}
    return {exercise.name: texts.get(exercise.name, "") for exercise in work.unit.exercises}


def _without_released(code: str, stub: str) -> str:
    """Return an answer without the stub's docstrings and comments, and as it is if it would not be Python then."""
    released = parsed(stub)
    lines = stub.split("\n")
    comments = {line.strip() for line in lines if line.strip().startswith("#")}
    own = "\n".join(line for line in code.split("\n") if line.strip() not in comments)
    for node in ast.walk(released) if released else ():
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            own = own.replace("\n".join(lines[node.lineno - 1 : node.end_lineno]) + "\n", "", 1)
    return own if parsed(own) or not parsed(code) else code


def _as_file(code: str) -> bytes:
    return f"{code.rstrip()}\n".encode(errors="replace")
