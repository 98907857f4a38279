"""A course of its own, on another subject: built, marked and graded from its folder, by an engine out of a wheel."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

import jsonschema
import pytest
import xmlschema

from autograder import catalogue
from autograder.course.cells import filled_in
from autograder.student_check.unit_data import data_file, units_in
from tests import RELEASE, REPOSITORY, TESTS, forked_command
from tests.misbehaving.as_user import as_ordinary_user

COURSE = TESTS.joinpath("own_course")
UNIT = "normalisation"
MARKED = "dot_product_attention"
"""A unit of this repository."""


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """Files to copy to another machine: the engine's wheel, and the course of this repository."""
    folder = tmp_path_factory.mktemp("packed")
    command = [REPOSITORY / "deploy" / "pack", folder]
    # With the setuptools that is here: pip would install another for it.
    environment = {**os.environ, "PYTHON": sys.executable, "PIP_NO_BUILD_ISOLATION": "0"}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return folder


@pytest.fixture(scope="module")
def wheel(packed):
    """The engine's wheel."""
    (found,) = packed.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def python(wheel):
    """Python in an environment with this one's packages, and the engine from the wheel."""
    # Inside of this environment, so that links to its files can be made, and nobody takes it for the kit's code.
    with tempfile.TemporaryDirectory(dir=sys.prefix, prefix="of-a-wheel-") as folder:
        Path(folder).chmod(0o755)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        packages = Path(sysconfig.get_path("purelib", vars={"base": folder}))
        without = ("__editable__", "attention_autograder", "__pycache__")
        places = [one for one in Path(sysconfig.get_path("purelib")).iterdir() if not one.name.startswith(without)]
        subprocess.run(["cp", "--archive", "--link", *places, packages], check=True)
        subprocess.run(["cp", "--archive", "--link", Path(sys.prefix) / "share", folder], check=True)  # templates
        its = Path(folder) / "bin" / "python"
        subprocess.run([its, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel], check=True)
        for program in ("nbgrader", "pytest"):
            shutil.copy(Path(sys.executable).with_name(program), its.parent)  # `forked_command` runs it as its own
        yield its


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The course's folder, with the limits of this repository's."""
    folder = tmp_path_factory.mktemp("own") / "course"
    shutil.copytree(COURSE, folder)
    settings = (REPOSITORY / "autograder.toml").read_text()
    theirs = (
        settings.replace("assistants = true", "assistants = false")
        .replace('"attention_check"', '"layers_check"')
        .replace('["library attention"]', "[]")
    )
    (folder / "autograder.toml").write_text(f"show_repair = true\n{theirs}")
    return folder


@pytest.fixture(scope="module")
def outside(python):
    """The environment of somebody whose shell knows nothing of this one."""
    unknown = ("PYTHON", "PYTEST", "AUTOGRADER", "JUPYTER")
    return {name: value for name, value in os.environ.items() if not name.startswith(unknown)}


@pytest.fixture(scope="module")
def run(python, course, outside):
    """Runs a program of the wheel's environment in the course's folder, or in another."""

    def run(program, *arguments, expected=0, cwd=course):
        done = forked_command.run(program, *arguments, cwd=cwd, env=outside, python=python, course=course)
        assert done.returncode == expected, done.stdout + done.stderr
        return done.stdout or done.stderr

    return run


@pytest.fixture(scope="module")
def built(run, course):
    """The course with its source and release."""
    run("autograder", "build")
    return course


def solved(course):
    """The released notebook with a right layer norm and a known mistake in the block."""
    notebook = json.loads((course / "release" / UNIT / f"{UNIT}.ipynb").read_text())
    right = json.loads((course / "source" / UNIT / f"{UNIT}.ipynb").read_text())
    answers = {cell["id"]: "".join(cell["source"]) for cell in right["cells"]}
    answers["ResidualBlock"] = answers["ResidualBlock"].replace("return x + self", "return self")
    for cell in notebook["cells"]:
        if cell["id"] in ("layer_norm", "ResidualBlock"):
            cell["source"] = answers[cell["id"]]
    return json.dumps(notebook)


def test_a_wheel_holds_no_answer_and_no_hidden_grader(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    engine = [name for name in names if name.startswith("autograder/")]
    assert "autograder/cli/grade.py" in engine
    assert [name for name in names if "/test_" in name or name.endswith(".yaml")] == []
    assert {Path(name).parts[0] for name in names if ".dist-info" not in name} == {"autograder"}
    assert {Path(name).parts[1] for name in engine} & {"hidden", "misconceptions", "right_answers"} == set()


def test_a_container_marks_to_the_files_of_a_pipeline(python, packed, tmp_path):
    """Like in a container, the user has no name and no home, and may write only to /tmp and the results' folder."""
    notebook, answers = tmp_path / "homework.ipynb", catalogue.solutions(MARKED)
    right = {name: solution.source() for name, solution in answers.items()}
    notebook.write_bytes(filled_in(MARKED, {**right, "softmax": "def softmax(scores): return scores"}))
    out = tmp_path / "out"
    out.mkdir()
    for folder, mode in ((packed, 0o755), (tmp_path, 0o755), (out, 0o777)):
        folder.chmod(mode)
    files = ["--junit", str(out / "marks.xml"), "--gradescope", str(out / "results.json"), "--fail-under", "99"]
    command = [str(python.with_name("autograder")), "mark", str(notebook), *files]

    def run_on(course):
        line = ["/usr/bin/env", "-i", "PATH=/usr/bin:/bin", f"AUTOGRADER_COURSE={course}", *command]
        if os.geteuid() == 0:
            base = Path(sys.base_prefix).resolve()
            line = as_ordinary_user(line, [base, REPOSITORY, Path(sys.prefix), packed, tmp_path])
        return subprocess.run(line, capture_output=True, text=True, cwd="/")

    (tmp_path / "closed").mkdir(0)
    closed = run_on(tmp_path / "closed")
    assert (closed.returncode, closed.stdout) == (2, "")
    assert closed.stderr.startswith("There is no course here")
    done = run_on(packed / "course")
    assert done.returncode == 3, done.stderr
    assert "of the points, less than 99." in done.stderr
    report = json.loads(done.stdout)
    assert (report["status"], report["isolation"]) == ("graded", "A")
    jsonschema.validate(report, json.loads((REPOSITORY / "docs" / "mark.schema.json").read_text()))
    xmlschema.XMLSchema(TESTS.joinpath("junit.xsd")).validate(out / "marks.xml")
    shown = json.loads((out / "results.json").read_text())
    jsonschema.validate(shown, json.loads(TESTS.joinpath("gradescope.schema.json").read_text()))
    assert shown["score"] == report["score"]


