"""A student's page above the notebook: the faults, most points lost first, and each exercise's verdict and points."""

import re

import pytest
from bs4 import BeautifulSoup

from autograder.course.nodes import NotebookNode, new_output
from autograder.reports.pages import contents, row_of
from tests.recorded_class import UNIT, put_submission, write_settings
from tests.typed import solved

WRONG = {
    "normalize_by_sum": "def normalize_by_sum(scores):\n    return scores / scores.max()",
    "softmax": "def softmax(scores):\n    weights = scores.exp()\n    return weights / weights.sum()",
    "context_vector": "def context_vector(weights, inputs):\n    return inputs @ weights",
    "pairwise_scores": "def pairwise_scores(inputs):\n    return inputs @ inputs.T * 2",
}
USES_WRONG = "def simple_self_attention(inputs):\n    return pairwise_scores(inputs).softmax(-1) @ inputs"


@pytest.fixture(scope="module")
def tops(recorded, tmp_path_factory):
    """The pages of three students, parsed."""
    root = tmp_path_factory.mktemp("class")
    write_settings(root)
    put_submission(root, "right", solved(UNIT))
    put_submission(root, "wrong", solved(UNIT, **WRONG, simple_self_attention=USES_WRONG, why_softmax="Because."))
    put_submission(root, "damaged", b"{")
    recorded.grade(root)
    pages = {path.parts[-3]: path.read_text() for path in root.glob("feedback/*/*/*.html")}
    return {student: BeautifulSoup(page, "html.parser") for student, page in pages.items()}


def rows(page):
    return {row.a.text: [cell.text for cell in row(["td", "th"])] for row in page.select("#toc tbody tr")}


def test_each_exercise_has_its_verdict_and_points_and_leads_to_more(tops):
    page = tops["wrong"]
    found = rows(page)
    assert found["dot_product_scores"] == ["✓ right", "dot_product_scores", "2 of 2"]
    assert {name for name, (verdict, *_) in found.items() if verdict == "✗ wrong"} == set(WRONG)
    assert found["why_softmax"] == ["✎ not graded yet", "why_softmax", "– of 3"]
    assert found["simple_self_attention"][0] == "✗ calls another exercise that is wrong"
    for link in page.select("#toc a"):
        assert link.text in page.find(id=link["href"][1:]).text
    for name in WRONG:
        cell = page.find(id=f"cell-test_{name}").find_parent(class_="cell")
        assert cell.select_one(f"a[href='#exercise-{name}']")
        assert not cell.select(".fault, .tests")


def test_faults_come_first_each_in_one_box_and_most_points_lost_first(tops):
    """An exercise that uses a wrong answer comes after all others, however many points it lost."""
    assert not tops["right"].select(".failed")
    page = tops["wrong"]
    faults = page.select(".failed article")
    assert [fault["id"].removeprefix("exercise-") for fault in faults] == [
        "softmax", "normalize_by_sum", "context_vector", "pairwise_scores", "simple_self_attention",
    ]  # fmt: skip
    points = [re.search(r"([\d.]+) of ([\d.]+) points, ([\d.]+) lost", fault.h3.text).groups() for fault in faults]
    lost = [float(one[2]) for one in points]
    assert lost[:-1] == sorted(lost[:-1], reverse=True)
    assert lost[-1] > lost[-2]
    assert lost == pytest.approx([float(most) - float(score) for score, most, _ in points])
    assert [len(fault.select(".fault")) for fault in faults] == [1] * 5
    said = faults[2].select_one(".fault").text
    assert said.startswith(
        "Your code behaves like this mistake: "
        "The order is inputs @ weights, which fits where T = d alone; the weights come first."
    )
    assert all("✗ failed" in fault.select_one(".tests").text for fault in faults)
    places = [page.select_one(part).sourceline for part in (".failed", "#toc", "details.notebook")]
    assert places == sorted(places)


def test_only_the_fault_box_names_lines(tops):
    """It says which of them may be right."""
    page = tops["wrong"]
    assert any(re.search(r"[Ll]ines? \d", fault.text) for fault in page.select(".fault"))
    for part in page.select(".top, .failed h3, #toc"):
        assert not re.search(r"[Ll]ines? \d", part.text)


def test_a_file_that_cannot_be_read_has_one_note_and_a_way_back(tops):
    page = tops["damaged"]
    assert len(page.select(".autograder-note")) == 1
    assert "The file is not a notebook" in page.select_one(".autograder-note").text
    recovery = page.select_one(".recovery").text
    assert f".ipynb_checkpoints next to the notebook has it, as {UNIT}-checkpoint.ipynb" in " ".join(recovery.split())
    assert "submit the notebook itself again" in recovery
    assert not page.select("#toc, .failed, .cell")
    assert "No response." not in page.text
    assert "0 of 21 points" in page.h1.text
    assert not tops["wrong"].select(".recovery")


def test_a_verdict_fits_the_points_that_a_person_gave():
    def verdict(score, of_tests):
        output = new_output("display_data", data={"text/html": "<p><b>x: 1 of 2 points</b></p>the rest"})
        output.metadata |= {"verdict": of_tests} if of_tests else {}
        about = {"grade_id": "test_x", "grade": True, "solution": False, "score": score, "points": 2.0}
        one = row_of(NotebookNode(metadata=NotebookNode(nbgrader=NotebookNode(about)), outputs=[output]))
        assert one.html == "the rest"
        return one.sign, one.verdict, one.is_wrong

    assert verdict(2.0 - 1e-9, "right") == ("✓", "right", False)
    assert verdict(1.0, "wrong") == ("✗", "wrong", True)
    assert verdict(2.0, "wrong") == ("✓", "right", False)
    assert verdict(1.0, "right") == ("✗", "graded by a person", True)
    assert verdict(0.0, "not written") == ("–", "not written", False)
    assert verdict(0.0, "timed out") == ("✗", "timed out", True)
    assert verdict(1.0, None) == ("✗", "not all points", True)  # graded before verdicts were stored


def test_what_a_person_says_is_on_the_page_of_a_damaged_file_too():
    about = {"grade_id": "softmax", "grade": False, "solution": True, "comment": "Come and see me."}
    cell = NotebookNode(metadata=NotebookNode(nbgrader=NotebookNode(about)))
    top = contents(NotebookNode(metadata=NotebookNode(autograder=NotebookNode(damaged="no")), cells=[cell]))
    assert top["remarks"] == [{"answer": "softmax", "comment": "Come and see me."}]
    assert top["damaged"]
