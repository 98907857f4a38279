"""A course, or a class's folder, whose path has in it what regular expressions, globs, addresses and formats obey."""

import os
import shutil
import zipfile
from pathlib import Path

import pytest
from nbgrader import utils
from typer.testing import CliRunner

from autograder import course
from autograder.classroom.class_folder import NotMade, new_course
from autograder.cli import app
from autograder.course.settings import use
from autograder.gradebook import nbgrader_course
from autograder.gradebook.nbgrader_course import course_directory, nbgrader_api
from autograder.gradebook.roster import may_be_graded
from autograder.graders import collection
from tests import REPOSITORY, TESTS, forked_command
from tests.interrupting import in_a_fork
from tests.recorded_class import UNIT, RecordedClass, feedback_page
from tests.typed import solved

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

OWN_COURSE = TESTS / "own_course"
NAME = "C++ (2026) [autumn] 100 % $y {z} *v? 'q' \"p\" #1 ~ & ; %41 [!a]"


def run(*arguments):
    result = CliRunner().invoke(app(), list(map(str, arguments)))
    assert result.exit_code == 0, (arguments, result.output, result.exception)
    return " ".join(result.output.split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory, grading_process):
    """A class's folder below this name, and called so, in which somebody is graded."""
    place = tmp_path_factory.mktemp("odd") / NAME / NAME
    said = run("new-course", place, UNIT)
    assert str(place) in said
    (place / "roster.csv").write_text("id,first_name,last_name\nada,Ada,O\n")
    packed = place / "moodle [1].zip"
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr(f"Ada O_501_assignsubmission_file_/{UNIT}.ipynb", solved(UNIT))
    run("import", UNIT, packed, "--course", place)
    result = RecordedClass(grading_process).grade(place)
    full = course.unit(UNIT).max_score
    assert [(row.student, row.report.score, row.problem) for row in result.rows] == [("ada", full, "")]
    return place


def test_the_commands_work(folder):
    run("export", UNIT, "--course", folder, "--output", folder / "marks [1].csv")
    assert (folder / "marks [1].csv").read_text().startswith("student_id,")
    assert "1 feedback pages for Moodle" in run("feedback-zip", UNIT, "--course", folder)
    run("report", UNIT, "--course", folder)
    assert (folder / "reports" / UNIT / "report.html").is_file()
    assert "are up to date with" in run("upgrade-course", folder)
    with nbgrader_course.database_of(folder).reading() as session:
        assert session is not None
    assert not list(folder.parent.glob("*.part"))


def test_nbgrader_works(folder):
    exchange = folder / "exchange" / "attention" / "inbound" / f"bo+{UNIT}+2026-01-02 03:04:05 UTC"
    exchange.mkdir(parents=True, exist_ok=True)
    (exchange / f"{UNIT}.ipynb").write_text("{}")
    for command in (["release_assignment"], ["collect", "--ExchangeCollect.check_owner=False"]):
        done = forked_command.nbgrader(command[0], UNIT, *command[1:], cwd=folder)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert (folder / "exchange" / "attention" / "outbound" / UNIT / f"{UNIT}.ipynb").is_file()
    assert (folder / "submitted" / "bo" / UNIT / f"{UNIT}.ipynb").read_text() == "{}"
    use(folder)
    api = nbgrader_api(folder)
    assert api.get_source_assignments() == api.get_released_assignments() == {UNIT}
    assert {one["student"]: one["autograded"] for one in api.get_submissions(UNIT)} == {"ada": True, "bo": False}
    assert [one["name"] for one in api.get_notebooks(UNIT)] == [UNIT]
    page = feedback_page(folder, "ada")
    page.unlink()
    assert api.generate_feedback(UNIT, "ada")["success"]
    assert page.is_file()
    made = api.generate_assignment(UNIT, force=True)
    assert made["success"], made
    assert may_be_graded(course_directory(folder))("ada")


def test_a_name_that_a_student_chose_is_no_pattern_and_none_hides(folder):
    use(folder)
    directory = course_directory(folder)
    files = Path(directory.format_path("source", ".", UNIT))
    (files / "[a].pyc").write_text("")
    assert utils.is_ignored(str(files / "[a].pyc"), directory.ignore)
    assert str(files / "[a].pyc") not in utils.find_all_files(str(files), directory.ignore)
    assert str(files / f"{UNIT}.ipynb") in utils.find_all_files(str(files), directory.ignore)
    (files / "[a].pyc").unlink()


def test_hidden_graders_are_found(tmp_path):
    place = tmp_path / f"{NAME}::$HOME"
    shutil.copytree(OWN_COURSE, place)
    (place / "autograder.toml").write_text(
        (REPOSITORY / "autograder.toml").read_text().replace('["library attention"]', "[]")
    )

    def names():
        use(place)
        return sorted(collection.collect()["normalisation"])

    ended, said = in_a_fork(names)
    assert ended == 0, said
    assert "layer_norm" in said


@pytest.mark.parametrize("name", ["$HOME", "a${HOME}b", "a\nb", "a\u202eb", "a\x1bb", os.fsdecode(b"\xff")])
def test_what_would_lead_nbgrader_to_other_settings_is_refused_before_anything_is_made(tmp_path, name):
    with pytest.raises(NotMade, match="Name another"):
        new_course(tmp_path / name / "class", [UNIT])
    assert list(tmp_path.iterdir()) == []
