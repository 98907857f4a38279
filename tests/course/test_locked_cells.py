"""Lines that a student added to a locked cell run after the released text; changed lines do not run."""

import pytest

from autograder import course
from autograder.course.locked_cells import LONGEST, Edit, edit_of
from tests import typed
from tests.typed import solution_sources

UNIT = "self_attention"
RELEASED = "import torch\n\nx = torch.tensor(\n    [1, 2]\n)\ntorch.manual_seed(123)\ny = f(\n    2\n)"
CHECK = '# Checks your work.\ncheck("embed")'
DEFINES = "def embed(a):\n    return a\n"

UNCHANGED = {
    "released": RELEASED,
    "other line ends": RELEASED.replace("\n", "\r\n") + "\r\n",
    "blank lines": RELEASED.replace("\n", "\n\n") + "\n  \n",
    "a line deleted": RELEASED.replace("torch.manual_seed(123)\n", ""),
    "a line made a comment": RELEASED.replace("torch.manual", "# torch.manual"),
    "comments": f"# first\n{RELEASED}\n# last",
    "nothing": "",
}
ADDED = {
    "below": (f"{RELEASED}\nimport numpy as np", [10]),
    "above": (f"import numpy as np\n{RELEASED}", [1]),
    "between": (RELEASED.replace("torch.manual", "z = 3\ntorch.manual"), [6]),
    "two runs": (f"a = 1\n{RELEASED}\nb = 2", [1, 11]),
    "below a magic": (f"{RELEASED}\n!pip install einops\n%matplotlib inline\nimport einops", [12]),
    "a call that ends alike": (RELEASED.replace("torch.manual", "z = g(\n    2\n)\ntorch.manual"), [6, 7, 8]),
    "one that ends alike before it": (RELEASED.replace("y = f", "z = g(\n    2\n)\ny = f"), [7, 8, 9]),
    "with a decorator": (f"{RELEASED}\n@f\ndef g():\n    return 1\n\n\nawait g()", [10, 11, 12, 15]),
}
CHANGED = {
    "a number": RELEASED.replace("123", "5"),
    "an argument": RELEASED.replace("    [1, 2]\n", "    [1, 2],\n    dtype=None,\n"),
    "a line of a block": RELEASED.replace("    [1", "    print(3)\n    [1"),
    "no Python": f"{RELEASED}\ndef g(:\n    pass",
    "too long": f"{RELEASED}\n{'x = 1  # ' * LONGEST}",
    "all of it": "raise SystemExit",
    "nested too deeply": f"{RELEASED}\n{'(' * 5_000}",
}


@pytest.mark.parametrize("text", UNCHANGED.values(), ids=UNCHANGED)
def test_what_needs_no_word(text):
    assert edit_of(RELEASED, text) == Edit()


@pytest.mark.parametrize(("text", "lines"), ADDED.values(), ids=ADDED)
def test_added_lines_keep_their_places(text, lines):
    edit = edit_of(RELEASED, text)
    kept = [number for number, line in enumerate(edit.added.split("\n"), start=1) if line]
    assert (kept, edit.has_changes) == (lines, False)


@pytest.mark.parametrize("text", CHANGED.values(), ids=CHANGED)
def test_changed_lines_are_not_run(text):
    assert edit_of(RELEASED, text) == Edit(has_changes=True)


@pytest.mark.parametrize(
    "check", [CHECK, '# check("embed")', "check('embed')", 'check("embed")  # done', "check()", "", 'check("embed");']
)
def test_an_answer_merged_into_a_check_is_kept_whatever_became_of_the_check(check):
    assert edit_of(CHECK, f"{DEFINES}\n{check}").added == DEFINES.strip()


def test_a_released_definition_is_replaced_by_nobody():
    released = "def show(x):\n    return x"
    assert edit_of(released, "def show(y):\n    return y\n\nimport math") == Edit("\n" * 3 + "import math", True)


SOLUTIONS = solution_sources(UNIT)
USES_NUMPY = "def scaled_softmax(scores, d_k):\n    return torch.softmax(scores / np.sqrt(d_k), dim=-1)"


def test_an_import_in_the_set_up_cell_is_kept_and_said(grading_process):
    content = typed.alone(UNIT, scaled_softmax=USES_NUMPY)
    content = typed.edited(content, setup=lambda text: f"{text}\nimport numpy as np")
    report = grading_process.grade("imports.ipynb", content, UNIT)
    assert report.exercise("scaled_softmax").status == "passed"
    assert report.message.startswith(
        "You added lines to the locked cell `setup`: the released lines were restored, and your lines were run as well."
    )


def test_an_answer_in_the_cell_of_its_check_is_found_and_judged_there(grading_process):
    content = typed.alone(UNIT, embed=SOLUTIONS["embed"])
    content = typed.edited(content, embed=None, test_embed=lambda text: f"{SOLUTIONS['embed']}\n\n{text}")
    report = grading_process.grade("merged.ipynb", typed.with_cells(content, "%reset -f"), UNIT)
    assert report.exercise("embed").status == "passed"
    assert "The answer to `embed` was found in the cell `test_embed`." in report.message


def test_an_error_in_added_lines_names_their_cell_and_line(grading_process):
    content = typed.alone(UNIT, embed=SOLUTIONS["embed"])
    content = typed.edited(content, setup=lambda text: f"1 / 0\n{text}")
    report = grading_process.grade("fails.ipynb", content, UNIT)
    assert "(line 1 of the cell `setup (added lines)`)" in next(one.message for one in report.cells if one.troubled)
    assert report.exercise("embed").status == "passed"


def test_changed_lines_are_said_and_cost_nothing(grading_process):
    content = typed.alone(UNIT, embed=SOLUTIONS["embed"])
    content = typed.edited(content, six_words=lambda text: text.replace("0.", "1."))
    report = grading_process.grade("changed.ipynb", content, UNIT)
    assert report.exercise("embed").status == "passed"
    assert "You changed lines of the locked cell `six_words`: the released lines were run" in report.message


def test_a_notebook_in_which_every_locked_cell_was_edited_is_graded(grading_process):
    unit = course.unit(UNIT)
    edits = dict.fromkeys([*unit.instructor_cells, *unit.check_cells], lambda text: f"a = 1\n{text}\nb = 2")
    report = grading_process.grade(
        "edited.ipynb", typed.edited(typed.alone(UNIT, embed=SOLUTIONS["embed"]), **edits), UNIT
    )
    assert report.exercise("embed").status == "passed"
    assert len(report.message) < 500
