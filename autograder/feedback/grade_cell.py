"""What is shown below an exercise's check once it is marked: the score, the named mistake, and each test."""

import re
from html import escape
from typing import Any

from ..notebook.nodes import new_output
from ..report import ExerciseReport, TestReport

_SIGNS = {"passed": "✓", "failed": "✗", "withheld": "–", "not_run": "–", "grader_error": "!"}
_COLOURS = {
    "passed": "#1a7f37",
    "failed": "#b42318",
    "withheld": "#57606a",
    "not_run": "#57606a",
    "grader_error": "#9a6700",
}
_BOX = "margin:.4em 0;padding:.4em .7em;border-left:4px solid #9a6700;background:#fff8c5;color:#24292f"
_TWO = "Two mistakes at once:"


def outputs(exercise: ExerciseReport) -> list[Any]:
    """The outputs of the exercise's grade cell: feedback to read, then the score, which nbgrader takes."""
    feedback = new_output("display_data", data={"text/html": as_html(exercise), "text/plain": as_text(exercise)})
    feedback.metadata["says"] = in_a_line(exercise)
    return [feedback, new_output("execute_result", data={"text/plain": repr(exercise.score)})]


def in_a_line(exercise: ExerciseReport) -> str:
    """What is wrong, for the top of the page; empty where nothing is."""
    if exercise.score >= exercise.max_score:
        return ""
    failed = (test.message for test in exercise.tests if test.outcome == "failed")
    said = " ".join(_at_once(exercise)) or next(reversed(_notes(exercise)), "") or next(failed, "")
    if not exercise.whereabouts:
        return said
    lines = exercise.whereabouts.lines
    return f"{said} (Line{'s' if lines[1:] else ''} {' and '.join(map(str, lines))}.)"


def as_text(exercise: ExerciseReport) -> str:
    """The feedback as plain lines."""
    where = [exercise.whereabouts.told] if exercise.whereabouts else []
    listed = [f"  {number}. {sentence}" for number, sentence in enumerate(_at_once(exercise), start=1)]
    return "\n".join([_headline(exercise), *_notes(exercise), *listed, *where, *map(_line, exercise.tests)])


def as_html(exercise: ExerciseReport) -> str:
    """The feedback as HTML that needs no style sheet; everything in it is escaped."""
    notes = [prose(note) for note in _notes(exercise)]
    if at_once := _at_once(exercise):
        items = "".join(f"<li>{prose(sentence)}</li>" for sentence in at_once)
        notes[-1] += f'<ol style="margin:.2em 0;padding-left:1.6em">{items}</ol>'
    boxes = "".join(f'<div style="{_BOX}">{note}</div>' for note in notes)
    if exercise.whereabouts:
        boxes += f'<pre style="{_BOX};white-space:pre-wrap">{escape(exercise.whereabouts.told)}</pre>'
    tests = "".join(
        f'<li style="list-style:none;margin:.15em 0"><b style="color:{_COLOURS[test.outcome]}">'
        f"{_SIGNS[test.outcome]}</b> {prose(test.message)}</li>"
        for test in exercise.tests
        if test.outcome != "not_run"
    )
    return f'<p><b>{escape(_headline(exercise))}</b></p>{boxes}<ul style="padding-left:.3em">{tests}</ul>'


def prose(sentence: str) -> str:
    """One of the kit's sentences as HTML; text between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(sentence))


def _headline(exercise: ExerciseReport) -> str:
    return f"{exercise.name}: {exercise.score:g} of {exercise.max_score:g} points"


def _notes(exercise: ExerciseReport) -> list[str]:
    named = exercise.diagnosis.sentence if exercise.diagnosis else ""
    return [note for note in (exercise.message, exercise.note, _TWO if _at_once(exercise) else named) if note]


def _at_once(exercise: ExerciseReport) -> list[str]:
    """The sentences on two mistakes that are made at once."""
    named = exercise.diagnosis
    return [named.sentence, named.beside.sentence] if named and named.beside else []


def _line(test: TestReport) -> str:
    return f"  {_SIGNS[test.outcome]} {test.message}"
