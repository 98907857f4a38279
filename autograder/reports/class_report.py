"""The class report: composed from the gradebook and the stored reports, written as a page, a table and data.

The page needs neither network nor script. All text in it is escaped.
"""

import shlex
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from math import ceil
from pathlib import Path

import msgspec
from jinja2 import Environment
from msgspec.structs import replace

from .. import __version__, course, output_files
from ..course.cells import code_cells
from ..course.notebook import RawNotebook, parse, printable
from ..course.notebook_file import read_at
from ..gradebook.class_gradebook import Grade, NoGrades, UnitGrades, of_units
from ..gradebook.nbgrader_course import course_directory
from ..gradebook.roster import Enrolled
from ..gradebook.tables import PLACES, as_csv, number, rounded, text
from ..report import Report
from .class_report_schema import (
    DIGITS,
    FEWEST_GRADES,
    CellFigures,
    ClassReport,
    Concern,
    ExerciseFigures,
    Row,
    Spread,
    ToLookAt,
)
from .mistakes import Names, WrongAnswer, WrongAnswers, full_name
from .pages import NOISE, TEMPLATES, environment, read_report

FOLDER = "reports"
"""Folder of class reports, in the course's folder."""
PAGE, TABLE, DATA = ".html", ".csv", ".json"
_COLUMNS = ("student", "name", "status", "late_minutes", "raw_score", "late_penalty", "score", "max_score")
_STATUSES = {
    Concern.OUR_FAULT: "grader_error",
    Concern.DAMAGED: "damaged",
    Concern.TIMED_OUT: "timed_out",
    Concern.CRASHED: "crashed",
    Concern.CELLS_FAILED: "cells_failed",
}
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


def report_folder(root: Path, unit: str, section: str | None = None) -> Path:
    """Return the folder of a report. A section's folder is in the class's; a `/` in its name is written `%2F`."""
    of_class = root / FOLDER / unit
    if section is None:
        return of_class
    return of_class / f"section_{section.strip().replace('%', '%25').replace('/', '%2F')}"


def page_path(folder: Path, *, is_anonymous: bool) -> Path:
    """Return the path of the report's page in a folder: an anonymous page does not replace the one with names."""
    return folder / (f"anonymous{PAGE}" if is_anonymous else f"report{PAGE}")


def check(path: Path) -> None:
    """Raise NotWritable if one of the three files cannot be written. path: the page."""
    for suffix in (PAGE, TABLE, DATA):
        output_files.check(path.with_suffix(suffix), makes_folder=True)


def write(report: ClassReport, path: Path) -> list[Path]:
    """Write the page at `path`, and the table and the data next to it; return the three paths. Raises NotWritable."""
    contents = {
        path: page(report).encode(),
        path.with_suffix(TABLE): table(report).encode(),
        path.with_suffix(DATA): msgspec.json.format(msgspec.json.encode(report)) + b"\n",
    }
    output_files.write(contents, 0o644 if report.is_anonymous else 0o600, makes_folder=True)
    return list(contents)


def table(report: ClassReport) -> str:
    """Return the report as CSV: a line per student, two columns per exercise.

    A score that a person has not given yet is empty; two mistakes at once are joined by a plus.
    """
    exercises = [exercise.name for exercise in report.exercises]
    header = [*_COLUMNS, *(column for name in exercises for column in (name, f"{name}: mistakes"))]
    return as_csv([header, *(_line(row, exercises, report.max_score) for row in report.rows)])


def _line(row: Row, exercises: Collection[str], max_score: float) -> list[object]:
    late = "unknown" if row.is_lateness_unknown else row.late_minutes
    points = (row.raw_score, row.late_penalty, row.score, max_score)
    line: list[object] = [text(row.student), text(row.name), row.status, late, *points]
    for exercise in exercises:
        cell = row.cells.get(exercise)
        score = "" if cell is None or cell.is_waiting else cell.score
        line += [score, text(" + ".join(cell.mistakes)) if cell else ""]
    return line


