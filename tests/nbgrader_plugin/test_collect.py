"""nbgrader's exchange, where strangers write: hand-ins are collected, pages released, and nothing ends either."""

import os
import pwd
import shutil
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.gradebook.lateness import Extensions
from tests import REPOSITORY, forked_command

UNIT = "dot_product_attention"
BIN = Path(sys.executable).parent
ME = pwd.getpwuid(os.getuid()).pw_name
EARLY, LATE, NEVER = "2026-11-01 10:00:00 UTC", "2026-11-02 10:00:00 UTC", "yesterday UTC+99:99"


@pytest.fixture
def course(tmp_path):
    """A course folder with an exchange, its inbound folder, and the instructor's own notebook."""
    root = tmp_path / "course"
    (root / "exchange" / "attention" / "inbound").mkdir(parents=True)
    (root / "exchange").chmod(0o777)
    shutil.copy(REPOSITORY / "nbgrader_config.py", root)
    (root / "solved").mkdir()
    (root / "solved" / f"{UNIT}.ipynb").write_text("the instructor's")
    return root


def put_submission(course, student, time, content="mine", *more):
    """A folder as `nbgrader submit` makes it."""
    folder = course / "exchange" / "attention" / "inbound" / "+".join([student, UNIT, time, *more])
    folder.mkdir()
    (folder / f"{UNIT}.ipynb").write_text(content)
    (folder / "timestamp.txt").write_text(time)
    return folder


def collect(course, *options):
    return nbgrader(course, "collect", *options)


def nbgrader(course, command, *options):
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "JUPYTER_PREFER_ENV_PATH": "1"}
    result = forked_command.nbgrader(command, UNIT, *options, cwd=course, env=environment)
    assert "Traceback" not in result.stderr
    assert result.returncode == 0, result.stderr
    return result.stderr


def collected(course, student=ME):
    path = course / "submitted" / student / UNIT / f"{UNIT}.ipynb"
    return path.read_text() if path.exists() else None


def test_the_newest_folder_is_collected_whole(course):
    put_submission(course, ME, EARLY, "old", "a1")
    newest = put_submission(course, ME, LATE, "new", "b2")
    (newest / "data").mkdir()
    (newest / "data" / "numbers.csv").write_text("1,2")
    collect(course)
    there = course / "submitted" / ME / UNIT
    assert collected(course) == "new"
    assert (there / "timestamp.txt").read_text() == LATE
    assert (there / "data" / "numbers.csv").read_text() == "1,2"


def test_a_link_brings_nothing_in(course):
    folder = put_submission(course, ME, EARLY)
    (folder / f"{UNIT}.ipynb").unlink()
    (folder / f"{UNIT}.ipynb").symlink_to(course / "solved" / f"{UNIT}.ipynb")
    (folder / "more").symlink_to(course / "solved", target_is_directory=True)
    said = collect(course)
    assert f"Left out: '{UNIT}.ipynb'" in said
    assert {path.name for path in (course / "submitted" / ME / UNIT).iterdir()} == {"timestamp.txt"}


def test_a_folder_that_is_a_link_is_not_collected(course):
    name = f"{ME}+{UNIT}+{LATE}"
    (course / "exchange" / "attention" / "inbound" / name).symlink_to(course / "solved", target_is_directory=True)
    assert "it is not a folder" in collect(course)
    assert not (course / "submitted").exists()


def test_a_pipe_holds_nothing_up(course):
    folder = put_submission(course, ME, EARLY)
    os.mkfifo(folder / "extra.ipynb")
    assert "Left out: 'extra.ipynb'" in collect(course)
    assert collected(course) == "mine"


@pytest.mark.parametrize(
    "name", [f"x+{UNIT}+{NEVER}", f"x+{UNIT}+", f"+{UNIT}+{EARLY}", f"../x+{UNIT}+{EARLY}"[3:] + "+a+b"]
)
def test_an_odd_name_stops_nobody(course, name):
    put_submission(course, ME, EARLY)
    (course / "exchange" / "attention" / "inbound" / name).mkdir()
    assert "Not collected" in collect(course)
    assert collected(course) == "mine"
    assert [path.name for path in (course / "submitted").iterdir()] == [ME]


