"""`autograder serve` and hostile students: they make nobody else wait for long, and read nothing that is hidden."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from autograder.classroom import student_folders
from autograder.classroom.student_folders import SubmissionFiles
from autograder.gradebook.class_gradebook import Times
from autograder.report import NOT_WRITTEN, CellReport, ExerciseReport, Report
from autograder.report import TestReport as Verdict
from autograder.serving.released_pages import limited
from tests.recorded_class import UNIT
from tests.typed import solved


def test_notebooks_under_other_names_are_read_once(tmp_path, monkeypatch):
    folder = tmp_path / "ada" / UNIT
    folder.mkdir(parents=True)
    right = solved(UNIT)
    for name, content in (("mine", right), ("other", b"{}")):
        (folder / f"{name}.ipynb").write_bytes(content)
    read, read_in = [], student_folders.read_in
    monkeypatch.setattr(student_folders, "read_in", lambda folder, name: read.append(name) or read_in(folder, name))
    files = SubmissionFiles(tmp_path, UNIT)
    assert [files.submission("ada").notebook for _ in range(2)] == ["mine.ipynb"] * 2
    assert sorted(read) == ["mine.ipynb", "other.ipynb"]
    (folder / "mine.ipynb").write_bytes(b"{}")
    assert files.submission("ada").note == f"There is no `{UNIT}.ipynb`; `mine.ipynb` was graded."


@pytest.mark.parametrize("status", ["failed", "error", "passed"])
@pytest.mark.parametrize("show", ["check", "names"])
def test_a_forged_beginning_of_a_message_shows_nothing_hidden(status, show):
    forged = f"Its cell could not be run. {NOT_WRITTEN} smuggled"
    tests = [Verdict("a", "not_run", 0.0, forged, public=True)]

    def page(message, *cells):
        exercise = ExerciseReport("softmax", status, 0.0, 1.0, None, message, tests)
        report = Report("n", UNIT, "graded", "A", "cpu", 0.0, 1.0, [exercise], cells=[*cells])
        return limited(report, show, {}, Times(None, None), None).decode()

    assert "smuggled" not in page(f"{NOT_WRITTEN} smuggled")
    cell = CellReport("softmax", "failed", "NameError.", "")
    assert "smuggled" not in page(forged, cell)
    assert "smuggled" not in page(forged, CellReport("softmax", "ran", f"{NOT_WRITTEN} smuggled", ""))
    assert ("NameError." in page("Its cell could not be run. NameError.", cell)) is (status == "error")


def test_a_page_before_the_due_date_has_the_students_own_date_in_the_classs_time_zone():
    due = datetime(2026, 12, 3, 22, 59, 59)
    report = Report("n", UNIT, "graded", "A", "cpu", 0.0, 1.0, [])
    times = Times(datetime(2026, 12, 1, 11, 30, 20), due, timedelta(days=2))
    page = " ".join(limited(report, "names", {}, times, ZoneInfo("Europe/Berlin")).decode().split())
    assert "handed in on 2026-12-01 12:30 CET." in page
    assert "Due: 2026-12-03 23:59:59 CET. Your due date is 2 days later than the class's. From then on you see" in page
    page = limited(report, "names", {}, Times(None, None, timedelta(days=2)), None).decode()
    assert "Due" not in page
    assert "later than" not in page
