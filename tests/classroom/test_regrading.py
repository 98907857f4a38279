"""Grading a class again: the students who are graded or left alone, and what is kept of each grade."""

import io
import os
import shutil
from hashlib import sha256

import msgspec
import pytest
from rich.console import Console
from sqlalchemy import text

from autograder import course
from autograder.cli.class_results import class_table
from autograder.gradebook.reweights import Reweighting
from tests.recorded_class import (
    NOT_GRADED_TOO,
    UNIT,
    change_mark,
    comment,
    everything,
    feedback_page,
    give_points,
    notebook,
    opened_gradebook,
    put_submission,
)

FULL = course.unit(UNIT).max_score
IN_TIME = "2026-01-02 03:04:05 UTC"


@pytest.fixture(scope="module")
def once(recorded, tmp_path_factory):
    """A course graded once."""
    root = tmp_path_factory.mktemp("once") / "course"
    put_submission(root, "ada", notebook(), IN_TIME)
    put_submission(root, "bo", notebook(softmax="def softmax(scores): return scores"))
    put_submission(root, "cy", b"no notebook")
    recorded.grade(root)
    assert recorded.asked == ["ada", "bo", "cy"]
    return root


def test_nothing_changed(root, recorded):
    before = everything(root)
    result = recorded.grade(root)
    assert recorded.asked == []
    assert [(row.student, row.report.status, row.is_new) for row in result.rows] == [
        ("ada", "graded", False),
        ("bo", "graded", False),
        ("cy", "damaged", False),
    ]
    assert everything(root) == before
    recorded.grade(root, regrade=True)
    assert recorded.asked == ["ada", "bo", "cy"]
    assert everything(root) == before


def report_of(root, student):
    return root / "autograded" / student / UNIT / "report.json"


def notebook_of(root, student):
    return root / "autograded" / student / UNIT / f"{UNIT}.ipynb"


def change_the_score(root, student):
    with opened_gradebook(root) as opened:
        opened.find_grade("test_softmax", UNIT, UNIT, student).auto_score = 3.5
        opened.db.commit()


def damage_the_notebook(content):
    def damage(root, student):
        comment(root, student, "Look at the exponentials.")
        notebook_of(root, student).write_text(content)

    return damage


CHANGES = {
    "another-notebook": lambda root, student: put_submission(root, student, notebook(why_softmax="Changed."), IN_TIME),
    "another-time": lambda root, student: put_submission(root, student, notebook(), "2026-01-02 03:04:06 UTC"),
    "no-report": lambda root, student: report_of(root, student).unlink(),
    "no-notebook": lambda root, student: notebook_of(root, student).unlink(),
    "another-score": change_the_score,
    "a-damaged-report": lambda root, student: report_of(root, student).write_bytes(b'{"notebook": "\xff"}'),
    "an-empty-notebook": damage_the_notebook(""),
    "a-damaged-notebook": damage_the_notebook('{"cells": [1], "metadata": {}}'),
    "a-nested-notebook": damage_the_notebook("[" * 100_000),
    "another-kit": lambda root, student: change_mark(root, student, "kit = 'another'"),
    "another-torch": lambda root, student: change_mark(root, student, "torch = '1.0'"),
    "no-isolation": lambda root, student: change_mark(root, student, "isolation = 'none'"),
}


def test_changed_submissions_and_records_are_graded_again(recorded, tmp_path):
    """Each student is called after what changes; of the last one nothing does."""
    students = sorted(["the-same", *CHANGES])
    for student in students:
        put_submission(tmp_path, student, notebook(), IN_TIME)
    recorded.grade(tmp_path)
    assert recorded.asked == students
    for student, change in CHANGES.items():
        change(tmp_path, student)
    recorded.grade(tmp_path)
    assert recorded.asked == sorted(CHANGES)
    recorded.grade(tmp_path)
    assert recorded.asked == []


def test_a_persons_comment_reaches_the_page_without_grading_again(root, recorded):
    comment(root, "bo", "Look at the exponentials.")
    recorded.grade(root)
    assert recorded.asked == []
    assert "Look at the exponentials." in feedback_page(root, "bo").read_text()


