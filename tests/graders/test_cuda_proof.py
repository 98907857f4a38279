"""The comparison of grades on two devices, without a GPU: it must see each difference, and try all that is known."""

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace

from autograder import catalogue, course
from benchmarks.cuda_cases import CASES, UNIT
from benchmarks.cuda_page import page
from benchmarks.cuda_proof import Found, Notebook, differences, notebooks
from tests import REPOSITORY

MISTAKE = catalogue.misconceptions(UNIT)["weights_ignored"]


def test_every_known_answer_is_in_one_notebook():
    tried = Counter((one.unit, entry.caught_by, entry.name) for one in notebooks() for entry in one.known.values())
    known = [
        (unit, entry.caught_by, entry.name)
        for unit in course.unit_names()
        for entry in (*catalogue.misconceptions(unit).values(), *catalogue.right_answers(unit).values())
    ]
    assert tried == Counter(known)
    assert max(tried.values()) == 1


def test_what_differs_is_said(grading_process):
    right = Notebook(UNIT, {})
    wrong = Notebook(UNIT, {"context_vector": MISTAKE})
    reports = [grading_process.grade("one.ipynb", one.content, UNIT) for one in (right, wrong)]
    assert not list(differences(right, reports[0], reports[0]))
    ((said, of_device),) = differences(wrong, *reports)
    assert not of_device
    assert said.startswith(f"| `{UNIT}` | `context_vector` | `weights_ignored` | passed, ")
    assert said.endswith(" points, `weights_ignored` |")
    found = Found("one", "2.13.0+cpu", "2.13.0", differ=[said])
    assert said in page(found, (1, 1))
    left = Notebook(UNIT, {"context_vector": replace(MISTAKE, kind="device")})  # it cannot run on a GPU
    assert [of_device for _, of_device in differences(left, *reports)] == [True]
    assert [of_device for _, of_device in differences(left, *reversed(reports))] == [False]


def test_a_case_that_comes_to_something_else_is_no_success(grading_process):
    honest, wrong = (
        grading_process.grade("one.ipynb", Notebook(UNIT, names).content, UNIT)
        for names in ({}, {"context_vector": MISTAKE})
    )
    for case in CASES:
        assert case.problem(honest, honest) == "lost: nothing"
        assert case.problem(wrong, honest).startswith("failed: ")


def test_where_there_is_no_gpu_it_says_so():
    hidden = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}  # or it would be proved here, where there is one
    command = [sys.executable, "-m", "benchmarks.cuda_proof"]
    run = subprocess.run(command, cwd=REPOSITORY, env=hidden, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (2, "")
    assert "There is no CUDA device here" in run.stdout
