"""To and from Canvas and Moodle: rosters, marks, submissions and feedback, for a class with difficult names."""

import csv
import io
import os
import shutil
import stat
import zipfile
from contextlib import suppress
from datetime import datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from autograder import course
from autograder.course.submitted_files import BadZip, NotTaken, ZipFile, path_within
from autograder.gradebook import class_gradebook, roster
from autograder.gradebook.nbgrader_course import course_directory
from autograder.gradebook.roster import BadRoster, class_list
from autograder.gradebook.tables import as_csv, number, rounded, text, value
from autograder.lms import grade_tables, zip_files
from autograder.lms.grade_tables import NoTable, graded_class
from autograder.lms.roster_match import platform_of, readings
from autograder.lms.zip_files import import_zip, pack_feedback
from tests.commands import refusal, run
from tests.recorded_class import UNIT, comment, give_points, notebook, opened_gradebook, put_submission, set_due
from tests.typed import stored

FULL = sum(course.unit(UNIT).points.values())
CANVAS = f"""Student,ID,SIS User ID,SIS Login ID,Section,Notes,Dot-Product Attention (98765),Current Score
,,,,,,Manual Posting,
    Points Possible,,,,,,{FULL - 1:g},(read only)
"O'Neil, Jr., Ada",1001,S-1,ada,"Lec 1, Lab 2",,,
"=HYPERLINK(""x"")",1002,S-2,bo,Lec 1,,,
"Ferreira, Inês",1003,S-3,ines,Lec 1,,EX,
"Moss, Cy",1004,S-4,cy,Lec 1,,,
"Student, Test",1099,,0f0f,Lec 1,,,
"""
WORKSHEET = f"""\ufeffIdentifier,"Full name","ID number","Email address",Status,Grade,"Maximum grade",\
"Grade can be changed","Last modified (submission)","Last modified (grade)","Feedback comments"
"Participant 501","Ada O'Neil, Jr.",ada,ada@example.org,Submitted,,{FULL - 3:g},Yes,"Tuesday, 3 Nov 2026",-,"- good"
"Participant 502","Bo Quist",bo,bo@example.org,Submitted,,{FULL - 3:g},Yes,-,-,
"""


@pytest.fixture(scope="module")
def once(recorded, tmp_path_factory):
    """A class graded once: ada late and read by a person, bo with a mistake, ines without a submission."""
    root = tmp_path_factory.mktemp("lms") / "course"
    root.mkdir()
    (root / "roster.csv").write_text(CANVAS)
    (root / "nbgrader_config.py").write_text(
        "from nbgrader.plugins import LateSubmissionPlugin\n"
        "class OnePoint(LateSubmissionPlugin):\n"
        "    def late_submission_penalty(self, student_id, score, total_seconds_late):\n"
        "        return 1.005\n"
        "c = get_config()\n"
        "c.AssignLatePenalties.plugin_class = OnePoint\n"
        "c.CourseDirectory.max_file_size = 2000\n"
    )
    put_submission(root, "ada", notebook(why_softmax="Because."), "2026-01-02 03:04:05 UTC")
    put_submission(root, "bo", notebook(softmax="def softmax(scores): return scores.exp()", why_softmax="So."))
    recorded.grade(root)
    set_due(root, datetime(2026, 1, 1))
    give_points(root, "ada", 1.333)
    with opened_gradebook(root) as book:
        book.find_grade("test_softmax", UNIT, UNIT, "ada").extra_credit = 0.0999999
        book.db.commit()
    recorded.grade(root, regrade=True)
    return root


def of_class(root, roster_file=None, id_column=None):
    return graded_class(root, [UNIT], roster_file, id_column)


