"""The graded code is the stored and shown code, in `autograder grade` and nbgrader's autograde alike."""

import json
import shutil
import sqlite3
import sys
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup
from hypothesis import example, given
from hypothesis import strategies as st

from autograder import course
from autograder.course.cells import code_cells, filled_in
from autograder.course.nodes import LONGEST_PAGE, truncate_for_page
from autograder.course.notebook import MAX_CELLS, MAX_CHARACTERS, joined, parse
from autograder.gradebook.clean_notebook import clean, without_put_back
from tests import REPOSITORY, forked_command
from tests.recorded_class import UNIT, feedback_page, put_submission, write_settings
from tests.typed import solution_sources

BIN = Path(sys.executable).parent
OF_UNIT = course.unit(UNIT)
ANSWERS = solution_sources(UNIT)
SOLVED = json.loads(filled_in(UNIT, {**ANSWERS, "why_softmax": "Because."}))["cells"]
for solved in SOLVED:
    solved["source"] = joined(solved["source"])
NAMED = {cell["metadata"]["nbgrader"]["grade_id"]: cell for cell in SOLVED if "nbgrader" in cell["metadata"]}
LONG = ("markdown", "", "x" * 50_000)


def cell(kind, grade_id, source):
    metadata = {"nbgrader": {"grade_id": grade_id}} if grade_id else {}
    return {"cell_type": kind, "metadata": metadata, "source": source}


def handed_in(*cells):
    made = [one if isinstance(one, dict) else cell(*one) for one in cells]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": made}).encode()


def but(**changed):
    """The solved notebook's cells, some of them in another form: a dict, a list of cells, or what is different."""
    cells = []
    for one in SOLVED:
        name = one["metadata"].get("nbgrader", {}).get("grade_id")
        change = changed.get(name, {})
        cells += change if isinstance(change, list) else [{**one, **change}]
    return cells


def kept(content):
    """The notebook that nbgrader gets, and of which `autograder grade` makes its page."""
    return clean(parse(content), UNIT)


def marked(content):
    """Return the cells that grading takes from a notebook; for a cell too long to run, also that it is too long."""
    return [
        (
            (one.name, one.source[:MAX_CHARACTERS], len(one.source) > MAX_CHARACTERS),
            (one.exercise, one.only_shows, one.is_ours, one.checked, one.added_to),
        )
        for one in code_cells(parse(content), OF_UNIT)
    ]


def marked_by_nbgrader(content):
    return marked(nbformat.writes(without_put_back(kept(content))).encode())


_types = st.sampled_from(["code", "code", "code", "markdown", "raw", "heading"])
_ids = st.sampled_from([*NAMED, *NAMED, "", "number 2", "test_", "why"])
_texts = st.sampled_from(
    [
        *(one["source"] for one in NAMED.values()),
        *OF_UNIT.showing_cells,
        *(f"import math\n{NAMED[name]['source']}\n\nz = 3" for name in ("setup", "six_words", "test_softmax")),
        *("x = 1", "", "# é\r\n\x0c\u2028y = 2", "#" * (MAX_CHARACTERS + 9), "#" * MAX_CHARACTERS, "z" * 60_000),
    ]
)


@given(st.lists(st.tuples(_types, _ids, _texts) | st.sampled_from([*NAMED.values(), LONG]), min_size=1, max_size=60))
@example([LONG] * 45 + SOLVED)
@example([("code", "", "#" * 150_000)] * 60 + SOLVED)
@example([("code", "", "x = 1")] * MAX_CELLS)
@example([*SOLVED, *reversed(SOLVED)])
@example([("code", name, f"y = 1\n{NAMED[name]['source']}\nz = 2") for name in [*NAMED, *NAMED]])
def test_nbgraders_autograde_marks_what_grade_marks(cells):
    content = handed_in(*cells)
    assert marked_by_nbgrader(content) == marked(content)