def test_students_get_the_check_under_the_course_s_own_name(built):
    names = {path.name for path in (built / "release" / UNIT).iterdir()}
    assert names == {
        f"{UNIT}.ipynb",
        "layers_check.py",
        "layers_check.zip",
        data_file(UNIT),
        "README.md",
        "requirements.txt",
    }
    assert [line[:5] for line in (built / "release" / UNIT / "requirements.txt").read_text().splitlines()] == [
        "jupyt",
        "torch",
    ]


def test_students_get_the_course_s_leave_to_see_the_change_that_repairs_their_code(built):
    (unit,), _ = units_in(built / "release" / UNIT)
    assert unit.shows_repair
    (unit,), _ = units_in(RELEASE / "self_attention")
    assert not unit.shows_repair


def test_its_mistakes_are_caught_and_named(built, run):
    (built / "docs").mkdir()
    run("autograder", "matrix", "--write")
    page = built / "docs" / "matrix.md"
    written = page.read_text()
    total = next(line for line in written.splitlines() if "**all**" in line)
    assert [word.strip() for word in total.split("|")[2:-1]] == ["4", "4", "0", "4", "0", "1", "0"]
    page.write_text(f"{written}\n## A section of the course's own\n")
    run("autograder", "matrix", "--write")
    assert page.read_text() == f"{written}\n## A section of the course's own\n"


def test_pytest_runs_its_graders_on_its_solutions(built, run):
    said = run("pytest", "autograder/hidden", "-p", "autograder.graders.collection", "-q", "-c", os.devnull)
    assert "8 passed" in said


