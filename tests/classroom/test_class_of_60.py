"""A class in which 20 misbehave: everyone has a row and a page, and the marks are what they must be.

The other students are honest: 6, and 40 with `pytest --every`.
"""

import os
import shutil
from html.parser import HTMLParser

import pytest

from tests import REPOSITORY, forked_command, sampling
from tests.misbehaving.class_of_60 import HONEST, UNIT, WHO, make
from tests.recorded_class import opened_gradebook

BESIDE = HONEST if sampling.every else HONEST[:6]

SECONDS = 60 * len(WHO) + 120


class Markup(HTMLParser):
    """Elements of a page that come from the students' markup."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        said = " ".join(f"{name}={value}" for name, value in attrs)
        if any(word in said for word in ("full-credit", "modal-backdrop", "onclick", "elsewhere.example")):
            self.found.append(f"{tag} {said}")


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    root = tmp_path_factory.mktemp("class")
    expected = make(root, misbehaving=True, honest=BESIDE)
    grade = ("grade", UNIT, "--course", root, "--markers", "2")
    result = forked_command.autograder(*grade, cwd=REPOSITORY, env={**os.environ, "COLUMNS": "200"}, timeout=SECONDS)
    yield root, expected, result
    shutil.rmtree(root)


def test_everyone_has_the_mark_that_is_theirs(graded):
    root, expected, result = graded
    assert "Traceback" not in result.stdout + result.stderr
    for student in expected:
        assert student in result.stdout
    with opened_gradebook(root) as gradebook:
        scores = {s.student.id: s.score for s in gradebook.assignment_submissions(UNIT)}
    assert scores == expected


def test_everyone_has_a_page_on_which_nothing_runs(graded):
    root, expected, _ = graded
    for student in expected:
        page = (root / "feedback" / student / UNIT / f"{UNIT}.html").read_text()
        assert len(page) < 4_000_000, student
        markup = Markup()
        markup.feed(page)
        assert (student, markup.found) == (student, [])


def test_the_honest_have_the_pages_that_they_would_have_alone(graded):
    root, _, _ = graded
    pages = {(root / "feedback" / student / UNIT / f"{UNIT}.html").read_bytes() for student in BESIDE}
    assert len(pages) == 1
