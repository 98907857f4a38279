"""The tests of the kit, and of the course in this repository."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
SOURCE = REPOSITORY / "source"
RELEASE = REPOSITORY / "release"
CHECK = "attention_check"
"""The module that this course's notebooks import their check from."""
