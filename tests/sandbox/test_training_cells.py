"""Cells that train something: students run them, marking leaves them out, and no answer can hide in one."""

import json
import shutil
from dataclasses import replace

import nbformat
import pytest

from autograder import course
from autograder.build.source_notebook import TRAINS, BuildError, source_notebook
from autograder.course.cells import code_cells, filled_in
from autograder.course.notebook import joined, parse, without_outputs
from autograder.course.settings import load
from autograder.gradebook.clean_notebook import clean, without_put_back
from autograder.gradebook.nbgrader_course import nbgrader_api
from autograder.pool.grading_pool import GradingProcess
from tests import REPOSITORY
from tests.typed import solution_sources

UNIT = "dot_product_attention"
NAME = "long_run"
TEXT = f"""
# %% training="{NAME}"
losses = [1 / (step + 1) for step in range(10)]

# %%
print("the last loss:", losses[-1])

# %% [markdown]
# ## 4. All words at once
"""
ENDLESS = "while True:\n    pass"
TRAINING = {"autograder": {"training": True}}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A class that was given the unit with a training cell, and a plain cell that shows what it made."""
    folder = tmp_path_factory.mktemp("training") / "class"
    for kind in ("source", "release"):
        shutil.copytree(REPOSITORY / kind / UNIT, folder / kind / UNIT)
    shutil.copy(REPOSITORY / "nbgrader_config.py", folder)
    before = (REPOSITORY / "exercises" / f"{UNIT}.py").read_text()
    heading = "\n# %% [markdown]\n# ## 4. All words at once\n"
    assert heading in before
    text = folder / f"{UNIT}.py"
    text.write_text(before.replace(heading, TEXT))
    notebook = source_notebook(text, REPOSITORY / "solutions" / f"{UNIT}.py", load())
    nbformat.write(notebook, folder / "source" / UNIT / f"{UNIT}.ipynb")
    made = nbgrader_api(folder).generate_assignment(UNIT, force=True, create=True)
    assert made["success"], made
    return folder


@pytest.fixture(scope="module")
def grading_process(kept):
    """A marking process of that class."""
    with GradingProcess("cpu", class_folder=kept) as process:
        yield process


@pytest.fixture
def solved(kept):
    """The class's notebook with right answers; `change` is given its cells by id."""
    answers = solution_sources(UNIT)

    def solved(change=lambda cells: None):
        notebook = json.loads(filled_in(UNIT, answers, kept))
        change({cell["id"]: cell for cell in notebook["cells"]})
        return json.dumps(notebook).encode()

    return solved


def endless(cells):
    cells[NAME]["source"] = ENDLESS


def endless_with_another_id(cells):
    cells[NAME].update(source=ENDLESS, id="cell-of-another-program")


def endless_without_metadata(cells):
    cells[NAME].update(source=ENDLESS, metadata={})


def endless_with_other_metadata(cells):
    cells[NAME].update(source=ENDLESS, metadata={"autograder": ["training"], "nbgrader": {"grade_id": "mine"}})


def without_all_but_its_text(cells):
    cells[NAME].update(id="cell-of-another-program", metadata={})


CHANGES = [endless, endless_with_another_id, endless_without_metadata, endless_with_other_metadata]


def test_it_is_released_with_its_id_and_metadata_and_says_that_marking_leaves_it_out(kept):
    cells = {cell["id"]: cell for cell in json.loads(course.released(UNIT, kept).read_text())["cells"]}
    assert cells[NAME]["metadata"] == TRAINING
    first, *_ = joined(cells[NAME]["source"]).splitlines()
    assert first == TRAINS
    assert list(course.unit(UNIT, kept).training_cells) == [NAME]
    assert not course.unit(UNIT).training_cells


@pytest.mark.parametrize("change", CHANGES)
def test_an_endless_loop_in_it_costs_nothing(grading_process, solved, change):
    right, report = (grading_process.grade("typed.ipynb", content, UNIT) for content in (solved(), solved(change)))
    assert (right.status, right.score, right.message) == ("graded", right.max_score, "")
    assert (report.status, report.exercises, report.cells) == (right.status, right.exercises, right.cells)
    assert "long_run" not in [cell.cell for cell in report.cells]


@pytest.mark.parametrize("change", [*CHANGES, without_all_but_its_text])
def test_nbgraders_autograde_leaves_out_what_mark_leaves_out(kept, solved, change):
    unit = course.unit(UNIT, kept)
    content = solved(change)
    cleaned = nbformat.writes(without_put_back(clean(parse(content), UNIT, kept))).encode()
    ours, theirs = (code_cells(parse(one), unit) for one in (content, cleaned))
    assert ours == theirs
    assert len(ours) == len(code_cells(parse(solved()), unit))


def test_cells_without_ids_are_no_training_cells_where_a_program_dropped_the_ids_of_the_source(kept, solved):
    def without_ids(cells):
        for cell in cells.values():
            del cell["id"]

    unit = course.unit(UNIT, kept)
    without = replace(unit, training_cells={"": unit.training_cells[NAME]})
    assert code_cells(parse(solved(without_ids)), without) == code_cells(parse(solved()), unit)


def test_what_shows_what_it_made_costs_no_mark(grading_process, solved):
    """A student's own cell that uses its names fails, as each cell does that fails; the answers keep their points."""

    def use(cells):
        (shows,) = [cell for cell in cells.values() if "the last loss" in "".join(cell["source"])]
        shows["source"] = "print('mine:', losses[-1])"

    report = grading_process.grade("typed.ipynb", solved(use), UNIT)
    assert report.score == report.max_score
    assert [cell.status for cell in report.cells if "losses" in cell.message] == ["failed"]


def test_an_answer_does_not_hide_behind_the_metadata(grading_process, kept, solved):
    def hide(cells):
        cells["softmax"]["metadata"].update(TRAINING)
        cells["test_softmax"]["metadata"].update(TRAINING)
        cells["setup"]["metadata"].update(TRAINING)
        cells["softmax"]["source"] = "def softmax(scores, dim=-1):\n    return torch.softmax(scores, dim)"

    report = grading_process.grade("typed.ipynb", solved(hide), UNIT)
    assert [one.status for one in report.exercises if one.name == "softmax"] == ["forbidden"]
    assert [cell.status for cell in report.cells if cell.cell in ("setup", "softmax")] == ["ran", "ran"]
    names = [cell.name for cell in code_cells(parse(solved(hide)), course.unit(UNIT, kept))]
    assert "softmax" in names
    assert "test_softmax" not in names


@pytest.mark.parametrize(
    "line",
    [
        '# %% training="run" drawing=true',
        '# %% training="run" locked="setup"',
        '# %% training="two words"',
        "# %% training=true",
        '# %% [markdown] training="run"',
        '# %% training="run" exercise="softmax" points=2',
    ],
)
def test_a_training_line_says_a_name_alone(tmp_path, line):
    (tmp_path / "unit.py").write_text(f"{line}\n1 + 1\n")
    (tmp_path / "answers.py").write_text("")
    with pytest.raises(BuildError, match="begin a training cell with"):
        source_notebook(tmp_path / "unit.py", tmp_path / "answers.py", load())


@pytest.mark.parametrize("change", CHANGES)
def test_it_is_left_out_of_a_file_without_outputs(kept, solved, change):
    unit, content = course.unit(UNIT, kept), solved(change)
    without = without_outputs(content)
    assert code_cells(parse(without), unit) == code_cells(parse(content), unit)
    assert ENDLESS not in [cell.source for cell in code_cells(parse(without), unit)]
