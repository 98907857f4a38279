"""Makes nbconvert's pages of students' notebooks safe and bounded: filters for `HTMLExporter` in nbgrader_config.py.

nbgrader's generate_feedback fills its template with these filters, and so does formgrader, inside the Jupyter server.
nbconvert deep-copies its settings, so the filters are plain functions that share one formatter.
"""

import atexit
import re
from collections.abc import Callable
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import nbgrader
from nbconvert.preprocessors import Preprocessor
from nbgrader.utils import compute_checksum

from ..course.settings import Settings, load
from ..formatting.client import Formatter
from ..formatting.page import PageFormatter
from ..formatting.pictures import embedded
from .contents import contents, is_remark
from .grade_cell import prose
from .model_answer import model_answer
from .shortened import shorten

_ESCAPE_SEQUENCE = re.compile(r"\x1b\[[0-9;:?]*[@-~]")


def formatter(settings: Settings) -> Formatter:
    """A formatter, not yet started, confined as these settings say."""
    isolation = settings.isolation
    return Formatter(settings.pages, isolation.require, trust_submissions=isolation.trust_submissions)


PAGE = "marked.html.j2"
"""The template of a page, beside nbgrader's `index.html.j2`, which it extends."""


def templates() -> list[str]:
    """The folders of nbconvert's templates for these pages: ours, and nbgrader's."""
    theirs = Path(nbgrader.__file__).parent / "server_extensions" / "formgrader" / "templates"
    return [str(Path(__file__).parent / "templates"), str(theirs)]


def printed(text: str) -> str:
    """What a cell printed, as text; nbconvert's own filter turns escape sequences into markup."""
    return escape(_ESCAPE_SEQUENCE.sub("", text))


def is_untouched(cell: Any) -> bool:
    """Return whether a cell is as it was released."""
    return bool(cell.metadata["nbgrader"].get("checksum") == compute_checksum(cell))


def with_pictures(html: str, resources: Any) -> str:
    """Return the HTML of a feedback page's notebook with the pictures in it: the page is sent without other files."""
    return embedded(html, Path(resources["metadata"]["path"]))


def filters(page: Callable[[], PageFormatter]) -> dict[str, Any]:
    """Those of nbconvert's filters, by name, that handle what a student wrote, and our templates' own.

    page: returns the formatter; called for each text, so that the settings hold nothing that cannot be copied.
    """

    def markdown2html(source: str) -> str:
        return page().markdown(source)

    def highlight_code(source: str, language: str | None = None, metadata: Any = None) -> str:
        return page().code(source)

    def clean_html(source: str) -> str:
        return page().raw(source)

    def strip_files_prefix(html: str) -> str:
        """nbconvert's own would search, for hours, for links that IPython 1 made."""
        return html

    return {
        "markdown2html": markdown2html,
        "highlight_code": highlight_code,
        "ansi2html": printed,
        "clean_html": clean_html,  # for raw cells
        "strip_files_prefix": strip_files_prefix,
        "contents": contents,
        "is_remark": is_remark,
        "is_untouched": is_untouched,
        "with_pictures": with_pictures,
        "sentence": prose,
        "model_answer": model_answer,
    }


@cache
def of_this_process() -> PageFormatter:
    """The formatter of pages that nbgrader's own converters and formgrader make in this process."""
    its = formatter(load())
    atexit.register(its.close)
    return PageFormatter(its)


class PageBegins(Preprocessor):
    """Runs before a page is made: cuts what nobody reads, and gives the page its own budget."""

    enabled = True

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        of_this_process().begin()
        shorten(nb)
        return nb, resources