def test_the_table_for_a_spreadsheet_has_what_nbgrader_counts(root):
    put_submission(root, "cy", b"handed in, and not graded")
    with opened_gradebook(root) as book:
        book.add_student("zoe")
        book.add_submission(UNIT, "zoe")
        kept = {s: book.find_submission(UNIT, s) for s in ("ada", "bo")}
        totals = {s: (one.score, one.late_submission_penalty) for s, one in kept.items()}
        softmax = book.find_grade("test_softmax", UNIT, UNIT, "bo").score
    table = grade_tables.for_spreadsheet(of_class(root))
    assert all(len(row) == len(table.rows[0]) for row in table.rows)
    rows = {row["student_id"]: row for row in csv.DictReader(io.StringIO("\n".join(map(_line, table.rows))))}
    assert list(rows) == ["ada", "bo", "ines", "cy", "zoe"]
    for student, (raw, penalty) in totals.items():
        assert float(rows[student][f"{UNIT}.score"]) == pytest.approx(raw - penalty, abs=0.005001)
        assert float(rows[student][f"{UNIT}.late_penalty"]) == pytest.approx(penalty, abs=0.005001)
    ada, bo = rows["ada"], rows["bo"]
    assert totals["ada"][1] == 1.005
    assert (ada[f"{UNIT}.late_penalty"], ada[f"{UNIT}.why_softmax"], ada[f"{UNIT}.softmax"]) == ("1.01", "1.33", "4.1")
    assert (ada["Student"], ada["Section"], ada["SIS User ID"]) == ("O'Neil, Jr., Ada", "Lec 1, Lab 2", "S-1")
    assert bo["Student"] == '\'=HYPERLINK("x")'
    assert (bo[f"{UNIT}.softmax"], bo[f"{UNIT}.to_be_read"]) == (number(softmax), "1")
    assert [rows[s][f"{UNIT}.status"] for s in rows] == ["graded", "graded", "not_submitted", "not_graded", "graded"]
    assert (rows["ines"][f"{UNIT}.score"], rows["cy"][f"{UNIT}.score"]) == ("0", "")
    said = " ".join(table.remarks)
    assert "1 of 5 students submitted nothing" in said
    assert "not graded, so without a grade here: cy" in said
    assert "to read, in formgrader: " in said


def test_a_unit_without_submissions_is_reported(once, tmp_path):
    """Everyone has 0 in it, which may not be meant: the table looks as if it had been marked."""
    shutil.copy(once / "roster.csv", tmp_path)
    with opened_gradebook(tmp_path) as book:
        book.add_assignment(UNIT)
        book.add_notebook(UNIT, UNIT)
    for table in (grade_tables.for_spreadsheet(of_class(tmp_path)), grade_tables.for_canvas(of_class(tmp_path), {})):
        assert f"{UNIT}: NOBODY HAS SUBMITTED, so everyone has 0 for this unit." in table.remarks
    table = grade_tables.for_spreadsheet(of_class(once))
    assert not [one for one in table.remarks if "NOBODY" in one]


def _line(row):
    written = io.StringIO()
    csv.writer(written).writerow(row)
    return written.getvalue().strip()


def test_the_table_for_canvas_has_canvas_own_columns(root):
    table = grade_tables.for_canvas(of_class(root), {})
    person = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
    score = grade_tables.for_spreadsheet(of_class(root)).rows[1][7]
    assert table.rows[:3] == [
        [*person, "Dot-Product Attention (98765)"],
        ["    Points Possible", "", "", "", "", f"{FULL - 1:g}"],  # Canvas would take over ours
        ["O'Neil, Jr., Ada", "1001", "S-1", "ada", "Lec 1, Lab 2", score],
    ]
    assert [row[-1] for row in table.rows[4:]] == ["EX", "0"]
    said = " ".join(table.remarks)
    assert f"has {FULL - 1:g} points in Canvas, but {FULL:g} here" in said
    assert "HYPERLINK" in said
    assert "left excused (EX) or without the assignment (N/A): ines" in said
    with pytest.raises(NoTable, match="no column `Essay`"):
        grade_tables.for_canvas(of_class(root), {UNIT: "Essay"})
    (root / "roster.csv").write_text('id,first_name,last_name\nada,Ada,"O\'Neil, Jr."\n')
    ours = grade_tables.for_canvas(of_class(root), {})
    assert ours.rows[2] == ["O'Neil, Jr., Ada", "", "", "ada", "", score]
    assert ours.without == ["bo"]
    assert "so Canvas would make a new one" in " ".join(ours.remarks)


@pytest.mark.parametrize("points", ["{}", "{}.0", "{}.00", "{},0", "0{}", "", "{}.5", "{}0", "many"])
def test_points_of_canvas_are_compared_as_numbers(root, points):
    points = points.format(f"{FULL:g}")
    canvas = CANVAS.replace(f"Points Possible,,,,,,{FULL - 1:g}", f'Points Possible,,,,,,"{points}"')
    (root / "roster.csv").write_text(canvas)
    table = grade_tables.for_canvas(of_class(root), {})
    assert table.rows[1][-1] == points
    differs = points in ("", "many", f"{FULL:g}.5", f"{FULL:g}0")
    assert (f"has {points or 'no'} points in Canvas, but {FULL:g} here." in " ".join(table.remarks)) == differs
    assert ("points in Canvas" in " ".join(table.remarks)) == differs


