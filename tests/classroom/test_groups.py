"""Groups of a class: which submission counts for each member, by a plain model, in all places that show it."""

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from autograder import course
from autograder.classroom.student_folders import UNREAD
from autograder.cli.class_results import class_in_lines, class_lines
from autograder.gradebook.lateness import Extensions
from autograder.gradebook.roster import read
from autograder.lms.grade_tables import for_spreadsheet, graded_class
from autograder.report import Report, joined
from autograder.serving import http_server
from tests import sampling
from tests.commands import refusal, run
from tests.gradebook.test_deadlines import DUE, FULL, RIGHT, WRONG, applied, standings
from tests.recorded_class import (
    UNIT,
    RecordedClass,
    everything,
    feedback_page,
    notebook,
    put_submission,
    set_due,
    write_roster,
    write_settings,
)
from tests.served_unit import FIRST, SECOND, THIRD, Serving, released, serve
from tests.served_unit import submit as submit_to_exchange

pytestmark = [
    pytest.mark.filterwarnings("ignore:Object of type <Submitted:sqlalchemy.exc.SAWarning"),
    pytest.mark.filterwarnings("ignore:Generating overly large repr"),  # of the recorded class, if an example fails
]
HOUR = timedelta(hours=1)
STUDENTS = ("ada", "bo", "cy", "di")
DAMAGED = b"no notebook"
ANSWERS = {RIGHT: FULL, WRONG: FULL - 4, notebook(context_vector="pass"): FULL - 2, DAMAGED: 0}
"""Files with their scores."""


class WithNotes(RecordedClass):
    """Marks each file once, and adds the note to the message, as `test_the_note_is_in_the_report` sees it done."""

    def marked(self, submission, submissions):
        marked = super().marked(replace(submission, note=""), submissions)
        message = joined(submission.note, marked.report.message)
        return replace(marked, submission=submission, report=msgspec.structs.replace(marked.report, message=message))


@pytest.fixture(scope="module")
def recorded(grading_process):
    return WithNotes(grading_process)


@pytest.fixture(scope="module")
def once(recorded, tmp_path_factory):
    """A course with a due date, and a penalty of a tenth a day."""
    root = tmp_path_factory.mktemp("once") / "course"
    root.mkdir()
    write_settings(root)
    (root / "autograder.toml").write_text('[late_penalty]\nrule = "linear"\npercent_a_day = 10\n')
    write_roster(root, "group", dict.fromkeys(STUDENTS, ""))
    recorded.grade(root)
    set_due(root, DUE)
    return root


def submit(root, student, answer, delay):
    """Put a student's submission there; `delay` is the time after the due date, None for no time stamp."""
    shutil.rmtree(root / "submitted" / student, ignore_errors=True)
    if answer is not None:
        stamp = None if delay is None else f"{DUE + delay:%Y-%m-%d %H:%M:%S UTC}"
        put_submission(root, student, answer, stamp)


def counting(student, groups, submitted, extensions):
    """Return whose submission counts for a student, how late it is for that student, and whether a member's file that
    would have counted could not be read: the plain model."""
    members = [one for one in STUDENTS if one == student or (groups[one] and groups[one] == groups[student])]
    own_due = extensions[student] or timedelta()
    times = {
        one: -1000 * HOUR if submitted[one][1] is None else submitted[one][1] for one in members if submitted[one][0]
    }
    readable = {one: time for one, time in times.items() if submitted[one][0] != DAMAGED}
    latest, late = latest_of(readable or times, own_due)
    return latest, late, latest != latest_of(times, own_due)[0]


def latest_of(times, own_due):
    """Return whose submission is the latest in time, or else the latest, and how late it is."""
    in_time = {one: time for one, time in times.items() if time <= own_due}
    latest = None
    for one, time in (in_time or times).items():
        if latest is None or time > times[latest]:
            latest = one
    return latest, timedelta() if latest is None or latest in in_time else times[latest] - own_due


SUBMITTED = st.tuples(
    st.sampled_from([None, *ANSWERS]), st.sampled_from([None, -2 * HOUR, -HOUR, 0 * HOUR, HOUR, 2 * HOUR, 30 * HOUR])
)
"""A file, and the time after the due date."""
GROUPS = st.fixed_dictionaries(dict.fromkeys(STUDENTS, st.sampled_from(["", "g", "g", "Team 2"])))
EXTENSIONS = st.fixed_dictionaries(dict.fromkeys(STUDENTS, st.sampled_from([None, None, HOUR, 48 * HOUR])))
ALL_IN_ONE = dict.fromkeys(STUDENTS, "g")


