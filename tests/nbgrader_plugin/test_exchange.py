"""A unit's whole way through nbgrader's own commands: released, fetched, submitted, graded, read by hand, exported."""

import csv
import os
import sys
from pathlib import Path

import pytest

from autograder import course
from tests import RELEASE, REPOSITORY, forked_command
from tests.recorded_class import opened_gradebook, wrong

UNIT = "dot_product_attention"
BIN = Path(sys.executable).parent


@pytest.fixture
def nbgrader(tmp_path, autograder):
    """nbgrader on a course as `new-course` makes it, and a student's home next to it."""
    instructor, student = tmp_path / "course", tmp_path / "student"
    student.mkdir()
    made = autograder("new-course", instructor, UNIT)
    assert (made.returncode, made.stderr) == (0, "")
    theirs = {"CourseDirectory.course_id": "attention", "Exchange.root": str(instructor / "exchange")}
    settings = "".join(f"c.{name} = {value!r}\n" for name, value in theirs.items())
    (student / "nbgrader_config.py").write_text(f"c = get_config()\n{settings}")

    def run(who, *arguments):
        # As in a fresh shell: the environment's folder is not on the PATH.
        path = os.pathsep.join(folder for folder in os.environ["PATH"].split(os.pathsep) if folder != str(BIN))
        environment = {**os.environ, "PATH": path, "JUPYTER_PREFER_ENV_PATH": "1"}
        result = forked_command.nbgrader(*arguments, cwd=tmp_path / who, env=environment)
        assert result.returncode == 0, result.stderr
        return result.stderr

    run.folder = tmp_path
    return run


def test_a_released_folder_has_the_due_date_in_the_classs_time_zone(nbgrader):
    root, released = (
        nbgrader.folder / "course",
        nbgrader.folder / "course" / "exchange" / "attention" / "outbound" / UNIT,
    )
    readme = (RELEASE / UNIT / "README.md").read_text()
    nbgrader("course", "release_assignment", UNIT)
    assert (released / "README.md").read_text() == readme
    with (root / "nbgrader_config.py").open("a") as settings:
        settings.write("c.Exchange.timezone = 'Europe/Berlin'\n")
    nbgrader("course", "db", "assignment", "add", UNIT, "--duedate", "2026-12-01 18:00")
    (root / "release" / UNIT / "README.md").chmod(0o444)
    nbgrader("course", "release_assignment", UNIT, "--force")
    title, _, rest = readme.partition("\n")
    sentence = "**Due: 2026-12-01 18:00 CET.** If your instructor has given you more time, your own date counts."
    assert (released / "README.md").read_text() == f"{title}\n\n{sentence}\n{rest}"
    assert (root / "release" / UNIT / "README.md").read_text() == readme
    assert {path.name: path.read_bytes() for path in released.iterdir() if path.name != "README.md"} == {
        path.name: path.read_bytes() for path in (RELEASE / UNIT).iterdir() if path.name != "README.md"
    }


def test_from_source_to_export(nbgrader):
    root, home = nbgrader.folder / "course", nbgrader.folder / "student"
    (root / "gradebook.db").unlink()  # as in a fresh clone, where release/ is there all the same
    nbgrader("course", "db", "student", "import", str(REPOSITORY / "demo" / "roster.csv"))
    nbgrader("course", "generate_assignment", UNIT)
    nbgrader("course", "release_assignment", UNIT)
    nbgrader("student", "fetch_assignment", UNIT)
    fetched = home / UNIT
    assert {path.name for path in fetched.iterdir()} == {path.name for path in (RELEASE / UNIT).iterdir()}

    answer = "Because shares must be positive, also where scores are not."
    (fetched / f"{UNIT}.ipynb").write_bytes(wrong(why_softmax=answer))
    nbgrader("student", "submit", UNIT)
    nbgrader("course", "collect", UNIT)
    (me,) = [folder.name for folder in (root / "submitted").iterdir()]
    nbgrader("course", "autograde", UNIT)

    with opened_gradebook(root) as gradebook:
        question = gradebook.find_grade("why_softmax", UNIT, UNIT, me)
        assert question.needs_manual_grade
        question.manual_score, question.needs_manual_grade = 2.0, False
        gradebook.db.commit()
        automatic = gradebook.find_grade("test_softmax", UNIT, UNIT, me).auto_score
    assert 0 < automatic < 4

    nbgrader("course", "generate_feedback", UNIT)
    nbgrader("course", "release_feedback", UNIT)
    nbgrader("student", "fetch_feedback", UNIT)
    (page,) = (fetched / "feedback").rglob("*.html")
    assert "exp overflows for large scores" in page.read_text()

    nbgrader("course", "export")
    (row,) = [
        row
        for row in csv.DictReader((root / "grades.csv").read_text().splitlines())
        if row["student_id"] == me and row["assignment"] == UNIT
    ]
    total = course.unit(UNIT).max_score - 4 + automatic + 2.0
    assert float(row["score"]) == pytest.approx(total)
