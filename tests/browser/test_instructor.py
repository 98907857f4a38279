"""Formgrader on a class with everything in it: names, scores, feedback. The way there: `test_journeys`."""

import csv
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests import REPOSITORY

from .conftest import UNIT, press, row

SUBMISSIONS = f"formgrader/manage_submissions/{UNIT}"
# One of each kind: right, a named mistake, a cell that fails, no notebook, half of it not written.
MARKED = {"amara": 36, "chiara": 33.09, "farid": 32, "hiroshi": 0, "jonas": 13}
"""With their marks, which `test_nbgrader` has too."""


@pytest.fixture(scope="module")
def autograded(released, new_page):
    """The Autograde button was pressed for some of the class."""
    with new_page("formgrader_autograded") as page:
        page.goto(SUBMISSIONS)
        for student in MARKED:
            press(page, student, "autograde")


@pytest.fixture
def submission(page, autograded):
    """Opens a student's notebook as an instructor reads it."""

    def submission(student):
        page.goto(SUBMISSIONS)
        row(page, student).get_by_role("link").first.click()
        row(page, UNIT).get_by_role("link", name=UNIT).click()
        # Until the scores have arrived, the page takes no notice of what is typed.
        expect(page.locator(".extra-credit").last).to_have_attribute("placeholder", "0")

    return submission


def test_formgrader_lists_the_class(page, released):
    page.goto(SUBMISSIONS)
    with (REPOSITORY / "demo" / "roster.csv").open(newline="") as roster:
        names = {line["id"]: f"{line['last_name']}, {line['first_name']}" for line in csv.DictReader(roster)}
    del names["noor"]  # handed in nothing
    expect(page.locator(".student-id")).to_have_count(len(names))
    for student, name in names.items():
        expect(row(page, student)).to_contain_text(name)


def test_autograde_gives_the_scores_of_mark(page, picture, autograded):
    page.goto(SUBMISSIONS)
    for student, score in MARKED.items():
        expect(row(page, student)).to_contain_text(f"{score:g} / 39")
    picture("submissions_in_formgrader")


def test_jupyter_stays_without_torch(lab, autograded):
    assert "libtorch" not in Path(f"/proc/{lab.server.pid}/maps").read_text()


def test_a_submission_shows_the_feedback(page, submission):
    submission("chiara")
    feedback = page.get_by_text("The scores are divided by d_k; divide by its square root")
    feedback.scroll_into_view_if_needed()
    expect(page.get_by_text("scaled_softmax: 1.09 of 4 points")).to_be_visible()
    expect(page.locator("#test_scaled_softmax")).to_have_attribute("placeholder", "1.09")


def test_feedback_is_a_page_that_needs_nothing_else(page, picture, lab, autograded):
    page.goto(SUBMISSIONS)
    press(page, "chiara", "generate-feedback")
    press(page, "chiara", "release-feedback")
    released = lab.folder / "exchange" / "attention" / "feedback"
    assert [path.read_bytes() for path in released.iterdir()] == [
        (lab.folder / "feedback" / "chiara" / UNIT / f"{UNIT}.html").read_bytes()
    ]
    page.goto((lab.folder / "feedback" / "chiara" / UNIT / f"{UNIT}.html").as_uri())
    assert "One point each for:" not in page.content()
    picture("a_feedback_page")
    expect(page.get_by_text("The scores are divided by d_k; divide by its square root")).to_be_visible()
    page.get_by_text("Your notebook").click()
    expect(page.get_by_role("math").filter(has_text="softmax").first).to_be_visible()
    assert "\\frac" not in page.content()
