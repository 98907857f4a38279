"""A solution as a notebook cell: everything below a docstring goes between nbgrader's solution marks.

Code that students get is narrow enough for JupyterLab at 1280 pixels, next to its file list.
"""

import ast
import textwrap
from collections.abc import Sequence

from ..course.units import BEGIN, END

COLUMNS = 88


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
            raise NoSolution(f"`{function.name}` has its body on the line of its `def`; give it lines of its own")
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
