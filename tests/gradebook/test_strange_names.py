"""Names, times and other texts that strangers choose: in tables, terminals, JSON, the gradebook and spreadsheets."""

import csv
import json
import os
import re
import shutil
import unicodedata
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from autograder import course
from autograder.classroom.assignment import assignment
from autograder.classroom.student_folders import SubmissionFiles
from autograder.cli.console import printable
from autograder.course.submitted_files import can_be_id
from autograder.gradebook import roster
from autograder.gradebook.class_gradebook import ClassGradebook
from autograder.gradebook.nbgrader_course import course_directory, nbgrader_api
from autograder.gradebook.roster import BadRoster
from autograder.gradebook.time_stamp import time_in
from autograder.reports.exports import json_line
from tests import RELEASE, REPOSITORY, SOURCE, forked_command
from tests.recorded_class import opened_gradebook

UNIT = "dot_product_attention"
SCRIPT = "<img src=x onerror=alert(1)>"


MAY_BE = [
    "ada", "Ada.Lovelace", "o'neil", "a_b-c@d.edu", "_x", "@x", "+1", "'x", "çağla", "jose\u0301", "李小龍", "Ωμέγα",
    "नमिता", "தமிழ்", "สมชาย", "نورا", "ada2", "٣٤", "e\u0301\u0302",
]  # fmt: skip
MAY_NOT_BE = [
    "", ".ada", "-ada", "a b", "[red]", "[link=x]y", SCRIPT, "a&b", 'a"b', "a/b", "a\\b", "a\0b", "=1+1", "a,b", "a;b",
    "a\nb", "a\x1b[2J", "a\u009b31m", "a\u202eb", "a\u200db", "a\u200bb", "\u0301a", "a\u20dd", "a\udcff", "x" * 256,
    "é" * 128, "🙂", "a\u00a0b", "½", "²", "a*", "a?", "a:b", "$x", "`x`", "{x}", "%41", "#x", "a|b", "~a", "..", ".",
    "a\ufe0f", "a\U000e0100", "a\u3164", "\uffa0a", "a\u115f", "a\u1160", "a\u034fx", "\u17b4", "a\u17b5", "a\u180b",
    "a\u180f", "e\u0301\u0302\u0303\u0304\u0305", "e" + "\u0301" * 40,
]  # fmt: skip


def test_letters_and_digits_of_any_script_may_be_an_id_and_nothing_else(tmp_path):
    assert [name for name in MAY_BE if not can_be_id(name)] == []
    assert [name for name in MAY_NOT_BE if can_be_id(name)] == []
    file = tmp_path / "roster.csv"
    for name in MAY_NOT_BE:
        if name.isprintable() and name.strip() and '"' not in name:
            file.write_text(f'id\nada\n"{name}"\n')
            with pytest.raises(BadRoster, match="An id has letters and digits of any script"):
                roster.read(file)
            assert [one.id for one in roster.read(file, {name}).students] == ["ada", name]


@given(st.text(max_size=8))
def test_an_id_is_harmless_wherever_it_stands(name):
    if can_be_id(name):
        assert name.isprintable()
        assert not set(name) & set('<>&"`/\\[]{}()=,;:|*?!$%#~^ \n\t')
        assert can_be_id(unicodedata.normalize("NFC", name))


def put(root: Path, student: str, content: bytes = b"{}", stamp: bytes | None = None) -> None:
    folder = root / "submitted" / student / UNIT
    folder.mkdir(parents=True)
    (folder / f"{UNIT}.ipynb").write_bytes(content)
    if stamp is not None:
        (folder / "timestamp.txt").write_bytes(stamp)


@pytest.fixture
def course_folder(tmp_path):
    """A course with a gradebook that knows the unit, and a student of old whose id could be no new one's."""
    shutil.copy(REPOSITORY / "nbgrader_config.py", tmp_path)
    for kind in (SOURCE, RELEASE):
        shutil.copytree(kind / UNIT, tmp_path / kind.name / UNIT)
    with ClassGradebook(course_directory(tmp_path), UNIT) as gradebook:
        gradebook.enrol([roster.Enrolled("[red]of old", "=1+1", '@SUM(A1:A9),"x"', "-1")])
    return tmp_path


