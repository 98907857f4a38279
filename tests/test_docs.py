"""What the pages in docs/ say is so."""

import typing

import pytest

from autograder.report import ExerciseStatus, SubmissionStatus
from tests import REPOSITORY

TROUBLE = (REPOSITORY / "docs" / "troubleshooting.md").read_text()


@pytest.mark.parametrize("status", sorted({*typing.get_args(SubmissionStatus), *typing.get_args(ExerciseStatus)}))
def test_each_status_is_explained(status):
    first_cells = [line.split("|")[1] for line in TROUBLE.splitlines() if line.startswith("|")]
    assert any(f"`{status}`" in cell for cell in first_cells)
