"""Pages of students' notebooks and other pages: their templates, and the filters that make them safe and bounded.

nbgrader's generate_feedback fills its template with these filters, which nbgrader_config.py sets. So does formgrader,
inside the Jupyter server. nbconvert deep-copies its settings, so the filters are plain functions that share one
formatter.
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
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from nbconvert.preprocessors import Preprocessor
from nbgrader.utils import compute_checksum

from .. import course
from ..course.nodes import NOTE, truncate_for_page
from ..course.settings import Settings, load
from ..formatting.client import Formatter, PageFormatter
from ..formatting.fragments import embedded
from .graded_notebook import UNWRITTEN, USES_WRONG_VERDICT, message_html, without_headline

TEMPLATES = Path(__file__).parent / "templates"
"""The templates; those in `base` are shared by all pages, also by nbconvert's."""


@cache
def environment(folder: Path) -> Environment:
    """Return an environment with the templates in a folder and the shared ones. All text in a page is escaped.

    Filter `prose`: one of the autograder's messages as HTML.
    """
    pages = Environment(
        loader=FileSystemLoader([folder, TEMPLATES / "base"]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters["prose"] = lambda text: Markup(message_html(text))
    return pages


PAGE = "marked.html.j2"
"""The template of a page, which is used instead of nbgrader's `index.html.j2`."""
_NO_ANSWER = "No response."
"""nbgrader's own comment on a cell that was left as it was released: the verdict says so too."""
_NO_VERDICT = "not all points"
"""Verdict on a cell that was graded before verdicts were stored, or by another autograder."""
NOISE = 1e-6
"""Points below which two scores are equal: rounding of binary fractions adds less."""
_ESCAPE_SEQUENCE = re.compile(r"\x1b\[[0-9;:?]*[@-~]")


@dataclass(frozen=True)
class Row:
    """An exercise, or a written question, on a student's page."""

    name: str
    anchor: str
    """The name of its grade cell."""
    score: float
    points: float
    of_tests: str
    """The hidden tests' verdict in words; empty for what a person grades."""
    html: str
    """The feedback, without its first line."""
    waiting: bool
    """True if a person grades it and has not done so yet."""
    blank: bool
    """True if nothing is written in it, so no person grades it."""

    @property
    def is_right(self) -> bool:
        """True if it has all of its points."""
        return self.score >= self.points - NOISE

    @property
    def is_wrong(self) -> bool:
        """True if something is written for it, hidden tests grade it, and it has less than all of its points."""
        return bool(self.of_tests) and not self.is_right and self.of_tests != UNWRITTEN

    @property
    def verdict(self) -> str:
        """The verdict in words, which fit the points also if a person has changed them."""
        if self.blank:
            return "blank"
        if not self.of_tests:
            return "not graded yet" if self.waiting else "graded by a person"
        if self.is_right:
            return "right"
        return "graded by a person" if self.of_tests == "right" else self.of_tests

    @property
    def style(self) -> str:
        """Class of the verdict in the stylesheet."""
        if self.is_wrong or self.blank:
            return "wrong"
        return "right" if self.of_tests and self.is_right else "neutral"

    @property
    def sign(self) -> str:
        """A tick or a cross; a pen for what a person grades."""
        if not (self.of_tests or self.blank):
            return "✎"
        return {"right": "✓", "wrong": "✗", "neutral": "–"}[self.style]


def contents(notebook: Any) -> dict[str, Any]:
    """Return the parts of a page above the notebook.

    rows: all exercises and written questions, in the notebook's order. wrong: those without all points; those that
    call another wrong one come last, and of the others those that lost most points first; none if the file could not be
    read. waiting: True if a person has something to grade. remarks: people's
    comments, with the names of the cells. note: the autograder's note, as markdown; may be empty. damaged: True if the
    file could not be read.
    notebook: graded, its cells have their scores and comments.
    """
    cells = [cell for cell in notebook.cells if "nbgrader" in cell.metadata]
    rows = [row_of(cell) for cell in cells if cell.metadata["nbgrader"]["grade"]]
    damaged = "damaged" in notebook.metadata.get("autograder", {})
    wrong = [] if damaged else [row for row in rows if row.is_wrong]
    abouts = [cell.metadata["nbgrader"] for cell in cells]
    first = notebook.cells[0] if notebook.cells else {}
    return {
        "rows": rows,
        "wrong": sorted(wrong, key=lambda row: (row.of_tests == USES_WRONG_VERDICT, row.score - row.points)),
        "waiting": any(row.waiting for row in rows),
        "remarks": [{"answer": one["grade_id"], "comment": one["comment"]} for one in abouts if is_remark(one)],
        "note": first["source"] if first.get("id") == NOTE else "",
        "damaged": damaged,
    }


def row_of(cell: Any) -> Row:
    """Return what a page says of a grade cell, which has its score."""
    about = cell.metadata["nbgrader"]
    feedback = next((output for output in cell.get("outputs", []) if "text/html" in output.get("data", {})), None)
    return Row(
        about["grade_id"].removeprefix(course.CHECK_PREFIX), about["grade_id"],
        about.get("score") or 0.0, about["points"],
        "" if about["solution"] else feedback.metadata.get("verdict", _NO_VERDICT) if feedback else _NO_VERDICT,
        without_headline(feedback.data["text/html"]) if feedback else "",
        about.get("waiting", False), about.get("blank", False),
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
        "row": row_of,
        "is_untouched": is_untouched,
        "with_pictures": with_pictures,
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
