"""A course folder as `autograder new-course` makes it, in formgrader: nothing else was done to it."""

import shutil

import pytest
from playwright.sync_api import expect

from tests import REPOSITORY

from .conftest import UNIT, opened, pages, press, row

OTHER = "dot_product_attention"
HANDED_IN = ("amara", "chiara")


@pytest.fixture(scope="module")
def autumn(tmp_path_factory, autograder, browser):
    """A new course with two units, in which two students' notebooks were graded, and its pages."""
    folder = tmp_path_factory.mktemp("new")
    course = folder / "autumn"
    assert autograder("new-course", course, UNIT, OTHER).returncode == 0
    for student in HANDED_IN:
        shutil.copytree(REPOSITORY / "demo" / "submitted" / student, course / "submitted" / student)
    graded = autograder("grade", UNIT, "--course", course, "--markers", "1")
    assert (graded.returncode, graded.stderr) == (0, "")
    with opened(course, folder / "home") as lab:
        yield course, pages(lab, browser)


def test_a_new_course_is_one_from_the_first_minute(autumn):
    course, new_page = autumn
    with new_page("a_new_course") as page:
        page.goto("formgrader/manage_assignments")
        for unit, handed_in in ((UNIT, len(HANDED_IN)), (OTHER, 0)):
            expect(row(page, unit).locator(".num-submissions")).to_have_text(str(handed_in))
        expect(page.locator("#main-table tr")).to_have_count(2)
        press(page, UNIT, "release")
        assert (course / "exchange" / "attention" / "outbound" / UNIT / f"{UNIT}.ipynb").is_file()
    with new_page("answers_waiting_in_a_new_course") as page:
        page.goto("formgrader/gradebook")
        row(page, UNIT).get_by_role("link", name=UNIT).click()
        row(page, UNIT).get_by_role("link", name=UNIT).click()
        expect(page.locator("#main-table").get_by_role("link", name="Submission #")).to_have_count(len(HANDED_IN))
        page.get_by_role("link", name="Submission #1").click()
        expect(page.locator("#why_scale")).to_be_visible()
