"""Graded notebooks and the pages made of them: reports in cells, templates, and filters that make pages safe.

nbgrader's generate_feedback fills its template with these filters, which nbgrader_config.py sets. So does formgrader,
inside the Jupyter server. nbconvert deep-copies its settings, so the filters are plain functions that share one
formatter.
"""

import atexit
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import msgspec
import nbgrader
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from nbconvert.preprocessors import Preprocessor
from nbgrader.utils import compute_checksum

from .. import course
from ..course.cells import ADDED
from ..course.nodes import NOTE, new_cell, new_output, truncate_for_page
from ..course.notebook import cell_name
from ..course.settings import Settings, load
from ..formatting.client import Formatter, PageFormatter
from ..formatting.rendering import embedded
from ..gradebook.clean_notebook import ADDED_TO
from ..report import NOT_WRITTEN, REPORT_FILE, USES_WRONG, CellReport, ExerciseReport, Repair, Report, TestReport

_OUTCOMES = {
    "passed": ("right", "✓"),
    "failed": ("wrong", "✗"),
    "withheld": ("neutral", "–"),
    "not_run": ("neutral", "–"),
    "grader_error": ("warn", "!"),
}
"""Style and sign of a hidden test's outcome."""
_VERDICTS = {
    "passed": "right",
    "failed": "wrong",
    "missing": "not defined",
    "error": "its cell failed",
    "timeout": "timed out",
    "crashed": "crashed",
    "forbidden": "calls what is forbidden",
    "skipped": "not run to its end",
    "grader_error": "our grader failed",
}
USES_WRONG_VERDICT = "calls another exercise that is wrong"
"""Verdict on an exercise whose answer calls another one that is wrong."""
UNWRITTEN = "not written"
"""Verdict on an exercise whose stub is untouched."""
_EDIT_PLACE = "<!-- edit -->"
"""Placeholder in the box on the fault; `show_edits` puts the edit before it."""
_HEADLINE = re.compile(r"<p><b>[^<]*</b></p>")
_TITLES = {
    "graded": "Graded.",
    "cells_failed": "Some cells failed.",
    "timed_out": "A cell or a call in this notebook did not end in time.",
    "crashed": "Something in this notebook ended Python.",
    "damaged": "This file could not be graded.",
    "grader_error": "This notebook could not be graded to the end.",
}
# Anything else between backticks could end the code, or be a formula, because formulas are found in code too.
_CODE = re.compile(r"(`[\w .,()+=@/-]+`)")
_PUNCTUATION = re.compile(r"[!#$%()*+/:<=>?@\[\\\]^_`{|}~]|\.(?=\S)")


def read_report(folder: Path, unit: str) -> Report | None:
    """Return the report in a student's folder of graded notebooks; None unless its notebook is there too."""
    try:
        report = msgspec.json.decode((folder / REPORT_FILE).read_bytes(), type=Report)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return report if (folder / f"{unit}.ipynb").is_file() else None


def write_report(notebook: Any, report: Report) -> None:
    """Fill the outputs of a notebook's cells in place. Scores go into the grade cells and nowhere else."""
    exercises = {course.CHECK_PREFIX + exercise.name: exercise for exercise in report.exercises}
    cells = {cell.cell: cell for cell in report.cells}
    number = 0
    for cell in notebook.cells:
        added_to = cell.metadata.get("autograder", {}).get(ADDED_TO)
        number += added_to is None
        if cell.cell_type != "code":
            continue
        about = cell.metadata.get("nbgrader", {})
        name = cell_name(number, about.get("grade_id", "")) if added_to is None else added_to + ADDED
        if name not in exercises and not about.get("grade"):
            cell.outputs = _outputs(cells[name]) if name in cells else []
    write_scores(notebook, report)
    if report.message:
        note = f"> **{_TITLES[report.status]}** {escape_markdown(report.message)}"
        notebook.cells.insert(0, new_cell("markdown", NOTE, note))


def write_scores(notebook: Any, report: Report) -> None:
    """Fill the outputs of a notebook's grade cells in place, with the points that count."""
    exercises = {course.CHECK_PREFIX + exercise.name: exercise for exercise in report.exercises}
    for cell in notebook.cells:
        about = cell.metadata.get("nbgrader", {})
        if cell.cell_type != "code" or not about.get("grade"):
            continue
        if exercise := exercises.get(about["grade_id"]):
            if not (exercise.reweighted and exercise.reweighted.is_added):
                about["points"] = exercise.max_score  # nbgrader takes no more than this
            cell.outputs = grade_cell_outputs(exercise)
        else:
            cell.outputs = [new_output("execute_result", data={"text/plain": "0.0"})]


def _outputs(cell: CellReport) -> list[Any]:
    outputs = [new_output("stream", name="stdout", text=cell.printed)] if cell.printed else []
    if cell.message:
        outputs.append(new_output("error", ename=cell.status, evalue=cell.message, traceback=[cell.message]))
    return outputs


