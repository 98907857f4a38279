"""The tests of the kit, and of the course in this repository."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
SOURCE = REPOSITORY / "source"
RELEASE = REPOSITORY / "release"
CHECK = "attention_check"
"""The module that this course's notebooks import their check from."""

LEFT_ALONE: Any = SimpleNamespace(restore=lambda: None, reset=lambda: None)
"""For a worker's service in the tests' own process, whose global switches and streams the tests need."""