def run(root, program, *arguments):
    return forked_command.run(program, *arguments, cwd=root, env={**os.environ, "COLUMNS": "300"})


def enrolled(root):
    with opened_gradebook(root) as gradebook:
        return {student.id for student in gradebook.students}


def test_a_folder_that_can_be_no_student_has_a_line_and_the_others_are_graded(course_folder):
    for name in (
        SCRIPT.replace("/", ""),
        "[link=http:x]click[link]",
        "a\u009b31mb",
        "jose\u0301",
        "josé",
        "[red]of old",
        "ada",
    ):
        put(course_folder, name)
    (course_folder / "submitted" / ".hidden" / UNIT).mkdir(parents=True)
    (course_folder / "submitted" / "ada" / ".notes").write_text("")
    (course_folder / "submitted" / "ada" / ".ipynb_checkpoints").mkdir()
    result = run(course_folder, "autograder", "grade", UNIT, "--course", course_folder)
    assert (result.returncode, "Traceback" in result.stderr) == (1, False), result.stderr
    rows = {line.split("  ")[0]: line for line in result.stdout.splitlines() if "  " in line}
    for name in (SCRIPT, "[link=http:x]click[link]", "a\ufffd31mb"):
        assert "not graded" in rows[name]
        assert "a new student's id has letters and digits of any script and . _ - @ + '," in rows[name]
    assert "the same letters in another Unicode form" in rows["jose\u0301"]
    assert all("damaged" in rows[name] for name in ("josé", "[red]of old", "ada"))
    assert enrolled(course_folder) == {"josé", "[red]of old", "ada"}
    assert ".hidden, ada/.notes." in result.stderr
    assert "checkpoints" not in result.stderr
    assert not {"\x1b", "\u009b"} & {*result.stdout, *result.stderr}
    dry = run(course_folder, "autograder", "grade", UNIT, "--course", course_folder, "--dry-run")
    assert dry.returncode == 0
    assert f"NOT GRADED: {SCRIPT}: a new student's id has" in dry.stderr


def test_a_hidden_file_is_named_where_there_is_no_other(tmp_path):
    put(tmp_path, "ada")
    folder = tmp_path / "submitted" / "ada" / UNIT
    (folder / f"{UNIT}.ipynb").rename(folder / f".{UNIT}.ipynb")
    (folder / ".DS_Store").write_bytes(b"")
    submission = SubmissionFiles(tmp_path / "submitted", UNIT).submission("ada")
    assert submission.notebook is None
    assert submission.note == f"There is no notebook, only `.{UNIT}.ipynb`. Submit `{UNIT}.ipynb` itself."


def test_hundreds_of_odd_entries_are_refused_by_a_printable_name(tmp_path):
    submitted = os.fsencode(tmp_path / "submitted")
    for number in range(300):
        odd = bytes([0x80 + number % 120]) + b"\xff" * (number % 200) + b"%d" % number
        os.makedirs(os.path.join(submitted, odd, UNIT.encode()))  # noqa: PTH103, PTH118  bytes
    put(tmp_path, "Ada")
    put(tmp_path, "ada")
    work = assignment(UNIT, tmp_path, None, None)
    assert [student.id for student in work.students] == ["Ada", "ada"]
    assert len(work.refused) == 300
    assert all(one.name.isprintable() for one in work.refused)


STAMPS = [
    b"2026-01-02 03:04:05 UTC+99:99", b"2026-01-02 03:04:05 UTC-99", b"9999-12-31 23:59:59 -2359", b"0001-01-01",
    b"0001-01-01 00:00:00 +1400", b"2026-01-02 03:04:05 ../../../etc/passwd", b"2026-01-02 03:04:05 /dev/zero",
    b"\xff\xfe", b"\0", b"1e999", b"9" * 99, b"2026-01-02 03:04:05 \xd9\xa3", b"T", b"", b"   ", b"1." * 40,
    b"x" * 5000, b"2026-01-02 03:04:05 99999999999999999999", b"2026-01-02T03:04:05+99:99", b"99999-01-01",
]  # fmt: skip


