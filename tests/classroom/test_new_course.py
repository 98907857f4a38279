"""Course folders: made by `new-course`, marked as they were given out, upgraded while nothing is graded."""

import json
import os
import re
import shutil
import stat
from pathlib import Path

import nbformat
import pytest
from traitlets.config import PyFileConfigLoader

from autograder import course
from autograder.build.source_notebook import source_notebook
from autograder.classroom.assignment import assignment
from autograder.classroom.class_folder import NotMade, new_course, upgrade_course
from autograder.course.cells import filled_in
from autograder.course.settings import load
from autograder.gradebook.nbgrader_course import CourseProblem, nbgrader_api
from tests import REPOSITORY, files, forked_command
from tests.recorded_class import opened_gradebook
from tests.typed import solution_sources

UNIT = "dot_product_attention"
GONE, CHANGED = "normalize_by_sum", "softmax"
POINTS = {
    "older": {"softmax": 8.0, "normalize_by_sum": None, "all": 20.0},
    "now": {"softmax": 4.0, "normalize_by_sum": 2.0, "all": 18.0},
}
"""By version of the kit: what the two exercises that differ give, and all exercises together."""


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    """A kit with one unit, which `becomes` this repository's version of it, or an older one."""
    folder = tmp_path_factory.mktemp("kit") / "kit"
    for kind in ("hidden", "misconceptions", "right_answers"):
        theirs = REPOSITORY / "autograder" / kind
        shutil.copytree(theirs / UNIT, folder / "autograder" / kind / UNIT)
        for module in theirs.glob("*.py"):
            shutil.copy(module, folder / "autograder" / kind)
    shutil.copytree(REPOSITORY / "solutions", folder / "solutions")
    for name in ("autograder.toml", "nbgrader_config.py"):
        shutil.copy(REPOSITORY / name, folder)
    return folder


def becomes(kit, version):
    for kind in ("source", "release"):
        shutil.rmtree(kit / kind, ignore_errors=True)
        shutil.copytree(REPOSITORY / kind / UNIT, kit / kind / UNIT)
    if version == "now":
        return
    text = kit / f"{UNIT}.py"
    now = (REPOSITORY / "exercises" / f"{UNIT}.py").read_text()
    older = now.replace('exercise="softmax" points=4', 'exercise="softmax" points=8')
    text.write_text(older.replace('# %% exercise="normalize_by_sum" points=2\n', ""))
    nbformat.write(
        source_notebook(text, kit / "solutions" / f"{UNIT}.py", load()), kit / "source" / UNIT / f"{UNIT}.ipynb"
    )
    made = nbgrader_api(kit).generate_assignment(UNIT, force=True, create=True)
    assert made["success"], made
    (kit / "gradebook.db").unlink()


def nbgrader(folder, *arguments):
    """nbgrader's own command, as in a shell that knows of no course."""
    theirs = {name: value for name, value in os.environ.items() if not name.startswith("AUTOGRADER")}
    done = forked_command.nbgrader(*arguments, cwd=folder, env=theirs)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def command(kit):
    """The `autograder` command in the kit's folder, or another."""

    def command(*arguments, expected=0, cwd=kit):
        own = {name: value for name, value in os.environ.items() if name != "AUTOGRADER_COURSE"}
        done = forked_command.autograder(*arguments, cwd=cwd, env=own)
        assert done.returncode == expected, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return " ".join((done.stdout + done.stderr).split())

    return command


@pytest.fixture(scope="module")
def folders(kit, command):
    """Two course folders of an older kit, autumn and winter; then the kit became what it is now."""
    classes = kit / "classes"
    becomes(kit, "older")
    command("new-course", classes / "autumn")
    put_submission(classes / "autumn")
    shutil.copytree(classes / "autumn", classes / "winter")
    becomes(kit, "now")
    return classes


def put_submission(folder):
    """A student's notebook as the folder gave it out, solved."""
    answers = solution_sources(UNIT)
    place = folder / "submitted" / "ada" / UNIT
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{UNIT}.ipynb").write_bytes(filled_in(UNIT, answers, folder))


def held(folder):
    """The unit's grade cells in the gradebook with their points; and what ada has, where she is graded."""
    with opened_gradebook(folder) as gradebook:
        cells = {cell.name: cell.max_score for cell in gradebook.find_notebook(UNIT, UNIT).grade_cells}
        entries = [entry for entry in gradebook.assignment_submissions(UNIT) if entry.student_id == "ada"]
        return cells, [entry.score for entry in entries]


def is_of(folder, version):
    """Return whether the gradebook has a version's points, and ada all of them if she is graded."""
    cells, scores = held(folder)
    of_it = POINTS[version]
    points = tuple(cells.get(f"test_{name}") for name in (CHANGED, GONE))
    return points == (of_it[CHANGED], of_it[GONE]) and set(scores) <= {of_it["all"]}


