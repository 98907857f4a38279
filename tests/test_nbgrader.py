"""The sample class through the real nbgrader and a real SQLite gradebook, with our command and without."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder import course
from autograder.course import REPOSITORY

UNIT = "self_attention"
CLASS = REPOSITORY / "demo" / "submitted"
STUDENTS = sorted(folder.name for folder in CLASS.iterdir())

pytestmark = pytest.mark.filterwarnings("ignore:Object of type <Submitted:sqlalchemy.exc.SAWarning")


@pytest.fixture(scope="module")
def marks(grader):
    """What `autograder mark` says of each student's file."""
    return {student: grader.mark_file(CLASS / student / UNIT / f"{UNIT}.ipynb") for student in STUDENTS}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A course folder in which the sample class was graded by the command, and what it printed."""
    root = tmp_path_factory.mktemp("course")
    command = [Path(sys.executable).with_name("autograder"), "grade", UNIT, "--course", root, "--submitted", CLASS]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, "COLUMNS": "120"})
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return root, result.stdout


def scores(root):
    """Each student's exercises in the gradebook."""
    with Gradebook(f"sqlite:///{root}/gradebook.db", "attention") as gradebook:
        return {
            student: {
                grade.name: (grade.auto_score, grade.max_score)
                for grade in gradebook.find_submission_notebook(UNIT, UNIT, student).grades
            }
            for student in STUDENTS
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
        "amara": ("graded", 12.0),
        "bertil": ("graded", 12.0),
        "chiara": ("graded", 9.09),
        "dmitri": ("graded", 10.01),
        "elif": ("graded", 6.27),
        "farid": ("cells_failed", 8.0),
        "greta": ("timed_out", 8.0),
        "hiroshi": ("damaged", 0.0),
    }


def test_gradebook_holds_the_scores_of_mark(graded, marks):
    root, _ = graded
    assert scores(root) == of_reports(marks)


def test_table_has_a_row_for_everyone(graded):
    _, printed = graded
    for student in STUDENTS:
        assert student in printed
    assert "isolation none" in printed
    for mistake in ("divided_by_d_k", "softmax_over_dim_1", "KeysUsedAsValues", "timed out", "damaged"):
        assert mistake in printed


def feedback(root, student):
    return (root / "feedback" / student / UNIT / f"{UNIT}.html").read_text()


def test_feedback_names_the_mistake(graded, marks):
    root, _ = graded
    assert "divide by its square root, so that their variance stays near 1" in feedback(root, "chiara")
    assert "softmax runs over dim=1" in feedback(root, "dmitri")
    assert "SyntaxError" in feedback(root, "farid")
    assert "It did not come back in time" in feedback(root, "greta")
    assert "its content is not JSON" in feedback(root, "hiroshi")


def test_feedback_holds_no_path_and_no_traceback(graded):
    root, _ = graded
    for student in STUDENTS:
        page = feedback(root, student)
        assert str(REPOSITORY) not in page
        assert "Traceback (most recent" not in page
        assert not list((root / "feedback" / student).rglob("report.json"))


def test_the_whole_report_lies_beside_the_mark(graded, marks):
    root, _ = graded
    report = json.loads((root / "autograded" / "chiara" / UNIT / "report.json").read_text())
    assert report["score"] == marks["chiara"].score
    assert (report["isolation"], report["device"]) == ("none", "cpu")
    assert report["notebook"] == f"chiara/{UNIT}/{UNIT}.ipynb"


def test_submissions_are_left_as_they_were_handed_in():
    check = subprocess.run([sys.executable, "demo/sample_class.py", "--check"], cwd=REPOSITORY, capture_output=True)
    assert check.returncode == 0, check.stdout


def test_plain_nbgrader_gives_the_same_scores(tmp_path, marks):
    """nbgrader's own commands, with this repository's settings and nothing of ours on the command line."""
    shutil.copy(REPOSITORY / "nbgrader_config.py", tmp_path)
    shutil.copytree(REPOSITORY / "source", tmp_path / "source")
    shutil.copytree(CLASS, tmp_path / "submitted")

    def nbgrader(*arguments):
        bin_folder = Path(sys.executable).parent
        environment = {**os.environ, "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}"}
        result = subprocess.run(
            [bin_folder / "nbgrader", *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert result.returncode == 0, result.stderr

    nbgrader("generate_assignment", UNIT)
    nbgrader("autograde", UNIT)
    nbgrader("generate_feedback", UNIT)
    assert scores(tmp_path) == of_reports(marks)
    assert "divide by its square root" in feedback(tmp_path, "chiara")