def test_nobody_hands_in_for_somebody_else(course):
    other = next(account.pw_name for account in pwd.getpwall() if account.pw_name != ME)
    put_submission(course, other, LATE, "forged", "f0")
    assert f"its name says that it is from {other}, but it belongs to {ME}" in collect(course)
    assert collected(course, other) is None
    if os.geteuid() == 0:  # who alone can make a folder that belongs to another
        os.chown(put_submission(course, other, EARLY, "theirs"), pwd.getpwnam(other).pw_uid, -1)
        collect(course)
        assert collected(course, other) == "theirs"
        shutil.rmtree(course / "submitted")
    collect(course, "--ExchangeCollect.check_owner=False")
    assert collected(course, other) == "forged"


def test_what_cannot_be_collected_leaves_what_was_there_before(course):
    put_submission(course, ME, EARLY, "old")
    collect(course)
    large = put_submission(course, ME, LATE, "new")
    (large / "much.bin").write_bytes(bytes(3_000_000))
    said = collect(course, "--update", "--CourseDirectory.max_dir_size=2000")
    assert "its files are larger" in said
    assert collected(course) == "old"
    collect(course, "--update")
    assert collected(course) == "new"
    assert [path.name for path in (course / "submitted" / ME).iterdir()] == [UNIT]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("2026-10-25 02:59:00.0 CEST", "2026-10-25 02:01:00.0 CET"),  # an hour that is there twice
        ("2026-07-01 12:00:00.0 +03", "2026-07-01 12:00:00.0 +0230"),
        ("2026-07-01 12:00:00.0 EDT", "2026-07-01 13:00:00.0 EDT"),  # a zone that is not the course's
        ("2026-07-01 12:00:00.0 EST5EDT", "2026-07-01 13:00:00.0 XYZ"),
    ],
)
def test_the_newest_is_collected_whatever_zones_are_called(course, first, second):
    with (course / "nbgrader_config.py").open("a") as settings:
        settings.write("c.Exchange.timezone = 'Europe/Berlin'\n")
    put_submission(course, ME, first, "old", "a1")
    put_submission(course, ME, second, "new", "a2")
    collect(course)
    assert collected(course) == "new"
    assert (course / "submitted" / ME / UNIT / "timestamp.txt").read_text() == second


@pytest.mark.parametrize(("days", "counts"), [(None, "old"), (1, "new")])
def test_before_the_due_date_means_the_students_own(course, days, counts):
    with Gradebook(f"sqlite:///{course}/gradebook.db", "attention") as gradebook:
        gradebook.add_assignment(UNIT, duedate="2026-11-01 18:00 UTC")
        gradebook.add_student(ME)
    if days:
        Extensions(course, UNIT).put({ME: timedelta(days=days)})
    put_submission(course, ME, EARLY, "old")
    put_submission(course, ME, LATE, "new")
    collect(course, "--before-duedate")
    assert collected(course) == counts


def test_a_timestamp_that_is_none_is_replaced(course):
    put_submission(course, ME, EARLY, "old")
    collect(course)
    (course / "submitted" / ME / UNIT / "timestamp.txt").write_text(NEVER)
    put_submission(course, ME, LATE, "new")
    collect(course, "--update")
    assert collected(course) == "new"


def test_pages_are_released_to_everyone_who_has_a_secret(course):
    secrets = {"ada": b"a" * 128, "bob": b"b" * 128, "changed": b"\xff\xfe", "deleted": None, "linked": None}
    for student, secret in secrets.items():
        folders = [course / room / student / UNIT for room in ("submitted", "feedback")]
        for folder in folders:
            folder.mkdir(parents=True)
        (folders[1] / f"{UNIT}.html").write_text(f"the page of {student}")
        if secret:
            (folders[0] / "submission_secret.txt").write_bytes(secret)
        (folders[0] / "timestamp.txt").write_text("\x1b]0;title\x07\x1b[2J")
    other = course / "submitted" / "ada" / UNIT / "submission_secret.txt"
    (course / "submitted" / "linked" / UNIT / "submission_secret.txt").symlink_to(other)
    said = nbgrader(course, "release_feedback")
    released = {path.read_text() for path in (course / "exchange" / "attention" / "feedback").iterdir()}
    assert released == {"the page of ada", "the page of bob"}
    for student in ("changed", "deleted", "linked"):
        assert f"Not released: {student}" in said
    assert "\x1b" not in said