@pytest.fixture(scope="module")
def listing(tmp_path_factory):
    """formgrader's list of submissions, of a class in which one has this timestamp."""
    root = tmp_path_factory.mktemp("course")
    shutil.copy(REPOSITORY / "nbgrader_config.py", root)
    ClassGradebook(course_directory(root), UNIT).close()
    put(root, "ada", stamp=b"")
    put(root, "bo", stamp=b"2026-01-02 03:04:05 UTC")
    api = nbgrader_api(root)
    stamp = root / "submitted" / "ada" / UNIT / "timestamp.txt"

    def listing(content: bytes) -> dict[str, str | None]:
        stamp.write_bytes(content)
        return {one["student"]: one["timestamp"] for one in api.get_submissions(UNIT)}

    listing.stamp, listing.api = stamp, api
    return listing


def test_no_timestamp_ends_formgraders_list(listing):
    for stamp in STAMPS:
        time = time_in(stamp[:101])
        assert listing(stamp) == {"ada": time and time.isoformat(), "bo": "2026-01-02T03:04:05"}, stamp


def test_formgrader_lists_students_and_acts_on_the_one_that_is_meant(tmp_path):
    shutil.copy(REPOSITORY / "nbgrader_config.py", tmp_path)
    ClassGradebook(course_directory(tmp_path), UNIT).close()
    for name in ("ada", "*", "%61da", "[a-z]da", "constructor", "__proto__"):
        put(tmp_path, name)
    api = nbgrader_api(tmp_path)
    assert {one["student"] for one in api.get_submissions(UNIT)} == {"ada"}
    for name in ("*", "[a-z]da"):
        assert not api.autograde(UNIT, name)["success"]
        api.generate_feedback(UNIT, name)
    assert not any((tmp_path / "autograded").glob("*/*/*.ipynb"))
    assert api.autograde(UNIT, "ada")["success"]
    api.generate_feedback(UNIT, "[a-z]da")
    assert not any((tmp_path / "feedback").glob("*/*/*.html"))


_parts = st.sampled_from(
    ["2026-01-02", "03:04:05", "9999", "0001", "12:00", "am", "UTC", "GMT", "+99:99", "-2400", "EST5EDT", "/", "\u0663"]
)


@given(st.binary(max_size=120) | st.lists(_parts, max_size=6).map(lambda parts: " ".join(parts).encode()))
@example(b"2026-01-02 03:04:05 UTC")
def test_any_bytes_are_a_time_or_none(listing, stamp):
    found = time_in(stamp)
    assert found is None or (datetime(1971, 1, 1) <= found <= datetime(9998, 1, 1) and found.tzinfo is None)
    assert set(listing(stamp)) == {"ada", "bo"}


def test_a_pipe_or_a_link_in_the_place_of_a_timestamp_is_none(listing, tmp_path):
    listing.stamp.unlink()
    os.mkfifo(listing.stamp)
    assert {one["student"]: one["timestamp"] for one in listing.api.get_submissions(UNIT)}["ada"] is None
    listing.stamp.unlink()
    (tmp_path / "other").write_text("2001-01-01 00:00:00 UTC")
    listing.stamp.symlink_to(tmp_path / "other")
    assert {one["student"]: one["timestamp"] for one in listing.api.get_submissions(UNIT)}["ada"] is None


def test_nbgraders_autograde_enrols_nobody_who_can_be_no_student(course_folder):
    run(course_folder, "nbgrader", "generate_assignment", UNIT)
    put(course_folder, SCRIPT.replace("/", ""))
    put(course_folder, "ada", stamp=b"2026-01-02 03:04:05 UTC+99:99")
    (course_folder / "submitted" / "ada" / UNIT / "link.txt").symlink_to("/etc/passwd")
    os.mkfifo(course_folder / "submitted" / "ada" / UNIT / "pipe.txt")
    put(course_folder, "bo")
    renamed = course_folder / "submitted" / "bo" / UNIT / f"{UNIT}.ipynb"
    renamed.rename(renamed.with_name("mine.ipynb"))
    result = run(course_folder, "nbgrader", "autograde", UNIT)
    assert (result.returncode, "Traceback" in result.stderr) == (1, False), result.stderr
    assert enrolled(course_folder) == {"ada", "[red]of old"}
    assert f"Not graded: bo. There is no {UNIT}.ipynb, only mine.ipynb. Rename the file," in result.stderr
    assert f"Not graded: {SCRIPT}. A new student's id has letters and digits" in result.stderr
    lying = {path.name for path in (course_folder / "autograded" / "ada" / UNIT).iterdir()}
    assert not lying & {"link.txt", "pipe.txt"}
    assert json.loads((course_folder / "autograded" / "ada" / UNIT / "report.json").read_text())["status"] == "damaged"


