"""A unit on its whole way, as newcomers go it: an instructor with a new course, a student with an account elsewhere.

What is done here is what docs/instructor.md and docs/student.md say, in their order, each on a JupyterLab of its own;
the two have the exchange in common and nothing else. Nothing else was done to the course.
"""

import csv
import re
import shutil
from dataclasses import dataclass

import pytest
from playwright.sync_api import Page, expect

from tests import REPOSITORY
from tests.recorded_class import opened_gradebook

from .conftest import SCREENSHOTS, UNIT, pages, press, row
from .servers import Lab, opened, opened_by
from .student_account import StudentAccount, student_account
from .student_steps import (
    MISTAKE,
    PASSES,
    RIGHT,
    WRONG,
    answer,
    answer_cell,
    choose,
    fetch,
    open_feedback,
    open_notebook,
    submit,
    write,
)

OTHER = "dot_product_attention"
BY_MAIL = ("amara", "chiara", "dmitri", "elif", "jonas", "liam", "olu")
ABSENT = "noor"
MODEL = "One point each for:"
COMMENT = "Say also what a gradient near 0 does to learning."
WRITTEN = "The variance of a dot product grows with d_k, so softmax would saturate."


@dataclass(frozen=True)
class Person:
    """Somebody at a browser: where they are, and their page."""

    lab: Lab
    page: Page

    def picture(self, name: str) -> None:
        """Keeps what the page shows."""
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png")


@pytest.fixture
def account(tmp_path) -> StudentAccount:
    """A student's account, and an exchange that it can reach."""
    exchange = tmp_path / "exchange"
    exchange.mkdir()
    exchange.chmod(0o1777)
    return student_account(tmp_path / "student", exchange, "attention")


@pytest.fixture
def instructor(tmp_path, account, autograder, browser):
    """In front of a new course: its class list is filled in, and the exchange is where students' accounts reach it."""
    course = tmp_path / "autumn"
    made = autograder("new-course", course, UNIT, OTHER)
    assert (made.returncode, made.stderr) == (0, "")
    settings = course / "nbgrader_config.py"
    told = settings.read_text().replace('str(here / "exchange")', repr(str(account.exchange)))
    settings.write_text(told)
    assert str(account.exchange) in told
    with (REPOSITORY / "demo" / "roster.csv").open() as roster:
        names = [line for line in roster if line.split(",")[0] in ("id", *BY_MAIL, ABSENT)]
    (course / "roster.csv").write_text("".join([*names, f"{account.name},Sofie,Lindgren\n"]))
    with opened(course, tmp_path / "home") as lab, pages(lab, browser)("journey_of_the_instructor") as page:
        yield Person(lab, page)


@pytest.fixture
def student(account, browser):
    """In front of an empty home."""
    with opened_by(account) as lab, pages(lab, browser)("journey_of_the_student") as page:
        yield Person(lab, page)


def test_a_unit_goes_out_and_comes_back(instructor, student, account, autograder):
    instructor_releases(instructor)
    student_fetches(student)
    student_answers(student)
    student_hands_in(student)
    instructor_collects_and_grades(instructor, account, autograder)
    instructor_reads_the_written_answer(instructor, account)
    instructor_gives_it_back(instructor)
    student_reads_the_feedback(student)
    instructor_sees_the_class(instructor, autograder)
    instructor_exports(instructor, account, autograder)


def instructor_releases(instructor):
    page = instructor.page
    page.goto("lab")
    choose(page, "Nbgrader", "Formgrader")
    expect(page.frame_locator("iframe").get_by_role("heading", name="Manage Assignments")).to_be_visible()
    page.goto("formgrader/manage_assignments")
    for unit in (UNIT, OTHER):
        expect(row(page, unit).locator(".num-submissions")).to_have_text("0")
    expect(page.locator("#main-table tr")).to_have_count(2)
    press(page, UNIT, "release")


def student_fetches(student):
    page = student.page
    page.goto("lab")
    page.get_by_role("button", name="No", exact=True).click()  # JupyterLab asks whether it may bring news
    fetch(page)
    kit = REPOSITORY / "release" / UNIT
    assert {file.name for file in (student.lab.folder / UNIT).iterdir()} == {file.name for file in kit.iterdir()}


def student_answers(student):
    page = student.page
    open_notebook(page)
    answer(page, WRONG, MISTAKE)
    answer_cell(page).scroll_into_view_if_needed()
    student.picture("a_mistake_is_named")
    answer(page, RIGHT, PASSES)
    question = page.locator(".jp-MarkdownCell").filter(has_text="YOUR ANSWER HERE").last
    question.dblclick()
    write(page, question, WRITTEN)


