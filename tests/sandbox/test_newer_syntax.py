"""Grading distinguishes code that needs the f-strings of Python 3.12 from code that is not valid Python."""

import sys

import pytest

from autograder.sandbox.worker.cell_source import needs_python_3_12
from tests import typed

NEWER = typed.stored("newer_syntax")
NO_PYTHON = [
    *("def f(:\n pass", 'f"{x +}"', 'f"{d["a"} + 1', "x = (", 'print "hi"', 'f"{}"', "for i in range(3) print(i)"),
    *('f"{a["b"]}" +', "type = 3\nx = ", "if x = 3: pass", 'f"abc', "def f[T(x): pass", '"{x["a"]}"', 'f"{"', 'f"}"'),
    *("f'{x['a']}' 5", "except A, B", "return x y", 'f"{x!z["a"]}" x', "'''", 'f"{' * 2_000, "[" * 2_000),
]


@pytest.mark.parametrize("source", NEWER)
def test_code_that_needs_python_3_12_is_known(source):
    assert needs_python_3_12(source) == (sys.version_info < (3, 12))


@pytest.mark.parametrize("source", NO_PYTHON)
def test_of_what_is_no_python_no_version_is_named(source):
    assert not needs_python_3_12(source)


def test_the_message_names_both_versions(grading_process):
    code = "def embed(table, ids):\n    return table[ids] if f'{ids['a']}' else None"
    report = grading_process.grade("newer.ipynb", typed.alone("self_attention", embed=code), "self_attention")
    grades = f"{sys.version_info[0]}.{sys.version_info[1]}"
    words = f"Its syntax needs Python 3.12, and grading runs Python {grades} (line 2 of the cell `embed`)"
    is_newer_than_this_python = sys.version_info < (3, 12)
    assert (words in report.exercise("embed").message) == is_newer_than_this_python
