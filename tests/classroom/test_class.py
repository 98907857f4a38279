"""A class as classes are: courses that change, folders with odd names, files that are not what they should be."""

import json
import os
import shutil

import pytest

from autograder import course
from autograder.gradebook.class_gradebook import ClassGradebook
from autograder.gradebook.nbgrader_course import course_directory
from tests import REPOSITORY, forked_command
from tests.recorded_class import NOT_GRADED_TOO, feedback_page, notebook, opened_gradebook

UNIT = "dot_product_attention"


def changed(change):
    """A full-marks notebook after `change(cells, notebook)`."""
    data = json.loads(notebook())
    change(data["cells"], data)
    return json.dumps(data).encode()


def cell(cells, name):
    return next(cell for cell in cells if cell["id"] == name)


def delete(*names):
    return lambda cells, data: cells.__setitem__(slice(None), [c for c in cells if c["id"] not in names])


def more_points(cells, data):
    for graded in cells:
        if "nbgrader" in graded["metadata"]:
            graded["metadata"]["nbgrader"]["points"] = 1000


def forged_grade_cell(cells, data):
    cell(cells, "test_softmax")["source"] = "1000"
    cell(cells, "test_softmax")["outputs"] = [
        {"output_type": "execute_result", "data": {"text/plain": "1000"}, "metadata": {}, "execution_count": 1}
    ]


FULL = course.unit(UNIT).max_score

OLD_ID = "c[1]"
"""A student's in the gradebook; a new student could not have it."""
# student: (the file's content, status, score)
HAND_INS = {
    "çağla-o'neil": (notebook(), "graded", FULL),
    OLD_ID: (notebook(), "graded", FULL),
    "deleted-check": (changed(delete("test_softmax")), "graded", FULL),
    "deleted-both": (changed(delete("softmax", "test_softmax")), "graded", FULL - 4),
    "deleted-setup": (changed(delete("setup", "six_words")), "graded", FULL),
    "edited-setup": (
        changed(lambda c, d: cell(c, "setup").update(source="import nothing_at_all")),
        "cells_failed",
        FULL,
    ),
    "edited-check": (changed(forged_grade_cell), "graded", FULL),
    "more-points": (changed(more_points), "graded", FULL),
    "other-kernel": (changed(lambda c, d: d["metadata"].update(kernelspec={"name": "julia"})), "graded", FULL),
    "no-metadata": (changed(lambda c, d: [c_.update(metadata={}) for c_ in c]), "graded", FULL),
    "odd-cells": (changed(lambda c, d: c.append({"cell_type": "poem", "source": ["a", "b"]})), "graded", FULL),
    "another-unit": ((REPOSITORY / "release/self_attention/self_attention.ipynb").read_bytes(), "graded", 0.0),
    "nbformat-3": (changed(lambda c, d: d.update(nbformat=3)), "damaged", 0.0),
}


def grade(root, *options):
    arguments = ["grade", UNIT, "--course", root, "--markers", "1", *options]
    return forked_command.autograder(*arguments, cwd=REPOSITORY, timeout=600, env={**os.environ, "COLUMNS": "200"})


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    root = tmp_path_factory.mktemp("class")
    ClassGradebook(course_directory(root), UNIT).close()
    with opened_gradebook(root) as gradebook:
        gradebook.add_student(OLD_ID)
    for student, (content, _, _) in HAND_INS.items():
        folder = root / "submitted" / student / UNIT
        folder.mkdir(parents=True)
        (folder / f"{UNIT}.ipynb").write_bytes(content)
    link = root / "submitted" / "link" / UNIT
    link.mkdir(parents=True)
    (link / f"{UNIT}.ipynb").symlink_to(REPOSITORY / "source" / UNIT / f"{UNIT}.ipynb")
    (root / "submitted" / "linked-folder").mkdir()
    (root / "submitted" / "linked-folder" / UNIT).symlink_to(REPOSITORY / "source" / UNIT)
    for place in (f"rar/{UNIT}/homework.rar", "loose/homework.ipynb", f"typo/{UNIT}s/{UNIT}.ipynb", "on top.ipynb"):
        (root / "submitted" / place).parent.mkdir(parents=True, exist_ok=True)
        (root / "submitted" / place).write_bytes(notebook())
    for name in (f"{UNIT}.ipynb", f"{UNIT} (1).ipynb"):
        (root / "submitted" / "two" / UNIT).mkdir(parents=True, exist_ok=True)
        (root / "submitted" / "two" / UNIT / name).write_bytes(notebook())
    (root / "submitted" / "empty-folder" / UNIT).mkdir(parents=True)
    (root / "submitted" / ".ipynb_checkpoints" / UNIT).mkdir(parents=True)
    result = grade(root)
    assert result.returncode == 0, result.stderr
    return root, result.stdout, result.stderr