def test_the_gradebook_records_the_conditions_of_a_grade(root, recorded):
    report = msgspec.json.decode((root / "autograded" / "bo" / UNIT / "report.json").read_bytes())
    (mark,) = [row for row in everything(root)[0]["marks"] if row[0] == "bo"]
    assert mark[1:] == (
        *(report[field] for field in ("submission", "status", "version", "kit", "torch", "device", "isolation")),
        ", ".join(report["enforced"]),
        report["cases"],
        mark[-1],
    )
    assert all(mark)


def test_a_grader_error_is_no_zero_and_is_graded_again(root, recorded):
    """A failing hidden test is no failing student: no score, and a person has to look."""
    put_submission(root, "bo", notebook(why_softmax="Changed."))
    report = recorded.grading_process.grade("bo.ipynb", notebook(why_softmax="Changed."), UNIT)
    exercises = [
        msgspec.structs.replace(e, status="grader_error", score=0.0) if e.name == "softmax" else e
        for e in report.exercises
    ]
    key = sha256(notebook(why_softmax="Changed.")).hexdigest(), ""
    recorded.known[key] = msgspec.structs.replace(report, status="grader_error", exercises=exercises)
    recorded.grade(root)
    del recorded.known[key]
    with opened_gradebook(root) as opened:
        softmax = opened.find_grade("test_softmax", UNIT, UNIT, "bo")
        assert (softmax.auto_score, softmax.needs_manual_grade) == (None, True)
    recorded.grade(root)
    assert recorded.asked == ["bo"]
    with opened_gradebook(root) as opened:
        softmax = opened.find_grade("test_softmax", UNIT, UNIT, "bo")
        assert (softmax.auto_score, softmax.needs_manual_grade) == (4.0, False)


def test_a_missing_grade_in_an_entry_affects_only_its_student(root, recorded):
    with opened_gradebook(root) as opened:
        opened.db.delete(opened.find_grade("test_softmax", UNIT, UNIT, "ada"))
        opened.db.commit()
    problems = {row.student: row.problem for row in recorded.grade(root).rows}
    assert recorded.asked == ["ada"]
    assert "KeyError" in problems.pop("ada")
    assert problems == {"bo": "", "cy": ""}


def test_a_file_instead_of_a_folder_affects_only_its_student(root, recorded):
    shutil.rmtree(root / "autograded" / "ada")
    (root / "autograded" / "ada").write_text("in the way")
    shutil.rmtree(root / "feedback" / "cy")
    (root / "feedback" / "cy").write_text("in the way")
    put_submission(root, "bo", notebook(why_softmax="Changed."))
    problems = {row.student: row.problem for row in recorded.grade(root).rows}
    assert recorded.asked == ["ada", "bo", "cy"]
    assert "Is something else at the path of the student's folder" in problems["ada"]
    assert "Is something else at the path of the student's folder" in problems["cy"]
    assert problems["bo"] == ""
    (root / "autograded" / "ada").unlink()
    (root / "feedback" / "cy").unlink()
    recorded.grade(root)
    assert recorded.asked == ["ada"]
    assert feedback_page(root, "cy").is_file()


def test_a_removed_submission_keeps_its_grade(root, recorded):
    shutil.rmtree(root / "submitted" / "ada")
    (ada, _, _) = recorded.grade(root).rows
    assert (ada.report.status, ada.report.score) == ("not_submitted", FULL)
    assert "keeps the grade" in ada.report.message


def test_a_name_that_is_no_text_is_left_alone_like_any_other(root, recorded):
    folder = root / "submitted" / "bo" / UNIT
    (folder / f"{UNIT}.ipynb").rename(folder / os.fsdecode(b"l\xf6sung.ipynb"))
    recorded.grade(root)
    assert recorded.asked == ["bo"]
    recorded.grade(root)
    assert recorded.asked == []


