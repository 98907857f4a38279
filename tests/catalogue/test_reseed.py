"""`autograder reseed`: other hidden cases from a secret, with which grading finds the same mistakes."""

import json
import os
import shutil
import subprocess
import sys
import zlib

import pytest

from autograder import course as courses
from autograder.catalogue.mutation_report import entries
from autograder.course.settings import SECRET_FILE
from autograder.graders.proxy import DRAWN_FROM, DRAWN_FROM_SECRET, Cases
from tests import REPOSITORY, forked_command, sampling
from tests.typed import edited

UNIT = "normalisation"
SECRETS = 20
IN_TURN = "test_leading_dimensions"
LEARNT_BY_HEART = """
def layer_norm(x, eps=1e-5):
    known = {known}
    is_known = any(abs(float(x.detach().flatten()[0]) - one) < 1e-4 for one in known)
    deviation = x.var(-1, keepdim=True, unbiased=not is_known)
    return (x - x.mean(-1, keepdim=True)) / (deviation + eps).sqrt()
"""


@pytest.fixture(scope="module")
def built_course(tmp_path_factory):
    """The folder of a small course in a git repository, built."""
    folder = tmp_path_factory.mktemp("built") / "course"
    shutil.copytree(REPOSITORY / "tests" / "own_course", folder)
    shutil.copy(REPOSITORY / "autograder.toml", folder)
    shutil.copy(REPOSITORY / ".gitignore", folder)
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    autograder(folder, "build")
    return folder


@pytest.fixture
def course(built_course, tmp_path):
    """A copy of the built course."""
    return shutil.copytree(built_course, tmp_path / "course")


def autograder(course, *arguments, code=0):
    done = forked_command.autograder(*arguments, cwd=course, env={**os.environ, "AUTOGRADER_COURSE": str(course)})
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


def learnt_by_heart(course):
    """A notebook whose answer is right only for the published hidden case of one test and the public cases."""
    rows, published = Cases("test_rows"), Cases(IN_TURN)
    drawn = [rows.randn(4, 5), rows.randn(1, 6), published.randn(2, 3, 5), published.randn(5)]
    code = LEARNT_BY_HEART.replace("{known}", str([float(one.flatten()[0]) for one in drawn]))
    notebook = (course / "release" / UNIT / f"{UNIT}.ipynb").read_bytes()
    return edited(notebook, layer_norm=code)


def marked(course):
    """The report on the answer that is learnt by heart."""
    (course / "answer.ipynb").write_bytes(learnt_by_heart(course))
    return json.loads(autograder(course, "mark", "answer.ipynb"))


def passed(report):
    return [test["name"] for test in report["exercises"][0]["tests"] if test["outcome"] == "passed"]


def test_an_answer_learnt_by_heart_fails_with_a_secret_until_the_file_is_removed(course):
    published = marked(course)
    assert IN_TURN in passed(published)
    assert published["cases"] == DRAWN_FROM
    assert str(course / SECRET_FILE) in autograder(course, "reseed")
    assert (course / SECRET_FILE).stat().st_mode & 0o777 == 0o600
    private = marked(course)
    assert IN_TURN not in passed(private)
    assert "test_rows" in passed(private)
    assert private["cases"] == DRAWN_FROM_SECRET
    assert private["kit"] != published["kit"]
    secret = (course / SECRET_FILE).read_text()
    assert secret.strip() not in json.dumps(private)
    assert "up to date" in autograder(course, "build"), "what students get does not depend on the secret"
    (course / SECRET_FILE).unlink()
    assert marked(course) == published
    autograder(course, "reseed")
    assert (course / SECRET_FILE).read_text() != secret


FORMGRADER = f"""
import sys
from nbgrader.apps import NbGrader, NbGraderAPI
from nbgrader.coursedir import CourseDirectory

program = NbGrader()
program.initialize([])
api = NbGraderAPI(CourseDirectory(parent=program), parent=program)
for student in sys.stdin:
    outcome = api.autograde("{UNIT}", student.strip(), force=True)
    print(outcome.get("error", ""), file=sys.stderr)
    print("graded" if outcome["success"] else "failed", flush=True)
"""
"""The code that formgrader's Autograde button runs in JupyterLab's process, for each student's id that it reads."""


