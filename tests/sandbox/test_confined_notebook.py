"""Ordinary work of a notebook is possible in the sandbox too: at level A; with `pytest --every` also at B."""

import pytest

from autograder import catalogue
from autograder.course.settings import Isolation, Settings, load
from autograder.pool.grading_pool import GradingProcess
from tests import CHECK, sampling
from tests.typed import solved, stored, with_cells

UNIT = "self_attention"

CELLS = {**stored("confined_cells"), "empty lines": "\n" * 100_000}


@pytest.fixture(scope="module", params=["A", "B"] if sampling.every else ["A"])
def report(request, grading_process):
    """Report on a right notebook that does all this at its end."""
    compiled = f"@torch.compile\n{catalogue.solutions(UNIT)['scaled_softmax'].source()}"
    content = with_cells(solved(UNIT, scaled_softmax=compiled), *CELLS.values())
    if request.param == grading_process.ready.isolation:
        return grading_process.grade("busy.ipynb", content, UNIT)
    with GradingProcess("cpu", Settings(Isolation(request.param), load().limits, check=CHECK)) as other:
        return other.grade("busy.ipynb", content, UNIT)


def test_everything_ran(report):
    assert [cell.message for cell in report.cells if cell.troubled] == []
    assert "did not work" not in "".join(cell.printed for cell in report.cells)


def test_nothing_was_lost(report):
    assert (report.status, report.score) == ("graded", report.max_score)
