"""Cells that only show what others made are not run, unless a cell of the student's uses what they define."""

import json

import pytest

from autograder import course
from autograder.sandbox.worker.cell_source import DeferredCells
from tests.typed import solved, stored

UNIT = "self_attention"
PICTURE = "fig, ax = subplots(2)\nfor i in range(2):\n    ax[i].bar(range(3), values)"


class Run:
    """Notes which cells are run, in which order."""

    def __init__(self):
        self.cells = []
        self.deferred = DeferredCells(lambda cell, source: self.cells.append(cell))

    def cell(self, name, source):
        self.deferred.run_before(source, str)
        self.cells.append(name)
        return self

    def picture(self, name="picture", source=PICTURE):
        self.deferred.defer(name, source)
        return self


UNUSED = {
    "another cell": "x = 1",
    "a parameter of that name": "def f(fig, i):\n    ax = fig + i\n    return ax",
    "nothing at all": "",
}
USED = stored("deferred_cells")


@pytest.mark.parametrize("source", UNUSED.values(), ids=UNUSED)
def test_nobody_waits_for_a_picture(source):
    assert Run().cell("before", source).picture().cell("after", source).cells == ["before", "after"]


@pytest.mark.parametrize("source", USED.values(), ids=USED)
def test_a_picture_that_is_used_runs_first(source):
    assert Run().picture().cell("after", source).cells == ["picture", "after"]


@pytest.mark.parametrize("source", USED.values(), ids=USED)
def test_a_picture_that_is_used_already_runs_at_its_place(source):
    assert Run().cell("before", source).picture().cells == ["before", "picture"]


def test_those_that_wait_run_in_their_order():
    run = Run().picture("one", "weights = 1").picture("two", "image = weights").cell("after", "image")
    assert run.cells == ["one", "two", "after"]


def right_notebook(change=lambda cells: None):
    notebook = json.loads(solved(UNIT))
    change(notebook["cells"])
    return json.dumps(notebook).encode()


def pictures(report):
    return [cell for cell in report.cells if cell.status == "set_aside"]


def test_released_pictures_are_set_aside_and_marks_are_whole(grading_process):
    report = grading_process.grade("typed.ipynb", right_notebook())
    assert len(pictures(report)) == len(course.unit(UNIT).showing_cells) > 2
    assert (report.status, report.score) == ("graded", report.max_score)


def test_a_picture_that_a_student_changed_is_run(grading_process):
    def change(cells):
        cell = next(cell for cell in cells if "plt.show()" in "".join(cell["source"]))
        cell["source"] = "".join(cell["source"]) + "\nprint('drawn by', type(fig).__name__)"

    report = grading_process.grade("typed.ipynb", right_notebook(change))
    assert len(pictures(report)) == len(course.unit(UNIT).showing_cells) - 1
    assert "drawn by Figure\n" in [cell.printed for cell in report.cells]


def test_a_students_own_cell_finds_what_a_picture_defines(grading_process):
    def change(cells):
        cells.append({"cell_type": "code", "source": "print('drawn by', type(fig).__name__)", "metadata": {}})

    report = grading_process.grade("typed.ipynb", right_notebook(change))
    assert "drawn by Figure\n" in [cell.printed for cell in report.cells]
    assert (report.status, report.score) == ("graded", report.max_score)