def test_moodle_gets_its_worksheet_or_a_table_for_its_grade_import(root, tmp_path):
    sheet = tmp_path / "worksheet.csv"
    sheet.write_text(WORKSHEET)
    table = grade_tables.for_moodle(of_class(root, sheet))
    assert table.rows[0][-1] == "Last modified (grade)"  # comments stay as they are in Moodle
    ada = dict(zip(*table.rows[:2], strict=True))
    assert (ada["Identifier"], ada["Full name"], ada["Last modified (grade)"]) == (
        "Participant 501", "Ada O'Neil, Jr.", "-",
    )  # fmt: skip
    assert ada["Grade"] == grade_tables.for_spreadsheet(of_class(root)).rows[1][7]
    assert "ignores grades above its maximum, and does not say so: ada" in " ".join(table.remarks)
    grader = tmp_path / "grades.csv"
    grader.write_bytes(
        'First name;Last name;ID number;Email address\r\nAda;"O\'Neil, Jr.";;ada@example.org\r\n'.encode("utf-16")
    )
    marked = of_class(root, grader, "Email address before @")
    assert grade_tables.for_moodle(marked).rows == [
        ["First name", "Last name", "ID number", "Email address", UNIT],
        ["Ada", "O'Neil, Jr.", "", "ada@example.org", ada["Grade"]],
    ]
    assert "its column `Email address` before @" in " ".join(marked.roster.remarks)
    assert [one.id for one in roster.read(grader).students] == ["ada@example.org"]
    assert "was read as UTF-16" in " ".join(marked.roster.remarks)


def test_a_roster_reports_its_columns_and_what_cannot_be_used(tmp_path):
    file = tmp_path / "roster.csv"
    file.write_text(CANVAS)
    found = roster.read(file)
    assert next((one.id, one.first_name, one.last_name) for one in found.students) == ("ada", "Ada", "O'Neil, Jr.")
    assert len(found.students) == 4
    said = " ".join(found.remarks)
    assert "the students' ids are its column `SIS Login ID`" in said
    assert "Student, Test" in said
    assert "Unknown columns of the roster, which are not used: Notes." in said
    assert [one.id for one in roster.read(file, id_column="sis user id").students][:2] == ["S-1", "S-2"]
    file.write_text("id\tfirst_name\tsection\tseat\nada\tAda\tA\t1\n")
    assert roster.read(file).remarks == ("Unknown columns of the roster, which are not used: seat.",)
    file.write_text("id,first_name\nada,Ada\n\n,\nbo,Bo\n")
    assert [one.id for one in roster.read(file).students] == ["ada", "bo"]
    for content, why in (
        (CANVAS.encode("latin-1"), r"not in UTF-8, perhaps in Latin-1 \(line 6\)"),
        (b"i\0d\0\n\0a\0", "in UTF-16 without a byte order mark"),
        (b"id,last_name,first_name\nada,O'Neil, Jr.,Ada\n", "more values than columns in line 2.*quotation marks"),
        (b"Name,Matrikel\nAda,1\n", "names nobody.*Its columns are: Name, Matrikel.*--id-column"),
        (b"Student,ID,SIS Login ID,Section\nA,1,ada,\nB,2,,\n", "no sis login id in line 3"),
    ):
        file.write_bytes(content)
        with pytest.raises(BadRoster, match=why):
            roster.read(file)
    with pytest.raises(BadRoster, match="no column `Kennung`"):
        roster.read(file, id_column="Kennung")


def test_numbers_are_rounded_and_no_formulas():
    assert [number(x) for x in (29.740000000000002, 31.0, 2.675, 1.005, -0.001, -1.5, 0.1 + 0.2, 12345.678)] == [
        "29.74", "31", "2.68", "1.01", "0", "-1.5", "0.3", "12345.68",
    ]  # fmt: skip
    assert [value(x) for x in ("-1.5", "-", "=1", "+1", "@a", "-a", "O'Neil, Jr.")] == [
        "-1.5", "-", "'=1", "'+1", "'@a", "'-a", "O'Neil, Jr.",
    ]  # fmt: skip
    assert text("-1") == "'-1"
    names = ["Ada; Bo", "O'Neil, Jr.", 'Ada "A." O;B', "a\tb", "-", "1;2", "two\nlines"]
    assert next(csv.reader(io.StringIO(as_csv([list(map(value, names))]), newline=""))) == names
    assert [rounded(x, 4) for x in (0.12345, 2.00005, 1 / 3)] == [0.1235, 2.0001, 0.3333]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@given(names=st.lists(st.text(st.sampled_from("a;=\t\n\"' -+@|%\uff1d\uff20,1"), max_size=12), min_size=1, max_size=3))
@example(names=["Ada;=1+1", "=1+1", " =1", "\uff1d1", "\t=1"])
@example(names=["ada", 'Ada; "=1+1";'])
@example(names=["ada", "Ada\n=1+1"])
def test_no_name_becomes_a_formula_with_any_separator(separator, names):
    written = as_csv([[text(name) for name in names]])
    for row in csv.reader(io.StringIO(written, newline=""), delimiter=separator):
        for cell in row:
            assert not cell.lstrip(" \n").startswith(tuple("=+-@|%\uff1d\uff20")), written


