"""The graders are those of the list: their names, weights, markers and statements, and what each of them asks."""

import subprocess
import sys

import pytest

from autograder import course
from tests import REPOSITORY, TESTS
from tests.hidden_tests import Listed, listed
from tests.hunts import hunts

LISTED = listed()


@pytest.fixture(scope="module")
def found():
    command = [sys.executable, "-m", "tests.hidden_tests"]
    run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-3000:]
    return [Listed.of(line) for line in run.stdout.splitlines()]


def test_the_exercises_are_those_of_the_list(found):
    assert {one.exercise for one in found} == {one.exercise for one in LISTED}


@pytest.mark.parametrize("exercise", dict.fromkeys(one.exercise for one in LISTED))
def test_its_graders_are_those_of_the_list_in_their_order(found, exercise):
    right = [one for one in LISTED if one.exercise == exercise]
    graders = [one for one in found if one.exercise == exercise]
    assert [one.in_words for one in graders] == [one.in_words for one in right]
    for one, listed_one in zip(graders, right, strict=True):
        assert one.operations == listed_one.operations, one.name
        assert one.numbers == pytest.approx(listed_one.numbers, rel=1e-5, abs=1e-5), one.name


def test_every_exercise_has_a_hidden_test_with_the_value_that_its_text_prints():
    """`published.txt` names it: the values of the source documents and of the units' texts, to four decimals."""
    published = [tuple(line.split()) for line in (TESTS / "published.txt").read_text().splitlines()]
    assert set(published) <= {(one.exercise, one.name) for one in LISTED}
    bug_hunts = {f"{unit}.{name}" for unit in course.unit_names() for name in hunts(unit)}
    assert {exercise for exercise, _ in published} == {one.exercise for one in LISTED} - bug_hunts
