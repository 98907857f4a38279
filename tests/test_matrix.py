"""The proof of the graders: every known mistake is caught where it should be and named, no right answer is refused."""

from functools import cache

import pytest

from autograder import catalogue, course
from autograder.client.marker import Marker
from autograder.handout.data_file import read_data
from autograder.handout.names import EXAMPLES
from autograder.proof.matrix import Outcome, entries, outcome
from autograder.proof.page import part_of_marking
from tests import RELEASE, REPOSITORY

from .graders import listed

ENTRIES = {
    f"{entry.exercise}-{'right-' * (entry.caught_by is None)}{entry.name}": (unit, entry) for unit, entry in entries()
}
MISCONCEPTIONS = [key for key, (_, entry) in ENTRIES.items() if entry.caught_by is not None]
RIGHT_ANSWERS = [key for key, (_, entry) in ENTRIES.items() if entry.caught_by is None]


WEIGHTS = {(*one.exercise.split("."), one.name): float(one.weight) for one in listed()}


@pytest.fixture(scope="module")
def examined(marker: Marker):
    """What the graders make of an entry; each is marked once."""
    return cache(lambda key: outcome(marker, *ENTRIES[key]))


@pytest.mark.parametrize("key", MISCONCEPTIONS)
def test_misconception_fails_at_its_grader_and_is_named(examined, key):
    found: Outcome = examined(key)
    if found.entry.caught_by == catalogue.FORBIDDEN:
        assert (found.report.status, found.report.score, found.report.diagnosis) == ("forbidden", 0.0, None)
        return
    graders = [test.name for test in found.report.tests]
    assert found.entry.caught_by in graders, f"{found.entry.exercise} has no such grader"
    assert found.entry.caught_by in failed(found), "it passes the grader that should catch it"
    only_tells = WEIGHTS[found.unit, found.entry.exercise, found.entry.caught_by] == 0
    assert (found.caught, found.told) == (not only_tells, only_tells)
    assert found.report.diagnosis is not None, "it is caught, and nothing names it"
    assert found.report.diagnosis.name == found.entry.name
    assert found.report.diagnosis.sentence == found.entry.sentence


@pytest.mark.parametrize("key", RIGHT_ANSWERS)
def test_right_answer_gets_full_marks(examined, key):
    found: Outcome = examined(key)
    assert failed(found) == []
    assert (found.report.status, found.report.score) == ("passed", found.report.max_score)
    assert found.report.diagnosis is None


def failed(found: Outcome) -> list[str]:
    return [test.name for test in found.report.tests if test.outcome == "failed"]


def test_the_page_shows_these_figures(examined):
    written = (REPOSITORY / "docs" / "matrix.md").read_text()
    right = part_of_marking([examined(key) for key in ENTRIES])
    assert written.startswith(right), "run `autograder matrix --write`"


# One of every kind of mistake in every unit, the first that is not caught by the rule against library calls.
SAMPLE = {
    (unit, entry.kind): key
    for key, (unit, entry) in reversed(ENTRIES.items())
    if entry.caught_by not in (None, catalogue.FORBIDDEN)
}


@pytest.mark.parametrize("key", SAMPLE.values())
def test_the_same_comes_of_it_through_both_processes(examined, marker: Marker, key):
    beside: Outcome = examined(key)
    apart = outcome(marker, *ENTRIES[key], "sandboxed")
    assert marker.ready.isolation == "A"
    assert (apart.report.status, apart.report.score) == (beside.report.status, beside.report.score)
    assert apart.report.diagnosis == beside.report.diagnosis
    assert apart.named


@pytest.mark.parametrize("unit", course.unit_names())
def test_solutions_pass_every_grader(marker: Marker, unit):
    report = marker.mark_candidate(unit, "solution")
    assert report.score == report.max_score == course.unit(unit).max_score
    assert {test.outcome for exercise in report.exercises for test in exercise.tests} == {"passed"}


PUBLISHED = {
    "causal_attention": {
        "causal_mask": "test_four_tokens",
        "renormalized_causal_weights": "test_six_words",
        "masked_scores": "test_three_tokens",
        "causal_softmax": "test_six_words",
        "attention_dropout": "test_dropped_and_rescaled",
        "causal_head": "test_shape_of_the_worked_example",
        "CausalAttention": "test_seed_123",
        "MultiHeadAttentionWrapper": "test_seed_123",
    },
    "dot_product_attention": {
        "dot_product_scores": "test_six_words",
        "normalize_by_sum": "test_six_words",
        "softmax": "test_six_words",
        "context_vector": "test_six_words",
        "pairwise_scores": "test_six_words",
        "simple_self_attention": "test_six_words",
    },
    "self_attention": {
        "build_vocab": "test_worked_example",
        "encode": "test_worked_example",
        "project_qkv": "test_second_word",
        "linear_projection": "test_shapes_of_the_worked_example",
        "attention_scores": "test_six_words",
        "scaled_softmax": "test_keys_of_width_24",
        "context_vectors": "test_six_words",
        "single_query_attention": "test_second_word",
        "scaled_dot_product_attention": "test_six_words",
        "score_variance": "test_worked_example",
        "SelfAttention_v1": "test_seed_123",
        "SelfAttention_v2": "test_seed_789",
    },
    "multi_head_attention": {
        "stacked_heads_attention": "test_shapes_of_the_worked_example",
        "split_heads": "test_worked_example",
        "multi_head_scores": "test_worked_example",
        "merge_heads": "test_worked_example",
        "MultiHeadAttention": "test_seed_123",
        "OptimizedMultiHeadAttention": "test_seed_123",
        "EfficientMultiHeadAttention": "test_seed_123",
    },
}


@pytest.mark.parametrize("unit", course.unit_names())
def test_solutions_reproduce_every_published_value(marker: Marker, unit):
    """The graders that hold what the source documents print, to four decimals where it is numbers."""
    report = marker.mark_candidate(unit, "solution")
    assert PUBLISHED[unit].keys() == {exercise.name for exercise in report.exercises}
    for exercise, golden in PUBLISHED[unit].items():
        outcomes = {test.name: test.outcome for test in report.exercise(exercise).tests}
        assert outcomes[golden] == "passed"


@pytest.mark.parametrize("unit", course.unit_names())
def test_every_exercise_has_mistakes_right_answers_and_a_public_example(unit):
    released = read_data(RELEASE / unit / EXAMPLES)  # what the build makes
    for exercise in course.unit(unit).exercises:
        assert sum(e.exercise == exercise.name for e in catalogue.misconceptions(unit).values()) >= 3
        assert sum(e.exercise == exercise.name for e in catalogue.right_answers(unit).values()) >= 2
        assert released[exercise.name]["examples"]
