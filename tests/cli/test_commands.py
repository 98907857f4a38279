"""The commands as an instructor types them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from autograder import course
from autograder.classroom.assignment import assignment
from autograder.classroom.submissions import Submission, SubmissionFiles
from autograder.gradebook import roster
from autograder.gradebook.nbgrader_course import course_directory
from autograder.gradebook.roster import BadRoster
from autograder.gradebook.time_stamp import time_in
from tests import RELEASE, REPOSITORY, SOURCE

UNIT, SHORTEST = "self_attention", "dot_product_attention"
RELEASED = f"release/{UNIT}/{UNIT}.ipynb"


DAMAGED = {
    "empty": (b"", "not JSON"),
    "binary": (b"\x89PNG\r\n\xff\xfe", "not JSON"),
    "nested": (
        b'{"nbformat": 4, "cells": [{"cell_type": "code", "metadata": {"nbgrader":' + b"[" * 100_000,
        "too deeply",
    ),
    "a list": (b"[]", "not a Jupyter notebook"),
    "cells are text": (b'{"nbformat": 4, "cells": "none"}', "not a Jupyter notebook"),
    "no cells": (b'{"nbformat": 4, "cells": []}', "no cells"),
    "nbformat 3": (b'{"nbformat": 3, "cells": []}', "format 3"),
    "another course": (
        b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": "1"}]}',
        "The notebook contains no exercise of this course",
    ),
    "50 MB": (
        b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": "' + b"x " * 25_000_000 + b'"}]}',
        "more than 16",
    ),
    "50 MB of spaces": (b" " * 50_000_000, "not JSON"),
}


@pytest.fixture(scope="module")
def marked(autograder, tmp_path_factory):
    """Output of one `mark` on many files, and their folder: four notebooks, one with a strange name, no notebooks.

    Last comes a unit of which a known mistake takes `.T` of more than two dimensions: what torch says of that is kept
    from who marks.
    """
    folder = tmp_path_factory.mktemp("marked")
    not_json, renamed, no_text, strange = (
        folder / name
        for name in (
            "not json.ipynb",
            "final FINAL.ipynb",
            os.fsdecode(b"m\xfcller.ipynb"),
            "a\u009b31m[red]\u202e.ipynb",
        )
    )
    not_json.write_text("<html>")
    for copy in (renamed, no_text):
        shutil.copy(SOURCE / UNIT / f"{UNIT}.ipynb", copy)
    shutil.copy(RELEASE / UNIT / f"{UNIT}.ipynb", strange)
    for name, (content, _) in DAMAGED.items():
        (folder / name).write_bytes(content)
    (folder / "link").symlink_to(RELEASE / UNIT / f"{UNIT}.ipynb")
    (folder / "loop").symlink_to("loop")
    names = [*DAMAGED, "link", "loop", "not there", "."]
    last = RELEASE / SHORTEST / f"{SHORTEST}.ipynb"
    paths = [RELEASED, not_json, renamed, no_text, strange, *(folder / name for name in names), last]
    result = autograder("mark", *paths, "--require-isolation", "A")
    assert result.returncode == 1
    assert len(result.stderr.splitlines()) == len(("link", "loop", "not there", "."))
    reports = result.stdout.splitlines()
    assert len(reports) == len(paths)
    return paths, [json.loads(line) for line in reports], reports


def test_mark_prints_one_json_object_a_notebook(marked):
    paths, reports, _ = marked
    full = course.unit(UNIT).max_score
    assert [(r["notebook"], r["unit"], r["status"], r["score"]) for r in reports[:4]] == [
        (RELEASED, UNIT, "graded", 0.0),
        (str(paths[1]), None, "damaged", 0.0),
        (str(paths[2]), UNIT, "graded", full),
        (str(paths[3]).encode("utf-8", "surrogateescape").decode("utf-8", "replace"), UNIT, "graded", full),
    ]
    exercise = reports[0]["exercises"][0]
    assert {"name", "status", "score", "max_score", "diagnosis", "message", "tests"} <= exercise.keys()
    assert {"name", "outcome", "points", "message"} <= exercise["tests"][0].keys()
    assert {"isolation", "device", "max_score"} <= reports[0].keys()
    assert reports[0]["isolation"] == "A"


def test_mark_gives_every_file_a_status_and_a_reason(marked):
    reports = marked[1][5:-1]
    statuses = [*["damaged"] * len(DAMAGED), *["unreadable"] * 4]
    assert [report["status"] for report in reports] == statuses
    reasons = [*(reason for _, reason in DAMAGED.values()), *["regular file"] * 2, "cannot be read", "regular file"]
    for report, reason in zip(reports, reasons, strict=True):
        assert reason in report["message"], report["notebook"]


def test_the_json_of_mark_is_printable(marked):
    paths, reports, lines = marked
    assert "\u009b" not in lines[4]
    assert "\\u009b31m[red]\\u202e" in lines[4]
    assert reports[4]["notebook"] == str(paths[4])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["grade", "self_atention"], "There is no unit `self_atention`. The units are:"),
        (["grade", UNIT, "--submitted", "docs"], "Nobody has submitted"),
        (["grade", UNIT, "--device", "tpu"], "'tpu' is not one of"),
        (["mark"], "Missing argument"),
    ],
)
def test_bad_arguments_are_one_sentence(autograder, arguments, sentence):
    result = autograder(*arguments)
    assert result.returncode == 2
    assert sentence in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


def test_cuda_where_there_is_none_is_refused(autograder):
    if torch.cuda.is_available():  # then the right answer is a mark
        assert json.loads(autograder("mark", RELEASED, "--device", "cuda").stdout)["device"] == "cuda"
        return
    result = autograder("mark", RELEASED, "--device", "cuda")
    assert (result.returncode, result.stdout) == (2, "")
    assert "There is no CUDA device here" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_module_lying_in_the_folder_is_not_imported(tmp_path):
    """An instructor marks where the students' files are."""
    (tmp_path / "msgspec.py").write_text("raise SystemExit('stolen')")
    (tmp_path / "pytest.py").write_text("raise SystemExit('stolen')")
    command = [Path(sys.executable).with_name("autograder"), "mark", REPOSITORY / RELEASED]
    environment = {**os.environ, "PYTEST_ADDOPTS": "-q --no-such-option"}
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout)["status"] == "graded"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--course", "no/such/folder"], "no/such/folder is not there"),
        (["--course", "/proc"], "/proc cannot be written to"),
        (["--roster", "no_roster.csv"], "no_roster.csv cannot be read"),
        (["--roster", "LICENSE"], "names nobody"),
        (["--dry-run", "--course", "demo/submitted"], "There are no grades to compare with"),
    ],
)
def test_a_class_that_cannot_be_graded_is_one_sentence(autograder, options, sentence):
    result = autograder("grade", UNIT, "--submitted", "demo/submitted", *options)
    assert (result.returncode, result.stdout) == (2, "")
    assert sentence in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


