"""The points that a fault costs: its own, no more and no less; what is no fault costs nothing.

Each run tries a fault on some of the exercises in which it can be made; `pytest --every` tries each on all.
"""

import inspect
import re

import pytest
import torch

from autograder import catalogue, course
from autograder.catalogue.candidate import Code
from autograder.core.comparison import Mismatch
from autograder.core.complaints import RESULT_NOT_FINITE
from autograder.core.operations import Call
from autograder.graders.collection import collect
from autograder.grading import scoring
from autograder.grading.examiner import Examiner, candidate_bench
from autograder.grading.public_examples import example
from autograder.student_check.judgement import judge_example
from tests import sampling
from tests.hidden_tests import listed
from tests.hunts import hunts
from tests.student_check.test_student_check import Notebook
from tests.typed import alone

DOT, SELF, CAUSAL, HEADS = "dot_product_attention", "self_attention", "causal_attention", "multi_head_attention"
IMPORTS = (
    "import math\nfrom collections.abc import Callable, Iterable\n"
    "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
)
EXERCISES = [(unit, exercise.name) for unit in course.unit_names() for exercise in course.unit(unit).exercises]
NO_MODULE = "KVCache"
CLASSES = [(unit, name) for unit, name in EXERCISES if name[0].isupper() and name != NO_MODULE]


@pytest.fixture(scope="module")
def examiner():
    return Examiner(collect())


def share(examiner, unit, exercise, code):
    """Return the share of its points that the exercise gets, and its report.

    The hidden tests run in this process, without a diagnosis, which takes seconds for an unknown answer. `test_matrix`
    compares the results of both processes.
    """
    answer = catalogue.Candidate(exercise, "typed", "", Code(unit, exercise, IMPORTS + code))
    found = examiner.examine(unit, exercise, candidate_bench(unit, answer), answer)
    report = scoring.score(course.unit(unit).exercise(exercise), found.verdicts, library_calls=found.library_calls)
    assert report.status == "failed", report
    return report.score / report.max_score, report


def solution(unit, exercise):
    return catalogue.solutions(unit)[exercise].source()


def changed(unit, exercise, result):
    """Return the solution with `result` instead of its return value."""
    if exercise[0].isupper():
        return f"""{solution(unit, exercise)}

class {exercise}({exercise}):
    def forward(self, x, *more):
        result = super().forward(x, *more)
        {result}
        return result
"""
    code = solution(unit, exercise).replace(f"def {exercise}(", "def _right(")
    return f"""{code}

def {exercise}(*args):
    result = _right(*args)
    {result}
    return result
"""


@pytest.mark.parametrize(("unit", "exercise"), EXERCISES)
def test_an_answer_in_other_names_is_among_the_right_ones(unit, exercise):
    """Each of its arguments has another name; the matrix says that it gets full marks."""
    own = arguments(catalogue.solutions(unit)[exercise].answer)
    known = [one.answer for one in catalogue.right_answers(unit).values() if one.exercise == exercise]
    assert [one for one in known if not own & arguments(one)]


def arguments(answer):
    called = getattr(answer, "forward", None) or getattr(answer, "append", None)  # of a cache
    methods = [answer.__init__, called] if inspect.isclass(answer) else [answer]
    return {name for method in methods for name in inspect.signature(method).parameters} - {"self"}


WITHOUT_A_SHAPE = {"build_vocab", "attention_dropout", "copy_weights", "count_parameters", NO_MODULE}
WITHOUT_A_SHAPE |= {"attention_flops", "kv_cache_bytes"}
WITHOUT_A_SHAPE |= {hunt for unit in course.unit_names() for hunt in hunts(unit)}  # the shape is part of the input


SHAPED = [one for one in EXERCISES if one[1] not in WITHOUT_A_SHAPE]


@pytest.mark.parametrize(
    ("unit", "exercise"),
    [one for unit in course.unit_names() for one in sampling.thinned((one for one in SHAPED if one[0] == unit), 6)],
)
def test_right_numbers_in_a_shape_with_a_1_too_many_get_a_third_and_no_more_than_half(examiner, unit, exercise):
    one_more = (
        "result = tuple(one if isinstance(one, int) else one[None] for one in result)"
        " if isinstance(result, tuple) else result[None]"
    )
    got, report = share(examiner, unit, exercise, changed(unit, exercise, one_more))
    assert 1 / 3 <= got <= 2 / 3
    assert any("Its numbers are right." in test.message for test in report.tests)


TOO_GENEROUS = {
    "the input added": "result = result + x if result.shape == x.shape else result",
    "the input added in evaluation": (
        "result = result + x if result.shape == x.shape and not self.training else result"
    ),
    "numbers dropped in evaluation": "result = result if self.training else F.dropout(result, 0.3)",
}


@pytest.mark.parametrize(("unit", "exercise", "fault"), sampling.in_turn(CLASSES, TOO_GENEROUS))
def test_what_makes_a_module_another_costs_half_of_its_points(examiner, unit, exercise, fault):
    got, _ = share(examiner, unit, exercise, changed(unit, exercise, fault))
    assert got <= 0.5


IN_ONE_MODE = {
    "a mask in training only": ("masked_fill(", "masked_fill(self.training & "),
    "dropout in evaluation": ("self.dropout(", "F.dropout(p=self.dropout.p, input="),
}