def readings_of(name, platform=""):
    """Return the possible readings of the only name in a zip file."""
    return readings(name, platform_of([name], platform))


@given(st.text(st.sampled_from("a1_./\\\0é \u202e"), max_size=40) | st.text(max_size=40))
def test_any_file_name_stays_in_its_folder(name):
    for reading in readings_of(name):
        assert reading.number.isdecimal()
        assert name.replace("\\", "/").endswith(reading.file)
        with suppress(NotTaken):
            path = path_within(reading.file)
            assert not path.is_absolute()
            assert ".." not in path.parts
            assert str(path).isprintable()


def zipped(path, *entries):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in entries:
            file.writestr(name, content)
    return path


def taken_in(root, path):
    with ZipFile(path) as file:
        return import_zip(file, course_directory(root), root, UNIT, class_list(root).roster)


def submitted(root):
    folder = root / "submitted"
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_zip_file_of_canvas_is_imported_and_feedback_packed_for_it(root, tmp_path):
    path = zipped(
        tmp_path / "canvas.zip",
        (f"oneiljrada_1001_70009_{UNIT}-1.ipynb", b"newer"),
        (f"oneiljrada_1001_70001_{UNIT}.ipynb", b"older"),
        ("oneiljrada_1001_70009_timestamp.txt", b"2020-01-01 00:00:00 UTC"),
        (f"hyperlinkx_LATE_1002_70002_{UNIT}.ipynb", notebook()),
        ("ferreirainês_1003_text.html", b"typed"),
        (f"mosscy_1004_70004_home_work_1_{UNIT}.ipynb", b"cy's"),
        (f"mosscy_1001_1004_70005_{UNIT}.ipynb", b"whose?"),
        (f"oneiljrada_1001_999_1004_70008_{UNIT}.ipynb", b"one who is called Ada_1001_999"),
        (f"mallory_1001_70006_{UNIT}.ipynb", b"not ada's"),
        (f"nobody_4_70007_{UNIT}.ipynb", b"nobody's"),
        ("__MACOSX/._x", b""),
    )
    before = submitted(root)
    done = taken_in(root, path)
    assert (done.new, sorted(done.replaced), done.unchanged, done.late) == (["cy"], ["ada", "bo"], [], ["bo"])
    assert {name: why.split()[0] for name, why in done.left_out.items()} == {
        "oneiljrada_1001_70009_timestamp.txt": "a",
        "ferreirainês_1003_text.html": "it",
        f"mosscy_1001_1004_70005_{UNIT}.ipynb": "it",
        f"oneiljrada_1001_999_1004_70008_{UNIT}.ipynb": "it",
        f"mallory_1001_70006_{UNIT}.ipynb": "number",
        f"nobody_4_70007_{UNIT}.ipynb": "number",
    }
    assert done.older == [f"oneiljrada_1001_70001_{UNIT}.ipynb"]
    after = submitted(root)
    assert after[f"ada/{UNIT}/{UNIT}.ipynb"] == b"newer"
    assert set(after) == {f"{s}/{UNIT}/{UNIT}.ipynb" for s in ("ada", "bo")} | {f"cy/{UNIT}/home_work_1_{UNIT}.ipynb"}
    assert (done.replaced["ada"] / "timestamp.txt").read_bytes() == before[f"ada/{UNIT}/timestamp.txt"]
    again = taken_in(root, path)
    assert (again.new, again.replaced, again.unchanged) == ([], {}, ["ada", "bo", "cy"])
    assert submitted(root) == after

    (unit,) = class_gradebook.of_units(root, [UNIT])
    comment(root, "bo", "Say more.")
    (of_unit,) = class_gradebook.of_units(root, [UNIT])
    assert of_unit.grades["ada"] == unit.grades["ada"]
    packed = pack_feedback(
        tmp_path / "feedback.zip", course_directory(root), of_unit, zip_files.read_origins(root, UNIT)
    )
    assert (packed.packed, packed.without_page, packed.outdated) == (["ada", "bo"], ["cy"], ["bo"])
    with zipfile.ZipFile(tmp_path / "feedback.zip") as file:
        names = file.namelist()
        assert b"<html" in file.read(names[0])
    assert names == [f"oneiljrada_1001_70009_{UNIT}.html", f"hyperlinkx_LATE_1002_70002_{UNIT}.html"]
    assert [reading.number for reading in readings_of(names[1])] == ["1002"]


