"""The class report as one HTML page, which needs neither network nor script. All text in it is escaped."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ..feedback.grade_cell import prose
from ..gradebook.rounding import rounded
from ..gradebook.spreadsheet import PLACES, number
from ..notebook import printable
from .histogram import histogram
from .shape import CellFigures, ClassReport

_TEMPLATE = "report.html"
_MOST_IN_LECTURE = 5
_MOST_SHOWN = 60
"""Mistakes, and as many clusters, that stand on the page; the rest is in report.json."""
_MOST_ROWS = 1000
_MOST_NAMES = 60
_LONGEST_NAME = 60  # characters
_HARDLY, _WELL = 0.15, 0.3


def page(report: ClassReport) -> str:
    """The page."""
    spread = report.spread
    scores = [row.score for row in report.rows if row.cells]
    places = {(one.exercise, one.name): place for place, one in enumerate(report.mistakes, start=1)}
    return _environment().get_template(_TEMPLATE).render(
        report=report,
        lecture=report.mistakes[:_MOST_IN_LECTURE],
        mistakes=report.mistakes[:_MOST_SHOWN],
        clusters=report.clusters[:_MOST_SHOWN],
        histogram=Markup(histogram(scores, report.max_score, spread.median)) if spread else "",
        waiting=sum(exercise.waiting for exercise in report.exercises),
        without_name=sum(cluster.count for cluster in report.clusters),
        map=sorted((row for row in report.rows if row.cells), key=lambda row: -row.score)[:_MOST_ROWS],
        said=lambda cell, exercise, worth: _said(cell, worth, [places[exercise, name] for name in cell.mistakes]),
    )  # fmt: skip


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "points": number,
        "figure": lambda value: f"{rounded(value, PLACES):.{PLACES}f}",
        "percent": _percent,
        "prose": lambda text: Markup(prose(text)),
        "named": _named,
        "who": _who,
        "discriminates": _discriminates,
    }
    return made


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f}%"


def _named(student: str) -> str:
    """A student's id or name as far as anyone reads it."""
    shown = printable(student)
    return shown if len(shown) <= _LONGEST_NAME else f"{shown[:_LONGEST_NAME]}…"


def _who(students: Sequence[str]) -> str:
    more = f" and {len(students) - _MOST_NAMES} more, all in report.json" if len(students) > _MOST_NAMES else ""
    return ", ".join(map(_named, students[:_MOST_NAMES])) + more


def _discriminates(correlation: float | None) -> str:
    """What a correlation between an exercise and the others says, in words; the limits are those in common use."""
    if correlation is None:
        return "cannot be told"
    if correlation < -_HARDLY:
        return "the wrong way round"
    return "well" if correlation >= _WELL else "a little" if correlation >= _HARDLY else "hardly"


def _said(cell: CellFigures, worth: float, places: Sequence[int]) -> Mapping[str, str]:
    """A mark in the map: its text and its colour. places: of its mistakes, in the list of all."""
    if cell.is_waiting:
        return {"text": "waits", "kind": "w", "mistakes": ""}
    share = cell.score / worth if worth else 1.0
    kind = "f" if share > 1 - 1e-6 else "n0" if share < 1e-6 else "h" if share >= 0.5 else "l"
    return {"text": number(cell.score), "kind": kind, "mistakes": " ".join(f"M{place}" for place in places)}
