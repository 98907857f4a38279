"""nbgrader's exchange, where strangers write: hand-ins are collected, pages released, and nothing ends either."""

import os
import pwd
import shutil
from datetime import timedelta

import pytest
from nbgrader.api import Gradebook

from autograder.gradebook.lateness import Extensions
from tests import REPOSITORY, forked_command

UNIT = "dot_product_attention"
ME = pwd.getpwuid(os.getuid()).pw_name
EARLY, LATE, NEVER = "2026-11-01 10:00:00 UTC", "2026-11-02 10:00:00 UTC", "yesterday UTC+99:99"


@pytest.fixture
def course(tmp_path):
    """A course folder with an exchange and its inbound folder."""
    root = tmp_path / "course"
    (root / "exchange" / "attention" / "inbound").mkdir(parents=True)
    (root / "exchange").chmod(0o777)
    shutil.copy(REPOSITORY / "nbgrader_config.py", root)
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
    result = forked_command.nbgrader(command, UNIT, *options, cwd=course)
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


NEWEST = {
    "an hour that is there twice": ("2026-10-25 02:59:00.0 CEST", "2026-10-25 02:01:00.0 CET"),
    "offsets": ("2026-07-01 12:00:00.0 +03", "2026-07-01 12:00:00.0 +0230"),
    "a zone that is not the course's": ("2026-07-01 12:00:00.0 EDT", "2026-07-01 13:00:00.0 EDT"),
    "names that nobody knows": ("2026-07-01 12:00:00.0 EST5EDT", "2026-07-01 13:00:00.0 XYZ"),
}


def test_the_newest_is_collected_whatever_zones_are_called(course):
    with (course / "nbgrader_config.py").open("a") as settings:
        settings.write("c.Exchange.timezone = 'Europe/Berlin'\nc.ExchangeCollect.check_owner = False\n")
    students = {f"s{number}": times for number, times in enumerate(NEWEST.values())}
    for student, (first, second) in students.items():
        put_submission(course, student, first, "old", "a1")
        put_submission(course, student, second, "new", "a2")
    collect(course)
    for student, (_, second) in students.items():
        assert collected(course, student) == "new"
        assert (course / "submitted" / student / UNIT / "timestamp.txt").read_text() == second


def test_before_the_due_date_means_the_students_own(course):
    with Gradebook(f"sqlite:///{course}/gradebook.db", "attention") as gradebook:
        gradebook.add_assignment(UNIT, duedate="2026-11-01 18:00 UTC")
        for student in ("ada", "extended"):
            gradebook.add_student(student)
    Extensions(course, UNIT).put({"extended": timedelta(days=1)})
    for student in ("ada", "extended"):
        put_submission(course, student, EARLY, "old")
        put_submission(course, student, LATE, "new")
    collect(course, "--before-duedate", "--ExchangeCollect.check_owner=False")
    assert [collected(course, student) for student in ("ada", "extended")] == ["old", "new"]


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
