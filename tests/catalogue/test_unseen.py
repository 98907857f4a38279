"""Beyond the catalogue, through both processes: rewritten mistakes keep their name, others get none or a right one.

Each run tries a ninth of them, of each unit and of each kind; `pytest --every` tries all.
"""

import pytest

from autograder import course
from tests import sampling
from tests.typed import grade_answer
from tests.unseen import Unseen, unseen

UNSEEN = [one for unit in course.unit_names() for one in unseen(unit)]


def kind(one: Unseen):
    return (one.wrong, one.must_be_named, one.two_at_once)


TRIED = [
    one
    for unit in course.unit_names()
    for of in sorted({kind(one) for one in unseen(unit)})
    for one in sampling.thinned((one for one in unseen(unit) if kind(one) == of), 9, by=lambda one: one.answer.name)
]


@pytest.mark.parametrize("one", TRIED, ids=lambda one: one.answer.name)
def test_answer_from_outside_of_the_catalogue(grading_process, one):
    report = grade_answer(grading_process, one.unit, one.answer.exercise, one.answer.source())
    told = names(report.diagnosis)
    if not one.wrong:
        assert (report.status, report.score, told) == ("passed", report.max_score, set())
        return
    assert report.status in ("failed", "forbidden")
    assert report.score < report.max_score
    if one.two_at_once:
        assert told == set(one.names)
    else:
        assert len(told) <= 1
        assert told <= set(one.names)
        assert told or not one.must_be_named


def names(diagnosis) -> set[str]:
    return {one.name for one in (diagnosis, diagnosis and diagnosis.beside) if one}


def test_there_are_enough_of_them():
    assert sum(one.must_be_named for one in UNSEEN) >= 40
    assert sum(one.two_at_once for one in UNSEEN) >= 5
    assert sum(one.wrong and not one.must_be_named for one in UNSEEN) >= 30
