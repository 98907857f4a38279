"""The top of a student's page: what was wrong, each exercise by its name; one note on a file that cannot be read."""

import shutil

import pytest
from bs4 import BeautifulSoup

from autograder.course.nodes import NotebookNode
from autograder.reports.page_filters import contents
from tests import REPOSITORY

from .recorded_class import UNIT, RecordedClass, hand_in
from .typed import solved

WRONG = {
    "normalize_by_sum": "def normalize_by_sum(scores):\n    return scores / scores.max()",
    "softmax": "def softmax(scores):\n    weights = scores.exp()\n    return weights / weights.sum()",
    "context_vector": "def context_vector(weights, inputs):\n    return inputs @ weights",
    "pairwise_scores": "def pairwise_scores(inputs):\n    return inputs @ inputs.T * 2",
}


@pytest.fixture(scope="module")
def tops(marker, tmp_path_factory):
    """The pages of three students, parsed."""
    root = tmp_path_factory.mktemp("class")
    shutil.copy(REPOSITORY / "nbgrader_config.py", root)
    hand_in(root, "right", solved(UNIT))
    hand_in(root, "wrong", solved(UNIT, **WRONG, why_softmax="Because."))
    hand_in(root, "damaged", b"{")
    RecordedClass(marker, {}, []).grade(root)
    pages = {path.parts[-3]: path.read_text() for path in root.glob("feedback/*/*/*.html")}
    return {student: BeautifulSoup(page, "html.parser") for student, page in pages.items()}


def rows(page):
    return {row.a.text: [cell.text for cell in row("td")] for row in page.select("#toc tr")}


def test_each_exercise_has_its_name_its_score_and_a_sign_and_leads_to_its_verdict(tops):
    found = rows(tops["wrong"])
    assert found["dot_product_scores"] == ["✓", "dot_product_scores", "2 of 2", ""]
    assert {name for name, (sign, *_) in found.items() if sign == "✗"} == set(WRONG)
    assert found["why_softmax"] == ["✎", "why_softmax", "– of 3", "not marked yet"]
    page = tops["wrong"]
    for link in page.select("#toc a"):
        panel = page.find("a", attrs={"name": link["href"][1:]}).find_parent(class_="cell")
        assert link.text == "why_softmax" or f"{link.text}: " in panel.text


def test_the_dearest_mistakes_are_told_in_three_lines(tops):
    said = [line.text for line in tops["wrong"].select(".first p")]
    assert [line.split(":")[0] for line in said] == ["normalize_by_sum", "softmax", "context_vector", "1 more below."]
    assert said[0].endswith("(Line 2.)")
    assert said[2] == (
        "context_vector: Your code behaves like this mistake: "
        "The order is inputs @ weights, which fits where T = d alone; the weights come first."
    )
    assert not tops["right"].select(".first")


def test_a_file_that_cannot_be_read_has_one_note(tops):
    page = tops["damaged"]
    assert len(page.select(".autograder-note")) == 1
    assert "The file is not a notebook" in page.select_one(".autograder-note").text
    assert not page.select("#toc tr, .nbgrader_cell")
    assert "No response." not in page.text
    assert "0 of 21 points" in page.h1.text


def test_what_a_person_says_is_on_the_page_of_a_damaged_file_too():
    about = {"grade_id": "softmax", "grade": False, "solution": True, "comment": "Come and see me."}
    cell = NotebookNode(metadata=NotebookNode(nbgrader=NotebookNode(about)))
    top = contents(NotebookNode(metadata=NotebookNode(autograder=NotebookNode(damaged="no")), cells=[cell]))
    assert [(one["answer"], one["anchor"]) for one in top["remarks"]] == [("softmax", "comment-softmax")]
    assert top["damaged"]
