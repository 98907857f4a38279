"""The tests of the kit, and of the course in this repository."""

import hashlib
from pathlib import Path
from typing import Any

from autograder.student_check.unit_data import data_file, read_unit

TESTS = Path(__file__).resolve().parent
REPOSITORY = TESTS.parent
SOURCE = REPOSITORY / "source"
RELEASE = REPOSITORY / "release"
CHECK = "attention_check"
"""The module that this course's notebooks import their check from."""


def released_data(unit: str) -> dict[str, Any]:
    """Return the unit's data that students get: change nothing in it."""
    return read_unit(RELEASE / unit / data_file(unit))


def files(folder: Path) -> set[tuple[str, str]]:
    """Return each file of a folder with its digest, except the lock that every run leaves."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != ".grading.lock"]
    return {(str(path.relative_to(folder)), hashlib.sha256(path.read_bytes()).hexdigest()[:12]) for path in paths}
