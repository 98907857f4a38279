"""Deadlines: how late a submission is, what that costs, and that a dry run predicts all that a run does."""

import re
import shutil
from datetime import datetime, timedelta

import pytest

from autograder import course
from autograder.cli.class_results import changes_in_lines, class_in_lines, class_lines
from autograder.gradebook.class_gradebook import of_units
from autograder.gradebook.lateness import in_words
from autograder.gradebook.nbgrader_course import LOCK, CourseProblem, course_directory
from autograder.reports.class_report import compose, table
from tests import REPOSITORY, forked_command
from tests.recorded_class import (
    UNIT,
    UNKNOWN_TIME,
    change_mark,
    comment,
    everything,
    feedback_page,
    give_points,
    notebook,
    opened_gradebook,
    put_submission,
    set_due,
    write_roster,
    write_settings,
)

FULL = course.unit(UNIT).max_score
DUE = datetime(2026, 7, 1, 16)  # 18:00 in Berlin
IN_TIME = "2026-07-01 17:45:00.0 CEST"
LATE = "2026-07-01 18:15:00.0 CEST"
LATER = "2026-07-01 21:00:00.0 CEST"
UNKNOWN = "2026-07-01 12:15:00.0 EDT"
HALF = """
from nbgrader.plugins import BasePlugin
class Half(BasePlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return score / 2
c.AssignLatePenalties.plugin_class = Half
"""
ZERO = "c.LateSubmissionPlugin.penalty_method = 'zero'\n"
PER_HOUR = HALF.replace("score / 2", "total_seconds_late / 3600")
BERLIN = "c.Exchange.timezone = 'Europe/Berlin'\n"


RIGHT = notebook()
WRONG = notebook(softmax="def softmax(scores): return scores")
WRITTEN = notebook(why_softmax="So.")


def extend(root, student, **by):
    with opened_gradebook(root) as opened:
        opened.grant_extension(UNIT, student, **by)


def stamp_is(root, student, stamp):
    place = root / "submitted" / student / UNIT / "timestamp.txt"
    place.unlink(missing_ok=True)
    if stamp is not None:
        place.write_text(stamp)


def is_taken_away(root, student):
    shutil.rmtree(root / "submitted" / student)
    extend(root, student, hours=1)


def marked_by_another_kit(root, student):
    """Record a grade with other points, as another version of the autograder would."""
    change_mark(root, student, "kit = 'x'")
    with opened_gradebook(root) as opened:
        opened.find_grade("test_softmax", UNIT, UNIT, student).auto_score = 1.0
        opened.db.commit()


def notebook_is_damaged(root, student):
    """The one in autograded/, which the page is made of: and the page is to be made again."""
    comment(root, student, "Well done.")
    (root / "autograded" / student / UNIT / f"{UNIT}.ipynb").write_text("")


def points_are(root, points):
    """Change the points of a hidden test in the gradebook, as in an earlier build of the unit."""
    with opened_gradebook(root) as opened:
        opened.find_grade_cell("test_softmax", UNIT, UNIT).max_score = points
        opened.db.commit()


def graded(recorded, root, stamps):
    """A course graded with a due date, and a penalty that takes everything."""
    root.mkdir()
    write_settings(root, BERLIN, ZERO)
    write_roster(root, "first_name", {student.replace(" ", "-"): student for student in stamps})
    for student, stamp in stamps.items():
        put_submission(root, student.replace(" ", "-"), RIGHT, stamp)
    recorded.grade(root)
    set_due(root, DUE)
    recorded.grade(root)
    return root


@pytest.fixture(scope="module")
def once(recorded, tmp_path_factory):
    """The student `late` is 15 minutes late, and has no points for that."""
    stamps = {"early": IN_TIME, "late": LATE, "unknown": UNKNOWN}
    return graded(recorded, tmp_path_factory.mktemp("once") / "course", stamps)


def standings(root):
    """All that marks in the gradebook say."""
    (marks,) = of_units(root, [UNIT])
    return marks


def of_each(marks):
    return {student: (mark.shown, mark.late, mark.timestamp, mark.waiting) for student, mark in marks.grades.items()}


