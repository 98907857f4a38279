"""What stands at the top of a student's page: each exercise with its score, and what to look at first."""

from dataclasses import dataclass
from typing import Any

from ..course import CHECK_PREFIX
from ..report import NOT_WRITTEN

NO_ANSWER = "No response."
"""nbgrader's own comment on a cell that was left as it was released: the verdict says so too."""
LINES = 3
"""As many mistakes are told at the top; the others are below."""


@dataclass(frozen=True)
class Row:
    """An exercise, or a written question, in the list of contents."""

    name: str
    anchor: str
    score: float
    points: float
    says: str
    """What was wrong, in a sentence; empty where nothing was, and for what a person marks."""
    by_hand: bool
    waiting: bool
    """A person has still to mark it."""
    blank: bool
    """Nothing is written in it, so no person marks it."""

    @property
    def sign(self) -> str:
        """A tick or a cross; a pen for what a person marks."""
        if self.by_hand and not self.blank:
            return "✎"
        return "✓" if self.score >= self.points else "✗"

    @property
    def lost(self) -> float:
        """Points."""
        return self.points - self.score


@dataclass(frozen=True)
class Remark:
    """A person's comment on an answer."""

    answer: str
    anchor: str


@dataclass(frozen=True)
class Contents:
    """The top of a page."""

    rows: list[Row]
    remarks: list[Remark]
    damaged: bool
    """The file could not be read: the page is one note, and what people wrote about it."""

    @property
    def first(self) -> list[Row]:
        """What to look at first: the mistakes that cost most before what is not written, in the notebook's order."""
        wrong = (row for row in self.rows if row.says)
        dearest = sorted(wrong, key=lambda row: (NOT_WRITTEN in row.says, -row.lost))[:LINES]
        return [row for row in self.rows if row in dearest]

    @property
    def further(self) -> int:
        """How many more have something wrong."""
        return sum(bool(row.says) for row in self.rows) - len(self.first)


def contents(notebook: Any) -> Contents:
    """The contents of a marked notebook whose cells have their scores and comments."""
    about = [(cell, cell.metadata["nbgrader"]) for cell in notebook.cells if "nbgrader" in cell.metadata]
    return Contents(
        rows=[_row(cell, its) for cell, its in about if its["grade"]],
        remarks=[Remark(its["grade_id"], f"comment-{its['grade_id']}") for _, its in about if is_remark(its)],
        damaged="damaged" in notebook.metadata.get("autograder", {}),
    )


def is_remark(about: Any) -> bool:
    """Whether a person has commented on the cell that nbgrader knows this about."""
    return about.get("comment") not in (None, "", NO_ANSWER)


def _row(cell: Any, about: Any) -> Row:
    says = next((one.metadata["says"] for one in cell.get("outputs", []) if "says" in one.get("metadata", {})), "")
    name, score, points = about["grade_id"], about.get("score") or 0.0, about["points"]
    return Row(
        name.removeprefix(CHECK_PREFIX),
        name,
        score,
        points,
        says,
        by_hand=bool(about["solution"]),
        waiting=about.get("waiting", False),
        blank=about.get("blank", False),
    )