def test_a_notebook_is_marked(built, run):
    (built / "answer.ipynb").write_text(solved(built))
    report = json.loads(run("autograder", "mark", "answer.ipynb"))
    norm, block = report["exercises"]
    assert (report["unit"], report["isolation"]) == (UNIT, "A")
    assert (norm["status"], norm["score"]) == ("passed", 3.0)
    assert block["diagnosis"]["name"] == "InputNotAdded"


def test_a_class_is_graded_by_both_ways(built, run):
    for student in ("ada", "brook"):
        folder = built / "submitted" / student / UNIT
        folder.mkdir(parents=True)
        (folder / f"{UNIT}.ipynb").write_text(solved(built))
    assert "InputNotAdded" in run("autograder", "grade", UNIT, "--markers", "1")
    page = (built / "feedback" / "ada" / UNIT / f"{UNIT}.html").read_text()
    assert "The input is not added to what the layer makes of it." in page
    marked = json.loads((built / "autograded" / "brook" / UNIT / "report.json").read_text())
    shutil.rmtree(built / "autograded")
    run("nbgrader", "autograde", UNIT)
    again = json.loads((built / "autograded" / "brook" / UNIT / "report.json").read_text())
    assert again["exercises"] == marked["exercises"]
    run("autograder", "report", UNIT)
    mistakes = json.loads((built / "reports" / UNIT / "report.json").read_text())["mistakes"]
    assert [(one["name"], one["students"]) for one in mistakes] == [("InputNotAdded", ["ada", "brook"])]


def test_nbgrader_finds_the_engine_where_it_is_a_link_to_its_checkout(built):
    """`make` installs it like this. nbgrader searches the course's folder first, which has its own autograder/."""
    folder = built / "submitted" / "chiara" / UNIT
    folder.mkdir(parents=True)
    (folder / f"{UNIT}.ipynb").write_text(solved(built))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "AUTOGRADER"))}
    command = [Path(sys.executable).with_name("nbgrader"), "autograde", UNIT, "--student", "chiara", "--create"]
    done = subprocess.run(command, cwd=built, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    report = json.loads((built / "autograded" / "chiara" / UNIT / "report.json").read_text())
    assert (report["status"], report["isolation"], report["exercises"][0]["score"]) == ("graded", "A", 3.0)


def test_nbgrader_goes_nowhere_without_the_courses_settings(built, tmp_path):
    shutil.copyfile(built / "nbgrader_config.py", tmp_path / "nbgrader_config.py")
    (tmp_path / "autograder").mkdir()
    (tmp_path / "autograder" / "nbgrader_plugin.py").touch()
    command = [Path(sys.executable).with_name("nbgrader"), "list"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "The autograder cannot be used:" in done.stderr


def test_a_library_that_nobody_knows_is_refused(run, built):
    graders = built / "autograder" / "hidden" / UNIT / "test_layers.py"
    written = graders.read_text()
    graders.write_text(written.replace('"library attention"', '"layer norm"'))
    said = run("autograder", "mark", "answer.ipynb", expected=2)
    graders.write_text(written)
    libraries = "autograd or library softmax or library attention"
    assert f"TestResidualBlock::test_seeded forbids layer norm; it can be {libraries}." in said


@pytest.mark.parametrize("command", ["build", f"grade {UNIT}"])
def test_outside_of_any_course_each_command_says_so(run, tmp_path, command):
    said = run("autograder", *command.split(), cwd=tmp_path, expected=2)
    assert said.startswith("There is no course here")


def test_only_changed_units_are_built(run, built):
    assert run("autograder", "build", "--changed").startswith("Up to date: 1 units; 0 files copied")
    graders = next((built / "autograder" / "hidden" / UNIT).glob("test_*.py"))
    written = graders.read_text()
    graders.write_text(f"{written}\n# another comment\n")
    assert f"source/ and release/ of {UNIT} are up to date" in run("autograder", "build", "--changed")
    assert run("autograder", "build", "--changed").startswith("Up to date: 1 units")
    graders.write_text(written)
    assert "--changed finds the units itself" in run("autograder", "build", UNIT, "--changed", expected=2)


def test_a_course_that_would_hide_the_engine_is_refused(run, built):
    package = built / "autograder" / "__init__.py"
    package.touch()
    said = run("autograder", "build", expected=2)
    package.unlink()
    assert said.startswith(str(package))