@pytest.mark.parametrize("after", ["/", "_/", "_"], ids=["today", "before 4.1", "without folders"])
def test_a_zip_file_of_moodle_is_imported_and_feedback_packed_for_it(root, tmp_path, after):
    (root / "roster.csv").write_text(WORKSHEET)
    path = zipped(
        tmp_path / "moodle.zip",
        (f"Ada ONeil Jr._501_assignsubmission_file{after}{UNIT}.ipynb", b"ada's"),
        ("Ada ONeil Jr._501_assignsubmission_onlinetext/onlinetext.html", b"typed"),
        (f"Ada ONeil Jr._502_assignsubmission_file{after}{UNIT}.ipynb", b"not bo's"),
        (f"Group 7_503_assignsubmission_file{after}{UNIT}.ipynb", b"nobody's"),
    )
    done = taken_in(root, path)
    assert list(done.replaced) == ["ada"]
    assert submitted(root)[f"ada/{UNIT}/{UNIT}.ipynb"] == b"ada's"
    assert len(done.left_out) == 3
    packed = pack_feedback(
        tmp_path / "f.zip",
        course_directory(root),
        class_gradebook.of_units(root, [UNIT])[0],
        zip_files.read_origins(root, UNIT),
    )
    assert (packed.packed, packed.without_origin) == (["ada"], ["bo"])
    with zipfile.ZipFile(tmp_path / "f.zip") as file:
        assert file.namelist() == [f"Ada ONeil Jr._501_assignsubmission_file{after}{UNIT}.html"]


def test_without_numbers_a_unique_name_identifies_the_student(root, tmp_path):
    (root / "roster.csv").write_text(
        'id,first_name,last_name\nada,Ada,"O\'Neil, Jr."\nb1,Bo,Quist\nb2,Quist,Bo\nines,Inês,Ferreira\n'
    )
    done = taken_in(
        root,
        zipped(
            tmp_path / "moodle.zip",
            (f"Ine\u0302s Ferreira_5_assignsubmission_file/{UNIT}.ipynb", b"composed otherwise"),
            (f"Inês Ferreira_6_assignsubmission_file/{UNIT}.ipynb", b"another's number"),
            (f"Bo Quist_7_assignsubmission_file/{UNIT}.ipynb", b"one of two"),
            (f"O'Neil, Jr. Ada_8_assignsubmission_file/{UNIT}.ipynb", b"the last name first"),
        ),
    )
    assert (done.new, list(done.replaced)) == ([], ["ada"])
    assert {name.split("_")[0]: why.split(";")[0] for name, why in done.left_out.items()} == {
        "Bo Quist": "several students have this name",
        "ines": "files with different numbers have this student's name: 5, 6",
    }


def test_zip_file_and_roster_must_be_of_the_same_platform(root, tmp_path):
    """In a file of Moodle's, whoever has `_` in the name could call a file as Canvas would call another student's."""
    own = 'id,first_name,last_name\nada,Ada,"O\'Neil, Jr."\nbo,Bo,Quist\n'
    path = zipped(
        tmp_path / "moodle.zip",
        (f"Bo Quist_502_assignsubmission_file/{UNIT}.ipynb", b"bo's"),
        (f"M_allory_503_assignsubmission_file/adaoneiljr_1001_70001_{UNIT}.ipynb", b"not ada's"),
    )
    before = submitted(root)[f"ada/{UNIT}/{UNIT}.ipynb"]
    for table in (WORKSHEET, own):
        (root / "roster.csv").write_text(table)
        done = taken_in(root, path)
        assert (done.platform, [*done.new, *done.replaced, *done.unchanged]) == ("Moodle", ["bo"])
        (why,) = done.left_out.values()
        assert why in ("number 503 is not on the roster", "nobody on the roster has this name")
        assert submitted(root)[f"ada/{UNIT}/{UNIT}.ipynb"] == before
    (root / "roster.csv").write_text(CANVAS)
    with pytest.raises(BadZip, match=r"is from Moodle and the roster from Canvas.*Use Moodle's own table"):
        taken_in(root, path)


def test_only_the_line_without_a_possible_id_is_left_out(root, tmp_path):
    sheet = tmp_path / "grades.csv"
    sheet.write_text(
        "First name,Last name,Email address\nAda,O,ada@example.org\nEve,E,eve e@example.org\nBo,Q,bo@b.org\n"
    )
    found = roster.read(sheet)
    assert [one.id for one in found.students] == ["ada@example.org", "bo@b.org"]
    assert found.left_out == ("eve e@example.org",)
    id_column = ("--id-column", "Email address")
    done = run("export", UNIT, "--format", "moodle", "--roster", sheet, *id_column, "--course", root, code=1)
    assert len(done.stdout.splitlines()) == 3
    assert "NOT TAKEN FROM THE ROSTER: eve e@example.org, which cannot be" in " ".join(done.stderr.split())
    sheet.write_text("First name,Last name,Email address\nEve,E,eve e@example.org\n")
    with pytest.raises(BadRoster, match=r"ids that no new student can have: eve e@example.org"):
        roster.read(sheet)


