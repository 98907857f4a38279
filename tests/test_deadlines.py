"""Deadlines: when a submission came, how late that is, what it costs, and that a dry run predicts all of it."""

import shutil
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from nbgrader.api import Gradebook

from autograder import catalogue, course
from autograder.course.cells import filled_in
from autograder.gradebook.database import FILE
from autograder.gradebook.marks import of_units
from tests import REPOSITORY

from .recorded_class import UNIT, RecordedClass, everything, hand_in

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
FAILS = HALF.replace("score / 2", "1 / 0")
BERLIN = "c.Exchange.timezone = 'Europe/Berlin'\n"

pytestmark = pytest.mark.filterwarnings("ignore:Object of type <Submitted:sqlalchemy.exc.SAWarning")


def notebook(**answers):
    right = {name: solution.source() for name, solution in catalogue.solutions(UNIT).items()}
    return filled_in(UNIT, {**right, **answers})


RIGHT = notebook()
WRONG = notebook(softmax="def softmax(scores): return scores")


def settings_are(root, *texts):
    ours = (REPOSITORY / "nbgrader_config.py").read_text()
    (root / "nbgrader_config.py").write_text("\n".join([ours, BERLIN, *texts]))


def roster_is(root, **names):
    lines = [f"{student},{name}" for student, name in sorted(names.items())]
    (root / "roster.csv").write_text("\n".join(["id,first_name", *lines, ""]))


def gradebook(root):
    return Gradebook(f"sqlite:///{root}/{FILE}", "attention")


def due_is(root, moment):
    with gradebook(root) as opened:
        opened.find_assignment(UNIT).duedate = moment
        opened.db.commit()


def extend(root, student="late", **by):
    with gradebook(root) as opened:
        opened.grant_extension(UNIT, student, **by)


def give_points(root, student="late"):
    """As a person does in formgrader."""
    with gradebook(root) as opened:
        grade = opened.find_grade("why_softmax", UNIT, UNIT, student)
        grade.manual_score, grade.needs_manual_grade = 2.0, False
        opened.db.commit()


def stamp_is(root, stamp, student="late"):
    place = root / "submitted" / student / UNIT / "timestamp.txt"
    place.unlink(missing_ok=True)
    if stamp is not None:
        place.write_text(stamp)


def points_are(root, points):
    """As an earlier build of the unit had them."""
    with gradebook(root) as opened:
        opened.find_grade_cell("test_softmax", UNIT, UNIT).max_score = points
        opened.db.commit()


def kit_was_another(root, student="late"):
    with gradebook(root) as opened:
        opened.db.connection().exec_driver_sql("update autograder_mark set kit = 'another'")
        opened.find_grade("test_softmax", UNIT, UNIT, student).auto_score = 1.0
        opened.db.commit()


def replace_damaged(root):
    with gradebook(root) as opened:
        opened.find_comment("softmax", UNIT, UNIT, "late").manual_comment = "Well done."
        opened.db.commit()
    (root / "autograded" / "late" / UNIT / f"{UNIT}.ipynb").write_text("")


@pytest.fixture(scope="module")
def recorded(marker):
    return RecordedClass(marker, {}, [])


@pytest.fixture(scope="module")
def once(recorded, tmp_path_factory):
    """A course graded once, with a due date and a penalty of everything: the student `late` is 15 minutes late."""
    root = tmp_path_factory.mktemp("once") / "course"
    root.mkdir()
    settings_are(root, ZERO)
    roster_is(root, early="Eve", late="Lou", nothing="Noa", unknown="Uma")
    for student, stamp in (("early", IN_TIME), ("late", LATE), ("unknown", UNKNOWN)):
        hand_in(root, student, RIGHT, stamp)
    recorded.grade(root)
    due_is(root, DUE)
    recorded.grade(root)
    return root


@pytest.fixture
def root(once, tmp_path):
    shutil.copytree(once, tmp_path / "course")
    return tmp_path / "course"


def standings(root):
    """All that marks in the gradebook say."""
    (marks,) = of_units(root, [UNIT])
    return marks


def total(root, student="late"):
    return standings(root).marks[student].score


