"""Sections of a class: `grade`, `report` and `export` take one, and leave the rest of the class alone."""

import shutil
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.gradebook import roster
from autograder.gradebook.roster import BadRoster
from autograder.lms.grade_tables import for_canvas, for_spreadsheet, graded_class
from autograder.reports import class_report
from tests import sampling
from tests.commands import refusal, run
from tests.gradebook.test_deadlines import RIGHT, WRONG
from tests.recorded_class import UNIT, everything, put_submission, write_roster, write_settings

pytestmark = [
    pytest.mark.filterwarnings("ignore:Object of type <Submitted:sqlalchemy.exc.SAWarning"),
    pytest.mark.filterwarnings("ignore:Generating overly large repr"),  # of the recorded class, if an example fails
]
ANSWERS = {"s0": RIGHT, "s1": WRONG, "s2": RIGHT}
STUDENTS = (*ANSWERS, "nobody")


@pytest.fixture(scope="module")
def ungraded(recorded, tmp_path_factory):
    """A course whose gradebook has no student yet; `stranger` submitted, and is on no roster."""
    root = tmp_path_factory.mktemp("ungraded") / "course"
    root.mkdir()
    write_settings(root)
    write_roster(root, "section", dict.fromkeys(STUDENTS, "A"))
    for student, answer in {**ANSWERS, "stranger": RIGHT}.items():
        put_submission(root, student, answer)
    return root


@pytest.fixture(scope="module")
def once(ungraded, recorded, tmp_path_factory):
    """The class, graded: s0 and nobody are in the section Mon, s1 in Tue 2/4."""
    root = shutil.copytree(ungraded, tmp_path_factory.mktemp("once") / "course")
    write_roster(root, "section", {"s0": "Mon", "s1": "Tue 2/4", "s2": "", "nobody": "Mon"})
    recorded.grade(root)
    return root


def folders(root, students):
    """Return the content of all files that grading writes for these students."""
    paths = [path for kind in ("autograded", "feedback") for one in students for path in (root / kind / one).rglob("*")]
    return {path: path.read_bytes() for path in paths if path.is_file()}


def in_table(marks):
    header, *rows = for_spreadsheet(marks).rows
    return {row[0]: dict(zip(header, row, strict=True)) for row in rows}


@given(st.fixed_dictionaries(dict.fromkeys(STUDENTS, st.sampled_from(["", "A", "B", "Ä, 2"]))))
@settings(max_examples=6 if sampling.every else 3)
def test_grading_each_section_is_grading_the_class(ungraded, recorded, tmp_path_factory, sections):
    root = shutil.copytree(ungraded, tmp_path_factory.mktemp("each") / "course")
    write_roster(root, "section", sections)
    members = defaultdict(list)
    for student, section in sections.items():
        if section:
            members[section].append(student)
    for section, students in members.items():
        result = recorded.grade(root, section=section)
        assert [row.student for row in result.rows] == students
        assert recorded.asked == [student for student in students if student in ANSWERS]
        assert list(result.grades.grades) == sorted(recorded.asked)
        assert [one.id for one in result.grades.students] == sorted(students)
    graded = [student for student in ANSWERS if sections[student]]
    before = folders(root, graded)
    assert len(before) > len(graded) or not graded
    recorded.grade(root)
    assert set(recorded.asked) == {*ANSWERS, "stranger"} - set(graded)
    assert folders(root, graded) == before
    whole = in_table(graded_class(root, [UNIT], None, None))
    rows = {row.student: row for row in class_report.compose(root, UNIT).rows}
    for section, students in members.items():
        marks = graded_class(root, [UNIT], None, None, section)
        assert in_table(marks) == {student: whole[student] for student in students}
        table = for_canvas(marks, {})
        assert [row[0] for row in table.rows[2:]] == students
        assert table.without == []
        if set(students) != {"nobody"}:
            report = class_report.compose(root, UNIT, section=section, students=students)
            assert {row.student: row for row in report.rows} == {student: rows[student] for student in students}
            assert (report.section, report.students, report.handed_in) == (
                section, len(students), len(set(students) & set(ANSWERS)),
            )  # fmt: skip


