"""Grading distinguishes code that needs a newer Python from code that is not valid Python."""

import sys

import pytest

from autograder.sandbox.worker.cell_source import version_needed
from tests import typed

NEWER = {
    'f"testing {info["unit"]}"': (3, 12),
    "x = 1\nprint(f'{x!r:>{w['a']}}')": (3, 12),
    'f"{chr(10).join(f"{x}" for x in y)}"': (3, 12),
    "f\"{'\\n'.join(x)}\"": (3, 12),
    'f"{x # a comment\n}"': (3, 12),
    'f"""{d["a"]}\n{"x" + "\\n"}"""': (3, 12),
    'f"{d["a"]=}" "more"': (3, 12),
    'f"{d["a"] == 3} {d["b"] != 3} {d["c"] <= 3} {{}}"': (3, 12),
    "type Vector = list[float]": (3, 12),
    "type Pair[T] = tuple[T, T]": (3, 12),
    "def f[T: list[int]](x: T) -> T:\n    return x": (3, 12),
    "class A[T]:\n    async def g[*Ts](self): pass": (3, 12),
    "def f[T = int](x): pass": (3, 13),
    "try:\n    pass\nexcept OSError, ValueError:\n    pass": (3, 14),
    't"hello {name}"': (3, 14),
}
NO_PYTHON = [
    *("def f(:\n pass", 'f"{x +}"', 'f"{d["a"} + 1', "x = (", 'print "hi"', 'f"{}"', "for i in range(3) print(i)"),
    *('f"{a["b"]}" +', "type = 3\nx = ", "if x = 3: pass", 'f"abc', "def f[T(x): pass", '"{x["a"]}"', 'f"{"', 'f"}"'),
    *("f'{x['a']}' 5", "except A, B", "return x y", 'f"{x!z["a"]}" x', "'''", 'f"{' * 2_000, "[" * 2_000),
]


@pytest.mark.parametrize(("source", "version"), NEWER.items())
def test_the_version_that_code_needs_is_known(source, version):
    try:
        compile(source, "", "exec")
    except SyntaxError:
        assert version_needed(source) == version
    else:
        assert sys.version_info >= version
        assert version_needed(source) is None


@pytest.mark.parametrize("source", NO_PYTHON)
def test_of_what_is_no_python_no_version_is_named(source):
    assert version_needed(source) is None


def test_the_message_names_both_versions(grading_process):
    code = "def embed(table, ids):\n    return table[ids] if t'{ids}' else None"
    report = grading_process.grade("newer.ipynb", typed.alone("self_attention", embed=code), "self_attention")
    grades = f"{sys.version_info[0]}.{sys.version_info[1]}"
    words = f"Its syntax needs Python 3.14, and grading runs Python {grades} (line 2 of the cell `embed`)"
    is_newer_than_this_python = sys.version_info < (3, 14)
    assert (words in report.exercise("embed").message) == is_newer_than_this_python
