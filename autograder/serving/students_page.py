"""What a student sees: the feedback page, or before the due date as much of it as the instructor shows.

Before the due date nothing stands here that a student's own code said while graders ran it: it had the hidden inputs by
then, and what it raises in one call can carry what it was given in another.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from .. import course
from ..handout.names import EXAMPLES, data_file
from ..handout.unit_data import read_unit
from ..report import NOT_WRITTEN, USES_WRONG, CellReport, ExerciseReport, Report
from ..reports.graded_notebook import message_html
from .rules import MOST_FAILED, Show

_PAGE = "limited.html"
_BODY = re.compile(r"<body\b[^>]*>")
_BOX = "margin:1em;padding:.5em .8em;border-left:4px solid #9a6700;background:#fff8c5;color:#24292f"
_OF_CELL = "Its cell could not be run."
_UNWRITTEN = f"{NOT_WRITTEN}."
_CHECK_SAYS = "Wrong on the public examples. The check in your notebook says more on them."
_NOT_RIGHT = "Not right yet; it is no mistake that has a name."
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


def waits_after_failures(until: datetime) -> str:
    """Return the message for a file that waits because too many earlier files could not be graded."""
    return (
        f"You have submitted again. {MOST_FAILED} times in an hour your submission could not be graded to its end, so "
        f"this file is graded after {utc(until)}. Nothing is lost; please tell your instructor. What is below is about "
        "the file before it."
    )


def with_notice(page: bytes, notice: str) -> bytes:
    """The page with a sentence at its top."""
    box = f'<div role="status" style="{_BOX}">{message_html(notice)}</div>'
    text = page.decode()
    return _BODY.sub(lambda found: found[0] + box, text, count=1).encode()


def public_statements(unit: str, root: Path) -> dict[str, list[str]]:
    """What the public examples of each exercise check, as the check says it that students have."""
    try:
        released = read_unit(course.released(unit, root).with_name(data_file(unit)))[EXAMPLES]
        return {
            name: [str(example["statement"]) for example in its.get("examples", []) if example.get("public")]
            for name, its in released.items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def limited(
    report: Report,
    show: Show,
    statements: Mapping[str, Sequence[str]],
    *,
    due: datetime | None,
    handed_in: datetime | None,
) -> bytes:
    """The page of a marked file with as much as is shown before the due date. statements: `public_statements`."""
    if show == "check":
        lines = [_by_check(exercise, statements.get(exercise.name, ()), report.cells) for exercise in report.exercises]
    else:
        lines = [_by_name(exercise, report) for exercise in report.exercises]
    return (
        _environment()
        .get_template(_PAGE)
        .render(
            unit=report.unit,
            show=show,
            until=f"From {utc(due)} on you" if due else "Once your instructor shows them you",
            handed_in=utc(handed_in) if handed_in else "",
            message=report.message,
            lines=lines,
        )
        .encode()
    )


def _by_check(exercise: ExerciseReport, statements: Sequence[str], cells: Sequence[CellReport]) -> Line:
    """What the public examples say: nothing else may decide what stands here."""
    public = [test for test in exercise.tests if test.public]
    failed = [test.message for test in public if test.outcome == "failed"]
    if failed and len(failed) == len(public) and exercise.message.startswith(NOT_WRITTEN):
        return Line(exercise.name, "–", [_UNWRITTEN])
    if failed:
        told = [said for said in statements if any(message.startswith(said) for message in failed)]
        return Line(exercise.name, "✗", [_CHECK_SAYS, *told])
    if not public:
        return Line(exercise.name, "–", ["It has no public examples."])
    if all(test.outcome in ("passed", "withheld") for test in public):
        return Line(exercise.name, "✓", ["Right on the public examples."])
    return Line(exercise.name, "–", [_of_cell(exercise, cells) or "Not all of the public examples were run."])


def _by_name(exercise: ExerciseReport, report: Report) -> Line:
    """The names of mistakes, in sentences, without the graders that found them."""
    if exercise.status == "grader_error":
        return Line(exercise.name, "!", [_OUR_FAULT])
    if exercise.score >= exercise.max_score:
        return Line(exercise.name, "✓", ["Right."])
    named = [mistake.sentence for mistake in exercise.mistakes]
    of_cell = _of_cell(exercise, report.cells)
    return Line(exercise.name, "✗", named or [of_cell or _in_our_words(exercise, report.exercises)])


def _of_cell(exercise: ExerciseReport, cells: Sequence[CellReport]) -> str:
    """What kept its cell from running: only what a cell said before any grader, and nothing that begins like it."""
    if exercise.status == "missing":
        return exercise.message
    if exercise.status not in ("error", "timeout", "crashed"):
        return ""
    of_cells = {f"{_OF_CELL} {cell.message}" for cell in cells if cell.troubled}
    return exercise.message if exercise.message in of_cells else ""


def _in_our_words(exercise: ExerciseReport, others: Sequence[ExerciseReport]) -> str:
    """What is said where no mistake has a name. The message may be the student's, unless the status decides it."""
    said = exercise.message
    if exercise.status in ("timeout", "crashed", "skipped", "forbidden"):
        return said or _NOT_RIGHT
    if said.startswith(USES_WRONG):
        used = [f"`{other.name}`" for other in others if f"`{other.name}`" in said]
        return f"{USES_WRONG} {' and '.join(used)}, which is not right yet: fix that first."
    return _UNWRITTEN if said.startswith(NOT_WRITTEN) else _NOT_RIGHT


@cache
def _environment() -> Environment:
    folder = Path(__file__).parent / "templates"
    environment = Environment(loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined)
    environment.filters["prose"] = lambda sentence: Markup(message_html(sentence))
    return environment