def applied(marks, changes):
    """The points, penalties and names in the gradebook, with these changes made."""
    found = {}
    for one in marks.students:
        for field in ("first_name", "last_name", "email"):
            found[one.id, field] = getattr(one, field) or ""
    for student, mark in marks.grades.items():
        found[student, "late_penalty"] = mark.shown.late_penalty
        found.update({(student, name.removeprefix("test_")): score for name, score in mark.shown.scores.items()})
    for change in changes:
        assert found.get((change.student, change.exercise), type(change.before)()) == change.before
        found[change.student, change.exercise] = change.after
    return {key: value for key, value in found.items() if value}


def predicted_and_done(root, recorded):
    """Compare a dry run with the real run; return the students graded, those updated, and all points."""
    before, untouched = standings(root), everything(root)
    predicted, graded = recorded.preview(root), recorded.asked
    assert everything(root) == untouched
    result = recorded.grade(root)
    after = standings(root)
    assert predicted.rows == result.rows
    assert graded == recorded.asked
    assert of_each(predicted.after) == of_each(after)
    assert applied(before, predicted.changes) == applied(after, [])
    for student, mark in after.grades.items():
        page = feedback_page(root, student).read_text()
        assert f"{UNIT}: {mark.score:g} of" in page
        assert (UNKNOWN_TIME in page) == mark.shown.is_time_unresolved
    updated = [row.student for row in result.rows if row.updates]
    return graded, updated, {student: mark.score for student, mark in after.grades.items()}


GRADED, UPDATED, ALONE = "graded", "updated", "left alone"
# what is changed of a student's: the stamp before, the change, what the run does, and the points then
OF_STUDENTS = {
    "nothing": (LATE, lambda root, who: None, ALONE, 0),
    "enough time": (LATE, lambda root, who: extend(root, who, minutes=15), UPDATED, FULL),
    "too little time": (LATE, lambda root, who: extend(root, who, minutes=14), ALONE, 0),
    "points from a person": (LATE, lambda root, who: give_points(root, who, 2.0), UPDATED, 0),
    "points in time": (IN_TIME, lambda root, who: give_points(root, who, 2.0), ALONE, FULL + 2),
    "another file in time": (LATE, lambda root, who: put_submission(root, who, WRONG, IN_TIME), GRADED, FULL - 4),
    "another file too late": (IN_TIME, lambda root, who: put_submission(root, who, WRONG, LATE), GRADED, 0),
    "another file without a stamp": (LATE, lambda root, who: put_submission(root, who, WRONG), GRADED, FULL - 4),
    "a damaged file": (IN_TIME, lambda root, who: put_submission(root, who, b"no notebook", IN_TIME), GRADED, 0),
    "a written answer": (IN_TIME, lambda root, who: put_submission(root, who, WRITTEN, IN_TIME), GRADED, FULL),
    "the same file too late": (IN_TIME, lambda root, who: put_submission(root, who, RIGHT, LATER), GRADED, 0),
    "the same file in time": (LATE, lambda root, who: put_submission(root, who, RIGHT, IN_TIME), GRADED, FULL),
    "a stamp for a late one": (None, lambda root, who: stamp_is(root, who, LATE), GRADED, 0),
    "the same time": (LATE, lambda root, who: stamp_is(root, who, "2026-07-01T16:15:00Z"), ALONE, 0),
    "no stamp any more": (LATE, lambda root, who: stamp_is(root, who, None), ALONE, 0),
    "a stamp without a time": (LATE, lambda root, who: stamp_is(root, who, UNKNOWN), GRADED, FULL),
    "a stamp that has one": (UNKNOWN, lambda root, who: stamp_is(root, who, LATE), GRADED, 0),
    "an unclear stamp less": (UNKNOWN, lambda root, who: stamp_is(root, who, None), GRADED, FULL),
    "another kit": (IN_TIME, marked_by_another_kit, GRADED, FULL),
    "a damaged page": (LATE, notebook_is_damaged, GRADED, 0),
    "taken away": (LATE, is_taken_away, UPDATED, FULL),
}


def test_a_dry_run_predicts_the_result_of_each_students_change(recorded, tmp_path):
    """Each student is called after what changes."""
    root = graded(recorded, tmp_path / "course", {name: stamp for name, (stamp, *_) in OF_STUDENTS.items()})
    for name, (_, change, _, _) in OF_STUDENTS.items():
        change(root, name.replace(" ", "-"))
    graded_now, updated, points = predicted_and_done(root, recorded)
    done = {
        name: GRADED
        if name.replace(" ", "-") in graded_now
        else UPDATED
        if name.replace(" ", "-") in updated
        else ALONE
        for name in OF_STUDENTS
    }
    assert done == {name: what for name, (_, _, what, _) in OF_STUDENTS.items()}
    assert points == {name.replace(" ", "-"): expected for name, (*_, expected) in OF_STUDENTS.items()}
    assert recorded.preview(root).changes == []
    assert not any(row.updates for row in recorded.grade(root).rows)
    assert recorded.asked == []


