"""A class in which many misbehave, in one run: everyone gets their status, the honest students their exact marks.

15% of 200 misbehave. It is for `pytest --every`; each run of the tests has the class of 60.
"""

import os
from functools import partial

import pytest

from autograder import catalogue, course
from autograder.classroom.assignment import assignment
from autograder.classroom.batch import LocalGrading
from autograder.course.cells import filled_in
from tests.misbehaving.case import UNIT, cases
from tests.misbehaving.run import notebook, settings
from tests.typed import solution_sources

CLASS, MISBEHAVING, EVERY = 200, 30, 6


@pytest.fixture(scope="module")
def honest(grading_process):
    """By number, a notebook with the score that it must get: a right one, then one for each answer that is known."""
    right = solution_sources(UNIT)
    known = [("misconception", entry) for entry in catalogue.misconceptions(UNIT).values()]
    known += [("right_answer", entry) for entry in catalogue.right_answers(UNIT).values()]
    full = course.unit(UNIT).max_score

    def of(number):
        if number % (len(known) + 1) == 0:
            return filled_in(UNIT, right), full
        kind, entry = known[number % (len(known) + 1) - 1]
        marked = grading_process.grade_candidate(UNIT, kind, entry.name).exercise(entry.exercise)
        content = filled_in(UNIT, {**right, entry.exercise: entry.source()})
        return content, full - marked.max_score + marked.score

    return of


def test_everyone_gets_what_is_theirs(tmp_path, honest):
    secret = tmp_path / "secret"
    secret.write_text("as it was")
    names = dict.fromkeys(("SECRET", "GRADEBOOK", "NEIGHBOUR", "GRADERS", "ANSWERS", "SOCKET"), str(secret))
    names |= {"REPOSITORY": str(tmp_path), "PORT": 9, "BYSTANDER": os.getpid(), "GRADER": os.getpid(), "TOKEN": "none"}
    known = cases()
    expected = {}
    for number in range(CLASS):
        student = f"student-{number:03}"
        file = tmp_path / "submitted" / student / UNIT / f"{UNIT}.ipynb"
        file.parent.mkdir(parents=True)
        if number < EVERY * MISBEHAVING and number % EVERY == 0:
            case = known[number // EVERY * (len(known) // MISBEHAVING)]
            case.put_submission(file, partial(notebook, names))
            expected[student] = (case.must.status, case.must.exercises, None)
        else:
            content, score = honest(number)
            file.write_bytes(content)
            expected[student] = ("graded", None, score)
    work = assignment(UNIT, tmp_path, None, None)
    with LocalGrading(work, work.submissions, device="cpu", settings=settings("best"), process_count=2) as marking:
        marking.start()
        for marked in marking.graded():
            student, report = marked.submission.student, marked.report
            status, lost, score = expected.pop(student)
            found = {e.name: e.status for e in report.exercises if e.status != "passed"}
            assert (student, report.status) == (student, status)
            assert found == lost if score is None else report.score == pytest.approx(score, abs=0.011), student
    assert not expected
    assert secret.read_text() == "as it was"