def test_a_hostile_zip_file_writes_nothing_outside_and_fills_no_disk(root, tmp_path):
    folder = "Ada ONeil Jr._501_assignsubmission_file"
    (root / "roster.csv").write_text(WORKSHEET)
    before = submitted(root)
    link = zipfile.ZipInfo(f"{folder}/link.ipynb")
    link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    path = zipped(
        tmp_path / "bad.zip",
        (f"{folder}/../../../../outside.txt", b"out"),
        (f"{folder}//etc/../x", b"out"),
        (f"{folder}/{'n' * 300}", b"long"),
        ("/outside.txt", b"out"),
        (link, "/etc/passwd"),
        (f"{folder}/bomb.ipynb", bytes(2_100_000)),
        (f"{folder}/a\x1b[2Jb.txt", b"bell"),
        (f"{folder}/damaged.ipynb", b"DAMAGED" * 9),
        (f"{folder}/both", b"file"),
        (f"{folder}/both/x", b"and folder"),
    )
    content = path.read_bytes()
    entry = content.rindex(f"{folder}/damaged.ipynb".encode())
    broken = bytearray(content)
    broken[entry - 46 + 8] |= 1  # in the list of files: encrypted
    path.write_bytes(broken)
    done = taken_in(root, path)
    taken = {name: text for name, text in submitted(root).items() if name not in before}
    assert taken == {f"ada/{UNIT}/a\N{REPLACEMENT CHARACTER}[2Jb.txt": b"bell", f"ada/{UNIT}/both": b"file"}
    whys = " ".join(done.left_out.values())
    for why in (
        "not a valid path within a folder",
        "too long",
        "not a regular file",
        "larger than 2 MB",
        "is encrypted",
    ):
        assert why in whys
    assert "a file and a folder have the same name" in whys
    assert not list(tmp_path.rglob("outside.txt"))
    assert [one.name for one in (root / "submitted" / "ada").iterdir()] == [UNIT]  # nothing half done is left

    (root / "submitted" / "bo" / UNIT).rename(root / "elsewhere")
    (root / "submitted" / "bo" / UNIT).symlink_to(root / "elsewhere")
    bo = zipped(tmp_path / "bo.zip", (f"Bo Quist_502_assignsubmission_file/{UNIT}.ipynb", b"bo's"))
    assert "is a link" in taken_in(root, bo).left_out["bo"]
    assert (root / "elsewhere" / f"{UNIT}.ipynb").read_bytes() == before[f"bo/{UNIT}/{UNIT}.ipynb"]
    (tmp_path / "no.zip").write_bytes(b"PK\x05\x06 no zip file")
    with pytest.raises(BadZip, match="not a zip file"):
        ZipFile(tmp_path / "no.zip")


OWN_ROSTER = 'id,first_name,last_name\nada,Ada,"O\'Neil, Jr."\nbo,Bo,Quist\n'


@given(
    st.lists(
        st.text(st.sampled_from("aA1_/.\\ "), max_size=30)
        | st.sampled_from(
            [
                "A_1_assignsubmission_file/x",
                "s/A_1_assignsubmission_file/x",
                "s/t/A_1_assignsubmission_file/x",
                "a_1_2_x",
                "s/a_1_2_x",
            ]
        ),
        max_size=6,
    ),
    st.sampled_from(["", "Moodle", "Canvas"]),
)
@example(["A_1_assignsubmission_file/x", "s/A_1_assignsubmission_file/x", "s/t/A_1_assignsubmission_file/x"], "")
def test_any_zip_file_has_one_platform(names, expected):
    platform = platform_of(names, expected)
    found = [one for name in names for one in readings(name, platform)]
    assert {one.platform for one in found} <= {platform}


_within = st.text(st.sampled_from("aA1_/. "), max_size=20) | st.sampled_from(
    ["ada_1001_7_x.ipynb", "Ada_501_assignsubmission_file_/x", "Bo_502_assignsubmission_onlinetext/x", "../x", ""]
)


@given(st.lists(_within, min_size=1, max_size=9), st.sampled_from(["", "Moodle", "Canvas"]), st.sampled_from("/_ "))
def test_file_names_of_students_determine_neither_platform_nor_student(chosen, expected, after):
    """There are more of them than honest submissions."""
    moodles = [f"M_503_assignsubmission_file{after.strip()}{name}" for name in chosen]
    assert platform_of(["Ada_501_assignsubmission_file_/x.ipynb", *moodles], expected) == "Moodle"
    assert {one.number for name in moodles for one in readings(name, "Moodle")} <= {"503"}
    canvas = [f"mallory_1099_70099_{name.replace('/', '')}" for name in chosen]
    assert platform_of(["oneilada_1001_70001_x.ipynb", *canvas], expected) == "Canvas"
    found = [readings(name, "Canvas") for name in canvas]
    assert all("1099" in {one.number for one in ways} for ways in found if ways)


