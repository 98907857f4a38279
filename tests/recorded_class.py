"""A small class with the reports that a real grading process gave, for tests of what is done with reports.

The pages are made by a real formatter that stays warm: starting one takes longer than all the rest of such a run.
"""

import atexit
import csv
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from nbgrader.api import Gradebook
from sqlalchemy import text

from autograder import catalogue
from autograder.classroom.assignment import GradedSubmission, assignment
from autograder.classroom.grade import ClassResult, Preview, grade, preview
from autograder.classroom.student_folders import Submission, SubmissionFiles
from autograder.course import settings
from autograder.formatting.client import Formatter
from autograder.gradebook import nbgrader_course
from autograder.pool.grading_pool import GradingProcess
from autograder.pool.requests import Ready
from autograder.report import Report
from autograder.reports import pages

from . import REPOSITORY
from .typed import solved

UNIT = "dot_product_attention"
UNKNOWN_TIME = "does not say for certain when you submitted"
"""Part of the note on a page whose submission has an unclear time stamp."""
NOT_GRADED_TOO = "Also submitted, but not graded: "
"""Beginning of the note about further notebooks in a student's folder."""


class WarmFormatter(Formatter):
    """Outlives whoever closes it; each gets a confined child of its own, also in a fork that is killed."""

    def close(self) -> None:
        """End the child only."""
        self.drop_child()


@cache
def warm_formatter(asked: settings.Settings) -> WarmFormatter:
    """The formatter for these settings. It is ready: of two forks, one would hear that it is, and the other wait."""
    isolation = asked.isolation
    warm = WarmFormatter(asked.pages, isolation.require, trust_submissions=isolation.trust_submissions)
    assert warm.format("markdown", "", cpu_seconds=9, wall_seconds=99).outcome == "formatted"
    warm.close()
    atexit.register(super(WarmFormatter, warm).close)
    return warm


_reports: dict[tuple[str, str], Report] = {}


@dataclass
class RecordedClass:
    """Hands out real reports, each made once, in the place of the grading processes of a batch."""

    grading_process: GradingProcess
    asked: list[str] = field(default_factory=list)
    """Students to be graded in the last run."""
    is_warm: bool = True
    """True if the runs share the formatter that stays warm."""
    known: dict[tuple[str, str], Report] = field(default_factory=lambda: _reports)
    """By the digest of a file, for an unreadable one by what is wrong with it, and by the note on it."""

    def marked(self, submission: Submission, files: SubmissionFiles) -> GradedSubmission:
        """The real report on these bytes, under the submission's name."""
        read = files.read(submission)
        name = f"{submission.folder}/{UNIT}/{submission.notebook}"
        key = read.file.digest or str(read.file.content), submission.note
        if key not in self.known:
            self.known[key] = self.grading_process.grade(
                name, read.file.content, UNIT, digest=read.file.digest, note=submission.note
            )
        report = msgspec.structs.replace(self.known[key], notebook=os.fsencode(name).decode(errors="replace"))
        return GradedSubmission(submission, read.file.content, report, read.stamp)

    def grade(self, root: Path, *, regrade: bool = False, section: str | None = None, **more: Any) -> ClassResult:
        """Grade a course folder as `autograder grade` does, by default without a search for repairs."""
        self.asked = []
        with pytest.MonkeyPatch.context() as patch:
            if self.is_warm:
                patch.setattr(pages, "formatter", warm_formatter)
            return grade(
                assignment(UNIT, root, None, None, section=section),
                device="auto",
                settings=settings.load(),
                process_count=1,
                regrade=regrade,
                new_batch=self.recorded_grading,
                **{"repair": False, **more},
            )

    def preview(self, root: Path, *, regrade: bool = False, repair: bool = False) -> Preview:
        """Return the preview that `autograder grade --dry-run` prints for a course folder."""
        self.asked = []
        return preview(
            assignment(UNIT, root, None, None),
            device="auto",
            settings=settings.load(),
            process_count=1,
            regrade=regrade,
            repair=repair,
            new_batch=self.recorded_grading,
        )

    def recorded_grading(self, work, submissions, **terms):
        return _RecordedGrading(self, submissions, work.files)


class _RecordedGrading:
    def __init__(self, recorded: RecordedClass, submissions: list[Submission], files: SubmissionFiles) -> None:
        recorded.asked = [submission.student for submission in submissions]
        self._marked = [recorded.marked(submission, files) for submission in submissions if submission.notebook]

    def start(self) -> Ready:
        return Ready("cpu", "A", [])

    def graded(self):
        return iter(self._marked)

    def repaired(self, reports):
        return iter(())

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


def notebook(**answers: str) -> bytes:
    """Return the unit's notebook with these answers; the others are the solutions."""
    return solved(UNIT, **answers)


def wrong(**answers: str) -> bytes:
    """Return a notebook with a softmax that overflows for large scores."""
    return notebook(softmax=catalogue.misconceptions(UNIT)["naive_exponentials"].source(), **answers)


