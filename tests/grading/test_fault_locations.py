"""Fault locations as students read them: through both processes, in the report and below the check."""

import pytest
import torch

from autograder import catalogue, course
from autograder.core.operations import unpacked
from autograder.graders.collection import collect
from autograder.graders.proxy import Cases
from autograder.graders.sandboxed import SandboxedNotebook
from autograder.grading.examiner import Examiner
from autograder.grading.reference_trace import trace_cases
from autograder.grading.submission import NotebookGrading
from autograder.pool.requests import GradeNotebook
from autograder.report import Conditions
from autograder.reports import pages
from autograder.sandbox.worker import protocol
from autograder.student_check.examples import decode_value
from autograder.student_check.unit_data import STEPS
from tests import released_data
from tests.held_out import held_out
from tests.hidden_tests import listed
from tests.typed import alone, grade_answer, stored

STORED = stored("fault_locations")
TOO_EVEN = STORED["too_even"]
# Two lines that no catalogue has together: the first is where the way is left.
TWICE = STORED["twice"]


UNIT = "self_attention"


def test_the_step_and_its_line_are_told(grading_process):
    exercise = grade_answer(grading_process, UNIT, "scaled_dot_product_attention", TOO_EVEN)
    found = exercise.whereabouts
    assert found.lines == [3]
    rows = found.told.splitlines()
    assert rows[0] == "Line 3 makes `weights` wrong."
    assert rows[1] == "  line 3: weights = torch.softmax(scores / keys.shape[-1] ** 2, dim=-1)"
    assert [row.split(":")[0] for row in rows[2:4]] == ["  made", "  needed"]
    assert rows[-2] == "As it should be: `scores` (line 2)."
    assert rows[-1].startswith("Tried on scaled_dot_product_attention(a tensor of shape (2, 5, 6)")
    assert "too even" in found.told
    shown = pages.feedback_text(exercise), pages.feedback_html(exercise)
    assert all("Line 3 makes `weights` wrong." in one for one in shown)


def test_what_was_right_before_is_told(grading_process):
    found = grade_answer(grading_process, UNIT, "SelfAttention_v1", TWICE).whereabouts
    assert found.lines == [11]
    assert "\nAs it should be: `queries` (line 9), `keys` (line 10).\n" in found.told


def test_the_students_line_is_shown_as_text(grading_process):
    code = TOO_EVEN.replace("dim=-1)", "dim=-1)  # <script>alert(1)</script>")
    exercise = grade_answer(grading_process, UNIT, "scaled_dot_product_attention", code)
    assert "<script>" in exercise.whereabouts.told
    assert "<script>" not in pages.feedback_html(exercise)


@pytest.mark.parametrize("body", ["raise ValueError('no')", "import os\n    os._exit(0)"], ids=["raises", "ends"])
def test_where_nothing_can_be_told_nothing_is_said(grading_process, body):
    code = f"def attention_scores(queries, keys):\n    {body}\n"
    assert grade_answer(grading_process, UNIT, "attention_scores", code).whereabouts is None


def test_of_words_it_is_said_that_they_are_no_tensor(grading_process):
    code = "def attention_scores(queries, keys):\n    scores = queries @ keys.mT\n    return 'x'\n"
    found = grade_answer(grading_process, UNIT, "attention_scores", code).whereabouts
    assert found.lines == [3]
    assert "It returns no tensor; one tensor is required." in found.told


def test_of_a_number_in_a_tensor_it_is_said_that_a_python_number_is_required(grading_process):
    (answer,) = (one for one in held_out("modern_attention") if one.name == "w_tensor_count")
    found = grade_answer(grading_process, "modern_attention", "accept_draft", answer.code).whereabouts
    assert found.lines == [14]
    assert "It returns this number as a tensor; a Python number is required" in found.told


