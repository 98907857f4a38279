"""Cells that only show what others made, a plot for instance: run where another cell uses what they define.

Nothing of them is marked, and most of a notebook's time goes into them.
"""

import ast
import dis
import warnings
from collections.abc import Callable
from types import CodeType
from typing import Any

_ANY_NAME = {"globals", "locals", "vars", "dir", "exec", "eval", "get_ipython", "__import__", "sys"}
"""Code that says these may use any name."""
_READS = {"LOAD_NAME", "LOAD_GLOBAL", "LOAD_CLASSDEREF"}


class SetAside:
    """The cells that wait, and what those that ran have used."""

    def __init__(self, run: Callable[[str, str], Any]) -> None:
        """run: runs a cell, given its name and text."""
        self._run = run
        self._waiting: list[tuple[str, str, set[str]]] = []
        self._used: set[str] = set()

    def put(self, cell: str, source: str) -> None:
        """Lets a cell wait, unless one that ran already uses what it defines."""
        self._waiting.append((cell, source, _defined(source)))
        self._run_those_used()

    def make_way(self, source: str, as_python: Callable[[str], str]) -> None:
        """Runs the cells that wait, if this one, which comes after them, uses what they define.

        as_python: turns a cell with magics into plain Python.
        """
        self._used |= _used(source, as_python)
        self._run_those_used()

    def _run_those_used(self) -> None:
        if self._used & _ANY_NAME or any(defined & self._used for _, _, defined in self._waiting):
            waiting, self._waiting = self._waiting, []
            for cell, source, _ in waiting:
                self._run(cell, source)


def _defined(source: str) -> set[str]:
    """The names that a cell of ours gives a value."""
    nodes = list(ast.walk(ast.parse(source)))
    assigned = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    made = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    imported = {node.asname or node.name for node in nodes if isinstance(node, ast.alias)}
    return assigned | made | imported


def _used(source: str, as_python: Callable[[str], str]) -> set[str]:
    """The names that a cell takes from outside of its functions; all, where it cannot be told."""
    try:
        with warnings.catch_warnings(action="ignore"):
            code = compile(as_python(source), "", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except Exception:
        return _ANY_NAME
    found, codes = set[str](), [code]
    for code in codes:
        found.update(step.argval for step in dis.get_instructions(code) if step.opname in _READS)
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return found
