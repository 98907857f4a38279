"""Cells that are plain Python are left to Python: IPython, which inspects each token, would change nothing in them."""

import pytest

from autograder import course
from autograder.sandbox.worker import cells
from autograder.sandbox.worker.cells import NotebookShell
from tests.typed import stored

ODD = stored("plain_cells")


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