@pytest.fixture
def copy(tmp_path):
    """A copy of the repository, and its command."""
    root = tmp_path / "copy"
    left_out = shutil.ignore_patterns(".*", "*.egg-info", "__pycache__", "autograded", "feedback", "gradebook.db")
    shutil.copytree(REPOSITORY, root, ignore=left_out)

    def run(*arguments):
        command = [sys.executable, "-W", "ignore", "-m", "autograder", *arguments]
        return subprocess.run(
            command, cwd=root, env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True, text=True
        )

    return root, run


def test_a_missing_release_or_source_is_one_sentence(copy):
    root, run = copy
    shutil.rmtree(root / "release" / UNIT)
    result = run("grade", UNIT, "--submitted", "demo/submitted")
    assert (result.returncode, result.stdout) == (2, "")
    assert f"has no release/{UNIT}/{UNIT}.ipynb: run `autograder build`" in " ".join(result.stderr.split())
    shutil.rmtree(root / "source")
    result = run("mark", "demo/submitted/amara/self_attention/self_attention.ipynb")
    assert (result.returncode, result.stdout) == (2, "")
    assert "Nothing is built yet: run `autograder build` first." in result.stderr


def test_source_notebook_edited_by_hand_is_not_overwritten(copy):
    root, run = copy
    path = root / "source" / UNIT / f"{UNIT}.ipynb"
    notebook = json.loads(path.read_text())
    notebook["cells"][0]["source"] = "An hour of my own work."
    path.write_text(json.dumps(notebook))
    result = run("build")
    assert (result.returncode, result.stdout) == (2, "")
    assert "edited by hand" in " ".join(result.stderr.split())
    assert json.loads(path.read_text()) == notebook


@pytest.fixture
def without_bubblewrap(tmp_path, monkeypatch):
    """A PATH on which there is everything but bwrap."""
    for program in ("true", "python3", "bash"):
        (tmp_path / program).symlink_to(shutil.which(program))
    monkeypatch.setenv("PATH", str(tmp_path))


def test_a_level_that_is_not_there_is_refused(autograder, without_bubblewrap):
    right = SOURCE / "dot_product_attention" / "dot_product_attention.ipynb"
    refused = autograder("mark", right, "--require-isolation", "A")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "needs bubblewrap" in refused.stderr
    report = json.loads(autograder("mark", right).stdout)
    assert (report["isolation"], report["score"]) == ("B", report["max_score"])
    both = autograder("mark", right, "--require-isolation", "A", "--trust-submissions")
    assert (both.returncode, both.stdout) == (2, "")
    assert "not both" in both.stderr