def test_a_new_course_has_all_that_it_needs_and_takes_no_other_s_place(folders, kit, command, tmp_path, monkeypatch):
    autumn = folders / "autumn"
    assert {path.name for path in autumn.iterdir()} >= {
        "nbgrader_config.py", "roster.csv", "source", "release", "submitted", "exchange", "gradebook.db"
    }  # fmt: skip
    assert [stat.S_IMODE(place.stat().st_mode) for place in (autumn, autumn / "exchange")] == [0o700, 0o1777]
    assert is_of(autumn, "older")
    with monkeypatch.context() as patch:
        patch.setenv("AUTOGRADER_COURSE", str(kit))  # or its settings would set it for other tests too
        theirs, ours = (PyFileConfigLoader("nbgrader_config.py", path=str(of)).load_config() for of in (kit, autumn))
    assert (ours.CourseDirectory.root, ours.Exchange.root) == (str(autumn), str(autumn / "exchange"))
    assert ours.Autograde == theirs.Autograde
    assert "'../..'" in (autumn / "nbgrader_config.py").read_text()  # both can be moved together
    assert (autumn / ".gitignore").read_text() == "*\n"  # the students' records stay out of the kit's history
    before = files(autumn)
    assert "already exists and is not empty. Name a new folder" in command("new-course", autumn, expected=2)
    assert files(autumn) ^ before == set()
    with pytest.raises(
        course.UnknownUnit, match=r"There is no unit `calculus`\. The units are: attention_masks, causal_attention,"
    ):
        new_course(tmp_path / "spring", ["calculus"])
    with pytest.raises(NotMade, match="/proc/spring cannot be created: No such file"):
        new_course(Path("/proc/spring"))
    assert list(tmp_path.iterdir()) == []


def test_a_course_folder_is_marked_by_what_it_was_given(folders, command):
    autumn = folders / "autumn"
    said = command("grade", UNIT, "--course", autumn, "--markers", "1")
    assert f"{UNIT}: 1 students, 23 points, 3 by hand" in said
    assert "ada graded 20 / 20" in said
    assert "The exercises of the folder's version are graded, with that version's points." in said
    assert is_of(autumn, "older")
    assert held(autumn)[1] == [20.0]
    report = json.loads((autumn / "autograded" / "ada" / UNIT / "report.json").read_text())
    assert GONE not in [exercise["name"] for exercise in report["exercises"]]
    shutil.rmtree(autumn / "autograded")
    nbgrader(autumn, "autograde", UNIT)
    again = json.loads((autumn / "autograded" / "ada" / UNIT / "report.json").read_text())
    assert again["exercises"] == report["exercises"]
    before = files(autumn)
    assert f"{UNIT} is already graded, so its released version is kept." in command("upgrade-course", autumn)
    assert files(autumn) ^ before == set()
    said = command("upgrade-course", autumn, UNIT, expected=2)
    assert f"{UNIT} is already graded in {autumn} (1 of the class), so its released version is kept." in said
    assert files(autumn) ^ before == set()


def test_a_course_folder_is_upgraded_before_anything_is_graded(folders, kit, command):
    winter = folders / "winter"
    kept = winter / "source" / UNIT / f"{UNIT}.ipynb"
    original = kept.read_text()
    kept.write_text(original.replace("softmax", "SOFTMAX"))
    with pytest.raises(NotMade, match=f"{kept} was changed by hand, and upgrading would lose these changes."):
        upgrade_course(winter)
    kept.write_text(original)
    assert is_of(winter, "older")
    (winter / "source" / UNIT / "data.txt").write_text("an instructor's own")
    former = winter / "source" / UNIT / "known_mistakes.json.gz"
    former.write_text("data of an earlier version's check")
    assert f"{UNIT} updated to this version of the autograder." in command("upgrade-course", winter)
    assert is_of(winter, "now")
    for kind in ("source", "release"):
        assert files(kit / kind) - files(winter / kind) == set()
    assert (winter / "source" / UNIT / "data.txt").is_file()
    assert not former.exists()
    assert "are up to date with this version of the autograder" in command("upgrade-course", winter)
    wrong = (
        (REPOSITORY, "is the course itself"),
        (winter / "no", "There is no course folder"),
        (winter / "source", "is not a class's folder"),
    )
    for place, reason in wrong:
        with pytest.raises(NotMade, match=reason):
            upgrade_course(place)


def test_without_course_it_is_the_class_whose_folder_we_are_in(folders, kit, command):
    autumn = folders / "autumn"
    assert f"source has another version of {UNIT}" in command("grade", UNIT, "--dry-run", cwd=autumn)
    for elsewhere in (kit, autumn / "submitted"):
        said = command("grade", UNIT, "--dry-run", cwd=elsewhere, expected=2)
        assert f"there is no {kit}/submitted/" in said


def test_what_cannot_be_marked_is_a_sentence(folders, tmp_path, monkeypatch):
    monkeypatch.setenv("AUTOGRADER_COURSE", str(REPOSITORY))  # or the folder's settings would set it
    winter = folders / "winter"
    kept = winter / "source" / UNIT / f"{UNIT}.ipynb"
    right = kept.read_text()

    def refused(kind, sentence):
        with pytest.raises(kind, match=re.escape(sentence)):
            assignment(UNIT, winter, None, None)

    kept.write_text(right.replace(GONE, "normalize_by_maximum"))
    refused(course.UnusableUnit, "no longer in the autograder: normalize_by_maximum.")
    kept.write_text("{")
    refused(course.UnusableUnit, f"{kept} cannot be read")
    shutil.rmtree(kept.parent)
    refused(course.UnknownUnit, f"`autograder upgrade-course {winter} {UNIT}` brings it.")
    kept.parent.mkdir()
    kept.write_text(right)
    settings = winter / "nbgrader_config.py"
    settings.write_text(settings.read_text().replace("'../..'", "'/nowhere'"))
    refused(CourseProblem, f"/nowhere has no nbgrader_config.py. Write where the course is now into {settings}.")
    settings.write_text(settings.read_text().replace("'/nowhere'", repr(str(tmp_path))))
    (tmp_path / "nbgrader_config.py").write_text("import a_kit_that_is_not_installed")
    refused(CourseProblem, f"{tmp_path} cannot be used: No module named 'a_kit_that_is_not_installed'.")
