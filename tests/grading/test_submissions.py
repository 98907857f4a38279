"""Notebooks through the real two processes: what each earns, and that no exercise pays for another's trouble."""

import json

import pytest

from autograder import catalogue, course
from autograder.core.observation import Raised
from autograder.course.cells import filled_in
from autograder.course.notebook_file import read_at
from autograder.graders.backend import Recording
from autograder.graders.proxy import StudentProxy
from autograder.report import NOT_WRITTEN
from tests import RELEASE, SOURCE, sampling
from tests.typed import alone, edited, grade_answer, solved, stored

UNIT = "self_attention"
SOLUTION = catalogue.solutions(UNIT)["scaled_softmax"].source()


@pytest.mark.parametrize("unit", course.unit_names())
def test_stub_notebook_scores_zero(grading_process, unit):
    report = grading_process.grade(unit, read_at(RELEASE / unit / f"{unit}.ipynb").content)
    assert (report.status, report.score, report.isolation) == ("graded", 0.0, "A")
    assert all(exercise.message.startswith(NOT_WRITTEN) for exercise in report.exercises)


@pytest.mark.parametrize("unit", course.unit_names())
def test_source_notebook_passes_every_hidden_test(grading_process, unit):
    report = grading_process.grade(unit, read_at(SOURCE / unit / f"{unit}.ipynb").content)
    assert report.score == report.max_score == course.unit(unit).max_score
    assert {test.outcome for exercise in report.exercises for test in exercise.tests} == {"passed"}


SCALED_SOFTMAX = "def scaled_softmax(scores, d_k):\n    "
TROUBLE = {
    "syntax error": ("def scaled_softmax(scores, d_k)\n    return scores", "error", "cells_failed"),
    "exception at import": ("1 / 0\n" + SCALED_SOFTMAX + "pass", "error", "cells_failed"),
    "cell emptied": ("", "missing", "graded"),
}
"""Other faults of submissions are in tests/misbehaving/."""


@pytest.mark.parametrize(("code", "status", "submission"), TROUBLE.values(), ids=TROUBLE)
def test_a_fault_costs_only_its_own_exercise(grading_process, code, status, submission):
    content = alone(UNIT, scaled_softmax=SOLUTION, copy_weights=catalogue.solutions(UNIT)["copy_weights"].source())
    report = grading_process.grade("typed.ipynb", edited(content, scaled_softmax=code), UNIT)
    assert report.exercise("scaled_softmax").score == 0
    found = {exercise.name: exercise.status for exercise in report.exercises}
    others = ("copy_weights", "SelfAttention_v1", "SelfAttention_v2")
    assert [found[name] for name in ("scaled_softmax", *others)] == [status, *["passed"] * 3]
    assert report.status == submission


STORED = stored("submissions")
STRANGE = STORED["strange"]


@pytest.mark.parametrize("code", STRANGE.values(), ids=STRANGE)
def test_a_strange_cell_costs_nothing(grading_process, code):
    report = grading_process.grade("typed.ipynb", alone(UNIT, scaled_softmax=code + SOLUTION), UNIT)
    assert (report.status, report.exercise("scaled_softmax").status) == ("graded", "passed")


def test_of_two_definitions_the_last_counts(grading_process):
    wrong = catalogue.misconceptions(UNIT)["divided_by_d_k"].source()
    for first, last, status in ((wrong, SOLUTION, "passed"), (SOLUTION, wrong, "failed")):
        assert grade_answer(grading_process, UNIT, "scaled_softmax", f"{first}\n\n{last}").status == status


RIGHT_WEIGHTS = "torch.softmax(scores / d_k ** 0.5, dim=-1)"
WRONG_RESULTS = STORED["wrong_results"]
A_CLASS = "class SelfAttention_v1(nn.Module):\n    def __init__(self, a, b):\n        super().__init__()\n"
WRONG = {
    **{name: ("scaled_softmax", SCALED_SOFTMAX + body, words) for name, (body, words) in WRONG_RESULTS.items()},
    "another signature": (
        "scaled_softmax",
        "def scaled_softmax(scores): return scores",
        "TypeError: scaled_softmax() takes 1 positional argument but 2 were given",
    ),
    "a function in place of a class": (
        "SelfAttention_v1",
        "def SelfAttention_v1(d_in, d_out): pass",
        "`SelfAttention_v1` is a function; it should be a class.",
    ),
    "a missing forward": (
        "SelfAttention_v1",
        f"{A_CLASS}    def foward(self, x): return x",
        'is missing the required "forward" function',
    ),
}


