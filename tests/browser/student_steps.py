"""The steps of a student in JupyterLab, from the Assignment List to the feedback page, and what they consist of."""

import re

from playwright.sync_api import FrameLocator, Locator, Page, expect

from .conftest import UNIT

WRONG = "def scaled_softmax(scores, d_k):\n    weights = scores / d_k\n    return torch.softmax(weights, dim=-1)"
RIGHT = WRONG.replace("/ d_k", "/ d_k**0.5")
MISTAKE = "The scores are divided by d_k; divide by its square root"
PASSES = "scaled_softmax passes on the public examples: "


def choose(page: Page, menu: str, item: str) -> None:
    """Choose an item of a menu."""
    page.get_by_role("menuitem", name=menu, exact=True).click()
    page.get_by_role("menuitem", name=item, exact=True).click()


def fetch(page: Page) -> None:
    """Open the Assignment List and fetch the unit."""
    choose(page, "Nbgrader", "Assignment List")
    page.get_by_role("button", name="Fetch").click()
    expect(page.get_by_role("button", name="Submit")).to_be_visible()


def open_notebook(page: Page) -> None:
    """Open the unit's notebook and run it."""
    for name in (UNIT, f"{UNIT}.ipynb"):
        page.get_by_role("listitem", name=re.compile(rf"Name: {name}( |$)")).dblclick()
    expect(page.get_by_role("button", name="Python 3 (ipykernel) | Idle")).to_be_visible()
    choose(page, "Run", "Run All Cells")
    expect(_check(page)).to_contain_text("not written yet")


def answer(page: Page, code: str, verdict: str) -> None:
    """Write the function `scaled_softmax`, run its check, and wait for the verdict."""
    write(page, answer_cell(page), code)
    page.keyboard.press("Shift+Enter")
    expect(_check(page)).to_contain_text(verdict)


def answer_cell(page: Page) -> Locator:
    """The notebook's cell for `scaled_softmax`."""
    return _cell(page, "def scaled_softmax(")


def _check(page: Page) -> Locator:
    return _cell(page, 'check("scaled_softmax")')


def _cell(page: Page, text: str) -> Locator:
    return page.locator(".jp-CodeCell").filter(has_text=text)


def write(page: Page, into: Locator, text: str) -> None:
    """Replace a cell's text, and run it."""
    into.get_by_role("textbox").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)
    page.keyboard.press("Shift+Enter")


def submit(page: Page) -> None:
    """Save the notebook and submit the unit."""
    # While the server writes the file, it is empty: who submits then submits nothing.
    with page.expect_response(lambda answer: answer.request.method == "PUT" and "/api/contents/" in answer.url):
        page.keyboard.press("Control+S")
    page.get_by_role("tab", name="Assignments").click()
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("button", name="Fetch Feedback")).to_be_visible()


def open_feedback(page: Page) -> FrameLocator:
    """Fetch the feedback and open its page."""
    page.get_by_role("button", name="Fetch Feedback").click()
    page.get_by_text("(view feedback)").click()
    page.get_by_role("listitem", name=re.compile(r"Name: \S+\.html( |$)")).dblclick()
    return page.frame_locator("iframe")