def test_what_lies_in_the_exchange_is_collected_as_a_strangers(course_folder, tmp_path_factory):
    exchange = tmp_path_factory.mktemp("exchange")
    exchange.chmod(0o777)
    inbound = exchange / "attention" / "inbound"
    solved = course_folder / "source" / UNIT / f"{UNIT}.ipynb"
    time = "2026-01-02 03:04:05 UTC"
    odd = (f"late+{UNIT}+UTC+99:99", f"<b>+{UNIT}+{time}", f"x+{UNIT}+", f"+{UNIT}+{time}")
    for name in (f"ada+{UNIT}+{time}", f"a+b+{UNIT}+{time}+secret", *odd):
        (inbound / name).mkdir(parents=True)
        (inbound / name / f"{UNIT}.ipynb").write_text(name)
    (inbound / f"linked+{UNIT}+{time}").symlink_to(solved.parent)
    folder = inbound / f"links+{UNIT}+{time}"
    folder.mkdir()
    (folder / f"{UNIT}.ipynb").symlink_to(solved)
    (folder / "more").symlink_to(solved.parent)
    os.mkfifo(folder / "pipe")
    for path in (exchange / "attention", inbound):
        path.chmod(0o777)
    anybodys = "--ExchangeCollect.check_owner=False"
    result = run(course_folder, "nbgrader", "collect", UNIT, f"--Exchange.root={exchange}", anybodys)
    assert result.returncode == 0, result.stderr
    found = {str(path.relative_to(course_folder / "submitted")) for path in course_folder.rglob("submitted/*/*/*")}
    assert found == {f"{student}/{UNIT}/{UNIT}.ipynb" for student in ("ada", "a+b")}
    for name, why in (("<b>", "is not a student's"), ("late", "contains no valid time"), ("linked", "is not a folder")):
        assert re.search(rf"Not collected: '{name}\+.*{why}", result.stderr)
    for name in (f"{UNIT}.ipynb", "pipe"):
        assert f"Left out: '{name}'" in result.stderr


def test_nothing_in_the_exported_grades_is_a_formula(course_folder):
    result = run(course_folder, "nbgrader", "export", "--to=out.csv")
    assert result.returncode == 0, result.stderr
    (row,) = csv.DictReader((course_folder / "out.csv").read_text().splitlines())
    assert list(row)[:4] == ["assignment", "duedate", "timestamp", "student_id"]
    assert (row["student_id"], row["first_name"], row["email"]) == ("[red]of old", "'=1+1", "'-1")
    assert row["last_name"] == '\'@SUM(A1:A9),"x"'
    assert (row["assignment"], float(row["score"])) == (UNIT, 0.0)
    assert float(row["max_score"]) > course.unit(UNIT).max_score


@given(st.text(max_size=20))
@example("a\u009b31m\x1b[2J\u202e\U000e0001\ud800")
def test_json_and_terminal_get_no_control_characters(name):
    name = name.encode("utf-8", "replace").decode()
    line = json_line({"name": name})
    assert json.loads(line) == {"name": name}
    assert line.decode()[:-1].isprintable()
    assert printable(name).plain.replace("\n", "").isprintable()


def test_a_course_without_a_gradebook_takes_any_good_id(recorded, tmp_path):
    assert course_directory(tmp_path).get_existing_timestamp(str(tmp_path / "a" / "b")) is None
    put(tmp_path, "ada")
    result = recorded.grade(tmp_path)
    assert [row.student for row in result.rows] == ["ada"]
