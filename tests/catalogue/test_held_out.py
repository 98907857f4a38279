"""Every wrong held-out answer loses points, and every right one gets all points without a finding.

Each run tries a part of each unit's answers; `pytest --every` tries all.
"""

import pytest

from autograder import course
from tests import sampling
from tests.held_out import held_out
from tests.typed import grade_answer

ANSWERS = [(unit, one) for unit in course.unit_names() for one in held_out(unit)]
WRONG = [(unit, one) for unit, one in ANSWERS if one.wrong]
RIGHT = [(unit, one) for unit, one in ANSWERS if not one.wrong]


def some(answers, one_in):
    chosen = sampling.thinned(answers, one_in, by=lambda answer: answer[1].name)
    return [pytest.param(*answer, id=f"{answer[1].exercise}-{answer[1].name}") for answer in chosen]


@pytest.mark.parametrize(("unit", "one"), some(WRONG, 36))
def test_a_wrong_answer_loses_points(grading_process, unit, one):
    report = grade_answer(grading_process, unit, one.exercise, one.code)
    assert report.status in ("failed", "forbidden")
    assert report.score < report.max_score


@pytest.mark.parametrize(("unit", "one"), some(RIGHT, 18))
def test_a_right_answer_gets_all_points_and_no_finding(grading_process, unit, one):
    report = grade_answer(grading_process, unit, one.exercise, one.code)
    assert (report.status, report.score) == ("passed", report.max_score)
    assert not report.mistake_messages
    assert report.whereabouts is None


def test_every_exercise_has_a_wrong_answer():
    exercises = {(unit, exercise.name) for unit in course.unit_names() for exercise in course.unit(unit).exercises}
    assert exercises == {(unit, one.exercise) for unit, one in WRONG}