def compose(
    root: Path,
    unit_name: str,
    *,
    is_anonymous: bool = False,
    section: str | None = None,
    students: Collection[str] | None = None,
) -> ClassReport:
    """Return the report on a unit of the course in `root`.

    section, students: the section that the report is about, and the ids of its students; None for the whole class.
    Raises UnknownUnit, NoGrades and CourseProblem.
    """
    if not root.is_dir():
        raise NoGrades(f"The course folder {root} is not there.")
    unit = course.unit(unit_name, root)
    (scores,) = of_units(root, [unit_name])
    everyone = scores.students
    if students is not None:
        scores = scores.of_students(students)
    if not scores.grades:
        command = shlex.join(["autograder", "grade", unit_name, "--course", str(root)])
        of_section = "" if section is None else f" in the section {printable(section)}"
        raise NoGrades(f"Nothing of {unit_name} is graded yet{of_section}. Run `{command}`.")
    directory = course_directory(root)
    answers: list[WrongAnswer] = []
    statements: dict[tuple[str, str], str] = {}
    reported: set[str] = set()
    for student, grade in scores.grades.items():
        folder = Path(directory.format_path(directory.autograded_directory, student, unit_name))
        report = read_report(folder, unit_name)
        if report is not None and report.submission == grade.submission:
            reported.add(student)
            answers += _wrong_answers(student, report, grade, folder, unit)
            statements |= _statements(report)
    names = Names(everyone, _source_text(course.source(unit_name, root)))
    headings = unit.sections
    wrong = WrongAnswers(
        answers,
        {exercise.name: headings.get(exercise.name, "") for exercise in unit.exercises},
        statements,
        lambda answer, text: not (is_anonymous and names.is_in(text, answer.notebook)),
    )
    mistakes = {(one.student, one.report.name): [mistake.name for mistake in one.report.mistakes] for one in answers}
    grades = list(scores.grades.values())
    exercises = list(_exercise_figures(scores.points, grades, headings))
    rows = [_row(student, scores.grades.get(student.id), scores.points, mistakes) for student in scores.students]
    class_report = ClassReport(
        unit_name, unit.title, datetime.now(UTC).isoformat(timespec="seconds"), __version__, is_anonymous,
        len(scores.students), len(grades), scores.max_score,
        _spread(rows, exercises), exercises,
        wrong.mistakes(len(grades)), wrong.clusters(), wrong.unexplained(), _concerns(scores, reported),
        rows, section or "",
    )  # fmt: skip
    return _without_names(class_report) if is_anonymous else class_report


def _source_text(source: Path) -> str:
    """Return the text of all cells of the instructor's notebook."""
    notebook = parse(source.read_bytes())
    return "\n".join(cell.text for cell in notebook.cells) if isinstance(notebook, RawNotebook) else ""


def _wrong_answers(
    student: str, report: Report, grade: Grade, folder: Path, unit: course.Unit
) -> Iterator[WrongAnswer]:
    """Yield a student's answers that did not pass, with the gradebook's scores and their cells in the notebook."""
    exercises = [exercise for exercise in report.exercises if exercise.status != "passed"]
    notebook = parse(read_at(folder / f"{unit.name}.ipynb").content) if exercises else None
    cells = code_cells(notebook, unit) if isinstance(notebook, RawNotebook) else []
    for exercise in exercises:
        failed = [test for test in exercise.tests if test.outcome == "failed"]
        sources = [cell.source for cell in cells if cell.defines(exercise.name)]
        file = report.notebook.rpartition("/")[2]
        score = min(grade.shown.scores.get(course.CHECK_PREFIX + exercise.name, exercise.score), exercise.max_score)
        answer = replace(exercise, tests=failed, score=score)
        yield WrongAnswer(student, file, answer, sources[-1] if sources else "")


def _statements(report: Report) -> dict[tuple[str, str], str]:
    """Return the statements of tests by exercise and test: the message of a passed test is its statement."""
    tests = [(exercise.name, test) for exercise in report.exercises for test in exercise.tests]
    return {(exercise, test.name): test.message for exercise, test in tests if test.outcome == "passed"}


def _row(
    student: Enrolled, grade: Grade | None, cell_names: Iterable[str], mistakes: Mapping[tuple[str, str], list[str]]
) -> Row:
    """Return a student's line in the table of scores.

    cell_names: the grade cells, in their order. mistakes: names of known mistakes by student and exercise.
    """
    if grade is None:
        return Row(student.id, full_name(student), "not_submitted", 0, 0.0, 0.0, 0.0, {})
    cells = {}
    for name in cell_names:
        if name in grade.shown.scores:
            exercise = name.removeprefix(course.CHECK_PREFIX)
            score = rounded(grade.shown.scores[name], DIGITS)
            cells[exercise] = CellFigures(score, name in grade.waiting, mistakes.get((student.id, exercise), []))
    return Row(
        student.id, full_name(student), grade.status, ceil(grade.late.total_seconds() / 60),
        rounded(grade.shown.score, DIGITS), rounded(grade.shown.late_penalty, DIGITS), rounded(grade.score, DIGITS),
        cells, grade.shown.is_time_unresolved,
    )  # fmt: skip


