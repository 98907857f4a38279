"""What a student sees: the feedback page, or before the due date as much of it as the instructor shows."""

import re
from datetime import datetime
from functools import cache
from pathlib import Path

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ..feedback.grade_cell import prose
from ..report import ExerciseReport, Report
from .rules import Show

_PAGE = "limited.html"
_BODY = re.compile(r"<body\b[^>]*>")
_BOX = "margin:1em;padding:.5em .8em;border-left:4px solid #9a6700;background:#fff8c5;color:#24292f"
_OUR_FAULT = "One of our graders failed on this, which is our fault and not yours. Please tell your instructor."


class Line(msgspec.Struct, frozen=True):
    """What the page says of an exercise."""

    name: str
    sign: str
    says: list[str]


def utc(moment: datetime) -> str:
    """A time as students read it, to the minute."""
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def waits(until: datetime, attempts: int) -> str:
    """What is said of a file that is not marked yet, because too many were in the last hour."""
    times = "once" if attempts == 1 else f"{attempts} times"
    return (
        f"You have handed in again. Each student is marked {times} an hour at most, so this file is marked after "
        f"{utc(until)}. Nothing is lost. What is below is about the file before it."
    )


def with_notice(page: bytes, notice: str) -> bytes:
    """The page with a sentence at its top."""
    box = f'<div role="status" style="{_BOX}">{prose(notice)}</div>'
    text = page.decode()
    return _BODY.sub(lambda found: found[0] + box, text, count=1).encode()


def limited(report: Report, show: Show, *, due: datetime | None, handed_in: datetime | None) -> bytes:
    """The page of a marked file with as much as is shown before the due date."""
    line = _by_check if show == "check" else _by_name
    return (
        _environment()
        .get_template(_PAGE)
        .render(
            unit=report.unit,
            show=show,
            until=f"From {utc(due)} on you" if due else "Once your instructor shows them you",
            handed_in=utc(handed_in) if handed_in else "",
            message=report.message,
            lines=[line(exercise) for exercise in report.exercises],
        )
        .encode()
    )


def _by_check(exercise: ExerciseReport) -> Line:
    """What the public examples say: nothing else may decide what stands here."""
    public = [test for test in exercise.tests if test.public]
    failed = [test.message for test in public if test.outcome == "failed"]
    if failed:
        return Line(exercise.name, "✗", failed)
    if not public:
        return Line(exercise.name, "–", ["It has no public examples."])
    if all(test.outcome in ("passed", "withheld") for test in public):
        return Line(exercise.name, "✓", ["Right on the public examples."])
    ran_none = all(test.outcome == "not_run" for test in public)
    said = exercise.message if ran_none else ""  # then it is about the cell, and no hidden grader is behind it
    return Line(exercise.name, "–", [said or "Not all of the public examples were run."])


def _by_name(exercise: ExerciseReport) -> Line:
    """The names of mistakes, in sentences, without the graders that found them."""
    if exercise.status == "grader_error":
        return Line(exercise.name, "!", [_OUR_FAULT])
    if exercise.score >= exercise.max_score:
        return Line(exercise.name, "✓", ["Right."])
    found = exercise.diagnosis
    named = [found.sentence, *([found.beside.sentence] if found.beside else [])] if found else []
    return Line(exercise.name, "✗", named or [exercise.message or "Not right yet; it is no mistake that has a name."])


@cache
def _environment() -> Environment:
    folder = Path(__file__).parent / "templates"
    environment = Environment(loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined)
    environment.filters["prose"] = lambda sentence: Markup(prose(sentence))
    return environment