MALLORYS = stored("lms_names")
HONEST = {
    "Moodle": [
        ("ada", "Ada ONeil Jr._501_assignsubmission_file_/{}"),
        ("bo", "Bo Quist_502_assignsubmission_file_/{}"),
    ],
    "Canvas": [("ada", "oneiljrada_1001_70001_{}"), ("cy", "mosscy_1004_70004_{}")],
}


@pytest.mark.parametrize("wrapper", ["", "all of them/", "Section A/1_2_3/"])
@pytest.mark.parametrize("table", ["its own", "a table of one's own"])
@pytest.mark.parametrize("platform", HONEST)
def test_an_odd_name_affects_no_other(tmp_path, platform, table, wrapper):
    """Add each odd name alone to the honest students' submissions, then as many odd names as honest ones."""
    rosters = {"Moodle": WORKSHEET, "Canvas": CANVAS}
    (tmp_path / "roster.csv").write_text(rosters[platform] if table == "its own" else OWN_ROSTER)
    known = {student.id for student in class_list(tmp_path).roster.students}
    honest = [(student, wrapper + name.format(f"{UNIT}.ipynb")) for student, name in HONEST[platform]]
    mallorys = [wrapper + name.format(f"{UNIT}.ipynb", f"{UNIT}.ipynb") for name in MALLORYS[platform]]
    if table == "its own":  # a name alone would be two students' then, and neither's
        mallorys += [
            wrapper + {"Moodle": "Bo Quist_503_assignsubmission_file/x", "Canvas": "mosscy_1099_1_x"}[platform]
        ]
    strays = ["README.txt", "grades_2026_01_old.csv", "x_7_assignsubmission_file", "\x1b[2J", "..", "a//b", "\\"]
    for place, odd in enumerate([[one] for one in mallorys + strays] + [mallorys]):
        shutil.rmtree(tmp_path / "submitted", ignore_errors=True)
        path = zipped(tmp_path / f"{place}.zip", *((name, b"not theirs") for name in odd), *(
            (name, student.encode()) for student, name in honest
        ))  # fmt: skip
        done = taken_in(tmp_path, path)
        assert done.platform == platform
        expected = {f"{student}/{UNIT}/{UNIT}.ipynb": student.encode() for student, _ in honest if student in known}
        assert submitted(tmp_path) == expected, odd
        assert len(done.left_out) >= len(odd), odd


def test_moodles_number_decides_also_after_a_groups_name(tmp_path):
    """Two students of one name have two numbers, and a name may have dashes in it, as a group's may."""
    (tmp_path / "roster.csv").write_text(
        "Identifier,Full name,Email address\nParticipant 501,Bo Quist,bo1@b.org\nParticipant 502,Bo Quist,bo2@b.org\n"
        "Participant 503,Anne-Marie O'Neil,am@b.org\nParticipant 504,Marie O'Neil,m@b.org\n,Cy Moss,cy@b.org\n"
        "Participant 507,Di Day,di@b.org\nParticipant 507,Ed Ede,ed@b.org\n"
    )
    names = {
        "bo1@b.org": "Group A-Bo Quist_501_assignsubmission_file_",
        "bo2@b.org": "Bo Quist_502_assignsubmission_file_",
        "am@b.org": "Group-A - 1-Anne-Marie ONeil_503_assignsubmission_file_",
        "m@b.org": "A-Marie O'Neil_504_assignsubmission_file_",
        "cy@b.org": "Cy Moss_505_assignsubmission_file_",  # without a number on the roster the name tells
    }
    odd = [
        "Bo Quist_506_assignsubmission_file_",  # a third of the name, who is not on the roster
        "Group A-Cy Quist_502_assignsubmission_file_",
        "Group A_508_assignsubmission_file_",
        "Group A-Cy Moss_509_assignsubmission_file_",  # whose name may be chosen so
    ]
    done = taken_in(tmp_path, zipped(tmp_path / "m.zip", *(
        (f"{name}/{UNIT}.ipynb", name.encode()) for name in [*names.values(), *odd]
    )))  # fmt: skip
    assert submitted(tmp_path) == {f"{student}/{UNIT}/{UNIT}.ipynb": name.encode() for student, name in names.items()}
    assert len(done.left_out) == len(odd)


def test_numbers_on_a_roster_distinguish_students_of_the_same_name(tmp_path):
    (tmp_path / "roster.csv").write_text("id,first_name,last_name,lms_user_id\nb1,Bo,Quist,2001\nb2,Bo,Quist,2002\n")
    done = taken_in(tmp_path, zipped(
        tmp_path / "canvas.zip", (f"quistbo_2001_1_{UNIT}.ipynb", b"b1"), (f"quistbo_2002_2_{UNIT}.ipynb", b"b2")
    ))  # fmt: skip
    assert (done.new, done.left_out) == (["b1", "b2"], {})
    assert set(submitted(tmp_path).values()) == {b"b1", b"b2"}