def student_hands_in(student):
    page = student.page
    page.get_by_role("button", name="Validate").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Validation Results")
    expect(dialog).to_contain_text('check("SelfAttention_v2")')
    expect(dialog).not_to_contain_text('check("scaled_softmax")')
    dialog.get_by_role("button").last.click()
    submit(page)


def instructor_collects_and_grades(instructor, account, autograder):
    page, course = instructor.page, instructor.lab.folder
    for name in BY_MAIL:
        shutil.copytree(REPOSITORY / "demo" / "submitted" / name, course / "submitted" / name)
    page.reload()
    press(page, UNIT, "collect")
    expect(row(page, UNIT).locator(".num-submissions")).to_have_text(str(len(BY_MAIL) + 1))
    row(page, UNIT).locator(".num-submissions").get_by_role("link").click()
    press(page, account.name, "autograde")
    expect(row(page, account.name)).to_contain_text("needs manual grading")
    graded = autograder("grade", UNIT, "--course", course, "--markers", "1")
    assert (graded.returncode, graded.stderr) == (0, "")


def instructor_reads_the_written_answer(instructor, account):
    page = instructor.page
    page.goto("formgrader/gradebook")
    for _ in range(2):  # the unit, then its notebook
        row(page, UNIT).get_by_role("link", name=UNIT).click()
    submissions = page.locator("#main-table").get_by_role("link", name="Submission #")
    expect(submissions).to_have_count(len(BY_MAIL) + 1)
    page.get_by_role("button", name="Show All Names").click()
    page.locator("#main-table").get_by_role("link", name="Lindgren, Sofie").click()
    expect(page.locator(".extra-credit").last).to_have_attribute("placeholder", "0")  # the scores have arrived
    page.evaluate("jQuery.fx.off = true")  # or the page scrolls on while something is typed
    panel = page.locator(".nbgrader_cell").filter(has=page.locator("#why_scale"))
    expect(panel).to_contain_text(WRITTEN)
    expect(page.locator(".model-answer")).to_contain_text(MODEL)
    with page.expect_response(re.compile("/formgrader/api/grade/")):
        panel.locator("#why_scale").fill("2.5")
        panel.locator("#why_scale").press("Tab")
    with page.expect_response(re.compile("/formgrader/api/comment/")):
        panel.locator("textarea").fill(COMMENT)
        instructor.picture("an_answer_is_read")
        panel.locator("textarea").press("Tab")
    page.goto(f"formgrader/manage_submissions/{UNIT}")
    expect(row(page, account.name)).to_contain_text("6.5 / 39")
    expect(row(page, account.name)).to_contain_text("Lindgren, Sofie")


def instructor_gives_it_back(instructor):
    instructor.page.goto("formgrader/manage_assignments")
    press(instructor.page, UNIT, "generate-feedback")
    press(instructor.page, UNIT, "release-feedback")


def student_reads_the_feedback(student):
    feedback = open_feedback(student.page)
    expect(feedback.get_by_role("row", name="right scaled_softmax 4 of 4")).to_be_visible()
    expect(feedback.locator("body")).to_contain_text("self_attention: 6.5 of 39 points")
    expect(feedback.locator("body")).to_contain_text(COMMENT)
    expect(feedback.locator("body")).not_to_contain_text(MODEL)


def instructor_sees_the_class(instructor, autograder):
    page, course = instructor.page, instructor.lab.folder
    made = autograder("report", UNIT, "--course", course)
    assert (made.returncode, made.stderr) == (0, "")
    page.goto((course / "reports" / UNIT / "report.html").as_uri())
    expect(page.get_by_role("heading", name="For the next lecture")).to_be_visible()
    expect(page.locator("figure table")).to_be_visible()
    instructor.picture("class_report")


def instructor_exports(instructor, account, autograder):
    course = instructor.lab.folder
    made = autograder("export", UNIT, "--course", course, "--output", course / "marks.csv")
    assert made.returncode == 0, made.stderr
    with (course / "marks.csv").open(newline="") as table:
        exported = {line["student_id"]: line for line in csv.DictReader(table)}
    assert set(exported) == {account.name, *BY_MAIL, ABSENT}
    with opened_gradebook(course) as gradebook:
        held = {name: gradebook.find_submission(UNIT, name) for name in (account.name, *BY_MAIL)}
        assert held[account.name].score == 6.5
        for name, submission in held.items():
            assert float(exported[name][f"{UNIT}.score"]) == pytest.approx(submission.score)
    assert float(exported[ABSENT][f"{UNIT}.score"]) == 0