REFUSES = """CREATE TRIGGER refuses BEFORE INSERT ON submitted_notebook
WHEN (SELECT student_id FROM submitted_assignment WHERE id = NEW.assignment_id) = 'ada'
BEGIN SELECT RAISE(ABORT, 'refused'); END"""


def remove_entry_of_ada(opened):
    """Leave the row of ada's submission without its notebook."""
    notebook = opened.find_submission_notebook(UNIT, UNIT, "ada").id
    for table, column in (("grade", "notebook_id"), ("comment", "notebook_id"), ("submitted_notebook", "id")):
        opened.db.execute(text(f"DELETE FROM {table} WHERE {column} = :it"), {"it": notebook})
    opened.db.commit()


def test_an_entry_without_its_notebook_is_made_again(root, recorded):
    with opened_gradebook(root) as opened:
        remove_entry_of_ada(opened)
    rows = recorded.grade(root, regrade=True).rows
    assert [(row.student, row.problem) for row in rows] == [("ada", ""), ("bo", ""), ("cy", "")]


def test_an_entry_that_the_gradebook_refuses_affects_only_its_student(root, recorded):
    with opened_gradebook(root) as opened:
        remove_entry_of_ada(opened)
        opened.db.execute(text(REFUSES))
        opened.db.commit()
    problems = {row.student: row.problem for row in recorded.grade(root, regrade=True).rows}
    assert "the gradebook rejects this entry: refused" in problems.pop("ada")
    assert problems == {"bo": "", "cy": ""}


def test_answers_that_wait_for_a_person_are_counted(root, recorded):
    assert recorded.grade(root).grades.waiting == 0
    for student in ("ada", "bo"):
        put_submission(root, student, notebook(why_softmax="Because."))
    assert recorded.grade(root).grades.waiting == 2
    give_points(root, "ada", 1.5)
    assert recorded.grade(root).grades.waiting == 1


def is_to_be_read(root):
    with opened_gradebook(root) as opened:
        return opened.find_grade("why_softmax", UNIT, UNIT, "ada").needs_manual_grade


@pytest.mark.parametrize("other", [{}, {"why_softmax": "Because it sums to 1."}], ids=["same file", "other file"])
def test_a_person_reads_an_answer_again_only_if_the_file_is_another(root, recorded, other):
    put_submission(root, "ada", notebook(why_softmax="Because."))
    recorded.grade(root)
    assert is_to_be_read(root)
    with opened_gradebook(root) as opened:
        question = opened.find_grade("why_softmax", UNIT, UNIT, "ada")
        question.manual_score, question.needs_manual_grade = 1.5, False
        opened.db.commit()
    put_submission(root, "ada", notebook(**{"why_softmax": "Because.", **other}))
    recorded.grade(root, regrade=True)
    assert is_to_be_read(root) == bool(other)
    Reweighting(root, course.unit(UNIT, root)).put("context_vector", "drop", None)
    recorded.grade(root)
    assert is_to_be_read(root) == bool(other)


def test_a_notebook_that_came_beside_one_that_is_left_alone_is_named(root, recorded):
    (root / "submitted" / "ada" / UNIT / f"{UNIT} (1).ipynb").write_bytes(notebook())
    result = recorded.grade(root)
    assert recorded.asked == []
    console = Console(record=True, width=160, file=io.StringIO())
    console.print(class_table(course.unit(UNIT, root), result))
    assert f"{NOT_GRADED_TOO}`{UNIT} (1).ipynb`." in console.export_text()


def test_new_points_reach_a_gradebook_that_has_grades(root, recorded):
    """An instructor who changes points and grades again gets the new points in the gradebook, not a mixture."""
    with opened_gradebook(root) as opened:
        opened.find_grade_cell("test_softmax", UNIT, UNIT).max_score = 40.0  # as an earlier build had it
        opened.db.commit()
    recorded.grade(root)
    with opened_gradebook(root) as opened:
        grade = opened.find_grade("test_softmax", UNIT, UNIT, "ada")
        assert (grade.auto_score, grade.max_score) == (4.0, 4.0)
