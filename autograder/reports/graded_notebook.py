"""A student's notebook with the report written into its cells, and the report that is stored next to it."""

import re
from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from .. import course
from ..course.cells import ADDED
from ..course.nodes import NOTE, new_cell, new_output
from ..course.notebook import cell_name
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
