"""Points for memory, operations and projected rows are earned by saving them, and by nothing else.

`hostile/unsaved` holds answers that spend all of it and hide that: the head of each file describes its trick.
`answers/saved` holds right answers, a folder an exercise, by people who had seen only the exercise texts.

Each run tries half of the first; `pytest --every` tries all.
"""

import re

import pytest

from autograder import catalogue
from tests import TESTS, sampling
from tests.typed import alone, with_cells

SAVED_FOLDER = TESTS / "answers" / "saved"
UNSAVED_FOLDER = TESTS / "hostile" / "unsaved"


def head(file):
    """The file's text, and what its head says."""
    text = file.read_text()
    return text, dict(re.findall(r"^# ([\w ]+): (.+)$", text, re.MULTILINE))


def marked(grading_process, file):
    text, said = head(file)
    exercises = said["exercises"].split()
    report = grading_process.grade(file.name, alone(said["unit"], **dict.fromkeys(exercises, text)), said["unit"])
    return {test.name: test for name in exercises for test in report.exercise(name).tests}, said


UNSAVED = sampling.thinned(sorted(UNSAVED_FOLDER.glob("*.py")), 2, by=lambda file: file.stem)


@pytest.mark.parametrize("file", UNSAVED, ids=lambda file: file.stem)
def test_what_saves_nothing_earns_nothing(grading_process, file):
    tests, said = marked(grading_process, file)
    costs = said["earns nothing"].split()
    earned = {name: tests[name].points for name in costs if tests[name].points}
    assert not earned
    values = [test for name, test in tests.items() if name not in costs]
    right = sum(test.max_points for test in values if test.outcome == "passed")
    assert right > 0.8 * sum(test.max_points for test in values), "its results are right"


def test_no_message_names_an_operator_of_pytorch(grading_process):
    for name in ("by_numpy", "a_custom_operator", "in_a_thread"):
        tests, said = marked(grading_process, UNSAVED_FOLDER / f"{name}.py")
        for cost in said["earns nothing"].split():
            assert not re.search(r"aten|own::|\b_\w+", tests[cost].message)


SAVED = {
    "efficient_attention": ("tiled_attention", "linear_attention", "online_softmax"),
    "inference": ("CachedMultiHeadAttention", "KVCache"),
}


def in_notebooks():
    """By unit, notebooks that have together every file: each has one of each exercise, in turn."""
    for unit, exercises in SAVED.items():
        files = [sorted((SAVED_FOLDER / name).glob("*.py")) for name in exercises]
        for number in range(max(map(len, files))):
            answers = dict(zip(exercises, (its[number % len(its)] for its in files), strict=True))
            yield pytest.param(unit, answers, id="-".join(file.stem for file in answers.values()))


@pytest.mark.parametrize(("unit", "answers"), list(in_notebooks()))
def test_what_saves_keeps_all_points(grading_process, unit, answers):
    notebook = alone(unit, **{name: file.read_text() for name, file in answers.items()})
    report = grading_process.grade("saved.ipynb", notebook, unit)
    tests = [test for name in answers for test in report.exercise(name).tests]
    assert {test.name: test.message for test in tests if test.outcome != "passed"} == {}


CLOCK = """
import threading, time

def _tick():
    while True:
        time.sleep(0.01)
        print("seconds:", round(sum(range(20_000)) * 0 + time.monotonic(), 1))

threading.Thread(target=_tick, daemon=True).start()
"""


def test_a_clock_in_another_thread_costs_no_points(grading_process):
    unit = "efficient_attention"
    names = ("tiled_attention", "linear_attention", "online_softmax")
    sources = {name: catalogue.solutions(unit)[name].source() for name in names}
    report = grading_process.grade("clock.ipynb", with_cells(alone(unit, **sources), CLOCK, after="setup"), unit)
    tests = [test for name in names for test in report.exercise(name).tests]
    assert {test.name: test.message for test in tests if test.outcome != "passed"} == {}


HOLES_IN_MEMORY = """
def online_softmax(blocks):
    maxima, totals = [], []
    for block in blocks:
        maxima += [block.max(), torch.zeros(())]
        shift = block - torch.where(maxima[-2] == -torch.inf, 0.0, maxima[-2])
        totals += [torch.exp(shift).sum(), torch.zeros(())]
    maxima, totals = torch.stack(maxima[::2]), torch.stack(totals[::2])
    maximum = maxima.max()
    safe = torch.where(maximum == -torch.inf, 0.0, maximum)
    return maximum, (totals * torch.exp(maxima - safe)).sum()
"""
"""Keeps a few numbers of each block. Kept between freed blocks, they can make the heap as large as all blocks."""


def test_holes_in_memory_are_not_memory_that_is_kept(grading_process):
    notebook = alone("efficient_attention", online_softmax=HOLES_IN_MEMORY)
    for _ in range(5):  # how large the heap becomes is chance
        tests = grading_process.grade("holes.ipynb", notebook, "efficient_attention").exercise("online_softmax").tests
        assert {test.name: test.message for test in tests if test.outcome != "passed"} == {}


ENDS_PYTHON = """
import os, resource
if resource.getrlimit(resource.RLIMIT_FSIZE)[0] <= 4096:  # in a worker with little memory
    os._exit(1)
"""


def test_cells_that_end_python_keep_no_test_from_being_tried(grading_process):
    """No count decides in place of a large call that the notebook's own cells prevent."""
    unit = "efficient_attention"
    notebook = with_cells(alone(unit, online_softmax=catalogue.solutions(unit)["online_softmax"].source()),
                          *[ENDS_PYTHON] * 3)  # fmt: skip
    tests = grading_process.grade("ends.ipynb", notebook, unit).exercise("online_softmax").tests
    failed = {test.name: test.message for test in tests if test.outcome != "passed"}
    assert set(failed) == {"test_keeps_no_blocks", "test_one_pass"}
    assert all("its cells ended Python" in message for message in failed.values())


@pytest.mark.parametrize("mistake", ["blocks_walked_twice", "blocks_indexed"])
def test_what_fails_in_little_memory_too_is_diagnosed(grading_process, mistake):
    """The catalogue's answer is not run in little memory, where this one gives a wrong value or raises an error."""
    code = catalogue.misconceptions("efficient_attention")[mistake].source()
    notebook = alone("efficient_attention", online_softmax=f"import torch\n{code}")
    exercise = grading_process.grade("typed.ipynb", notebook, "efficient_attention").exercise("online_softmax")
    assert "test_one_pass" in [test.name for test in exercise.tests if test.outcome == "failed"]
    assert exercise.diagnosis.names == mistake
