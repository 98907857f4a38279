"""Library calls that an exercise forbids are detected by every usual route to them; naming them is no call.

The answers are in `answers/forbidden`, a file an exercise: `calls` make a forbidden call, `right` make none. Each run
tries a part of them; `pytest --every` tries all.
"""

import pytest

from tests import sampling
from tests.typed import grade_answer, solved, stored

IMPORTS = "import threading\nimport torch\nfrom torch.nn import functional as F\n"
MESSAGES = {
    ("self_attention", "scaled_dot_product_attention"): (
        "The code calls a library's attention; in this exercise, write that step yourself."
    ),
    ("dot_product_attention", "softmax"): "a library's softmax",
    ("efficient_attention", "attention_backward"): "The code calls autograd",
}


def answers(kind, one_in):
    """Return unit, exercise and code of one in `one_in` answers of a kind, for a test."""
    cases = []
    for unit, exercise in MESSAGES:
        known = stored(f"forbidden/{exercise}")[kind]
        chosen = sampling.thinned(known, one_in, least=3)
        cases += [pytest.param(unit, exercise, known[name], id=f"{exercise}-{name}") for name in chosen]
    return cases


@pytest.mark.parametrize(("unit", "exercise", "code"), answers("calls", 3))
def test_a_forbidden_call_is_detected(grading_process, unit, exercise, code):
    found = grade_answer(grading_process, unit, exercise, IMPORTS + code)
    assert (found.status, found.score) == ("forbidden", 0), found
    assert MESSAGES[unit, exercise] in found.message


@pytest.mark.parametrize(("unit", "exercise", "code"), answers("right", 2))
def test_an_answer_without_a_forbidden_call_is_right(grading_process, unit, exercise, code):
    found = grade_answer(grading_process, unit, exercise, IMPORTS + code)
    assert (found.status, found.score) == ("passed", found.max_score), found


def test_calls_for_one_exercise_do_not_count_for_the_next(grading_process):
    code = """class SelfAttention_v2(torch.nn.Linear):
    def forward(self, x):
        return F.scaled_dot_product_attention(queries, keys, values)"""
    report = grading_process.grade("typed.ipynb", solved("self_attention", SelfAttention_v1=IMPORTS + code))
    assert "forbidden" not in {exercise.status for exercise in report.exercises}
