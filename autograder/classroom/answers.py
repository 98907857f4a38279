"""A class's answers to the exercises of a unit, as code without the released text, and which of them are equal.

Answers are equal if their normal forms are: these differ neither in names, comments and layout, nor in the order of
definitions.
"""

import ast
import copy
import io
import tokenize
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from ..course.cells import code_cells
from ..course.notebook import RawNotebook, parse
from ..course.units import released_cells
from ..gradebook.tables import as_csv, rounded, text
from ..output_files import file_name
from .assignment import Assignment

TABLE = "equal_answers.csv"
_COLUMNS = ("exercise", "students", "equal_answers", "answers", "percent", "tokens", "remark")
_LONGEST = 20_000
"""Maximum number of characters of code that is parsed: Python's parser may take long on more."""
_WORDS = {tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP}
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_NAMES = {
    (ast.Name, "id"), (ast.arg, "arg"), (ast.alias, "asname"), (ast.ExceptHandler, "name"),
    (ast.FunctionDef, "name"), (ast.AsyncFunctionDef, "name"), (ast.ClassDef, "name"),
}  # fmt: skip
"""Fields of nodes with a name."""


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


@dataclass(frozen=True)
class NormalForm:
    """Code without names, comments, docstrings and annotations."""

    text: str
    """Equal for equal answers."""
    tokens: int
    """Number of tokens without comments, docstrings and annotations."""


def normal_form(code: str) -> NormalForm | None:
    """Return the normal form of code; None if the code is not Python, or too long to be parsed.

    Names that the code binds are numbered: local names in each function, others in the whole code. Definitions that
    follow each other are sorted. Names that the code only uses, such as `torch`, stay.

    >>> normal_form("def f(a):\\n    b = a + 1\\n    return b") == normal_form("def g(x): y = x + 1; return y  # so")
    True
    """
    tree = parsed(code)
    if tree is None:
        return None
    try:
        tree = _Cleaner().visit(tree)
        words = tokenize.generate_tokens(io.StringIO(ast.unparse(tree)).readline)
        tokens = sum(word.type in _WORDS for word in words)
        attributes = {name for node in ast.walk(tree) for name in _bound_attributes(node)}
        names = {name for statement in tree.body for name in _bound_names(statement)}
        for node in reversed(list(ast.walk(tree))):  # classes before the code around them
            if isinstance(node, ast.ClassDef | ast.Module):
                node.body = _sorted(node.body, _Renamer(names, attributes, is_masked=True))
        return NormalForm(_Renamer(names, attributes).renamed(tree), tokens)
    except (ValueError, RecursionError, tokenize.TokenError):
        return None


def parsed(code: str) -> ast.Module | None:
    """Return the syntax tree of code; None if the code is not Python, or too long to be parsed."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.parse(code) if len(code) <= _LONGEST else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class _Cleaner(ast.NodeTransformer):
    """Removes docstrings and annotations."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, _Function):
            node.returns = None
        elif isinstance(node, ast.AnnAssign) and node.value:
            return ast.copy_location(ast.Assign([node.target], node.value), node)
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [one for one in body if not _is_unused(one)] or [ast.Pass()]  # type: ignore[attr-defined]
        return node


def _is_unused(node: ast.AST) -> bool:
    """Return whether a statement is only a text or an annotation."""
    return isinstance(node, ast.AnnAssign) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    )


def _bound_attributes(node: ast.AST) -> list[str]:
    """Return the attributes that a node binds: an assigned one, or a class's methods without special ones."""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return [node.attr]
    methods = [one.name for one in node.body if isinstance(one, _Function)] if isinstance(node, ast.ClassDef) else []
    return [name for name in methods if not name.startswith("__")]


def _bound_names(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement binds outside of functions and classes."""
    if isinstance(node, _Function | ast.ClassDef):
        yield node.name
        return
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.alias):
        yield node.asname or node.name
    elif isinstance(node, ast.ExceptHandler) and node.name:
        yield node.name
    for child in ast.iter_child_nodes(node):
        yield from _bound_names(child)


def _sorted(body: list[ast.stmt], masked: "_Renamer") -> list[ast.stmt]:
    """Return statements with each run of definitions sorted by their texts without names."""

    def text(definition: ast.stmt) -> str:  # a method gets another name only within a class
        return masked.renamed(ast.ClassDef("", bases=[], keywords=[], body=[definition], decorator_list=[]))

    runs = groupby(body, lambda statement: isinstance(statement, _Function | ast.ClassDef))
    return [one for is_definition, run in runs for one in (sorted(run, key=text) if is_definition else run)]


class _Renamer(ast.NodeTransformer):
    """Numbers bound names in the order in which they occur."""

    def __init__(self, names: set[str], attributes: set[str], *, is_masked: bool = False) -> None:
        """names, attributes: those that the whole code binds. is_masked: True to give all of them the same name."""
        self._is_masked = is_masked
        self._scopes = [dict.fromkeys(attributes, ""), dict.fromkeys(names, "")]
        """New names by old name: attributes, names of the whole code, and then of each function around."""

    def renamed(self, tree: ast.AST) -> str:
        """Return the source with the new names; the tree itself is not changed."""
        return ast.dump(self.visit(copy.deepcopy(tree)))

    def visit(self, node: ast.AST) -> Any:
        """Rename a node and those below it."""
        is_function = isinstance(node, _Function | ast.Lambda)
        if is_function:
            own = (name for child in ast.iter_child_nodes(node) for name in _bound_names(child))
            self._scopes.append(dict.fromkeys(own, ""))
        if isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, _Function):
                    method.name = self._label(0, method.name)
        for field, value in ast.iter_fields(node):
            if (type(node), field) in _NAMES and value:
                setattr(node, field, self._name(value))
        if isinstance(node, ast.Attribute):
            node.attr = self._label(0, node.attr)
        self.generic_visit(node)
        if is_function:
            self._scopes.pop()
        return node

    def _name(self, name: str) -> str:
        depth = next((depth for depth in range(len(self._scopes) - 1, 0, -1) if name in self._scopes[depth]), None)
        return self._label(depth, name) if depth else name

    def _label(self, depth: int, name: str) -> str:
        """Return the new name of a name in the scope at this depth."""
        labels = self._scopes[depth]
        if name not in labels:
            return name
        labels[name] = labels[name] or ("_" if self._is_masked else f"_{depth}_{sum(map(bool, labels.values()))}")
        return labels[name]
