"""A right answer is off by less than a third of the tolerance, whatever cases are drawn.

Another processor, or another order of computation, changes rounding errors. The margin is for those.
"""

from dataclasses import replace

import pytest
import torch

from autograder import catalogue, course
from autograder.core.comparison import TOLERANCE
from autograder.graders.collection import collect
from autograder.graders.proxy import Reference
from autograder.graders.statements import rounding_error
from autograder.grading.examiner import Examiner, candidate_bench
from tests import sampling

MARGIN = 3
SECRETS = 10


@pytest.fixture(scope="module")
def hidden_tests():
    return collect()


@pytest.mark.parametrize("number", sampling.thinned(range(SECRETS), SECRETS))
@pytest.mark.parametrize("unit", course.unit_names())
def test_a_right_answer_keeps_a_margin(hidden_tests, monkeypatch, unit, number):
    """Each run tries the solutions, with one secret; `pytest --every` tries all right answers, with ten."""
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        monkeypatch.setitem(TOLERANCE, dtype, TOLERANCE[dtype] / MARGIN)
    drawn = {
        exercise: [replace(test, secret=f"secret {number}") for test in tests if is_drawn(test)]
        for exercise, tests in hidden_tests[unit].items()
    }
    examiner = Examiner({unit: drawn})
    answers = [*catalogue.solutions(unit).values(), *(catalogue.right_answers(unit).values() if sampling.every else [])]
    failed = [
        (answer.name, verdict.test.name, verdict.seen)
        for answer in answers
        if answer.exercise in drawn
        for verdict in examiner.examine(unit, answer.exercise, candidate_bench(unit, answer), answer).verdicts
        if verdict.outcome != "passed" or verdict.unproven
    ]
    assert failed == []


def is_drawn(test):
    return "rng" in test.arguments and not test.is_public


def test_a_right_answer_passes_where_large_scores_are_nearly_equal(hidden_tests):
    """Rounding errors of scores of 1e5 change these weights, so the tolerance for large scores is too small."""
    (test,) = [
        test for test in hidden_tests["inference"]["CachedMultiHeadAttention"] if test.name == "test_large_scores"
    ]
    examiner = Examiner({"inference": {test.exercise: [replace(test, secret="secret 21")]}})
    (verdict,) = examiner.examine("inference", test.exercise, candidate_bench("inference", None)).verdicts
    assert verdict.outcome == "passed", verdict.seen


def test_the_rounding_error_of_large_results_is_relative_to_them():
    """Otherwise the tolerance for results of 1e8 would accept any result."""
    reference = Reference({"squares": lambda x: x * x})
    assert 0 < rounding_error(reference.squares, torch.tensor([3.0, 2e4])) < 1e-5