def test_obstacles_in_one_students_folder_stop_nobody_else(tmp_path):
    (tmp_path / "roster.csv").write_text("id,first_name,last_name\n" + "".join(f"s{n},S,{n}\n" for n in "abcdef"))
    folder = tmp_path / "submitted"
    for student in "abcdef":
        (folder / f"s{student}").mkdir(parents=True)
    (folder / "sa").rmdir()
    (folder / "sa").write_text("a file")
    (folder / "sb" / UNIT).mkdir()
    (folder / "sb" / UNIT / f"{UNIT}.ipynb").symlink_to("nothing")
    (folder / "sc" / UNIT).mkdir()
    os.mkfifo(folder / "sc" / UNIT / f"{UNIT}.ipynb")
    (folder / "sd" / UNIT).mkdir()
    (folder / "sd" / UNIT / f"{UNIT}.ipynb").mkdir()
    (tmp_path / "imported" / "replaced").mkdir(parents=True)
    (tmp_path / "imported" / "replaced" / "se").write_text("a file")
    (folder / "se" / UNIT).write_text("a file")
    names = [f"S {n}_{ord(n)}_assignsubmission_file_/{UNIT}.ipynb" for n in "abcdef"]
    path = zipped(tmp_path / "m.zip", *((name, b"new") for name in names))
    done = taken_in(tmp_path, path)
    assert (done.new, sorted(done.replaced), sorted(done.left_out)) == (["sf"], ["sb", "sc", "sd"], ["sa", "se"])
    for student in ("sb", "sc", "sd", "sf"):
        assert (folder / student / UNIT / f"{UNIT}.ipynb").read_bytes() == b"new"
    assert "cannot be replaced: " in done.left_out["sa"]


def test_an_entry_without_a_name_is_left_out(root, tmp_path):
    path = zipped(tmp_path / "canvas.zip", ("x", b"nobody's"), (f"mosscy_1004_70004_{UNIT}.ipynb", b"cy's"))
    content = path.read_bytes()
    central = content.rindex(b"PK\x01\x02", 0, content.rindex(b"PK\x01\x02"))
    entry = bytearray(content[central : central + 47])
    entry[28:30] = b"\0\0"
    end = bytearray(content[-22:])
    end[12:16] = (int.from_bytes(end[12:16], "little") - 1).to_bytes(4, "little")
    path.write_bytes(content[:central] + entry[:46] + content[central + 47 : -22] + end)
    done = taken_in(root, path)
    assert (done.new, len(done.left_out)) == (["cy"], 1)


def test_the_commands_print_results_and_errors(root, tmp_path):
    path = zipped(tmp_path / "canvas.zip", (f"mosscy_1004_70004_{UNIT}.ipynb", b"cy's"), ("strange.txt", b""))
    result = run("import", UNIT, path, "--course", root, code=1)
    assert "The zip file is from Canvas.\n" in result.stdout
    assert "1 submissions are new" in result.stdout
    assert "strange.txt: its name does not have the form of a submission" in result.stderr
    assert run("export", UNIT, "--format", "canvas", "--output", tmp_path / "marks.csv", "--course", root).stdout == ""
    assert (tmp_path / "marks.csv").read_text().startswith("Student,ID,SIS User ID,SIS Login ID,Section,Dot-Product")
    assert run("export", UNIT, "--course", root).stdout.startswith("student_id,Student,ID,")
    packed = run("feedback-zip", UNIT, "--course", root, code=1)
    assert (packed.stdout, "Without a feedback page: cy" in packed.stderr) == ("", True)
    for arguments, reason in (
        (("export", "causal_attention"), f"Run `autograder grade causal_attention --course {root}`"),
        (("export", UNIT, "--output", tmp_path / "no" / "marks.csv"), "cannot be written"),
        (("export", UNIT, "--output", root / "roster.csv"), "is a file that this command reads"),
        (("export", UNIT, "--output", root / "gradebook.db"), "is a file that this command reads"),
        (("export", UNIT, "--format", "canvas", "--assignment", "x=y"), "is not of the form UNIT=COLUMN"),
        (("export", UNIT, "--assignment", f"{UNIT}=y"), "use it only with `--format canvas`"),
        (("import", UNIT, tmp_path / "no.zip"), "cannot be read"),
        (("import", UNIT, path, "--roster", tmp_path / "no.csv"), "cannot be read"),
    ):
        assert reason in refusal(*arguments, "--course", root)
    (root / "imported" / f"{UNIT}.json").write_text("[]")
    for command in (("import", UNIT, path), ("feedback-zip", UNIT)):
        assert "Delete it and import the zip file again" in refusal(*command, "--course", root)
