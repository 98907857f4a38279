"""A course that an earlier version made and graded: it is upgraded, graded again and exported.

`earlier/course_of_7f4039c.tar.xz` was made by that commit: the units dot_product_attention and inference, and four
submissions to the first. ada's is right, ben's softmax ignores dim, cleo's dot_product_scores returns a list, and dan's
softmax overflows.
"""

import csv
import json
import os
import subprocess

import pytest

from tests import REPOSITORY, forked_command

UNIT = "dot_product_attention"
COURSE = REPOSITORY / "tests" / "earlier" / "course_of_7f4039c.tar.xz"
CHANGED = {
    ("ben", "softmax"): (3.11, 2.0),
    ("cleo", "dot_product_scores"): (0.0, 1.25),
    ("dan", "softmax"): (3.11, 2.0),
}
"""Points before and after, of the exercises to which a rule of the changelog applies."""


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    place = tmp_path_factory.mktemp("earlier")
    subprocess.run(["tar", "xf", COURSE, "-C", place], check=True)
    config = place / "course" / "nbgrader_config.py"
    config.write_text(config.read_text().replace("'COURSE'", repr(str(REPOSITORY))))
    return place / "course"


def run(*command):
    done = forked_command.autograder(*command, cwd=REPOSITORY, env={**os.environ, "COLUMNS": "200"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def points(course):
    """By student and exercise."""
    reports = {path.parents[1].name: json.loads(path.read_text()) for path in course.glob("autograded/*/*/report.json")}
    return {(student, one["name"]): one["score"] for student, of in reports.items() for one in of["exercises"]}


def test_it_is_upgraded_graded_again_and_exported(course):
    before = points(course)
    said = run("upgrade-course", course)
    assert f"{UNIT} is already graded, so its released version is kept." in said
    assert "inference updated to this version" in said
    assert not list(course.glob("*/inference/known_mistakes.json.gz"))

    predicted = run("grade", UNIT, "--course", course, "--dry-run", "--json")
    changes = [json.loads(line) for line in predicted.splitlines()]
    assert {(one["student"], one["exercise"]): (one["before"], one["after"]) for one in changes} == CHANGED
    reasons = {one["student"]: one["why"] for one in changes}
    assert "test_any_dimension failed, so that the exercise gives at most half of its points" in reasons["ben"]
    assert "a form that can be converted earns half" in reasons["cleo"]
    assert points(course) == before

    run("grade", UNIT, "--course", course)
    after = points(course)
    assert {key: (before[key], after[key]) for key in before if before[key] != after[key]} == CHANGED
    pages = {student: next(course.glob(f"feedback/{student}/{UNIT}/*.html")).read_text() for student in ("ada", "ben")}
    assert "This file was graded again: 2 of 4 points, before that 3.11 of 4." in pages["ben"]
    assert "graded again" not in pages["ada"]

    exported = course / "grades.csv"
    run("export", UNIT, "--course", course, "--output", exported)
    rows = list(csv.DictReader(exported.read_text().splitlines()))
    exercises = {name for _, name in after}
    assert {(row["student_id"], name): float(row[f"{UNIT}.{name}"]) for row in rows for name in exercises} == after
