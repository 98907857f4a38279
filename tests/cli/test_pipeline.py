"""The interface to pipelines: exit codes, files for other programs, JSON with its schema, and what is in deploy/."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
import xmlschema
import yaml
from nbgrader.api import Gradebook

from autograder import course
from autograder.classroom.class_folder import new_course
from autograder.cli.class_results import StudentLine
from autograder.cli.console import ResultFiles
from autograder.cli.grade import exit_code
from autograder.output_files import NotWritable
from autograder.report import Diagnosis, ExerciseReport, Mistake, Report, WrittenQuestion
from autograder.report import TestReport as Verdict  # pytest would collect it
from autograder.reports.exports import gradescope_results, json_schema, junit_xml
from autograder.serving.served_unit import Served
from tests import RELEASE, REPOSITORY, TESTS
from tests.recorded_class import notebook

UNIT = "dot_product_attention"
BIN = Path(sys.executable).parent
PAGE = REPOSITORY / "docs" / "automation.md"
HOSTILE = "\0\x1b[31m]]></failure><!--\ud800\ufffe\u202e&amp;\r\n\"'"
(JOB,) = yaml.safe_load((REPOSITORY / "deploy" / "github-classroom.yml").read_text())["jobs"].values()
STEPS = {step.get("name"): step["run"] for step in JOB["steps"] if "run" in step}
COMMANDS = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def validated(content):
    """JUnit XML, held against its schema."""
    xmlschema.XMLSchema(TESTS / "junit.xsd").validate(ElementTree.ElementTree(root := ElementTree.fromstring(content)))
    for suite in root:
        cases = suite.findall("testcase")
        assert int(suite.get("tests")) == len(cases)
        for tag, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert int(suite.get(name)) == sum(case.find(tag) is not None for case in cases)
    return root


def on_gradescope(content):
    """The content of a results.json, held against its schema."""
    found = json.loads(content)
    jsonschema.validate(found, json.loads((TESTS / "gradescope.schema.json").read_text()))
    return found


def run(command, cwd, **environment):
    """Run a command line in a shell that finds the environment's programs first."""
    path = os.pathsep.join([str(BIN), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, **environment}
    return subprocess.run(["bash", "-ec", command], cwd=cwd, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A folder in which a class was collected and the page's commands have run, and what each of them did."""
    folder = tmp_path_factory.mktemp("pipeline")
    submissions = folder / "submissions"
    submissions.mkdir()
    (submissions / "a right one.ipynb").write_bytes(notebook(why_softmax="Shares are positive."))
    (submissions / "b <&\x1b.ipynb").write_bytes(notebook(softmax=f"raise ValueError({HOSTILE!r})"))
    shutil.copy(RELEASE / UNIT / f"{UNIT}.ipynb", submissions / "c.ipynb")
    (submissions / "d.ipynb").write_text("<html>")
    (submissions / "e.ipynb").symlink_to("gone")
    new_course(folder / "class", [UNIT])
    (folder / "class" / "submitted" / "no student" / UNIT).mkdir(parents=True)
    (folder / "class" / "roster.csv").write_text("id,first_name\nada,Ada\nbo,Bo\n")
    pushed = folder / "github" / "homework-ada"
    pushed.mkdir(parents=True)
    (pushed / f"{UNIT}.ipynb").write_bytes(notebook())
    run("git init -q && git add . && git -c user.name=ada -c user.email=ada@example.org commit -qm 1", pushed)
    places = {"REPOSITORIES": f"{folder}/github/homework-", "UNIT": UNIT, "CLASSROOM_TOKEN": "secret"}
    collected = run(STEPS["Collect"], folder / "class", **places)
    done = [run(command, folder, AUTOGRADER_COURSE=str(REPOSITORY)) for command in COMMANDS]
    return folder, [collected, *done]


def test_the_exit_code_says_that_a_file_could_not_be_read(page):
    _, (_, mark, *_) = page
    assert mark.returncode == 1
    low = [line for line in mark.stderr.splitlines() if line.endswith("of the points, less than 60.")]
    assert [line.split(".ipynb")[0][-1] for line in low] == ["c", "d"]
    assert mark.stderr.splitlines()[-1].startswith("submissions/e.ipynb: This is not a regular file.")


def test_every_line_is_as_its_schema_says(page):
    folder, _ = page
    its = json.loads((folder / "mark.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(its)
    reports = [json.loads(line) for line in (folder / "marks.jsonl").read_text().splitlines()]
    for report in reports:
        jsonschema.validate(report, its)
        for exercise in report["exercises"]:
            weighed = sum(test["max_points"] for test in exercise["tests"])
            assert weighed == pytest.approx(exercise["max_score"], abs=0.01)
    statuses = [report["status"] for report in reports]
    assert statuses == ["graded", "cells_failed", "graded", "damaged", "unreadable"]
    assert [[one["status"] for one in report["written"]] for report in reports[:3]] == [
        ["answered"], ["unanswered"], ["unanswered"],
    ]  # fmt: skip
    assert "written" in its["$defs"]["Report"]["required"]
    del reports[0]["exercises"][0]["tests"][0]["max_points"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(reports[0], its)


def test_the_schemas_are_those_of_the_types(page):
    folder, done = page
    assert [one.returncode for one in done[2:-1]] == [0]
    for name, type_ in (("mark", Report), ("grade", StudentLine), ("serve", Served)):
        kept = (REPOSITORY / "docs" / f"{name}.schema.json").read_bytes()
        assert kept == json_schema(type_), f"autograder {name} --schema > docs/{name}.schema.json"
        assert kept == (folder / f"{name}.schema.json").read_bytes()


def test_junit_xml_is_valid_and_says_what_the_reports_say(page):
    folder, _ = page
    right, failed, unwritten, damaged, unreadable = validated((folder / "marks.xml").read_bytes())
    assert (right.get("failures"), right.get("errors"), right.get("skipped")) == ("0", "0", "1")
    asked = json.loads((folder / "marks.jsonl").read_text().splitlines()[0])["exercises"]
    assert int(right.get("tests")) == sum(len(exercise["tests"]) for exercise in asked) + len(("why_softmax",))
    assert failed.get("name") == "submissions/b <&\ufffd.ipynb"
    said = [outcome.text for outcome in failed.iter("failure")]
    assert any("]]></failure><!--" in text and "\ufffd[31m" in text for text in said)
    assert int(unwritten.get("failures")) == sum(bool(test["max_points"]) for one in asked for test in one["tests"])
    assert [(case.find("failure").get("type")) for case in damaged.iter("testcase")] == ["damaged"]
    assert [(case.find("error").get("type")) for case in unreadable.iter("testcase")] == ["unreadable"]


def test_grade_prints_a_line_a_student(page):
    """Reports on a class that the workflow for GitHub Classroom collected from local repositories."""
    folder, (collected, *_, grade) = page
    assert (collected.returncode, collected.stdout) == (
        0, "::warning::bo: there is no repository, or it cannot be read.\n",
    )  # fmt: skip
    assert grade.returncode == 1
    lines = [json.loads(line) for line in (folder / "class.jsonl").read_text().splitlines()]
    its = json.loads((folder / "grade.schema.json").read_text())
    for line in lines:
        jsonschema.validate(line, its)
    assert [(line["student"], line["status"], line["score"]) for line in lines] == [
        ("ada", "graded", course.unit(UNIT).max_score), ("bo", "not_submitted", 0), ("no student", "not_graded", 0),
    ]  # fmt: skip
    assert [line["marked_now"] for line in lines] == [True, False, False]
    assert "Rename this folder." in lines[2]["problem"]
    assert STEPS["Grade"] == '.venv/bin/autograder grade "$UNIT" --json > grades.jsonl'


def test_points_given_by_a_person_are_kept_from_one_run_on_github_to_the_next(page, tmp_path):
    def next_run(name):
        run(f"git clone -q origin {name}", tmp_path)
        got = run(STEPS["Get the gradebook"], tmp_path / name)
        assert got.returncode == 0, got.stderr
        return tmp_path / name, got.stdout

    def keep(folder):
        kept = run(STEPS["Keep the gradebook"], folder, UNIT=UNIT)
        assert kept.returncode == 0, kept.stderr

    run("git init -q --bare origin", tmp_path)
    first, said = next_run("first")
    assert "no branch grades yet" in said
    shutil.copy(page[0] / "class" / "gradebook.db", first)
    keep(first)
    second, _ = next_run("second")
    with Gradebook(f"sqlite:///{second}/gradebook.db") as gradebook:
        question = gradebook.find_submission_notebook(UNIT, UNIT, "ada").grades[-1]
        question.manual_score = 1.5
        gradebook.db.commit()
    keep(second)
    third, _ = next_run("third")
    assert (third / "gradebook.db").read_bytes() == (second / "gradebook.db").read_bytes()
    assert len(run("git log --format=%h refs/kept/grades", third).stdout.splitlines()) == 2


EVERYTHING = Report(
    HOSTILE, UNIT, "graded", "A", "cpu", 1.5, 4.0,
    [
        ExerciseReport(
            "one", "failed", 1.5, 4.0, Diagnosis("this", "This.", Mistake("that", HOSTILE)), HOSTILE,
            [
                Verdict("test_right", "passed", 1.5, "It is right.", 1.5, public=True),
                Verdict("test_wrong", "failed", 0.0, f"It is not.{HOSTILE}", 2.5),
                Verdict("test_tells", "failed", 0.0, "It only tells."),
            ],
        )
    ],
    HOSTILE,
    written=[WrittenQuestion("why", "missing", 2.0)],
)  # fmt: skip


def replaced(**changes):
    """The report with other fields."""
    return Report(**{name: getattr(EVERYTHING, name) for name in EVERYTHING.__struct_fields__} | changes)


def test_what_a_student_wrote_is_text_in_every_format():
    (suite,) = validated(junit_xml([EVERYTHING]))
    tags = [[outcome.tag for outcome in case] for case in suite.iter("testcase")]
    assert tags == [[], ["failure"], ["skipped"], ["skipped"]]
    wrong = suite.find(".//failure").text
    assert "This." in wrong
    assert "<!--" in wrong
    shown = on_gradescope(gradescope_results(EVERYTHING, "after_due_date"))
    assert (shown["score"], shown["visibility"]) == (1.5, "visible")
    assert [(one["name"], one.get("score"), one.get("max_score"), one["visibility"]) for one in shown["tests"]] == [
        ("one", 1.5, 4, "after_due_date"),
        ("one: public tests", None, None, "visible"),
    ]
    whole, public = (one["output"].splitlines() for one in shown["tests"])
    outcomes = [line for line in whole if line.startswith(("passed", "FAILED"))]
    assert outcomes == ["FAILED  wrong (0 of 2.5 points)", "passed  right (1.5 of 1.5 points)", "FAILED  tells"]
    assert public == ["passed  right (1.5 of 1.5 points)", "It is right."]
    assert len(on_gradescope(gradescope_results(EVERYTHING, "visible"))["tests"]) == 1
    assert "its cell is not in the notebook" in shown["output"].lower()
    for text in (ElementTree.tostring(suite, "unicode"), shown["output"], *(one["output"] for one in shown["tests"])):
        assert text.replace("\n", "").isprintable()


@pytest.mark.parametrize("status", ["grader_error", "unreadable"])
def test_our_own_fault_is_no_score(status):
    fault = replaced(status=status, exercises=[], message="")
    shown = on_gradescope(gradescope_results(fault, "visible"))
    assert "score" not in shown
    assert shown["tests"] == []
    (suite,) = validated(junit_xml([fault]))
    assert suite.get("errors") == "1"


@pytest.mark.parametrize(
    ("score", "status", "percent", "code"),
    [
        (3.6, "graded", 90, 0),
        (3.59, "graded", 90, 3),
        (3.59, "graded", None, 0),
        (0.0, "damaged", 1, 3),
        (0.0, "damaged", 0, 0),
        (0.0, "unreadable", 90, 1),
        (4.0, "grader_error", None, 1),
    ],
)
def test_exit_codes(score, status, percent, code):
    assert exit_code([replaced(score=score, status=status)], percent) == code
    assert exit_code([replaced(score=0.0), replaced(score=score, status=status)], percent) in (code, 3)


@pytest.mark.parametrize(
    ("junit", "gradescope", "said"),
    [
        ("{}/a.xml", "{}/a.xml", "different files"),
        ("{}/homework.ipynb", None, "a file that this command reads"),
        ("{}/link", None, "a file that this command reads"),
        ("/proc/version", None, "you have no permission to change this file"),
    ],
)
def test_a_file_that_must_not_be_written_is_refused_before_marking(tmp_path, junit, gradescope, said):
    (tmp_path / "homework.ipynb").write_text("mine")
    (tmp_path / "link").symlink_to("homework.ipynb")
    junit, gradescope = (path and Path(path.format(tmp_path)) for path in (junit, gradescope))
    with pytest.raises(NotWritable, match=said):
        ResultFiles(junit, gradescope, "visible").check([tmp_path / "homework.ipynb"])


def test_results_are_written_whole_and_through_no_link(tmp_path):
    asked, mine = tmp_path / "marks.xml", tmp_path / "mine"
    mine.write_text("mine")
    files = ResultFiles(asked, tmp_path / "results.json", "visible")
    files.check([])
    asked.symlink_to(mine)  # while it was marked
    with pytest.raises(NotWritable, match=r"marks.xml is a link"):
        files.write([replaced(score=1.0)])
    assert (mine.read_text(), asked.is_symlink()) == ("mine", True)
    asked.unlink()
    files.write([replaced(score=1.0)])
    assert {path.name for path in tmp_path.iterdir()} == {"mine", "marks.xml", "results.json"}
    validated(asked.read_bytes())


def test_commands_refuse_in_a_sentence_and_print_their_version(tmp_path):
    marks = tmp_path / "results.json"
    two = run(f"autograder mark a.ipynb b.ipynb --gradescope {marks}", REPOSITORY)
    assert (two.returncode, two.stdout, marks.exists()) == (2, "", False)
    assert two.stderr.startswith("--gradescope takes one notebook")
    help_ = run("autograder mark --help > /dev/full", REPOSITORY)
    assert (help_.returncode, help_.stderr) == (
        2, "The text could not be written to the end: No space left on device.\n",
    )  # fmt: skip
    assert re.fullmatch(r"autograder \d+\.\d+\.\d+\n", run("autograder --version", REPOSITORY).stdout)


FORBIDDEN = """
import errno, pyseccomp
from autograder.sandbox import isolation

def forbid(*calls, flags=()):
    filter_ = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    for call in calls:
        filter_.add_rule(pyseccomp.ERRNO(errno.EPERM), call)
    for flag in flags:
        filter_.add_rule(pyseccomp.ERRNO(errno.EPERM), "clone", pyseccomp.Arg(0, pyseccomp.MASKED_EQ, flag, flag))
    filter_.load()
    isolation.missing.cache_clear()

forbid("unshare", "setns", "mount", "pivot_root", "clone3", flags=[1 << bit for bit in (17, 25, 26, 27, 28, 29, 30)])
print(isolation.choose("best", trust_submissions=False))
forbid("landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self")
print(isolation.choose("best", trust_submissions=True))
try:
    isolation.choose("best", trust_submissions=False)
except isolation.NotIsolated as reason:
    print(reason)
"""


def test_what_a_container_may_forbid_leaves_the_level_that_is_documented():
    done = subprocess.run([sys.executable, "-c", FORBIDDEN], cwd=REPOSITORY, capture_output=True, text=True)
    level, trusted, refused = done.stdout.splitlines() or [done.stderr]
    assert (level, trusted) == ("B", "none")
    (row,) = (line for line in PAGE.read_text().splitlines() if line.startswith("| neither: "))
    assert re.search('"(.*)"', row)[1] in refused


@pytest.fixture
def gradescope(tmp_path):
    """A folder laid out like Gradescope's /autograder, with this environment in the place of its own."""
    shutil.copy(REPOSITORY / "deploy" / "gradescope" / "run_autograder", tmp_path)
    for name in ("source", "submission", "venv"):
        (tmp_path / name).mkdir()
    (tmp_path / "venv" / "bin").symlink_to(BIN)
    (tmp_path / "source" / "course").symlink_to(REPOSITORY)
    return tmp_path


def test_gradescope_gets_its_results(gradescope):
    done = run("./run_autograder", gradescope)
    assert done.returncode == 0, done.stderr
    assert on_gradescope((gradescope / "results" / "results.json").read_bytes()) == {
        "score": 0,
        "output": "This submission has 0 notebooks. Submit one notebook, a file whose name ends in .ipynb.",
    }
    (gradescope / "submission" / "my homework.ipynb").write_bytes(notebook(softmax="def softmax(x): return x"))
    command = gradescope / "run_autograder"
    command.write_text(command.read_text().replace("hidden_visibility=visible", "hidden_visibility=after_published"))
    done = run("./run_autograder", gradescope)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    shown = on_gradescope((gradescope / "results" / "results.json").read_bytes())
    assert 0 < shown["score"] < course.unit(UNIT).max_score
    assert {one["visibility"] for one in shown["tests"]} == {"visible", "after_published"}
    assert {one["name"]: one["max_score"] for one in shown["tests"] if "score" in one} == {
        exercise.name: exercise.points for exercise in course.unit(UNIT).exercises
    }
    assert sum(one.get("score", 0) for one in shown["tests"]) == pytest.approx(shown["score"], abs=0.01)


def test_nightly_runs_are_the_command_that_is_documented():
    service = (REPOSITORY / "deploy" / "systemd" / "autograder@.service").read_text()
    folder = re.search("WorkingDirectory=(.*)", service)[1]
    program, *arguments = shlex.split(re.search("ExecStart=(.*)", service)[1])
    assert (program, arguments) == (f"{folder}/.venv/bin/autograder", ["grade", "%i"])
    crontab = (REPOSITORY / "deploy" / "crontab").read_text()
    assert f"* * * cd {folder} && .venv/bin/autograder grade self_attention" in crontab