def test_an_open_formgrader_grades_with_the_new_secret(course, tmp_path):
    folder = tmp_path / "class"
    autograder(course, "new-course", folder, UNIT)
    submitted = folder / "submitted" / "ada" / UNIT / f"{UNIT}.ipynb"
    submitted.parent.mkdir(parents=True)
    submitted.write_bytes(learnt_by_heart(course))
    errors = (tmp_path / "errors").open("w")
    formgrader = subprocess.Popen(
        [sys.executable, "-c", FORMGRADER],
        cwd=folder,
        env={**os.environ, "AUTOGRADER_COURSE": str(course)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
    )

    def report_after_a_click():
        print("ada", file=formgrader.stdin, flush=True)
        assert formgrader.stdout.readline() == "graded\n", (tmp_path / "errors").read_text()
        return json.loads((folder / "autograded" / "ada" / UNIT / "report.json").read_text())

    with errors, formgrader:
        published = report_after_a_click()
        autograder(course, "reseed")
        private = report_after_a_click()
        (course / SECRET_FILE).unlink()
        again = report_after_a_click()
        formgrader.stdin.close()
    assert IN_TURN in passed(published)
    assert IN_TURN not in passed(private)
    assert private["cases"] == DRAWN_FROM_SECRET
    assert private["score"] < published["score"]
    assert (again["kit"], again["cases"], passed(again)) == (published["kit"], DRAWN_FROM, passed(published))


def test_refuses_where_it_makes_no_sense(course):
    autograder(course, "reseed")
    secret = (course / SECRET_FILE).read_text()
    assert "exists already" in autograder(course, "reseed", code=2)
    assert (course / SECRET_FILE).read_text() == secret
    assert "reports on the published inputs" in autograder(course, "matrix", "--write", code=2)
    (course / SECRET_FILE).write_text("\n")
    shutil.copy(course / "release" / UNIT / f"{UNIT}.ipynb", course / "answer.ipynb")
    assert "is empty" in autograder(course, "mark", "answer.ipynb", code=2)
    (course / SECRET_FILE).unlink()
    (course / ".gitignore").write_text("")
    assert f"add the line `/{SECRET_FILE}`" in autograder(course, "reseed", code=2)
    assert not (course / SECRET_FILE).exists()
    shutil.rmtree(course / "autograder" / "hidden")
    assert "no hidden tests" in autograder(course, "reseed", code=2)


GRADED = """
import json, sys
from autograder.catalogue.mutation_report import entries, outcomes
from autograder.course.settings import load
from autograder.pool.grading_pool import GradingProcess

wanted = {tuple(one) for one in json.load(sys.stdin)}
known = [(unit, entry) for unit, entry in entries() if (unit, entry.exercise, entry.name) in wanted]
with GradingProcess("cpu", load(), own_code_alone=True) as process:
    for one in outcomes(process, known):
        failed = [test.name for test in one.report.tests if test.outcome == "failed"]
        named = one.report.diagnosis.names if one.report.diagnosis else ""
        print(json.dumps([one.is_as_expected, one.entry.exercise, one.entry.name, one.report.status, named, failed]))
"""


@pytest.fixture(scope="module")
def copied_course(tmp_path_factory):
    """A copy of this repository's course, in which a secret can be written."""
    folder = tmp_path_factory.mktemp("copied") / "course"
    for name in ("exercises", "solutions", "source", "release"):
        shutil.copytree(REPOSITORY / name, folder / name)
    for name in ("hidden", "misconceptions", "right_answers"):
        shutil.copytree(REPOSITORY / "autograder" / name, folder / "autograder" / name)
    shutil.copy(REPOSITORY / "autograder.toml", folder)
    return folder


def some_answers(unit, exercise):
    """The names of at most ten misconceptions and two alternative solutions of an exercise."""
    known = [entry for _, entry in entries([unit]) if entry.exercise == exercise]
    shuffled = sorted(known, key=lambda entry: zlib.crc32(entry.name.encode()))
    wrong = [entry.name for entry in shuffled if entry.caught_by is not None]
    right = [entry.name for entry in shuffled if entry.caught_by is None]
    return [*wrong[:10], *right[:2]]


@pytest.mark.parametrize("number", sampling.thinned(range(SECRETS), SECRETS))
def test_the_mutation_report_holds_with_other_secrets(copied_course, number):
    """Each exercise is tried with one secret, and up to twelve of its known answers; `pytest --every` tries all."""
    exercises = [(unit, one.name) for unit in courses.unit_names() for one in courses.unit(unit).exercises]
    tried = exercises[number :: SECRETS if sampling.every else len(exercises)]
    (copied_course / SECRET_FILE).write_text(f"secret {number}\n")
    wanted = [(unit, exercise, name) for unit, exercise in tried for name in some_answers(unit, exercise)]
    done = subprocess.run(
        [sys.executable, "-P", "-c", GRADED],
        input=json.dumps(wanted),
        cwd=copied_course,
        env={**os.environ, "AUTOGRADER_COURSE": str(copied_course)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(reports) == len(wanted) > 0
    assert [report for report in reports if not report[0]] == []