def _concerns(scores: UnitGrades, reported: Collection[str]) -> list[ToLookAt]:
    """Return the reasons to act, with their students.

    reported: the students with a report on the submission that the gradebook has.
    """
    grades = scores.grades
    students = {
        Concern.WAITING: [student for student, grade in grades.items() if grade.waiting],
        Concern.LATE: [student for student, grade in grades.items() if grade.late],
        Concern.LATENESS_UNKNOWN: [student for student, grade in grades.items() if grade.shown.is_time_unresolved],
        Concern.NOTHING: [student.id for student in scores.students if student.id not in grades],
        Concern.NO_REPORT: [student for student in grades if student not in reported],
    }
    for concern, status in _STATUSES.items():
        students[concern] = [student for student, grade in grades.items() if grade.status == status]
    return [ToLookAt(concern, len(students[concern]), students[concern]) for concern in Concern if students[concern]]


def _without_names(report: ClassReport) -> ClassReport:
    """Return the report without students, and its rows in an order that depends only on their scores."""
    rows = [Row("", "", row.status, 0, row.raw_score, row.late_penalty, row.score, row.cells) for row in report.rows]
    rows.sort(key=lambda row: (-row.score, [-cell.score for cell in row.cells.values()], repr(row)))
    groups = {
        name: [replace(group, students=[]) for group in getattr(report, name)]
        for name in ("mistakes", "clusters", "unexplained", "to_look_at")
    }
    return replace(report, rows=rows, **groups)


def _spread(rows: Sequence[Row], exercises: Sequence[ExerciseFigures]) -> Spread | None:
    """Return the distribution of the scores of all submissions; None if there are none."""
    left_out = [exercise.name for exercise in exercises if exercise.waiting]
    max_score = sum(exercise.points for exercise in exercises if not exercise.waiting)
    scores = sorted(row.score_without(left_out) for row in rows if row.cells)
    if not scores or not max_score:
        return None
    lower, median, upper = statistics.quantiles(scores, method="inclusive") if len(scores) > 1 else scores * 3
    figures = (statistics.fmean(scores), median, lower, upper, scores[0], scores[-1], max_score)
    return Spread(*(rounded(figure, DIGITS) for figure in figures))


def _exercise_figures(
    points: Mapping[str, float], grades: Sequence[Grade], headings: Mapping[str, str]
) -> Iterator[ExerciseFigures]:
    """Yield the statistics of each exercise and written question.

    points: maximum points by grade cell. headings: the sections' headings by grade cell.
    """
    waiting = {name for grade in grades for name in points if name not in grade.shown.scores or name in grade.waiting}
    for cell, worth in points.items():
        submitted = [grade for grade in grades if cell in grade.shown.scores]
        graded = [grade for grade in submitted if cell not in grade.waiting]
        scores = [grade.shown.scores[cell] for grade in graded]
        passed = sum(score >= worth - NOISE for score in scores)
        # A damaged file has no answers: its zeros would make every exercise look alike.
        items = [grade.shown for grade in graded if grade.status != "damaged"]
        rest = [sum(item.scores[name] for name in points if name != cell and name not in waiting) for item in items]
        pass_rate = rounded(passed / len(scores), DIGITS) if scores else None
        mean = rounded(statistics.fmean(scores), DIGITS) if scores else None
        is_enough = len(items) >= FEWEST_GRADES
        discrimination = correlation([item.scores[cell] for item in items], rest) if is_enough else None
        lost = rounded(sum(max(0.0, worth - item.scores[cell]) for item in items), DIGITS)
        name, is_written = cell.removeprefix(course.CHECK_PREFIX), not cell.startswith(course.CHECK_PREFIX)
        yield ExerciseFigures(
            name, headings.get(cell, ""), worth, is_written,
            len(graded), len(submitted) - len(graded), passed, pass_rate, mean, discrimination, lost,
        )  # fmt: skip


def correlation(scores: Sequence[float], rest: Sequence[float]) -> float | None:
    """Return Pearson's correlation of two lists of scores, which are not empty; None if either is constant."""
    if _is_constant(scores) or _is_constant(rest):
        return None
    return rounded(statistics.correlation(scores, rest), DIGITS)


def _is_constant(values: Sequence[float]) -> bool:
    return max(values) - min(values) < NOISE


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
    pages = environment(TEMPLATES / "class_report")
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
    return "all" if share > 1 - NOISE else "none" if share < NOISE else "most" if share >= 0.5 else "some"


def _histogram(scores: Sequence[float], max_score: float) -> list[tuple[str, int]]:
    """Return ranges of points, of equal width, each with the number of students whose score lies in it."""
    top = max(max_score, *scores) or 1.0
    width = next((width for width in _BAR_WIDTHS if top / width <= _MOST_BARS), top / _MOST_BARS)
    last = max(1, -int(-top // width)) - 1
    students = Counter(min(int(max(score, 0.0) // width), last) for score in scores)
    ranges = [f"{width * bar:g} to {'' if bar == last else 'below '}{width * (bar + 1):g}" for bar in range(last + 1)]
    return [(name, students[bar]) for bar, name in enumerate(ranges)]
