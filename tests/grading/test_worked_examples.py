"""Grading says of each example in docs/finding_mistakes.md what the page says."""

import pytest

from tests.worked_examples import examples, graded

EXAMPLES = list(examples())


def test_the_page_has_examples_of_every_way():
    said = "".join(one[3] for one in EXAMPLES)
    for words in ("behaves like this mistake", "two mistakes at once", "Something else", "Tried on", "tests pass"):
        assert words in said


@pytest.mark.parametrize(("exercise", "unit", "code", "said"), EXAMPLES, ids=lambda one: one.split("\n")[0][:30])
def test_grading_says_what_the_page_says(grading_process, exercise, unit, code, said):
    assert graded(grading_process, exercise, unit, code) == said
