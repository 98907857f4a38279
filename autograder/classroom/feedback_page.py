"""The feedback page, from the template of nbgrader's generate_feedback, without doing the same work for every page.

For each page nbgrader builds the exporter and its templates again, opens the gradebook, validates the notebook that it
has written itself, and parses the page again to give images alternative texts. The pages are equal in content.
"""

import re
from functools import cache
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup
from jinja2.runtime import Context, new_context
from nbconvert.exporters import HTMLExporter
from nbgrader import utils
from nbgrader.converters import GenerateFeedback
from traitlets.config import Config

from ..course.truncation import truncate_for_page
from ..formatting.client import Formatter
from ..formatting.page import PageFormatter
from ..gradebook.clean_notebook import released
from ..gradebook.entry import Shown
from ..reports.page_filters import filters
from . import whole_files

_BARE_IMAGE = re.compile(r"<img\b(?![^>]*\balt=)")


def page_path(directory: Any, unit: str, student: str) -> Path:
    """The path of a student's page. directory: the course, as nbgrader has it."""
    return Path(directory.format_path(directory.feedback_directory, student, unit)) / f"{unit}.html"


class FeedbackPages:
    """The pages `feedback/<student>/<unit>/<unit>.html`."""

    def __init__(self, directory: Any, unit: str, formatter: Formatter) -> None:
        self._unit = unit
        self._directory = directory
        converter = GenerateFeedback(coursedir=directory, config=directory.config)
        converter.update_config(Config(HTMLExporter={"template_name": "feedback"}))  # as nbgrader's API does
        self._mode = int(str(converter.permissions), 8)
        empty, texts = released(unit, Path(directory.root)), PageFormatter(formatter)
        self._exporter = _Exporter(empty, texts, parent=converter, config=converter.config)

    def put(self, student: str, node: Any, shown: Shown) -> None:
        """Writes the page of a marked notebook, after putting scores and comments into it; raises OSError."""
        for cell in node.cells:
            about = cell.metadata.get("nbgrader", {})
            if utils.is_solution(cell):
                about["comment"] = shown.comments[about["grade_id"]]
            if utils.is_grade(cell):
                about["score"] = shown.scores[about["grade_id"]]
                about["points"] = shown.points[about["grade_id"]]
                about["waiting"] = about["grade_id"] in shown.waiting
                about["blank"] = about["grade_id"] in shown.blank
        page = self._exporter.page(
            node,
            self._directory.format_path(self._directory.autograded_directory, student, self._unit),
            notebook=self._unit,
            assignment=self._unit,
            student=student,
            score=shown.score - shown.late_penalty,
            max_score=shown.max_score,
            late_penalty=shown.late_penalty,
            is_time_unresolved=shown.is_time_unresolved,
        )
        path = page_path(self._directory, self._unit, student)
        whole_files.fill(path.parent, {path.name: page.encode()}, self._mode)


class _Exporter(HTMLExporter):
    """nbconvert's exporter, kept for all pages of one unit: their notebooks all have the release's metadata."""

    def __init__(self, empty: Any, texts: PageFormatter, **settings: Any) -> None:
        """empty: the released notebook, whose cells are taken out."""
        super().__init__(**settings)
        empty.cells = []
        nobody = {"notebook": "", "score": 0.0, "max_score": 0.0, "late_penalty": 0.0, "is_time_unresolved": False}
        _, self._resources = self.from_notebook_node(empty, {"nbgrader": nobody})  # sets all filters
        self._resources["include_css"] = cache(self._resources["include_css"])
        self.environment.filters.update(filters(lambda: texts))
        self.environment.context_class = _SameBlocks
        self._texts = texts

    def page(self, node: Any, folder: str, **about: Any) -> str:
        """The page of a notebook that has its scores and comments; `about` is what nbgrader's template needs.

        folder: where the files of its pictures are.
        """
        truncate_for_page(node)
        self._texts.begin()
        metadata = {**self._resources["metadata"], "path": folder}
        filled: str = self.template.render(
            nb=node, resources={**self._resources, "nbgrader": about, "metadata": metadata}
        )
        page = filled.lstrip("\r\n")
        return _with_alternative_texts(page) if _BARE_IMAGE.search(page) else page


class _SameBlocks(Context):
    """Copies no list of blocks for each cell, as no cell adds one: a fifth of the time that a page takes."""

    def derived(self, locals: dict[str, Any] | None = None) -> Context:
        context = new_context(self.environment, self.name, {}, self.get_all(), True, None, locals)
        context.eval_ctx = self.eval_ctx
        context.blocks = self.blocks
        return context


def _with_alternative_texts(page: str) -> str:
    """The page with a text for screen readers on every image that has none, as nbconvert does on every page."""
    soup = BeautifulSoup(page, "html.parser")
    for image in soup.select("img:not([alt])"):
        image["alt"] = "No description has been provided for this image"
    return str(soup)