@pytest.mark.parametrize(
    ("command", "section"),
    [
        ("grade", "mon"),
        ("grade", ""),
        ("grade --dry-run", "Tue"),
        ("export --output marks.csv", "Mon, Tue 2/4"),
        ("export --format canvas", "Tues"),
        ("report", "Tue"),
        ("report --anonymous", "mon"),
    ],
)
def test_a_mistyped_section_is_refused_with_the_sections_that_exist(root, command, section):
    name, *options = command.split()
    (root / "marks.csv").write_text("kept")
    before = everything(root)
    said = refusal(name, UNIT, *options, "--section", section, "--course", root, cwd=root)
    assert f"The roster has no section `{section}`. Its sections are: Mon, Tue 2/4." in said
    assert everything(root) == before


def test_the_commands_take_a_section(root):
    def printed_by(name, *options):
        return run(name, UNIT, *options, "--course", root).stdout

    printed = printed_by("grade", "--section", "Mon")
    assert printed.startswith(f"{UNIT}, section Mon: 2 students")
    assert f"autograder report {UNIT} --section Mon --course" in printed
    assert [line.split()[0] for line in printed.splitlines()[1:3]] == ["s0", "nobody"]
    exported = printed_by("export", "--section", "Tue 2/4").splitlines()
    assert [line.split(",")[0] for line in exported] == ["student_id", "s1"]
    printed_by("report")
    of_class = (root / "reports" / UNIT / "report.html").read_text()
    printed_by("report", "--section", "Tue 2/4")
    page = (root / "reports" / UNIT / "section_Tue 2%2F4" / "report.html").read_text()
    assert "Class report, section Tue 2/4" in page
    assert (root / "reports" / UNIT / "report.html").read_text() == of_class
    assert "section Tue" not in of_class


def test_a_report_on_a_section_without_marks_is_refused(root):
    write_roster(root, "section", {"new": "Wed", "s0": "Mon"})
    said = refusal("report", UNIT, "--section", "Wed", "--course", root)
    assert f"Nothing of {UNIT} is graded yet in the section Wed." in said


CANVAS = "Student,ID,SIS Login ID,Section\n"
MOODLE = "Username,First name,Groups\n"
OF_PLATFORMS = {
    CANVAS: [("Lec 1, Lab 2", {"Lec 1", "Lab 2"}), ("Lec 1 and Lab 3", {"Lec 1", "Lab 3"}), ("", set())],
    MOODLE: [("Lec 1, Lab 2", {"Lec 1", "Lab 2"}), ("A, B, and C", {"A", "B", "C"}), ("Sandra", {"Sandra"})],
    "id,section\n": [("Lec 1, Lab 2", {"Lec 1, Lab 2"}), ("Arts and Crafts", {"Arts and Crafts"}), (" A ", {"A"})],
    "id,Sektion\n": [("Lec 1", {"Lec 1"}), ("Lec 2", {"Lec 2"}), ("", set())],
}


@pytest.mark.parametrize("header", OF_PLATFORMS)
def test_the_sections_of_a_table(tmp_path, header):
    file, people = tmp_path / "roster.csv", OF_PLATFORMS[header]
    before = {CANVAS: '"O, Ada",1{0},s{0},"{1}"', MOODLE: 's{0},Ada,"{1}"'}.get(header, 's{0},"{1}"')
    lines = [before.format(number, text) for number, (text, _) in enumerate(people)]
    file.write_text(header + "\n".join(lines))
    found = roster.read(file)
    assert not [remark for remark in found.remarks if "Unknown columns" in remark]
    for section in set().union(*(sections for _, sections in people)):
        expected = [f"s{number}" for number, (_, sections) in enumerate(people) if section in sections]
        assert [one.id for one in found.in_section(section).students] == expected
    assert found.in_section(None) is found
    for number, (text, _) in enumerate(people):
        if text:  # a name may have a comma or an `and` in it
            assert [one.id for one in found.in_section(text).students] == [f"s{number}"]
    names = ", ".join(sorted(set().union(*(sections for _, sections in people))))
    with pytest.raises(BadRoster, match=f"no section `C 1`[.] Its sections are: {names}[.]"):
        found.in_section("C 1")


def test_a_roster_without_sections_says_what_to_add(tmp_path):
    file = tmp_path / "roster.csv"
    file.write_text("id\nada\n")
    with pytest.raises(BadRoster, match="No student on the roster has a section"):
        roster.read(file).in_section("A")
