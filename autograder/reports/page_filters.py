"""Filters that make nbconvert's pages of students' notebooks safe and bounded, set in nbgrader_config.py.

nbgrader's generate_feedback fills its template with these filters, and so does formgrader, inside the Jupyter server.
nbconvert deep-copies its settings, so the filters are plain functions that share one formatter.
"""

import atexit
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import nbgrader
from nbconvert.preprocessors import Preprocessor
from nbgrader.utils import compute_checksum

from .. import course
from ..course.nodes import truncate_for_page
from ..course.settings import Settings, load
from ..formatting.client import Formatter
from ..formatting.page import PageFormatter
from ..formatting.pictures import embedded
from ..report import NOT_WRITTEN
from .graded_notebook import message_html

PAGE = "marked.html.j2"
"""The template of a page, next to nbgrader's `index.html.j2`, which it extends."""
_NO_ANSWER = "No response."
"""nbgrader's own comment on an unchanged cell, which is not shown as a person's."""
_MOST_FIRST = 3
"""Maximum number of mistakes at the top of a page; the others are below."""
_ESCAPE_SEQUENCE = re.compile(r"\x1b\[[0-9;:?]*[@-~]")


@dataclass(frozen=True)
class Row:
    """An exercise, or a written question, in a page's table of contents."""

    name: str
    anchor: str
    score: float
    points: float
    says: str
    """The mistake, in a sentence; empty if there is none, and for written questions."""
    by_hand: bool
    waiting: bool
    """True if a person has not graded it yet."""
    blank: bool
    """True if nothing is written in it, so no person grades it."""

    @property
    def sign(self) -> str:
        """A tick or a cross; a pen for a question that a person grades."""
        if self.by_hand and not self.blank:
            return "✎"
        return "✓" if self.score >= self.points else "✗"


def contents(notebook: Any) -> dict[str, Any]:
    """Return the top of a page: each exercise with its score, and the mistakes to read first.

    rows: the table of contents. first: the mistakes that cost most, then exercises that are not written, in the
    notebook's order. further: the number of the other mistakes. remarks: the cells with a person's comment.
    damaged: True if the file could not be read, so that the page is one note and what people wrote about it.
    notebook: graded, its cells have their scores and comments.
    """
    cells = [cell for cell in notebook.cells if "nbgrader" in cell.metadata]
    rows = [_row(cell) for cell in cells if cell.metadata["nbgrader"]["grade"]]
    wrong = [row for row in rows if row.says]
    dearest = sorted(wrong, key=lambda row: (NOT_WRITTEN in row.says, row.score - row.points))[:_MOST_FIRST]
    return {
        "rows": rows,
        "first": [row for row in wrong if row in dearest],
        "further": len(wrong) - len(dearest),
        "remarks": [_remark(cell) for cell in cells if is_remark(cell.metadata["nbgrader"])],
        "damaged": "damaged" in notebook.metadata.get("autograder", {}),
    }


def _remark(cell: Any) -> dict[str, str]:
    """Return the name of a cell with a person's comment, and the anchor that nbgrader's template gives the comment."""
    name = cell.metadata["nbgrader"]["grade_id"]
    return {"answer": name, "anchor": f"comment-{name}"}


def _row(cell: Any) -> Row:
    about = cell.metadata["nbgrader"]
    says = [output.metadata["says"] for output in cell.get("outputs", []) if "says" in output.get("metadata", {})]
    return Row(
        about["grade_id"].removeprefix(course.CHECK_PREFIX), about["grade_id"],
        about.get("score") or 0.0, about["points"], says[0] if says else "",
        by_hand=bool(about["solution"]), waiting=about.get("waiting", False), blank=about.get("blank", False),
    )  # fmt: skip


def is_remark(about: Any) -> bool:
    """Return whether a person has commented on a cell. about: nbgrader's metadata of the cell."""
    return about.get("comment") not in (None, "", _NO_ANSWER)


def formatter(settings: Settings) -> Formatter:
    """Return a formatter, not yet started, confined as these settings say."""
    isolation = settings.isolation
    return Formatter(settings.pages, isolation.require, trust_submissions=isolation.trust_submissions)


def templates() -> list[str]:
    """Return the folders of nbconvert's templates for these pages: ours, and nbgrader's."""
    theirs = Path(nbgrader.__file__).parent / "server_extensions" / "formgrader" / "templates"
    return [str(Path(__file__).parent / "templates"), str(theirs)]


def printed(text: str) -> str:
    """Return a cell's output as text; nbconvert's own filter turns escape sequences into markup."""
    return escape(_ESCAPE_SEQUENCE.sub("", text))


def is_untouched(cell: Any) -> bool:
    """Return whether a cell is unchanged since its release."""
    return bool(cell.metadata["nbgrader"].get("checksum") == compute_checksum(cell))


def with_pictures(html: str, resources: Any) -> str:
    """Return the HTML of a feedback page's notebook with the pictures in it: the page is sent without other files."""
    return embedded(html, Path(resources["metadata"]["path"]))


def model_answer(question: str, unit: str) -> str:
    """Return the markdown of a written question's answer in the instructor's notebook; empty if there is none."""
    try:
        return course.unit(unit).model_answers.get(question, "")
    except course.UnknownUnit:
        return ""


def filters(page: Callable[[], PageFormatter]) -> dict[str, Any]:
    """Return nbconvert's filters that handle what a student wrote, and those of our templates, by name.

    page: returns the formatter; called for each text, so that the settings hold nothing that cannot be copied.
    """
    return {
        "markdown2html": lambda source: page().markdown(source),
        "highlight_code": lambda source, language=None, metadata=None: page().code(source),
        "ansi2html": printed,
        "clean_html": lambda source: page().raw(source),  # for raw cells
        "strip_files_prefix": lambda html: html,  # nbconvert's would search, for hours, for links that IPython 1 made
        "contents": contents,
        "is_remark": is_remark,
        "is_untouched": is_untouched,
        "with_pictures": with_pictures,
        "sentence": message_html,
        "model_answer": model_answer,
    }


@cache
def of_this_process() -> PageFormatter:
    """Return the formatter of the pages that nbgrader's own converters and formgrader make in this process."""
    shared = formatter(load())
    atexit.register(shared.close)
    return PageFormatter(shared)


class PageBegins(Preprocessor):
    """Runs before a page is made: truncates its texts, and gives the page its own budget."""

    enabled = True

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        of_this_process().begin()
        truncate_for_page(nb)
        return nb, resources