def somebody_is_new(root):
    write_roster(root, "first_name", {"early": "early", "late": "late", "new": "Nia", "unknown": "unknown"})
    put_submission(root, "new", WRONG, LATER)


NAMES = {"early": "Eve", "late": "late", "unknown": "unknown"}
"""On the roster once it has changed."""
# what is changed, who is graded then and who updated, and the points of `late`
OF_THE_CLASS = {
    "a later due date": (lambda root: set_due(root, DUE + timedelta(days=1)), [], ["late"], FULL),
    "an earlier due date": (lambda root: set_due(root, DUE - timedelta(days=1)), [], ["early"], 0),
    "no due date but an extension": (
        lambda root: (extend(root, "late", minutes=5), set_due(root, None)), [], ["late"], FULL,
    ),
    "another plugin": (lambda root: write_settings(root, BERLIN, HALF), [], ["late"], FULL / 2),
    "the plugin's setting": (lambda root: write_settings(root, BERLIN), [], ["late"], FULL),
    "a plugin that counts hours": (lambda root: write_settings(root, BERLIN, PER_HOUR), [], ["late"], FULL - 0.25),
    "another name and an extension": (
        lambda root: (write_roster(root, "first_name", NAMES), extend(root, "late", hours=1)),
        [], ["early", "late"], FULL,
    ),
    "somebody new": (somebody_is_new, ["new"], [], 0),
    "another zone": (
        lambda root: write_settings(root, ZERO, "c.Exchange.timezone = 'America/New_York'"),
        ["early", "late", "unknown"], [], FULL,
    ),
    "other points": (lambda root: points_are(root, 40.0), [], [], 0),
}  # fmt: skip


@pytest.mark.parametrize("change", OF_THE_CLASS)
def test_a_dry_run_predicts_the_result_of_a_change_for_the_class(root, recorded, change):
    makes_change, *expected, points_of_late = OF_THE_CLASS[change]
    makes_change(root)
    *done, points = predicted_and_done(root, recorded)
    assert done == expected
    assert points["late"] == pytest.approx(points_of_late)


def test_an_extension_restores_points_without_any_file_of_the_submission(root, recorded):
    for folder in ("submitted", "autograded"):
        shutil.rmtree(root / folder / "late")
    extend(root, "late", hours=1)
    predicted = recorded.preview(root)
    assert recorded.grade(root).rows == predicted.rows
    assert of_each(standings(root)) == of_each(predicted.after)
    assert standings(root).grades["late"].score == FULL


def test_lateness_and_penalty_are_in_table_lines_and_class_report(root, recorded):
    result = recorded.grade(root)
    lines = [str(line) for line in class_in_lines(course.unit(UNIT, root), result)]
    said = {line.split()[0]: line for line in lines[1:]}
    assert f"Late by 15 minutes, {FULL} points deducted." in said["late"]
    assert f"LATENESS UNKNOWN: the time `{UNKNOWN}` in its timestamp.txt" in said["unknown"]
    assert "ate" not in said["early"].partition("graded")[2]
    about = {line.student: line for line in class_lines(course.unit(UNIT), result)}
    assert {student: (line.lateness, line.late_seconds, line.late_penalty) for student, line in about.items()} == {
        "early": ("", None, 0.0), "late": ("late", 900.0, FULL), "unknown": ("unknown", None, 0.0),
    }  # fmt: skip
    assert about["unknown"].time_stamp == UNKNOWN
    report = compose(root, UNIT)
    assert {one.what: one.students for one in report.to_look_at} == {"late": ["late"], "lateness unknown": ["unknown"]}
    assert [line.split(",")[3] for line in table(report).splitlines()] == ["late_minutes", "0", "15", "unknown"]


