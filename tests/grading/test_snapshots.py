"""An exercise is judged as it stood when its check cell had run, or at the notebook's end if that is better."""

import functools

import pytest

from autograder import catalogue
from autograder.sandbox.worker.cells import Snapshots
from tests import typed

UNIT = "self_attention"
ANSWER = catalogue.solutions(UNIT)["scaled_softmax"].source()
A_CLASS = catalogue.solutions(UNIT)["SelfAttention_v1"].source()
USES_A_HELPER = "def scaled_softmax(scores, d_k):\n    return helper(scores / d_k**0.5)"
HELPER = "def helper(x):\n    return torch.softmax(x, dim=-1)"
RIGHT = typed.alone(UNIT, scaled_softmax=ANSWER, SelfAttention_v1=A_CLASS)
BOTH = ("scaled_softmax", "SelfAttention_v1")


@pytest.fixture
def judged(grading_process):
    """Status and note of each exercise of a notebook."""

    def judged(content, *exercises):
        report = grading_process.grade("judged.ipynb", content, UNIT)
        found = [report.exercise(name) for name in exercises]
        return [one.status for one in found], [one.note for one in found]

    return judged


STORED = typed.stored("snapshots")
LATER = STORED["later"]


@pytest.mark.parametrize("later", LATER.values(), ids=LATER)
def test_later_cells_do_not_take_away_what_was_right_at_its_check(judged, later):
    assert judged(typed.with_cells(RIGHT, *later), *BOTH) == (["passed", "passed"], ["", ""])


def test_the_end_counts_if_it_is_better_and_the_cell_is_named(judged):
    content = typed.with_cells(typed.edited(RIGHT, scaled_softmax=USES_A_HELPER), "x = 1", HELPER)
    (status, _), (note, _) = judged(content, *BOTH)
    assert status == "passed"
    assert note.startswith("After its check you changed `helper` in the cell `number ")
    assert note.endswith("The version at the end of the notebook, where it earns more points, is graded.")


def test_an_answer_below_its_check_counts(judged):
    content = typed.with_cells(typed.edited(RIGHT, scaled_softmax=None), ANSWER)
    assert judged(content, "scaled_softmax")[0] == ["passed"]


def test_without_a_check_cell_the_end_counts(judged):
    unchecked = typed.edited(RIGHT, test_scaled_softmax=None)
    wrong = "def scaled_softmax(*args): pass"
    assert judged(typed.with_cells(unchecked, wrong), *BOTH) == (["failed", "passed"], ["", ""])


def test_what_is_wrong_at_both_moments_is_judged_at_its_check(judged):
    wrong = catalogue.misconceptions(UNIT)["divided_by_d_k"].source()
    content = typed.with_cells(typed.edited(RIGHT, scaled_softmax=wrong), "torch = None")
    (status, _), (note, _) = judged(content, *BOTH)
    assert status == "failed"
    assert note.endswith("The version at its check is graded.")


def test_a_mistake_at_its_check_is_named_although_a_later_cell_ends_everything(grading_process):
    wrong = catalogue.misconceptions(UNIT)["divided_by_d_k"]
    content = typed.with_cells(typed.edited(RIGHT, scaled_softmax=wrong.source()), "%reset -f")
    exercise = grading_process.grade("reset.ipynb", content, UNIT).exercise("scaled_softmax")
    assert exercise.diagnosis.name == "divided_by_d_k"
    assert exercise.whereabouts is not None


def test_no_cell_runs_after_a_hidden_test(grading_process):
    """A cell that runs after a hidden test could print the hidden inputs."""
    records = ANSWER.replace("\n    return", "\n    seen.append(scores)\n    return", 1)
    assert records != ANSWER
    content = typed.with_cells(typed.edited(RIGHT, scaled_softmax=f"seen = []\n{records}"), "print(len(seen))")
    report = grading_process.grade("records.ipynb", content, UNIT)
    assert report.exercise("scaled_softmax").status == "passed"
    assert report.cells[-1].printed == "0\n"


def test_the_end_is_judged_where_nothing_of_the_check_is_remembered(judged):
    """An answer must not store the requests at its check and then be quick or small when they are repeated."""
    counts = f"seen = []\n{USES_A_HELPER}".replace("    return", "    seen.append(scores)\n    return")
    is_first = "def helper(x, n=[]):\n    n.append(len(seen))\n    return x.softmax(-1) if n[0] == 1 else x"
    content = typed.with_cells(typed.edited(RIGHT, scaled_softmax=counts), is_first)
    assert judged(content, "scaled_softmax")[0] == ["passed"]


def test_a_cell_that_ends_python_keeps_no_check_from_counting(judged):
    content = typed.with_cells(RIGHT, "import os\nos._exit(1)", after="test_scaled_softmax")
    assert judged(typed.with_cells(content, "%reset -f"), *BOTH)[0] == ["passed", "passed"]


def namespace():
    """A namespace as a notebook's, in which these cells ran."""
    names = {"__name__": "__main__", "functools": functools}
    return names, lambda source: exec(source, names)


REACHES = STORED["reaches"]


@pytest.mark.parametrize(("source", "reaches"), REACHES.values(), ids=REACHES)
def test_names_that_an_answer_reaches(source, reaches):
    names, run = namespace()
    snapshots = Snapshots(names)
    run(f"a = b = 1\n{source}")
    snapshots.take(["f"])
    run("b = 2")
    snapshots.note_changes("first")
    assert snapshots.changes("f") == []
    run("a = 2")
    snapshots.note_changes("second")
    assert snapshots.changes("f") == ([("a", "second")] if reaches else [])


def test_the_copys_contents_are_put_back_and_then_the_ends():
    names, run = namespace()
    snapshots = Snapshots(names)
    run("a = 1\ndef f(): return a")
    snapshots.take(["f"])
    run("a = 2\nb = 3\ndel f")
    snapshots.put_back("f")
    assert (names["f"](), "b" in names) == (1, False)
    for exercise in (None, "without a check"):
        snapshots.put_back(exercise)
        assert (names["a"], names["b"], "f" in names) == (2, 3, False)
