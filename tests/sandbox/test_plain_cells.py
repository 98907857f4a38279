"""Cells that are plain Python are left to Python: IPython, which inspects each token, would change nothing in them."""

import pytest

from autograder import course
from autograder.sandbox.worker import cells
from autograder.sandbox.worker.cells import NotebookShell

ODD = [
    "",
    "x",
    "\n\n\nx = 1\ny = 2",
    "%matplotlib inline\nx = 1",
    "%%time\nx = 1",
    "x = 1\n!ls",
    "files = !ls\nx = 2",
    "x = 1\nx?",
    ">>> x = 1\n>>> y = 2",
    "In [1]: x\nIn [2]: y",
    "    x = 1\n    y = 2",
    "text = '''\n%time x\n!ls\n'''\ny = 1\n",
    "x = 7\ny = (x\n% 3)\n",
    "x = 1;\n\n\ny = 2   # a comment",
    "await f()\nx = 1",
    "pattern = '\\d'\nx = 1",
    "def f(:\n    pass",
    "x = 1\r\ny = 2\r\n",
    "/f x\n,g y",
]


@pytest.fixture(scope="module")
def shell():
    return NotebookShell()


def both_ways(shell, source, monkeypatch):
    ours = shell.transform_cell(source)
    with monkeypatch.context() as patched:
        patched.setattr(cells, "is_plain", lambda cell: False)
        return ours, shell.transform_cell(source)


@pytest.mark.parametrize("source", ODD)
def test_an_odd_cell_is_what_ipython_makes_of_it(shell, source, monkeypatch):
    ours, its = both_ways(shell, source, monkeypatch)
    assert ours == its


@pytest.mark.parametrize("name", course.unit_names())
def test_the_cells_of_a_unit_are_what_ipython_makes_of_them(shell, name, monkeypatch):
    unit = course.unit(name)
    sources = [*unit.instructor_cells.values(), *unit.showing_cells, *unit.training_cells.values()]
    assert any(map(cells.is_plain, sources))
    for source in sources:
        ours, its = both_ways(shell, source, monkeypatch)
        assert ours == its


def test_a_transformer_of_the_student_s_own_is_asked(shell, monkeypatch):
    shell.input_transformers_post.append(lambda lines: [line.replace("1", "2") for line in lines])
    try:
        assert shell.transform_cell("x = 1\ny = 1\n") == "x = 2\ny = 2\n"
    finally:
        shell.input_transformers_post.pop()