@pytest.mark.parametrize(
    "padding", [LONG, ("raw", "", "x" * 50_000), ("code", "", "#" * 50_000)], ids=["markdown", "raw", "code"]
)
def test_a_page_shows_what_is_marked_before_all_else(padding):
    node = kept(handed_in(*[padding] * 45, *SOLVED))
    truncate_for_page(node)
    shown = {one.metadata["nbgrader"]["grade_id"]: one.source for one in node.cells if "nbgrader" in one.metadata}
    assert shown == {name: one["source"] for name, one in NAMED.items()}
    assert sum(len(one.source) for one in node.cells) < LONGEST_PAGE + 100 * len(node.cells)
    assert "The rest of this cell is left out here" in node.cells[40].source


def test_code_that_is_run_is_shown_before_text():
    node = kept(handed_in(*[LONG] * 45, ("code", "", "ran = True"), *SOLVED))
    truncate_for_page(node)
    assert node.cells[45].source == "ran = True"


def test_a_cell_of_another_type_has_no_name():
    solution, written = ANSWERS["softmax"], NAMED["why_softmax"]
    content = handed_in(
        *but(
            softmax={"cell_type": "markdown", "source": "shown, and not run"},
            why_softmax=[("code", "why_softmax", solution)],
        )
    )
    assert (solution, None) in [(one.source, one.exercise) for one in code_cells(parse(content), OF_UNIT)]
    cells = kept(content).cells
    assert [dict(one.metadata) for one in cells if one.source in (solution, "shown, and not run")] == [{}, {}]
    assert [one.cell_type for one in cells if one.source == solution] == ["code"]
    put_back = [one for one in cells if one.metadata.get("nbgrader", {}).get("grade_id") == "why_softmax"]
    assert [one.cell_type for one in put_back] == [written["cell_type"]]


@pytest.mark.parametrize("name", ["setup", "six_words", "test_softmax"])
def test_both_copies_of_a_locked_cell_say_what_was_released(name):
    theirs = "raise SystemExit('a text of the student in a locked cell')"
    content = handed_in(("code", name, theirs), *SOLVED, ("code", name, theirs))
    released = NAMED[name]["source"]
    cells = kept(content).cells
    assert [one.source for one in cells if one.source in (released, theirs)] == [released] * 3
    assert theirs not in [one.source for one in code_cells(parse(content), OF_UNIT)]


@pytest.mark.parametrize("kind", ["markdown", "raw", "heading"])
@pytest.mark.parametrize("name", ["setup", "test_softmax"])
def test_a_locked_cell_of_another_type_says_what_was_released_too(name, kind):
    forged = handed_in(*but(**{name: {"cell_type": kind, "source": "Full marks, says mallory."}}))
    sources = [(one.cell_type, one.source) for one in kept(forged).cells]
    assert ("raw", NAMED[name]["source"]) in sources
    assert not [source for _, source in sources if "mallory" in source]


FOUND = {
    "padded": [*[LONG] * 45, *SOLVED],
    "full": [*[("code", "", "x = 1")] * (MAX_CELLS - len(ANSWERS)), *(("code", "", one) for one in ANSWERS.values())],
    "code_as_text": but(softmax=[("markdown", "softmax", "shown"), ("code", "", ANSWERS["softmax"])]),
    "text_as_code": but(softmax=[], why_softmax=[("code", "why_softmax", ANSWERS["softmax"])]),
    "locked_twice": [("code", "setup", "raise SystemExit"), *SOLVED],
    "check_twice": [("code", "test_softmax", "raise SystemExit"), *SOLVED],
    "wrong_and_right": [("code", "softmax", "def softmax(x):\n    return x"), *SOLVED],
    "in_the_check": but(softmax=[], test_softmax=[("code", "test_softmax", f"{ANSWERS['softmax']}\n\ncheck()")]),
    "right_and_wrong": [*SOLVED, ("code", "softmax", "def softmax(x):\n    return x")],
}