def grade_cell_outputs(exercise: ExerciseReport) -> list[Any]:
    """Return the outputs of an exercise's grade cell: feedback to read, then the score, which nbgrader reads."""
    texts = {"text/html": feedback_html(exercise), "text/plain": feedback_text(exercise)}
    feedback = new_output("display_data", data=texts)
    feedback.metadata["verdict"] = verdict(exercise)
    if exercise.repairs:
        feedback.metadata["edit"] = _edit(exercise.repairs[0])
    return [feedback, new_output("execute_result", data={"text/plain": repr(exercise.score)})]


def show_edits(notebook: Any) -> None:
    """Add the edits of repairs to the feedback in a graded notebook, which is changed in place.

    A page shows edits only if this was called. Call it only when the student's due date, with any extension,
    has passed.
    """
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if edit := output.get("metadata", {}).get("edit"):
                before, place, after = output.data["text/html"].partition(_EDIT_PLACE)
                output.data["text/html"] = f"{before}<pre>{escape(edit)}</pre>{place}{after}"
                output.data["text/plain"] += f"\n{edit}"


def _edit(repair: Repair) -> str:
    """Return the changed lines before and after a repair, as lines of text."""
    lines = [f"With {'these changes' if repair.changes[1:] else 'this change'} all tests pass:"]
    for change in repair.changes:
        lines.append(f"  line {change.line} now: {change.before.strip() or '(none)'}")
        lines.append(f"  instead: {change.after.strip() or '(none)'}")
    return "\n".join(lines)


def verdict(exercise: ExerciseReport) -> str:
    """Return the verdict on an exercise in a few words: "right", "wrong", or why it was not tested to the end."""
    if exercise.message.startswith(NOT_WRITTEN):
        return UNWRITTEN
    if exercise.message.startswith(USES_WRONG):
        return USES_WRONG_VERDICT
    return _VERDICTS[exercise.status]


def feedback_text(exercise: ExerciseReport) -> str:
    """Return the feedback on an exercise as plain lines."""
    title, *both = exercise.mistake_messages or [""]
    notes = filter(None, [exercise.message, exercise.note, title])
    listed = [f"  {number}. {sentence}" for number, sentence in enumerate(both, start=1)]
    location = [exercise.whereabouts.told] if exercise.whereabouts else []
    tests = [f"  {_OUTCOMES[test.outcome][1]} {test.message}" for test in exercise.tests]
    return "\n".join([_headline(exercise), *notes, *listed, *location, *tests])


def feedback_html(exercise: ExerciseReport) -> str:
    """Return the feedback on an exercise as HTML: headline, one box on the fault, and the tests, folded.

    Everything in it is escaped; its classes are those of templates/base/parts.css.
    """
    title, *both = exercise.mistake_messages or [""]
    texts = [message_html(note) for note in (exercise.message, exercise.note, title) if note]
    if both:
        texts[-1] += f"<ol>{''.join(f'<li>{message_html(sentence)}</li>' for sentence in both)}</ol>"
    if not (texts or exercise.whereabouts):
        texts = [message_html(test.message) for test in exercise.tests if test.outcome == "failed"][:1]
    box = "".join(f"<div>{text}</div>" for text in texts)
    if exercise.whereabouts:
        box += f"<pre>{escape(exercise.whereabouts.told)}</pre>"
    fault = f'<div class="fault">{box}{_EDIT_PLACE}</div>' if box else ""
    return f"<p><b>{escape(_headline(exercise))}</b></p>{fault}{_tests_html(exercise.tests)}"


def without_headline(html: str) -> str:
    """Return an exercise's feedback without its first line, which has the points that the hidden tests gave."""
    return _HEADLINE.sub("", html, count=1)


def _tests_html(tests: Sequence[TestReport]) -> str:
    counts = Counter(_in_a_word(test) for test in tests)
    summary = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
    items = ""
    for test in tests:
        if test.outcome != "not_run":
            style, sign = _OUTCOMES[test.outcome]
            items += f'<li><b class="{style}">{sign} {_in_a_word(test)}</b>: {message_html(test.message)}</li>'
    return f'<details class="tests"><summary>Tests: {summary}</summary><ul>{items}</ul></details>' if items else ""


def _in_a_word(test: TestReport) -> str:
    return {"not_run": "not run", "grader_error": "our fault"}.get(test.outcome, test.outcome)


def _headline(exercise: ExerciseReport) -> str:
    return f"{exercise.name}: {exercise.score:g} of {exercise.max_score:g} points"


def message_html(message: str) -> str:
    """Return one of the autograder's messages as HTML; text between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(message))


def escape_markdown(message: str) -> str:
    """Return a message as one line of markdown in which names that a student chose are not read as markup.

    A plain name between backticks is code, everything else is text.
    """
    parts = _CODE.split(" ".join(message.split()))
    # An ampersand after a backslash would be read together with what follows it.
    parts[::2] = [_PUNCTUATION.sub(r"\\\g<0>", text).replace("&", "&amp;") for text in parts[::2]]
    return "".join(parts)


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
