"""The message on an answer with two known mistakes never names a mistake that it does not make.

`pytest --every` draws pairs of mistakes from the catalogue.
"""

import json
import subprocess
import sys
import time

import msgspec
import pytest

from autograder.core.bench import OverLimit, cpu_limit
from autograder.report import Diagnosis, ExerciseReport, Mistake
from autograder.reports import pages
from tests import REPOSITORY, sampling

PAIRS = 150
"""Number of pairs, drawn from all exercises."""


@pytest.fixture(scope="module")
def drawn():
    command = [sys.executable, "-m", "tests.double_mistakes", str(PAIRS)]
    run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout)


if sampling.every:

    def test_no_pair_is_told_a_mistake_that_it_does_not_make(drawn):
        assert sum(drawn["told"].values()) == PAIRS
        assert drawn["wrong"] == []


def endless():
    while True:
        pass


def catches_everything():
    caught = 0
    while caught < 2:
        try:
            endless()
        except BaseException:
            caught += 1


def test_a_limit_that_the_code_under_it_catches_holds_at_its_end():
    with pytest.raises(OverLimit), cpu_limit(0.01):
        catches_everything()
    begun = time.process_time()
    with cpu_limit(60):
        pass
    while time.process_time() - begun < 0.1:
        pass  # nothing is raised any more


BOTH = Diagnosis("divided_by_d_k", "Divide by the `root`.", Mistake("over_dim_0", "Rows < columns."))
EXERCISE = ExerciseReport("scaled_softmax", "failed", 1.0, 4.0, BOTH, "", [])


def test_the_student_reads_both_sentences_as_a_list():
    page = pages.feedback_html(EXERCISE)
    assert "behaves like two mistakes at once:<ol>" in page
    assert "<li>Divide by the <code>root</code>.</li><li>Rows &lt; columns.</li></ol>" in page
    assert pages.feedback_text(EXERCISE).splitlines()[1:] == [
        "Your code behaves like two mistakes at once:",
        "  1. Divide by the `root`.",
        "  2. Rows < columns.",
    ]


@pytest.mark.parametrize(
    ("diagnosis", "says"),
    [
        (
            msgspec.structs.replace(BOTH, beside=None),
            "this mistake: Divide by the `root`. Something else is wrong, too.",
        ),
        (BOTH, "two mistakes at once, and something else is wrong, too:"),
    ],
)
def test_the_student_reads_that_more_is_wrong(diagnosis, says):
    partial = msgspec.structs.replace(diagnosis, is_partial=True)
    text = pages.feedback_text(msgspec.structs.replace(EXERCISE, diagnosis=partial))
    assert f"Your code behaves like {says}" in text


def test_reports_of_before_are_read():
    read = msgspec.json.decode(b'{"name": "divided_by_d_k", "sentence": "Divide."}', type=Diagnosis)
    assert (read.names, read.beside) == ("divided_by_d_k", None)
    assert msgspec.json.decode(msgspec.json.encode(BOTH), type=Diagnosis) == BOTH
    assert BOTH.names == "divided_by_d_k + over_dim_0"