@pytest.mark.parametrize("edit", IN_ONE_MODE.values(), ids=IN_ONE_MODE)
@pytest.mark.parametrize(("unit", "exercise"), [one for one in CLASSES if one[0] in (CAUSAL, HEADS)])
def test_what_is_right_in_one_mode_alone_gets_half_of_its_points(examiner, unit, exercise, edit):
    of = "CausalAttention" if exercise == "MultiHeadAttentionWrapper" else exercise
    code = solution(unit, of).replace(*edit)
    assert code != solution(unit, of)
    if of != exercise:
        code += "\n\n" + solution(unit, exercise)
    got, report = share(examiner, unit, exercise, code)
    assert got <= 0.5
    assert any("no more than half of its points" in test.message for test in report.tests)
    printed, score = Notebook(unit, **{exercise: code}).check(exercise)
    assert "no more than half of its points" in printed
    assert score <= report.max_score / 2


ROOTS = {"a half": "{0} / 2", "a logarithm": "math.log2({0})", "a whole root": "math.isqrt({0})"}
ROOTS |= {f"the root of {width}": f"{width} ** 0.5" for width in (2, 3, 24)}  # of the worked examples
SCALED = [(unit, name) for unit, name in EXERCISES if "**0.5" in solution(unit, name).replace(" ", "")]


@pytest.mark.parametrize(("unit", "exercise", "root"), sampling.in_turn(sampling.thinned(SCALED, 2), ROOTS))
def test_what_is_no_root_gets_no_more_than_half(examiner, unit, exercise, root):
    code = solution(unit, exercise)
    for width in ("d_k", "head_dim", "self.head_dim", "keys.shape[-1]", "queries.shape[-1]", "query.shape[-1]", "hd"):
        code = re.sub(rf"(/|=) {re.escape(width)} ?\*\* ?0\.5", rf"\1 ({root.format(width)})", code)
    assert code != solution(unit, exercise)
    got, _ = share(examiner, unit, exercise, code)
    assert got <= 0.5


@pytest.mark.parametrize(("unit", "exercise"), [one for one in EXERCISES if one[1] not in hunts(one[0])])
def test_examples_by_heart_are_worth_half_at_most(unit, exercise):
    """`test_without_work` says that they earn what their graders weigh; here is how much that is.

    A hunt's example has no result that could be known by heart.
    """
    listed_ones = [one for one in listed() if one.exercise == f"{unit}.{exercise}"]
    by_heart = [one for one in listed_ones if "public" in one.markers and "property" not in one.markers]
    assert sum(float(one.weight) for one in by_heart) <= sum(float(one.weight) for one in listed_ones) / 2


UNIT_7, LINEAR = "efficient_attention", "linear_attention"
SAFE = ("({0} @ total + 1e-8)", "({0} @ total).clamp(min=1e-12)", "torch.where({0} @ total == 0, 1.0, {0} @ total)")


def divided_by(denominator):
    """Return the solution with this denominator: {0} is the query, or the queries."""
    code = solution(UNIT_7, LINEAR)
    for query in ("q", "now"):
        assert f"({query} @ total + 1e-06)" in code
        code = code.replace(f"({query} @ total + 1e-06)", denominator.format(query))
    return catalogue.Candidate(LINEAR, "typed", "", Code(UNIT_7, LINEAR, IMPORTS + code))


def test_a_cache_that_writes_into_free_room_may_be_read_before_it_is_appended_to(grading_process):
    """Scores with cached keys need those keys for gradients, into whose tensor the cache then writes."""
    right = {entry.name: entry for entry in catalogue.right_answers("inference").values()}
    answers = {right[name].exercise: right[name].source() for name in ("CacheWithRoom", "CachedInTwoParts")}
    report = grading_process.grade("inference.ipynb", alone("inference", **answers), "inference")
    assert report.status == "graded"
    assert [test.name for name in answers for test in report.exercise(name).tests if test.outcome != "passed"] == []


@pytest.mark.parametrize("denominator", SAFE)
def test_any_way_to_keep_a_denominator_from_0_gets_all_points(examiner, denominator):
    answer = divided_by(denominator)
    verdicts = examiner.examine(UNIT_7, LINEAR, candidate_bench(UNIT_7, answer), answer).verdicts
    assert [verdict.test.name for verdict in verdicts if verdict.outcome != "passed"] == []


def test_linear_attention_is_compared_only_where_its_denominator_is_at_least_1(examiner):
    traces = examiner.examine(UNIT_7, LINEAR, candidate_bench(UNIT_7, None)).transcript
    calls = [event.operation for trace in traces for event in trace.events if isinstance(event.operation, Call)]
    assert len(calls) > 20
    for call in calls:
        queries, keys, _, *causal = call.arguments.positional
        q, k = (torch.nn.functional.elu(one.double()) + 1 for one in (queries, keys))
        totals = k.cumsum(dim=-2) if any(causal) else k.sum(dim=-2, keepdim=True)
        assert (q * totals).sum(dim=-1).min() >= 1


def test_the_check_compares_linear_attention_as_closely_as_marking_does():
    examples = {
        grader.name: example(UNIT_7, grader)
        for grader in collect()[UNIT_7][LINEAR]
        if grader.name in ("test_float64_stays_exact", "test_vanishing_features")
    }
    assert {step["close"] for step in examples["test_float64_stays_exact"]["steps"]} == {1e-5}
    finite = examples["test_vanishing_features"]
    assert finite["looks_at"] == ["finite"]
    wrong = catalogue.misconceptions(UNIT_7)
    problems = {
        "nothing_added_to_the_denominator": RESULT_NOT_FINITE,
        "nan_replaced_afterwards": "first argument has NaN",
    }
    for name, problem in problems.items():
        with pytest.raises(Mismatch, match=problem):
            judge_example({LINEAR: wrong[name].answer}, finite)
    judge_example({LINEAR: divided_by(SAFE[0]).answer}, finite)
