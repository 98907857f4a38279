"""The proof of the graders: every known mistake is caught where it should be and named, no right answer is refused."""

from itertools import combinations

import pytest

from autograder import catalogue, course
from autograder.grading.client import Grader
from autograder.report import ExerciseReport

CANDIDATES = {
    kind: [(unit, entry) for unit in course.unit_names() for entry in entries(unit).values()]
    for kind, entries in {
        "misconception": catalogue.misconceptions,
        "right_answer": catalogue.right_answers,
    }.items()
}


def candidates(kind):
    return pytest.mark.parametrize(
        ("unit", "entry"), CANDIDATES[kind], ids=[f"{entry.exercise}-{entry.name}" for _, entry in CANDIDATES[kind]]
    )


def failed(exercise: ExerciseReport) -> list[str]:
    return [test.name for test in exercise.tests if test.outcome == "failed"]


@candidates("misconception")
def test_misconception_fails_at_its_grader_and_is_named(grader: Grader, unit, entry):
    report = grader.mark_candidate(unit, "misconception", entry.name).exercise(entry.exercise)
    if entry.caught_by == catalogue.FORBIDDEN:
        assert (report.status, report.score, report.diagnosis) == ("forbidden", 0.0, None)
        return
    assert entry.caught_by in failed(report)
    assert report.score < report.max_score
    assert report.diagnosis is not None
    assert (report.diagnosis.name, report.diagnosis.sentence) == (entry.name, entry.sentence)


@candidates("right_answer")
def test_right_answer_gets_full_marks(grader: Grader, unit, entry):
    report = grader.mark_candidate(unit, "right_answer", entry.name).exercise(entry.exercise)
    assert failed(report) == []
    assert (report.status, report.score, report.diagnosis) == ("passed", report.max_score, None)


@pytest.mark.parametrize("unit", course.unit_names())
def test_solutions_pass_every_grader(grader: Grader, unit):
    report = grader.mark_candidate(unit, "solution")
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
def test_solutions_reproduce_every_published_value(grader: Grader, unit):
    """The graders that hold what the source documents print, to four decimals where it is numbers."""
    report = grader.mark_candidate(unit, "solution")
    assert PUBLISHED[unit].keys() == {exercise.name for exercise in report.exercises}
    for exercise, golden in PUBLISHED[unit].items():
        outcomes = {test.name: test.outcome for test in report.exercise(exercise).tests}
        assert outcomes[golden] == "passed"


@pytest.mark.parametrize("unit", course.unit_names())
def test_every_exercise_has_mistakes_right_answers_and_a_public_example(grader: Grader, unit):
    examples = grader.handout(unit).examples
    for exercise in course.unit(unit).exercises:
        assert sum(e.exercise == exercise.name for e in catalogue.misconceptions(unit).values()) >= 3
        assert sum(e.exercise == exercise.name for e in catalogue.right_answers(unit).values()) >= 2
        assert examples[exercise.name]


def test_sentences_tell_mistakes_apart():
    told = [(entry.exercise, entry.sentence) for _, entry in CANDIDATES["misconception"]]
    assert [one for one, other in combinations(told, 2) if one == other] == []
    sentences = [sentence for _, sentence in told]
    assert [sentence for sentence in sentences if len(sentence) > 160] == []
