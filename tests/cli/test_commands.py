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
from tests import RELEASE, REPOSITORY, SOURCE
from tests.commands import refusal

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
    assert {"device", "max_score"} <= reports[0].keys()
    for report in reports:
        assert report["isolation"] == "A"
        assert {"bubblewrap", "seccomp", "rlimits"} < set(report["enforced"])


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


OF_DEMO = ["grade", UNIT, "--submitted", REPOSITORY / "demo" / "submitted"]
REFUSED = [
    *(([command, "self_atention"], "There is no unit `self_atention`. The units are: attention_masks,") for command in (
        "export", "feedback-zip", "grade", "read", "report", "serve", "slides",
    )),
    (["grade", UNIT, "--submitted", "docs"], "Nobody has submitted"),
    (["grade", UNIT, "--submitted", "nowhere"], "nowhere is not there."),
    (["grade", UNIT, "--device", "tpu"], "'tpu' is not one of"),
    (["mark"], "Missing argument"),
    ([*OF_DEMO, "--course", "no/such/folder"], "no/such/folder is not there"),
    ([*OF_DEMO, "--course", "/proc"], "/proc cannot be written to"),
    ([*OF_DEMO, "--roster", "no_roster.csv"], "no_roster.csv cannot be read"),
    ([*OF_DEMO, "--roster", "LICENSE"], "names nobody"),
    ([*OF_DEMO, "--dry-run", "--course", "demo/submitted"], "There are no grades to compare with"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_a_command_that_cannot_do_anything_is_refused_with_a_message(arguments, message):
    assert message in refusal(*arguments)


def test_cuda_where_there_is_none_is_refused(autograder):
    result = autograder("mark", RELEASED, "--device", "cuda")
    if torch.cuda.is_available():
        assert json.loads(result.stdout)["device"] == "cuda"
    else:
        assert (result.returncode, result.stdout) == (2, "")
        assert "There is no CUDA device here" in result.stderr


def test_a_module_lying_in_the_folder_is_not_imported(tmp_path):
    """An instructor marks where the students' files are."""
    (tmp_path / "msgspec.py").write_text("raise SystemExit('stolen')")
    (tmp_path / "pytest.py").write_text("raise SystemExit('stolen')")
    command = [Path(sys.executable).with_name("autograder"), "mark", REPOSITORY / RELEASED]
    environment = {**os.environ, "PYTEST_ADDOPTS": "-q --no-such-option"}
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout)["status"] == "graded"


def test_a_repository_that_is_not_built_or_edited_by_hand_is_refused(tmp_path):
    root = tmp_path / "copy"
    left_out = shutil.ignore_patterns(".*", "*.egg-info", "__pycache__", "autograded", "feedback", "gradebook.db")
    shutil.copytree(REPOSITORY, root, ignore=left_out)

    def message(*arguments):
        command = [sys.executable, "-W", "ignore", "-m", "autograder", *arguments]
        environment = {**os.environ, "PYTHONPATH": str(root), "AUTOGRADER_COURSE": str(root)}
        result = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
        assert (result.returncode, result.stdout) == (2, "")
        return " ".join(result.stderr.split())

    path = root / "source" / UNIT / f"{UNIT}.ipynb"
    edited = path.read_text().replace('"# ', '"# My ', 1)
    path.write_text(edited)
    assert "edited by hand" in message("build")
    assert path.read_text() == edited
    shutil.rmtree(root / "release" / UNIT)
    no_release = f"has no release/{UNIT}/{UNIT}.ipynb: run `autograder build`"
    assert no_release in message("grade", UNIT, "--submitted", "demo/submitted")
    shutil.rmtree(root / "source")
    assert "Nothing is built yet: run `autograder build` first." in message("mark", RELEASED)


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


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("c = get_config(", "SyntaxError"),
        ("import nothing_at_all", "No module named 'nothing_at_all'"),
        ("c = get_config()\nc.CourseDirectory.db_url = 'sqlite:///other.db'", "Take CourseDirectory.db_url out"),
    ],
)
def test_settings_that_cannot_be_used_are_a_sentence(tmp_path, settings, said):
    (tmp_path / "nbgrader_config.py").write_text(settings)
    (tmp_path / "submitted" / "ada" / UNIT).mkdir(parents=True)
    assert said in refusal("grade", UNIT, "--course", tmp_path)


def test_submissions_are_where_the_course_says(tmp_path):
    (tmp_path / "nbgrader_config.py").write_text("c = get_config()\nc.CourseDirectory.submitted_directory = 'inbox'\n")
    (tmp_path / "inbox" / "ada" / UNIT).mkdir(parents=True)
    assert [student.id for student in assignment(UNIT, tmp_path, None, None).students] == ["ada"]