@pytest.mark.parametrize(
    ("unit", "name"),
    [
        ("dot_product_attention", "diagonal_forgotten"),  # the loop leaves out elements; its other elements are right
        ("causal_attention", "pattern_cached_by_shape"),  # a second run reads from a dict what the first run made
    ],
)
def test_a_right_line_is_not_reported_beside_a_diagnosis(grading_process, unit, name):
    (answer,) = (one for one in held_out(unit) if one.name == name)
    notebook = alone(unit, **{answer.exercise: answer.code})
    report = grading_process.grade("held_out.ipynb", notebook, unit).exercise(answer.exercise)
    assert report.diagnosis is not None
    assert report.whereabouts is None


def test_a_mistake_in_what_it_uses_is_diagnosed_and_located_there_alone(grading_process):
    """The wrapper passes on what CausalAttention gives it."""
    right = {name: solution.source() for name, solution in catalogue.solutions("causal_attention").items()}
    wrong = {"CausalAttention": right["CausalAttention"].replace(" ** 0.5", "")}
    notebook = alone("causal_attention", **wrong, MultiHeadAttentionWrapper=right["MultiHeadAttentionWrapper"])
    report = grading_process.grade("typed.ipynb", notebook, "causal_attention")
    attention, wrapper = report.exercise("CausalAttention"), report.exercise("MultiHeadAttentionWrapper")
    assert (attention.diagnosis.name, bool(attention.whereabouts)) == ("ScaledByDOut", True)
    assert (wrapper.status, wrapper.diagnosis, wrapper.whereabouts) == ("failed", None, None)
    assert wrapper.message.startswith("It uses your `CausalAttention`, which is not right yet")


UNITS = [course.unit(name) for name in course.unit_names()]
CASES = [(unit.name, exercise.name) for unit in UNITS for exercise in unit.exercises]


@pytest.mark.parametrize(("unit", "exercise"), CASES, ids=lambda one: one)
def test_no_telling_case_has_the_numbers_of_a_hidden_one(unit, exercise):
    """A hidden grader's numbers come from its own name: nowhere are three of them shown in a row."""
    names = [one.name for one in listed() if one.exercise == f"{unit}.{exercise}"]
    assert names
    hidden = {three for name in names for three in in_a_row(Cases(name).randn(200))}
    for case in trace_cases(unit, exercise):
        shown = {three for arg in case.arguments if isinstance(arg, torch.Tensor) for three in in_a_row(arg)}
        assert not hidden & shown


def in_a_row(numbers):
    rounded = [round(float(number), 3) for number in numbers.flatten()]
    return set(zip(rounded, rounded[1:], rounded[2:], strict=False))


WATCHING = {"watch_run", "line_of_aspect"}
IN_FLOAT32 = """\
def attention_scores(queries, keys):
    return (queries.float() @ keys.float().transpose(-2, -1)).float()
"""


def test_lines_are_looked_for_last_and_on_cases_that_are_released(fork_server, monkeypatch):
    asked, exchange = [], SandboxedNotebook.exchange
    monkeypatch.setattr(SandboxedNotebook, "exchange", lambda self, one: (asked.append(one), exchange(self, one))[1])
    grading = NotebookGrading(Examiner(collect()), fork_server("A"), Conditions("cpu", "A", []))
    wrong = {"scaled_dot_product_attention": TOO_EVEN, "attention_scores": IN_FLOAT32, "SelfAttention_v1": TWICE}
    notebook = alone("self_attention", **wrong)
    report = grading.grade(GradeNotebook("wrong.ipynb", notebook, unit="self_attention"))
    assert all(report.exercise(name).whereabouts for name in wrong)
    kinds = [one.header["operation"] for one in asked]
    first = next(place for place, kind in enumerate(kinds) if kind in WATCHING)
    assert set(kinds[first:]) == WATCHING
    steps = released_data("self_attention")[STEPS]
    for one in asked[first:]:
        operation = unpacked(one.header, protocol.read_frame(protocol.Frame(b"{}", one.payload))[1])
        cases = [[decode_value(arg) for arg in case["args"]] for case in steps[operation.name]["cases"]]
        assert any(all(map(torch.equal, operation.arguments.positional, args)) for args in cases)