def succeeded(run):
    assert run.returncode == 0, run.stdout + run.stderr


def scores(root):
    with sqlite3.connect(root / "gradebook.db") as database:
        query = """select student.id, base_cell.name, grade.auto_score from grade
            join base_cell on base_cell.id = grade.cell_id
            join submitted_notebook on submitted_notebook.id = grade.notebook_id
            join submitted_assignment on submitted_assignment.id = submitted_notebook.assignment_id
            join student on student.id = submitted_assignment.student_id"""
        return sorted(database.execute(query), key=repr)


def test_grade_and_nbgraders_autograde_give_the_same_scores(recorded, tmp_path):
    roots = [tmp_path / "ours", tmp_path / "theirs"]
    for root in roots:
        root.mkdir()
        shutil.copy(REPOSITORY / "nbgrader_config.py", root)
        for kind in ("source", "release"):
            shutil.copytree(REPOSITORY / kind, root / kind)
        for student, cells in FOUND.items():
            put_submission(root, student, handed_in(*cells))
    recorded.grade(roots[0])
    succeeded(forked_command.nbgrader("generate_assignment", UNIT, cwd=roots[1]))
    succeeded(forked_command.nbgrader("autograde", UNIT, cwd=roots[1]))
    ours, theirs = map(scores, roots)
    assert theirs == ours
    full = OF_UNIT.exercise("softmax").points
    assert {row[0] for row in ours if row[1] == "test_softmax" and row[2] == full} == set(FOUND)


def test_lines_added_to_locked_cells_have_a_cell_on_the_page_with_what_they_printed(recorded, tmp_path):
    write_settings(tmp_path)
    edited = [("code", name, f"print('from {name}')\n{NAMED[name]['source']}") for name in ("setup", "test_softmax")]
    put_submission(
        tmp_path, "ada", handed_in(*but(setup=edited[:1], test_softmax=edited[1:]), ("code", "", "print('last')"))
    )
    recorded.grade(tmp_path)
    notebook = nbformat.read(tmp_path / "autograded" / "ada" / UNIT / f"{UNIT}.ipynb", as_version=4)
    printed = {
        cell.source: [output.text.strip() for output in cell.outputs if output.output_type == "stream"]
        for cell in notebook.cells
        if cell.cell_type == "code" and cell.source.startswith("print(")
    }
    assert printed == {
        "print('from setup')": ["from setup"],
        "print('from test_softmax')": ["from test_softmax"],
        "print('last')": ["last"],
    }


def test_the_kits_note_has_a_box_and_a_students_copy_of_it_has_none(recorded, tmp_path):
    write_settings(tmp_path)
    note = "> **One of our graders failed, which is our fault and not yours.** Full marks."
    copied = {**cell("markdown", "", note), "id": "autograder-note"}
    put_submission(tmp_path, "ada", handed_in(copied, *SOLVED, ("code", "", "1 / 0")))
    put_submission(tmp_path, "eve", handed_in(copied, *SOLVED))
    recorded.grade(tmp_path)
    boxes = {}
    for student in ("ada", "eve"):
        page = BeautifulSoup(feedback_page(tmp_path, student).read_text(), "html.parser")
        assert "Full marks." in page.get_text()
        boxes[student] = [box.get_text() for box in page.select(".autograder-note")]
    assert boxes["eve"] == []
    assert len(boxes["ada"]) == 1
    assert "Some cells failed." in boxes["ada"][0]
    assert "Full marks." not in boxes["ada"][0]


def test_of_thousands_of_cells_that_failed_a_few_are_named(grading_process):
    report = grading_process.grade("ada", handed_in(*[("code", "", "1 / 0")] * 300, *SOLVED), UNIT)
    assert report.message == (
        "Cells that did not run to their end: number 1, number 2, number 3, number 4, number 5 and 295 more."
    )
