"""The sample class through the real nbgrader and a real SQLite gradebook, with our command and without."""

import json
import os
import shutil
from hashlib import sha256

import msgspec
import nbformat
import pytest
from bs4 import BeautifulSoup
from nbgrader.api import Gradebook

from autograder import course
from autograder.course import content
from autograder.gradebook import records
from autograder.gradebook.clean_notebook import PUT_BACK
from autograder.gradebook.nbgrader_course import course_directory
from autograder.nbgrader_plugin.defaults import RecordReport
from autograder.report import REPORT_FILE, Report
from tests import REPOSITORY, forked_command
from tests.recorded_class import opened_gradebook

UNIT = "self_attention"
CLASS = REPOSITORY / "demo" / "submitted"
ROSTER = REPOSITORY / "demo" / "roster.csv"
SUBMITTERS = sorted(folder.name for folder in CLASS.iterdir())
NOTHING = "noor"


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A course folder in which the sample class was graded by the command, and what it printed."""
    root = tmp_path_factory.mktemp("course")
    shutil.copy(REPOSITORY / "nbgrader_config.py", root)
    result = grade(root)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return root, result.stdout


@pytest.fixture(scope="module")
def marks(graded):
    """The report on each student's file."""
    files = {student: graded[0] / "autograded" / student / UNIT / REPORT_FILE for student in SUBMITTERS}
    return {student: msgspec.json.decode(file.read_bytes(), type=Report) for student, file in files.items()}


def grade(root, *options, submitted=CLASS):
    arguments = ["grade", UNIT, "--course", root, "--submitted", submitted, "--roster", ROSTER, "--markers", "1"]
    return forked_command.autograder(*arguments, *options, cwd=REPOSITORY, env={**os.environ, "COLUMNS": "120"})


def nbgrader(root, *arguments):
    """Runs nbgrader's own command in a course folder."""
    result = forked_command.nbgrader(*arguments, cwd=root)
    assert result.returncode == 0, result.stderr


def scores(root):
    """Each student's exercises in the gradebook."""
    with opened_gradebook(root) as gradebook:
        return {
            student: {
                grade.name: (grade.auto_score, grade.max_score)
                for grade in gradebook.find_submission_notebook(UNIT, UNIT, student).grades
                if grade.name.startswith("test_")
            }
            for student in sorted(submission.student.id for submission in gradebook.assignment_submissions(UNIT))
        }


def of_reports(marks):
    """The same from reports; a damaged file earns nothing anywhere."""
    return {
        student: {
            exercise.check: (
                0.0 if report.status == "damaged" else report.exercise(exercise.name).score,
                exercise.points,
            )
            for exercise in course.unit(UNIT).exercises
        }
        for student, report in marks.items()
    }


def test_the_sample_class_is_what_it_says(marks):
    assert {student: (report.status, report.score) for student, report in marks.items()} == {
        "amara": ("graded", 36.0),
        "bertil": ("graded", 36.0),
        "chiara": ("graded", 33.09),
        "dmitri": ("graded", 32.5),
        "elif": ("graded", 29.91),
        "farid": ("cells_failed", 32.0),
        "greta": ("timed_out", 32.0),
        "hiroshi": ("damaged", 0.0),
        "ines": ("graded", 36.0),
        "jonas": ("graded", 13.0),
        "kavya": ("graded", 36.0),
        "liam": ("graded", 35.48),
        "mina": ("graded", 36.0),
        "olu": ("graded", 33.1),
        "petra": ("crashed", 34.0),
    }


def test_gradebook_holds_the_scores_of_the_reports(graded, marks):
    root, _ = graded
    assert scores(root) == of_reports(marks)


def test_table_has_a_row_for_everyone(graded):
    _, printed = graded
    for student in [*SUBMITTERS, NOTHING]:
        assert student in printed
    assert "nothing submitted" in printed
    assert "`homework (final) v2.ipynb` was graded" in printed
    assert "isolation A" in printed
    for mistake in ("divided_by_d_k", "softmax_over_dim_1", "KeysUsedAsValues", "timed out", "damaged"):
        assert mistake in printed


def feedback(root, student):
    return (root / "feedback" / student / UNIT / f"{UNIT}.html").read_text()


def test_feedback_names_the_mistake(graded, marks):
    root, _ = graded
    assert "divide by its square root, so that their variance stays near 1" in feedback(root, "chiara")
    assert "softmax runs over dim=1" in feedback(root, "dmitri")
    assert "SyntaxError" in feedback(root, "farid")
    assert "did not return in time" in feedback(root, "greta")
    assert "its content is not JSON" in feedback(root, "hiroshi")


def test_feedback_holds_no_path_and_no_traceback(graded):
    root, _ = graded
    for student in SUBMITTERS:
        page = feedback(root, student)
        assert str(REPOSITORY) not in page
        assert "Traceback (most recent" not in page
        assert not list((root / "feedback" / student).rglob("report.json"))


