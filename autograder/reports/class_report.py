"""The class report: composed from the gradebook and the stored reports, written as a page, a table and data."""

import shlex
import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from math import ceil
from pathlib import Path

import msgspec
from msgspec.structs import replace

from .. import __version__, course, output_files
from ..course.cells import code_cells
from ..course.notebook import RawNotebook, parse, printable
from ..course.notebook_file import read_at
from ..gradebook.course_directory import course_directory
from ..gradebook.grades import Grade, NoGrades, UnitGrades, as_csv, of_units, rounded, text
from ..gradebook.roster import Enrolled
from ..report import Report
from .class_page import page
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
from .code_sample import Names, full_name
from .graded_notebook import read_report
from .mistakes import WrongAnswer, WrongAnswers

FOLDER = "reports"
"""Folder of class reports, in the course's folder."""
PAGE, TABLE, DATA = ".html", ".csv", ".json"
_NOISE = 1e-6
"""Difference below which two scores are equal: rounding of binary fractions adds less."""
_COLUMNS = ("student", "name", "status", "late_minutes", "raw_score", "late_penalty", "score", "max_score")
_STATUSES = {
    Concern.OUR_FAULT: "grader_error",
    Concern.DAMAGED: "damaged",
    Concern.TIMED_OUT: "timed_out",
    Concern.CRASHED: "crashed",
    Concern.CELLS_FAILED: "cells_failed",
}


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
        passed = sum(score >= worth - _NOISE for score in scores)
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
    return max(values) - min(values) < _NOISE