@pytest.mark.parametrize("student", HAND_INS)
def test_each_student_has_the_right_status_and_score(graded, student):
    root, printed, _ = graded
    _, status, score = HAND_INS[student]
    report = json.loads((root / "autograded" / student / UNIT / "report.json").read_text())
    assert (report["status"], report["score"]) == (status, score), report["message"]
    assert student in printed
    with opened_gradebook(root) as gradebook:
        submission = gradebook.find_submission_notebook(UNIT, UNIT, student)
        automatic = [grade for grade in submission.grades if grade.name.startswith("test_")]
        assert sum(grade.auto_score for grade in automatic) == pytest.approx(score)
        assert sum(grade.max_score for grade in automatic) == FULL
    assert feedback_page(root, student).is_file()


def rows_of(graded):
    """Return the printed line of each student."""
    _, *lines = graded[1].partition("\nIsolation ")[0].splitlines()
    return {line.split()[0]: " ".join(line.split()) for line in lines}


def test_ignored_files_are_reported(graded):
    rows, said = rows_of(graded), " ".join(graded[2].split())
    assert f"There is no notebook, only `homework.rar`. Submit `{UNIT}.ipynb` itself." in rows["rar"]
    assert f"{NOT_GRADED_TOO}`{UNIT} (1).ipynb`." in rows["two"]
    assert f"IGNORED in {graded[0]}/submitted: on top.ipynb, loose/homework.ipynb, typo/{UNIT}s." in said
    assert "loose" not in rows
    assert "This is the notebook of `self_attention`, not that of" in rows["another-unit"]
    assert f"There is no {graded[0]}/nbgrader_config.py" in said


def test_students_not_on_the_roster_are_reported(tmp_path):
    (tmp_path / "roster.csv").write_text("id\nann\n")
    for student in ("ann", "Ann", "empty", "other"):
        (tmp_path / "submitted" / student / UNIT).mkdir(parents=True)
    (tmp_path / "submitted" / "Ann" / UNIT / f"{UNIT}.ipynb").write_text("damaged")
    (tmp_path / "submitted" / "other" / UNIT / "homework.rar").write_text("")
    without = "NOT ON THE ROSTER, with a folder but no notebook: empty, other."
    said = grade(tmp_path).stderr.splitlines()
    assert "NOT ON THE ROSTER, but graded all the same: Ann." in said
    assert without in said
    preview = grade(tmp_path, "--dry-run")
    assert preview.returncode == 0
    assert "NOT ON THE ROSTER, but would be graded all the same: Ann." in preview.stderr.splitlines()
    assert without in preview.stderr.splitlines()


def test_a_roster_without_any_submitter_is_refused_and_nothing_is_written(tmp_path):
    (tmp_path / "roster.csv").write_text("id,email\nann,a@example.org\nbo,b@example.org\n")
    for student in ("ann", "bo"):
        (tmp_path / "submitted" / student / UNIT).mkdir(parents=True)
    refused = grade(tmp_path, "--id-column", "email")
    assert refused.returncode == 2
    said = " ".join(refused.stderr.split())
    assert "there are submissions of ann, bo, and its ids are a@example.org, b@example.org. Nothing in this" in said
    assert sorted(one.name for one in tmp_path.iterdir()) == ["roster.csv", "submitted"]
    shutil.rmtree(tmp_path / "submitted" / "bo")
    (tmp_path / "submitted" / "ann").rename(tmp_path / "submitted" / "cy")  # the first one is not on the roster
    assert grade(tmp_path).returncode == 0


def test_links_and_empty_folders_have_a_row_with_a_reason(graded):
    rows = rows_of(graded)
    for name in ("link", "linked-folder"):
        assert "damaged" in rows[name]
        assert "not a regular file" in rows[name]
    assert "nothing submitted" in rows["empty-folder"]
    assert ".ipynb_checkpoints" not in rows
