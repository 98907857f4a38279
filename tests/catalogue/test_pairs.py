"""The message on an answer with two known mistakes names both or none, and never a mistake that it does not make.

Each run tries pairs of mistakes that are as simple as can be; `pytest --every` draws them from the catalogue too.
"""

import json
import subprocess
import sys
import time

import msgspec
import pytest

from autograder.catalogue import Candidate
from autograder.catalogue import diagnosis as searching
from autograder.catalogue.diagnosis import Pairs
from autograder.catalogue.transcript import Behaviour, Misconception, Trace
from autograder.core.arguments import Arguments
from autograder.core.edit_trials import OverLimit, cpu_limit
from autograder.core.operations import Call
from autograder.graders.backend import Event
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

    def test_most_pairs_are_told_by_both_names(drawn):
        told = drawn["of one code"]["told"]
        assert sum(told.values()) == PAIRS
        assert told["both"] >= 0.7 * PAIRS, told
        assert told.get("none", 0) <= 0.15 * PAIRS, told

    def test_edits_of_two_codes_are_told_where_they_mean_the_same_in_one(drawn):
        told = drawn["of two"]["told"]
        assert sum(told.values()) == PAIRS // 2
        assert told["both"] >= 0.3 * (PAIRS // 2), told

    def test_no_pair_is_told_a_mistake_that_it_does_not_make(drawn):
        assert [of["wrong"] for of in drawn.values()] == [[], []]


CALLED_WITH = (2, 3, 5)
"""Each a grader's."""


class Mistakes:
    """Mistakes in a function of a number, as what each adds; what they add together is their sum, unless it is said."""

    def __init__(self, *added, together=None, moved=None):
        """moved: what some of them add in the code in which they are combined, by name."""
        self.tried = []
        self._moved = moved or {}
        self._together = together or {}
        self.misconceptions = [
            Misconception(Candidate("f", name, f"{name}.", None, caught_by="test_2"), self._behaviour(f))
            for name, f in added
        ]
        self._added = dict(added)
        self.pairs = Pairs(self._behaviour(lambda x: 0), self.misconceptions, self._combined, self._in_another_code)

    def explaining(self, *names, gives=None):
        pair = self.pairs.explaining(tuple(self._traces(gives or self._both(*names))))
        return None if pair is None else {one.entry.name for one in pair}

    def _combined(self, one, other):
        names = frozenset((one.entry.name, other.entry.name))
        return self._behaviour(self._both(*names), lambda: self.tried.append(names))

    def _in_another_code(self, *pair):
        moved = [one for one in pair if one.entry.name in self._moved]
        return [(one, self._behaviour(self._moved[one.entry.name])) for one in moved]

    def _both(self, one, other):
        adds = [self._added[one], self._added[other]]
        return self._together.get(frozenset((one, other)), lambda x: sum(add(x) for add in adds))

    def _behaviour(self, adds, made=lambda: None):
        def answered(question):
            made()
            return question.answered(tuple(self._traces(adds)))

        return Behaviour(lambda: self._traces(adds, made), answered)

    def _traces(self, adds, made=lambda: None):
        made()
        for x in CALLED_WITH:
            shown = adds(x)
            event = Event(Call("f", Arguments((x,), {})), shown)
            yield Trace(f"test_{x}", "failed" if shown else "passed", (event,))


ONE, TWO, SQUARE = ("one", lambda x: 1), ("two", lambda x: 2), ("square", lambda x: x * x)


def test_the_only_pair_that_shows_the_same_is_told():
    mistakes = Mistakes(ONE, TWO, SQUARE)
    assert mistakes.explaining("one", "square") == {"one", "square"}
    assert mistakes.explaining(gives=lambda x: 7) is None


def test_of_two_pairs_that_show_the_same_none_is_told():
    mistakes = Mistakes(ONE, TWO, ("three", lambda x: 3), ("four", lambda x: 4))
    assert mistakes.explaining("one", "two") == {"one", "two"}
    assert mistakes.explaining("one", "four") is None  # as two and three


def test_an_edit_that_is_another_mistake_in_the_other_ones_code_is_not_told():
    assert Mistakes(ONE, TWO, SQUARE, moved=dict([SQUARE])).explaining("one", "square") == {"one", "square"}
    assert Mistakes(ONE, TWO, SQUARE, moved={"square": lambda x: x}).explaining("one", "square") is None


def only(number, gives=1):
    return lambda x: gives if x == number else 0


def test_a_rival_that_shows_less_beside_another_than_alone_is_no_surprise():
    at_2, at_3, at_5 = ("at_2", only(2)), ("at_3", only(3)), ("at_5", only(5))
    others = [("as_well", lambda x: only(2)(x) + only(5)(x)), *((f"other_{n}", only(5, n)) for n in (6, 7, 8))]
    alone = Mistakes(at_2, at_3, at_5, *others)
    assert alone.explaining("at_2", "at_3") == {"at_2", "at_3"}
    beside = {frozenset(("at_2", "at_5")): lambda x: only(2)(x) + only(3)(x)}
    assert Mistakes(at_2, at_3, at_5, *others, together=beside).explaining("at_2", "at_3") is None


def test_what_a_pair_shows_is_asked_once():
    mistakes = Mistakes(ONE, TWO, SQUARE)
    mistakes.explaining(gives=lambda x: 7)
    tried = list(mistakes.tried)
    assert len(tried) == 3
    mistakes.explaining(gives=lambda x: 8)
    assert mistakes.tried == tried


def test_where_one_of_two_rules_both_out_they_are_not_tried():
    mistakes = Mistakes(SQUARE, ("at_3", only(3)), ("at_5", only(5)))
    mistakes.explaining(gives=lambda x: 100 + x)
    assert mistakes.tried == []


def test_with_more_pairs_than_are_tried_none_is_told(monkeypatch):
    mistakes = Mistakes(ONE, TWO, SQUARE)
    monkeypatch.setattr(searching, "MOST_PAIRS", 2)
    assert mistakes.explaining("one", "square") is None
    assert len(set(mistakes.tried)) <= 2
    assert mistakes.explaining("one", "square") is None, "the same, although it is known by now what some show"


def endless(x):
    while True:
        pass


def test_two_mistakes_that_together_never_end_are_given_up(monkeypatch):
    monkeypatch.setattr(searching, "MOST_SECONDS", 0.2)
    mistakes = Mistakes(ONE, TWO, SQUARE, together={frozenset(("one", "two")): endless})
    mistakes.explaining("two", "square")
    monkeypatch.undo()
    assert mistakes.explaining("two", "square") == {"two", "square"}
    assert mistakes.tried.count(frozenset(("one", "two"))) == 1


def catches_everything():
    caught = 0
    while caught < 2:
        try:
            endless(0)
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
