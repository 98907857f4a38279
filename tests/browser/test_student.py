"""What a student does: fetches the unit, writes an answer, checks it, and validates the notebook."""

import pytest
from playwright.sync_api import expect

from .conftest import UNIT

WRONG = "def scaled_softmax(scores, d_k):\n    return torch.softmax(scores / d_k, dim=-1)"
RIGHT = "def scaled_softmax(scores, d_k):\n    return torch.softmax(scores / d_k**0.5, dim=-1)"


def choose(page, menu, item):
    page.get_by_role("menuitem", name=menu, exact=True).click()
    page.get_by_role("menuitem", name=item, exact=True).click()


@pytest.fixture
def notebook(page):
    """The page with the released notebook open, and a kernel."""
    page.goto(f"lab/tree/release/{UNIT}/{UNIT}.ipynb?reset")
    expect(page.get_by_role("button", name="Python 3 (ipykernel) | Idle")).to_be_visible()
    return page


def cell(notebook, text):
    return notebook.locator(".jp-CodeCell").filter(has_text=text)


def try_out(notebook, answer):
    """Types the answer over what stands in its cell, and runs everything down to the check below it."""
    cell(notebook, "def scaled_softmax(").get_by_role("textbox").click()
    notebook.keyboard.press("Control+A")
    notebook.keyboard.insert_text(answer)
    choose(notebook, "Run", "Run All Above Selected Cell")
    notebook.keyboard.press("Shift+Enter")
    notebook.keyboard.press("Shift+Enter")


def test_an_answer_is_checked(notebook, picture):
    check = cell(notebook, 'check("scaled_softmax")')
    try_out(notebook, WRONG)
    expect(check).to_contain_text("✗ failed")
    expect(check).to_contain_text("The second word's weights are those of the worked example.")
    picture("a_wrong_answer_is_checked")
    try_out(notebook, RIGHT)
    expect(check).to_contain_text("scaled_softmax passes on the public examples.")


def test_validate_runs_the_notebook_and_says_what_fails(notebook):
    notebook.get_by_role("button", name="Validate").click()
    dialog = notebook.get_by_role("dialog")
    expect(dialog).to_contain_text("Validation Results")
    expect(dialog).to_contain_text('check("SelfAttention_v2")')


def test_a_released_unit_is_fetched_from_the_assignment_list(page, lab, released):
    page.goto("lab?reset")
    choose(page, "Nbgrader", "Assignment List")
    page.get_by_role("button", name="Fetch").click()
    expect(page.get_by_role("button", name="Submit")).to_be_visible()
    assert (lab.course / UNIT / f"{UNIT}.ipynb").is_file()