MARKED = {"graded": ["late"]}
UPDATED = {"updated": ["late"]}
NOTHING = {}
# name: what is changed, who is graded again or updated for it, and the points of `late` then
CHANGES = {
    "nothing": (lambda root: None, NOTHING, 0.0),
    "an extension that is enough": (lambda root: extend(root, minutes=15), UPDATED, FULL),
    "an extension that is not": (lambda root: extend(root, minutes=14), NOTHING, 0.0),
    "a later due date": (lambda root: due_is(root, DUE + timedelta(days=1)), UPDATED, FULL),
    "no due date": (lambda root: due_is(root, None), UPDATED, FULL),
    "no due date but an extension": (lambda root: (extend(root, hours=1), due_is(root, None)), UPDATED, FULL),
    "an earlier due date": (
        lambda root: due_is(root, DUE - timedelta(days=1)), {"updated": ["early"]}, 0.0,
    ),
    "another plugin": (lambda root: settings_are(root, HALF), UPDATED, FULL / 2),
    "the plugin's setting": (lambda root: settings_are(root), UPDATED, FULL),
    "a plugin that counts hours": (lambda root: settings_are(root, PER_HOUR), UPDATED, FULL - 0.25),
    "points that a person gave": (give_points, UPDATED, 0.0),
    "points for one who was in time": (lambda root: give_points(root, "early"), NOTHING, 0.0),
    "another name": (lambda root: roster_is(root, early="Eve", late="Lee", nothing="Noa", unknown="Uma"), UPDATED, 0.0),
    "another name and an extension": (
        lambda root: (roster_is(root, early="Eve", late="Lee"), extend(root, hours=1)), UPDATED, FULL,
    ),
    "somebody new": (
        lambda root: (
            roster_is(root, early="Eve", late="Lou", new="Nia"), hand_in(root, "new", WRONG, LATER),
        ),
        {"graded": ["new"]}, 0.0,
    ),
    "another file in time": (lambda root: hand_in(root, "late", WRONG, IN_TIME), MARKED, FULL - 4),
    "another file that is late": (lambda root: hand_in(root, "early", WRONG, LATE), {"graded": ["early"]}, 0.0),
    "another file, later": (lambda root: hand_in(root, "late", WRONG, LATER), MARKED, 0.0),
    "another file without a stamp": (lambda root: hand_in(root, "late", WRONG), MARKED, FULL - 4),
    "a damaged file": (lambda root: hand_in(root, "early", b"no notebook", IN_TIME), {"graded": ["early"]}, 0.0),
    "a written answer": (lambda root: hand_in(root, "late", notebook(why_softmax="So."), LATE), MARKED, 0.0),
    "the same file again": (lambda root: hand_in(root, "late", RIGHT, IN_TIME), MARKED, FULL),
    "the same file again, later": (lambda root: hand_in(root, "early", RIGHT, LATER), {"graded": ["early"]}, 0.0),
    "another stamp": (lambda root: stamp_is(root, IN_TIME), MARKED, FULL),
    "the same time in another zone": (lambda root: stamp_is(root, "2026-07-01 16:15:00 UTC"), NOTHING, 0.0),
    "no stamp": (lambda root: stamp_is(root, None), NOTHING, 0.0),
    "a stamp without a time": (lambda root: stamp_is(root, UNKNOWN), MARKED, FULL),
    "a stamp that has a time": (lambda root: stamp_is(root, LATE, "unknown"), {"graded": ["unknown"]}, 0.0),
    "no unclear stamp": (lambda root: stamp_is(root, None, "unknown"), {"graded": ["unknown"]}, 0.0),
    "a zone for a stamp": (
        lambda root: settings_are(root, ZERO, "c.Exchange.timezone = 'America/New_York'"),
        {"graded": ["early", "late", "unknown"]}, FULL,
    ),
    "another kit": (kit_was_another, {"graded": ["early", "late", "unknown"]}, 0.0),
    "other points": (lambda root: points_are(root, 40.0), NOTHING, 0.0),
    "a damaged notebook of ours": (replace_damaged, MARKED, 0.0),
    "a submission that is gone": (
        lambda root: (shutil.rmtree(root / "submitted" / "late"), extend(root, hours=1)), UPDATED, FULL,
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_dry_run_predicts_what_the_run_does(root, recorded, change):
    makes_change, expected, points = CHANGES[change]
    makes_change(root)
    before, untouched = standings(root), everything(root)
    predicted = recorded.preview(root)
    asked_before = recorded.asked
    assert everything(root) == untouched
    result = recorded.grade(root)
    after = standings(root)

    assert total(root) == pytest.approx(points)
    assert recorded.asked == asked_before == expected.get("graded", [])
    assert [row.student for row in result.rows if row.updates] == expected.get("updated", [])
    assert predicted.rows == result.rows
    assert without_pages(predicted.after) == without_pages(after)
    assert applied(before, predicted.changes) == applied(after, [])
    assert recorded.preview(root).changes == []
    for student, mark in after.marks.items():
        page = (root / "feedback" / student / UNIT / f"{UNIT}.html").read_text()
        assert f"{UNIT}: {mark.score:g} of" in page
        assert ("does not say for certain when you submitted" in page) == mark.shown.is_time_unresolved
    assert recorded.grade(root).rows == [
        replace(row, is_new=row.report.status == "not_submitted", updates=(), note=row.note) for row in result.rows
    ]


def without_pages(marks):
    return {student: (mark.shown, mark.late, mark.timestamp, mark.waiting) for student, mark in marks.marks.items()}


def applied(marks, changes):
    """The points, penalties and names in the gradebook, with these changes made."""
    found = {}
    for one in marks.students:
        for field in ("first_name", "last_name", "email"):
            found[one.id, field] = getattr(one, field) or ""
    for student, mark in marks.marks.items():
        found[student, "late_penalty"] = mark.shown.late_penalty
        found.update({(student, name.removeprefix("test_")): score for name, score in mark.shown.scores.items()})
    for change in changes:
        assert found.get((change.student, change.exercise), 0.0) == change.before
        found[change.student, change.exercise] = change.after
    return {key: value for key, value in found.items() if value}