def opened_gradebook(root: Path) -> Gradebook:
    """Open the gradebook of a course folder with nbgrader's own API."""
    return Gradebook(f"sqlite:///{root}/{nbgrader_course.GRADEBOOK}", "attention")


def write_settings(root: Path, *lines: str) -> None:
    """Write a class's settings: those of the repository, and these lines."""
    ours = (REPOSITORY / "nbgrader_config.py").read_text()
    (root / "nbgrader_config.py").write_text("\n".join([ours, *lines, ""]))


def set_due(root: Path, moment: datetime | None) -> None:
    """Set the unit's due date, in UTC if it has no time zone."""
    with opened_gradebook(root) as gradebook:
        gradebook.update_or_create_assignment(UNIT, duedate=moment)


def change_mark(root: Path, student: str, change: str) -> None:
    """Change a student's record of a grade. change: in SQL."""
    whose = """submitted_notebook_id = (select n.id from submitted_notebook n join submitted_assignment s
        on s.id = n.assignment_id where s.student_id = ?)"""
    with opened_gradebook(root) as gradebook:
        connection = gradebook.db.connection()
        assert (
            connection.exec_driver_sql(f"update autograder_mark set {change} where {whose}", (student,)).rowcount == 1
        )
        gradebook.db.commit()


def give_points(root: Path, student: str, points: float | None, cell: str = "why_softmax") -> None:
    """Give points for a cell, as a person does in formgrader."""
    with opened_gradebook(root) as gradebook:
        grade = gradebook.find_grade(cell, UNIT, UNIT, student)
        grade.manual_score = points
        grade.needs_manual_grade = points is None and grade.auto_score is None
        gradebook.db.commit()


def comment(root: Path, student: str, comment: str, cell: str = "why_softmax") -> None:
    """Comment on an answer, as a person does in formgrader."""
    with opened_gradebook(root) as gradebook:
        gradebook.find_comment(cell, UNIT, UNIT, student).manual_comment = comment
        gradebook.db.commit()


def feedback_page(root: Path, student: str) -> Path:
    """Return the path of a student's feedback page in a course folder."""
    return root / "feedback" / student / UNIT / f"{UNIT}.html"


def write_roster(root: Path, column: str, values: Mapping[str, str]) -> None:
    """Write a class's roster with one column next to the ids. values: those of the column, by student."""
    with (root / "roster.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["id", column], *values.items()])


def put_submission(root: Path, student: str, content: bytes, timestamp: str | None = None, unit: str = UNIT) -> None:
    """Puts a notebook where `nbgrader collect` puts one."""
    folder = root / "submitted" / student / unit
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / f"{unit}.ipynb").write_bytes(content)
    if timestamp:
        (folder / "timestamp.txt").write_text(timestamp)


def _plain(row: Iterable[object]) -> tuple[object, ...]:
    """Return a row as SQLite stores it, without booleans and times."""
    plain: dict[type, Callable[[Any], object]] = {bool: int, datetime: lambda it: it.isoformat(" ", "microseconds")}
    return tuple(plain.get(type(it), lambda it: it)(it) for it in row)


def everything(root: Path) -> tuple[dict[str, list], dict[str, tuple[int, bytes]]]:
    """All that a course folder holds, but for the gradebook's own ids: the database's rows, and the files."""
    queries = {
        "students": "select id, first_name, last_name, email from student",
        "grades": """select s.student_id, c.name, g.auto_score, g.manual_score, g.extra_credit, g.needs_manual_grade
            from grade g join base_cell c on c.id = g.cell_id join submitted_notebook n on n.id = g.notebook_id
            join submitted_assignment s on s.id = n.assignment_id""",
        "comments": """select s.student_id, c.name, m.auto_comment, m.manual_comment
            from comment m join base_cell c on c.id = m.cell_id join submitted_notebook n on n.id = m.notebook_id
            join submitted_assignment s on s.id = n.assignment_id""",
        "submissions": """select s.student_id, s.timestamp, n.late_submission_penalty
            from submitted_assignment s join submitted_notebook n on n.assignment_id = s.id""",
        "marks": """select s.student_id, m.submission, m.status, m.version, m.kit, m.torch, m.device, m.isolation,
            m.enforced, m.cases, m.page from autograder_mark m
            join submitted_notebook n on n.id = m.submitted_notebook_id
            join submitted_assignment s on s.id = n.assignment_id""",
        "cells": "select name, type from base_cell",
        "points": "select b.name, g.max_score, g.cell_type from grade_cells g join base_cell b on b.id = g.id",
        "texts": "select name, cell_type, locked, source, checksum from source_cell",
        "schema": "select version_num from alembic_version",
    }
    with nbgrader_course.database_of(root).reading() as session:
        assert session
        rows = {name: sorted(map(_plain, session.execute(text(query))), key=repr) for name, query in queries.items()}
    files = {
        str(path.relative_to(root)): (path.stat().st_mode, path.read_bytes())
        for path in root.rglob("*")
        if path.is_file() and path.name != "gradebook.db"
    }
    return rows, files
