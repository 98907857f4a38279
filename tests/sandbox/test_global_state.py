"""A line outside of the answers that changes a global switch of Python or of a library costs no points.

Each run tries a third of the switches; `pytest --every` tries all.
"""

import pytest

from autograder import catalogue
from tests import sampling, typed

UNIT = "self_attention"
IMPORTS = (
    "import gc, locale, os, random, signal, sys, threading, time, warnings\nimport matplotlib\nimport numpy as np\n"
)

STORED = typed.stored("global_state")
LINES = STORED["lines"]
ANSWER = STORED["answer"]
"""Leans on what the lines turn."""


@pytest.fixture(scope="module")
def notebook():
    a_class = catalogue.solutions(UNIT)["SelfAttention_v1"].source()
    return typed.alone(UNIT, scaled_softmax=IMPORTS + ANSWER, SelfAttention_v1=a_class)


@pytest.mark.parametrize("name", sampling.thinned(LINES, 3))
def test_a_global_switch_takes_no_points(grading_process, notebook, name):
    cells = [f"{IMPORTS}{line}" for line in LINES[name]]
    report = grading_process.grade("switched.ipynb", typed.with_cells(notebook, *cells), UNIT)
    assert [report.exercise(name).status for name in ("scaled_softmax", "SelfAttention_v1")] == ["passed"] * 2
