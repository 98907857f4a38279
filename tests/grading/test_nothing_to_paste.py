"""Nothing that a notebook shows is an answer: neither its code nor what stands in a fenced block earns points.

Of the twelve thousand answers that can be made of it each run tries one in 64, and three of each exercise;
`pytest --every` tries all.
"""

import ast
import contextlib
import io
import re
from collections.abc import Iterator
from itertools import permutations

import nbformat
import pytest

from autograder import catalogue, course
from autograder.catalogue.mutation_report import released_check
from tests import RELEASE, sampling

HEADER = (
    "import math\nfrom collections.abc import Callable, Iterable\n"
    "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
)
FENCED = re.compile(r"^```.*?\n(.*?)^```", re.M | re.S)
MOST_NAMES = 3
"""An expression of more names than this is no answer that somebody pastes by changing names."""
ONE_IN, LEAST = 64, 3
"""The share of an exercise's answers that each run tries, and the least number."""


def given_code(unit: str) -> Iterator[str]:
    """The code that students get: of cells that hold no stub, and of fenced blocks."""
    for cell in nbformat.read(RELEASE / unit / f"{unit}.ipynb", as_version=4).cells:
        if cell.cell_type == "code" and not cell.metadata.get("nbgrader", {}).get("solution"):
            yield cell.source
        yield from FENCED.findall(cell.source)


def expressions(code: str, exercises: set[str]) -> Iterator[ast.expr]:
    """Expressions in the code that use none of the student's own functions."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.Call | ast.Subscript | ast.Compare | ast.UnaryOp):
            used = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
            if not used & exercises and used & names_of(node):
                yield node


MODULES = {"math", "torch", "F", "nn", "plt", "range", "zip", "len", "print", "show", "draw", "guess", "hint", "check"}


def names_of(node: ast.AST) -> set[str]:
    """The variables in an expression."""
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} - MODULES


class Renamed(ast.NodeTransformer):
    """An expression with other names in it."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self.names.get(node.id, node.id), node.ctx)


def pasted(unit: str, exercise: str, names: set[str]) -> Iterator[str]:
    """Answers to an exercise that are made of what its notebook shows."""
    code = catalogue.solutions(unit)[exercise].source()
    function = next(node for node in ast.parse(code).body if isinstance(node, ast.FunctionDef | ast.ClassDef))
    if isinstance(function, ast.ClassDef):
        for given in given_code(unit):
            with contextlib.suppress(SyntaxError):
                for node in ast.parse(given).body:
                    if isinstance(node, ast.ClassDef):
                        yield re.sub(rf"\b{node.name}\b", exercise, ast.unparse(node))
        return
    header = f"def {exercise}({ast.unparse(function.args)}):"
    parameters = [one.arg for one in function.args.args]
    seen = set()
    for given in given_code(unit):
        for node in expressions(given, names):
            variables = sorted(names_of(node))
            if len(variables) > min(MOST_NAMES, len(parameters)):
                continue
            for order in permutations(parameters, len(variables)):
                copy = ast.parse(ast.unparse(node), mode="eval")
                answer = ast.unparse(Renamed(dict(zip(variables, order, strict=True))).visit(copy))
                if answer not in seen:
                    seen.add(answer)
                    yield f"{header}\n    return {answer}"
    for given in given_code(unit):
        with contextlib.suppress(SyntaxError):
            for node in ast.walk(ast.parse(given)):
                if isinstance(node, ast.FunctionDef) and len(node.args.args) == len(parameters):
                    yield re.sub(rf"\b{node.name}\b", exercise, ast.unparse(node))


def score(unit: str, exercise: str, answer: str) -> float:
    """Return the check's result for an answer if the student wrote nothing else."""
    names = {"check": released_check(unit).check}
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(Exception):
        exec(HEADER + answer, names)
        return float(eval(f"check({exercise!r})", names))
    return 0.0


EXERCISES = [(unit, one.name) for unit in course.unit_names() for one in course.unit(unit).exercises]


@pytest.mark.parametrize(("unit", "exercise"), EXERCISES)
def test_what_is_shown_earns_nothing(unit, exercise):
    names = {one.name for one in course.unit(unit).exercises}
    tried = sampling.thinned(pasted(unit, exercise, names), ONE_IN, LEAST)
    earning = [answer for answer in tried if score(unit, exercise, answer) > 0]
    assert earning == []


def test_an_answer_would_be_found():
    """The search finds a cell with the answer in it, under other names."""
    cell = "def other(a, b):\n    return b\nweights = torch.softmax(raw / width ** 0.5, dim=-1)"
    found = [ast.unparse(node) for node in expressions(cell, {"scaled_softmax"})]
    assert "torch.softmax(raw / width ** 0.5, dim=-1)" in found
    answer = "def scaled_softmax(scores, d_k):\n    return torch.softmax(scores / d_k ** 0.5, dim=-1)"
    assert score("self_attention", "scaled_softmax", answer) == 4.0