@example(
    [
        (
            ALL_IN_ONE,
            {"ada": (WRONG, -HOUR), "bo": (RIGHT, HOUR), "cy": (None, None), "di": (DAMAGED, 30 * HOUR)},
            {"ada": None, "bo": None, "cy": HOUR, "di": 48 * HOUR},
        )
    ]
)
@given(
    st.lists(
        st.tuples(GROUPS, st.fixed_dictionaries(dict.fromkeys(STUDENTS, SUBMITTED)), EXTENSIONS), min_size=1, max_size=2
    )
)
@settings(max_examples=5 if sampling.every else 3)
def test_all_places_agree_with_the_model(once, recorded, tmp_path_factory, rounds):
    root = shutil.copytree(once, tmp_path_factory.mktemp("class") / "course")
    submitted = dict.fromkeys(STUDENTS, (None, None))
    for groups, new, extensions in rounds:
        write_roster(root, "group", groups)
        submitted |= {student: its for student, its in new.items() if its[0] is not None}
        for student in STUDENTS:
            submit(root, student, *submitted[student])
        Extensions(root, UNIT).put(extensions)
        agree_with_the_model(root, recorded, groups, submitted, extensions)


def agree_with_the_model(root, recorded, groups, submitted, extensions):
    ungraded = graded_class(root, [UNIT], None, None)
    before, untouched = standings(root), everything(root)
    predicted = recorded.preview(root)
    assert everything(root) == untouched
    result = recorded.grade(root)
    after = standings(root)
    assert predicted.rows == result.rows
    assert applied(before, predicted.changes) == applied(after, [])
    unit = course.unit(UNIT, root)
    of_json = {line.student: line for line in class_lines(unit, result)}
    lines = {str(line).split()[0]: str(line) for line in class_in_lines(unit, result)}
    table = for_spreadsheet(graded_class(root, [UNIT], None, None)).rows
    export = {row[0]: dict(zip(table[0], row, strict=True)) for row in table[1:]}
    for student in STUDENTS:
        author, late, has_unread = counting(student, groups, submitted, extensions)
        assert export[student]["group"] == groups[student]
        if author is None:
            assert after.grades.keys() & {student} == before.grades.keys() & {student}
            assert of_json[student].status == "not_submitted"
            continue
        assert student in before.grades or ungraded.status(student, ungraded.units[0]) == "not_graded"
        score = ANSWERS[submitted[author][0]]
        penalty = score / 10 * -(-late // timedelta(days=1))
        mark = after.grades[student]
        assert (mark.shown.score, mark.late, mark.shown.late_penalty) == (score, late, pytest.approx(penalty))
        assert of_json[student].score == score
        assert of_json[student].late_seconds == (late.total_seconds() or None)
        assert float(export[student][f"{UNIT}.score"]) == pytest.approx(score - penalty, abs=0.0051)
        report = msgspec.json.decode((root / "autograded" / student / UNIT / "report.json").read_bytes(), type=Report)
        assert (report.notebook, report.score) == (f"{author}/{UNIT}/{UNIT}.ipynb", score)
        page = feedback_page(root, student).read_text()
        assert f"{UNIT}: {round(score - penalty, 2):g} of" in page
        said = f"This is your group's submission, submitted by {author}."
        assert (said in lines[student]) == (author != student)
        assert ("This is your group" in page) == (author != student)
        assert [UNREAD in line for line in (lines[student], page)] == [has_unread] * 2
    assert recorded.preview(root).changes == []
    recorded.grade(root)
    assert recorded.asked == []


def test_the_note_is_in_the_report(root, recorded, grading_process):
    write_roster(root, "group", ALL_IN_ONE)
    submit(root, "bo", WRONG, -HOUR)
    submit(root, "cy", DAMAGED, -2 * HOUR)
    pages = []
    for each in (recorded, RecordedClass(grading_process)):
        each.grade(root, regrade=True)
        pages.append([feedback_page(root, student).read_text() for student in STUDENTS])
    assert pages[0] == pages[1]


def test_members_of_other_sections_count(root, recorded):
    (root / "roster.csv").write_text("id,section,group\nada,Mon,g\nbo,Tue,g\ncy,Mon,\n")
    submit(root, "bo", RIGHT, -HOUR)
    result = recorded.grade(root, section="Mon")
    assert [(row.student, row.report.score) for row in result.rows] == [("ada", FULL), ("cy", 0)]
    assert standings(root).grades.keys() == {"ada"}


def test_extend_takes_a_group(root):
    write_roster(root, "group", {"ada": "g", "bo": "", "cy": "g", "di": "Team 2"})
    command = "extend", UNIT, "--course", root
    run(*command, "di", "--group", "g", "--by", "2d")
    assert set(Extensions(root, UNIT).given) == {"ada", "cy", "di"}
    run(*command, "--group", "g", "--remove")
    assert set(Extensions(root, UNIT).given) == {"di"}
    said = refusal(*command, "--group", "h", "--by", "2d")
    assert said == "No student on the roster has `h` in the column `group`."


@pytest.mark.parametrize(
    ("header", "row", "group", "section"),
    [
        ("id,group", "ada,g", ["ada"], None),
        ("id,Gruppe", "ada,g", ["ada"], None),
        ("username,groups", "ada,g", [], "g"),
        ("username,groups,group", "ada,Mon,g", ["ada"], "Mon"),
        ("Student,ID,SIS Login ID,Section,group", "A,1,ada,Mon,g", ["ada"], "Mon"),
    ],
)
def test_the_column_of_each_table(tmp_path, header, row, group, section):
    """Moodle's column Groups divides the class into sections, as before."""
    path = tmp_path / "roster.csv"
    path.write_text(f"{header}\n{row}\n")
    roster = read(path)
    assert roster.group("g") == group
    assert [student.id for student in roster.in_section(section).students] == ["ada"]
    assert not any("Unknown columns" in remark for remark in roster.remarks)


def test_serve_reports_a_file_of_the_group_that_cannot_be_read(course, recorded):
    write_roster(course, "group", {"ada": "g", "bo": "g"})
    submit_to_exchange(course, "ada", WRONG, FIRST)
    with Serving(course, recorded) as serving:
        serving.work_off()
        for moment, graded in ((SECOND, ["ada", "bo"]), (THIRD, [])):
            serving.marked.clear()
            submit_to_exchange(course, "bo", DAMAGED, moment)
            serving.work_off()
            assert sorted(serving.marked) == graded
            for student in ("ada", "bo"):
                assert f"{UNIT}: {FULL - 4} of" in released(course, student)
                assert f"{UNREAD}bo." in released(course, student)
        submit_to_exchange(course, "bo", RIGHT, "2026-01-05 03:04:05 UTC")
        serving.work_off()
    for student in ("ada", "bo"):
        assert f"{UNIT}: {FULL} of" in released(course, student)
        assert UNREAD not in released(course, student)


def test_serve_grades_a_submission_for_the_whole_group(course, recorded):
    write_roster(course, "group", {"ada": "g", "bo": "g", "cy": ""})
    submit_to_exchange(course, "ada", WRONG, FIRST)
    with Serving(course, recorded) as serving:
        serving.work_off()
        assert sorted(serving.marked) == ["ada", "bo"]
        submit_to_exchange(course, "bo", RIGHT, SECOND)
        serving.work_off()
        assert sorted(serving.marked) == ["ada", "ada", "bo", "bo"]
        serving.work_off(everything=True)
        assert len(serving.marked) == 4
    for student, said in (("ada", True), ("bo", False)):
        page = released(course, student)
        assert f"{UNIT}: {FULL} of" in page
        assert ("your group's submission, submitted by bo" in page.replace("&#39;", "'")) == said


def test_serve_answers_a_late_request_for_which_the_groups_file_counts(course, recorded, monkeypatch):
    write_roster(course, "group", {"ada": "g", "bo": "g"})
    set_due(course, datetime(2026, 1, 2, 12))
    submit_to_exchange(course, "ada", RIGHT, FIRST)
    monkeypatch.setattr(http_server, "now", lambda: datetime(2026, 1, 3, tzinfo=UTC))
    answers = []
    marked = serve(course, recorded, request=lambda requests: answers.append(requests.put_submission("bo", WRONG)))
    assert [(code, answer["status"], answer["page"]) for code, answer in answers] == [(202, "replaced", "")]
    assert sorted(marked) == ["ada", "bo"]
    assert f"{UNIT}: {FULL} of" in feedback_page(course, "bo").read_text()
    monkeypatch.setattr(http_server, "now", lambda: datetime(2026, 1, 2, 11, tzinfo=UTC))
    serve(course, recorded, request=lambda requests: answers.append(requests.put_submission("bo", WRONG + b" ")))
    assert [(code, answer["status"]) for code, answer in answers[1:]] == [(200, "marked")]