def test_the_level_and_what_it_consists_of_stand_with_the_mark(marked):
    for report in marked[1]:
        assert report["isolation"] == "A"
        assert {"bubblewrap", "seccomp", "rlimits"} < set(report["enforced"])


def test_a_file_whose_name_is_no_text_is_marked_like_any_other(marked):
    report = marked[1][3]
    assert report["score"] == report["max_score"]
    assert report["notebook"].endswith("m\ufffdller.ipynb")


def test_submissions_in_a_folder_that_is_not_there(autograder, tmp_path):
    result = autograder("grade", UNIT, "--course", tmp_path, "--submitted", tmp_path / "nowhere")
    assert result.returncode == 2
    assert "nowhere is not there." in " ".join(result.stderr.split())


def test_a_folder_that_no_gradebook_could_name_leaves_the_others_to_be_graded(tmp_path):
    for name in (b"ada", b"b\xffd"):
        folder = os.path.join(os.fsencode(tmp_path), b"submitted", name, UNIT.encode())  # noqa: PTH118  bytes
        os.makedirs(folder)  # noqa: PTH103
    work = assignment(UNIT, tmp_path, None, None)
    assert [student.id for student in work.students] == ["ada"]
    assert [one.name for one in work.refused] == ["b\ufffdd"]


def test_links_to_names_that_are_too_long_leave_the_others_to_be_graded(tmp_path):
    for name in ("ada", "bo"):
        (tmp_path / "submitted" / name).mkdir(parents=True)
    (tmp_path / "submitted" / "ada" / UNIT).symlink_to("x" * 300)
    (tmp_path / "submitted" / "bo" / UNIT).mkdir()
    (tmp_path / "submitted" / "bo" / UNIT / f"{UNIT}.ipynb").symlink_to("x" * 300)
    (tmp_path / "roster.csv").write_text("id\nada\n")
    work = assignment(UNIT, tmp_path, None, None)
    assert [(submission.student, submission.notebook is None) for submission in work.submissions] == [
        ("ada", False),
        ("bo", False),
    ]


def test_a_line_of_the_roster_without_an_id_is_named(tmp_path):
    (tmp_path / "roster.csv").write_text("id,first_name\nada,Ada\n,Nameless\n\n,,\nbo,Bo\n")
    with pytest.raises(BadRoster, match="has no id in line 3: add it"):
        roster.read(tmp_path / "roster.csv")
    (tmp_path / "roster.csv").write_text("id,first_name\nada,Ada\n\n,\nbo,Bo\n")
    assert [student.id for student in roster.read(tmp_path / "roster.csv").students] == ["ada", "bo"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("c = get_config(", "SyntaxError"),
        ("import nothing_at_all", "No module named 'nothing_at_all'"),
        ("c = get_config()\nc.CourseDirectory.db_url = 'sqlite:///other.db'", "Take CourseDirectory.db_url out"),
    ],
)
def test_settings_that_cannot_be_used_are_a_sentence(autograder, tmp_path, settings, said):
    (tmp_path / "nbgrader_config.py").write_text(settings)
    (tmp_path / "submitted" / "ada" / UNIT).mkdir(parents=True)
    result = autograder("grade", UNIT, "--course", tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert said in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr


def test_submissions_are_where_the_course_says(tmp_path):
    (tmp_path / "nbgrader_config.py").write_text("c = get_config()\nc.CourseDirectory.submitted_directory = 'inbox'\n")
    (tmp_path / "inbox" / "ada" / UNIT).mkdir(parents=True)
    assert [student.id for student in assignment(UNIT, tmp_path, None, None).students] == ["ada"]


@pytest.mark.parametrize(
    "stamp", [b"2020-01-01 00:00:00 " + b"A" * 300, b"1." * 80_000, b"\xff", b"\x00"], ids=range(4)
)
def test_a_timestamp_that_is_none_is_no_time(tmp_path, stamp):
    (tmp_path / "ada" / UNIT).mkdir(parents=True)
    (tmp_path / "ada" / UNIT / "timestamp.txt").write_bytes(stamp)
    assert time_in(SubmissionFiles(tmp_path, UNIT).read(Submission("ada", f"{UNIT}.ipynb")).stamp) is None
    assert time_in(stamp[:300]) is None


def test_a_course_has_its_own_settings_over_the_kits(tmp_path):
    (tmp_path / "nbgrader_config.py").write_text("c = get_config()\nc.CourseDirectory.course_id = 'autumn'\n")
    directory = course_directory(tmp_path)
    assert directory.course_id == "autumn"
    assert "report.json" in directory.ignore