@pytest.mark.parametrize(("exercise", "code", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_described_in_words(grading_process, exercise, code, words):
    report = grade_answer(grading_process, UNIT, exercise, code)
    assert report.status == "failed"
    assert words in " ".join([report.message, *(test.message for test in report.tests)])


def test_a_cell_with_a_name_without_end_and_marks_of_its_own_stays_short(grading_process):
    notebook = json.loads(filled_in(UNIT, {}))
    metadata = {"nbgrader": {"grade_id": "<b>" * 100_000}}
    notebook["cells"].append({"cell_type": "code", "id": "x", "metadata": metadata, "source": "1 / 0"})
    report = grading_process.grade("named.ipynb", json.dumps(notebook).encode(), UNIT)
    assert len(report.message) < 300


def test_an_error_claimed_before_anything_was_called_is_the_students():
    """A worker that a submission has taken over may answer every question with the refusal that a grader waits for."""

    class Claims:
        def ask(self, operation):
            raise Raised("ValueError", "no", None, ["ValueError"])

    student = StudentProxy(Recording(Claims()))
    with pytest.raises(Raised), student.refusing(frozenset({"ValueError"})):
        student.split_heads(1, 2)


CAUSAL = "causal_attention"


@pytest.mark.parametrize(
    ("exercise", "old", "new", "words"),
    [
        ("CausalAttention", "triu(diagonal=1)", "triu(diagonal=0)", "Some weights are NaN or infinite."),
        (
            "causal_head",
            "return weights",
            "return nn.functional.dropout(weights, 0.1)",
            "Two calls with the same input",
        ),
    ],
)
def test_a_sentence_names_the_cause(grading_process, exercise, old, new, words):
    answer = catalogue.solutions(CAUSAL)[exercise].source()
    assert old in answer
    report = grade_answer(grading_process, CAUSAL, exercise, answer.replace(old, new))
    assert any(words in said for said in (report.message, *(test.message for test in report.tests)))


SPARED = {
    "the diagonal": "(torch.rand_like(weights) >= p) | torch.eye(*weights.shape[-2:], device=weights.device).bool()",
    "a number": "torch.rand_like(weights).argsort(-1) >= int(p * weights.shape[-1])",
    "the first key": "(torch.rand_like(weights) >= p) | (torch.arange(weights.shape[-1], device=weights.device) == 0)",
}
LARGE = {CAUSAL: "CausalAttention", "multi_head_attention": "MultiHeadAttention"}


@pytest.mark.parametrize(
    ("unit", "exercise", "kept"),
    [
        pytest.param(unit, exercise, kept, id=f"{unit}-{spared}")
        for place, (spared, kept) in enumerate(SPARED.items())
        for number, (unit, exercise) in enumerate(LARGE.items())
        if sampling.every or number == place % len(LARGE)
    ],
)
def test_dropout_that_spares_is_caught_in_the_large_classes(grading_process, unit, exercise, kept):
    """Each in one of them; `pytest --every` tries each in both."""
    right = catalogue.solutions(unit)[exercise].source()
    drop = f"""class Sparing(nn.Dropout):
    def forward(self, weights):
        p = self.p
        return weights * ({kept}) / (1 - p) if self.training else weights


"""
    assert "nn.Dropout(dropout)" in right
    answer = drop + right.replace("nn.Dropout(dropout)", "Sparing(dropout)")
    tests = grade_answer(grading_process, unit, exercise, answer).tests
    failed = [test for test in tests if test.outcome == "failed"]
    assert [test.name for test in failed] == ["test_dropout_in_training"]
    assert "Does your code protect some positions, or drop a fixed number?" in failed[0].message


PAIRWISE = STORED["pairwise"]
CALLS_IT = STORED["calls_it"]
HAS_ONE_OF_ITS_OWN = STORED["has_one_of_its_own"]


@pytest.mark.parametrize(("code", "is_used"), [(CALLS_IT, True), (HAS_ONE_OF_ITS_OWN, False)], ids=["used", "local"])
def test_the_wrong_answers_that_an_answer_uses_are_those_in_its_own_code(grading_process, code, is_used):
    """The solution of simple_self_attention uses no other exercise."""
    notebook = solved("dot_product_attention", pairwise_scores=PAIRWISE, simple_self_attention=code)
    report = grading_process.grade("typed.ipynb", notebook, "dot_product_attention")
    cause, answer = report.exercise("pairwise_scores"), report.exercise("simple_self_attention")
    assert (cause.status, answer.status) == ("failed", "failed")
    assert answer.message.startswith("It uses your `pairwise_scores`, which is not right yet") == is_used
    assert (answer.diagnosis is None) == (answer.whereabouts is None) == is_used