def test_changes_of_a_run_and_of_a_dry_run_are_printed(root, recorded):
    extend(root, "late", hours=1)
    write_roster(root, "first_name", NAMES)
    assert [str(line) for line in changes_in_lines(UNIT, recorded.preview(root).changes)] == [
        f"{UNIT}: the grades of 1 student would change",
        "early  first_name  early -> Eve  changed on the roster",
        f"late  late penalty  {FULL} -> 0  not late, extended by 1 hour",
    ]
    result = recorded.grade(root)
    said = "\n".join(map(str, class_in_lines(course.unit(UNIT, root), result)))
    assert "Changed without grading again: late penalty." in said
    assert "Changed without grading again: roster entry." in said
    assert list(map(str, changes_in_lines(UNIT, recorded.preview(root).changes))) == [f"{UNIT}: no grade would change."]
    updates = {line.student: line.updates for line in class_lines(course.unit(UNIT), result)}
    assert updates == {"early": ["roster entry"], "late": ["late penalty"], "unknown": []}


@pytest.mark.parametrize(
    ("plugin", "said"),
    [
        (HALF.replace("score / 2", "1 / 0"), "plugin Half failed for late: ZeroDivisionError: division by zero."),
        (HALF.replace("score / 2", "float('nan')"), "plugin Half failed for late: ValueError: nan is no penalty."),
        (HALF.replace("score / 2", "'all'"), "plugin Half failed for late: TypeError: must be real number, not str"),
        ("c.AssignLatePenalties.plugin_class = 'no.such.Plugin'", "late submission plugin cannot be used: "),
    ],
)
def test_a_broken_penalty_plugin_is_an_error_message(root, recorded, plugin, said):
    write_settings(root, BERLIN, plugin)
    untouched = everything(root)
    for run in (recorded.preview, recorded.grade):
        with pytest.raises(CourseProblem, match=re.escape(said)):
            run(root)
    rows, files = everything(root)
    files.pop(LOCK, None)
    untouched[1].pop(LOCK, None)
    assert (rows, files) == untouched


def test_plain_nbgrader_reads_the_same_times(root):
    """nbgrader's own command, which formgrader's button runs: in Berlin's zone, and unknown where the name is not."""
    for student, stamp in (("early", UNKNOWN), ("late", IN_TIME), ("unknown", LATE)):
        put_submission(root, student, WRONG, stamp)
    for folder in ("source", "release"):
        shutil.copytree(REPOSITORY / folder / UNIT, root / folder / UNIT)
    shutil.rmtree(root / "autograded")
    for command in ("autograde", "generate_feedback"):
        forked_command.nbgrader(command, UNIT, "--force", cwd=root).check_returncode()
    marks = standings(root).grades
    assert {student: (mark.late, mark.shown.is_time_unresolved) for student, mark in marks.items()} == {
        "early": (timedelta(), True), "late": (timedelta(), False), "unknown": (timedelta(minutes=15), False),
    }  # fmt: skip
    assert [marks[student].score for student in marks] == [FULL - 4, FULL - 4, 0]
    said = [UNKNOWN_TIME in feedback_page(root, student).read_text() for student in marks]
    assert said == [True, False, False]


@pytest.mark.parametrize(
    ("due", "moment"),
    [
        ("2026-07-01 18:00 +0200", DUE),
        ("2026-07-01 16:00 UTC", DUE),
        ("2026-07-01 18:00 Europe/Berlin", DUE),
        ("2026-07-01T18:00 +0200", DUE),
        ("2026-07-01 18:00 CEST", None),
        ("2026-07-01 6:00 PM", None),
    ],
)
def test_a_due_date_is_understood_or_refused(root, due, moment):
    course_directory(root)  # as all of nbgrader's programs read the settings
    with opened_gradebook(root) as opened:
        if moment is None:
            with pytest.raises(ValueError, match="has an unknown time zone"):
                opened.update_or_create_assignment(UNIT, duedate=due)
        else:
            assert opened.update_or_create_assignment(UNIT, duedate=due).duedate == moment


@pytest.mark.parametrize(
    ("late", "words"),
    [
        (timedelta(seconds=1), "1 minute"),
        (timedelta(minutes=15), "15 minutes"),
        (timedelta(minutes=119, seconds=1), "120 minutes"),
        (timedelta(hours=10, minutes=4), "11 hours"),
        (timedelta(days=2), "2 days"),
    ],
)
def test_a_delay_in_words(late, words):
    assert in_words(late) == words
