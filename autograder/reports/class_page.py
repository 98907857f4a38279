"""The class report as one HTML page, which needs neither network nor script. All text in it is escaped."""

from collections import Counter
from collections.abc import Sequence
from functools import cache

from jinja2 import Environment

from ..course.notebook import printable
from ..gradebook.grades import PLACES, number, rounded
from .class_report_schema import FEWEST_GRADES, CellFigures, ClassReport, ExerciseFigures
from .page_templates import FOLDER, environment

_TEMPLATE = "report.html"
_MOST_IN_LECTURE = 5
_MOST_SHOWN = 60
"""Maximum number of mistakes, and of clusters, on the page; report.json has all of them."""
_MOST_ROWS = 1000
_MOST_NAMES = 60
_LONGEST_NAME = 60  # characters
_HARDLY, _WELL = 0.15, 0.3

_MOST_BARS = 10
_BAR_WIDTHS = (0.5, 1, 2, 2.5, 5, 10, 20, 25, 50, 100)


def page(report: ClassReport) -> str:
    """Return a class report as an HTML page."""
    rows = [row for row in report.rows if row.cells]
    spread, waiting = report.spread, report.waiting
    numbers = {(mistake.exercise, mistake.name): f"M{i}" for i, mistake in enumerate(report.mistakes, start=1)}
    return _environment().get_template(_TEMPLATE).render(
        report=report,
        lecture=report.mistakes[:_MOST_IN_LECTURE],
        mistakes=report.mistakes[:_MOST_SHOWN],
        clusters=report.clusters[:_MOST_SHOWN],
        exercises=sorted(report.exercises, key=lambda exercise: -exercise.lost),
        histogram=_histogram([row.score_without(waiting) for row in rows], spread.max_score) if spread else [],
        waiting=sum(exercise.waiting for exercise in report.exercises),
        left_out=waiting,
        without_name=sum(cluster.count for cluster in report.clusters),
        map=sorted(rows, key=lambda row: -row.score)[:_MOST_ROWS],
        numbers=numbers,
        kind=_kind,
    )  # fmt: skip


@cache
def _environment() -> Environment:
    pages = environment(FOLDER / "class_report")
    pages.filters |= {
        "points": number,
        "figure": lambda value: f"{rounded(value, PLACES):.{PLACES}f}",
        "percent": lambda share: "–" if share is None else f"{100 * share:.0f}%",
        "named": _truncate_name,
        "who": _list_names,
        "discriminates": _describe_discrimination,
    }
    return pages


def _truncate_name(student: str) -> str:
    """Return a student's id or name, cut to the length that a person reads."""
    name = printable(student)
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"


def _list_names(students: Sequence[str]) -> str:
    more = f" and {len(students) - _MOST_NAMES} more, all in report.json" if len(students) > _MOST_NAMES else ""
    return ", ".join(map(_truncate_name, students[:_MOST_NAMES])) + more


def _describe_discrimination(exercise: ExerciseFigures) -> str:
    """Say in words how well an exercise discriminates; the limits are those in common use."""
    if exercise.marked < FEWEST_GRADES:
        return "too few grades"
    correlation = exercise.discrimination
    if correlation is None:
        return "cannot be told"
    if correlation < -_HARDLY:
        return "the wrong way round"
    return "well" if correlation >= _WELL else "a little" if correlation >= _HARDLY else "hardly"


def _kind(cell: CellFigures, worth: float) -> str:
    """Return the CSS class, and so the colour, of a score in the map of all scores."""
    if cell.is_waiting:
        return "waits"
    share = cell.score / worth if worth else 1.0
    return "all" if share > 1 - 1e-6 else "none" if share < 1e-6 else "most" if share >= 0.5 else "some"


def _histogram(scores: Sequence[float], max_score: float) -> list[tuple[str, int]]:
    """Return ranges of points, of equal width, each with the number of students whose score lies in it."""
    top = max(max_score, *scores) or 1.0
    width = next((width for width in _BAR_WIDTHS if top / width <= _MOST_BARS), top / _MOST_BARS)
    last = max(1, -int(-top // width)) - 1
    students = Counter(min(int(max(score, 0.0) // width), last) for score in scores)
    ranges = [f"{width * bar:g} to {'' if bar == last else 'below '}{width * (bar + 1):g}" for bar in range(last + 1)]
    return [(name, students[bar]) for bar, name in enumerate(ranges)]
