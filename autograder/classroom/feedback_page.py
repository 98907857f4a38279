"""The feedback page, from the template that nbgrader's generate_feedback fills, with what it repeats done once.

nbgrader makes an exporter and its templates anew for each page, opens the gradebook for each, validates the notebook
it has written itself, and parses the page again to give images a text. The pages are equal in content.
"""

import re
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup
from nbconvert.exporters import HTMLExporter
from nbgrader import utils
from nbgrader.converters import GenerateFeedback
from traitlets.config import Config

from ..nbgrader_plugin.clean_notebook import released
from ..nbgrader_plugin.course_directory import course_directory
from ..nbgrader_plugin.pages import as_it_is, markdown2html
from . import whole_files
from .entry import Shown

_REMEMBERED = 2000
"""Cells' texts: the released ones of a unit, and answers that many students give."""
_MAX_FORMATTED = 200_000
"""Characters of one page, the released cells' among them: the one writer waits for it."""
_BARE_IMAGE = re.compile(r"<img\b(?![^>]*\balt=)")


class FeedbackPages:
    """The pages `feedback/<student>/<unit>/<unit>.html`."""

    def __init__(self, root: Path, unit: str) -> None:
        self._unit = unit
        self._directory = course_directory(root)
        converter = GenerateFeedback(coursedir=self._directory, config=self._directory.config)
        converter.update_config(Config(HTMLExporter={"template_name": "feedback"}))  # as nbgrader's API does
        self._mode = int(str(converter.permissions), 8)
        self._exporter = _Exporter(unit, parent=converter, config=converter.config)

    def path(self, student: str) -> Path:
        """Where the student's page lies."""
        folder = self._directory.format_path(self._directory.feedback_directory, student, self._unit)
        return Path(folder) / f"{self._unit}.html"

    def put(self, student: str, node: Any, shown: Shown) -> None:
        """Writes the page of a marked notebook, into which scores and comments are put; raises OSError."""
        for cell in node.cells:
            about = cell.metadata.get("nbgrader", {})
            if utils.is_solution(cell):
                about["comment"] = shown.comments[about["grade_id"]]
            if utils.is_grade(cell):
                about["score"] = shown.scores[about["grade_id"]]
                about["points"] = shown.points[about["grade_id"]]
        page = self._exporter.page(
            node,
            notebook=self._unit,
            assignment=self._unit,
            student=student,
            score=shown.score - shown.late_penalty,
            max_score=shown.max_score,
            late_penalty=shown.late_penalty,
        )
        path = self.path(student)
        whole_files.fill(path.parent, {path.name: page.encode()}, self._mode)


class _Exporter(HTMLExporter):
    """nbconvert's exporter, kept for all pages of one unit: its notebooks' metadata are the release's."""

    def __init__(self, unit: str, **settings: Any) -> None:
        super().__init__(**settings)
        empty = released(unit)
        empty.cells = []
        nobody = {"notebook": unit, "score": 0.0, "max_score": 0.0, "late_penalty": 0.0}
        _, self._resources = self.from_notebook_node(empty, {"nbgrader": nobody})  # sets all filters
        self._resources["include_css"] = cache(self._resources["include_css"])
        filters = self.environment.filters
        filters["highlight_code"] = self._rationed(_remembering_code(filters["highlight_code"]))
        filters["markdown2html"] = self._rationed(lru_cache(_REMEMBERED)(markdown2html))
        self._left = _MAX_FORMATTED

    def page(self, node: Any, **about: Any) -> str:
        """The page of a notebook that has its scores and comments; `about` is what nbgrader's template asks for."""
        self._left = _MAX_FORMATTED
        filled: str = self.template.render(nb=node, resources={**self._resources, "nbgrader": about})
        page = filled.lstrip("\r\n")
        return _with_alternative_texts(page) if _BARE_IMAGE.search(page) else page

    def _rationed(self, format_cell: Callable[..., str]) -> Callable[..., str]:
        """The filter, as long as there is something left of what is formatted on one page."""

        def formatted(source: str, *arguments: Any, **named: Any) -> str:
            self._left -= len(source)
            return format_cell(source, *arguments, **named) if self._left >= 0 else as_it_is(source)

        return formatted


def _remembering_code(highlight: Callable[..., str]) -> Callable[..., str]:
    @lru_cache(_REMEMBERED)
    def highlighted(source: str, language: str | None, magics: str | None) -> str:
        return highlight(source, language, {"magics_language": magics} if magics else {})

    def highlight_code(source: str, language: str | None = None, metadata: Any = None) -> str:
        return highlighted(source, language, (metadata or {}).get("magics_language"))

    return highlight_code


def _with_alternative_texts(page: str) -> str:
    """As nbconvert does with every page: what a screen reader says of an image that says nothing of itself."""
    soup = BeautifulSoup(page, "html.parser")
    for image in soup.select("img:not([alt])"):
        image["alt"] = "No description has been provided for this image"
    return str(soup)