def test_the_whole_report_lies_beside_the_mark(graded):
    root, _ = graded
    report = json.loads((root / "autograded" / "chiara" / UNIT / "report.json").read_text())
    assert report["score"] == 33.09
    assert (report["isolation"], report["device"]) == ("A", "cpu")
    assert report["submission"] == sha256((CLASS / "chiara" / UNIT / f"{UNIT}.ipynb").read_bytes()).hexdigest()
    assert report["kit"] == content.unit_digest(UNIT)
    assert report["torch"].startswith("2.")
    assert "CRC-32 of the grader's name" in report["cases"]
    assert report["notebook"] == f"chiara/{UNIT}/{UNIT}.ipynb"


def test_submissions_are_left_as_they_were_handed_in():
    check = forked_command.run(str(REPOSITORY / "demo" / "sample_class.py"), "--check", cwd=REPOSITORY)
    assert check.returncode == 0, check.stdout


OF_EACH_KIND = ("dmitri", "farid", "hiroshi", "jonas", "kavya", "liam", "petra")
"""Named mistakes, a cell that fails, a damaged file, half of it not written, a cell twice, a check deleted, a crash."""


def test_plain_nbgrader_gives_the_same(graded, tmp_path, marks):
    """nbgrader's own commands, with this repository's settings and nothing of ours on the command line.

    Scores, marked notebooks and pages are those of `autograder grade`. But for a check that was deleted: nbgrader
    takes the line out that says that it was put back.

    nbgrader itself does not look at a renamed notebook, so there is none here.
    """
    shutil.copy(REPOSITORY / "nbgrader_config.py", tmp_path)
    shutil.copytree(REPOSITORY / "source" / UNIT, tmp_path / "source" / UNIT)
    for student in OF_EACH_KIND:
        shutil.copytree(CLASS / student, tmp_path / "submitted" / student)

    for command in ("generate_assignment", "autograde", "generate_feedback"):
        nbgrader(tmp_path, command, UNIT)
    others = {student: marks[student] for student in OF_EACH_KIND}
    assert scores(tmp_path) == of_reports(others)
    for student in others:
        about = f"{student}/{UNIT}/{UNIT}"
        ours = (graded[0] / "autograded" / f"{about}.ipynb").read_text()
        theirs = (tmp_path / "autograded" / f"{about}.ipynb").read_text()
        assert ours.replace(json.dumps(PUT_BACK) + ",", "").split() == theirs.split()
        page = feedback(graded[0], student).replace(f'<span class="c1">{PUT_BACK.strip()}</span>\n', "")
        assert str(BeautifulSoup(page, "html.parser")) == feedback(tmp_path, student)


@pytest.fixture(scope="module")
def autograded_once(graded, tmp_path_factory):
    """The graded course, of which nbgrader's own command has autograded one student's changed file since."""
    root = tmp_path_factory.mktemp("autograded") / "course"
    shutil.copytree(graded[0], root)
    for kind in ("source", "release"):
        shutil.copytree(REPOSITORY / kind, root / kind)
    shutil.copytree(CLASS / "chiara", root / "submitted" / "amara")
    nbgrader(root, "autograde", UNIT, "--student", "amara", "--force")  # as formgrader's button does
    return root


@pytest.fixture
def autograded(autograded_once, tmp_path):
    return shutil.copytree(autograded_once, tmp_path / "course")


def test_what_a_mark_of_nbgraders_own_autograde_rests_on(autograded, marks):
    submission = sha256((CLASS / "chiara" / UNIT / f"{UNIT}.ipynb").read_bytes()).hexdigest()
    with opened_gradebook(autograded) as gradebook:
        entry = gradebook.find_submission_notebook(UNIT, UNIT, "amara")
        kept = records.provenance(gradebook.db, entry.id)
    assert (kept.submission, kept.status, kept.isolation) == (submission, "graded", marks["chiara"].isolation)
    assert scores(autograded)["amara"] == scores(autograded)["chiara"]
    again = forked_command.autograder("grade", UNIT, "--course", autograded, cwd=REPOSITORY)
    assert "Not graded again, because unchanged since their last grading: 1." in again.stdout, again.stderr


def test_our_own_fault_is_no_zero_in_nbgraders_own_autograde(autograded):
    folder = autograded / "autograded" / "amara" / UNIT
    report = msgspec.json.decode((folder / REPORT_FILE).read_bytes(), type=Report)
    exercises = [
        msgspec.structs.replace(one, status="grader_error") if one.name == "scaled_softmax" else one
        for one in report.exercises
    ]
    report = msgspec.structs.replace(report, exercises=exercises)
    about = {"notebook": UNIT, "assignment": UNIT, "student": "amara", "db_url": f"sqlite:///{autograded}/gradebook.db"}
    outputs = {REPORT_FILE: msgspec.json.encode(report).decode()}
    notebook = nbformat.read(folder / f"{UNIT}.ipynb", as_version=4)
    recorder = RecordReport(config=course_directory(autograded).config)
    recorder.preprocess(notebook, {"nbgrader": about, "outputs": outputs})
    with Gradebook(about["db_url"], "attention") as gradebook:
        grades = {grade.name: grade for grade in gradebook.find_submission_notebook(UNIT, UNIT, "amara").grades}
        failed, other = grades["test_scaled_softmax"], grades["test_attention_scores"]
        assert (failed.auto_score, failed.needs_manual_grade) == (None, True)
        assert (other.auto_score, other.needs_manual_grade) == (other.max_score, False)
